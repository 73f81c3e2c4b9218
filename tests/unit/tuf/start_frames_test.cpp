#include "tuf/start_frames.hpp"

#include <gtest/gtest.h>

#include <array>

namespace rnic::tuf {
namespace {

TEST(TufStartFrames, AFrameIsReadInPiecesAndFoundWrongAtItsFirstWrongOctet) {
  const std::array<uint8_t, 2> data{7, 8};
  wire::TufStart start;
  start.version = wire::kTufVersion;
  const std::vector<uint8_t> octets = make_start_frame(wire::kTufReplyMagic, start, data);
  const auto size = static_cast<uint32_t>(octets.size());
  ASSERT_EQ(size, wire::kTufStartSize + data.size());
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
