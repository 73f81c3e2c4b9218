#include "tuf/start_frames.hpp"

#include <gtest/gtest.h>

#include <array>

namespace rnic::tuf {
namespace {

TEST(TufStartFrames, AFrameLeavesInPiecesAndIsRebuiltWhereItWas) {
  const std::array<uint8_t, 3> data{1, 2, 3};
  StartFrameSender sender;
  sender.set(wire::kTufRequestMagic, {}, data);
  const auto size = static_cast<uint32_t>(wire::kTufStartSize + data.size());
  std::vector<uint8_t> room(size);
  llp::Frame out(room.data(), size);
  EXPECT_EQ(sender.emit(10, 100, out), 10u);
  EXPECT_FALSE(sender.is_sent());
  EXPECT_EQ(sender.emit(1000, 110, out), size - 10);
  EXPECT_TRUE(sender.is_sent());
  EXPECT_EQ(sender.emit(1000, 100 + size, out), 0u);
  std::vector<uint8_t> again(size);
  llp::Frame twice(again.data(), size);
  EXPECT_FALSE(sender.rebuild(99, 1, twice));
  EXPECT_FALSE(sender.rebuild(101, size, twice));
  ASSERT_TRUE(sender.rebuild(100, size, twice));
  EXPECT_EQ(again, room);
}

TEST(TufStartFrames, AFrameIsReadInPiecesAndFoundWrongAtItsFirstWrongOctet) {
  const std::array<uint8_t, 2> data{7, 8};
  StartFrameSender sender;
  wire::TufStart start;
  start.version = wire::kTufVersion;
  sender.set(wire::kTufReplyMagic, start, data);
  const auto size = static_cast<uint32_t>(wire::kTufStartSize + data.size());
  std::vector<uint8_t> octets(size);
  llp::Frame out(octets.data(), size);
  sender.emit(size, 0, out);
  StartFrameReader reader;
  for (uint32_t i = 0; i < size; ++i) {
    EXPECT_EQ(reader.wanted(false), (i < wire::kTufStartSize ? wire::kTufStartSize : size) - i);
    reader.take(base::ByteView(octets).subspan(i, 1));
    EXPECT_TRUE(reader.is_right(wire::kTufReplyMagic)) << i;
    EXPECT_EQ(reader.is_right(wire::kTufRequestMagic), i < 6) << "\"TUF Re\" is common";
  }
  EXPECT_EQ(reader.wanted(false), 0u);
  EXPECT_EQ(reader.release(), octets);
  EXPECT_EQ(reader.received(), size);
  EXPECT_EQ(reader.wanted(true), wire::kTufGoSize);
}

}  // namespace
}  // namespace rnic::tuf
