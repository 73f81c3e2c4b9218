/// \file
/// Transitions: which state of a machine may follow which.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace rnic::base {

/// The table of a state machine, written down beside its enum. The one function that sets the state
/// checks each change against it; a test iterates it.
///
/// \tparam kLast the last enumerator; the first one is 0
template <typename State, State kLast>
class Transitions {
 public:
  static constexpr size_t kStates = static_cast<size_t>(kLast) + 1;
  static_assert(kStates <= 32);

  struct Row {
    State from;
    std::initializer_list<State> to;
  };

  /// A state without a row is terminal.
  constexpr Transitions(std::initializer_list<Row> rows) {
    for (const Row& row : rows) {
      for (const State to : row.to) successors_[static_cast<size_t>(row.from)] |= bit(to);
    }
  }

  [[nodiscard]] constexpr bool allows(State from, State to) const {
    return (successors_[static_cast<size_t>(from)] & bit(to)) != 0;
  }
  /// No other state follows.
  [[nodiscard]] constexpr bool is_terminal(State state) const {
    return (successors_[static_cast<size_t>(state)] & ~bit(state)) == 0;
  }
  /// \return whether any number of transitions, none included, leads from one to the other
  [[nodiscard]] constexpr bool reaches(State from, State to) const {
    uint32_t reached = bit(from);
    for (size_t round = 0; round < kStates; ++round) {
      for (size_t i = 0; i < kStates; ++i) {
        if ((reached >> i & 1) != 0) reached |= successors_[i];
      }
    }
    return (reached & bit(to)) != 0;
  }

 private:
  static constexpr uint32_t bit(State state) { return uint32_t{1} << static_cast<unsigned>(state); }

  std::array<uint32_t, kStates> successors_{};
};

}  // namespace rnic::base
