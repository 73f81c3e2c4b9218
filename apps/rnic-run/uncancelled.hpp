/// \file
/// Uncancelled: a call within which no thread ends.
#pragma once

#include <pthread.h>

namespace rnic::run {

/// While there is one, pthread_cancel() waits. A thread that ended within a call of the device
/// would leave it half done, and the call may stand above functions that let nothing unwind them.
class Uncancelled {
 public:
  Uncancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~Uncancelled() { pthread_setcancelstate(before_, nullptr); }
  Uncancelled(const Uncancelled&) = delete;
  Uncancelled& operator=(const Uncancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

template <auto kCall>
struct InOnePiece;

template <typename R, typename... Args, R (*kCall)(Args...)>
struct InOnePiece<kCall> {
  static R call(Args... args) {
    const Uncancelled whole;
    return kCall(args...);
  }
};

/// As `kCall`, and no cancellation point.
template <auto kCall>
inline constexpr auto uncancelled = &InOnePiece<kCall>::call;

}  // namespace rnic::run
