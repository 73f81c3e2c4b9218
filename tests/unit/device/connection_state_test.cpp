#include "device/connection_state.hpp"

#include "support/transitions.hpp"

namespace rnic::device {
namespace {

TEST(ConnectionStates, EachPairIsLegalOrNotAsTheStartUpSays) {
  // Connecting, Requested, Answered, Running, Failed, Ended
  testing::expect_transitions(kConnectionTransitions,
                              {
                                  ".x.xxx",
                                  "..x.xx",
                                  ".x.xxx",
                                  "....xx",
                                  ".....x",
                                  "......",
                              },
                              ".....x");
}

}  // namespace
}  // namespace rnic::device
