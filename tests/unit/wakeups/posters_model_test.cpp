// Threads that post to an inline device while the thread that drives it falls asleep, in a model of
// the machine: the doorbells, the hint that work was added, and the bell of the driver's sleeper.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <utility>

#include "support/long_form.hpp"
#include "support/model_machine.hpp"

namespace rnic::verbs::posters {
namespace {

using test::ModelAtomic;
using test::ModelBell;
using test::ModelMachine;
using test::ModelSignal;
using test::ModelWord;

/// What is done wrongly, to see that the model finds it.
enum class Defect : uint8_t {
  None,
  PostsUnfenced,      // who posts looks for a sleeper before others see its doorbell
  RingsFirst,         // who posts rings before its doorbell
  TrustsTheHint,      // who falls asleep looks at the hint alone, and at no doorbell
  LooksBeforeArming,  // it looks at the doorbells before it arms the bell
  OpensLate,          // its sleeper is known to others only once it was armed
  SettlesSilently,    // it finds work behind the arming, and its descriptor does not tell
  AsksNothing,        // a call of its own leaves no hint
};

constexpr uint32_t kPosters = 3;  // threads that do not drive
constexpr uint32_t kPosts = 4;    // of each

/// One schedule.
template <typename Word, Defect defect>
class Schedule {
 public:
  explicit Schedule(uint64_t seed) : machine_(seed), settles_(machine_.below(2) == 0) {
    machine_.add([this] { drive_and_sleep(); });
    for (uint32_t id = 1; id <= kPosters; ++id) machine_.add([this, id] { post_often(id); });
  }

  /// \return whether everything was served
  bool play() { return machine_.run() && all_served() && !sleeps_over_a_call_; }
  [[nodiscard]] uint32_t wakes() const { return wakes_; }

 private:
  /// A queue pair, of the thread of that number. The first is the driver's own.
  struct Queue {
    ModelAtomic<uint64_t> doorbell{0};  // posts so far
    uint64_t posted = 0;                // the same number, which its thread knows
    uint64_t served = 0;                // the driver's
  };

  [[nodiscard]] bool all_served(size_t from = 0) const {
    for (size_t id = from; id <= kPosters; ++id) {
      if (queues_[id].posted != kPosts || queues_[id].served != kPosts) return false;
    }
    return true;
  }
  void ring_doorbell(Queue& queue) {
    queue.doorbell.store(++queue.posted, std::memory_order_release);
  }

  // --- the device ---

  /// As DeviceRuntime::turn(). A turn may leave doorbells for the next one.
  bool turn() {
    asked_.store(false, std::memory_order_relaxed);
    called_ = false;
    uint64_t served = 0;
    for (Queue& queue : queues_) {
      if (machine_.below(8) == 0) continue;
      const uint64_t posted = queue.doorbell.load(std::memory_order_acquire);
      served += posted - std::exchange(queue.served, posted);
    }
    completions_ += served;
    return served != 0;
  }
  [[nodiscard]] bool doorbell_rings() const {
    for (const Queue& queue : queues_) {
      if (queue.doorbell.load(std::memory_order_acquire) != queue.served) return true;
    }
    return false;
  }

  // --- as verbs::Runtime and its sleeper, in the thread that drives ---

  bool poll() {
    const bool served = turn();
    if (is_open_ && bell_.is_armed() && doorbell_rings()) bell_.ring_unfenced();
    return served;
  }
  void open() {
    if (!std::exchange(is_open_, true) && defect != Defect::OpensLate) tell_of_sleeper();
  }
  void tell_of_sleeper() { to_ring_.store(true, std::memory_order_release); }
  [[nodiscard]] bool is_asked() const { return asked_.load(std::memory_order_relaxed); }
  bool arm() {
    const bool before = defect == Defect::LooksBeforeArming && doorbell_rings();
    bell_.arm();
    bool rings = before;
    if (defect != Defect::LooksBeforeArming && defect != Defect::TrustsTheHint) {
      rings = doorbell_rings();
    }
    const bool nothing = !rings && !is_asked();
    if (!nothing && defect != Defect::SettlesSilently) bell_.ring_unfenced();
    if (defect == Defect::OpensLate) tell_of_sleeper();
    return nothing;
  }
  void settle() {
    if (is_asked()) turn();
    arm();
  }
  /// The driver posts, too.
  void post() {
    if (queues_[0].posted == kPosts) return;
    ring_doorbell(queues_[0]);
    ask_and_disturb();
  }
  /// A call that has something done at the next turn, of which no doorbell tells.
  void call() {
    called_ = true;
    if (defect != Defect::AsksNothing) ask_and_disturb();
  }
  void ask_and_disturb() {
    asked_.store(true, std::memory_order_relaxed);
    if (is_open_) bell_.ring_unfenced();
  }

  /// As a program that polls its context and arms it, or one that arms a completion queue, whose
  /// descriptor tells of the device as well.
  void drive_and_sleep() {
    while (!all_served()) {
      if (poll()) continue;
      // Behind the last post of another thread nobody wakes it for its own.
      if (machine_.below(3) == 0 || all_served(1)) post();
      if (machine_.below(4) == 0) call();
      open();
      if (settles_) {
        completions_ = 0;
        settle();
        if (std::exchange(completions_, 0) != 0) continue;
      } else if (!arm()) {
        continue;
      }
      if (all_served()) return;
      machine_.sleep_until([this] {
        // Nobody else tells of a call.
        sleeps_over_a_call_ |= called_ && !bell_.signal().raised();
        return bell_.signal().raised();
      });
      ++wakes_;
    }
  }

  // --- any other thread ---

  void post_often(uint32_t id) {
    Queue& queue = queues_[id];
    for (uint32_t left = kPosts; left > 0; --left) {
      if (defect == Defect::RingsFirst) disturb_from_any_thread();
      ring_doorbell(queue);
      asked_.store(true, std::memory_order_relaxed);
      if (defect != Defect::RingsFirst) disturb_from_any_thread();
      // Another thread's next post would make a missed one seen.
      if (machine_.below(4) != 0) {
        machine_.sleep_until([&queue] { return queue.served == queue.posted; });
      }
    }
  }
  void disturb_from_any_thread() {
    if (defect != Defect::PostsUnfenced) Word::fence();
    if (to_ring_.load(std::memory_order_acquire)) bell_.ring_unfenced();
  }

  ModelMachine machine_;
  const bool settles_;
  std::array<Queue, 1 + kPosters> queues_;
  ModelAtomic<bool> asked_{true};
  ModelAtomic<bool> to_ring_{false};  // the sleeper is there
  ModelBell<Word> bell_{ModelSignal()};
  bool is_open_ = false;  // the same, for the driver
  bool called_ = false;   // a call waits for a turn
  uint64_t completions_ = 0;
  uint32_t wakes_ = 0;
  bool sleeps_over_a_call_ = false;
};

// VERBS-15, VERBS-28
TEST(Posters, NoDoorbellIsSleptThrough) {
  const auto schedules = test::by_form<uint64_t>(50'000, 1'000'000);
  uint64_t wakes = 0;
  for (uint64_t seed = 1; seed <= schedules; ++seed) {
    Schedule<ModelWord, Defect::None> schedule(seed);
    ASSERT_TRUE(schedule.play()) << "schedule " << seed;
    ASSERT_LE(schedule.wakes(), 400u) << "schedule " << seed << ": it does not sleep any more";
    wakes += schedule.wakes();
  }
  EXPECT_GT(wakes, schedules / 2) << "it hardly slept: nothing was tried";
}

template <typename Word, Defect defect>
bool play(uint64_t seed) {
  return Schedule<Word, defect>(seed).play();
}

TEST(Posters, TheModelFindsWhatIsWrong) {
  struct Planted {
    const char* name;
    bool (*play)(uint64_t seed);
  };
  for (const auto& [name, how] : {
           Planted{"without fences", play<test::UnfencedWord, Defect::None>},
           Planted{"a post without a fence", play<ModelWord, Defect::PostsUnfenced>},
           Planted{"a ring before its doorbell", play<ModelWord, Defect::RingsFirst>},
           Planted{"the hint alone", play<ModelWord, Defect::TrustsTheHint>},
           Planted{"a look before the arming", play<ModelWord, Defect::LooksBeforeArming>},
           Planted{"a sleeper that is known late", play<ModelWord, Defect::OpensLate>},
           Planted{"a descriptor that does not tell", play<ModelWord, Defect::SettlesSilently>},
           Planted{"a call that asks for nothing", play<ModelWord, Defect::AsksNothing>},
       }) {
    EXPECT_NE(test::first_wrong(20'000, how), 0u) << name;
  }
}

}  // namespace
}  // namespace rnic::verbs::posters
