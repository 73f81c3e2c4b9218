#include "device/connection_state.hpp"

#include "device/queue_pair_use.hpp"
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

TEST(QueuePairUses, AQueuePairHasOneConnectionAndASecondAttemptAtIt) {
  // Unused, Connected, AwaitsRedial, Used
  testing::expect_transitions(kQueuePairTransitions,
                              {
                                  ".x..",
                                  "x.xx",
                                  ".x.x",
                                  "....",
                              },
                              "...x");
}

}  // namespace
}  // namespace rnic::device
