/// \file
/// MPA sessions on the MPA-aware TCP, joined by a scripted link; and segments taken from the wire,
/// changed, and put in.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "llp/pseudo_header.hpp"
#include "mpa/mpa.hpp"
#include "support/mpa_fakes.hpp"
#include "support/tcp_link.hpp"
#include "wire/inet_checksum.hpp"
#include "wire/tcp_options.hpp"

namespace rnic::testing {

using std::chrono::milliseconds;
using std::chrono::seconds;

inline constexpr uint16_t kPort = 4420;
inline constexpr uint32_t kTcpHeader = 20;
inline constexpr uint64_t kFullOperation = 20;  ///< stream offset: behind the start frame

/// An MPA session with a DDP endpoint that counts, on a TCP connection.
struct Speaker {
  Speaker(framing::Role role, const mpa::Config& config, uint64_t hold_octets = 1u << 20)
      : hold(framing::make_hold_store(hold_octets)),
        session(config, role, *hold, counters, events, {}) {
    user.session = &session;
    session.bind(user);
  }
  void send(uint32_t number, size_t length) {
    user.to_send.push_back(test::numbered_ulpdu(number, length));
    session.ready();
  }

  framing::HoldStorePtr hold;
  mpa::Counters counters;
  test::FakeStartEvents events;
  test::FakeFramingUser user;
  mpa::Session session;
};

struct ConnectionSetup {
  bool timestamps = true;
  bool markers = true;
  bool crc = true;
  uint64_t hold_octets = 1u << 20;
};

/// One connection; a is the initiator.
class MpaConnection : public llp::Acceptor {
 public:
  explicit MpaConnection(const ConnectionSetup& setup = {})
      : link(tcp_config(setup), tcp_config(setup)),
        a(framing::Role::Initiator, mpa_config(setup), setup.hold_octets),
        b(framing::Role::Responder, mpa_config(setup), setup.hold_octets) {}

  static tcp::Config tcp_config(const ConnectionSetup& setup) {
    tcp::Config config;
    config.timestamps = setup.timestamps;
    // As much as one connection needs: tests open hundreds.
    config.max_connections = config.max_time_wait = config.max_half_open = 8;
    config.max_half_open_per_listener = config.max_range_sets = 8;
    config.max_records = config.max_records_per_connection = 2048;
    config.max_saved_octets = 64u << 10;
    return config;
  }
  static mpa::Config mpa_config(const ConnectionSetup& setup) {
    mpa::Config config;
    config.markers_receive = setup.markers;
    config.crc = setup.crc;
    config.exchange_reads = false;
    return config;
  }
  llp::StreamUser* accept(llp::Stream& stream, const Endpoint&, const Endpoint&,
                          base::Now) override {
    b.session.attach(stream);
    return &b.session;
  }
  /// Until both are in full operation.
  void open() {
    ASSERT_TRUE(link.b.listen({kAddressB, kPort}, *this).has_value());
    auto stream = link.a.connect({kAddressA, 0}, {kAddressB, kPort}, a.session, link.now);
    ASSERT_TRUE(stream.has_value());
    stream_ = *stream;
    a.session.attach(*stream_);
    ASSERT_TRUE(link.run_until([&] { return !b.events.requests.empty(); }, seconds(5)));
    b.session.accept({}, link.now);
    ASSERT_TRUE(link.run_until([&] { return !a.events.starts.empty(); }, seconds(5)));
  }
  void queue(uint32_t count, size_t length) {
    for (uint32_t i = 0; i < count; ++i) a.send(queued_++, length);
  }
  /// Each ULPDU once, whole, in order.
  void expect_all_delivered(base::Duration time = seconds(120)) {
    EXPECT_TRUE(link.run_until([&] { return b.user.delivered.size() == queued_; }, time))
        << b.user.delivered.size() << " of " << queued_;
    for (uint32_t i = 0; i < b.user.delivered.size(); ++i) {
      EXPECT_EQ(base::load_be32(b.user.delivered[i].data()), i);
    }
    EXPECT_EQ(b.user.faults, 0);
    EXPECT_TRUE(b.user.errors.empty());
  }

  TcpLink link;
  Speaker a;
  Speaker b;
  llp::Stream* stream_ = nullptr;
  uint32_t queued_ = 0;
  std::vector<std::pair<llp::IcmpError, std::vector<uint8_t>>> pending_;
};

class MpaOverTcp : public ::testing::Test, public MpaConnection {
 protected:
  explicit MpaOverTcp(const ConnectionSetup& setup = {}) : MpaConnection(setup) {}
  void SetUp() override { open(); }
};

inline void fix_checksum(std::vector<uint8_t>& tcp) {
  base::store_be16(&tcp[wire::kTcpChecksumAt], 0);
  const uint32_t sum = llp::pseudo_header_sum(kAddressA, kAddressB, wire::kProtocolTcp,
                                              static_cast<uint32_t>(tcp.size()));
  base::store_be16(&tcp[wire::kTcpChecksumAt], wire::checksum_fold(wire::checksum_add(sum, tcp)));
}

/// The payload segments that carry the next ULPDUs of `to.a`; none of them arrives.
inline std::vector<std::vector<uint8_t>> caught(MpaConnection& to, uint32_t count,
                                                size_t length = 1000) {
  std::vector<std::vector<uint8_t>> frames;
  to.link.hook = [&](const LinkFrame& frame) {
    if (frame.from_a && frame.payload() != 0) frames.push_back(frame.tcp);
    return Fate{.drop = frame.from_a && frame.payload() != 0};
  };
  to.queue(count, length);
  to.link.run(milliseconds(1));
  to.link.hook = nullptr;
  EXPECT_GE(frames.size(), count);
  return frames;
}
/// A segment comes to b.
inline void put_in(MpaConnection& to, const std::vector<uint8_t>& tcp) {
  to.link.b.input({.source = kAddressA, .destination = kAddressB, .tcp = tcp}, to.link.now);
}

}  // namespace rnic::testing
