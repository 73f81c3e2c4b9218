// A worker that sleeps, pauses and drives, and threads that post, call, poll and fall asleep, in a
// model of the machine: the helm, the standby, the pauses and the bell are the product's. While
// everybody sleeps nothing is left to be done for longer than a pause.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>

#include "base/time.hpp"
#include "support/long_form.hpp"
#include "support/model_machine.hpp"
#include "verbs/helm.hpp"
#include "verbs/pauses.hpp"
#include "verbs/standby.hpp"

namespace rnic::verbs::standing {
namespace {

using std::chrono::microseconds;
using test::ModelAtomic;
using test::ModelBell;
using test::ModelLock;
using test::ModelMachine;
using test::ModelMutex;
using test::ModelSignal;
using test::ModelWord;

/// What is done wrongly, to see that the model finds it.
enum class Defect : uint8_t {
  None,
  KeepsNoDeadline,    // who has driven looks at no deadline
  LeavesTheRest,      // who has driven wakes nobody for what is left over
  PausesForEver,      // the worker pauses however long ago another thread has driven
  PausesDeaf,         // no bell ends a pause
  PausesAgain,        // a pause that the bell has ended is followed by another one
  TakesOverUnheard,   // a thread that falls asleep does not end a pause
  TakesOverOnce,      // its last look takes back that it has
  PostsUnheard,       // who posts and cannot drive wakes nobody
  LooksBeforeArming,  // the worker has looked for work before it arms the bell
  ForgetsCalls,       // the worker sleeps without a look for calls
  LeavesForEver,      // a worker that has given way pauses however long nobody has driven
};

/// The longest that work is left, and nobody has a turn, where a thread has polled and then sleeps
/// in its own way: its latest poll may be recent still when the worker begins its longest pause.
constexpr base::Duration kBound = Standby::kRecent + Standby::kLongest;
constexpr uint32_t kMostThreads = 3;  // of the application
constexpr uint32_t kActs = 4;         // of each
constexpr uint32_t kFrames = 10;      // that come to the port
constexpr uint32_t kMostPauses = 1000;

/// A mutex that excludes nobody.
class NoMutex {
 public:
  void lock() {}
  void unlock() {}
  [[nodiscard]] bool try_lock() { return true; }
};

struct Outcome {
  const char* wrong = nullptr;
  uint32_t sleeps = 0;  // of the worker
  uint32_t pauses = 0;
  uint32_t times_away = 0;  // that the worker gave way
  uint32_t turns_of_others = 0;
};

/// One schedule. Time passes while everybody sleeps, and only then.
template <typename Word, template <typename> typename Atomic, typename Mutex, Defect defect>
class Schedule {
 public:
  explicit Schedule(uint64_t seed) : machine_(seed), threads_(1 + machine_.below(kMostThreads)) {
    ends_.fill(base::kNever);
    machine_.set_clock([this] { return pass_time(); });
    machine_.add([this] { work(); });
    machine_.add([this] { bring_frames(); });
    for (uint32_t id = 0; id < threads_; ++id) machine_.add([this, id] { use(id); });
  }

  Outcome play() {
    if (!machine_.run()) complain("work is left for ever");
    return outcome_;
  }

 private:
  /// Those that may sleep: the worker, the peer, and behind them the threads of the application.
  static constexpr size_t kWorker = 0, kPeer = 1, kFirst = 2;

  /// What one thread of the application has to do with the worker.
  struct User {
    Atomic<uint64_t> doorbell{0};  // posts so far
    uint64_t posted = 0;           // the same number, which the thread knows
    uint64_t served = 0;           // belongs to whoever has the helm
    std::deque<base::Now> waiting;  // when that was posted which is not served
    bool called = false;           // a call of it waits for the worker
    uint32_t completions = 0;      // that it has not polled
    bool armed = false;            // it sleeps, and has said so
  };

  void complain(const char* wrong) {
    if (outcome_.wrong == nullptr) outcome_.wrong = wrong;
  }

  // --- time ---

  template <typename Woken>
  void sleep_until(size_t who, base::Now end, Woken woken) {
    ends_[who] = end;
    machine_.sleep_until([this, who, woken] { return now_ >= ends_[who] || woken(); });
    ends_[who] = base::kNever;
  }
  void sleep_for(size_t who, uint32_t most) {
    sleep_until(who, now_ + microseconds(machine_.below(most)), [] { return false; });
  }
  /// Everybody sleeps until the first of them wakes, or the sleeper's timer fires.
  bool pass_time() {
    base::Now next = base::kNever;
    for (const base::Now end : ends_) next = base::earlier(next, end);
    if (timer_at_ > now_) next = base::earlier(next, timer_at_);
    if (next == base::kNever) return false;
    check_until(next);
    now_ = next;
    return true;
  }
  /// Nobody does anything before `next`.
  void check_until(base::Now next) {
    const auto is_late = [&](base::Now since) {
      return since != base::kNever && next > std::max(since, turned_at_) + kBound;
    };
    for (uint32_t id = 0; id < threads_; ++id) {
      const User& user = users_[id];
      if (user.called) complain("a call is slept through");
      for (const base::Now at : user.waiting) {
        if (is_late(at)) complain("a post is slept through");
      }
    }
    const bool frames = !frames_.empty();
    if (frames && is_late(frames_.front())) complain("a frame is slept through");
    if (is_late(timer_)) complain("a deadline is slept through");
    // Nobody polls any more, and the worker knows.
    const bool all_armed = threads_ == 1 && users_[0].armed;
    if (all_armed && !users_[0].waiting.empty()) {
      complain("a post is left by a worker that was called for");
    }
    if (all_armed && frames) complain("a frame is left by a worker that was called for");
    if (all_armed && next > timer_) complain("a deadline is left by a worker that was called for");
  }

  // --- the devices, driven by whoever has the helm ---

  /// \return what was served
  uint32_t turn() {
    if (drives_) complain("two threads drive at once");
    drives_ = true;
    turned_at_ = now_;
    machine_.step();
    uint32_t served = 0;
    for (User& user : users_) {
      const uint64_t posted = user.doorbell.load(std::memory_order_acquire);
      for (; user.served != posted; ++user.served, ++served) user.waiting.pop_front();
    }
    for (uint32_t most = 1 + machine_.below(3); most > 0 && !frames_.empty(); --most) {
      frames_.pop_front();
      ++users_[machine_.below(threads_)].completions;
      ++served;
    }
    if (timer_ <= now_) {
      timer_ = base::kNever;
      ++served;
    }
    // What is served has something done later, or at once: there is a limit to one turn.
    if (served != 0 && plans_left_ > 0 && machine_.below(2) == 0) {
      --plans_left_;
      const uint32_t later = machine_.below(3) == 0 ? 0 : machine_.below(4000);
      timer_ = base::earlier(timer_, now_ + microseconds(later));
    }
    machine_.step();
    drives_ = false;
    return served;
  }
  [[nodiscard]] base::Now next_deadline() const {
    for (const User& user : users_) {
      if (user.doorbell.load(std::memory_order_acquire) != user.served) return base::Now{};
    }
    return timer_;
  }
  void bring_frames() {
    for (uint32_t left = kFrames; left > 0; --left) {
      switch (machine_.below(4)) {
        case 0: break;
        case 1: sleep_for(kPeer, 60); break;
        case 2: sleep_for(kPeer, 600); break;
        case 3:  // just when somebody looks for the last time
          sleep_until(kPeer, now_ + microseconds(1000), [this] { return looking_ != 0; });
          break;
      }
      machine_.step();
      frames_.push_back(now_);
    }
    all_brought_ = true;
  }

  // --- as verbs::Sleeper ---

  bool arm(base::Now now) {
    if (defect == Defect::LooksBeforeArming) deadline_ = next_deadline();
    bell_.arm();
    if (defect != Defect::LooksBeforeArming) deadline_ = next_deadline();
    return deadline_ > now;
  }
  [[nodiscard]] base::Now begin_sleep() {
    timer_at_ = base::kNever;
    return deadline_;
  }
  void keep_deadline(base::Now now) {
    if (defect == Defect::KeepsNoDeadline) return;
    const base::Now next = next_deadline();
    if (next <= now) {
      if (defect != Defect::LeavesTheRest) bell_.ring();
    } else if (next < deadline_) {
      deadline_ = timer_at_ = next;
    }
  }

  // --- as verbs::Worker, in its own thread ---

  void work() {
    helm_.take();
    while (!stop_.load(std::memory_order_relaxed)) {
      const base::Now now = now_;
      const bool called = serve_calls();
      const bool worked = turn() != 0;
      standby_.drove(worked);
      if (gives_way()) continue;
      // It looks for work for a while before it sleeps.
      if (!called && !worked && machine_.below(3) != 0) sleep(now);
    }
    serve_calls();
    helm_.leave();
  }
  bool serve_calls() {
    if (!has_calls_.load(std::memory_order_acquire)) return false;
    lock_.hold([this] {
      has_calls_.store(false, std::memory_order_relaxed);
      for (User& user : users_) user.called = false;
    });
    return true;
  }
  void sleep(base::Now now) {
    const bool nothing = arm(now);
    const bool looks = defect != Defect::ForgetsCalls;
    const bool called = looks && has_calls_.load(std::memory_order_relaxed);
    if (nothing && !called && !stop_.load()) {
      const base::Now until = begin_sleep();
      helm_.leave();
      sleep_until(kWorker, until, [this] {
        return bell_.signal().raised() || !frames_.empty() || timer_at_ <= now_;
      });
      ++outcome_.sleeps;
      stand_by();
      helm_.take();
    }
    bell_.disarm();
  }
  bool gives_way() {
    if (!standby_.gives_way(now_, pauses_.vain_looks())) return false;
    pauses_.forget_looks();
    static_cast<void>(arm(now_));
    if (!has_calls_.load(std::memory_order_relaxed) && !stop_.load()) {
      static_cast<void>(begin_sleep());
      driven_at_.store(base::nanos(now_), std::memory_order_relaxed);
      ++outcome_.times_away;
      is_away_ = defect == Defect::LeavesForEver;
      helm_.leave();
      stand_by();
      helm_.take();
      is_away_ = false;
      standby_.came_back(now_);
    }
    bell_.disarm();
    return true;
  }
  void stand_by() {
    while (bell_.is_armed()) {
      const base::Now driven_at = base::from_nanos(driven_at_.load(std::memory_order_relaxed));
      const bool ever = driven_at != base::Now();
      const bool for_ever = defect == Defect::PausesForEver && ever;
      const base::Duration pause = standby_.next(now_, for_ever || is_away_ ? now_ : driven_at);
      if (pause == base::Duration(0)) return;
      if (!pauses_.begin()) break;
      if (++outcome_.pauses >= kMostPauses) {
        complain("the worker does not sleep in its pauses");
        break;
      }
      sleep_until(kWorker, now_ + pause,
                  [this] { return defect != Defect::PausesDeaf && bell_.signal().raised(); });
      const bool rung = bell_.signal().raised();
      pauses_.end();
      if (rung && defect != Defect::PausesAgain) break;
    }
    standby_.called();
  }

  // --- as verbs::Worker, in any other thread ---

  void wake() { bell_.ring(); }
  bool drive() {
    if (turn_of_other()) return true;
    pauses_.looked_in_vain();
    return false;
  }
  bool turn_of_other() {
    return at_helm([this] {
      pauses_.driven();
      driven_at_.store(base::nanos(now_), std::memory_order_relaxed);
      ++outcome_.turns_of_others;
    });
  }
  template <typename F>
  bool at_helm(F&& act) {
    const std::unique_lock<Mutex> held = helm_.try_take();
    if (!held) return false;
    const base::Now now = now_;
    act();
    turn();
    if (!pauses_.is_on()) keep_deadline(now);
    return true;
  }
  void take_over() {
    const bool pauses = pauses_.take_over();
    if (defect == Defect::TakesOverOnce) pauses_.driven();
    if (pauses && defect != Defect::TakesOverUnheard) wake();
  }
  void call(uint32_t id) {
    if (at_helm([] {})) return;
    lock_.hold([this, id] {
      users_[id].called = true;
      has_calls_.store(true);
      wake();
    });
    sleep_until(kFirst + id, base::kNever, [this, id] { return !users_[id].called; });
  }

  // --- a thread of the application ---

  enum class Post : uint8_t { Receives, Sends, FirstSends };

  void use(uint32_t id) {
    for (uint32_t left = kActs; left > 0; --left) {
      switch (machine_.below(7)) {
        case 0: post(id, Post::Receives); break;
        case 1: post(id, Post::Sends); break;
        case 2: post(id, Post::FirstSends); break;
        case 3: call(id); break;
        case 4:
        case 5: poll_a_while(id); break;
        case 6: fall_asleep(id); break;
      }
    }
    if (++ended_ < threads_) return;
    sleep_until(kFirst + id, base::kNever, [this] { return is_all_done(); });
    stop_.store(true);
    wake();
  }
  [[nodiscard]] bool is_all_done() const {
    if (!all_brought_ || !frames_.empty() || timer_ != base::kNever) return false;
    for (const User& user : users_) {
      if (user.posted != user.served) return false;
    }
    return true;
  }
  void post(uint32_t id, Post what) {
    User& user = users_[id];
    const bool patient = what == Post::Receives;
    user.waiting.push_back(now_);
    user.doorbell.store(++user.posted, std::memory_order_release);
    // As Worker::posted(). The clock, and what was posted before, say yes or no.
    const bool at_once = !pauses_.is_on() || machine_.below(2) == 0;
    if (what == Post::FirstSends && at_once && turn_of_other()) return;
    Word::fence();
    if (pauses_.is_on() && (patient || machine_.below(2) == 0 || turn_of_other())) return;
    if (defect != Defect::PostsUnheard || what != Post::FirstSends) bell_.ring_unfenced();
  }
  /// As CompletionQueue::poll().
  bool poll(uint32_t id) {
    if (take(id)) return true;
    return drive() && take(id);
  }
  bool take(uint32_t id) { return std::exchange(users_[id].completions, 0) != 0; }
  /// It polls again and again, and then does something else for a while, of which nobody knows.
  void poll_a_while(uint32_t id) {
    for (uint32_t left = 1 + machine_.below(8); left > 0; --left) {
      // So many times that a worker which drives meanwhile gives way.
      const bool in_vain = !poll(id) && machine_.below(2) == 0;
      for (uint32_t i = 0; in_vain && i < Standby::kFewest; ++i) pauses_.looked_in_vain();
      sleep_for(kFirst + id, machine_.below(8) == 0 ? 3000 : 60);
    }
  }
  /// As a thread that has armed a completion queue, and looks once more.
  void fall_asleep(uint32_t id) {
    poll(id);
    ++looking_;
    take_over();
    const bool found = machine_.below(2) == 0 ? poll(id) : take(id);
    --looking_;
    if (found) return;
    users_[id].armed = true;
    sleep_until(kFirst + id, now_ + microseconds(machine_.below(5000)),
                [this, id] { return users_[id].completions != 0; });
    users_[id].armed = false;
  }

  ModelMachine machine_;
  const uint32_t threads_;
  base::Now now_{std::chrono::seconds(1)};
  std::array<base::Now, kFirst + kMostThreads> ends_;  // when each wakes by itself
  std::array<User, kMostThreads> users_;
  uint32_t looking_ = 0;  // threads that are about to sleep
  uint32_t ended_ = 0;
  Outcome outcome_;

  // The devices.
  std::deque<base::Now> frames_;  // in the port, by the times when they came
  bool all_brought_ = false;
  base::Now timer_ = base::kNever;
  uint32_t plans_left_ = 8;
  base::Now turned_at_ = now_;  // the latest turn
  bool drives_ = false;

  // The sleeper.
  ModelBell<Word> bell_{ModelSignal()};
  base::Now deadline_ = base::kNever;
  base::Now timer_at_ = base::kNever;

  // The worker.
  Standby standby_;
  bool is_away_ = false;  // by Defect::LeavesForEver
  HelmOver<Mutex, Atomic<bool>> helm_;
  PausesOver<Atomic> pauses_;
  Atomic<int64_t> driven_at_{0};  // nanoseconds
  ModelLock lock_;
  Atomic<bool> has_calls_{false};
  Atomic<bool> stop_{false};
};

using Right = Schedule<ModelWord, ModelAtomic, ModelMutex, Defect::None>;

// VERBS-15, VERBS-28
TEST(Standing, NoWorkIsLeftForLongerThanAPause) {
  const auto schedules = test::by_form<uint64_t>(20'000, 1'000'000);
  uint64_t sleeps = 0;
  uint64_t pauses = 0;
  uint64_t times_away = 0;
  uint64_t turns_of_others = 0;
  for (uint64_t seed = 1; seed <= schedules; ++seed) {
    const Outcome outcome = Right(seed).play();
    ASSERT_EQ(outcome.wrong, nullptr) << outcome.wrong << " in schedule " << seed;
    sleeps += outcome.sleeps;
    pauses += outcome.pauses;
    times_away += outcome.times_away;
    turns_of_others += outcome.turns_of_others;
  }
  EXPECT_GT(sleeps, schedules) << "the worker hardly slept: nothing was tried";
  EXPECT_GT(pauses, schedules / 2) << "it hardly paused: nothing was tried";
  EXPECT_GT(times_away, schedules / 20) << "it hardly gave way: nothing was tried";
  EXPECT_GT(turns_of_others, schedules) << "nobody else drove: nothing was tried";
}

template <Defect defect>
bool play(uint64_t seed) {
  return Schedule<ModelWord, ModelAtomic, ModelMutex, defect>(seed).play().wrong == nullptr;
}

TEST(Standing, TheModelFindsWhatIsWrong) {
  struct Planted {
    const char* name;
    bool (*play)(uint64_t seed);
  };
  const auto unfenced_bell = [](uint64_t seed) {
    using Wrong = Schedule<test::UnfencedWord, ModelAtomic, ModelMutex, Defect::None>;
    return Wrong(seed).play().wrong == nullptr;
  };
  const auto unfenced_pauses = [](uint64_t seed) {
    using Wrong = Schedule<ModelWord, test::RelaxedAtomic, ModelMutex, Defect::None>;
    return Wrong(seed).play().wrong == nullptr;
  };
  const auto two_at_the_helm = [](uint64_t seed) {
    using Wrong = Schedule<ModelWord, ModelAtomic, NoMutex, Defect::None>;
    return Wrong(seed).play().wrong == nullptr;
  };
  for (const auto& [name, how] : {
           Planted{"a bell without fences", unfenced_bell},
           Planted{"pauses without fences", unfenced_pauses},
           Planted{"two at the helm", two_at_the_helm},
           Planted{"no deadline is kept", play<Defect::KeepsNoDeadline>},
           Planted{"what is left over wakes nobody", play<Defect::LeavesTheRest>},
           Planted{"a pause behind a pause, for ever", play<Defect::PausesForEver>},
           Planted{"a pause that no bell ends", play<Defect::PausesDeaf>},
           Planted{"a pause behind one that the bell has ended", play<Defect::PausesAgain>},
           Planted{"a taking over that ends no pause", play<Defect::TakesOverUnheard>},
           Planted{"a taking over that the last look takes back", play<Defect::TakesOverOnce>},
           Planted{"a post that wakes nobody", play<Defect::PostsUnheard>},
           Planted{"a look before the arming", play<Defect::LooksBeforeArming>},
           Planted{"a sleep without a look for calls", play<Defect::ForgetsCalls>},
           Planted{"a worker that is away for ever", play<Defect::LeavesForEver>},
       }) {
    EXPECT_NE(test::first_wrong(20'000, how), 0u) << name;
  }
}

}  // namespace
}  // namespace rnic::verbs::standing
