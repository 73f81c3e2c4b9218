// Notification moderation in a model of the machine: a worker with a device's clock and timers, and
// a thread that sleeps on the queue's descriptor. No entry is slept through for longer than the
// moderation's period.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/stamped_ring.hpp"
#include "device/notify_moderator.hpp"
#include "support/long_form.hpp"
#include "support/model_machine.hpp"

namespace rnic::device {
namespace {

using std::chrono::microseconds;
using test::ModelBell;
using test::ModelMachine;
using test::ModelSignal;
using test::ModelWord;

/// What is done wrongly, to see that the model finds it.
enum class Defect : uint8_t {
  None,
  CountsAlone,        // no timer
  CountsFromTheLast,  // each entry begins the period anew
  ForgetsAtChange,    // what was kept back is forgotten when the moderation changes
  ForgetsAtOverrun,   // nobody is told of a lost entry before the period is over
  KeepsTheTimer,      // of the first that was kept back ever: none is set for later ones
  NotifiesFirst,      // the entry is pushed behind the notification
  Oversleeps,         // the worker rests without regard to the timers
  ForgetsUrgency,     // a time-out tells of urgent entries as if they were not
};

constexpr size_t kDepth = 4;  // of the queue: it overruns now and then
constexpr uint32_t kEntries = 12;
constexpr uint32_t kLast = 1000;  // the number of the one that ends the thread
/// How much later than its deadline a timer may fire.
constexpr auto kTick = base::Duration(1 << base::TimerWheel::kTickShift);

NotifyModeration any_moderation(ModelMachine& machine) {
  if (machine.below(4) == 0) return {};
  return {.count = 2 + machine.below(7), .period = microseconds(50 + machine.below(400))};
}

/// A moderator with a defect, which is told of the same as the product's.
template <Defect defect>
class WrongModerator {
 public:
  WrongModerator(const NotifyModeration& how, NotifyTimers& timers) : how_(how), timers_(timers) {}
  void set(const NotifyModeration& how) {
    if (defect != Defect::ForgetsAtChange) tell();
    kept_ = 0;
    deadline_ = base::kNever;
    how_ = how;
  }
  void set_listener(std::unique_ptr<QueueListener> listener) { listener_ = std::move(listener); }
  void added(bool urgent) {
    if (how_.count <= 1) return listener_->added(urgent);
    if (!listener_->awaits(urgent)) return;
    const bool first = defect == Defect::KeepsTheTimer ? !was_set_ : kept_ == 0;
    if (first || defect == Defect::CountsFromTheLast) {
      deadline_ = timers_.clock().now() + how_.period;
      was_set_ = true;
    }
    if (defect != Defect::ForgetsUrgency) kept_urgent_ |= urgent;
    if (++kept_ >= how_.count) tell();
  }
  void tell_of_overrun() {
    if (defect != Defect::ForgetsAtOverrun) tell();
  }
  void on_timers() {
    if (defect != Defect::CountsAlone && timers_.clock().now() >= deadline_) tell();
  }
  [[nodiscard]] base::Now next_deadline() const {
    return defect == Defect::CountsAlone ? base::kNever : deadline_;
  }

 private:
  void tell() {
    deadline_ = base::kNever;
    if (std::exchange(kept_, 0) != 0) listener_->added(std::exchange(kept_urgent_, false));
  }

  NotifyModeration how_;
  NotifyTimers& timers_;
  std::unique_ptr<QueueListener> listener_;
  base::Now deadline_ = base::kNever;
  uint32_t kept_ = 0;
  bool kept_urgent_ = false;
  bool was_set_ = false;
};

/// The product's.
class RightModerator : public NotifyModerator {
 public:
  RightModerator(const NotifyModeration& how, NotifyTimers& timers)
      : NotifyModerator(how, timers), timers_(timers) {}
  void tell_of_overrun() { tell(); }
  void on_timers() { timers_.on_timers(timers_.clock().now()); }
  [[nodiscard]] base::Now next_deadline() const { return timers_.next_deadline(); }

 private:
  NotifyTimers& timers_;
};

/// As verbs::QueueAlarm.
template <typename Word>
class ModelAlarm final : public QueueListener {
 public:
  explicit ModelAlarm(ModelBell<Word>& bell) : bell_(bell) {}
  void added(bool urgent) override { bell_.ring(urgent); }
  [[nodiscard]] bool awaits(bool urgent) const override { return bell_.is_armed_for(urgent); }

 private:
  ModelBell<Word>& bell_;
};

struct Outcome {
  const char* wrong = nullptr;
  uint32_t wakes = 0;
  uint32_t pushed = 0;
};

/// One schedule: a worker that adds entries as time passes, and a thread that takes them.
template <typename Word, typename Moderator, Defect defect>
class Schedule {
 public:
  explicit Schedule(uint64_t seed)
      : machine_(seed),
        timers_(now_),
        how_(any_moderation(machine_)),
        moderator_(how_, timers_),
        kind_(machine_.below(3)) {
    moderator_.set_listener(std::make_unique<ModelAlarm<Word>>(bell_));
    machine_.add([this] { work(); });
    machine_.add([this] { sleep_and_take(); });
  }

  Outcome play() {
    if (!machine_.run()) complain("an entry is slept through for ever");
    if (taken_ != pushed_.size()) complain("an entry was not taken");
    outcome_.pushed = static_cast<uint32_t>(pushed_.size());
    return outcome_;
  }

 private:
  struct Pushed {
    base::Now at;
    base::Duration longest;  // that it may be kept back
    bool urgent;
  };

  void complain(const char* wrong) {
    if (outcome_.wrong == nullptr) outcome_.wrong = wrong;
  }

  // --- the worker ---

  void work() {
    uint32_t tries = 0;
    for (uint32_t left = kEntries; left > 0;) {
      turns_until(now_ + microseconds(machine_.below(200)));
      // A turn adds several at times.
      for (uint32_t more = 1 + machine_.below(4); more > 0 && left > 1; --more, --left) {
        push(left, machine_.below(3) == 0);
      }
      if (machine_.below(8) == 0) moderator_.set(how_ = any_moderation(machine_));
      check();
      // The last one is urgent, so that whoever waits has to be woken for it, and is not lost.
      if (left > 1) continue;
      if (push(kLast, true)) break;
      if (++tries == 10'000) return complain("the queue stays full");
    }
    turns_until(base::kNever);
  }
  /// Rests, and has a turn whenever a timer is due.
  void turns_until(base::Now arrival) {
    for (;;) {
      const bool regards = defect != Defect::Oversleeps;
      const base::Now due = regards ? moderator_.next_deadline() : base::kNever;
      const base::Now next = base::earlier(due, arrival);
      if (next == base::kNever) return;
      now_ = std::max(now_, next);
      machine_.step();
      machine_.let_all_out();
      check();
      timers_.begin(now_);
      moderator_.on_timers();
      if (next == arrival) return;
    }
  }
  /// As device::CompletionQueue::push().
  bool push(uint32_t entry, bool urgent) {
    const Pushed pushed{now_, how_.count > 1 ? how_.period : base::Duration(0), urgent};
    const bool slept = sleeps();
    const uint32_t wakes = outcome_.wakes;
    if (defect == Defect::NotifiesFirst) moderator_.added(urgent);
    pushed_.push_back(pushed);  // before, as it may be taken at once
    const bool fits = ring_.push(entry);
    if (!fits) pushed_.pop_back();
    if (defect != Defect::NotifiesFirst) moderator_.added(urgent);
    if (fits) return true;
    moderator_.tell_of_overrun();
    const bool awaited = urgent || waits_for_ == base::BellFor::Anything;
    if (slept && awaited && sleeps() && outcome_.wakes == wakes) {
      complain("an overrun is slept through");
    }
    return false;
  }
  /// The entries that the sleeping thread waits for have not waited for too long.
  void check() {
    if (!sleeps()) return;
    for (size_t i = taken_; i < pushed_.size(); ++i) {
      const Pushed& entry = pushed_[i];
      if (!entry.urgent && waits_for_ == base::BellFor::Urgent) continue;
      if (now_ > entry.at + entry.longest + kTick) complain("an entry is slept through");
    }
  }
  [[nodiscard]] bool sleeps() const { return asleep_ && !bell_.signal().raised(); }

  // --- the thread of the application ---

  void sleep_and_take() {
    for (;;) {
      if (take()) continue;
      if (is_over_) return;
      waits_for_ = any_kind();
      bell_.arm(waits_for_);
      if (take()) continue;
      asleep_ = true;
      machine_.sleep_until([this] { return bell_.signal().raised(); });
      asleep_ = false;
      ++outcome_.wakes;
    }
  }
  bool take() {
    uint32_t entry = 0;
    if (is_over_ || !ring_.pop(entry)) return false;
    ++taken_;
    is_over_ = entry == kLast;
    return true;
  }
  base::BellFor any_kind() {
    const bool urgent = kind_ == 1 || (kind_ == 2 && machine_.below(2) == 0);
    return urgent ? base::BellFor::Urgent : base::BellFor::Anything;
  }

  ModelMachine machine_;
  base::Now now_ = base::from_nanos(1'000'000);
  NotifyTimers timers_;
  NotifyModeration how_;
  ModelBell<Word> bell_{ModelSignal()};
  base::StampedRing<uint32_t, base::NothingSeldom, test::ModelShared> ring_{kDepth};
  Moderator moderator_;
  std::vector<Pushed> pushed_;
  size_t taken_ = 0;
  const uint32_t
      kind_;  // the thread waits for 0: any entry, 1: urgent ones, 2: now these, now those
  base::BellFor waits_for_ = base::BellFor::Nobody;
  bool asleep_ = false;
  bool is_over_ = false;  // the thread has the last entry
  Outcome outcome_;
};

using Right = Schedule<ModelWord, RightModerator, Defect::None>;

// VERBS-15
TEST(Moderation, NoEntryIsSleptThroughForLongerThanThePeriod) {
  const auto schedules = test::by_form<uint64_t>(50'000, 1'000'000);
  uint64_t wakes = 0;
  uint64_t pushed = 0;
  for (uint64_t seed = 1; seed <= schedules; ++seed) {
    const Outcome outcome = Right(seed).play();
    ASSERT_EQ(outcome.wrong, nullptr) << outcome.wrong << " in schedule " << seed;
    ASSERT_LE(outcome.wakes, 400u) << "schedule " << seed << ": it does not sleep any more";
    wakes += outcome.wakes;
    pushed += outcome.pushed;
  }
  EXPECT_GT(wakes, schedules) << "the thread hardly slept: nothing was tried";
  EXPECT_LT(wakes, pushed / 2) << "nothing was kept back: nothing was tried";
}

template <Defect defect>
bool play_wrong(uint64_t seed) {
  return Schedule<ModelWord, WrongModerator<defect>, defect>(seed).play().wrong == nullptr;
}

// What the defective moderator does else is right.
TEST(Moderation, TheModelFindsNothingWrongWithoutADefect) {
  EXPECT_EQ(test::first_wrong(20'000, play_wrong<Defect::None>), 0u);
}

TEST(Moderation, TheModelFindsWhatIsWrong) {
  struct Planted {
    const char* name;
    bool (*play)(uint64_t seed);
  };
  const auto unfenced = [](uint64_t seed) {
    return Schedule<test::UnfencedWord, RightModerator, Defect::None>(seed).play().wrong == nullptr;
  };
  for (const auto& [name, how] : {
           Planted{"without fences", unfenced},
           Planted{"no timer", play_wrong<Defect::CountsAlone>},
           Planted{"the period counts from the last", play_wrong<Defect::CountsFromTheLast>},
           Planted{"forgotten at a change", play_wrong<Defect::ForgetsAtChange>},
           Planted{"an overrun waits for the period", play_wrong<Defect::ForgetsAtOverrun>},
           Planted{"a timer for the first alone", play_wrong<Defect::KeepsTheTimer>},
           Planted{"a notification before its entry", play_wrong<Defect::NotifiesFirst>},
           Planted{"the worker oversleeps", play_wrong<Defect::Oversleeps>},
           Planted{"urgent entries are told of as others", play_wrong<Defect::ForgetsUrgency>},
       }) {
    EXPECT_NE(test::first_wrong(20'000, how), 0u) << name;
  }
}

}  // namespace
}  // namespace rnic::device
