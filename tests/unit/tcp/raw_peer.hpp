/// \file
/// One stack against a peer made of hand-written segments: every header field is the test's own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>

#include "support/record_user.hpp"
#include "tcp/tcp.hpp"
#include "unit/tcp/peer_segment.hpp"
#include "wire/inet_checksum.hpp"
#include "wire/tcp.hpp"

namespace rnic::testing {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

inline constexpr uint32_t kIss = 5000;   ///< the stack's
inline constexpr uint32_t kIrs = 90000;  ///< the peer's
inline constexpr uint32_t kMss = 1460;

/// The stream's octets from `offset` on, as a RecordUser with this key sends them.
inline std::vector<uint8_t> octets_at(uint64_t offset, uint32_t length, uint64_t key) {
  std::vector<uint8_t> octets(length);
  for (uint32_t i = 0; i < length; ++i) octets[i] = octet_at(offset + i, key);
  return octets;
}

class CaptureEgress final : public tcp::Egress {
 public:
  bool begin(const IpAddress&, const IpAddress&, tcp::TxSlot& slot, base::Now) override {
    if (full) return false;
    slot = {.tcp = buffer_.data(), .room = mtu - 20, .checksum_open = true, .frame = nullptr};
    return true;
  }
  void send(tcp::TxSlot& slot, uint32_t length, base::Now) override {
    const auto view = wire::TcpView::parse({slot.tcp, length});
    RNIC_CHECK(view.has_value());
    Segment s;
    s.seq = view->sequence().value;
    s.ack = view->acknowledgment().value;
    s.flags = view->flags();
    s.window = view->window();
    s.payload = static_cast<uint32_t>(view->payload().size());
    s.octets.assign(view->payload().begin(), view->payload().end());
    s.source_port = view->source_port();
    s.dscp = slot.traffic_class >> 2;
    s.ecn = slot.traffic_class & 3;
    s.hop_limit = slot.hop_limit;
    RNIC_CHECK(s.parsed.parse(view->options()));
    sent.push_back(s);
  }
  void cancel(tcp::TxSlot&) override { ++cancelled; }
  void hand_over(base::Now) override { handed_over.push_back(sent.size()); }
  [[nodiscard]] uint32_t path_mtu(IpAddress, base::Now) const override { return mtu; }
  [[nodiscard]] uint32_t link_mtu(IpAddress) const override { return kLinkMtu; }
  void reduce_path_mtu(IpAddress, uint32_t to, base::Now) override { mtu = std::min(mtu, to); }
  void doubt_path(IpAddress end, base::Now) override { doubted.push_back(end); }
  [[nodiscard]] bool lands_here(const Endpoint& local, const Endpoint& remote) const override {
    return !home || home(local, remote);
  }

  /// The oldest segment that went out and was not looked at yet.
  Segment next() {
    if (sent.empty()) {
      ADD_FAILURE() << "nothing was sent";
      return {};
    }
    Segment s = sent.front();
    sent.pop_front();
    return s;
  }
  /// The next one, which as a whole is to be as `expected` says.
  Segment expect(const Expected& expected, Caller caller = {}) {
    Segment s = next();
    compare(s, expected, caller);
    return s;
  }

  static constexpr uint32_t kLinkMtu = 1500;
  uint32_t mtu = kLinkMtu;  // of the path
  bool full = false;        // the port takes nothing
  uint32_t cancelled = 0;   // slots given back
  std::deque<Segment> sent;
  std::vector<size_t> handed_over;  // segments in `sent` at each hand_over()
  std::vector<IpAddress> doubted;  ///< R1 was reached towards them
  /// \return whether segments between these two come here; empty: all do
  std::function<bool(const Endpoint& local, const Endpoint& remote)> home;

 private:
  std::array<uint8_t, 65536> buffer_{};
};

inline std::vector<uint8_t> option_mss(uint16_t mss) {
  return {2, 4, static_cast<uint8_t>(mss >> 8), static_cast<uint8_t>(mss)};
}
inline std::vector<uint8_t> option_sack_permitted() { return {1, 1, 4, 2}; }
inline std::vector<uint8_t> option_timestamps(uint32_t value, uint32_t echo) {
  std::vector<uint8_t> o{1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0};
  base::store_be32(&o[4], value);
  base::store_be32(&o[8], echo);
  return o;
}
inline std::vector<uint8_t> option_sack(std::vector<std::pair<uint32_t, uint32_t>> blocks) {
  std::vector<uint8_t> o{1, 1, 5, static_cast<uint8_t>(2 + 8 * blocks.size())};
  for (const auto& [left, right] : blocks) {
    o.resize(o.size() + 8);
    base::store_be32(&o[o.size() - 8], left);
    base::store_be32(&o[o.size() - 4], right);
  }
  return o;
}
inline std::vector<uint8_t> operator+(std::vector<uint8_t> a, const std::vector<uint8_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class RawPeer {
 public:
  static constexpr IpAddress kUs = IpAddress::v4(0x0a000001);
  static constexpr IpAddress kPeer = IpAddress::v4(0x0a000002);
  static constexpr uint16_t kOurPort = 4420;
  static constexpr uint16_t kPeerPort = 1000;

  explicit RawPeer(const tcp::Config& config = bare()) : stack(config, egress, {1, 2}, 3, now) {
    stack.force_isn(kIss);
    RNIC_CHECK(stack.listen({kUs, kOurPort}, acceptor).has_value());
  }
  /// No options: the numbers on the wire are as plain as can be.
  static tcp::Config bare() {
    tcp::Config c;
    c.sack = c.timestamps = c.window_scaling = false;
    return c;
  }

  void inject(const Segment& s) {
    std::vector<uint8_t> t(20 + s.options.size() +
                           (s.octets.empty() ? s.payload : s.octets.size()));
    wire::write_tcp(t.data(), {.source_port = s.source_port != 0 ? s.source_port : kPeerPort,
                               .destination_port = our_port,
                               .sequence = base::Seq32(s.seq),
                               .acknowledgment = base::Seq32(s.ack),
                               .flags = s.flags,
                               .window = s.window,
                               .header_length = static_cast<uint32_t>(20 + s.options.size())});
    std::copy(s.options.begin(), s.options.end(), t.begin() + 20);
    uint8_t* payload = t.data() + 20 + s.options.size();
    for (uint32_t i = 0; i < s.payload; ++i) payload[i] = octet_at(s.seq - (kIrs + 1) + i, 22);
    std::copy(s.octets.begin(), s.octets.end(), payload);
    stack.input({.source = s.source.is_unspecified() ? kPeer : s.source,
                 .destination = kUs,
                 .tcp = t,
                 .checksum_verified = true,
                 .ecn = s.ecn},
                now);
    if (!hold_output) stack.output(now);
  }
  void wait(base::Duration d) {
    const base::Now end = now + d;
    while (stack.next_deadline() <= end) {
      now = std::max(now, stack.next_deadline());
      stack.on_timers(now);
      stack.output(now);
      now += microseconds(1);
    }
    now = std::max(now, end);
    stack.on_timers(now);
    stack.output(now);
  }
  // As of the egress.
  Segment next() { return egress.next(); }
  Segment expect(const Expected& expected, Caller caller = {}) {
    return egress.expect(expected, caller);
  }
  [[nodiscard]] bool silent() const { return egress.sent.empty(); }

  /// Passive open of the stack; `options` on our SYN.
  void accept(const std::vector<uint8_t>& options = option_mss(1460),
              const std::vector<uint8_t>& ack_options = {}, uint16_t window = 65535) {
    acceptor.next.push_back(&user);
    inject({.seq = kIrs, .flags = flag::kSyn, .window = window, .options = options});
    expect({.flags = flag::kSyn | flag::kAck, .ack = kIrs + 1});
    inject({.seq = kIrs + 1,
            .ack = kIss + 1,
            .flags = flag::kAck,
            .window = window,
            .options = ack_options});
    EXPECT_TRUE(user.is_established);
  }
  /// Active open of the stack up to its SYN.
  Segment connect() {
    auto result = stack.connect({kUs, 0}, {kPeer, kPeerPort}, user, now);
    RNIC_CHECK(result.has_value());
    user.stream = *result;
    our_port = user.stream->local().port;
    stack.output(now);
    return next();
  }
  /// The user has one record more, and the stack sends what it may.
  void send_record(uint32_t octets) {
    user.queue(octets);
    stack.output(now);
  }
  void data(uint32_t offset, uint32_t length, uint8_t more_flags = 0) {
    inject({.seq = kIrs + 1 + offset,
            .ack = kIss + 1,
            .flags = static_cast<uint8_t>(flag::kAck | more_flags),
            .payload = length});
  }

  base::Now now = base::from_nanos(1'000'000'000);
  CaptureEgress egress;
  tcp::Stack stack;
  RecordUser user{11, 22};
  UserAcceptor acceptor;
  uint16_t our_port = kOurPort;
  bool hold_output = false;  ///< inject() does not let the stack answer
};

}  // namespace rnic::testing
