#include "net/neighbour_state.hpp"

#include "support/transitions.hpp"

namespace rnic::net {
namespace {

TEST(NeighbourStates, EachPairIsLegalOrNotAsTheTableOfNeighboursSays) {
  // Free, Incomplete, Reachable, Stale, Probing
  testing::expect_transitions(kNeighbourTransitions,
                              {
                                  ".x...",
                                  "x.x..",
                                  "x.xxx",
                                  "x.x.x",
                                  "x.x..",
                              },
                              ".....");
}

}  // namespace
}  // namespace rnic::net
