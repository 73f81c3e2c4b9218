/// \file
/// Decides when an ACK is owed, and which SACK blocks it carries (RFC 9293 s.3.8.6.3, RFC 5681
/// s.4.2, RFC 2018 s.4, RFC 2883).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/bytes.hpp"
#include "base/time.hpp"
#include "tcp/config.hpp"
#include "tcp/range_pool.hpp"
#include "tcp/tcb.hpp"
#include "tcp/timers.hpp"
#include "wire/tcp_options.hpp"

namespace rnic::tcp {

class AckPolicy {
 public:
  /// A received segment that carried text.
  struct Text {
    uint32_t size = 0;
    bool push = false;
    bool fresh = false;      ///< some of it had not been taken before
    bool advanced = false;   ///< RCV.NXT has moved
    bool had_holes = false;  ///< something had been taken beyond RCV.NXT before
    base::Range whole;       ///< its text inside the window
  };
  using SackBlocks = std::array<wire::SackBlock, 4>;

  /// All parameters outlive this. The timer is Timer::DelayedAck. \param committed ranges received
  /// beyond RCV.NXT
  AckPolicy(const Tcb& tcb, const PooledRanges& committed, Timers& timers, const Config& config)
      : tcb_(tcb), committed_(committed), timers_(timers), config_(config) {}

  /// An ACK is owed at the next output().
  [[nodiscard]] bool due() const { return due_ != Due::No; }
  /// The owed ACK must not ride on data: it has SACK blocks, or is one of several.
  [[nodiscard]] bool due_alone() const { return due() && alone_; }
  /// The owed ACK may wait for one turn: it is owed for pushed text only, and since the latest ACK
  /// rode on data, the user is likely to answer this text, too.
  [[nodiscard]] bool may_wait() const {
    if (due_ != Due::Pushed || !rode_) return false;
    return octets_ < 2 * rcv_mss_ && tcb_.rcv_nxt >= lossy_until_;
  }
  /// Octets received since the last ACK.
  [[nodiscard]] uint32_t unacknowledged() const { return octets_; }
  /// Payload of a full segment.
  [[nodiscard]] uint32_t rcv_mss() const { return rcv_mss_; }
  /// Last.ACK.sent (RFC 7323 s.4.3), as an offset.
  [[nodiscard]] uint64_t last_ack_sent() const { return last_ack_sent_; }

  /// An ACK of the first part of a burst is owed, beside the one that covers all of it.
  [[nodiscard]] bool owes_parts() const { return due() && parts_count_ != 0; }
  /// Removes the oldest part. owes_parts() must be true. \return its ACK number
  base::Seq32 take_part();
  /// The parts get no ACKs of their own.
  void forget_parts() { parts_count_ = 0; }

  void ask() { due_ = Due::Now; }
  void ask_alone() {
    due_ = Due::Now;
    alone_ = true;
  }
  /// The delayed-ACK timer has expired, or nothing has followed an ACK that may be lost.
  void delay_over() {
    timers_.clear(Timer::DelayedAck);
    due_ = Due::Now;
    if (octets_ == 0) ++said_again_;
  }
  /// The owed ACK waits for the next turn, and no longer.
  void put_off() { due_ = Due::Now; }
  /// Text arrived in order, with no hole before or behind it. \return an ACK is due now
  bool note_in_order(uint32_t size, bool push, base::Now now) {
    note_size(size, push);
    octets_ += size;
    if (octets_ >= 2 * rcv_mss_ || push) {  // RFC 9293 s.3.8.6.3: every second segment
      if (due_ == Due::No) due_ = Due::Pushed;  // or full: may_wait() tells them apart
      // A part ends before the segment with which octets_ reaches another power of two.
      const uint32_t before = octets_ - size;
      if (tcb_.rcv_nxt < parts_until_ && (octets_ ^ before) > before) [[unlikely]]
        note_part(size);
      return true;
    }
    if (!timers_.runs(Timer::DelayedAck)) {
      timers_.set(Timer::DelayedAck, now + config_.delayed_ack);
    }
    return false;
  }
  /// Text arrived ahead of the order that had not been taken before, so an ACK is due. \param begin
  /// its offset
  void note_beyond(uint32_t size, bool push, uint64_t begin);
  /// Text arrived, in order or not. \return an ACK is due now
  bool note_text(const Text& text, base::Now now);
  /// The whole segment was received before (RFC 2883 s.4.1). This alone asks for no ACK.
  void note_duplicate(int64_t begin, int64_t end);
  /// Part of a segment was received before (RFC 2883 s.4.2). \return an ACK is due now
  bool note_partial_duplicate(base::Range old);

  /// Writes the SACK blocks of an ACK that goes out alone. \return their number
  [[nodiscard]] uint32_t fill_sack(SackBlocks& blocks);
  /// A segment with the ACK field went out.
  void sent();
  /// An ACK without text went out. Further ones may be due.
  void sent_alone(base::Now now);
  void validate() const;

 private:
  enum class Due : uint8_t {
    No,
    Pushed,  ///< text in order was pushed, or there is enough of it; the ACK was not put off
    Now,
  };

  static constexpr uint32_t kLeastFull = 200;  // smaller segments fill no path
  static constexpr uint8_t kShortRun = 4;
  static constexpr uint8_t kMaxDsacks = 4;
  static constexpr uint8_t kMaxRecent = 16;
  static constexpr uint8_t kMaxDuplicates = 64;
  static constexpr uint8_t kMaxParts = 2;
  // Octets behind a hole in which the path counts as one that loses segments: with one loss in a
  // thousand, both ways, the next hole is not farther away.
  static constexpr uint64_t kLossy = 4u << 20;
  // Octets behind the second of two holes, with no more between them, in which it counts as one
  // that loses many: with one loss in a hundred, all holes but a few have another one so near.
  static constexpr uint64_t kNear = 384u << 10;
  // Longer than a burst lets wait for itself in a round trip of 20 us; twice as long the next time.
  static constexpr base::Duration kRepeatAfter = std::chrono::microseconds(40);
  // Behind them the peer's one probe (RFC 8985 s.7.3) comes, and then only its time-out.
  static constexpr uint8_t kRepeats = 2;
  // Fewer, for a peer that takes each ACK with a hole for a segment which has left the path.
  static constexpr uint8_t kHoleRepeats = 1;

  /// The next ACK covers more than the last one did.
  [[nodiscard]] bool moves() const { return last_ack_sent_ != tcb_.ack_offset(); }
  void note_size(uint32_t size, bool push) {
    if (size != rcv_mss_) [[unlikely]]
      note_other_size(size, push);
  }
  void note_other_size(uint32_t size, bool push);
  [[nodiscard]] bool holds(const base::Range& range, base::Seq32 seq) const {
    const int64_t offset = tcb_.rcv_offset(seq);
    return offset >= 0 && range.contains(static_cast<uint64_t>(offset));
  }
  /// An ACK that is said again says something to the peer if the first one was lost, and nothing
  /// otherwise: without SACK it could be taken for the sign of a loss (RFC 5681 s.2).
  [[nodiscard]] bool may_repeat() const {
    const uint8_t most = committed_.empty() ? kRepeats : kHoleRepeats;
    return tcb_.sack_ok && tcb_.rcv_nxt < lossy_until_ && said_again_ < most;
  }
  [[nodiscard]] uint32_t most_parts() const {
    return std::min<uint32_t>(config_.loss_acks, kMaxParts);
  }
  void note_hole();
  void note_part(uint32_t behind);
  void note_range(uint64_t offset);
  bool note_dsack(base::Range old);

  const Tcb& tcb_;
  const PooledRanges& committed_;
  Timers& timers_;
  const Config& config_;
  uint32_t octets_ = 0;
  uint32_t rcv_mss_ = 536;
  // Two facts, neither of which follows from the other: a D-SACK makes the next ACK go alone
  // without making one due.
  Due due_ = Due::No;
  bool alone_ = false;
  uint8_t short_count_ = 0;
  // Without SACK: ACKs owed to out-of-order segments, beside one that advances.
  uint8_t duplicates_ = 0;
  uint32_t short_size_ = 0;  // size of the last segments below rcv_mss_
  uint64_t last_ack_sent_ = 0;
  // Segments that arrive between two turns are answered together. While the path loses segments,
  // until RCV.NXT reaches lossy_until_, an answer to two segments or more is repeated twice, and
  // one that tells of a further hole once, if nothing follows it; while it loses many, until
  // parts_until_, ACKs of the first parts go before the answer: RCV.NXT just below 4 KB, 8 KB, 16
  // KB, ... of it, of which the latest are kept, oldest first.
  uint64_t lossy_until_ = 0;  // kLossy behind the latest hole; 0: there was none
  uint64_t parts_until_ = 0;
  std::array<base::Seq32, kMaxParts> parts_{};
  uint8_t parts_count_ = 0;
  uint8_t beyond_ = 0;  // with SACK: segments behind a hole since the last ACK, at most two
  uint8_t dsack_count_ = 0;
  uint8_t recent_count_ = 0;
  uint8_t fresh_ = 0;
  uint8_t said_again_ = 0;  // repeated ACKs of this RCV.NXT and hole, at most kRepeats
  bool rode_ = false;       // the latest ACK went out with text, or with a FIN or a probe
  std::array<wire::SackBlock, kMaxDsacks> dsacks_{};
  // Sequence numbers inside the most recently touched ranges, newest first. No SACK block has named
  // the first `fresh_` of them yet: a burst that touched more ranges than one ACK can name is
  // answered by several ACKs.
  std::array<base::Seq32, kMaxRecent> recent_{};
};

}  // namespace rnic::tcp
