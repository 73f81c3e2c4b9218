// What memory is for: each use of it asks for the domain and for the right, through the public API.

#include "verbs_pair.hpp"

namespace rnic::test {
namespace {

struct RightsMode {
  const char* name;
  bool sockets;
  bool threaded;
};

class RightsTest : public ::testing::TestWithParam<RightsMode> {
 protected:
  static constexpr uint32_t kSize = 64;
  static constexpr uint8_t kUntouched = 0x5a;

  static Config config() {
    return GetParam().sockets ? socket_config(GetParam().threaded)
                              : loopback_config(GetParam().threaded);
  }
  static std::vector<uint8_t> untouched() { return std::vector<uint8_t>(kSize, kUntouched); }

  /// The status of the request with that id; those before it are passed over.
  CompletionStatus status_of(CompletionQueue& queue, uint64_t id) {
    while (const auto done = world_.await(queue)) {
      if (done->id == id) return done->status;
    }
    throw std::runtime_error("no completion came");
  }
  /// The last octets of a stream, whose answer comes behind what was done with all before them.
  static void post_probe(Side& a, const Memory& near, const Memory& far) {
    SendRequest probe = request(Opcode::Read, near.region.sge(0, 0), far, kProbe);
    must(a.qp.post_send(probe));
  }
  /// Does `work` do what it is to at memory of `b` with those rights?
  bool is_allowed(Opcode opcode, AccessSet rights) {
    Side a(world_.left);
    Side b(world_.right);
    world_.connect(a, b);
    Memory near(a.pd, std::vector<uint8_t>(is_atomic(opcode) ? 8 : kSize, 1), Access::LocalWrite);
    Memory far(b.pd, untouched(), rights);
    SendRequest work = request(opcode, near.all(), far);
    work.atomic.data = 1;
    must(a.qp.post_send(work));
    post_probe(a, near, far);
    const bool allowed = status_of(a.send_cq, kProbe) == CompletionStatus::Success;
    if (!allowed) expect_terminate(b, FaultLayer::Rdmap, 0x02);
    const bool changed = far.data != untouched() || near.data[0] != 1;
    EXPECT_EQ(changed, allowed) << to_string(opcode);
    return allowed;
  }
  /// The peer was told of an error of access to its memory, by that code.
  void expect_terminate(Side& b, FaultLayer layer, uint8_t code) {
    const auto told = world_.await<event::TerminateSent>(world_.right, b.qp.number());
    ASSERT_TRUE(told);
    EXPECT_EQ(told->fault.layer, layer);
    EXPECT_EQ(told->fault.type, 1);
    EXPECT_EQ(told->fault.code, code);
    EXPECT_EQ(told->error, QueuePairError::Access);
  }

  static constexpr uint64_t kProbe = 99;

  World world_{config()};
};
INSTANTIATE_TEST_SUITE_P(Setups, RightsTest,
                         ::testing::Values(RightsMode{"Wire", false, false},
                                           RightsMode{"ThreadedWire", false, true},
                                           RightsMode{"Sockets", true, false},
                                           RightsMode{"ThreadedSockets", true, true}),
                         [](const auto& told) { return std::string(told.param.name); });

// Each right alone allows one operation of the peer and no other.
// RDMAP-8.1-01: RFC 5040 s.8.1.1(5)
TEST_P(RightsTest, EachRightOfThePeerAllowsOneOperation_VERBS_02_SEC_6_3_5_01) {
  const std::pair<Opcode, Access> needed[] = {{Opcode::Write, Access::RemoteWrite},
                                              {Opcode::Read, Access::RemoteRead},
                                              {Opcode::FetchAdd, Access::RemoteAtomic},
                                              {Opcode::CompareSwap, Access::RemoteAtomic}};
  for (const auto& [opcode, right] : needed) {
    for (const Access given : {Access::LocalWrite, Access::RemoteWrite, Access::RemoteRead,
                               Access::RemoteAtomic}) {
      SCOPED_TRACE(std::string(to_string(opcode)) + " with " +
                   std::to_string(AccessSet(given).bits()));
      EXPECT_EQ(is_allowed(opcode, given), given == right);
    }
  }
}

// What this side itself writes to asks for the right to do so.
TEST_P(RightsTest, WhatIsReceivedNeedsLocalWrite_VERBS_02) {
  Side a(world_.left);
  Side b(world_.right);
  world_.connect(a, b);
  Memory far(b.pd, octets(kSize, 1), Access::RemoteRead | Access::RemoteWrite);
  Memory closed(a.pd, untouched(), Access::RemoteWrite);
  must(a.qp.post_send(request(Opcode::Read, closed.all(), far, 1)));
  EXPECT_EQ(status_of(a.send_cq, 1), CompletionStatus::LocalProtection);
  Side c(world_.left);
  Side d(world_.right);
  world_.connect(c, d);
  Memory near(c.pd, octets(kSize, 2), Access::LocalRead);
  Memory shut(d.pd, untouched(), Access::RemoteWrite);
  must(d.qp.post_receive(receive(shut.all(), 7)));
  must(c.qp.post_send(request(Opcode::Send, near.all(), 2)));
  EXPECT_EQ(status_of(d.receive_cq, 7), CompletionStatus::LocalProtection);
  EXPECT_EQ(closed.data, untouched());
  EXPECT_EQ(shut.data, untouched());
}

// Local pieces, receives, what the peer names, and shared receive queues: of the queue pair's own
// domain or of no use to it. (Windows: WindowsApiTest.)
TEST_P(RightsTest, EachUseAsksForTheDomain_VERBS_01) {
  ProtectionDomain other_left = must(world_.left.alloc_pd());
  ProtectionDomain other_right = must(world_.right.alloc_pd());
  Memory foreign(other_left, untouched(), kEverything);
  Memory foreign_right(other_right, untouched(), kEverything);
  {
    Side a(world_.left);
    Side b(world_.right);
    world_.connect(a, b);
    must(a.qp.post_send(request(Opcode::Send, foreign.all(), 1)));
    EXPECT_EQ(status_of(a.send_cq, 1), CompletionStatus::LocalProtection);
  }
  {
    Side a(world_.left);
    Side b(world_.right);
    world_.connect(a, b);
    Memory near(a.pd, octets(kSize, 1), Access::LocalRead);
    must(b.qp.post_receive(receive(foreign_right.all(), 2)));
    must(a.qp.post_send(request(Opcode::Send, near.all(), 1)));
    EXPECT_EQ(status_of(b.receive_cq, 2), CompletionStatus::LocalProtection);
  }
  {
    Side a(world_.left);
    Side b(world_.right);
    world_.connect(a, b);
    Memory near(a.pd, octets(kSize, 1), Access::LocalRead);
    must(a.qp.post_send(request(Opcode::Write, near.all(), foreign_right)));
    expect_terminate(b, FaultLayer::Ddp, 0x02);
    SharedReceiveQueue srq = must(other_right.create_srq());
    QueuePairOptions options;
    options.srq = &srq;
    const auto refused = b.pd.create_qp(b.send_cq, b.receive_cq, options);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::InvalidArgument);
  }
  EXPECT_EQ(foreign_right.data, untouched());
}

}  // namespace
}  // namespace rnic::test
