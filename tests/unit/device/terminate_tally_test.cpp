#include "device/terminate_tally.hpp"

#include <gtest/gtest.h>

namespace rnic::device {
namespace {

Event received(uint8_t type, uint8_t code) {
  event::TerminateReceived event;
  event.fault = {FaultLayer::Ddp, type, code, "test"};
  return event;
}

// A peer may send codes that no RFC has; it does not make the table grow.
TEST(TerminateTally, ManyCodesShareOnePlace) {
  TerminateTally tally;
  constexpr auto kMax = static_cast<uint8_t>(TerminateTally::kMaxCodes);
  for (uint8_t i = 0; i < kMax; ++i) tally.happened(received(1, i));
  EXPECT_EQ(tally.counts().size(), kMax);
  for (uint8_t i = 0; i < 10; ++i) tally.happened(received(2, i));
  tally.happened(received(1, 3));
  tally.validate();
  const auto counts = tally.counts();
  ASSERT_EQ(counts.size(), kMax + 1u);
  EXPECT_EQ(counts[3].received, 2u);
  EXPECT_FALSE(counts.back().code);
  EXPECT_EQ(counts.back().received, 10u);
  EXPECT_EQ(counts.back().sent, 0u);
}

TEST(TerminateTally, OtherEventsAreNone) {
  TerminateTally tally;
  tally.happened(event::PeerClosed{});
  EXPECT_TRUE(tally.counts().empty());
}

}  // namespace
}  // namespace rnic::device
