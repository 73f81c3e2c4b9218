/// \file
/// Requester: the work of this side on its way to the peer, what is sent next of it, and its
/// responses.
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

/// The Requester of RFC 7306. It numbers the messages of the send queue, and finds the octets of
/// each when they are first sent and when they are sent again. It does not cut messages.
class Requester {
 public:
  /// The next thing to send from the send queue.
  enum class Next : uint8_t {
    Nothing,       ///< the queue is empty, or its next work has to wait
    Message,       ///< message() of SendQueue::next()
    Refused,       ///< the next work is impossible, and its status says why: a local error
    Unanswerable,  ///< the next work needs a response, and the peer sends none any more
  };

  /// All parameters outlive this.
  Requester(const EndpointConfig& config, const StreamMemory& memory, Counters& counters,
            const Queues& queues, Completions& completions);

  /// \param ord as agreed in the start-up; at most the configured one
  void set_limit(uint32_t ord) { outbound_.set_limit(ord); }
  [[nodiscard]] uint32_t limit() const { return outbound_.limit(); }

  /// \return whether there is work that was posted and not taken
  [[nodiscard]] bool has_posted() { return sends_.has_posted(); }
  /// Takes the oldest work that was posted. False: it is refused, at its place in the order of
  /// completions. \param connected work may still be begun \param version RV and DV of the stream
  bool accept(bool connected, uint8_t version);

  // --- Sending ---

  /// Passes over work that was refused, carries out work that needs no message, and numbers the
  /// next message. \param peer_finished no response can come any more
  Next choose(bool peer_finished);
  /// \param part SendSlot::part
  [[nodiscard]] ddp::OutboundMessage message(uint32_t seq, uint8_t part, uint8_t version) const;
  /// Checks that all memory of a message can be read: nothing is sent of a message that cannot be
  /// sent as a whole. \param whole the message is pulled in one piece, for which locate() checks
  /// the same \param out knows the memory then, if the message has one SGE
  [[nodiscard]] mem::AccessFault check_source(uint32_t seq, uint8_t part, bool whole,
                                              SourceRun& out) const;
  /// Finds the payload of a piece of a message.
  [[nodiscard]] mem::AccessFault locate(uint32_t seq, uint8_t part, const ddp::Cut& cut,
                                        Payload& out) const;
  /// The memory of that message cannot be read: its work fails.
  void refuse(uint32_t seq) { sends_.fail(seq, CompletionStatus::LocalProtection); }
  /// The work that is next if it can go as it is, once its memory is known: nothing of choose() and
  /// check_source() is left to be asked. Else nullptr.
  [[nodiscard]] const SendSlot* next_direct() const {
    if (!sends_.has_next()) return nullptr;
    const SendSlot& slot = sends_.at(sends_.next());
    return slot.direct ? &slot : nullptr;
  }
  /// The message of that work.
  [[nodiscard]] ddp::OutboundMessage direct_message(const SendSlot& slot, uint8_t version) const;
  /// Numbers that message, as choose() does.
  void number_direct(const SendSlot& slot) {
    if (!slot.row->tagged) sends_.number(sends_.next(), next_msn_[slot.row->qn], list_stag_);
  }
  /// That work was handed down as a whole.
  void pass_direct(const SendSlot& slot) {
    number_direct(slot);
    if (!slot.row->tagged) ++next_msn_[slot.row->qn];
    sends_.pass_next();
  }
  /// The first segment of the message of SendQueue::next() is handed down.
  void started() { sends_.start(sends_.next()); }
  /// The last segment of that message was handed down. \return whether the peer will answer on
  /// queue 3, for which a buffer has to be added
  bool finish();
  /// The RTR was sent. It is not part of the send queue, but as a Read it has a response.
  void rtr_sent(Rtr kind);
  /// The peer's TCP has all of that message.
  void release(uint32_t seq, uint8_t part) {
    if (sends_.at(seq).is_last(part)) sends_.release(seq);
  }
  /// \return whether work without a message can be carried out now, since all work that it waited
  /// for has completed
  [[nodiscard]] bool local_work_is_due() const;

  /// Octets of the FPDUs that wait, with `overhead` for each. The count stops once it exceeds
  /// `most`. \param begun SendQueue::next() was begun and is not counted
  [[nodiscard]] uint64_t octets_waiting(uint64_t most, uint32_t overhead, bool begun) const;
  /// \return whether the messages that can be sent in a row fill so many octets, or there is no
  /// reason to wait for more \param pulled octets of SendQueue::next() that were pulled already
  [[nodiscard]] bool fills(uint32_t octets, uint32_t overhead, uint32_t pulled) const;

  // --- Responses ---

  /// Reads and atomics without a response yet.
  [[nodiscard]] uint32_t outstanding() const { return outbound_.outstanding(); }
  /// Checks a segment of a Read Response, as OutboundRequests::find() says, and finds the pieces of
  /// its Read where there are several.
  [[nodiscard]] Fault response_target(const wire::DdpTaggedHeader& header, uint32_t payload,
                                      ddp::TaggedTarget& out);
  /// The buffer of a message of queue 3.
  [[nodiscard]] base::ByteSpan response_buffer(uint32_t msn) {
    return outbound_.atomic_buffer(msn);
  }
  /// Delivers a segment of a Read Response. `finished` is set if it ends a Read, whose work is
  /// done.
  [[nodiscard]] Fault deliver_read_response(const wire::DdpTaggedHeader& header, uint32_t payload,
                                            bool& finished);
  /// Completes the oldest atomic.
  [[nodiscard]] Fault deliver_atomic_response(const UntaggedMessage& message);
  /// The work whose message the peer's Terminate quotes, if there is one, has failed at the peer.
  /// \return its id, even if it has completed already
  std::optional<uint64_t> terminated(const wire::Terminate& terminate, const FaultCode& fault);
  /// The connection is lost: the oldest work, if it was begun, may have reached the peer or not.
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
  const AccessSet sink_rights_;  // required of a Read's sink
  StreamMemory memory_;
  Counters& counters_;
  SendQueue& sends_;
  Completions& completions_;
  OutboundRequests outbound_;
  // Names the sinks of Reads that have several pieces, at the offsets of sink_of(). It is drawn for
  // this stream and is no STag of the table, so that only a Response to such a Read can use it.
  const uint32_t list_stag_;
  // The MSN of the next untagged message that we send, by queue (RFC 5041 s.4.3).
  std::array<uint32_t, wire::kRdmapReadRequestQn + 1> next_msn_{1, 1};
};

inline ddp::OutboundMessage Requester::direct_message(const SendSlot& slot, uint8_t version) const {
  const PostedSend& work = *slot.work;
  const WorkRow& row = *slot.row;
  const WireOpcode opcode = work.solicited ? row.solicited_message : row.message;
  return {.tagged = row.tagged,
          .version = version,
          .rsvd_ulp = wire::rdmap_control(opcode, version),
          .stag = work.remote_stag,
          .to = work.remote_offset,
          .qn = row.qn,
          .msn = next_msn_[row.qn],
          .length = slot.length()};
}

}  // namespace rnic::rdmap
