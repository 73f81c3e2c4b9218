/// \file
/// Layer `ddp`: Direct Data Placement over a framing protocol (RFC 5041).
///
/// A Stream stands between llp::Framing (mpa, tuf) and ddp::User (rdmap). Inbound it checks each
/// segment completely - header, version, queue, MSN, offsets, STag, rights, bounds - before the
/// first octet is placed, copies the payload to its final memory (the only copy on the path), and
/// delivers in stream order. Outbound it offers cut() and write() of segmenter.hpp; the order of
/// messages is the user's.
///
/// Invariants
/// - No octet is written without mem::StagTable::access(), once per piece and segment; where
///   segments follow each other in one run of memory, once for as long as no STag ends
///   (PlacementRun).
/// - A check that fails on a segment out of order has no effect but Hold.
/// - The first check that fails in order is remembered, and reported to the user when all segments
///   before the faulty one are delivered. Nothing is placed from then on.
/// - Nothing here allocates.
///
/// Not here: opcodes, Reads, Terminate, the meaning of a queue (rdmap); CRC and order (mpa).
#pragma once

#include <cstdint>
#include <memory>

#include "ddp/fault.hpp"
#include "ddp/placement.hpp"
#include "ddp/placement_run.hpp"
#include "ddp/segmenter.hpp"
#include "ddp/tagged.hpp"
#include "ddp/untagged.hpp"
#include "llp/framing.hpp"
#include "mem/stag_table.hpp"
#include "wire/ddp.hpp"

namespace rnic::ddp {

/// The configuration that a stream is made from.
struct StreamConfig {
  Identity who;
  uint32_t queues = 1;  ///< untagged queues of the layer above: 0 .. queues - 1 (RFC 5041 s.4.3)
  uint64_t secret = 0;  ///< unknown to the peer; see Coverage
};

/// The counters that the stream increments; the user owns them.
struct Tally {
  uint64_t& segments_placed;
  uint64_t& octets_placed;
  uint64_t& placements_postponed;
};

/// The layer above.
class User {
 public:
  virtual ~User() = default;

  // Sending: as llp::FramingUser.
  virtual llp::PulledUlpdu pull(uint32_t max, bool whole_only, llp::UlpduWriter& out,
                                base::Now now) = 0;
  virtual bool rebuild(const llp::RecordTag& tag, llp::UlpduWriter& out) = 0;
  virtual void released(const llp::RecordTag& tag) = 0;
  virtual void released_run(llp::RecordRun run) {
    for (uint32_t i = 0; i < run.size(); ++i) released(run[i].tag);
  }
  [[nodiscard]] virtual bool fills_segment(uint32_t octets, uint32_t overhead) const {
    static_cast<void>(octets);
    static_cast<void>(overhead);
    return true;
  }
  [[nodiscard]] virtual bool all_fits(uint32_t octets, uint32_t overhead) const {
    static_cast<void>(octets);
    static_cast<void>(overhead);
    return false;
  }

  /// DV of the stream.
  [[nodiscard]] virtual uint8_t version() const = 0;

  // Placement. These may be called in any order, and again for a segment that was held: they have
  // no side effects.
  /// Checks the upper fields of a tagged segment. \param out gets the rights that its access needs,
  /// and the memory that it goes to if its STag does not name it
  virtual Fault tagged_target(const wire::DdpTaggedHeader& header, uint32_t payload,
                              TaggedTarget& out) = 0;
  /// Checks the upper fields of an untagged segment whose MSN has a buffer. \param out gets the
  /// buffer
  virtual Fault untagged_target(const wire::DdpUntaggedHeader& header, UntaggedTarget& out) = 0;

  /// There is no buffer for the message of an untagged segment. The user may add `missing` buffers
  /// to the queue, the last of them for this message. \return whether it has
  virtual bool find_buffer(const wire::DdpUntaggedHeader& header, uint32_t missing, bool in_order) {
    static_cast<void>(header);
    static_cast<void>(missing);
    static_cast<void>(in_order);
    return false;
  }

  /// The message of an untagged segment in order is the first of its queue without a buffer, and
  /// none was found. \return whether the message may wait for one; the call is then repeated for
  /// its segment
  virtual bool waits_for_buffer(const wire::DdpUntaggedHeader& header, base::Now now) {
    static_cast<void>(header);
    static_cast<void>(now);
    return false;
  }
  // As llp::FramingUser.
  [[nodiscard]] virtual bool ever_waits() const { return false; }
  [[nodiscard]] virtual bool may_wait(uint32_t segments) const {
    static_cast<void>(segments);
    return false;
  }
  /// \return an untagged segment with that header may have to wait for the buffer of its message
  [[nodiscard]] virtual bool may_wait(const wire::DdpUntaggedHeader& header) const {
    static_cast<void>(header);
    return false;
  }

  // Delivery, in stream order. A fault returned here comes back through fault().
  /// Not called for each segment without L where TaggedTarget::quiet or coverage was set, nor for
  /// each with L where TaggedTarget::messages was.
  virtual Fault deliver_tagged(const wire::DdpTaggedHeader& header, uint32_t payload) = 0;
  /// A whole message is delivered: `header` is that of its last segment, `length` is the length of
  /// the message (DDP-5.4-02), and each octet of it has come. `uniform`: all its segments had the
  /// RsvdULP of this header.
  virtual Fault deliver_untagged(const wire::DdpUntaggedHeader& header, uint64_t length,
                                 bool uniform, const SegmentReport& segment, base::Now now) = 0;

  /// Reports the first check that failed, at the delivery point. Called once per stream.
  virtual void fault(const Fault& fault, const SegmentReport& segment, base::Now now) = 0;

  virtual void may_send() = 0;
  virtual void peer_silent() {}
  virtual void framing_error(llp::FramingError error, base::Now now) = 0;
  virtual void peer_finished(bool clean, base::Now now) = 0;
  virtual void ended(StreamEnd how, base::Now now) = 0;
};

class Stream final : public llp::FramingUser {
 public:
  Stream(const StreamConfig& config, const mem::StagTable& memory, User& user, Tally tally)
      : config_(config),
        memory_(memory),
        user_(user),
        tally_(tally),
        queues_(std::make_unique<UntaggedQueue[]>(config.queues)) {}

  /// Adds that many buffers to an untagged queue. \param qn below StreamConfig::queues
  void provide(uint32_t qn, uint32_t buffers) { queues_[qn].provide(buffers); }
  /// Gives the first message of an untagged queue the number `msn` instead of 1. Called before any
  /// segment.
  void start_at(uint32_t qn, uint32_t msn) { queues_[qn].start_at(msn); }
  /// From here on nothing is placed or delivered (DDP-3-08).
  void stop() {
    stopped_ = true;
    run_.end();
  }
  /// \return the octets of the quiet segments (TaggedTarget) that were delivered since the last
  /// call, and of which User::deliver_tagged() was not told
  [[nodiscard]] uint64_t take_quiet_octets() { return run_.take_quiet(); }
  /// The peer has closed its direction, whatever our own is.
  [[nodiscard]] bool peer_has_finished() const { return finished_; }

  // llp::FramingUser
  llp::PulledUlpdu pull_ulpdu(uint32_t max, bool whole_only, llp::UlpduWriter& out,
                              base::Now now) override {
    return user_.pull(max, whole_only, out, now);
  }
  bool rebuild_ulpdu(const llp::RecordTag& tag, llp::UlpduWriter& out) override {
    return user_.rebuild(tag, out);
  }
  void released_ulpdu(const llp::RecordTag& tag) override { user_.released(tag); }
  void released_ulpdus(llp::RecordRun run) override { user_.released_run(run); }
  [[nodiscard]] bool fills_segment(uint32_t octets, uint32_t overhead) const override {
    return user_.fills_segment(octets, overhead);
  }
  [[nodiscard]] bool all_fits(uint32_t octets, uint32_t overhead) const override {
    return user_.all_fits(octets, overhead);
  }
  llp::PlaceVerdict place_ulpdu(const llp::UlpduView& ulpdu, bool in_order, base::Now now) override;
  [[nodiscard]] bool ever_waits() const override { return user_.ever_waits(); }
  [[nodiscard]] bool may_wait(uint32_t ulpdus) const override {
    return !stopped_ && user_.may_wait(ulpdus);
  }
  [[nodiscard]] bool may_wait(const llp::UlpduView& ulpdu) const override;
  void deliver_ulpdu(base::ByteView header, uint32_t ulpdu_length, base::Now now) override;
  llp::PlaceVerdict take_ulpdu(const llp::UlpduView& ulpdu, bool more, base::Now now) override;
  /// The version of the stream may be known only now.
  void may_send() override {
    run_.end();
    user_.may_send();
  }
  void peer_silent() override { user_.peer_silent(); }
  // DDP-3-02: nothing has to be done, since each cut uses the MULPDU of its own time.
  void mulpdu_changed(uint32_t) override {}
  void framing_error(llp::FramingError error, base::Now now) override {
    user_.framing_error(error, now);
  }
  void peer_finished(bool clean, base::Now now) override {
    finished_ = true;
    run_.end();
    user_.peer_finished(clean, now);
  }
  void ended(StreamEnd how, base::Now now) override { user_.ended(how, now); }

 private:
  Fault place_tagged(const llp::UlpduView& ulpdu, base::ByteView prefix,
                     const wire::DdpTaggedHeader& header, bool& quiet);
  void place_tagged_rest(const llp::UlpduView& ulpdu, const wire::DdpTaggedHeader& header,
                         const TaggedTarget& buffer, Pieces& target);
  Fault place_untagged(const llp::UlpduView& ulpdu, base::ByteView prefix,
                       const wire::DdpUntaggedHeader& header);
  void note_run(base::ByteView prefix, const wire::DdpUntaggedHeader& header,
                std::span<const Sge> buffer);
  Fault check_and_place(const llp::UlpduView& ulpdu, base::ByteView prefix);
  [[nodiscard]] bool find_buffer(const Fault& fault, base::ByteView prefix, bool in_order);
  [[nodiscard]] bool waits(const Fault& fault, base::ByteView prefix, base::Now now);
  /// Nothing keeps segments from being placed.
  [[nodiscard]] bool is_open() const { return !stopped_ && !finished_ && !fault_.failed(); }
  llp::PlaceVerdict place_any(const llp::UlpduView& ulpdu, bool in_order, base::Now now);
  bool place_run(const llp::UlpduView& ulpdu);
  bool place_untagged_run(const llp::UlpduView& ulpdu);
  llp::PlaceVerdict take_tagged(const llp::UlpduView& ulpdu, bool more, base::Now now);
  llp::PlaceVerdict end_tagged(const llp::UlpduView& ulpdu, bool quiet, bool more, base::Now now);
  llp::PlaceVerdict take_untagged(const llp::UlpduView& ulpdu, bool more, base::Now now);
  llp::PlaceVerdict end_untagged(const llp::UlpduView& ulpdu, bool more, base::Now now);
  llp::PlaceVerdict take_in_steps(const llp::UlpduView& ulpdu, bool more, base::Now now);
  Fault deliver(base::ByteView prefix, uint32_t length, base::Now now);
  Fault deliver_tagged(const wire::DdpTaggedHeader& header, uint32_t length);
  Fault deliver_untagged(base::ByteView prefix, const wire::DdpUntaggedHeader& header,
                         uint32_t length, base::Now now);
  void fail(const Fault& fault, base::ByteView header, uint32_t ulpdu_length, base::Now now);
  void put(const llp::UlpduView& ulpdu, uint32_t skip, std::span<const base::ByteSpan> target);
  void put_run(const llp::UlpduView& ulpdu, uint32_t skip, uint8_t* to);
  template <typename Find>
  void put_rest(const llp::UlpduView& ulpdu, uint32_t skip, Pieces& target, const Find& find);

  StreamConfig config_;
  const mem::StagTable& memory_;
  User& user_;
  Tally tally_;
  std::unique_ptr<UntaggedQueue[]> queues_;
  // Invariants: an untagged run is of the message that its queue delivers next; there is none while
  // is_open() is false.
  PlacementRun run_;
  bool stopped_ = false;
  bool finished_ = false;
  Fault fault_;  // the first in-order failure, reported at the delivery of faulty_
  SegmentReport faulty_;
};

}  // namespace rnic::ddp
