/// \file
/// Two FramedStreams on one connection between the stacks of a TcpLink, and what went by on the
/// link.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <string>

#include "base/prng.hpp"
#include "support/tcp_link.hpp"
#include "tuf/framed_stream.hpp"

namespace rnic::tuf {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Octets = std::vector<uint8_t>;

inline constexpr wire::TufKey kKeyA = 0x0123'4567'89ab;
inline constexpr wire::TufKey kKeyB = 0xfedc'ba98'7654;

/// A PDU of the given size (its own length field included) whose octets tell its number.
inline Octets pdu(uint32_t number, size_t size) {
  Octets octets(size);
  for (size_t i = 0; i < size; ++i)
    octets[i] = static_cast<uint8_t>(number * 131 + i * 7 + (i >> 8));
  base::store_be16(octets.data(), static_cast<uint16_t>(size - 2));
  return octets;
}

/// Remembers what a stream tells its owner.
struct Notices final : FramedStreamEvents {
  void emss_changed(uint32_t usable) override { emss.push_back(usable); }
  void middlebox_suspected() override { ++middleboxes; }
  std::vector<uint32_t> emss;
  int middleboxes = 0;
};

struct OneAcceptor final : llp::Acceptor {
  explicit OneAcceptor(FramedStream& user_in) : user(user_in) {}
  llp::StreamUser* accept(llp::Stream& stream, const Endpoint&, const Endpoint&,
                          base::Now) override {
    user.attach(stream);
    return &user;
  }
  FramedStream& user;
};

class FramedPair {
 public:
  static constexpr uint16_t kPort = 4420;

  explicit FramedPair(const StreamConfig& config = {}, const tcp::Config& tcp_a = {},
                      const tcp::Config& tcp_b = {})
      : link(tcp_a, tcp_b),
        a(config, counters_a, &notices_a),
        b(config, counters_b, &notices_b),
        acceptor(b) {
    RNIC_CHECK(link.b.listen({testing::kAddressB, kPort}, acceptor).has_value());
    link.seen = [this](const testing::LinkFrame& frame) {
      const uint32_t n = frame.payload();
      if (n == 0) return;
      auto& list = frame.from_a ? segments_a : segments_b;
      list.emplace_back(frame.tcp.end() - n, frame.tcp.end());
      if (frame.from_a) {
        const uint64_t at = frame.sequence() - first_sequence() - 1;
        if (image.size() < at + n) image.resize(at + n);
        std::copy(frame.tcp.end() - n, frame.tcp.end(), image.begin() + static_cast<long>(at));
      }
    };
    link.a.force_isn(kIsn);
  }

  void connect() {
    auto stream = link.a.connect({testing::kAddressA, 0}, {testing::kAddressB, kPort}, a, link.now);
    RNIC_CHECK(stream.has_value());
    a.attach(**stream);
  }
  void open() {
    connect();
    RNIC_CHECK(
        link.run_until([this] { return a.is_established() && b.is_established(); }, seconds(60)));
  }
  /// a sends in alignment mode, b expects it.
  void align() {
    RNIC_CHECK(a.set_send_mode(FramedSendMode::Align, kKeyA).has_value());
    RNIC_CHECK(b.set_receive_mode(FramedReceiveMode::Align, kKeyA).has_value());
  }
  void markers(uint16_t interval) {
    RNIC_CHECK(a.set_send_interval(interval).has_value());
    RNIC_CHECK(b.set_receive_interval(interval).has_value());
    RNIC_CHECK(a.set_send_mode(FramedSendMode::Markers).has_value());
    RNIC_CHECK(b.set_receive_mode(FramedReceiveMode::Markers).has_value());
  }
  /// a sends; it must be taken.
  void send(const Octets& octets) {
    ASSERT_EQ(a.send(octets), SendResult::Ok) << octets.size();
    sent.push_back(octets);
    a.serve();
  }
  /// Takes what b has.
  void collect() {
    Octets out(65536);
    for (;;) {
      const Received r = b.receive(out);
      if (r.kind != ReceiveKind::Pdu) break;
      got.emplace_back(out.begin(), out.begin() + r.length);
    }
    b.serve();
  }
  /// Runs until b has everything that was sent and all of it is acknowledged.
  bool deliver(base::Duration time = seconds(60)) {
    const bool done = link.run_until(
        [this] {
          collect();
          return got.size() >= sent.size() && a.unacknowledged() == 0;
        },
        time);
    return done && got == sent;
  }
  /// Sequence number of a's SYN.
  [[nodiscard]] static uint32_t first_sequence() { return kIsn; }

  static constexpr uint32_t kIsn = 1000;

  testing::TcpLink link;
  Counters counters_a, counters_b;
  Notices notices_a, notices_b;
  FramedStream a, b;
  OneAcceptor acceptor;
  std::vector<Octets> sent, got;
  std::vector<Octets> segments_a, segments_b;  ///< payloads in the order they left
  Octets image;                                ///< what a has sent, by stream offset
};

/// `segment` is one whole framing PDU of that key.
inline bool is_frame(const Octets& segment, wire::TufKey key) {
  if (segment.size() < 9) return false;
  uint64_t seen = 0;
  for (int i = 2; i < 8; ++i) seen = seen << 8 | segment[static_cast<size_t>(i)];
  return segment[0] * 256u + segment[1] == segment.size() - 8 && seen == key;
}

}  // namespace rnic::tuf
