/// \file
/// The outbound half of an Endpoint: its messages, cut into the ULPDUs that the framing pulls.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.hpp"
#include "ddp/ddp.hpp"
#include "ddp/segmenter.hpp"
#include "llp/framing.hpp"
#include "rdmap/completions.hpp"
#include "rdmap/counters.hpp"
#include "rdmap/life.hpp"
#include "rdmap/payload.hpp"
#include "rdmap/requester.hpp"
#include "rdmap/responder.hpp"
#include "rdmap/rtr_message.hpp"
#include "rdmap/send_queue.hpp"
#include "rdmap/source_run.hpp"
#include "rdmap/stream_memory.hpp"
#include "rdmap/terminate.hpp"

namespace rnic::rdmap {

/// Learns of the events of sending that have consequences for the endpoint.
class OutboundOwner {
 public:
  /// A message cannot be made (RFC 5040 s.7.1): a Terminate goes in its place, if one can go.
  /// \param segment the segment of the request for the message; empty: there was no request
  /// \param rdma_header the part of that request that a Terminate attaches, or empty
  virtual void raise(const Fault& fault, const ddp::SegmentReport& segment,
                     base::ByteView rdma_header, base::Now now) = 0;
  /// The next work needs a response, and the peer has closed its direction.
  virtual void unanswerable() = 0;
  /// The RTR was handed down.
  virtual void rtr_sent(base::Now now) = 0;
  /// The Terminate was handed down: nothing follows it (RFC 5040 s.5.4).
  virtual void terminate_sent() = 0;
  /// The endpoint is Closing, and nothing is left to send or to wait for.
  virtual void all_done() = 0;

 protected:
  ~OutboundOwner() = default;
};

/// Sends the messages of the Requester and of the Responder in turn, and those of the endpoint
/// itself: RTR, Terminate, and the empty Write that wakes a silent peer. It can rebuild a ULPDU,
/// octet by octet, for as long as TCP may have to retransmit it.
///
/// Messages are never interleaved: one is pulled to its end, or abandoned for a Terminate.
class Outbound {
 public:
  /// The parts that this half works with. They outlive it.
  struct Links {
    const Life& life;
    const SendQueue& sends;
    Requester& requester;
    Responder& responder;
    Completions& completions;
    ddp::Stream& stream;
    StreamMemory memory;
    Counters& counters;
    OutboundOwner& owner;
  };
  explicit Outbound(const Links& links);

  /// Begins a connection. \param rtr the message that goes out before every other one
  void begin(Rtr rtr);
  /// Takes the work that was posted to the send queue; called while work is carried out.
  void accept_posted();
  /// Plans a Terminate. \param at as in EndpointFaults; not among the messages sent already
  void plan_terminate(std::optional<uint32_t> at) { terminate_at_ = at; }
  /// The messages of this endpoint that were sent, or begun.
  [[nodiscard]] uint32_t messages() const {
    return messages_ + (current_.kind != Kind::None && current_.offset != 0 ? 1 : 0);
  }
  /// Sets the Terminate, which alone goes out in the state Terminating.
  void set_terminate(const wire::Terminate& terminate) { terminate_.set(terminate); }
  /// Abandons the message that was begun: nothing more of it is pulled.
  void abandon() { current_.kind = Kind::None; }
  /// A Read or an atomic has its response, for which others may have waited.
  void response_finished();
  /// Tells the owner when the endpoint is Closing and nothing is left to send or to wait for.
  void close_if_finished() const {
    if (life_.state() == EndpointState::Closing) [[unlikely]] close_if_all_done();
  }

  /// \return whether a part of a message of either queue waits to be pulled
  [[nodiscard]] bool has_unsent() const {
    return current_.kind != Kind::None || sends_.has_next() || responder_.has_ready();
  }

  // As in ddp::User.
  llp::PulledUlpdu pull(uint32_t max, bool whole_only, llp::UlpduWriter& out, base::Now now);
  bool rebuild(const llp::RecordTag& tag, llp::UlpduWriter& out);
  void released(const llp::RecordTag& tag);
  void released_run(llp::RecordRun run);
  [[nodiscard]] bool fills_segment(uint32_t octets, uint32_t overhead) const;
  [[nodiscard]] bool all_fits(uint32_t octets, uint32_t overhead) const;
  void may_send() const;
  void peer_silent();

  /// Checks that the message that was begun is the next of its queue. Called between calls of the
  /// endpoint.
  void validate() const;

 private:
  /// The kind of message that a record belongs to; part of its RecordTag.
  enum class Kind : uint8_t { None, Send, Response, Terminate, Rtr, Nudge };

  struct Current {
    Kind kind = Kind::None;
    uint8_t part = 0;      // of a slot in the send queue: which of its messages
    bool counted = false;  // its octets count as sent: it is no request for a response
    uint32_t seq = 0;      // slot in the send queue or among the inbound requests
    uint32_t offset = 0;   // octets of the message pulled so far
    ddp::OutboundMessage message;
    SourceRun source;
  };

  bool choose(base::Now now);
  bool choose_send(base::Now now);
  bool choose_response(base::Now now);
  void begin_message(Kind kind, uint32_t seq, uint8_t part, bool counted);
  [[nodiscard]] mem::AccessFault open_source(const ddp::Cut& cut);
  [[nodiscard]] mem::AccessFault locate(Kind kind, uint32_t seq, uint8_t part, const ddp::Cut& cut,
                                        Payload& out) const;
  void refuse_payload(const ddp::Cut& cut, mem::AccessFault fault, base::Now now);
  [[nodiscard]] bool goes_direct(const llp::UlpduRoom& room) const;
  void pull_direct(llp::UlpduRoom& room, llp::UlpduWriter& out, llp::PulledUlpdu& pulled);
  void begin_direct(const SendSlot& slot, llp::UlpduRoom& room);
  llp::PulledUlpdu pull_message(uint32_t max, bool whole_only, llp::UlpduWriter& out,
                                base::Now now);
  llp::PulledUlpdu pull_segments(uint32_t max, bool whole_only, llp::UlpduWriter& out,
                                 base::Now now);
  bool pull_full(const llp::UlpduRoom& room, uint8_t* at, llp::PulledUlpdu& pulled,
                 llp::UlpduWriter& out);
  llp::PulledUlpdu pull_found(const ddp::Cut& cut, uint32_t max, bool whole_only,
                              llp::UlpduWriter& out, base::Now now);
  llp::PulledUlpdu put(const ddp::Cut& cut, std::span<const base::ByteSpan> payload,
                       llp::UlpduWriter& out);
  void finish_message();
  void count_message() {
    ++counters_.messages_out;
    ++messages_;
  }
  void count_direct(uint32_t messages, uint64_t octets) {
    counters_.messages_out += messages;
    messages_ += messages;
    counters_.segments_out += messages;
    counters_.octets_out += octets;
  }
  /// \return whether a planned Terminate goes in the place of the next message
  [[nodiscard]] bool is_replaced() const { return terminate_at_ == messages_ + 1; }
  /// \return whether it goes before everything but an RTR, which completes the connection
  [[nodiscard]] bool is_cut_off() const { return terminate_at_ == 0u; }
  /// \return whether the next pull() may give a ULPDU although nobody calls ready() before
  [[nodiscard]] bool has_more() const {
    return has_unsent() || rtr_.is_pending() || nudge_pending_ || terminate_at_.has_value();
  }
  void close_if_all_done() const;
  bool release(const llp::RecordTag& tag);
  [[gnu::noinline]] void release_response(uint32_t seq);
  void complete_released();
  void provide_requests();
  /// \return whether something may have to go before the next message. It never goes between the
  /// segments of a message, but for a Terminate, which is a state
  [[nodiscard]] bool has_special() const {
    return !life_.running() || rtr_.is_pending() || nudge_pending_ || is_cut_off();
  }
  llp::PulledUlpdu pull_special(uint32_t max, bool whole_only, llp::UlpduWriter& out,
                                base::Now now);
  llp::PulledUlpdu pull_terminate(uint32_t max, llp::UlpduWriter& out);
  llp::PulledUlpdu pull_planned(uint32_t max, llp::UlpduWriter& out, base::Now now);
  void write_terminate(llp::UlpduWriter& out);
  llp::PulledUlpdu pull_rtr(uint32_t max, llp::UlpduWriter& out, base::Now now);
  llp::PulledUlpdu pull_nudge(uint32_t max, llp::UlpduWriter& out);

  const Life& life_;
  const SendQueue& sends_;
  Requester& requester_;
  Responder& responder_;
  Completions& completions_;
  ddp::Stream& stream_;
  StreamMemory memory_;
  Counters& counters_;
  OutboundOwner& owner_;

  Current current_;
  ReadableRun readable_;  // what is known of the memory of direct messages
  bool responses_turn_ = false;  // the next whole message comes from the Responses, if there is one
  // A zero-length Write to a silent peer goes before the next message. This is not part of the
  // state: it happens in Connected as in Closing.
  bool nudge_pending_ = false;
  RtrMessage rtr_;
  SentTerminate terminate_;
  std::optional<uint32_t> terminate_at_;
  uint32_t messages_ = 0;
};

}  // namespace rnic::rdmap
