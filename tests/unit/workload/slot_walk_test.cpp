// A server looks after its other clients between two pieces of a region.

#include "workload/slot_walk.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace rnic::workload {
namespace {

TEST(SlotWalk, EachOctetOnceAndNoPieceTooLong) {
  constexpr uint64_t kStride = 128;
  for (const uint64_t octets : {uint64_t{1}, uint64_t{8}, uint64_t{100}, kStride}) {
    for (const uint64_t most : {8, 15, 64, 1000}) {
      SCOPED_TRACE(testing::Message() << octets << " in pieces of " << most);
      std::vector<int> seen(5 * kStride);
      SlotWalk walk;
      walk.begin(1, 4, octets, kStride);
      while (walk.is_under_way()) {
        const SlotWalk::Piece piece = walk.next(most);
        ASSERT_GE(piece.octets, 1u);
        ASSERT_LE(piece.octets, most);
        ASSERT_EQ(piece.offset % 8, 0u);
        for (uint64_t i = 0; i < piece.octets; ++i) ++seen.at(piece.offset + i);
      }
      for (size_t at = 0; at < seen.size(); ++at) {
        const size_t slot = at / kStride;
        ASSERT_EQ(seen[at], slot >= 1 && slot < 4 && at % kStride < octets ? 1 : 0) << at;
      }
    }
  }
}

TEST(SlotWalk, NothingToDo) {
  SlotWalk walk;
  EXPECT_FALSE(walk.is_under_way());
  walk.begin(3, 3, 100, 128);
  EXPECT_FALSE(walk.is_under_way());
  walk.begin(0, 3, 0, 128);
  EXPECT_FALSE(walk.is_under_way());
}

}  // namespace
}  // namespace rnic::workload
