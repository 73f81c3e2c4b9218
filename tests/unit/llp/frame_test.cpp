// The records that one call of pull() may give.

#include "llp/frame.hpp"

#include <gtest/gtest.h>

namespace rnic::llp {
namespace {

class FrameTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kHeader = 4;
  static constexpr uint32_t kRoom = 100;
  static constexpr uint32_t kSpare = 24;

  FrameTest() : headers_{segments_[0].data(), segments_[1].data(), segments_[2].data()} {}

  /// Appends a record and goes on behind it.
  static bool put(Frame& frame, uint32_t length, bool push = false) {
    last_ = frame.append(length);
    const Pulled record{.length = length, .push = push, .tag = {length, 1}};
    return frame.next(frame.packs(), record);
  }
  [[nodiscard]] uint8_t* payload(uint32_t segment) { return segments_[segment].data() + kHeader; }

  std::array<std::array<uint8_t, kHeader + kRoom>, 3> segments_;
  std::array<uint8_t*, 3> headers_;
  static inline uint8_t* last_ = nullptr;
};

TEST_F(FrameTest, RecordsThatFillSegmentsHaveOneEach) {
  FrameRow row(headers_, kHeader, kSpare, 8);
  Frame frame(payload(0), kRoom, &row);
  ASSERT_TRUE(put(frame, kRoom));
  ASSERT_TRUE(put(frame, kRoom - kSpare + 1));
  EXPECT_EQ(last_, payload(1));
  EXPECT_TRUE(row.fills_segments());
  EXPECT_FALSE(put(frame, kRoom));  // there is no fourth segment
  EXPECT_EQ(last_, payload(2));
  EXPECT_EQ(frame.length(), kRoom);
  ASSERT_EQ(row.passed().size(), 2u);
  EXPECT_EQ(row.passed()[1].length, kRoom - kSpare + 1);
  EXPECT_EQ(row.passed()[1].tag.a, kRoom - kSpare + 1);
}

TEST_F(FrameTest, SmallRecordsShareTheFirstSegment) {
  FrameRow row(headers_, kHeader, kSpare, 8);
  Frame frame(payload(0), kRoom, &row);
  ASSERT_TRUE(put(frame, 30, true));
  ASSERT_TRUE(put(frame, 40, true));
  EXPECT_EQ(last_, payload(0) + 30);
  EXPECT_FALSE(row.fills_segments());
  EXPECT_EQ(frame.room_left(), 30u);
  EXPECT_FALSE(put(frame, 7));  // too little is left for another
  EXPECT_EQ(row.passed().size(), 2u);
}

TEST_F(FrameTest, ACallFillsOneSegmentOrOneMessage) {
  {
    FrameRow row(headers_, kHeader, kSpare, 8);
    Frame frame(payload(0), kRoom, &row);
    EXPECT_FALSE(put(frame, kRoom, true));  // the message ends, and so does the segment
  }
  FrameRow row(headers_, kHeader, kSpare, 8);
  Frame frame(payload(0), kRoom, &row);
  ASSERT_TRUE(put(frame, kRoom));
  EXPECT_FALSE(put(frame, 20, true));  // others may follow in the second segment, but not now
}

TEST_F(FrameTest, ThereAreNoMoreRecordsThanPlaces) {
  FrameRow row(headers_, kHeader, kSpare, 2);
  Frame frame(payload(0), kRoom, &row);
  ASSERT_TRUE(put(frame, 10));
  EXPECT_FALSE(put(frame, 10));
}

TEST_F(FrameTest, AUserMayBeKeptToOneRecord) {
  FrameRow row(headers_, kHeader, kSpare, 8);
  Frame frame(payload(0), kRoom, &row);
  frame.keep_to_one();
  EXPECT_FALSE(put(frame, kRoom));
  Frame alone(payload(0), kRoom);
  EXPECT_FALSE(put(alone, 10));
}

}  // namespace
}  // namespace rnic::llp
