#include "rdmap/life.hpp"

#include <gtest/gtest.h>

namespace rnic::rdmap {
namespace {

class FramingStub final : public llp::Framing {
 public:
  uint8_t told_version = 0;
  int readies = 0, discards = 0, closes = 0, aborts = 0;

  [[nodiscard]] uint32_t mulpdu() const override { return 1024; }
  [[nodiscard]] uint8_t version() const override { return told_version; }
  void ready() override { ++readies; }
  void discard_received() override { ++discards; }
  void close() override { ++closes; }
  void abort() override { ++aborts; }
};

TEST(LifeTest, ABoundOneHasTheVersionOfItsFraming) {
  FramingStub framing;
  Life life;
  EXPECT_EQ(life.state(), EndpointState::Idle);
  EXPECT_EQ(life.version(), 1);
  life.bind(framing);
  EXPECT_EQ(life.state(), EndpointState::Connected);
  EXPECT_TRUE(life.running());
  EXPECT_EQ(life.version(), 0);
  framing.told_version = 1;
  life.learn_version();
  EXPECT_EQ(life.version(), 1);
  life.validate();
}

TEST(LifeTest, WithoutAFramingNobodyIsCalled) {
  FramingStub framing;
  Life life;
  life.call_ready();
  life.close();
  life.abort();
  life.bind(framing);
  life.call_ready();
  life.discard_received();
  life.close();
  life.abort();
  life.unbind();
  life.learn_version();
  life.call_ready();
  life.discard_received();
  life.close();
  life.abort();
  EXPECT_EQ(framing.readies, 1);
  EXPECT_EQ(framing.discards, 1);
  EXPECT_EQ(framing.closes, 1);
  EXPECT_EQ(framing.aborts, 1);
}

TEST(LifeDeathTest, NoStateIsSkippedAndNoWorkIsDoneWithoutAFraming) {
  FramingStub framing;
  Life life;
  EXPECT_DEATH(life.enter(EndpointState::HalfClosed), "allows");
  life.bind(framing);
  EXPECT_DEATH(life.bind(framing), "allows") << "twice";
  life.unbind();
  EXPECT_DEATH(life.validate(), "is_bound");
  life.enter(EndpointState::Error);
  life.validate();
}

}  // namespace
}  // namespace rnic::rdmap
