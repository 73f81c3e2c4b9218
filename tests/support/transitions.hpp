/// \file
/// Holds a base::Transitions table against a matrix that the test writes down itself, and against a
/// machine that runs.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/transitions.hpp"

namespace rnic::testing {

/// \param matrix a row per state: 'x' where the state of that column may follow.
/// \param terminals an 'x' per state that nothing but itself follows
/// \param elsewhere an 'x' per state that the machine never has; all others can be reached from the
/// first
template <typename State, State kLast>
void expect_transitions(
    const base::Transitions<State, kLast>& table,
    const std::array<std::string_view, base::Transitions<State, kLast>::kStates>& matrix,
    std::string_view terminals, std::string_view elsewhere = {}) {
  constexpr size_t kStates = base::Transitions<State, kLast>::kStates;
  ASSERT_EQ(terminals.size(), kStates);
  ASSERT_TRUE(elsewhere.empty() || elsewhere.size() == kStates);
  for (size_t from = 0; from < kStates; ++from) {
    std::string row;
    for (size_t to = 0; to < kStates; ++to) {
      row += table.allows(static_cast<State>(from), static_cast<State>(to)) ? 'x' : '.';
    }
    EXPECT_EQ(row, matrix[from]) << "from state " << from;
    EXPECT_EQ(table.is_terminal(static_cast<State>(from)), terminals[from] == 'x') << from;
    const bool reached = elsewhere.empty() || elsewhere[from] != 'x';
    EXPECT_EQ(table.reaches(State{}, static_cast<State>(from)), reached) << from;
  }
}

/// The transitions of a running machine: each is legal, and in the end each legal one was seen.
template <typename State, State kLast>
class SeenTransitions {
 public:
  explicit SeenTransitions(const base::Transitions<State, kLast>& table) : table_(table) {}

  /// \param event what led from the one to the other, or left it
  void note(State from, State to, const char* event) {
    seen_.emplace(from, to);
    EXPECT_TRUE(from == to || table_.allows(from, to))
        << static_cast<int>(from) << " to " << static_cast<int>(to) << " by " << event;
  }
  void expect_all() const {
    constexpr size_t kStates = base::Transitions<State, kLast>::kStates;
    for (size_t i = 0; i < kStates * kStates; ++i) {
      const auto from = static_cast<State>(i / kStates);
      const auto to = static_cast<State>(i % kStates);
      if (!table_.allows(from, to)) continue;
      EXPECT_TRUE(seen_.count({from, to}) != 0) << i / kStates << " to " << i % kStates;
    }
  }

 private:
  const base::Transitions<State, kLast>& table_;
  std::set<std::pair<State, State>> seen_;
};

}  // namespace rnic::testing
