// The memory that the programs let peers read.

#include "workload/buffer.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace rnic::workload {
namespace {

// RFC 5042 s.6.3.2: what stood in memory before is gone when a peer gets the right to read it.
TEST(WorkloadBuffer, HoldsNothingOfBefore_SEC_6_3_2_01) {
  for (const Paging paging : {Paging::Huge, Paging::HugeWhenTouched, Paging::Small}) {
    for (int round = 0; round < 4; ++round) {
      auto buffer = Buffer::allocate(3u << 20, paging);
      ASSERT_TRUE(buffer.has_value());
      const auto octets = buffer->octets();
      EXPECT_EQ(octets.size(), 3u << 20);
      EXPECT_TRUE(std::all_of(octets.begin(), octets.end(), [](uint8_t o) { return o == 0; }));
      std::fill(octets.begin(), octets.end(), 0xa5);  // the next one may get the same pages
    }
  }
}

}  // namespace
}  // namespace rnic::workload
