/// \file
/// LoneWaker: the one connection that has something to read whenever the driver of a device wakes.
#pragma once

#include <cstdint>

namespace rnic::socket {

/// A program that waits for answers on one connection is woken by it each time. Then epoll is not
/// asked who it was: that connection is read at once, which saves a call of the system for each
/// message. Where the guess is wrong a read brings nothing, so nothing is guessed before the same
/// connection was alone kSure times in a row.
class LoneWaker {
 public:
  static constexpr uint32_t kSure = 3;
  /// Others are looked for after so many guesses, however right they are.
  static constexpr uint32_t kGuesses = 16;

  /// epoll has told of something to read on the connection that it calls `word`, and of nothing
  /// else.
  void note(uint64_t word) {
    times_ = word == word_ ? times_ + 1 : 1;
    word_ = word;
    guesses_ = 0;
  }
  /// Others have something as well, or the guess was wrong.
  void forget() { times_ = 0; }
  /// \return whether word() may be read before epoll is asked
  [[nodiscard]] bool take_guess() {
    if (times_ < kSure || guesses_ == kGuesses) return false;
    ++guesses_;
    return true;
  }
  [[nodiscard]] uint64_t word() const { return word_; }

 private:
  uint64_t word_ = 0;
  uint32_t times_ = 0;    // in a row that word_ was alone
  uint32_t guesses_ = 0;  // since epoll was asked; at most kGuesses
};

}  // namespace rnic::socket
