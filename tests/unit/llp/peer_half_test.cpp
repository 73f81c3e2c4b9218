#include "llp/peer_half.hpp"

#include <gtest/gtest.h>

#include "support/transitions.hpp"

namespace rnic::llp {
namespace {

TEST(PeerHalf, EachPairIsLegalOrNot) {
  // Awaited, Open, Finished
  testing::expect_transitions(kPeerHalfTransitions, {".x.", "..x", "..."}, "..x");
}

TEST(PeerHalf, IsOpenedOnceAndFinishedOnce) {
  PeerHalfWord half;
  EXPECT_FALSE(half.is_established());
  EXPECT_DEATH(half.set(PeerHalf::Finished), "allows");
  half.set(PeerHalf::Open);
  EXPECT_TRUE(half.is_established());
  EXPECT_FALSE(half.has_finished());
  half.set(PeerHalf::Finished);
  EXPECT_TRUE(half.is_established()) << "octets may still be read";
  EXPECT_TRUE(half.has_finished());
  EXPECT_DEATH(half.set(PeerHalf::Open), "allows");
}

}  // namespace
}  // namespace rnic::llp
