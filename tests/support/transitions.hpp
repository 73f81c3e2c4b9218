/// \file
/// Holds a base::Transitions table against a matrix that the test writes down itself.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

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

}  // namespace rnic::testing
