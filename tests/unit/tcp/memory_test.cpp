#include <malloc.h>

#include <cstdlib>
#include <memory>
#include <string_view>

#include "crowd.hpp"
#include "support/sanitized.hpp"
#include "tcp/byte_stream.hpp"
#include "tcp/connection.hpp"
#include "tcp/time_wait_table.hpp"

namespace rnic::testing {
namespace {

using test::kNotMeasured;
using test::kSanitized;

/// A user without buffers: what an idle connection costs is TCP's alone.
class IdleUser final : public llp::StreamUser, public llp::Acceptor {
 public:
  llp::StreamUser* accept(llp::Stream& stream, const Endpoint&, const Endpoint&,
                          base::Now) override {
    if (keep) accepted.push_back(&stream);
    return this;
  }
  void established(uint32_t, base::Now) override { ++opened; }
  llp::Pulled pull(uint32_t, uint64_t, llp::Frame&, base::Now) override { return {}; }
  bool rebuild(const llp::RecordTag&, uint64_t, uint32_t, llp::Frame&) override { return false; }
  void released(const llp::RecordTag&, uint64_t) override {}
  llp::InspectVerdict inspect(base::Range, base::ByteView, base::Now) override {
    return llp::InspectVerdict::Accept;
  }
  void place(base::Range, base::ByteView, bool, base::Now) override {}
  void ordered(uint64_t, base::Now) override {}
  void emss_changed(uint32_t) override {}
  [[nodiscard]] uint32_t receive_room() const override { return 65536; }
  void peer_finished(base::Now) override {}
  void ended(StreamEnd how, base::Now) override {
    ++ended_count;
    closed += how == StreamEnd::Closed ? 1 : 0;
  }

  std::vector<llp::Stream*> accepted;
  bool keep = true;
  uint32_t opened = 0;
  uint32_t ended_count = 0;
  uint32_t closed = 0;
};

/// Octets that malloc() has given and not got back, those of large tables included.
size_t octets_in_use() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

size_t octets_of_a_stack(const tcp::Config& config) {
  TcpLink link;
  const size_t before = octets_in_use();
  const tcp::Stack stack(config, link.egress_a, {1, 2}, 3, link.now);
  return octets_in_use() - before;
}

TEST(Memory, AnIdleConnectionTakesTwoKilobytesAtMost) {
  if (kSanitized) GTEST_SKIP() << kNotMeasured;
  tcp::Config config;
  config.max_connections = 10'000;
  const size_t small = octets_of_a_stack(config);
  config.max_connections = 110'000;
  const size_t large = octets_of_a_stack(config);
  const double each = static_cast<double>(large - small) / 100'000;
  RecordProperty("octets", std::to_string(each));
  EXPECT_LE(each, 2048.0);
  EXPECT_GE(each, static_cast<double>(sizeof(tcp::Connection)));
  // With all that a large stack shares (records, copies, sets of ranges), too.
  EXPECT_LE(static_cast<double>(large) / 110'000, 2048.0);
}

TEST(Memory, AnEntryOfTimeWaitTakes64OctetsAtMost) {
  for (const uint32_t capacity : {1u, 1000u, 16384u, 100'000u}) {
    const tcp::TimeWaitTable table(capacity, seconds(1), {1, 2});
    EXPECT_LE(table.octets(), size_t{64} * capacity) << capacity;
  }
}

// memory_use() tells of the listeners what their table takes.
TEST(Memory, WhatIsToldOfTheListenersIsWhatTheyTake) {
  if (kSanitized) GTEST_SKIP() << kNotMeasured;
  const auto told = [](const tcp::Config& config) {
    uint64_t octets = 0;
    for (const base::MemoryUse& use : tcp::Stack::memory_use(config)) {
      if (std::string_view(use.key) == "tcp.max_listeners") octets += use.octets;
    }
    return octets;
  };
  tcp::Config few;
  few.max_listeners = 10'000;
  tcp::Config many;
  many.max_listeners = 110'000;
  const size_t taken = octets_of_a_stack(many) - octets_of_a_stack(few);
  constexpr double kPages = 16 * 4096;  // what malloc() rounds up
  EXPECT_NEAR(static_cast<double>(told(many) - told(few)), static_cast<double>(taken), kPages);
}

// What memory_use() says of a larger limit is what a stack with that limit takes more.
TEST(Memory, WhatIsToldOfEachLimitIsWhatItTakes) {
  if (kSanitized) GTEST_SKIP() << kNotMeasured;
  const auto told = [](const tcp::Config& config) {
    uint64_t octets = 0;
    for (const base::MemoryUse& use : tcp::Stack::memory_use(config)) octets += use.octets;
    return octets;
  };
  tcp::Config usual;
  usual.max_connections = 50'000;
  const auto check = [&](const char* key, uint32_t tcp::Config::*limit, uint32_t value) {
    tcp::Config larger = usual;
    larger.*limit = value;
    ASSERT_GT(value, usual.*limit);
    const auto more = static_cast<double>(told(larger) - told(usual));
    const auto taken = static_cast<double>(octets_of_a_stack(larger) - octets_of_a_stack(usual));
    constexpr double kPages = 16 * 4096;  // what malloc() rounds up
    EXPECT_GT(taken, 8 * kPages) << key << ": too little to tell";
    EXPECT_NEAR(more, taken, kPages) << key;
  };
  check("limits.max_connections", &tcp::Config::max_connections, 150'000);
  check("tcp.max_records", &tcp::Config::max_records, 500'000);
  check("tcp.max_records_per_connection", &tcp::Config::max_records_per_connection, 65'536);
  check("tcp.max_range_sets", &tcp::Config::max_range_sets, 99'000);
  check("tcp.max_saved_octets", &tcp::Config::max_saved_octets, 64u << 20);
  check("tcp.max_listeners", &tcp::Config::max_listeners, 100'000);
  check("tcp.max_time_wait", &tcp::Config::max_time_wait, 65'536);
}

// What the limit of TIME-WAIT is said to cost is what the table takes: all of it where the capacity
// is a power of two, and never less than the table.
TEST(Memory, WhatTimeWaitAsksForIsNamed) {
  for (const uint32_t capacity : {1u, 1024u, 16384u}) {
    const tcp::TimeWaitTable table(capacity, seconds(1), {1, 2});
    EXPECT_EQ(tcp::TimeWaitTable::octets_for(capacity), table.octets()) << capacity;
  }
  for (const uint32_t capacity : {3u, 1000u, 1025u, 100'000u}) {
    const tcp::TimeWaitTable table(capacity, seconds(1), {1, 2});
    EXPECT_GE(tcp::TimeWaitTable::octets_for(capacity), table.octets()) << capacity;
    EXPECT_LE(tcp::TimeWaitTable::octets_for(capacity), uint64_t{64} * capacity) << capacity;
  }
}

TEST(Memory, ALargeStackStaysSmallForFewRecords) {
  if (kSanitized) GTEST_SKIP() << kNotMeasured;
  // Nothing of what connections share grows with max_records_per_connection alone.
  tcp::Config config;
  config.max_connections = 100'000;
  const size_t usual = octets_of_a_stack(config);
  config.max_records_per_connection = 65536;
  EXPECT_LE(octets_of_a_stack(config), usual * 5 / 4);
}

TEST(Memory, AHundredThousandConnectionsAreHeld) {
  constexpr uint32_t kConnections = 100'000;
  constexpr uint16_t kPorts = 10;
  tcp::Config config;
  config.max_connections = kConnections;
  config.max_half_open = kConnections;
  config.max_half_open_per_listener = kConnections;
  TcpLink link(config, config);
  IdleUser a;
  IdleUser b;
  b.keep = false;
  for (uint16_t i = 0; i < kPorts; ++i) {
    ASSERT_TRUE(link.b.listen({kAddressB, static_cast<uint16_t>(4000 + i)}, b).has_value());
  }
  std::vector<llp::Stream*> streams;
  streams.reserve(kConnections);
  for (uint32_t i = 0; i < kConnections; ++i) {
    const auto port = static_cast<uint16_t>(4000 + i % kPorts);
    auto stream = link.a.connect({kAddressA, 0}, {kAddressB, port}, a, link.now);
    ASSERT_TRUE(stream.has_value()) << i;
    streams.push_back(*stream);
    if (i % 1000 == 999) link.run(milliseconds(2));
  }
  ASSERT_TRUE(link.run_until([&] { return a.opened == kConnections && b.opened == kConnections; },
                             seconds(10)));
  EXPECT_EQ(link.a.live_connections(), kConnections);
  link.run(seconds(5));
  EXPECT_EQ(a.ended_count + b.ended_count, 0u);
  for (llp::Stream* stream : streams) stream->abort();
  link.run(seconds(2));
  EXPECT_EQ(a.ended_count, kConnections);
  EXPECT_TRUE(link.a.quiescent());
}

TEST(Memory, TenThousandConnectionsASecondComeAndGo) {
  // Three seconds of 10,000 connections each on one listening port: a 4-tuple is used again while
  // its last incarnation stands in TIME-WAIT, and everything is returned at the end.
  constexpr uint32_t kRounds = 300;
  constexpr uint32_t kEach = 100;  // in 10 ms
  TcpLink link;
  IdleUser a;
  IdleUser b;
  ASSERT_TRUE(link.b.listen({kAddressB, kPort}, b).has_value());
  for (uint32_t round = 0; round < kRounds; ++round) {
    const base::Now start = link.now;
    std::vector<llp::Stream*> streams;
    for (uint32_t i = 0; i < kEach; ++i) {
      auto stream = link.a.connect({kAddressA, 0}, {kAddressB, kPort}, a, link.now);
      ASSERT_TRUE(stream.has_value()) << round;
      streams.push_back(*stream);
    }
    const uint32_t all = (round + 1) * kEach;
    ASSERT_TRUE(link.run_until([&] { return a.opened == all && b.opened == all; }, seconds(1)));
    for (llp::Stream* stream : streams) stream->close();
    for (llp::Stream* stream : b.accepted) stream->close();
    b.accepted.clear();
    ASSERT_TRUE(link.run_until([&] { return a.closed == all && b.closed == all; }, seconds(1)));
    EXPECT_LE(link.now - start, milliseconds(10));
    link.now = start + milliseconds(10);
  }
  EXPECT_GT(link.a.counters().time_wait_reused, 0u);
  EXPECT_EQ(link.a.counters().connections_opened, kRounds * kEach);
  link.run(seconds(3));
  EXPECT_EQ(link.a.live_connections() + link.b.live_connections(), 0u);
  EXPECT_TRUE(link.a.quiescent() && link.b.quiescent());
}

TEST(Memory, SetsOfRangesAreTakenForHolesOnlyAndBounded) {
  tcp::Config config;
  config.max_range_sets = 1;
  Crowd c(8, 100, 1448, {}, config);
  int payloads = 0;
  c.link.hook = [&](const LinkFrame& f) {
    return Fate{.drop = f.from_a && f.payload() != 0 && ++payloads % 7 == 0};
  };
  ASSERT_TRUE(c.drain(seconds(600)));
  c.expect_clean_peers();
  EXPECT_GT(c.link.b.counters().range_sets_exhausted, 0u);
  EXPECT_EQ(c.link.b.counters().commit_full, 0u);
  for (const auto& u : c.users) u->stream->abort();
  c.link.run(seconds(1));
  EXPECT_TRUE(c.link.a.quiescent() && c.link.b.quiescent());
}

// A set of ranges goes from connection to connection: who takes one finds nothing in it of what
// its last holder had, whether that one gave it up at once or range by range.
TEST(Memory, ASetOfRangesIsEmptyForItsNextHolder) {
  tcp::RangePool pool(1);
  tcp::PooledRanges first(pool);
  tcp::PooledRanges second(pool);
  for (const bool at_once : {true, false}) {
    EXPECT_TRUE(first.insert({10, 20}));
    EXPECT_TRUE(first.insert({30, 40}));
    EXPECT_FALSE(second.insert({50, 60})) << "the only set is taken";
    if (at_once) {
      first.clear();
    } else {
      first.erase_below(40);
    }
    EXPECT_TRUE(first.empty());
    EXPECT_EQ(pool.in_use(), 0u);
    EXPECT_TRUE(second.insert({50, 60}));
    ASSERT_EQ(second.ranges().size(), 1u);
    EXPECT_EQ(second.ranges().front(), (base::Range{50, 60}));
    EXPECT_FALSE(second.contains({10, 20}));
    second.clear();
  }
}

}  // namespace
}  // namespace rnic::testing
