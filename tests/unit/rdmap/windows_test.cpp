// Windows and fast registrations as work of a send queue, and what the peer may do with them.

#include "two_nodes.hpp"

namespace rnic::rdmap {
namespace {

class WindowsTest : public TwoNodes {
 protected:
  static constexpr AccessSet kWindow =
      Access::RemoteWrite | Access::RemoteRead | Access::RemoteInvalidate;

  void SetUp() override {
    start();
    region = b->table
                 .add({.address = b->at(0),
                       .length = Node::kSize,
                       .pd = b->pd,
                       .rights = Access::Bind | Access::LocalWrite,
                       .offset = 0})
                 .value()
                 .value;
    window = b->table.add_window(b->pd, WindowType::QueuePair).value().value;
  }
  /// b gives `length` octets from `from` to whoever knows the window, whose key is the next one.
  SendRequest binding(uint64_t id, uint64_t from, uint32_t length, uint64_t offset = 0) {
    window = next_key(window);
    SendRequest w{.id = id, .opcode = Opcode::BindWindow};
    w.sges = {{from, length, region}};
    w.grant = {.stag = window, .access = kWindow, .offset = offset};
    return w;
  }
  void write_to(uint64_t id, uint32_t stag, uint64_t to, uint32_t n) {
    SendRequest w = a->work(id, Opcode::Write, 0, n);
    w.remote = {stag, to};
    a->send(w);
  }
  /// What b has for offset 0 of `stag`.
  [[nodiscard]] mem::AccessFault at_b(uint32_t stag) const {
    return b->table.access({mem::Stag{stag}, 0, 1, {}, b->pd, b->stream}).fault;
  }

  uint32_t region = 0;
  uint32_t window = 0;
};

// A binding takes effect in its place in the order: the Send behind it may tell of it, although
// what was posted before is not acknowledged yet; and it completes in its turn.
TEST_F(WindowsTest, IsInForceForTheSendThatTellsOfIt_VERBS_04) {
  a->fill(0, 300, 3);
  a->post_receive(1, 4000, 8);
  b->send(b->work(1, Opcode::Send, 0, 8));
  EXPECT_EQ(at_b(window), mem::AccessFault::InvalidStag);
  b->send(binding(2, 500, 100, 0));
  pair.b.pull_all();
  EXPECT_EQ(at_b(window), mem::AccessFault::None);
  EXPECT_TRUE(b->owner.sends.empty()) << "the Send before it is not acknowledged";
  write_to(1, window, 0, 100);
  pair.pump();
  EXPECT_EQ(b->owner.send_ids(), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(b->owner.sends[1].opcode, Opcode::BindWindow);
  EXPECT_EQ(b->owner.sends[1].status, CompletionStatus::Success);
  EXPECT_TRUE(std::equal(a->at(0), a->at(100), b->at(500)));
  EXPECT_EQ(b->counters.windows_bound, 1u);
  // Not an octet more.
  write_to(2, window, 1, 100);
  pair.a.pull_all();
  pair.b.arrive_rest(pair.a);
  expect_terminate(1, 1, 0x01);
  EXPECT_EQ(*b->at(600), Node::kGuard);
}

// The peer ends it by a Send with Invalidate, whose completion names it; then it may be bound anew.
TEST_F(WindowsTest, ThePeerMayInvalidateIt_VERBS_04) {
  b->send(binding(1, 0, 64));
  pair.pump();
  b->post_receive(1, 1000, 8);
  SendRequest w = a->work(1, Opcode::SendInvalidate, 0, 8);
  w.invalidate_stag = window;
  a->send(w);
  pair.pump();
  ASSERT_EQ(b->owner.receives.size(), 1u);
  EXPECT_EQ(b->owner.receives[0].invalidated_stag, window);
  EXPECT_EQ(at_b(window), mem::AccessFault::InvalidStag);
  EXPECT_EQ(b->table.dependents(mem::Stag{region}), 0u);
  const uint32_t before = window;
  b->send(binding(2, 64, 64));
  pair.pump();
  EXPECT_EQ(at_b(window), mem::AccessFault::None);
  write_to(2, before, 0, 8);
  pair.a.pull_all();
  pair.b.arrive_rest(pair.a);
  expect_terminate(1, 1, 0x00);
}

// It ends after all work before it, and is bound again by what is posted right behind: the queue
// does in its order what it is told.
TEST_F(WindowsTest, InvalidatedAndBoundAgainInOneRow_VERBS_03) {
  b->send(binding(1, 0, 64));
  const uint32_t first = window;
  SendRequest invalidate{.id = 2, .opcode = Opcode::LocalInvalidate};
  invalidate.invalidate_stag = window;
  b->send(b->work(10, Opcode::Write, 0, 0));
  b->send(invalidate);
  b->send(binding(3, 128, 8));
  pair.b.pull_all();
  EXPECT_EQ(at_b(first), mem::AccessFault::None) << "the Write before it is not acknowledged";
  pair.pump();
  EXPECT_EQ(b->owner.send_ids(), (std::vector<uint64_t>{1, 10, 2, 3}));
  for (const Completion& done : b->owner.sends) EXPECT_EQ(done.status, CompletionStatus::Success);
  EXPECT_EQ(at_b(first), mem::AccessFault::InvalidStag);
  EXPECT_EQ(at_b(window), mem::AccessFault::None);
}

// Parts of two regions under an STag that was allocated before; the peer reads and writes them as
// one, and after the invalidation none of it.
TEST_F(WindowsTest, AFastRegistrationIsOneRegion_VERBS_03) {
  const uint32_t allocated = b->table.add_allocated(b->pd, 4).value().value;
  const uint32_t fast = next_key(allocated);
  SendRequest w{.id = 1, .opcode = Opcode::FastRegister};
  w.sges = {{3000, 100, region}, {1000, 200, region}};
  w.grant = {.stag = fast, .access = kWindow | Access::LocalWrite, .offset = 7};
  b->send(w);
  pair.pump();
  ASSERT_EQ(b->owner.sends.size(), 1u);
  EXPECT_EQ(b->owner.sends[0].status, CompletionStatus::Success);
  EXPECT_EQ(b->counters.fast_registrations, 1u);
  a->fill(0, 300, 9);
  write_to(1, fast, 7, 300);
  SendRequest read = a->work(2, Opcode::Read, 5000, 300);
  read.remote = {fast, 7};
  a->send(read);
  pair.pump();
  EXPECT_TRUE(std::equal(a->at(0), a->at(100), b->at(3000)));
  EXPECT_TRUE(std::equal(a->at(100), a->at(300), b->at(1000)));
  EXPECT_TRUE(std::equal(a->at(0), a->at(300), a->at(5000)));
  // It is a local region, too.
  ReceiveRequest receive{.id = 3};
  receive.sges = {{7 + 98, 4, fast}};
  b->receive(receive);
  send(3, 0, 4);
  pair.pump();
  EXPECT_TRUE(std::equal(a->at(0), a->at(2), b->at(3098)));
  EXPECT_TRUE(std::equal(a->at(2), a->at(4), b->at(1000)));
  SendRequest invalidate{.id = 4, .opcode = Opcode::LocalInvalidate};
  invalidate.invalidate_stag = fast;
  b->send(invalidate);
  pair.pump();
  write_to(4, fast, 7, 1);
  pair.a.pull_all();
  pair.b.arrive_rest(pair.a);
  expect_terminate(1, 1, 0x00);
}

// What cannot be bound is the user's own error: its completion says so, nothing behind it is
// carried out, and the peer is told of a local error.
TEST_F(WindowsTest, WhatCannotBeBoundFails) {
  for (const uint32_t beyond : {0u, 1u}) {
    restart();
    SetUp();
    b->send(binding(1, 0, static_cast<uint32_t>(Node::kSize) + beyond));
    b->send(b->work(2, Opcode::Send, 0, 8));
    pair.b.pull_all();
    pair.b.release_all();
    ASSERT_EQ(b->owner.sends.size(), beyond == 0 ? 2u : 2u);
    EXPECT_EQ(b->owner.sends[0].status,
              beyond == 0 ? CompletionStatus::Success : CompletionStatus::LocalProtection);
    EXPECT_EQ(b->owner.sends[1].status,
              beyond == 0 ? CompletionStatus::Success : CompletionStatus::Flushed);
    EXPECT_EQ(at_b(window) == mem::AccessFault::None, beyond == 0);
    EXPECT_EQ(b->counters.windows_bound, 1u - beyond);
  }
}

TEST_F(WindowsTest, ABindingMayWaitBehindAFence) {
  SendRequest read = b->work(1, Opcode::Read, 0, 8);
  read.remote = {a->all, 0};
  b->send(read);
  SendRequest w = binding(2, 0, 8);
  w.fence = true;
  b->send(w);
  pair.b.pull_all();
  EXPECT_EQ(at_b(window), mem::AccessFault::InvalidStag);
  pair.pump();
  EXPECT_EQ(at_b(window), mem::AccessFault::None);
  EXPECT_EQ(b->owner.send_ids(), (std::vector<uint64_t>{1, 2}));
}

// The region goes while a Write through its window is under way: what is behind that moment is not
// placed.
TEST_F(WindowsTest, TheRestOfAWriteFindsNoWindow_SEC_6_2_2_01) {
  a->fill(0, 1000, 40);
  b->send(binding(1, 0, 1000));
  pair.pump();
  write_to(1, window, 0, 1000);
  pair.a.pull_all();
  ASSERT_GT(pair.a.sent.size(), 3u);
  pair.b.arrive(pair.a, 0);
  const std::vector<uint8_t> placed(b->at(0), b->at(0) + 1000);
  EXPECT_EQ(placed[0], *a->at(0));
  ASSERT_TRUE(b->table.remove(mem::Stag{region}).has_value());
  std::fill_n(b->at(0), 1000, uint8_t{0});
  pair.b.arrive_rest(pair.a);
  EXPECT_TRUE(std::all_of(b->at(0), b->at(1000), [](uint8_t o) { return o == 0; }));
  expect_terminate(1, 1, 0x00);
}

}  // namespace
}  // namespace rnic::rdmap
