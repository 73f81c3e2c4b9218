// A stream of the socket driver over a simulated system: its segments, its waits and its ends, what
// is counted of them, and what it costs.

#include "../../support/live_memory.hpp"
#include "on_kernel.hpp"

namespace rnic::socket {
namespace {

// --- sending ---

// What is left of a segment takes another record from 24 octets on; a shorter rest stays empty, for
// no FPDU is that short.
TEST_F(OnKernel, AShortRestOfASegmentTakesNoRecord) {
  connect(near_, far_);
  uint64_t all = 0;
  for (const uint32_t rest : {24u, 23u, 1u}) {
    const uint64_t before = left().counters().segments_out;
    near_.queue(near_.stream->emss() - rest);
    near_.queue(rest);
    all += near_.stream->emss();
    ASSERT_TRUE(run_until([&] { return far_.ordered_to == all; }));
    EXPECT_EQ(left().counters().segments_out - before, rest < 24 ? 2u : 1u) << rest;
  }
}

// A write of which the system takes a part only is counted with the writes, and as a wait.
TEST_F(OnKernel, PartialWritesAreCounted) {
  connect(near_, far_);
  SystemFaults faults;
  faults.partial = 1;
  kernels_[0]->set_faults(faults);
  for (int i = 0; i < 20; ++i) near_.queue(1000);
  ASSERT_TRUE(run_until([&] { return far_.ordered_to == 20'000; }));
  const Counters& counters = left().counters();
  EXPECT_GT(counters.partial_writes, 0u);
  EXPECT_LT(counters.partial_writes, counters.writes) << "the last one left no rest";
  EXPECT_EQ(counters.partial_writes, counters.send_waits);
}

// Where TCP says nothing of its segments the MTU of the path tells EMSS, less the headers of IPv4
// and TCP and the timestamps.
TEST_F(OnRefusing, TheMtuOfThePathTellsEmss) {
  refuse(0).path_mtu = 1400;
  connect(near_, far_);
  EXPECT_EQ(near_.established_emss, 1400u - 20 - 20 - 12);
  EXPECT_EQ(left().counters().emss_unknown, 1u);
}

// --- receiving ---

// Octets for which the user had no window come up when he has room again, without another one of
// the peer's.
TEST_F(OnKernel, AWindowThatOpensAgainIsUsed) {
  connect(near_, far_);
  far_.room = 0;
  near_.queue(1000);
  ASSERT_TRUE(run_until([&] { return right().counters().receive_waits == 1; }));
  turns(100);
  EXPECT_EQ(far_.ordered_to, 0u);
  far_.room = 1000;
  far_.stream->room_grew();
  EXPECT_TRUE(run_until([&] { return far_.ordered_to == 1000; }));
  EXPECT_EQ(right().counters().receive_waits, 1u);
}

// A system that gives less than it was asked for has no more, and is not asked again until it says
// so. Behind a FIN it is asked until it tells of the end.
TEST_F(OnRefusing, AShortReadIsTheLast) {
  Refusing& system = refuse(1);
  ASSERT_TRUE(right().listen({{}, kPort}, acceptor_).has_value());
  connect(near_, far_);
  for (uint32_t i = 1; i <= 3; ++i) {
    near_.queue(100);
    ASSERT_TRUE(run_until([&] { return far_.ordered_to == 100 * i; }));
    turns(20);
    EXPECT_EQ(system.reads, right().counters().reads) << "a read has given nothing";
  }
  near_.queue(100);
  near_.stream->close();
  EXPECT_TRUE(run_until([&] { return far_.peer_has_finished; }));
  EXPECT_EQ(far_.ordered_to, 400u);
}

// Room that was of no use is looked at once: the user is not asked again, nor the driver woken,
// until there is more.
TEST_F(OnKernel, RoomIsLookedAtOnce) {
  Waiting waiting{2, 1};
  connect(near_, waiting);
  near_.queue(1000);
  turns(1000);
  const uint32_t asked = waiting.asked;
  ASSERT_GT(asked, 0u);
  waiting.stream->room_grew();
  turns(1000);
  EXPECT_EQ(waiting.asked, asked + 1);
  EXPECT_EQ(right().next_deadline(), base::kNever);
  waiting.open = true;
  waiting.stream->room_grew();
  EXPECT_TRUE(run_until([&] { return waiting.ordered_to == 1000; }));
}

// A user that looks before he takes is told of the peer's end as any other is: behind the last
// octet, and without being asked for room for nothing.
TEST_F(OnKernel, WhoLooksFirstSeesTheEnd) {
  Waiting waiting{2, 1};
  connect(near_, waiting);
  uint64_t end_seen_at = UINT64_MAX;
  waiting.on_peer_finished = [&] { end_seen_at = waiting.ordered_to; };
  waiting.on_take = [](base::Range range) { EXPECT_FALSE(range.empty()); };
  waiting.open = true;
  near_.queue(1000);
  near_.stream->close();
  ASSERT_TRUE(run_until([&] { return waiting.peer_has_finished; }));
  EXPECT_EQ(end_seen_at, 1000u);
  EXPECT_FALSE(waiting.how_ended);
}

// --- the end ---

// The peer's FIN ends one direction: this side sends on for as long as it takes, also where it has
// to wait for the system's buffer, and the end is an orderly one.
TEST_F(OnKernel, BehindThePeersEndThisSideSendsOn) {
  connect(near_, far_);
  far_.stream->close();
  ASSERT_TRUE(run_until([&] { return near_.peer_has_finished; }));
  constexpr uint64_t kAll = 1u << 20;  // four times the system's buffer
  near_.queue(kAll);
  ASSERT_TRUE(run_until([&] { return far_.ordered_to == kAll || near_.how_ended; }));
  EXPECT_EQ(far_.ordered_to, kAll);
  EXPECT_GT(left().counters().send_waits, 0u);
  ASSERT_FALSE(near_.how_ended);
  near_.stream->close();
  ASSERT_TRUE(run_until([&] { return near_.how_ended && far_.how_ended; }));
  EXPECT_EQ(near_.how_ended, StreamEnd::Closed);
  EXPECT_EQ(far_.how_ended, StreamEnd::Closed);
  EXPECT_EQ(left().counters().closed, 1u);
}

// What has ended a stream first is what its user is told, although he gives it up meanwhile.
TEST_F(OnRefusing, TheFirstEndIsToldAndCounted) {
  refuse(0).connect_error = ECONNREFUSED;
  const auto stream = left().connect({}, there(), near_, now_);
  ASSERT_TRUE(stream);
  (*stream)->abort();
  (*stream)->abort();
  turn();
  EXPECT_EQ(near_.how_ended, StreamEnd::Refused);
  EXPECT_EQ(left().counters().refused, 1u);
  EXPECT_EQ(left().counters().aborted, 0u);
  EXPECT_TRUE(left().quiescent());
}

// A stream to whose peer no way is left is counted as such, and as nothing else.
TEST_F(OnRefusing, ALostWayIsCounted) {
  Refusing& system = refuse(0);
  connect(near_, far_);
  system.send_error = EHOSTUNREACH;
  near_.queue(100);
  ASSERT_TRUE(run_until([&] { return near_.how_ended.has_value(); }));
  EXPECT_EQ(near_.how_ended, StreamEnd::Unreachable);
  EXPECT_EQ(left().counters().unreachable, 1u);
  EXPECT_EQ(left().counters().resets_in + left().counters().errors, 0u);
}

// --- memory ---

// Beside the connections themselves a transport asks for as much as it tells, for each of them.
TEST_F(OnKernel, TheListsOfConnectionsAreAsLongAsTold) {
  constexpr uint32_t kMore = 1000;
  const auto told = [&](uint32_t connections) {
    config_.max_connections = connections;
    uint64_t sum = 0;
    for (const base::MemoryUse& use : Transport::memory_use(config_)) sum += use.octets;
    return static_cast<int64_t>(sum - base::Slab<Connection>::octets_for(connections));
  };
  const auto asked_for = [&](uint32_t connections) {
    config_.max_connections = connections;
    const int64_t before = test::live_octets();
    const auto transport = std::move(*Transport::open(config_, now_, *kernels_[0]));
    return test::live_octets() - before;
  };
  constexpr int64_t kRounding = 32;  // of malloc(), for each of the four lists
  const int64_t more = asked_for(2 * kMore) - asked_for(kMore);
  EXPECT_NEAR(more, told(2 * kMore) - told(kMore), 4 * kRounding);
}

}  // namespace
}  // namespace rnic::socket
