// validate() of the small owners: what is right passes, and each kind of damage is found.

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "core_parts.hpp"
#include "support/damage.hpp"
#include "support/transitions.hpp"
#include "tcp/byte_stream.hpp"
#include "tcp/flow_table.hpp"
#include "tcp/listener_table.hpp"

namespace rnic::testing {
namespace {

using std::chrono::milliseconds;
using test::report_of;

constexpr Endpoint kHere{IpAddress::v4(0x0a000001), 80};

Endpoint peer(uint16_t port) { return {IpAddress::v4(0x0a000002), port}; }

/// `validate` dies while a field has this value, and only then. \param check see report_of()
template <typename Field, typename Validate>
void dies_with(Field& field, Field value, Validate&& validate, const char* check) {
  validate();
  const Field before = std::exchange(field, value);
  EXPECT_DEATH(validate(), report_of(check));
  field = before;
  validate();
}

TEST(Validate, ACongestionWindowHasASegmentAtLeastAndTheLimitAtMost) {
  tcp::CongestionWindow w{.smss = 1000, .cwnd = 5000, .ssthresh = 3000, .max_cwnd = 9000};
  const auto validate = [&] { w.validate(); };
  dies_with(w.smss, 0u, validate, "tcp/congestion_window.hpp: smss != 0");
  dies_with(w.cwnd, 999u, validate, "tcp/congestion_window.hpp: cwnd >= smss");
  dies_with(w.cwnd, 9001u, validate, "tcp/congestion_window.hpp: cwnd <= std::max(max_cwnd");
  dies_with(w.ssthresh, 0u, validate, "tcp/congestion_window.hpp: ssthresh != 0");
}

TEST(Validate, NewRenoCountsNoMoreThanAWindow) {
  tcp::CongestionWindow w{.smss = 1000, .cwnd = 5000, .ssthresh = 3000, .max_cwnd = 9000};
  tcp::NewReno reno;
  EXPECT_TRUE(reno.gather(w, 4000));
  const auto validate = [&] { reno.validate(w); };
  dies_with(w.max_cwnd, 3999u, validate, "tcp/newreno.hpp: acked_octets_ <=");
}

TEST(Validate, DctcpAndHyStartMeasureRoundsOfWhatWasSent) {
  tcp::Config config;
  tcp::AckSample s{.acked = 100, .snd_una = 100, .snd_nxt = 2000, .rtt = milliseconds(1)};
  tcp::Dctcp dctcp;
  dctcp.on_ack(s, true, 4);
  dctcp.validate(2000);
  EXPECT_DEATH(dctcp.validate(1999), report_of("tcp/dctcp.hpp: window_end_ <= snd_nxt"));
  tcp::HyStart hystart;
  hystart.on_ack(s, config);
  hystart.validate(config, 2000);
  EXPECT_DEATH(hystart.validate(config, 1999),
               report_of("tcp/hystart.cpp: window_end_ <= snd_nxt"));
}

TEST(Validate, ConservativeSlowStartEndsWithItsLastRound) {
  tcp::Config config;
  config.hystart_css_rounds = 5;
  tcp::HyStart hystart;
  tcp::AckSample s{.acked = 100, .snd_una = 0, .snd_nxt = 100, .rtt = milliseconds(10)};
  const auto round = [&] {
    for (int i = 0; i < 10; ++i) hystart.on_ack(s, config);
    s.snd_una = s.snd_nxt;
    s.snd_nxt += 100;
    hystart.on_ack(s, config);
  };
  round();
  s.rtt = milliseconds(100);
  for (int i = 0; i < 4 && !hystart.conservative(); ++i) round();
  round();
  ASSERT_TRUE(hystart.conservative());
  const auto validate = [&] { hystart.validate(config, UINT64_MAX); };
  dies_with(config.hystart_css_rounds, 1u, validate, "tcp/hystart.cpp: !conservative() ||");
}

TEST(Validate, TheTimerOfPacingRunsForAClosedGateAlone) {
  CoreParts c;
  tcp::Pacing pacing;
  pacing.hold(c.now + milliseconds(5));
  EXPECT_EQ(pacing.ask(c.core.timers_, c.now), tcp::Pacing::Gate::Closes);
  pacing.validate(c.core.timers_);
  EXPECT_DEATH(tcp::Pacing{}.validate(c.core.timers_),
               report_of("tcp/pacing.hpp: !timers.runs(Timer::Pacing) ||"));
  EXPECT_EQ(pacing.ask(c.core.timers_, c.now + milliseconds(5)), tcp::Pacing::Gate::Open);
  pacing.validate(c.core.timers_);
}

TEST(Validate, AReplyGoesToSomebody) {
  tcp::ReplyQueue replies;
  tcp::Reply& reply = *replies.push();
  reply.remote = peer(1);
  reply.flags = wire::tcp_flag::kRst;
  const auto validate = [&] { replies.validate(); };
  dies_with(reply.flags, uint8_t{0}, validate, "tcp/reply_queue.hpp: reply.flags != 0");
  dies_with(reply.remote, Endpoint{}, validate,
            "tcp/reply_queue.hpp: !reply.remote.address.is_unspecified()");
  dies_with(reply.options_length, uint8_t{3}, validate,
            "tcp/reply_queue.hpp: reply.options_length % 4 == 0");
  dies_with(reply.options_length, uint8_t{44}, validate,
            "tcp/reply_queue.hpp: reply.options_length <=");
}

TEST(Validate, AFlowIsInTheTableOnce) {
  std::array<Endpoint, 8> peers{};
  const auto flow_of = [&peers](uint32_t slot) {
    return tcp::FlowTable::Flow{kHere, peers[slot]};
  };
  tcp::FlowTable flows(8, {1, 2});
  const auto insert = [&](uint32_t slot, const Endpoint& remote) {
    peers[slot] = remote;
    flows.insert(slot, kHere, remote);
  };
  insert(3, peer(1));
  insert(4, peer(2));
  flows.validate(2, flow_of);
  EXPECT_DEATH(flows.validate(1, flow_of), report_of("tcp/flow_table.hpp: ++found <= slots"));
  EXPECT_DEATH(flows.validate(3, flow_of), report_of("tcp/flow_table.hpp: found == slots"));
  insert(5, peer(2));
  EXPECT_DEATH(flows.validate(3, flow_of), report_of("tcp/flow_table.hpp: find(flow.local"));
  flows.erase(5, kHere, peer(2));
  flows.validate(2, flow_of);
}

TEST(Validate, AListenerIsInTheChainOfItsPortAndAFreePlaceInNone) {
  struct Nobody : llp::Acceptor {
    llp::StreamUser* accept(llp::Stream&, const Endpoint&, const Endpoint&, base::Now) override {
      return nullptr;
    }
    [[nodiscard]] uint32_t first_room(const Endpoint&) const override { return 0; }
  } acceptor;
  tcp::ListenerTable table(4);
  const uint32_t first = table.insert(kHere, acceptor, {});
  const uint32_t second = table.insert({kHere.address, 81}, acceptor, {});
  const auto validate = [&] { table.validate(); };
  dies_with(table.at(first).local.port, uint16_t{82}, validate,
            "tcp/listener_table.hpp: bucket(listeners_[i].local.port) == b");
  dies_with(table.at(first).local.port, uint16_t{81}, validate,
            "tcp/listener_table.hpp: bucket(listeners_[i].local.port) == b");
  dies_with(table.at(second).next, second, validate,
            "tcp/listener_table.hpp: places < listeners_.size() && bucket(");
  table.erase(first);
  dies_with(table.at(first).next, second, validate,
            "tcp/listener_table.hpp: listeners_[i].local == Endpoint{}");
  dies_with(table.at(first).next, first, validate,
            "tcp/listener_table.hpp: places < listeners_.size() && listeners_[i].local");
}

TEST(Validate, ASetOfRangesHasAnOwnerAndACopyIsGivenBackOnce) {
  SharedParts parts;
  tcp::Shared& shared = parts.shared;
  shared.validate({});
  {
    tcp::PooledRanges ranges(shared.ranges);
    ranges.insert({10, 20});
    ranges.validate();
    shared.validate({.range_sets = 1});
    EXPECT_DEATH(shared.validate({}), report_of("tcp/shared.hpp: held.range_sets =="));
  }
  const std::vector<uint8_t> octets(5000, 7);
  const uint32_t copy = shared.saved.save(octets);
  EXPECT_EQ(shared.saved.blocks_of(copy), 3u);
  shared.validate({.saved_blocks = 3});
  EXPECT_DEATH(shared.validate({.saved_blocks = 2}),
               report_of("tcp/shared.hpp: held.saved_blocks =="));
  shared.saved.release(copy);
  shared.validate({});
  shared.saved.release(copy);
  EXPECT_DEATH(shared.validate({}), report_of("base/zero_array.hpp: back_count_ <= fresh_"));
}

TEST(Validate, TheRecordsOfAllQueuesAreThoseOfThePool) {
  SharedParts parts;
  tcp::Shared& shared = parts.shared;
  tcp::RecordQueue queue(shared.records);
  tcp::Record record;
  record.length = 10;
  for (int i = 0; i < 200; ++i) queue.push_back(record);
  queue.validate();
  EXPECT_TRUE(queue.is_wide());
  tcp::Holdings held{.records = 200, .chunks = queue.chunks(), .directories = 1};
  shared.validate(held);
  EXPECT_DEATH(shared.validate({.records = 199, .chunks = held.chunks, .directories = 1}),
               report_of("tcp/shared.hpp: held.records =="));
  EXPECT_DEATH(shared.validate({.records = 200, .chunks = held.chunks - 1, .directories = 1}),
               report_of("tcp/shared.hpp: held.chunks =="));
  EXPECT_DEATH(shared.validate({.records = 200, .chunks = held.chunks}),
               report_of("tcp/shared.hpp: held.directories =="));
  queue.clear();
  queue.validate();
  shared.validate({});
}

TEST(Validate, WhoIsInTheRoundHasALinkBothWays) {
  CoreParts c;
  tcp::ConnectionLink one(&c.connection);
  tcp::ConnectionLink two(&c.connection);
  c.round.join(one);
  c.round.join(two);
  EXPECT_EQ(c.round.validate(), 2u);
  c.shared.validate({.in_round = 2});
  EXPECT_DEATH(c.shared.validate({.in_round = 1}), report_of("tcp/shared.hpp: held.in_round =="));
  EXPECT_DEATH(c.shared.validate({.in_round = 2, .over = 1}),
               report_of("tcp/shared.hpp: held.over =="));
  dies_with(
      two.prev, &two, [&] { c.round.validate(); }, "tcp/connection_list.hpp: at->prev == before");
  tcp::Round::leave(one);
  tcp::Round::leave(two);
}

TEST(Validate, AConnectionThatIsOverWaitsForItsEnd) {
  CoreParts c;
  EXPECT_DEATH(c.core.validate(), report_of("tcp/connection_core.hpp: place_.linked() ||"))
      << "it is neither open nor ended";
  c.establish();
  c.core.validate();
  c.core.end();
  c.core.validate();
  c.core.leave_closed();
}

TEST(Validate, TheScoreboardKnowsWhatArrivedAndWhatDuplicatesStandFor) {
  tcp::RecordPool pool{256, 4, 128};
  tcp::RangePool ranges{4};
  tcp::Tcb tcb;
  tcp::Prediction prediction;
  tcp::Scoreboard board{tcb, pool, ranges, prediction};
  tcp::Record record;
  record.length = 1000;
  record.flags = tcp::record_flag::kSegmentStart;
  for (int i = 0; i < 4; ++i) {
    board.push(record);
    tcb.snd_nxt += 1000;
  }
  const auto validate = [&] { board.validate(); };
  board.reno_duplicate(true, 1000);
  dies_with(tcb.sack_ok, true, validate, "tcp/scoreboard.cpp: reno_sacked_ == 0");
  board.reno_acked(0, false, 1000);
  tcb.sack_ok = true;
  board.sack({2000, 3000}, [](const tcp::Record&, uint64_t) {});
  dies_with(tcb.snd_nxt, uint64_t{2500}, validate, "tcp/scoreboard.cpp: end <= tcb_.snd_nxt ||");
  // Until SND.UNA follows, what the ACK has told is ahead of it.
  board.pop_front();
  board.advance(1500);
  EXPECT_DEATH(board.validate(), report_of("tcp/scoreboard.cpp: front().offset <= tcb_.snd_una"));
  tcb.snd_una = 1500;
  board.validate();
}

TEST(CubicStages, EachPairIsLegalOrNot) {
  // None, Running, Paused
  expect_transitions(tcp::kCubicTransitions, {".x.", "x.x", "xx."}, "...");
}

TEST(CubicStages, WhateverHappensLeadsToALegalOneAndEachLegalOneIsReached) {
  tcp::CongestionWindow w{.smss = 1000, .cwnd = 10'000, .ssthresh = 5000};
  const tcp::AckSample s{
      .acked = 10'000, .snd_una = 10'000, .snd_nxt = 20'000, .srtt = milliseconds(1)};
  SeenTransitions seen(tcp::kCubicTransitions);
  const std::array<std::pair<const char*, std::function<void(tcp::Cubic&)>>, 4> events{{
      {"ack", [&](tcp::Cubic& c) { c.on_ack(w, s); }},
      {"pause", [&](tcp::Cubic& c) { c.pause(s.now); }},
      {"loss", [&](tcp::Cubic& c) { c.on_congestion(w, false, true); }},
      {"timeout", [&](tcp::Cubic& c) { c.on_timeout(); }},
  }};
  std::array<tcp::Cubic, 3> in;
  in[1].on_ack(w, s);
  in[2].on_ack(w, s);
  in[2].pause(s.now);
  for (const tcp::Cubic& from : in) {
    for (const auto& [name, event] : events) {
      tcp::Cubic cubic = from;
      event(cubic);
      cubic.validate();
      seen.note(from.stage(), cubic.stage(), name);
    }
  }
  seen.expect_all();
}

TEST(Validate, TheCursorsOfAByteStreamAreInOrderAndFitItsRings) {
  tcp::ByteStream user(1024);
  user.validate();
  EXPECT_EQ(user.write(std::vector<uint8_t>(300, 1)), 300u);
  user.validate();
  user.released({}, 1);
  EXPECT_DEATH(user.validate(), report_of("tcp/byte_stream.cpp: released <= pulled_"))
      << "nothing was pulled";
  user.released({}, 0);
  user.ordered(10, {});
  EXPECT_DEATH(user.validate(), report_of("tcp/byte_stream.cpp: ordered <= placed_end_"))
      << "nothing was placed";
  ASSERT_EQ(user.inspect({0, 10}, {}, {}), llp::InspectVerdict::Accept);
  user.place({0, 10}, std::vector<uint8_t>(10, 2), true, {});
  user.validate();
  user.place({2000, 2010}, std::vector<uint8_t>(10, 2), false, {});
  EXPECT_DEATH(user.validate(), report_of("tcp/byte_stream.cpp: placed_end_ - read <="));
}

}  // namespace
}  // namespace rnic::testing
