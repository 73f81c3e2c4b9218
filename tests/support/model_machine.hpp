/// \file
/// A model of a machine on which threads share memory, for algorithms that must not lose a wake-up
/// in any order of their steps.
#pragma once

#include <ucontext.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

#include "base/bell.hpp"

namespace rnic::test {

/// Threads of a schedule, one of which runs at a time. A seeded scheduler switches at each access
/// to what they share, and stores wait in a buffer of their thread until a fence, an exchange or
/// chance lets them out, as on x86. One machine at a time.
class ModelMachine {
 public:
  static constexpr size_t kMostThreads = 6;

  explicit ModelMachine(uint64_t seed) : random_(seed) { current_machine = this; }
  ~ModelMachine() { current_machine = nullptr; }
  ModelMachine(const ModelMachine&) = delete;
  ModelMachine& operator=(const ModelMachine&) = delete;

  static ModelMachine& here() { return *current_machine; }

  void add(std::function<void()> body) {
    auto thread = std::make_unique<Thread>();
    thread->body = std::move(body);
    thread->weight = any_weight();
    thread->stack = stacks().at(threads_.size()).data();
    getcontext(&thread->context);
    thread->context.uc_stack.ss_sp = thread->stack;
    thread->context.uc_stack.ss_size = kStack;
    thread->context.uc_link = &scheduler_;
    makecontext(&thread->context, &ModelMachine::run_current, 0);
    threads_.push_back(std::move(thread));
  }
  /// Runs all to their ends. False: all that are left sleep on what nobody will raise.
  bool run() {
    for (Thread* next = choose(); next != nullptr; next = choose()) {
      current_ = next;
      swapcontext(&scheduler_, &current_->context);
    }
    current_ = nullptr;
    return std::all_of(threads_.begin(), threads_.end(), [](auto& each) { return each->done; });
  }
  /// A number for a decision of the thread that runs.
  [[nodiscard]] uint32_t below(uint32_t bound) { return random_() % bound; }
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
  /// \param pass called when nobody can go on: time passes. \return whether somebody may go on then
  void set_clock(std::function<bool()> pass) { pass_time_ = std::move(pass); }
  /// Time passes, of which no store takes a noticeable part to be seen by all.
  void let_all_out() {
    for (auto& thread : threads_) let_out(*thread, thread->stores.size());
  }

  // The memory as the thread that runs sees it.
  uint64_t load(const uint64_t& word) {
    if (current_ == nullptr) return word;  // before the schedule, or behind it
    step();
    for (auto store = current_->stores.rbegin(); store != current_->stores.rend(); ++store) {
      if (store->first == &word) return store->second;
    }
    return word;
  }
  void store(uint64_t& word, uint64_t value) {
    if (current_ == nullptr) {
      word = value;
      return;
    }
    step();
    current_->stores.emplace_back(&word, value);
  }
  void fence() {
    if (current_ == nullptr) return;
    step();
    let_out(*current_, current_->stores.size());
  }

 private:
  static constexpr size_t kStack = 64 * 1024;
  struct Thread {
    std::function<void()> body;
    std::function<bool()> waits_for;
    std::deque<std::pair<uint64_t*, uint64_t>> stores;
    ucontext_t context;
    unsigned char* stack = nullptr;
    uint32_t weight = 1;
    bool done = false;
  };
  static std::vector<std::vector<unsigned char>>& stacks() {
    static std::vector<std::vector<unsigned char>> all(kMostThreads,
                                                       std::vector<unsigned char>(kStack));
    return all;
  }
  /// One thread is much slower than another at times: a system gives the core to whom it likes.
  uint32_t any_weight() { return 1u << random_() % 6; }
  /// nullptr: nobody can go on, not even when all that was stored is seen.
  Thread* choose() {
    if (random_() % 32 == 0) threads_[random_() % threads_.size()]->weight = any_weight();
    for (auto& thread : threads_) {
      if (!thread->stores.empty() && random_() % 4 == 0) let_out(*thread, 1);
    }
    uint32_t weights = weight_of_all();
    if (weights == 0) {
      let_all_out();
      weights = weight_of_all();
    }
    while (weights == 0 && pass_time_ && pass_time_()) weights = weight_of_all();
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
  [[nodiscard]] uint32_t weight_of_all() const {
    uint32_t weights = 0;
    for (auto& thread : threads_) weights += weight_of(*thread);
    return weights;
  }
  static uint32_t weight_of(const Thread& thread) {
    if (thread.done || (thread.waits_for && !thread.waits_for())) return 0;
    return thread.weight;
  }
  static void run_current() {
    ModelMachine& machine = here();
    machine.current_->body();
    machine.current_->done = true;
  }
  static void let_out(Thread& thread, size_t count) {
    for (; count != 0; --count) {
      *thread.stores.front().first = thread.stores.front().second;
      thread.stores.pop_front();
    }
  }

  inline static ModelMachine* current_machine = nullptr;
  std::minstd_rand random_;
  std::vector<std::unique_ptr<Thread>> threads_;
  Thread* current_ = nullptr;  // nullptr: the schedule has not begun, or is over
  ucontext_t scheduler_;
  std::function<bool()> pass_time_;
};

/// As base::BellWord.
class ModelWord {
 public:
  static void fence() { ModelMachine::here().fence(); }
  [[nodiscard]] uint32_t load() const {
    return static_cast<uint32_t>(ModelMachine::here().load(value_));
  }
  void store(uint32_t value) { ModelMachine::here().store(value_, value); }
  uint32_t exchange(uint32_t value) {
    ModelMachine::here().fence();
    return static_cast<uint32_t>(std::exchange(value_, value));
  }

 private:
  uint64_t value_ = 0;
};
/// What a defect leaves out.
class UnfencedWord : public ModelWord {
 public:
  static void fence() {}
};

/// As base::SharedWord, with the orders that an x86 gives in any case.
struct ModelShared {
  static size_t load(const uint64_t& word) { return ModelMachine::here().load(word); }
  static void store(uint64_t& word, size_t value) { ModelMachine::here().store(word, value); }
};

/// As wakeup::EventSignal. A system call orders everything.
class ModelSignal {
 public:
  void raise() {
    ModelMachine::here().fence();
    *raised_ = true;
  }
  void clear() {
    ModelMachine::here().fence();
    *raised_ = false;
  }
  [[nodiscard]] bool raised() const { return *raised_; }

 private:
  std::shared_ptr<bool> raised_ = std::make_shared<bool>(false);
};

/// As std::atomic<T>, with the orders that an x86 gives in any case.
template <typename T>
class ModelAtomic {
 public:
  ModelAtomic() = default;
  explicit ModelAtomic(T value) : value_(static_cast<uint64_t>(value)) {}
  [[nodiscard]] T load(std::memory_order = std::memory_order_seq_cst) const {
    return static_cast<T>(ModelMachine::here().load(value_));
  }
  void store(T value, std::memory_order order = std::memory_order_seq_cst) {
    ModelMachine::here().store(value_, static_cast<uint64_t>(value));
    if (order == std::memory_order_seq_cst) ModelMachine::here().fence();
  }
  bool compare_exchange_strong(T& expected, T desired) {
    ModelMachine::here().fence();
    const T before = static_cast<T>(value_);
    if (before == expected) value_ = static_cast<uint64_t>(desired);
    return std::exchange(expected, before) == before;
  }

 private:
  uint64_t value_ = 0;
};
/// What a defect does with stores that have to be seen before the next load.
template <typename T>
class RelaxedAtomic : public ModelAtomic<T> {
 public:
  using ModelAtomic<T>::ModelAtomic;
  void store(T value, std::memory_order = std::memory_order_seq_cst) {
    ModelAtomic<T>::store(value, std::memory_order_relaxed);
  }
};

/// As std::mutex.
class ModelMutex {
 public:
  void lock() {
    while (!try_lock()) {
      ModelMachine::here().sleep_until([this] { return !held_; });
    }
  }
  [[nodiscard]] bool try_lock() {
    ModelMachine::here().fence();
    return !std::exchange(held_, true);
  }
  void unlock() {
    ModelMachine::here().fence();
    held_ = false;
  }

 private:
  bool held_ = false;
};

/// As verbs::QueueLock.
class ModelLock {
 public:
  template <typename F>
  auto hold(F&& work) {
    const std::lock_guard held(mutex_);
    return std::forward<F>(work)();
  }

 private:
  ModelMutex mutex_;
};

template <typename Word>
using ModelBell = base::BellOver<Word, ModelSignal>;

/// \param play carries the schedule of a seed out, and returns whether nothing went wrong
/// \return the first of so many seeds whose schedule went wrong; 0: none
template <typename Play>
uint64_t first_wrong(uint64_t schedules, Play&& play) {
  for (uint64_t seed = 1; seed <= schedules; ++seed) {
    if (!play(seed)) return seed;
  }
  return 0;
}

}  // namespace rnic::test
