#include "rnic-spin/conversation.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace rnic::spin {
namespace {

constexpr StreamRole kOne = StreamRole::Initiator;
constexpr StreamRole kOther = StreamRole::Acceptor;

class ConversationTest : public ::testing::Test {
 protected:
  ConversationTest() { talk_.accept(); }
  /// \return the next octets that an end sends
  std::vector<uint8_t> say(StreamRole role, size_t length) {
    std::vector<uint8_t> octets(length);
    talk_.fill(role, octets);
    talk_.at(role).sent += length;
    return octets;
  }

  Conversation talk_{7};
};

TEST_F(ConversationTest, WhatWasSentMayComeInAnyPieces) {
  auto sent = say(kOne, 100);
  const auto more = say(kOne, 50);
  sent.insert(sent.end(), more.begin(), more.end());
  const std::span all(sent);
  EXPECT_FALSE(talk_.receive(kOther, all.first(1)));
  EXPECT_FALSE(talk_.receive(kOther, all.subspan(1, 120)));
  EXPECT_FALSE(talk_.receive(kOther, all.subspan(121)));
}

TEST_F(ConversationTest, MoreThanWasSentIsWrong) {
  auto sent = say(kOne, 10);
  talk_.at(kOne).sent = 9;
  EXPECT_TRUE(talk_.receive(kOther, sent));
}

TEST_F(ConversationTest, AnotherOctetAndAnotherOrderShow) {
  auto damaged = say(kOne, 100);
  damaged[99] ^= 1;
  EXPECT_TRUE(talk_.receive(kOther, damaged));
  Conversation lost(8);
  std::vector<uint8_t> octets(100);
  lost.fill(kOne, octets);
  lost.at(kOne).sent = 100;
  EXPECT_TRUE(lost.receive(kOther, std::span(octets).subspan(1, 98)));
}

TEST_F(ConversationTest, TheOctetsOfAnotherStreamOrDirectionShow) {
  const auto here = say(kOne, 100);
  Conversation next(8);
  next.at(kOne).sent = next.at(kOther).sent = 100;
  EXPECT_TRUE(next.receive(kOther, here));
  talk_.at(kOther).sent = 100;
  EXPECT_TRUE(talk_.receive(kOne, here));
}

TEST_F(ConversationTest, TheEndComesAfterEverythingAndIfThePeerEndsIt) {
  const auto sent = say(kOne, 10);
  EXPECT_TRUE(talk_.check_at_end(kOther));
  talk_.at(kOne).finished = true;
  EXPECT_TRUE(talk_.check_at_end(kOther)) << "nothing has come";
  EXPECT_FALSE(talk_.receive(kOther, sent));
  EXPECT_FALSE(talk_.check_at_end(kOther));
  EXPECT_TRUE(talk_.check_at_end(kOne)) << "the other one goes on";
}

TEST_F(ConversationTest, BothHaveToFinishForItToBeClosed) {
  talk_.at(kOne).finished = true;
  EXPECT_TRUE(talk_.check_ended(kOne, StreamEnd::Closed));
  talk_.at(kOther).closed = true;
  EXPECT_FALSE(talk_.check_ended(kOne, StreamEnd::Closed));
  EXPECT_TRUE(talk_.check_ended(kOther, StreamEnd::Closed)) << "it has sent no end of its own";
}

TEST_F(ConversationTest, OnlyThePeerResets) {
  talk_.at(kOne).aborted = true;
  EXPECT_FALSE(talk_.check_ended(kOne, StreamEnd::Aborted));
  EXPECT_FALSE(talk_.check_ended(kOther, StreamEnd::PeerReset));
  EXPECT_TRUE(talk_.check_ended(kOne, StreamEnd::PeerReset));
  EXPECT_TRUE(talk_.check_ended(kOther, StreamEnd::Aborted));
}

TEST_F(ConversationTest, WhatWasAcceptedWasNotRefused) {
  EXPECT_TRUE(talk_.check_ended(kOne, StreamEnd::Refused));
  const Conversation alone(8);
  EXPECT_FALSE(alone.check_ended(kOne, StreamEnd::Refused));
  EXPECT_FALSE(alone.check_ended(kOne, StreamEnd::PeerReset));
}

TEST_F(ConversationTest, NobodyIsLostBetweenTwoDevicesOfOneProcess) {
  talk_.at(kOne).closed = talk_.at(kOther).aborted = true;
  EXPECT_TRUE(talk_.check_ended(kOne, StreamEnd::TimedOut));
  EXPECT_TRUE(talk_.check_ended(kOne, StreamEnd::Unreachable));
}

TEST_F(ConversationTest, NothingIsHeldAgainstADoubtfulOne) {
  talk_.doubt();
  const std::vector<uint8_t> octets(10);
  EXPECT_FALSE(talk_.receive(kOne, octets));
  EXPECT_FALSE(talk_.check_at_end(kOne));
  EXPECT_FALSE(talk_.check_ended(kOne, StreamEnd::TimedOut));
}

}  // namespace
}  // namespace rnic::spin
