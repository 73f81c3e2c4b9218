#include "tcp/state.hpp"

#include <set>
#include <string>

#include "support/transitions.hpp"

namespace rnic::tcp {
namespace {

using Table = decltype(kTransitions);

/// An 'x' per state that a question says yes to.
template <typename Question>
std::string yes(Question question) {
  std::string row;
  for (size_t i = 0; i < Table::kStates; ++i) row += question(static_cast<State>(i)) ? 'x' : '.';
  return row;
}

// Closed, Listen, SynSent, SynReceived, Established, FinWait1, FinWait2, CloseWait, Closing,
// LastAck, TimeWait

TEST(TcpState, EachPairIsLegalOrNotAsFigure5Says) {
  testing::expect_transitions(kTransitions,
                              {
                                  "..xx.......",
                                  "...........",
                                  "x..xx......",
                                  "x...x......",
                                  "x....x.x...",
                                  "x.....x.x..",
                                  "x..........",
                                  "x........x.",
                                  "x..........",
                                  "x..........",
                                  "...........",
                              },
                              ".x........x", ".x........x");
}

TEST(TcpState, WhatADirectionMayDoFollowsFromTheFins) {
  EXPECT_EQ(yes(receives), "....xxx....");
  EXPECT_EQ(yes(sends), "....x..x...");
  EXPECT_EQ(yes(synchronized), "...xxxxxxxx");
}

TEST(TcpState, ADirectionThatIsClosedStaysSo) {
  for (size_t i = 0; i < Table::kStates; ++i) {
    const auto from = static_cast<State>(i);
    if (!synchronized(from) || from == State::SynReceived) continue;  // it is not open yet
    for (size_t j = 0; j < Table::kStates; ++j) {
      const auto to = static_cast<State>(j);
      if (!kTransitions.allows(from, to)) continue;
      EXPECT_LE(receives(to), receives(from)) << to_string(from) << " to " << to_string(to);
      EXPECT_LE(sends(to), sends(from)) << to_string(from) << " to " << to_string(to);
    }
  }
}

TEST(TcpState, EachHasTheNameOfTheRfc) {
  std::set<std::string> names;
  for (size_t i = 0; i < Table::kStates; ++i) names.insert(to_string(static_cast<State>(i)));
  EXPECT_EQ(names, (std::set<std::string>{"CLOSED", "LISTEN", "SYN-SENT", "SYN-RECEIVED",
                                          "ESTABLISHED", "FIN-WAIT-1", "FIN-WAIT-2", "CLOSE-WAIT",
                                          "CLOSING", "LAST-ACK", "TIME-WAIT"}));
  EXPECT_STREQ(to_string(State::Closing), "CLOSING");
  EXPECT_STREQ(to_string(State::TimeWait), "TIME-WAIT");
}

}  // namespace
}  // namespace rnic::tcp
