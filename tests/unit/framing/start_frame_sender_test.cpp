#include "framing/start_frame_sender.hpp"

#include <gtest/gtest.h>

namespace rnic::framing {
namespace {

using Octets = std::vector<uint8_t>;

Octets numbered(uint32_t size) {
  Octets octets(size);
  for (uint32_t i = 0; i < size; ++i) octets[i] = static_cast<uint8_t>(i + 1);
  return octets;
}

TEST(StartFrameSender, AFrameLeavesInPiecesAndIsRebuiltWhereItWas) {
  const Octets frame = numbered(23);
  StartFrameSender sender;
  EXPECT_FALSE(sender.pending());
  sender.set(frame);
  EXPECT_EQ(sender.unsent(), 23u);
  Octets room(23);
  llp::Frame out(room.data(), 23);
  EXPECT_EQ(sender.emit(10, 100, out), 10u);
  EXPECT_TRUE(sender.pending());
  EXPECT_EQ(sender.unsent(), 13u);
  EXPECT_EQ(sender.emit(1000, 110, out), 13u);
  EXPECT_FALSE(sender.pending());
  EXPECT_EQ(room, frame);
  EXPECT_EQ(sender.end_offset(), 123u);
  EXPECT_EQ(sender.emit(1000, 123, out), 0u);
  Octets again(23);
  llp::Frame twice(again.data(), 23);
  EXPECT_FALSE(sender.rebuild(99, 1, twice));
  EXPECT_FALSE(sender.rebuild(101, 23, twice));
  ASSERT_TRUE(sender.rebuild(100, 23, twice));
  EXPECT_EQ(again, frame);
}

TEST(StartFrameSender, WritesNoMoreThanTheSegmentHasRoomFor) {
  StartFrameSender sender;
  sender.set(numbered(8));
  Octets room(5);
  llp::Frame out(room.data(), 5);
  EXPECT_EQ(sender.emit(8, 0, out), 5u);
  EXPECT_EQ(sender.emit(8, 5, out), 0u);
  EXPECT_EQ(sender.unsent(), 3u);
}

TEST(StartFrameSender, OctetsGoWhenTheWholeFrameIsAcknowledged) {
  Octets room(8);
  for (const uint64_t acknowledged : {57u, 58u}) {
    StartFrameSender sender;
    sender.set(numbered(8));
    llp::Frame out(room.data(), 8);
    sender.emit(7, 50, out);
    sender.acknowledged(58);
    llp::Frame again(room.data(), 8);
    EXPECT_TRUE(sender.rebuild(50, 7, again)) << "it has not left yet";
    sender.emit(1, 57, out);
    sender.acknowledged(acknowledged);
    llp::Frame last(room.data(), 8);
    EXPECT_EQ(sender.rebuild(50, 8, last), acknowledged == 57);
    EXPECT_EQ(sender.end_offset(), 58u) << "full operation begins there";
  }
}

TEST(StartFrameSender, TheNextFrameTakesThePlaceOfTheOneBefore) {
  StartFrameSender sender;
  sender.set(numbered(8));
  Octets room(12);
  llp::Frame out(room.data(), 12);
  sender.emit(8, 0, out);
  sender.set(numbered(4));
  EXPECT_TRUE(sender.pending());
  EXPECT_EQ(sender.emit(4, 8, out), 4u);
  EXPECT_EQ(sender.end_offset(), 12u);
  EXPECT_FALSE(sender.rebuild(0, 8, out));
}

}  // namespace
}  // namespace rnic::framing
