/// \file
/// How a thread that sleeps on a descriptor learns that there is something to do.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace rnic::base {

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
/// \tparam Word an atomic uint32_t with a full fence() \tparam Signal has raise() and clear(): a
/// descriptor that is readable from the first until the second
template <typename Word, typename Signal>
class BellOver {
 public:
  explicit BellOver(Signal signal) : signal_(std::move(signal)) {}

  /// The next ring() raises the signal, and what an earlier one has raised is cleared. One thread
  /// at a time, which looks for work behind it.
  void arm() {
    // The clearing comes first: the work of whoever had raised is there for the coming look.
    if (raised_.exchange(0) != 0) signal_.clear();
    armed_.store(1);
    Word::fence();
  }
  /// Who had armed looks at the queue by itself again: rings are cheap.
  void disarm() { armed_.store(0); }
  /// Work was added before. Any thread.
  void ring() {
    Word::fence();
    if (armed_.load() == 0) return;
    if (armed_.exchange(0) == 0) return;  // of several that ring one raises
    signal_.raise();
    // Said behind the raising: a clearing in between could not take it back.
    raised_.store(1);
  }
  [[nodiscard]] const Signal& signal() const { return signal_; }

 private:
  Word armed_;   // somebody wants to be told of the next work
  Word raised_;  // the signal may be raised
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
