/// \file
/// How a thread that sleeps on a descriptor learns that there is something to do.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace rnic::base {

/// The rings that a bell is armed for.
enum class BellFor : uint32_t {
  Nobody = 0,
  Anything = 1,
  Urgent = 2,  ///< what is urgent alone
};

/// One side adds work to a queue and rings, the other sleeps on a descriptor. Whoever wants to
/// sleep arms the bell, looks at the queue once more, and only then sleeps:
///
///     adds                    wants to sleep
///     ----                    --------------
///     push to the queue       arm()
///     ring()                  look at the queue; while it is empty, sleep until the descriptor
///                             is readable
///
/// Both sides write one word and then read the other's, with a full fence between (Dekker). So
/// either the ringer sees that the bell is armed, or the other sees what was pushed: no work is
/// slept through. A bell that is not armed costs its ringer a fence and a look; one that is armed
/// rings once, until it is armed again. Its descriptor may be readable for nothing, but never stays
/// so once it was armed again.
///
/// Work may be urgent, and who sleeps may want to hear of such alone.
///
/// \tparam Word an atomic uint32_t with a full fence() \tparam Signal has raise() and clear(): a
/// descriptor that is readable from the first until the second
template <typename Word, typename Signal>
class BellOver {
 public:
  explicit BellOver(Signal signal) : signal_(std::move(signal)) {}

  /// The next ring() for `what` raises the signal, and what an earlier one has raised is cleared.
  /// One thread at a time, which looks for work behind it. Who waits for anything already goes on
  /// doing so.
  void arm(BellFor what = BellFor::Anything) {
    // The clearing comes first: the work of whoever had raised is there for the coming look. One
    // who has rung and is not past the raising yet sets raised_ later, for the next arm().
    const bool rung = !disarmed_ && armed_.load() == kNobody;
    if (raised_.exchange(0) != 0 || rung) signal_.clear();
    const uint32_t before = armed_.exchange(static_cast<uint32_t>(what));
    if (before == static_cast<uint32_t>(BellFor::Anything)) armed_.store(before);
    disarmed_ = false;
    Word::fence();
  }
  /// As arm(), where several threads take from one queue and sleep on the signal. They call it one
  /// at a time, under the lock that they take from the queue with. What it clears may have been
  /// raised for another thread, which sleeps and has to learn of work that this one leaves.
  /// \param is_left tells whether there is work that nobody has taken
  template <typename IsLeft>
  void arm_among_several(BellFor what, IsLeft&& is_left) {
    arm(what);
    if (is_left()) ring_unfenced();
  }
  /// The thread that had armed looks at the queue by itself again: rings are cheap.
  void disarm() {
    armed_.store(kNobody);
    disarmed_ = true;
  }
  /// Work was added before. Any thread.
  void ring(bool urgent = true) {
    Word::fence();
    ring_unfenced(urgent);
  }
  /// As ring(), where the thread that adds work is the one that sleeps.
  void ring_unfenced(bool urgent = true) {
    const uint32_t armed = armed_.load();
    if (armed == kNobody) return;
    if (armed == static_cast<uint32_t>(BellFor::Urgent) && !urgent) return;
    if (armed_.exchange(kNobody) == kNobody) return;  // of several that ring one raises
    signal_.raise();
    // Said behind the raising: a clearing in between could not take it back.
    raised_.store(1);
  }
  [[nodiscard]] bool is_armed() const { return armed_.load() != kNobody; }
  /// \return whether ring() would raise the signal. The caller has added its work before, so that a
  /// thread which arms after an answer of false finds the work.
  [[nodiscard]] bool is_armed_for(bool urgent) const {
    Word::fence();
    const uint32_t armed = armed_.load();
    return armed == static_cast<uint32_t>(BellFor::Anything) ||
           (urgent && armed == static_cast<uint32_t>(BellFor::Urgent));
  }
  [[nodiscard]] const Signal& signal() const { return signal_; }

 private:
  static constexpr uint32_t kNobody = static_cast<uint32_t>(BellFor::Nobody);

  Word armed_;            // a BellFor: who wants to be told of the next work
  Word raised_;           // the signal may be raised
  bool disarmed_ = true;  // who arms has let go of it since; it alone looks here
  Signal signal_;
};

/// The word of a bell between threads.
class BellWord {
 public:
  static void fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
  [[nodiscard]] uint32_t load() const { return value_.load(std::memory_order_relaxed); }
  void store(uint32_t value) { value_.store(value, std::memory_order_release); }
  uint32_t exchange(uint32_t value) { return value_.exchange(value, std::memory_order_acq_rel); }

 private:
  std::atomic<uint32_t> value_{0};
};

}  // namespace rnic::base
