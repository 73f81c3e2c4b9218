// The queue of events: what one connection or a crowd of strangers does with it leaves room for
// what the application waits for.

#include "device_pair.hpp"
#include "support/live_memory.hpp"
#include "support/logged.hpp"

namespace rnic::device {
namespace {

constexpr uint32_t kMaxEvents = 16;
constexpr uint16_t kOtherFraming = 7472;

class Events : public DevicePair {
 protected:
  Events()
      : DevicePair([](DeviceConfig& config) {
          if (config.name == "right") config.limits.max_events = kMaxEvents;
        }) {
    EXPECT_TRUE(
        right().device->listen(Endpoint{{}, kOtherFraming}, {.framing = Framing::Tuf}).has_value());
    cheap_.pd = *left().device->alloc_pd();
    cheap_.send_cq = cheap_.receive_cq = *left().device->create_cq(256);
    cheap_.send_depth = cheap_.receive_depth = 4;
  }

  /// What the right device's application has not read yet.
  std::vector<Event> read_all() {
    right().events.clear();
    right().collect();
    return right().events;
  }
  static bool is_one_overrun(const std::vector<Event>& events) {
    return events.size() == 1 && count<event::CompletionOverrun>(events) == 1;
  }
  template <typename Kind>
  static size_t count(const std::vector<Event>& events) {
    return static_cast<size_t>(std::count_if(events.begin(), events.end(), [](const Event& e) {
      return std::holds_alternative<Kind>(e);
    }));
  }
  void settle() { run_for(std::chrono::seconds(2)); }

  /// `n` connects of the left device; nobody answers at the right one.
  void dial(uint32_t n, uint16_t port) {
    for (uint32_t i = 0; i < n; ++i) {
      const auto made = left().device->create_qp(cheap_);
      ASSERT_TRUE(made.has_value());
      QueuePair* qp = *made;
      ASSERT_TRUE(left().device->connect(*qp, right_end(port), {}, now_, {}).has_value());
      dialled_.push_back(qp);
    }
    settle();
  }
  /// They are gone, so that there is room for more.
  void hang_up() {
    for (QueuePair* qp : dialled_) EXPECT_TRUE(left().device->destroy_qp(qp).has_value());
    dialled_.clear();
    settle();
  }

  std::vector<QueuePair*> dialled_;
  QueuePairSpec cheap_;  // of those, which share all that they need
};

TEST_F(Events, AnOverrunIsToldOnceUntilTheQueueIsResized) {
  QueuePair* qp = right().make_qp(64, 2);
  std::vector<uint8_t> memory(8);
  const mem::Stag stag = right().add(memory, qp->spec().pd, Access::LocalWrite);
  const auto flush_ten = [&] {  // without a connection they are flushed at once
    for (uint64_t id = 0; id < 10; ++id) {
      ASSERT_EQ(qp->post_send(work(Opcode::Send, id, memory, stag, 8)), PostResult::Ok);
    }
    settle();
  };
  flush_ten();
  EXPECT_EQ(right().device->device_counters().completion_overruns, 8u);
  EXPECT_TRUE(is_one_overrun(read_all()));
  flush_ten();
  EXPECT_EQ(right().device->device_counters().completion_overruns, 18u);
  EXPECT_TRUE(read_all().empty()) << "it is in error already";
  EXPECT_EQ(right().completions(qp->spec().send_cq).size(), 2u);
  ASSERT_TRUE(right().device->resize_cq(*qp->spec().send_cq, 4));
  flush_ten();
  const auto told = read_all();
  ASSERT_TRUE(is_one_overrun(told));
  EXPECT_EQ(std::get<event::CompletionOverrun>(told[0]).cq, qp->spec().send_cq->number());
  EXPECT_EQ(right().completions(qp->spec().send_cq).size(), 4u);
}

// A deep queue that is flushed into a shallow one pushes nothing of others out.
TEST_F(Events, AnOverrunLeavesRoomForOthers) {
  QueuePair* mine = right().make_qp();
  connect(left().make_qp(), mine);
  QueuePair* flood = right().make_qp(256, 2);
  std::vector<uint8_t> memory(8);
  const mem::Stag stag = right().add(memory, flood->spec().pd, Access::LocalWrite);
  for (uint64_t id = 0; id < 200; ++id) {
    ASSERT_EQ(flood->post_send(work(Opcode::Send, id, memory, stag, 8)), PostResult::Ok);
  }
  settle();
  EXPECT_TRUE(right().device->disconnect(*mine).has_value());
  settle();
  const auto told = read_all();
  EXPECT_EQ(count<event::CompletionOverrun>(told), 1u);
  EXPECT_EQ(told.size(), 1u + count<event::PeerClosed>(told) + count<event::Disconnected>(told));
  EXPECT_EQ(right().device->device_counters().events_lost, 0u);
}

// What finds no room is counted, also of the application's own connections.
TEST_F(Events, WhatFindsNoRoomIsCounted) {
  constexpr uint32_t kMore = 5;
  for (uint32_t i = 0; i < kMaxEvents + kMore; ++i) {
    const Endpoint nobody{left().device->config().net.address, kOtherFraming};
    ASSERT_TRUE(right().device->connect(*right().make_qp(4, 16), nobody, {}, now_).has_value());
  }
  settle();
  EXPECT_EQ(right().device->device_counters().connects_failed, kMaxEvents + kMore);
  const auto told = read_all();
  EXPECT_EQ(told.size(), kMaxEvents);
  EXPECT_EQ(count<event::ConnectFailed>(told), kMaxEvents / 2);
  EXPECT_EQ(count<event::Disconnected>(told), kMaxEvents / 2);
  EXPECT_EQ(right().device->device_counters().events_lost, 2 * (kMaxEvents + kMore) - kMaxEvents);
}

// Strangers with bad Requests have a quarter of the queue, however many come.
TEST_F(Events, StrangersDoNotPushOutWhatIsAwaited) {
  QueuePair* peer = left().make_qp();
  connect(peer, right().make_qp());
  for (int wave = 0; wave < 3; ++wave) {
    dial(16, kOtherFraming);
    hang_up();
  }
  ASSERT_TRUE(left().device->disconnect(*peer).has_value());
  settle();
  const auto told = read_all();
  EXPECT_EQ(count<event::RequestFailed>(told), kMaxEvents / 4);
  EXPECT_EQ(count<event::PeerClosed>(told), 1u);
  EXPECT_GE(right().device->device_counters().events_lost, 3u * 16 - kMaxEvents / 4);
}

// Requests that the application was not told of are rejected, at once: they hold no place.
TEST_F(Events, AnUnheardRequestFreesItsPlace) {
  QueuePair* peer = left().make_qp();
  connect(peer, right().make_qp());
  test::Logged log;
  dial(12, kPort);
  const std::string said = log.take();
  EXPECT_NE(said.find("read the events, or raise limits.max_events"), std::string::npos) << said;
  EXPECT_EQ(right().device->device_counters().requests_unheard, 12 - kMaxEvents / 2);
  size_t rejected = 0;
  while (left().take<event::Rejected>()) ++rejected;
  EXPECT_EQ(rejected, 12 - kMaxEvents / 2);
  EXPECT_EQ(right().device->live_connections(), 1 + kMaxEvents / 2);
  ASSERT_TRUE(left().device->disconnect(*peer).has_value());
  settle();
  const auto told = read_all();
  EXPECT_EQ(count<event::ConnectRequest>(told), kMaxEvents / 2);
  EXPECT_EQ(count<event::PeerClosed>(told), 1u);
  // The queue has been read: the next one is heard.
  dial(1, kPort);
  EXPECT_EQ(count<event::ConnectRequest>(read_all()), 1u);
}

// The list of those is empty behind each poll: however many there were, they cost no memory.
TEST_F(Events, UnheardRequestsCostNoMemory) {
  const auto waves = [&](int n) {
    while (n-- != 0) {
      dial(12, kPort);
      hang_up();
      left().collect();
      left().events.clear();
    }
    return test::live_octets();
  };
  const int64_t before = waves(12);
  EXPECT_GT(right().device->device_counters().requests_unheard, 100u);
  EXPECT_EQ(waves(24), before);
  EXPECT_GT(right().device->device_counters().requests_unheard, 300u);
}

// A request that is told of and withdrawn leaves at most its two events, also when the second finds
// no room; answering it says that it is gone.
TEST_F(Events, WithdrawnRequestsKeepToTheirHalf) {
  QueuePair* peer = left().make_qp();
  connect(peer, right().make_qp());
  for (int wave = 0; wave < 4; ++wave) {
    dial(6, kPort);
    hang_up();
  }
  ASSERT_TRUE(left().device->disconnect(*peer).has_value());
  settle();
  right().events.clear();
  right().collect();
  EXPECT_EQ(right().events.size(), kMaxEvents / 2 + 1);
  EXPECT_TRUE(right().has<event::PeerClosed>());
  const auto request = right().take<event::ConnectRequest>();
  ASSERT_TRUE(request);
  const auto answer = right().device->accept(request->request, *right().make_qp(), {}, now_, {});
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, ErrorCode::NotFound);
}

}  // namespace
}  // namespace rnic::device
