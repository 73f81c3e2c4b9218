// Planned faults as an application has them: by its configuration and by commit(), over the wire
// and over sockets.

#include <algorithm>
#include <chrono>
#include <string>

#include "verbs_pair.hpp"

namespace rnic::test {
namespace {

using std::chrono::milliseconds;

/// Writes of `kOctets` octets each from the left to the right.
struct Pair {
  static constexpr uint32_t kOctets = 6000;

  explicit Pair(const Config& config)
      : world(config),
        a(world.left),
        b(world.right),
        source(a.pd, octets(kOctets, 1), kEverything),
        target(b.pd, octets(kOctets, 2), kEverything) {
    world.connect(a, b);
  }
  Completion write(uint64_t id) {
    must(a.qp.post_write(id, {source.all()}, {target.region.stag(), target.region.address()}));
    return completion();
  }
  Completion read(uint64_t id) {
    must(a.qp.post_read(id, {source.all()}, {target.region.stag(), target.region.address()}));
    return completion();
  }
  Completion completion() {
    std::array<Completion, 1> out;
    EXPECT_TRUE(world.context.wait_until([&] { return a.send_cq.poll(out) == 1; }, kPatience));
    return out[0];
  }

  World world;
  Side a;
  Side b;
  Memory source;
  Memory target;
};

TEST(PlannedFaults, AnFpduOfTheWireIsLostAndComesAgain) {
  Config config = loopback_config();
  config.set("device.rnic0.fault=[\"drop fpdu 3 of message 2\"]");
  Pair pair(config);
  for (uint64_t id = 1; id <= 3; ++id) EXPECT_EQ(pair.write(id).status, CompletionStatus::Success);
  EXPECT_EQ(pair.target.data, pair.source.data);
  EXPECT_EQ(must(pair.world.left.counter("faults", "fpdus_dropped")), 1u);
  EXPECT_EQ(must(pair.world.left.counter("faults", "frames_dropped")), 1u);
  EXPECT_GE(must(pair.world.left.counter("tcp", "retransmitted_segments")), 1u);
  EXPECT_FALSE(pair.world.right.counter("faults", "fpdus_dropped").has_value());
}

TEST(PlannedFaults, AWrongCrcEndsTheConnection) {
  Config config = loopback_config();
  config.set("device.rnic1.fault=[\"bad crc on read response 2\"]").set("mpa.silent_drop=false");
  Pair pair(config);
  EXPECT_EQ(pair.read(1).status, CompletionStatus::Success);
  const Completion second = pair.read(2);
  EXPECT_EQ(second.status, CompletionStatus::Flushed);
  EXPECT_EQ(second.cause, CompletionCause::PeerFault);
  EXPECT_NE(describe(second).find("CRC mismatch"), std::string::npos) << describe(second);
  const auto told = pair.world.await<event::TerminateReceived>(pair.world.right);
  ASSERT_TRUE(told);
  EXPECT_EQ(code_of(told->fault), (FaultCode{FaultLayer::Llp, 0, 2}));
}

struct FaultMode {
  const char* name;
  bool sockets;
  bool threaded;
};

class PlannedFaultsEverywhere : public testing::TestWithParam<FaultMode> {
 protected:
  [[nodiscard]] static Config config() {
    return GetParam().sockets ? socket_config(GetParam().threaded)
                              : loopback_config(GetParam().threaded);
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, PlannedFaultsEverywhere,
                         testing::Values(FaultMode{"WireInline", false, false},
                                         FaultMode{"WireThreaded", false, true},
                                         FaultMode{"SocketsInline", true, false},
                                         FaultMode{"SocketsThreaded", true, true}),
                         [](const auto& mode) { return mode.param.name; });

TEST_P(PlannedFaultsEverywhere, ATerminateInThePlaceOfAMessage) {
  Pair pair(config().set("device.rnic0.fault=[\"terminate at message 3\"]"));
  EXPECT_EQ(pair.write(1).status, CompletionStatus::Success);
  EXPECT_EQ(pair.write(2).status, CompletionStatus::Success);
  const Completion third = pair.write(3);
  EXPECT_EQ(third.status, CompletionStatus::Flushed);
  EXPECT_EQ(third.cause, CompletionCause::LocalError);
  const auto told = pair.world.await<event::TerminateReceived>(pair.world.right);
  ASSERT_TRUE(told);
  EXPECT_EQ(code_of(told->fault), (FaultCode{FaultLayer::Rdmap, 0, 0}));
  EXPECT_EQ(must(pair.world.left.counter("rdmap", "terminates_planned")), 1u);
}

TEST_P(PlannedFaultsEverywhere, ACommittedTerminate) {
  Pair pair(config());
  EXPECT_EQ(pair.write(1).status, CompletionStatus::Success);
  must(pair.b.qp.commit("terminate now"));
  EXPECT_TRUE(pair.world.await<event::TerminateReceived>(pair.world.left));
  EXPECT_EQ(pair.b.qp.commit("terminate now").error().code, ErrorCode::WrongState);
}

// The wait is the responder's: nothing here sleeps for a time of its own.
TEST_P(PlannedFaultsEverywhere, AStalledResponder) {
  Pair pair(config().set("device.rnic1.fault=[\"stall the responder 60ms at request 2\"]"));
  for (uint64_t id = 1; id <= 3; ++id) {
    const auto begin = pair.world.context.now();
    EXPECT_EQ(pair.read(id).status, CompletionStatus::Success);
    const auto least = id == 2 ? milliseconds(60) : milliseconds(0);
    EXPECT_GE(pair.world.context.now() - begin, least);
  }
  EXPECT_EQ(pair.source.data, pair.target.data);
  EXPECT_EQ(must(pair.world.right.counter("rdmap", "responses_stalled")), 1u);
}

}  // namespace
}  // namespace rnic::test
