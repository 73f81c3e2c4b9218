/// \file
/// BurstOrder: where a path reorders, the text of a burst is taken in the order of its octets.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/seq32.hpp"
#include "device/counters.hpp"
#include "port/port.hpp"

namespace rnic::device {

/// Text that arrives ahead of its order costs TCP and the layers above it far more than the next
/// text does, and the peer's TCP more ACKs. What others have overtaken by a few places mostly lies
/// behind them in the same burst, or comes with the next one. So while a path reorders, the text of
/// a burst changes places until its sequence numbers rise, and what then stands behind a hole waits
/// for the next burst, one turn at most: that is as if it had come with that turn's frames.
///
/// Nothing of this is a promise. Frames change places before any of their checks, which each of
/// them passes afterwards as in any other order. Where no text arrives ahead of its order nothing
/// is looked at, and where segments are lost rather than overtaken nothing waits: an ACK of what is
/// behind a hole goes out at once then (RFC 5681 s.4.2).
class BurstOrder {
 public:
  static constexpr uint32_t kBurst = 32;      ///< frames of a burst that is taken as it comes,
  static constexpr uint32_t kMostFresh = 64;  ///< and of one that is arranged
  static constexpr uint32_t kMostHeld = 64;   ///< frames that wait for the next turn
  static constexpr uint32_t kMost = kMostFresh + kMostHeld;

  /// \param enabled false: all stays as it comes. \param counters outlive it
  BurstOrder(bool enabled, DeviceCounters& counters) : enabled_(enabled), counters_(counters) {}

  /// The bursts are to be arranged.
  [[nodiscard]] bool on() const { return left_ != 0; }
  /// Frames that are to be received at once.
  [[nodiscard]] uint32_t most_fresh() const { return most_fresh_; }
  /// Frames that wait. They are the first ones of the next burst.
  [[nodiscard]] uint32_t held() const { return held_; }

  /// A turn begins to receive: what waits now has waited for it.
  void begin_turn() { waited_ = held_; }
  /// Puts the frames of a burst into the order in which they are to be taken. on() must be true.
  /// \param burst those that wait first, kMost at most. \return how many are to be taken; the rest
  /// waits, held() of them
  [[nodiscard]] uint32_t arrange(std::span<port::Packet> burst);
  /// A burst was taken. \param ahead octets that have ever arrived ahead of their order
  void note_ahead(uint64_t ahead) {
    if (ahead == ahead_) return;
    ahead_ = ahead;
    if (enabled_ && !on()) begin_to_look();
  }
  void validate() const;

 private:
  // Bursts that are looked at behind the latest one of high disorder.
  static constexpr uint32_t kLooks = 16;
  // Where a look found less disorder, the next so many bursts with text ahead of its order are
  // taken as they come: segments are lost there, and to look at bursts would cost more than it
  // gives.
  static constexpr uint32_t kRest = 256;
  // Disorder, which each burst with an overtaken segment adds to and each other one takes from, by
  // one. It is high where segments are overtaken in more than one burst of four. One of a thousand
  // that is sent again comes in one burst of twenty, and is no reason to wait.
  static constexpr uint32_t kDisorder = 4;
  static constexpr uint32_t kHighDisorder = 8;
  static constexpr uint32_t kMostDisorder = 16;
  static constexpr uint32_t kLanes = 4;
  static constexpr uint8_t kNoLane = kLanes;
  static constexpr uint32_t kFlow4 = 12;  // octets of two IPv4 addresses and two ports
  static constexpr uint32_t kFlow6 = 36;  // and of IPv6

  /// A frame's TCP segment that has text, or ends or resets something.
  struct Segment {
    const uint8_t* flow = nullptr;  // addresses and ports, in the frame
    uint32_t flow_octets = 0;       // kFlow4 or kFlow6
    base::Seq32 begin;
    base::Seq32 end;
    uint32_t stamp = 0;  // TSval; 0 without timestamps
    bool plain = false;  // text that nothing but a timestamp goes with
  };
  struct Place {
    base::Seq32 begin;
    base::Seq32 end;
    base::Seq32 stamp;
    uint32_t index;  // in the burst as it came
  };
  /// What has come of one flow.
  struct Lane {
    [[nodiscard]] bool is_of(const Segment& segment) const {
      if (flow_octets != segment.flow_octets) return false;
      return flow_octets == kFlow4 ? std::memcmp(flow.data(), segment.flow, kFlow4) == 0
                                   : std::memcmp(flow.data(), segment.flow, kFlow6) == 0;
    }
    void begin(const Segment& segment);
    /// \return whether others that it belongs before have overtaken it
    bool add(const Segment& segment, uint32_t index);
    /// Decides what of the burst is taken. \param waited frames that have waited already; their
    /// lane waits for nothing more. \param room frames that may wait. \return how many do
    uint32_t settle(uint32_t waited, uint32_t room);

    std::array<uint8_t, kFlow6> flow;
    uint32_t flow_octets = 0;  // 0: the lane is nobody's
    bool knows_end = false;
    base::Seq32 end;  // of what was taken, if that is known

    // The latest burst, and in between what of it waits:
    uint32_t count = 0;  // its segments
    uint32_t taken = 0;  // the first of them
    bool plain = true;   // all of them are; otherwise each keeps its place
    std::array<Place, kMost> places;
  };

  void begin_to_look();
  [[nodiscard]] static bool read(const port::Packet& frame, Segment& segment);
  [[nodiscard]] uint8_t lane_of(const Segment& segment);
  /// \return the lane of the frame, or kNoLane: the frame keeps its place
  uint8_t enter(const port::Packet& frame, uint32_t index);
  void settle();
  void move(std::span<port::Packet> burst);
  void keep_held();

  bool enabled_;
  DeviceCounters& counters_;
  uint64_t ahead_ = 0;
  uint32_t left_ = 0;    // bursts that will be looked at
  uint32_t most_fresh_ = kBurst;
  uint32_t rest_ = 0;    // bursts with text ahead of its order that will not be
  uint32_t held_ = 0;    // Invariant: 0 unless on()
  uint32_t waited_ = 0;  // of these, came before this turn
  uint32_t disorder_ = 0;
  bool overtaken_ = false;  // a segment of this burst was
  uint8_t last_lane_ = 0;
  uint8_t next_lane_ = 0;  // modulo kLanes: the next flow's, unless the burst has some of its own
  std::array<Lane, kLanes> lanes_;
  std::array<uint8_t, kMost> lane_of_frame_;  // of the latest burst, and then of what waits
  std::array<port::Packet, kMost> came_;      // room for the burst as it came
};

}  // namespace rnic::device
