#include "device/connection_state.hpp"

#include <set>
#include <utility>

#include "device/queue_pair_state.hpp"
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
  testing::expect_transitions(kQueuePairUseTransitions,
                              {
                                  ".x..",
                                  "x.xx",
                                  ".x.x",
                                  "x...",
                              },
                              "....");
}

TEST(QueuePairStates, EachPairIsLegalOrNot_VERBS_18) {
  // Idle, Rts, Closing, Terminate, Error
  testing::expect_transitions(kQueuePairStateTransitions,
                              {
                                  ".x..x",
                                  "..xxx",
                                  "...xx",
                                  "....x",
                                  "x....",
                              },
                              ".....");
}

// A queue pair has no state beside its endpoint's: each legal step of an endpoint is one of the
// queue pair's or none, and each of the queue pair's but the way back to Idle, for which the
// endpoint is replaced, is one of an endpoint.
TEST(QueuePairStates, AreThoseOfTheEndpoint) {
  using rdmap::EndpointState;
  constexpr size_t kStates = decltype(rdmap::kEndpointTransitions)::kStates;
  std::set<std::pair<QueuePairState, QueuePairState>> seen;
  for (size_t i = 0; i < kStates * kStates; ++i) {
    const auto from = static_cast<EndpointState>(i / kStates);
    const auto to = static_cast<EndpointState>(i % kStates);
    if (!rdmap::kEndpointTransitions.allows(from, to)) continue;
    if (state_of(from) == state_of(to)) continue;
    EXPECT_TRUE(kQueuePairStateTransitions.allows(state_of(from), state_of(to)))
        << to_string(from) << " to " << to_string(to);
    seen.emplace(state_of(from), state_of(to));
  }
  EXPECT_EQ(seen.size(), 8u);
}

}  // namespace
}  // namespace rnic::device
