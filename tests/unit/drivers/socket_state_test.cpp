#include "socket/connection_state.hpp"
#include "support/transitions.hpp"

namespace rnic::socket {
namespace {

TEST(SocketStates, AConnectionEndsOnceAndOpensOnce) {
  // Connecting, Open, Ended
  testing::expect_transitions(kConnectionTransitions, {".xx", "..x", "..."}, "..x");
}

TEST(SocketStates, TheWriteHalfClosesInTwoSteps) {
  // Open, Closing, Closed
  testing::expect_transitions(kWriteHalfTransitions, {".x.", "..x", "..."}, "..x");
}

TEST(SocketStates, TheReadHalfFinishesOnce) {
  // Open, Leaving, Finished
  testing::expect_transitions(kReadHalfTransitions, {".xx", "..x", "..."}, "..x");
}

}  // namespace
}  // namespace rnic::socket
