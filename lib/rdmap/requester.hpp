/// \file
/// Work of this side on its way to the peer: what of it is sent next, and the responses that it
/// has.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "ddp/fault.hpp"
#include "ddp/segmenter.hpp"
#include "ddp/tagged.hpp"
#include "rdmap/completions.hpp"
#include "rdmap/counters.hpp"
#include "rdmap/deliveries.hpp"
#include "rdmap/payload.hpp"
#include "rdmap/rdmap.hpp"
#include "rdmap/requests.hpp"
#include "rdmap/send_queue.hpp"
#include "rdmap/stream_memory.hpp"
#include "wire/terminate.hpp"

namespace rnic::rdmap {

/// What RFC 7306 calls the Requester. It numbers the messages of the send queue, cuts none of them,
/// and says where the octets of each are, when they are sent first and whenever they are sent
/// again.
class Requester {
 public:
  /// What is sent next of the send queue.
  enum class Next : uint8_t {
    Nothing,       ///< it is empty, or what comes next has to wait
    Message,       ///< message() of SendQueue::next()
    Refused,       ///< that work is impossible, and its status says why: a local error
    Unanswerable,  ///< it wants a response, and the peer will send none any more
  };

  /// All of them outlive this.
  Requester(const EndpointConfig& config, const StreamMemory& memory, Counters& counters,
            SendQueue& sends, Completions& completions);

  /// \param ord what the start-up agreed on; at most the configured one
  void set_limit(uint32_t ord) { outbound_.set_limit(ord); }
  [[nodiscard]] uint32_t limit() const { return outbound_.limit(); }

  /// Is there work that was posted and not taken?
  [[nodiscard]] bool has_posted() { return sends_.has_posted(); }
  /// Takes the oldest work that was posted. False: it is refused, at its place in the order of
  /// completions. \param connected work may still be begun \param version RV and DV of the stream
  bool accept(bool connected, uint8_t version);

  // --- Sending ---

  /// Passes over work that was refused, carries out what needs no message, and numbers the message
  /// that comes next. \param peer_finished no response can come any more
  Next choose(bool peer_finished);
  /// \param part SendSlot::part
  [[nodiscard]] ddp::OutboundMessage message(uint32_t seq, uint8_t part, uint8_t version) const;
  /// Whether the memory of a message can be read from, all of it: nothing leaves of one that cannot
  /// leave as a whole. For what is pulled in one piece locate() asks the same.
  [[nodiscard]] mem::AccessFault check_source(uint32_t seq, uint8_t part) const;
  /// Finds the payload of a piece of a message.
  [[nodiscard]] mem::AccessFault locate(uint32_t seq, uint8_t part, const ddp::Cut& cut,
                                        Payload& out) const;
  /// The memory of that message cannot be read from.
  void refuse(uint32_t seq) { sends_.fail(seq, CompletionStatus::LocalProtection); }
  /// A segment of the message of SendQueue::next() was handed down.
  void pulled(const ddp::Cut& cut);
  /// The last one was. \return whether the peer sends a message to queue 3 now, which wants a
  /// buffer
  bool finish();
  /// A message that is no work was sent; a Read has a response all the same.
  void rtr_sent(Rtr kind);
  /// The peer's TCP has all of that message.
  void release(uint32_t seq, uint8_t part) {
    if (sends_.at(seq).is_last(part)) sends_.release(seq);
  }
  /// Work without a message has waited for all before it, which has completed.
  [[nodiscard]] bool local_work_is_due() const;

  /// Octets of the FPDUs that wait, with `overhead` for each; counted up to more than `most`.
  /// \param begun SendQueue::next() is not one of them, as it was begun
  [[nodiscard]] uint64_t octets_waiting(uint64_t most, uint32_t overhead, bool begun) const;
  /// Do those that can be sent in a row fill so many octets, or is there nothing to wait for?
  /// \param pulled octets of SendQueue::next() that are gone
  [[nodiscard]] bool fills(uint32_t octets, uint32_t overhead, uint32_t pulled) const;

  // --- Responses ---

  /// Reads and atomics without a response yet.
  [[nodiscard]] uint32_t outstanding() const { return outbound_.outstanding(); }
  /// Checks a segment of a Read Response, as OutboundRequests::find() says, and finds the pieces of
  /// its Read where there are several.
  [[nodiscard]] Fault response_target(const wire::DdpTaggedHeader& header, uint32_t payload,
                                      ddp::TaggedTarget& out) const;
  /// The buffer of a message of queue 3.
  [[nodiscard]] base::ByteSpan response_buffer(uint32_t msn) {
    return outbound_.atomic_buffer(msn);
  }
  /// A segment of a Read Response. `finished` is set when it ends a Read, whose work has completed.
  [[nodiscard]] Fault deliver_read_response(const wire::DdpTaggedHeader& header, uint32_t payload,
                                            bool& finished);
  /// Completes the oldest atomic.
  [[nodiscard]] Fault deliver_atomic_response(const UntaggedMessage& message);
  /// The work whose message the peer's Terminate quotes, if there is one, failed there. \return its
  /// id, though it has completed already
  std::optional<uint64_t> terminated(const wire::Terminate& terminate, const FaultCode& fault);
  /// The connection is lost: what was under way and is the next to complete may have got through.
  void lost();
  /// No response is waited for any more.
  void clear() { outbound_.clear(); }

  void validate() const { outbound_.validate(); }

 private:
  Next pass_over();
  [[nodiscard]] CompletionStatus check_work(const SendSlot& slot) const;
  [[nodiscard]] CompletionStatus check_sink(const WorkRow& row,
                                            std::span<const Sge> pieces) const;
  [[nodiscard]] Fault refuse_sink(uint32_t seq);
  [[nodiscard]] bool conclude(uint32_t seq);
  void finish_request(const OutboundRequest& request);
  [[nodiscard]] static uint64_t octets_left(const SendSlot& slot, uint32_t overhead, bool begun);

  const bool extensions_;
  const AccessSet sink_rights_;  // that the application has to have of a Read's sink
  StreamMemory memory_;
  Counters& counters_;
  SendQueue& sends_;
  Completions& completions_;
  OutboundRequests outbound_;
  // Names the pieces of Reads into several, at offsets that sink_of() says. It is no STag of the
  // table, so that nothing but a Response to such a Read can use it, and drawn for this stream.
  const uint32_t list_stag_;
  // Of the next untagged message that we send, by queue (RFC 5041 s.4.3).
  std::array<uint32_t, wire::kRdmapReadRequestQn + 1> next_msn_{1, 1};
};

}  // namespace rnic::rdmap
