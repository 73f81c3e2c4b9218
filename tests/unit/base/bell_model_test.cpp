// The bell between who adds work and who sleeps, in a model of the machine: a seeded scheduler
// switches at each access to what both share, and stores wait in a buffer of their thread until a
// fence, an exchange or chance lets them out, as on x86.

#include <gtest/gtest.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "base/bell.hpp"
#include "support/long_form.hpp"

namespace rnic::base {
namespace {

/// Threads of a schedule, one of which runs at a time.
class Machine {
 public:
  explicit Machine(uint64_t seed) : random_(seed) { current_machine = this; }
  ~Machine() { current_machine = nullptr; }

  static Machine& here() { return *current_machine; }

  void add(std::function<void()> body) {
    auto thread = std::make_unique<Thread>();
    thread->body = std::move(body);
    thread->weight = 1u << random_() % 6;  // in some schedules one is much slower than another
    thread->stack = stacks()[threads_.size()].data();
    getcontext(&thread->context);
    thread->context.uc_stack.ss_sp = thread->stack;
    thread->context.uc_stack.ss_size = kStack;
    thread->context.uc_link = &scheduler_;
    makecontext(&thread->context, &Machine::run_current, 0);
    threads_.push_back(std::move(thread));
  }
  /// Runs all to their ends. False: all that are left sleep on what nobody will raise.
  bool run() {
    for (Thread* next = choose(); next != nullptr; next = choose()) {
      current_ = next;
      swapcontext(&scheduler_, &current_->context);
    }
    return std::all_of(threads_.begin(), threads_.end(), [](auto& each) { return each->done; });
  }
  /// Another thread may have its turn.
  void step() {
    Thread* const next = choose();
    if (next == current_) return;
    Thread* const last = std::exchange(current_, next);
    swapcontext(&last->context, next == nullptr ? &scheduler_ : &next->context);
  }
  void sleep_until(std::function<bool()> condition) {
    current_->waits_for = std::move(condition);
    step();
  }

  // The memory as the thread that runs sees it.
  uint32_t load(const uint32_t& word) {
    step();
    for (auto store = current_->stores.rbegin(); store != current_->stores.rend(); ++store) {
      if (store->first == &word) return store->second;
    }
    return word;
  }
  void store(uint32_t& word, uint32_t value) {
    step();
    current_->stores.emplace_back(&word, value);
  }
  void fence() {
    step();
    let_out(*current_, current_->stores.size());
  }

 private:
  static constexpr size_t kStack = 64 * 1024;
  struct Thread {
    std::function<void()> body;
    std::function<bool()> waits_for;
    std::deque<std::pair<uint32_t*, uint32_t>> stores;
    ucontext_t context;
    unsigned char* stack = nullptr;
    uint32_t weight = 1;
    bool done = false;
  };
  static std::vector<std::vector<unsigned char>>& stacks() {
    static std::vector<std::vector<unsigned char>> all(3, std::vector<unsigned char>(kStack));
    return all;
  }
  /// nullptr: nobody can go on, not even when all that was stored is seen.
  Thread* choose() {
    for (auto& thread : threads_) {
      if (!thread->stores.empty() && random_() % 4 == 0) let_out(*thread, 1);
    }
    uint32_t weights = 0;
    for (auto& thread : threads_) weights += weight_of(*thread);
    if (weights == 0) {
      for (auto& thread : threads_) let_out(*thread, thread->stores.size());
      for (auto& thread : threads_) weights += weight_of(*thread);
    }
    if (weights == 0) return nullptr;
    uint32_t drawn = random_() % weights;
    for (auto& thread : threads_) {
      const uint32_t weight = weight_of(*thread);
      if (drawn < weight) {
        thread->waits_for = nullptr;
        return thread.get();
      }
      drawn -= weight;
    }
    return nullptr;
  }
  static uint32_t weight_of(const Thread& thread) {
    if (thread.done || (thread.waits_for && !thread.waits_for())) return 0;
    return thread.weight;
  }
  static void run_current() {
    Machine& machine = here();
    machine.current_->body();
    machine.current_->done = true;
  }
  static void let_out(Thread& thread, size_t count) {
    for (; count != 0; --count) {
      *thread.stores.front().first = thread.stores.front().second;
      thread.stores.pop_front();
    }
  }

  inline static Machine* current_machine = nullptr;
  std::minstd_rand random_;
  std::vector<std::unique_ptr<Thread>> threads_;
  Thread* current_ = nullptr;
  ucontext_t scheduler_;
};

class ModelWord {
 public:
  static void fence() { Machine::here().fence(); }
  [[nodiscard]] uint32_t load() const { return Machine::here().load(value_); }
  void store(uint32_t value) { Machine::here().store(value_, value); }
  uint32_t exchange(uint32_t value) {
    Machine::here().fence();
    return std::exchange(value_, value);
  }
  [[nodiscard]] uint32_t settled() const { return value_; }

 private:
  uint32_t value_ = 0;
};
/// What a defect leaves out.
class UnfencedWord : public ModelWord {
 public:
  static void fence() {}
};

/// A system call orders everything.
class ModelSignal {
 public:
  void raise() {
    Machine::here().fence();
    *raised_ = true;
  }
  void clear() {
    Machine::here().fence();
    *raised_ = false;
  }
  [[nodiscard]] bool raised() const { return *raised_; }

 private:
  std::shared_ptr<bool> raised_ = std::make_shared<bool>(false);
};

template <typename Word>
using ModelBell = BellOver<Word, ModelSignal>;

/// Arms behind the look: what comes between is slept through.
class LateBell : public ModelBell<ModelWord> {
 public:
  using ModelBell<ModelWord>::BellOver;
  static constexpr bool kLooksFirst = true;
};
/// Rings before the work is there.
class EarlyBell : public ModelBell<ModelWord> {
 public:
  using ModelBell<ModelWord>::BellOver;
  static constexpr bool kRingsFirst = true;
};

struct Outcome {
  bool all_taken = false;
  uint32_t wakes = 0;
};

constexpr uint32_t kWork = 2;  // pieces that each ringer adds

/// Two threads add work, one takes all of it and sleeps in between.
template <typename SomeBell>
Outcome play(uint64_t seed) {
  constexpr bool looks_first = requires { SomeBell::kLooksFirst; };
  constexpr bool rings_first = requires { SomeBell::kRingsFirst; };
  Machine machine(seed);
  SomeBell bell{ModelSignal()};
  std::array<ModelWord, 2> added;
  Outcome outcome;
  for (ModelWord& mine : added) {
    machine.add([&] {
      for (uint32_t i = 1; i <= kWork; ++i) {
        if (rings_first) bell.ring();
        mine.store(i);
        if (!rings_first) bell.ring();
      }
    });
  }
  machine.add([&] {
    std::array<uint32_t, 2> taken{};
    const auto look = [&] {
      bool found = false;
      for (size_t i = 0; i < added.size(); ++i) {
        const uint32_t there = added[i].load();
        found = found || there != taken[i];
        taken[i] = there;
      }
      return found;
    };
    while (taken[0] + taken[1] != 2 * kWork) {
      if (look()) continue;
      if (looks_first) {
        const bool found = look();
        bell.arm();
        if (found) continue;
      } else {
        bell.arm();
        if (look()) continue;
      }
      Machine::here().sleep_until([&] { return bell.signal().raised(); });
      ++outcome.wakes;
      if (seed % 2 == 0) bell.disarm();
    }
  });
  outcome.all_taken = machine.run();
  return outcome;
}

template <typename SomeBell>
uint32_t sleeps_for_ever(uint64_t schedules) {
  uint32_t lost = 0;
  for (uint64_t seed = 1; seed <= schedules; ++seed) lost += play<SomeBell>(seed).all_taken ? 0 : 1;
  return lost;
}

// VERBS-15
TEST(Bell, NoWorkIsSleptThrough) {
  const auto schedules = test::by_form<uint64_t>(100'000, 1'000'000);
  uint64_t wakes = 0;
  for (uint64_t seed = 1; seed <= schedules; ++seed) {
    const Outcome outcome = play<ModelBell<ModelWord>>(seed);
    ASSERT_TRUE(outcome.all_taken) << "schedule " << seed;
    // A ring wakes once, and again while a slow ringer is between the raising and its word.
    ASSERT_LE(outcome.wakes, 400u) << "schedule " << seed << ": it does not sleep any more";
    wakes += outcome.wakes;
  }
  EXPECT_GT(wakes, schedules / 4) << "nobody ever slept: nothing was tried";
}

/// A signal of one thread.
class PlainSignal {
 public:
  void raise() { *raised_ = true; }
  void clear() { *raised_ = false; }
  [[nodiscard]] bool raised() const { return *raised_; }

 private:
  std::shared_ptr<bool> raised_ = std::make_shared<bool>(false);
};

TEST(Bell, RingsForWhatItWasArmedForAlone) {
  BellOver<BellWord, PlainSignal> bell{PlainSignal()};
  const auto rings = [&](bool urgent) {
    bell.ring(urgent);
    return bell.signal().raised();
  };
  EXPECT_FALSE(rings(true)) << "nobody has armed it";
  bell.arm(BellFor::Urgent);
  EXPECT_FALSE(rings(false));
  EXPECT_TRUE(rings(true));
  bell.arm(BellFor::Urgent);
  EXPECT_FALSE(bell.signal().raised()) << "arming clears";
  bell.arm(BellFor::Anything);
  bell.arm(BellFor::Urgent);
  EXPECT_TRUE(rings(false)) << "who waits for anything goes on doing so";
  bell.arm();
  bell.disarm();
  EXPECT_FALSE(bell.is_armed());
  EXPECT_FALSE(rings(true));
  bell.arm();
  EXPECT_TRUE(bell.is_armed());
  EXPECT_TRUE(rings(false));
}

TEST(Bell, TheModelFindsWhatIsWrong) {
  EXPECT_GT(sleeps_for_ever<ModelBell<UnfencedWord>>(20'000), 0u) << "without fences";
  EXPECT_GT(sleeps_for_ever<LateBell>(20'000), 0u) << "a look before the arming alone";
  EXPECT_GT(sleeps_for_ever<EarlyBell>(20'000), 0u) << "a ring before its work";
}

}  // namespace
}  // namespace rnic::base
