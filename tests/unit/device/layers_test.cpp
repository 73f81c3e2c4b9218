// What DDP and RDMAP rely on from the layers below, with whole devices.

#include "device_pair.hpp"

namespace rnic::device {
namespace {

class Layers : public DevicePair {
 protected:
  Layers() {
    a_ = left().make_qp();
    b_ = right().make_qp();
    connect(a_, b_);
    for (int side = 0; side < 2; ++side) memory_[side].assign(kSize, static_cast<uint8_t>(side));
    constexpr AccessSet kRights =
        Access::LocalWrite | Access::RemoteWrite | Access::RemoteRead | Access::RemoteAtomic;
    stag_[0] = left().add(memory_[0], a_->spec().pd, kRights);
    stag_[1] = right().add(memory_[1], b_->spec().pd, kRights);
  }
  SendRequest to_right(Opcode opcode, uint64_t id, uint32_t length) {
    auto w = work(opcode, id, memory_[0], stag_[0], length);
    w.remote = {stag_[1].value, reinterpret_cast<uint64_t>(memory_[1].data())};
    return w;
  }
  static constexpr size_t kSize = 200'000;
  QueuePair* a_ = nullptr;
  QueuePair* b_ = nullptr;
  std::array<std::vector<uint8_t>, 2> memory_;
  std::array<mem::Stag, 2> stag_;
};

// What was accepted arrives; and when the peer is silent for good every request that did
// not get through is completed with an error, in order.
TEST_F(Layers, DeliveredOrAnError_DDP_3_03) {
  ASSERT_EQ(a_->post_send(to_right(Opcode::Write, 1, kSize)), PostResult::Ok);
  std::vector<Completion> done;
  const auto collect = [&] {
    for (const auto& c : left().completions(a_->spec().send_cq)) done.push_back(c);
    return done.size();
  };
  ASSERT_TRUE(run_until([&] { return collect() == 1; }));
  EXPECT_EQ(done[0].status, CompletionStatus::Success);
  EXPECT_EQ(memory_[1], memory_[0]);

  for (uint64_t id = 2; id < 6; ++id) {
    ASSERT_EQ(a_->post_send(to_right(Opcode::Write, id, 50'000)), PostResult::Ok);
  }
  for (int turns = 0; turns < 100'000 && collect() < 5; ++turns) {  // nobody polls the right side
    left().device->poll(now_);
    now_ = std::max(now_ + base::Duration(100),
                    std::min(left().device->next_deadline(), now_ + std::chrono::seconds(10)));
  }
  ASSERT_EQ(done.size(), 5u);
  for (size_t i = 1; i < 5; ++i) {
    EXPECT_EQ(done[i].id, i + 1);
    EXPECT_EQ(done[i].status, i == 1 ? CompletionStatus::Lost : CompletionStatus::Flushed);
    EXPECT_EQ(done[i].cause, CompletionCause::TimedOut);
  }
  const auto event = left().take<event::Disconnected>();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->end, StreamEnd::TimedOut);
}

// RDMAP-6.1-01: both sides start at the octet behind the Reply: what the initiator
// sends at once, and what the responder answers as soon as it may, are understood.
TEST_F(Layers, BothSidesStartAtTheSamePosition_DDP_6_1_01) {
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(a_->post_receive(receive(1, memory_[0], stag_[0], 100)), PostResult::Ok);
    ASSERT_EQ(b_->post_receive(receive(1, memory_[1], stag_[1], 100)), PostResult::Ok);
  }
  ASSERT_EQ(b_->post_send(work(Opcode::Send, 3, memory_[1], stag_[1], 61)), PostResult::Ok);
  ASSERT_EQ(a_->post_send(work(Opcode::Send, 2, memory_[0], stag_[0], 61)), PostResult::Ok);
  size_t got_left = 0, got_right = 0;
  EXPECT_TRUE(run_until([&] {
    got_left += left().completions(a_->spec().receive_cq).size();
    got_right += right().completions(b_->spec().receive_cq).size();
    return got_left == 1 && got_right == 1;
  }));
  EXPECT_FALSE(left().has<event::TerminateSent>());
  EXPECT_FALSE(right().has<event::TerminateSent>());
}

// Streams of one device on one word; each addition once, each stream's in order.
class SharedWord : public DevicePair {};
TEST_F(SharedWord, StreamsOfOneDevice_R7306_5_11) {
  constexpr uint64_t kEach = 200;
  constexpr size_t kStreams = 4;
  std::array<QueuePair*, kStreams> from{};
  alignas(8) uint64_t word = 0;
  std::array<mem::Stag, kStreams> stags;
  for (size_t i = 0; i < kStreams; ++i) {
    from[i] = left().make_qp();
    QueuePair* to = right().make_qp();
    connect(from[i], to);
    mem::RegionSpec spec;
    spec.address = reinterpret_cast<uint8_t*>(&word);
    spec.length = 8;
    spec.pd = to->spec().pd;
    spec.rights = Access::RemoteAtomic;
    stags[i] = *right().device->register_memory(spec);
  }
  std::array<uint64_t, kStreams> posted{}, done{};
  std::vector<int> given(kEach * kStreams);
  std::array<uint64_t, kStreams> latest{};
  EXPECT_TRUE(run_until(
      [&] {
        size_t complete = 0;
        for (size_t i = 0; i < kStreams; ++i) {
          for (const auto& c : left().completions(from[i]->spec().send_cq)) {
            EXPECT_EQ(c.status, CompletionStatus::Success);
            EXPECT_EQ(c.id, done[i]++);
            ++given.at(c.original);
            EXPECT_TRUE(c.original >= latest[i]) << "a stream's atomics are in order";
            latest[i] = c.original;
          }
          while (posted[i] < kEach && posted[i] - done[i] < 20) {
            SendRequest w;
            w.id = posted[i]++;
            w.opcode = Opcode::FetchAdd;
            w.remote = {stags[i].value, reinterpret_cast<uint64_t>(&word)};
            w.atomic.data = 1;
            EXPECT_EQ(from[i]->post_send(w), PostResult::Ok);
          }
          complete += done[i] == kEach ? 1 : 0;
        }
        return complete == kStreams;
      },
      std::chrono::hours(1)));
  EXPECT_EQ(word, kEach * kStreams);
  EXPECT_TRUE(std::all_of(given.begin(), given.end(), [](int n) { return n == 1; }));
}

}  // namespace
}  // namespace rnic::device
