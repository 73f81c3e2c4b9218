/// \file
/// Pauses: between a worker that pauses and the threads that it leaves its devices to.
#pragma once

#include <atomic>
#include <cstdint>

namespace rnic::verbs {

/// A worker pauses only while no thread of the application sleeps that has driven before (see
/// Standby). Of the worker, which says that it pauses and then looks whether it is wanted, and a
/// thread, which says that it wants the worker and then looks whether that one pauses, at least one
/// sees the other's (Dekker).
///
/// \tparam Atomic std::atomic, or that of a model
template <template <typename> typename Atomic>
class PausesOver {
 public:
  /// The worker wants to pause. \return false: it is wanted, and drives instead
  [[nodiscard]] bool begin() {
    is_on_.store(true);
    if (wanted_.load() == 0) return true;
    is_on_.store(false);
    return false;
  }
  void end() { is_on_.store(false); }
  /// A guess, for any thread. \return whether the worker pauses
  [[nodiscard]] bool is_on() const { return is_on_.load(std::memory_order_relaxed); }

  /// Another thread, which has the helm, does a turn.
  void driven() {
    uint32_t wanted = wanted_.load(std::memory_order_relaxed);
    if (wanted != 0) wanted_.compare_exchange_strong(wanted, wanted - 1);
  }
  /// Another thread has found nothing, and could not do a turn since somebody drives.
  void looked_in_vain() {
    driven();  // it looks on, as one that has driven
    // Of two that count at once one may be lost: the number is a measure.
    vain_looks_.store(vain_looks_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  /// \return the looks in vain since forget_looks(), or since a thread last slept
  [[nodiscard]] uint32_t vain_looks() const { return vain_looks_.load(std::memory_order_relaxed); }
  void forget_looks() { vain_looks_.store(0, std::memory_order_relaxed); }
  /// A thread that may have driven is about to sleep. \return true: the worker pauses and has to be
  /// called for
  [[nodiscard]] bool take_over() {
    forget_looks();
    wanted_.store(2);  // the thread's last look may be a turn, and does not mean that it polls on
    return is_on_.load();
  }

 private:
  Atomic<bool> is_on_{false};
  Atomic<uint32_t> wanted_{0};  // turns of others until the worker may pause
  Atomic<uint32_t> vain_looks_{0};
};

using Pauses = PausesOver<std::atomic>;

}  // namespace rnic::verbs
