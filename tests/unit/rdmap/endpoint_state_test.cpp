#include "rdmap/endpoint_state.hpp"

#include "support/transitions.hpp"

namespace rnic::rdmap {
namespace {

TEST(EndpointStates, EachPairIsLegalOrNotAsTheProtocolSays) {
  // Idle, Connected, Closing, HalfClosed, Terminating, Error, Closed
  testing::expect_transitions(kEndpointTransitions,
                              {
                                  ".x...xx",
                                  "..x.xxx",
                                  "...xxxx",
                                  ".....xx",
                                  ".....x.",
                                  ".....x.",
                                  ".......",
                              },
                              ".....xx");
}

}  // namespace
}  // namespace rnic::rdmap
