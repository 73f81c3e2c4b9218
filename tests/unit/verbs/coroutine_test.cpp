// Coroutines that wait for work requests.

#include "rnic/coroutine.hpp"

#include <coroutine>
#include <cstring>
#include <exception>

#include "verbs_pair.hpp"

namespace rnic::test {
namespace {

using coroutine::Dispatcher;
using coroutine::Operations;

/// Begins at once; its frame goes with it.
class Task {
 public:
  struct promise_type {
    Task get_return_object() {
      return Task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (handle_) handle_.destroy();
  }
  [[nodiscard]] bool done() const { return handle_.done(); }

 private:
  std::coroutine_handle<promise_type> handle_;
};

struct Ends {
  World world;
  Side a{world.left};
  Side b{world.right};
  Dispatcher a_sends{a.send_cq};
  Dispatcher a_receives{a.receive_cq};
  Dispatcher b_sends{b.send_cq};
  Dispatcher b_receives{b.receive_cq};
  Operations at_a{a.qp, a_sends, a_receives};
  Operations at_b{b.qp, b_sends, b_receives};

  Ends() { world.connect(a, b); }
  void dispatch() {
    for (Dispatcher* one : {&a_sends, &a_receives, &b_sends, &b_receives}) one->dispatch();
  }
  [[nodiscard]] bool run(const std::function<bool()>& done) {
    return world.wait([&] {
      dispatch();
      return done();
    });
  }
};

Task move_octets(Operations operations, Memory& near, Memory& far, std::vector<Completion>& out) {
  const RemoteAddress there{far.region.stag(), far.region.address()};
  out.push_back(must(co_await operations.write(near.all(), there)));
  std::ranges::fill(near.data, uint8_t{0});
  out.push_back(must(co_await operations.read(near.all(), there)));
  out.push_back(must(co_await operations.fetch_add(there, 1)));
  out.push_back(must(co_await operations.compare_swap(there, 7, 9)));
}

TEST(Coroutine, WritesReadsAndAtomicsFollowEachOther) {
  Ends ends;
  Memory near(ends.a.pd, octets(4096, 1), Access::LocalWrite);
  Memory far(ends.b.pd, std::vector<uint8_t>(4096), kEverything | Access::RemoteAtomic);
  const std::vector<uint8_t> first = near.data;
  std::vector<Completion> done;
  const Task task = move_octets(ends.at_a, near, far, done);
  EXPECT_FALSE(task.done());
  EXPECT_EQ(ends.a_sends.waiting(), 1u);
  ASSERT_TRUE(ends.run([&] { return task.done(); }));
  ASSERT_EQ(done.size(), 4u);
  const Opcode order[] = {Opcode::Write, Opcode::Read, Opcode::FetchAdd, Opcode::CompareSwap};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(done[i].opcode, order[i]);
    EXPECT_EQ(done[i].status, CompletionStatus::Success) << describe(done[i]);
  }
  EXPECT_EQ(near.data, first) << "the Read has brought back what was written";
  uint64_t before = 0;
  std::memcpy(&before, first.data(), sizeof before);
  EXPECT_EQ(done[2].original, before);
  EXPECT_EQ(done[3].original, before + 1);
  EXPECT_EQ(ends.a_sends.waiting(), 0u);
}

/// One of several of a server, so that a receive stands while another answers.
Task echo(Operations operations, Memory& buffer) {
  for (;;) {
    const Completion got = must(co_await operations.receive(buffer.all()));
    if (got.status != CompletionStatus::Success) co_return;
    must(co_await operations.send(buffer.region.sge(0, got.length)));
  }
}

Task ask(Operations operations, Memory& sent, Memory& back, int rounds, int& good) {
  for (int i = 0; i < rounds; ++i) {
    std::ranges::fill(sent.data, static_cast<uint8_t>(i + 1));
    coroutine::Operation answer = operations.receive(back.all());  // before it can come
    must(co_await operations.send(sent.region.sge(0, static_cast<uint32_t>(i))));
    const Completion got = must(co_await answer);
    if (got.length == static_cast<uint32_t>(i) &&
        std::equal(sent.data.begin(), sent.data.begin() + i, back.data.begin())) {
      ++good;
    }
  }
}

TEST(Coroutine, TwoTalkWithEachOther) {
  Ends ends;
  std::deque<Memory> of_b;
  std::vector<Task> server;
  server.reserve(4);
  for (int i = 0; i < 4; ++i) {
    of_b.emplace_back(ends.b.pd, std::vector<uint8_t>(256), Access::LocalWrite);
    server.push_back(echo(ends.at_b, of_b.back()));
  }
  Memory sent(ends.a.pd, std::vector<uint8_t>(256), Access::LocalWrite);
  Memory back(ends.a.pd, std::vector<uint8_t>(256), Access::LocalWrite);
  int good = 0;
  const Task client = ask(ends.at_a, sent, back, 100, good);
  ASSERT_TRUE(ends.run([&] { return client.done(); }));
  EXPECT_EQ(good, 100);
  must(ends.a.qp.disconnect());
  ASSERT_TRUE(ends.run([&] { return std::ranges::all_of(server, &Task::done); }));
}

Task add(Operations operations, RemoteAddress there, uint64_t& before) {
  before = must(co_await operations.fetch_add(there, 1)).original;
}

TEST(Coroutine, ManyWaitAtOnceAndEachGetsItsOwn) {
  Ends ends;
  Memory far(ends.b.pd, std::vector<uint8_t>(8), kEverything | Access::RemoteAtomic);
  const RemoteAddress there{far.region.stag(), far.region.address()};
  for (int round = 0; round < 3; ++round) {
    std::vector<uint64_t> before(64);
    std::vector<Task> all;
    all.reserve(before.size());
    for (uint64_t& one : before) all.push_back(add(ends.at_a, there, one));
    EXPECT_EQ(ends.a_sends.waiting(), 64u);
    ASSERT_TRUE(ends.run([&] { return ends.a_sends.waiting() == 0; }));
    for (uint64_t i = 0; i < 64; ++i) {
      EXPECT_TRUE(all[i].done());
      EXPECT_EQ(before[i], static_cast<uint64_t>(round) * 64 + i);
    }
  }
}

Task answer_of(Operations operations, SendRequest request, std::optional<Result<Completion>>& out) {
  out = co_await operations.carry_out(request);
}

TEST(Coroutine, WhatIsNotTakenIsAnsweredWithoutWaiting) {
  Ends ends;
  SendRequest wrong;
  const std::vector<std::byte> too_much(kMaxInline + 1);
  wrong.inline_data = too_much;
  std::optional<Result<Completion>> answer;
  const Task task = answer_of(ends.at_a, wrong, answer);
  ASSERT_TRUE(task.done());
  ASSERT_TRUE(answer && !*answer);
  EXPECT_EQ(answer->error().code, ErrorCode::InvalidArgument);
  EXPECT_EQ(ends.a_sends.waiting(), 0u);
}

TEST(Coroutine, WhatIsFlushedIsResumed) {
  Ends ends;
  std::optional<Result<Completion>> answer;
  Memory sink(ends.a.pd, std::vector<uint8_t>(8), Access::LocalWrite);
  int good = 0;
  const Task waits = ask(ends.at_a, sink, sink, 1, good);
  ends.b.qp = QueuePair();
  ASSERT_TRUE(ends.run([&] { return ends.a.qp.state() == QueuePairState::Error; }));
  SendRequest late;
  late.signaled = false;
  const Task task = answer_of(ends.at_a, late, answer);
  ASSERT_TRUE(ends.run([&] { return task.done() && waits.done(); }));
  ASSERT_TRUE(answer && *answer);
  EXPECT_EQ((*answer)->status, CompletionStatus::Flushed) << "it was posted signalled";
}

// What is under way when the queue pair ends never completes; a move to Error before completes it.
TEST(Coroutine, OneWhoseQueuePairIsDestroyedStaysSuspendedUnlessItWasFlushedBefore) {
  for (const bool flushed : {false, true}) {
    Ends ends;
    Memory sink(ends.a.pd, std::vector<uint8_t>(8), Access::LocalWrite);
    int good = 0;
    const Task waits = ask(ends.at_a, sink, sink, 1, good);
    ASSERT_EQ(ends.a_receives.waiting(), 1u);
    const auto quiet = [&] { return ends.a_receives.waiting() == 0; };
    if (flushed) {
      must(ends.a.qp.modify({.state = QueuePairState::Error}));
      ASSERT_TRUE(ends.run(quiet));
    }
    must(ends.a.qp.destroy());
    ASSERT_TRUE(ends.run([&] { return ends.b.qp.state() == QueuePairState::Error; }));
    ends.dispatch();
    EXPECT_EQ(waits.done(), flushed);
    EXPECT_EQ(quiet(), flushed);
  }
}

TEST(Coroutine, OneThatIsDestroyedWhileItWaitsIsNotResumed) {
  Ends ends;
  Memory far(ends.b.pd, std::vector<uint8_t>(8), kEverything | Access::RemoteAtomic);
  const RemoteAddress there{far.region.stag(), far.region.address()};
  uint64_t never = 99;
  { const Task gone = add(ends.at_a, there, never); }
  EXPECT_EQ(ends.a_sends.waiting(), 0u);
  uint64_t before = 99;
  const Task stays = add(ends.at_a, there, before);  // in the place of the one that is gone
  ASSERT_TRUE(ends.run([&] { return stays.done(); }));
  EXPECT_EQ(never, 99u);
  EXPECT_EQ(before, 1u) << "the request of the one that is gone was carried out all the same";
  EXPECT_EQ(ends.a_sends.unclaimed(), 1u);
}

TEST(Coroutine, AnyExecutorResumes) {
  Ends ends;
  Memory far(ends.b.pd, std::vector<uint8_t>(8), kEverything | Access::RemoteAtomic);
  uint64_t before = 99;
  const Task task = add(ends.at_a, {far.region.stag(), far.region.address()}, before);
  std::vector<std::coroutine_handle<>> ready;
  const auto later = [&ready](std::coroutine_handle<> handle) { ready.push_back(handle); };
  ASSERT_TRUE(ends.world.wait([&] {
    ends.a_sends.dispatch(later);
    return !ready.empty();
  }));
  EXPECT_FALSE(task.done());
  EXPECT_EQ(before, 99u);
  ready.front().resume();
  EXPECT_TRUE(task.done());
  EXPECT_EQ(before, 0u);
}

TEST(Coroutine, RequestsOfTheApplicationsOwnAreToldApart) {
  Ends ends;
  Memory far(ends.b.pd, std::vector<uint8_t>(8), kEverything | Access::RemoteAtomic);
  const RemoteAddress there{far.region.stag(), far.region.address()};
  uint64_t before = 99;
  const Task task = add(ends.at_a, there, before);
  for (const uint64_t id : {uint64_t{0}, uint64_t{1}, uint64_t{UINT32_MAX}}) {
    must(ends.a.qp.post_fetch_add(id, there, 1));
  }
  int own = 0;
  ASSERT_TRUE(ends.world.wait([&] {
    Completion done;
    while (ends.a.send_cq.poll({&done, 1}) == 1) {
      const auto at_once = [](std::coroutine_handle<> handle) { handle.resume(); };
      if (!ends.a_sends.resume(done, at_once)) ++own;
    }
    return own == 3;
  }));
  EXPECT_TRUE(task.done());
}

}  // namespace
}  // namespace rnic::test
