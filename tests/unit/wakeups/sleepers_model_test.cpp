// Several threads that take from one completion queue and sleep on its descriptor, in a model of
// the machine: the queue's ring, the bell, and the lock above both.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "base/bell.hpp"
#include "base/stamped_ring.hpp"
#include "support/long_form.hpp"
#include "support/model_machine.hpp"
#include "verbs/queue_lock.hpp"

namespace rnic::verbs {
namespace {

using test::ModelBell;
using test::ModelLock;
using test::ModelMachine;
using test::ModelSignal;
using test::ModelWord;

/// What is done wrongly, to see that the model finds it.
enum class Defect : uint8_t {
  None,
  ForgetsOthers,      // who arms does not think of completions that it leaves
  LooksBeforeArming,  // it has looked for them before its arming cleared the descriptor
  TakesUnlocked,      // two threads take at once
  SleepsAtOnce,       // no look between the arming and the sleep
  RingsFirst,         // the worker rings before the push
};

constexpr uint32_t kEntries = 4;   // that any thread may take
constexpr uint32_t kSleepers = 3;  // each takes one more entry, and ends with it
constexpr uint32_t kEnd = 1000;    // the number of such an entry

/// One schedule: a worker, threads that sleep, and in some of them a thread that only polls.
template <typename Word, Defect defect>
class Schedule {
 public:
  explicit Schedule(uint64_t seed) : machine_(seed) {
    machine_.add([this] { push_all(); });
    for (uint32_t i = 0; i < kSleepers; ++i) machine_.add([this] { sleep_and_take(); });
    if (seed % 3 == 0) machine_.add([this] { poll_a_while(); });
  }

  /// \return whether each entry was taken, once
  bool play() {
    const bool all_ended = machine_.run();
    for (const uint32_t times : taken_) {
      if (times != 1) return false;
    }
    return all_ended && ends_ == kSleepers;
  }
  [[nodiscard]] uint32_t wakes() const { return wakes_; }

 private:
  using Ring = base::StampedRing<uint32_t, base::NothingSeldom, test::ModelShared>;

  void push_all() {
    for (uint32_t i = 0; i < kEntries + kSleepers; ++i) {
      if (defect == Defect::RingsFirst) bell_.ring();
      ring_.push(i < kEntries ? i : kEnd);
      if (defect != Defect::RingsFirst) bell_.ring();
    }
  }

  /// As CompletionQueue::poll().
  bool take(uint32_t& entry) {
    ModelLock* const lock = defect == Defect::TakesUnlocked ? nullptr : &lock_;
    return alone(lock, [&] { return ring_.pop(entry); });
  }
  /// As CompletionQueue::arm().
  void arm() {
    alone(&lock_, [&] {
      if (defect == Defect::ForgetsOthers || defect == Defect::SleepsAtOnce) return bell_.arm();
      const bool before = defect == Defect::LooksBeforeArming && !ring_.empty();
      bell_.arm_among_several(base::BellFor::Anything, [&] {
        return defect == Defect::LooksBeforeArming ? before : !ring_.empty();
      });
    });
  }
  /// \return whether the thread goes on
  bool note(uint32_t entry) {
    if (entry == kEnd) ++ends_;
    if (entry < kEntries) ++taken_[entry];
    return entry != kEnd;
  }

  void sleep_and_take() {
    for (uint32_t entry = 0;;) {
      if (take(entry)) {
        if (!note(entry)) return;
        continue;
      }
      arm();
      if (defect != Defect::SleepsAtOnce && take(entry)) {
        if (!note(entry)) return;
        continue;
      }
      machine_.sleep_until([this] { return bell_.signal().raised(); });
      ++wakes_;
    }
  }
  /// Takes entries that others were woken for, but none of those that end them.
  void poll_a_while() {
    for (int i = 0; i < 20; ++i) {
      lock_.hold([&] {
        const uint32_t* const next = ring_.front();
        uint32_t entry = 0;
        if (next != nullptr && *next != kEnd && ring_.pop(entry)) note(entry);
      });
    }
  }

  ModelMachine machine_;
  Ring ring_{kEntries + kSleepers};
  ModelLock lock_;
  ModelBell<Word> bell_{ModelSignal()};
  std::array<uint32_t, kEntries> taken_{};
  uint32_t ends_ = 0;
  uint32_t wakes_ = 0;
};

// VERBS-15, VERBS-28
TEST(Sleepers, NoneSleepsForEverWhileTheQueueHasEntries) {
  const auto schedules = test::by_form<uint64_t>(50'000, 1'000'000);
  uint64_t wakes = 0;
  for (uint64_t seed = 1; seed <= schedules; ++seed) {
    Schedule<ModelWord, Defect::None> schedule(seed);
    ASSERT_TRUE(schedule.play()) << "schedule " << seed;
    ASSERT_LE(schedule.wakes(), 400u) << "schedule " << seed << ": they do not sleep any more";
    wakes += schedule.wakes();
  }
  EXPECT_GT(wakes, schedules) << "they hardly slept: nothing was tried";
}

template <typename Word, Defect defect>
bool play(uint64_t seed) {
  return Schedule<Word, defect>(seed).play();
}

TEST(Sleepers, TheModelFindsWhatIsWrong) {
  struct Planted {
    const char* name;
    bool (*play)(uint64_t seed);
  };
  for (const auto& [name, how] : {
           Planted{"without fences", play<test::UnfencedWord, Defect::None>},
           Planted{"others are forgotten", play<ModelWord, Defect::ForgetsOthers>},
           Planted{"others are looked for too early", play<ModelWord, Defect::LooksBeforeArming>},
           Planted{"taken without the lock", play<ModelWord, Defect::TakesUnlocked>},
           Planted{"no look behind the arming", play<ModelWord, Defect::SleepsAtOnce>},
           Planted{"a ring before its entry", play<ModelWord, Defect::RingsFirst>},
       }) {
    EXPECT_NE(test::first_wrong(20'000, how), 0u) << name;
  }
}

}  // namespace
}  // namespace rnic::verbs
