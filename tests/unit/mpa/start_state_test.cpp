#include "mpa/start_state.hpp"

#include "support/transitions.hpp"

namespace rnic::mpa {
namespace {

TEST(MpaStartState, EachPairIsLegalOrNotAsTheStartUpSays) {
  // Idle, SendRequest, AwaitReply, AwaitRequest, AwaitDecision, SendReply, SendReject, Delayed,
  // Unheard, AwaitRtr, AwaitFpdu, Done, Left, HandedOver, Failed, Ended
  testing::expect_transitions(kStartTransitions,
                              {
                                  ".x.x...........x",
                                  "..x...........xx",
                                  ".......x...xx.xx",
                                  "....x.x.......xx",
                                  ".....xx.......xx",
                                  ".........xx...xx",
                                  "............x.xx",
                                  "........x..x...x",
                                  "...........x...x",
                                  "...........x..xx",
                                  "...........x...x",
                                  "...............x",
                                  ".............x.x",
                                  "...............x",
                                  "...............x",
                                  "................",
                              },
                              "...............x");
}

TEST(MpaStartState, APhaseIsLeftForGood) {
  for (size_t i = 0; i < decltype(kStartTransitions)::kStates; ++i) {
    const auto state = static_cast<StartState>(i);
    EXPECT_LE(is_starting(state) + is_full_operation(state), 1);
    EXPECT_TRUE(!is_parsing(state) || is_starting(state));
    EXPECT_TRUE(!is_sending(state) || is_full_operation(state));
    if (!is_full_operation(state)) continue;
    EXPECT_FALSE(kStartTransitions.reaches(state, StartState::SendRequest));
    EXPECT_FALSE(kStartTransitions.reaches(state, StartState::AwaitRequest));
    EXPECT_FALSE(kStartTransitions.reaches(state, StartState::Left));
  }
}

}  // namespace
}  // namespace rnic::mpa
