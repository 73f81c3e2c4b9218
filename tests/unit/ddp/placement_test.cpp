// Payload with gaps, as markers leave it, goes to memory as its pieces do.
#include "ddp/placement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace rnic::ddp {
namespace {

constexpr uint32_t kGap = 4;
constexpr uint32_t kBetween = 508;

/// A ULPDU of `length` octets with gaps, the first one behind `first` octets.
class GappedUlpdu {
 public:
  GappedUlpdu(uint32_t first, uint32_t length) : length_(length) {
    run_.resize(2 * length);
    for (size_t i = 0; i < run_.size(); ++i) run_[i] = static_cast<uint8_t>(i * 31 + i / 256);
    const uint8_t* at = run_.data();
    for (uint32_t left = length, n = std::min(first, left); left != 0;) {
      pieces_.emplace_back(at, n);
      content_.insert(content_.end(), at, at + n);
      at += n + kGap;
      left -= n;
      n = std::min(kBetween, left);
    }
  }
  [[nodiscard]] llp::UlpduView view() const { return {pieces_, length_, kGap, kBetween}; }
  [[nodiscard]] const std::vector<uint8_t>& content() const { return content_; }

 private:
  uint32_t length_;
  std::vector<uint8_t> run_;
  std::vector<base::ByteView> pieces_;
  std::vector<uint8_t> content_;
};

// The header may end in front of the first gap, at it, or behind it.
TEST(Placement, PayloadBetweenGapsIsThatOfItsPieces_MPA_4_3_11) {
  for (const uint32_t skip : {14u, 18u}) {
    for (uint32_t first = 2; first <= kBetween; first += 4) {
      for (const uint32_t payload : {100u, 600u, 2047u, 2048u, 2049u, 8914u}) {
        const GappedUlpdu ulpdu(first, skip + payload);
        std::vector<uint8_t> memory(payload);
        const base::ByteSpan target(memory);
        place(ulpdu.view(), skip, {&target, 1});
        ASSERT_TRUE(std::equal(memory.begin(), memory.end(), ulpdu.content().begin() + skip))
            << skip << " " << first << " " << payload;
      }
    }
  }
}

}  // namespace
}  // namespace rnic::ddp
