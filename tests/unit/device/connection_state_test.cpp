#include "device/connection_state.hpp"

#include "support/transitions.hpp"

namespace rnic::device {
namespace {

TEST(ConnectionStates, EachPairIsLegalOrNotAsTheStartUpSays) {
  // Connecting, Requested, Answered, Running, Failed, Lingering, Ended
  testing::expect_transitions(kConnectionTransitions,
                              {
                                  ".x.xx.x",
                                  "..x.x.x",
                                  ".x.xx.x",
                                  "....x.x",
                                  ".....xx",
                                  "....x.x",
                                  ".......",
                              },
                              "......x");
}

}  // namespace
}  // namespace rnic::device
