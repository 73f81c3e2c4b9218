#include "rnic-spin/framed_talk.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace rnic::spin {
namespace {

using enum StreamRole;
using Octets = std::vector<uint8_t>;

class FramedTalkTest : public ::testing::Test {
 protected:
  Octets send(size_t length) {
    Octets frame(length);
    talk_.fill(Initiator, frame);
    talk_.sent(Initiator, length);
    return frame;
  }
  bool is_wrong(const Octets& frame) { return talk_.receive(Acceptor, frame).has_value(); }

  FramedTalk talk_{7};
};

TEST_F(FramedTalkTest, FramesComeWholeAndInTheirOrder) {
  const Octets first = send(100), second = send(2), third = send(700);
  EXPECT_EQ(talk_.next_for(Acceptor), 100u);
  EXPECT_EQ(talk_.next_for(Initiator), 0u);
  EXPECT_FALSE(is_wrong(first));
  EXPECT_FALSE(is_wrong(second));
  EXPECT_FALSE(is_wrong(third));
  EXPECT_EQ(talk_.next_for(Acceptor), 0u);
}

TEST_F(FramedTalkTest, AFrameThatIsLostShows) {
  send(100);
  EXPECT_TRUE(is_wrong(send(100)));
}

TEST_F(FramedTalkTest, AFrameThatComesTwiceShows) {
  const Octets frame = send(100);
  EXPECT_FALSE(is_wrong(frame));
  EXPECT_TRUE(is_wrong(frame));
}

TEST_F(FramedTalkTest, FramesThatAreCutOrPutTogetherShow) {
  Octets cut = send(100);
  cut.pop_back();
  EXPECT_TRUE(is_wrong(cut));
}

TEST_F(FramedTalkTest, AWrongOctetShows) {
  for (const size_t at : {0, 1, 2, 99}) {
    Octets frame = send(100);
    frame[at] ^= 1;
    EXPECT_TRUE(is_wrong(frame)) << at;
  }
}

}  // namespace
}  // namespace rnic::spin
