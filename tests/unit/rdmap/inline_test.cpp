// Inline data: the message is kept with the request, and needs no registered memory.

#include <span>

#include "two_nodes.hpp"

namespace rnic::rdmap {
namespace {

class InlineTest : public TwoNodes {
 protected:
  /// What is posted; its memory is overwritten as soon as it was.
  void post(uint64_t id, Opcode opcode, std::vector<std::byte> data, uint64_t to = 0) {
    SendRequest w{.id = id, .opcode = opcode, .remote = {b->all, to}};
    w.inline_data = data;
    w.immediate = {1, 2, 3, 4, 5, 6, 7, 8};
    w.invalidate_stag = b->all;
    a->send(w);
    std::ranges::fill(data, std::byte{0xdd});
  }
  static std::vector<std::byte> data(size_t size) {
    std::vector<std::byte> octets(size);
    for (size_t i = 0; i < size; ++i) octets[i] = static_cast<std::byte>(i * 3 + size);
    return octets;
  }
  /// The peer's memory has it, and nothing behind it.
  [[nodiscard]] bool arrived(uint64_t to, const std::vector<std::byte>& octets) const {
    return std::memcmp(b->at(to), octets.data(), octets.size()) == 0 &&
           *b->at(to + octets.size()) == Node::kGuard;
  }
};

// Every length, in one segment and in two; FramingPair rebuilds each of them.
TEST_F(InlineTest, OfEveryLength) {
  for (const Opcode opcode :
       {Opcode::Send, Opcode::SendInvalidate, Opcode::Write, Opcode::WriteImmediate}) {
    for (size_t size = 1; size <= kMaxInline; ++size) {
      SCOPED_TRACE(::testing::Message() << to_string(opcode) << ", " << size);
      restart();
      b->post_receive(7, 0, 300);
      post(1, opcode, data(size));
      pair.pump();
      ASSERT_TRUE(arrived(0, data(size)));
      ASSERT_EQ(a->owner.sends.size(), 1u);
      EXPECT_EQ(a->owner.sends[0].status, CompletionStatus::Success);
      EXPECT_EQ(a->owner.sends[0].length, size);
      EXPECT_EQ(b->owner.receives.size(), opcode == Opcode::Write ? 0u : 1u);
    }
  }
}

// The queue takes as many of the longest as it is deep, over and over.
TEST_F(InlineTest, FillsTheQueue) {
  restart({.qp = 9, .pd = 4}, {.send = 4, .receive = 4});
  for (uint64_t round = 0; round < 10; ++round) {
    for (uint64_t i = 0; i < 4; ++i) {
      ASSERT_TRUE(a->sends.has_room());
      post(i, Opcode::Write, data(kMaxInline - round), i * 512);
    }
    EXPECT_FALSE(a->sends.has_room());
    pair.pump();
    for (uint64_t i = 0; i < 4; ++i) EXPECT_TRUE(arrived(i * 512, data(kMaxInline - round)));
    a->endpoint.validate();
    std::memset(b->at(0), Node::kGuard, 4 * 512);
  }
}

// What was begun is sent again from a copy once the queue is the application's.
TEST_F(InlineTest, IsRebuiltBehindAFlush) {
  post(1, Opcode::Write, data(100));
  ASSERT_TRUE(pair.a.pull());
  const auto sent = pair.a.sent[0].octets;
  a->endpoint.abort();
  ASSERT_EQ(a->owner.sends.size(), 1u);
  EXPECT_EQ(pair.a.rebuild(0), sent);
}

}  // namespace
}  // namespace rnic::rdmap
