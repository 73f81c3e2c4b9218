/// \file
/// What was posted to a queue, and what its completions must be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "rnic/verbs.hpp"

namespace rnic::spin {

/// A request that was taken.
struct Posted {
  uint64_t id = 0;
  Opcode opcode = Opcode::Send;
  bool signaled = true;
  bool sound = true;    ///< nothing local speaks against it
  uint32_t length = 0;  ///< octets
  size_t place = 0;     ///< Read: of its sink in the target; Receive: the slot
};

/// The requests of one queue that have not completed. Each completes once and in its turn; what is
/// not signalled and succeeds does so in silence.
class Outstanding {
 public:
  void post(const Posted& posted) { queue_.push_back(posted); }
  /// \param wrong says why there can be no such completion
  /// \return what has completed
  std::optional<Posted> complete(const Completion& done, std::string& wrong);
  /// The number of requests that must complete.
  [[nodiscard]] size_t awaited() const;
  [[nodiscard]] size_t size() const { return queue_.size(); }
  /// What is left is given up.
  [[nodiscard]] std::deque<Posted> give_up() { return std::exchange(queue_, {}); }

 private:
  std::deque<Posted> queue_;
};

/// A queue pair from one return to Idle to the next: completions bear its number.
struct Life {
  uint32_t number = 0;
  Outstanding sends;
  Outstanding receives;
  bool shares_receives = false;  ///< they belong to a shared receive queue
};

}  // namespace rnic::spin
