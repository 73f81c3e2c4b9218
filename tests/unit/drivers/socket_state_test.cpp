#include "socket/connection_state.hpp"
#include "support/transitions.hpp"

namespace rnic::socket {
namespace {

TEST(SocketStates, AConnectionEndsOnceAndOpensOnce) {
  // Connecting, Open, Ended
  testing::expect_transitions(kConnectionTransitions, {".xx", "..x", "..."}, "..x");
}

TEST(SocketStates, OurHalfClosesInTwoSteps) {
  // Open, Closing, Closed
  testing::expect_transitions(kOurHalfTransitions, {".x.", "..x", "..."}, "..x");
}

TEST(SocketStates, ThePeersHalfFinishesOnce) {
  // Open, Leaving, Finished
  testing::expect_transitions(kPeersHalfTransitions, {".xx", "..x", "..."}, "..x");
}

}  // namespace
}  // namespace rnic::socket
