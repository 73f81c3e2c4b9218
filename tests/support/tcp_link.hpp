/// \file
/// Two TCP stacks joined by a scripted link in virtual time: each frame's fate is the test's
/// choice.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "tcp/tcp.hpp"
#include "wire/tcp.hpp"

namespace rnic::testing {

inline constexpr IpAddress kAddressA = IpAddress::v4(0x0a000001);
inline constexpr IpAddress kAddressB = IpAddress::v4(0x0a000002);

/// One direction's frame as the link sees it.
struct LinkFrame {
  bool from_a = false;
  uint64_t number = 0;  ///< in its direction, from 0 on
  std::vector<uint8_t> tcp;
  uint8_t ecn = 0;  ///< the two bits of the IP header; a hook may mark CE

  [[nodiscard]] uint32_t payload() const {
    return static_cast<uint32_t>(tcp.size()) - (tcp[wire::kTcpDataOffsetAt] >> 4) * 4u;
  }
  [[nodiscard]] bool has(uint8_t flag) const { return (tcp[wire::kTcpFlagsAt] & flag) != 0; }
  [[nodiscard]] uint32_t sequence() const { return base::load_be32(&tcp[wire::kTcpSequenceAt]); }
};

/// What becomes of a frame.
struct Fate {
  bool drop = false;
  bool mark_ce = false;  ///< congestion experienced, when the frame carries ECT (RFC 3168)
  uint32_t copies = 1;
  base::Duration extra{0};  ///< held back by this much
};

class TcpLink;

/// Egress of one stack into the link.
class LinkEgress final : public tcp::Egress {
 public:
  LinkEgress(TcpLink& link, bool is_a) : link_(link), is_a_(is_a), buffer_(kMostRoom * kSlot) {}
  bool begin(const IpAddress& source, const IpAddress& destination, tcp::TxSlot& slot,
             base::Now) override;
  void send(tcp::TxSlot& slot, uint32_t length, base::Now now) override;
  void cancel(tcp::TxSlot&) override { open_ = false; }
  bool begin_run(const IpAddress& source, const IpAddress& destination, uint32_t most,
                 tcp::TxRun& run, base::Now now) override;
  void send_run(tcp::TxRun& run, uint32_t complete, base::Now now) override;
  [[nodiscard]] uint32_t path_mtu(IpAddress, base::Now) const override { return mtu; }
  [[nodiscard]] uint32_t link_mtu(IpAddress) const override { return mtu; }
  void reduce_path_mtu(IpAddress, uint32_t to, base::Now) override { mtu = std::min(mtu, to); }

  uint32_t mtu = 1500;
  uint32_t refuse = 0;  ///< begin() says no this many times
  bool checksum_open = false;
  uint32_t room = 1;  ///< segments that begin_run() has room for, at most kMostRoom

  static constexpr uint32_t kMostRoom = 6;

 private:
  static constexpr size_t kSlot = 65536;

  TcpLink& link_;
  bool is_a_;
  bool open_ = false;
  std::vector<uint8_t> buffer_;
};

class TcpLink {
 public:
  explicit TcpLink(const tcp::Config& config_a = {}, const tcp::Config& config_b = {})
      : egress_a(*this, true),
        egress_b(*this, false),
        a(config_a, egress_a, {1, 2}, 7, now),
        b(config_b, egress_b, {3, 4}, 8, now) {}

  /// Lets the world run for `time`, or until nothing waits any more.
  void run(base::Duration time) {
    run_until([] { return false; }, time);
  }
  /// \return true when `done` came true within `time`.
  bool run_until(const std::function<bool()>& done, base::Duration time) {
    const base::Now end = now + time;
    for (;;) {
      step();
      if (done()) return true;
      base::Now next = base::earlier(a.next_deadline(), b.next_deadline());
      if (!in_flight_.empty()) next = base::earlier(next, in_flight_.begin()->first);
      if (next > end) {
        now = end;
        return done();
      }
      now = std::max(next, now + tick);
    }
  }
  /// Delivers what is due now, fires timers, lets both stacks send.
  void step() {
    while (!in_flight_.empty() && in_flight_.begin()->first <= now) {
      const LinkFrame frame = std::move(in_flight_.begin()->second);
      in_flight_.erase(in_flight_.begin());
      tcp::Stack& to = frame.from_a ? b : a;
      to.input({.source = frame.from_a ? kAddressA : kAddressB,
                .destination = frame.from_a ? kAddressB : kAddressA,
                .tcp = frame.tcp,
                .checksum_verified = (frame.from_a ? egress_a : egress_b).checksum_open,
                .ecn = frame.ecn},
               now);
    }
    a.on_timers(now);
    b.on_timers(now);
    a.output(now);
    b.output(now);
  }

  void carry(LinkFrame frame) {
    frame.number = frame.from_a ? frames_from_a++ : frames_from_b++;
    const Fate fate = hook ? hook(frame) : Fate{};
    if (fate.mark_ce && frame.ecn != 0) frame.ecn = 3;
    if (seen) seen(frame);
    if (fate.drop) {
      ++dropped;
      return;
    }
    for (uint32_t i = 0; i < fate.copies; ++i) {
      in_flight_.emplace(now + delay + fate.extra, frame);
    }
  }

  base::Now now = base::from_nanos(1'000'000'000);
  base::Duration delay = std::chrono::microseconds(500);  ///< one way
  base::Duration tick = std::chrono::microseconds(1);
  std::function<Fate(const LinkFrame&)> hook;
  std::function<void(const LinkFrame&)> seen;  ///< every frame that a stack sent
  uint64_t frames_from_a = 0;
  uint64_t frames_from_b = 0;
  uint64_t dropped = 0;
  LinkEgress egress_a;
  LinkEgress egress_b;
  tcp::Stack a;
  tcp::Stack b;

 private:
  std::multimap<base::Now, LinkFrame> in_flight_;
};

inline bool LinkEgress::begin(const IpAddress&, const IpAddress&, tcp::TxSlot& slot, base::Now) {
  if (refuse != 0) {
    --refuse;
    return false;
  }
  RNIC_CHECK(!open_);
  open_ = true;
  slot = {.tcp = buffer_.data(), .room = mtu - 20, .checksum_open = checksum_open, .frame = this};
  return true;
}

inline bool LinkEgress::begin_run(const IpAddress& source, const IpAddress& destination,
                                  uint32_t most, tcp::TxRun& run, base::Now now) {
  if (!begin(source, destination, run.common, now)) return false;
  run.count = std::min({most, room, kMostRoom});
  for (uint32_t i = 0; i < run.count; ++i) run.tcp[i] = buffer_.data() + i * kSlot;
  return true;
}

inline void LinkEgress::send_run(tcp::TxRun& run, uint32_t complete, base::Now now) {
  RNIC_CHECK(complete <= run.count && (open_ || run.count == 0));
  for (uint32_t i = 0; i < complete; ++i) {
    open_ = true;
    run.common.tcp = run.tcp[i];
    send(run.common, run.lengths[i], now);
  }
  open_ = false;
  run.count = 0;
}

inline void LinkEgress::send(tcp::TxSlot& slot, uint32_t length, base::Now) {
  RNIC_CHECK(open_ && length <= slot.room);
  open_ = false;
  link_.carry({.from_a = is_a_,
               .number = 0,
               .tcp = {slot.tcp, slot.tcp + length},
               .ecn = static_cast<uint8_t>(slot.traffic_class & 3)});
}

}  // namespace rnic::testing
