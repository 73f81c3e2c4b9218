#include "tuf/start_state.hpp"

#include "support/transitions.hpp"

namespace rnic::tuf {
namespace {

TEST(TufStartState, EachPairIsLegalOrNotAsTheStartUpSays) {
  // Idle, SendRequest, AwaitReply, SendGo, AwaitRequest, AwaitDecision, SendReply, AwaitGo,
  // SendReject, Done, Failed, Ended
  testing::expect_transitions(kStartTransitions,
                              {
                                  ".x..x.....xx",
                                  "..x.......xx",
                                  "...x......xx",
                                  ".........xxx",
                                  ".....x....xx",
                                  "......x.x.xx",
                                  ".......x..xx",
                                  ".........xxx",
                                  "..........xx",
                                  "...........x",
                                  "...........x",
                                  "............",
                              },
                              "...........x");
}

}  // namespace
}  // namespace rnic::tuf
