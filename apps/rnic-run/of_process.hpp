/// \file
/// OfProcess: the one object of its kind in a process.
#pragma once

#include <atomic>

namespace rnic::run {

/// Made at the first use and never destroyed: the program may end with it in use, on any thread. A
/// child that was forked gets a new one, since the parent's belongs to threads that the child does
/// not have, and may be locked for ever.
template <typename T>
class OfProcess {
 public:
  /// Any thread.
  static T& get() {
    T* object = one.load();
    if (object != nullptr) return *object;
    auto* made = new T;
    if (one.compare_exchange_strong(object, made)) return *made;
    delete made;
    return *object;
  }
  /// In a child that has just been forked.
  static void forget() { one.store(nullptr); }

 private:
  static inline std::atomic<T*> one{nullptr};
};

}  // namespace rnic::run
