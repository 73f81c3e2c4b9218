// Queues that several threads of the application use at once: no completion is lost or doubled, a
// list stays together, and what one thread posts keeps its order.

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <latch>
#include <map>
#include <memory>
#include <thread>

#include "support/readable.hpp"
#include "verbs/queue_lock.hpp"
#include "verbs_pair.hpp"

namespace rnic::test {
namespace {

constexpr int kLongestSleepMs = 20'000;  // only a failure waits so long

// VERBS-28: a call that has begun is alone with its queue until it ends. The calls of the tests
// below are short and seldom meet; this one lasts until another one had the time to come between.
TEST(QueueLock, ASecondCallWaitsForTheFirst) {
  verbs::QueueLock lock;
  std::atomic<bool> asks{false};
  std::atomic<bool> entered{false};
  std::thread second;
  lock.hold([&] {
    second = std::thread([&] {
      asks = true;
      lock.hold([&] { entered = true; });
    });
    while (!asks) std::this_thread::yield();
    for (int turn = 0; turn < 10'000 && !entered; ++turn) std::this_thread::yield();
    EXPECT_FALSE(entered);
  });
  second.join();
  EXPECT_TRUE(entered);
}

/// What each request says of itself: who posted it, in which call, as which of its own.
struct Label {
  uint32_t poster;
  uint32_t call;
  uint32_t number;

  /// As the number of a request.
  [[nodiscard]] uint64_t id() const {
    return uint64_t{poster} << 56 | uint64_t{call} << 24 | number;
  }
  static Label of(uint64_t id) {
    return {static_cast<uint32_t>(id >> 56), static_cast<uint32_t>(id >> 24),
            static_cast<uint32_t>(id & 0xffffff)};
  }
};

/// Requests of several posters, each with so many, of which each has to be told of once.
class Ledger {
 public:
  Ledger(uint32_t posters, uint32_t each) : each_(each), seen_(size_t{posters} * each) {}

  /// Any thread.
  void note(const Label& label) {
    ++seen_.at(size_t{label.poster} * each_ + label.number);
    ++noted_;
  }
  [[nodiscard]] bool is_complete() const { return noted_ >= seen_.size(); }
  void expect_each_once() const {
    EXPECT_EQ(noted_, seen_.size());
    EXPECT_TRUE(std::ranges::all_of(seen_, [](const auto& times) { return times == 1; }));
  }

 private:
  uint32_t each_;
  std::vector<std::atomic<uint32_t>> seen_;
  std::atomic<size_t> noted_{0};
};

/// The requests of each poster come in the order in which it has posted them. Of one thread, or of
/// one queue pair and one thread.
class InOrder {
 public:
  void expect_next(const Label& label) {
    uint32_t& next = next_[label.poster];
    EXPECT_GE(label.number, next) << "poster " << label.poster;
    next = label.number + 1;
  }

 private:
  std::map<uint32_t, uint32_t> next_;
};

/// The threads of a test. They are to end once over() is true.
class Crew {
 public:
  Crew() = default;
  ~Crew() {
    over_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  [[nodiscard]] bool over() const { return over_; }
  /// Starts threads that begin their work at once, when all of them are there.
  template <typename F>
  void start(uint32_t count, F work) {
    const auto all_there = std::make_shared<std::latch>(count);
    for (uint32_t number = 0; number < count; ++number) {
      ++running_;
      threads_.emplace_back([this, work, number, all_there] {
        all_there->arrive_and_wait();
        work(number);
        --running_;
      });
    }
  }
  [[nodiscard]] bool have_ended() const { return running_ == 0; }

 private:
  std::atomic<bool> over_{false};
  std::atomic<uint32_t> running_{0};
  std::vector<std::thread> threads_;
};

/// Posts `each` requests, singly and in lists of up to four, and goes on where a queue was full.
/// \param post takes labels; \return how many were queued, and why not the next
template <typename F>
void post_all(const Crew& crew, uint32_t poster, uint32_t each, F&& post) {
  uint32_t next = 0;
  for (uint32_t call = 0; next < each && !crew.over(); ++call) {
    std::array<Label, 4> labels{};
    const uint32_t count = std::min(1 + call % 4, each - next);
    for (uint32_t i = 0; i < count; ++i) labels[i] = {poster, call, next + i};
    const ListPosted posted = post(std::span<const Label>(labels.data(), count));
    next += posted.taken;
    if (posted.status) continue;
    ASSERT_EQ(posted.status.error().code, ErrorCode::ResourceExhausted);
    std::this_thread::yield();
  }
}

/// Posts messages that consist of their label.
ListPosted post_messages(QueuePair& qp, std::span<const Label> labels) {
  std::vector<SendRequest> list(labels.size());
  for (size_t i = 0; i < labels.size(); ++i) {
    list[i].id = labels[i].id();
    list[i].inline_data = std::as_bytes(labels.subspan(i, 1));
  }
  if (list.size() > 1) return qp.post_send(list);
  const Status status = qp.post_send(list[0]);
  return {status ? 1u : 0u, status};
}

ListPosted post_empty_receives(QueuePair& qp, std::span<const Label> labels) {
  std::vector<ReceiveRequest> list(labels.size());
  for (size_t i = 0; i < labels.size(); ++i) list[i].id = labels[i].id();
  if (list.size() > 1) return qp.post_receive(list);
  const Status status = qp.post_receive(list[0]);
  return {status ? 1u : 0u, status};
}

struct Mode {
  const char* name;
  bool sockets;
  bool threaded;
  bool by_key;  ///< the device says that several threads use its queues, not each of them
};

class SeveralThreads : public testing::TestWithParam<Mode> {
 protected:
  static constexpr uint32_t kPosters = 3;
  static constexpr uint32_t kPollers = 3;

  [[nodiscard]] static Config config() {
    Config out = GetParam().sockets ? socket_config(GetParam().threaded)
                                    : loopback_config(GetParam().threaded);
    out.set("worker.idle=sleep");
    if (GetParam().by_key) out.set("device.*.several_threads=true");
    return out;
  }
  [[nodiscard]] static QueuePairOptions options(uint32_t depth) {
    QueuePairOptions out;
    out.send_depth = out.receive_depth = depth;
    out.receive_wait = kPatience;
    out.several_threads = !GetParam().by_key;
    return out;
  }
};

/// Receives of `count` labels' memory each: the request's number says which one it is.
class Slots {
 public:
  Slots(ProtectionDomain& pd, uint32_t count)
      : count_(count),
        memory_(pd, std::vector<uint8_t>(count * sizeof(Label)), Access::LocalWrite) {}

  [[nodiscard]] uint32_t count() const { return count_; }
  [[nodiscard]] ReceiveRequest receive(uint64_t slot) const {
    return test::receive(memory_.region.sge(slot * sizeof(Label), sizeof(Label)), slot);
  }
  [[nodiscard]] Label label(uint64_t slot) const {
    Label out{};
    std::memcpy(&out, memory_.data.data() + slot * sizeof out, sizeof out);
    return out;
  }

 private:
  uint32_t count_;
  Memory memory_;
};

/// Takes messages, notes them, and posts their receives again, until the test is over.
void serve(const Crew& crew, Side& side, const Slots& slots, Ledger& ledger) {
  InOrder order;
  while (!crew.over()) {
    std::array<Completion, 3> done;
    const uint32_t count = side.receive_cq.poll(done);
    for (uint32_t i = 0; i < count; ++i) {
      ASSERT_EQ(done[i].status, CompletionStatus::Success);
      const Label label = slots.label(done[i].id);
      order.expect_next(label);
      ledger.note(label);
      must(side.qp.post_receive(slots.receive(done[i].id)));
    }
    if (count == 0) std::this_thread::yield();
  }
}

/// Takes completions of requests and notes them, until the test is over.
void reap(const Crew& crew, CompletionQueue& cq, Ledger& ledger) {
  InOrder order;
  while (!crew.over()) {
    Completion done;
    if (cq.poll({&done, 1}) == 0) {
      std::this_thread::yield();
      continue;
    }
    ASSERT_EQ(done.status, CompletionStatus::Success);
    order.expect_next(Label::of(done.id));
    ledger.note(Label::of(done.id));
  }
}

// The send queue is small, so that it is full again and again, and messages wait for receives. A
// place in it is free before its completion was polled, so the completion queues hold all.
TEST_P(SeveralThreads, EachMessageIsToldOfOnceAtEitherEnd_VERBS_28) {
  constexpr uint32_t kEach = 500;
  World world(config());
  Side a(world.left, options(8), kPosters * kEach);
  Side b(world.right, options(12), kPosters * kEach);
  world.connect(a, b);
  const Slots slots(b.pd, 12);
  for (uint64_t slot = 0; slot < slots.count(); ++slot) {
    must(b.qp.post_receive(slots.receive(slot)));
  }
  Ledger sent(kPosters, kEach);
  Ledger received(kPosters, kEach);
  {
    Crew crew;
    crew.start(kPosters, [&](uint32_t poster) {
      post_all(crew, poster, kEach,
               [&](std::span<const Label> labels) { return post_messages(a.qp, labels); });
    });
    crew.start(kPollers, [&](uint32_t) { serve(crew, b, slots, received); });
    crew.start(kPollers, [&](uint32_t) { reap(crew, a.send_cq, sent); });
    EXPECT_TRUE(world.wait([&] { return sent.is_complete() && received.is_complete(); }));
  }
  sent.expect_each_once();
  received.expect_each_once();
  EXPECT_EQ(must(a.send_cq.info()).waiting, 0u);
  EXPECT_EQ(must(b.receive_cq.info()).waiting, 0u);
}

/// Takes what was flushed: each list stands together, each thread's requests in its order.
void expect_flushed(CompletionQueue& cq, uint32_t posters, uint32_t each) {
  Ledger ledger(posters, each);
  InOrder order;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> runs;  // of one call each
  Label before{UINT32_MAX, 0, 0};
  Completion done;
  while (cq.poll({&done, 1}) == 1) {
    EXPECT_EQ(done.status, CompletionStatus::Flushed);
    const Label label = Label::of(done.id);
    if (label.poster != before.poster || label.call != before.call) {
      EXPECT_EQ(++runs[std::pair(label.poster, label.call)], 1u) << "a list was torn";
    }
    order.expect_next(label);
    ledger.note(label);
    before = label;
  }
  ledger.expect_each_once();
}

// VERBS-28: what one call posts is not torn apart by the calls of other threads.
TEST_P(SeveralThreads, ListsStayTogetherAndEachThreadsRequestsInOrder) {
  constexpr uint32_t kEach = 20'000;
  World world(config());
  Side side(world.left, options(kPosters * kEach), kPosters * kEach);
  {
    Crew crew;
    crew.start(kPosters, [&](uint32_t poster) {
      post_all(crew, poster, kEach,
               [&](std::span<const Label> labels) { return post_messages(side.qp, labels); });
    });
    crew.start(kPosters, [&](uint32_t poster) {
      post_all(crew, poster, kEach,
               [&](std::span<const Label> labels) { return post_empty_receives(side.qp, labels); });
    });
    EXPECT_TRUE(world.wait([&] { return crew.have_ended(); }));
  }
  must(side.qp.modify({.state = QueuePairState::Error}));
  expect_flushed(side.send_cq, kPosters, kEach);
  expect_flushed(side.receive_cq, kPosters, kEach);
}

/// Posts receives until the queue is full. \return how many were queued
uint32_t fill(QueuePair& qp) {
  for (uint32_t queued = 0;; ++queued) {
    const Status status = qp.post_receive(ReceiveRequest{});
    if (status) continue;
    EXPECT_EQ(status.error().code, ErrorCode::ResourceExhausted);
    return queued;
  }
}

// VERBS-28: the queue pair lives again and again meanwhile, and a thread that only looks is right
// as well.
TEST_P(SeveralThreads, AFullQueueHasTakenAsManyReceivesAsItIsDeep) {
  constexpr uint32_t kDepth = 50;
  World world(config());
  Side side(world.left, options(kDepth), 2 * kDepth);
  Crew looking;
  looking.start(1, [&](uint32_t) {
    uint32_t before = 0;
    while (!looking.over()) {
      const uint32_t number = side.qp.number();
      EXPECT_GE(number, before) << "lives of one queue pair";
      before = number;
    }
  });
  for (int round = 0; round < 100; ++round) {
    std::atomic<uint32_t> queued{0};
    Crew crew;
    crew.start(kPosters, [&](uint32_t) { queued += fill(side.qp); });
    EXPECT_TRUE(world.wait([&] { return crew.have_ended(); }));
    EXPECT_EQ(queued, kDepth);
    must(side.qp.modify({.state = QueuePairState::Error}));
    std::array<Completion, 2 * kDepth> flushed;
    EXPECT_EQ(side.receive_cq.poll(flushed), kDepth);
    must(side.qp.modify({.state = QueuePairState::Idle}));
  }
}

/// A queue pair of each device, of which the right one takes from a shared queue.
struct Client {
  Side near;
  QueuePair far;

  Client(World& world, ProtectionDomain& pd, CompletionQueue& cq, const QueuePairOptions& options,
         SharedReceiveQueue& srq, uint16_t port)
      : near(world.left, options, 64) {
    QueuePairOptions shared = options;
    shared.srq = &srq;
    far = must(pd.create_qp(cq, cq, shared));
    must(world.right.listen(port));
    must(near.qp.connect({world.right.address(), port}));
    const auto asked = world.await<event::ConnectRequest>(world.right);
    if (!asked) throw std::runtime_error("no connection request came");
    must(far.accept(asked->request));
    if (!world.await<event::Established>(world.left) ||
        !world.await<event::Established>(world.right)) {
      throw std::runtime_error("the connection was not established");
    }
  }
};

/// Takes the receives that two clients' messages complete, until each of them has.
void take_receives(const Crew& crew, CompletionQueue& cq, Ledger& ledger) {
  std::map<uint32_t, InOrder> orders;  // of each queue pair
  while (!crew.over()) {
    Completion done;
    if (cq.poll({&done, 1}) == 0) {
      std::this_thread::yield();
      continue;
    }
    if (done.opcode != Opcode::Receive) continue;
    ASSERT_EQ(done.status, CompletionStatus::Success);
    orders[done.qp].expect_next(Label::of(done.id));
    ledger.note(Label::of(done.id));
  }
}

// Fewer receives than messages are posted at a time, so that the queue is full at times and
// messages wait at others.
TEST_P(SeveralThreads, EachReceiveOfASharedQueueIsUsedOnce) {
  constexpr uint32_t kEach = 400;
  World world(config());
  ProtectionDomain pd = must(world.right.alloc_pd());
  CompletionQueue cq =
      must(world.right.create_cq(kPosters * kEach, {.several_threads = !GetParam().by_key}));
  SharedReceiveQueue srq =
      must(pd.create_srq({.depth = 16, .several_threads = !GetParam().by_key}));
  Client one(world, pd, cq, options(8), srq, 7471);
  Client two(world, pd, cq, options(8), srq, 7472);
  Ledger used(kPosters, kEach);
  {
    Crew crew;
    crew.start(kPosters, [&](uint32_t poster) {
      post_all(crew, poster, kEach, [&](std::span<const Label> labels) -> ListPosted {
        const Status status = srq.post_receive({.id = labels[0].id()});
        return {status ? 1u : 0u, status};
      });
    });
    crew.start(2, [&](uint32_t client) {
      Side& side = client == 0 ? one.near : two.near;
      Completion done;
      for (uint32_t left = kPosters * kEach / 2; left != 0 && !crew.over();) {
        if (side.qp.post_send(SendRequest{})) --left;
        side.send_cq.poll({&done, 1});
      }
    });
    crew.start(kPollers, [&](uint32_t) { take_receives(crew, cq, used); });
    EXPECT_TRUE(world.wait([&] { return used.is_complete(); }));
  }
  used.expect_each_once();
  EXPECT_EQ(must(srq.info()).posted, 0u);
}

INSTANTIATE_TEST_SUITE_P(Contexts, SeveralThreads,
                         testing::Values(Mode{"WireInline", false, false, false},
                                         Mode{"WireThreaded", false, true, false},
                                         Mode{"WireThreadedByKey", false, true, true},
                                         Mode{"SocketInline", true, false, false},
                                         Mode{"SocketInlineByKey", true, false, true},
                                         Mode{"SocketThreaded", true, true, false}),
                         [](const auto& mode) { return mode.param.name; });

// --- waiting ---

[[nodiscard]] bool becomes_readable(int fd) { return is_readable(fd, kLongestSleepMs); }

/// \param on sockets, or else on a wire
class SeveralSleepers : public testing::TestWithParam<bool> {
 protected:
  [[nodiscard]] static Config config(bool threaded) {
    Config out = GetParam() ? socket_config(threaded) : loopback_config(threaded);
    out.set("worker.idle=sleep");
    return out;
  }
  static constexpr uint32_t kLast = 0xffffff;  // the number of a message that ends its reader
};

/// Sleeps for messages and takes them one by one, until one comes that ends it.
void sleep_and_serve(Side& side, const Slots& slots, Ledger& ledger, uint32_t last) {
  const int fd = must(side.receive_cq.fd());
  for (;;) {
    Completion done;
    if (side.receive_cq.poll({&done, 1}) == 0) {
      must(side.receive_cq.arm());
      if (side.receive_cq.poll({&done, 1}) == 0) {
        ASSERT_TRUE(becomes_readable(fd)) << "a completion was slept through";
        continue;
      }
    }
    const Label label = slots.label(done.id);
    if (label.number == last) return;
    ledger.note(label);
    must(side.qp.post_receive(slots.receive(done.id)));
  }
}

/// Changes the queue in all ways that are left, while others use it.
void change(const Crew& crew, CompletionQueue& cq) {
  for (uint32_t round = 0; !crew.over(); ++round) {
    must(cq.resize(round % 2 == 0 ? 500 : 100));
    must(cq.moderate({.count = 1 + round % 3, .period = std::chrono::microseconds(100)}));
    EXPECT_LE(must(cq.info()).waiting, 64u);
    std::this_thread::yield();
  }
}

// Four sleepers take one completion at a time. Who is awake takes what another one was woken for,
// and in the end each of them has to be woken.
TEST_P(SeveralSleepers, NoneSleepsThroughACompletionWhileTheQueueIsChanged) {
  constexpr uint32_t kEach = 1500;
  constexpr uint32_t kSleepers = 4;
  World world(config(true));
  const QueuePairOptions options{
      .send_depth = 32, .receive_depth = 32, .receive_wait = kPatience, .several_threads = true};
  Side a(world.left, options, 2 * kEach);
  Side b(world.right, options, 100);
  world.connect(a, b);
  const Slots slots(b.pd, 32);
  for (uint64_t slot = 0; slot < slots.count(); ++slot) {
    must(b.qp.post_receive(slots.receive(slot)));
  }
  Ledger received(2, kEach);
  Ledger sent(2, kEach);
  Crew changing;
  changing.start(1, [&](uint32_t) { change(changing, b.receive_cq); });
  changing.start(1, [&](uint32_t) { reap(changing, a.send_cq, sent); });
  Crew crew;
  crew.start(kSleepers, [&](uint32_t) { sleep_and_serve(b, slots, received, kLast); });
  crew.start(2, [&](uint32_t poster) {
    post_all(crew, poster, kEach,
             [&](std::span<const Label> labels) { return post_messages(a.qp, labels); });
  });
  EXPECT_TRUE(world.wait([&] { return received.is_complete() && sent.is_complete(); }));
  const Label end{0, 0, kLast};
  SendRequest last;
  last.signaled = false;
  last.inline_data = std::as_bytes(std::span(&end, 1));
  for (uint32_t i = 0; i < kSleepers; ++i) must(a.qp.post_send(last));
  EXPECT_TRUE(world.wait([&] { return crew.have_ended(); }));
  received.expect_each_once();
}

// Of two that sleep, one may take a completion that both were woken for, and arm the queue before
// the other has looked.
TEST_P(SeveralSleepers, TheDescriptorStaysReadableForWhatOneOfThemLeaves) {
  World world(config(true));
  Side a(world.left);
  Side b(world.right, {.several_threads = true}, 64);
  world.connect(a, b);
  for (uint64_t id = 1; id <= 2; ++id) {
    must(b.qp.post_receive(ReceiveRequest{.id = id}));
    must(a.qp.post_send(SendRequest{}));
  }
  ASSERT_TRUE(world.wait([&] { return must(b.receive_cq.info()).waiting == 2; }));
  const int fd = must(b.receive_cq.fd());
  for (uint64_t id = 1; id <= 2; ++id) {
    must(b.receive_cq.arm());
    EXPECT_TRUE(is_readable(fd)) << "there are completions";
    world.expect_done(b.receive_cq, id, 0);
  }
  must(b.receive_cq.arm());
  EXPECT_FALSE(is_readable(fd)) << "there are none";
}

// One thread is the NIC and sleeps until it has something to do; others post and poll.
TEST_P(SeveralSleepers, AnInlineContextIsWokenByThePostsOfOtherThreads) {
  constexpr uint32_t kRounds = 1000;
  World world(config(false));
  Side a(world.left, {.several_threads = true}, 256);
  Side b(world.right, {.several_threads = true}, 256);
  world.connect(a, b);
  std::atomic<bool> over{false};
  Crew crew;
  crew.start(1, [&](uint32_t) {
    for (uint32_t round = 0; round <= kRounds; ++round) {
      over = round == kRounds;
      if (!b.qp.post_receive(ReceiveRequest{}) || !a.qp.post_send(SendRequest{})) return;
      Completion done;
      const auto end = std::chrono::steady_clock::now() + kPatience;
      while (!over && b.receive_cq.poll({&done, 1}) == 0) {
        ASSERT_LT(std::chrono::steady_clock::now(), end) << "the NIC sleeps";
      }
      while (!over && a.send_cq.poll({&done, 1}) == 0) {
        ASSERT_LT(std::chrono::steady_clock::now(), end) << "the NIC sleeps";
      }
    }
  });
  const int fd = must(world.context.fd());
  while (!over) {
    while (!world.context.arm()) world.context.poll();
    // Otherwise the descriptor would be readable for events.
    for (Device* device : {&world.left, &world.right}) EXPECT_FALSE(device->poll_event());
    if (over) break;
    ASSERT_TRUE(becomes_readable(fd)) << "a post was slept through";
    world.context.poll();
  }
}

INSTANTIATE_TEST_SUITE_P(Ports, SeveralSleepers, testing::Bool(),
                         [](const auto& sockets) { return sockets.param ? "Sockets" : "Wire"; });

}  // namespace
}  // namespace rnic::test
