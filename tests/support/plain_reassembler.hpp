/// \file
/// A net::Reassembler of maps and vectors, for tests without DPDK.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "net/reassembler.hpp"

namespace rnic::test {

/// Joins by the book; fails the test when the contract is broken.
class PlainReassembler : public net::Reassembler {
 public:
  Result add(uint32_t datagram, uint32_t offset, bool more, base::ByteView octets,
             base::Now) override {
    if (refuse) {
      parts_.erase(datagram);
      return {Outcome::Refused, {}};
    }
    Parts& parts = parts_[datagram];
    EXPECT_LT(parts.size(), kMaxFragments);
    EXPECT_TRUE(parts.emplace(offset, Part{more, {octets.begin(), octets.end()}}).second);
    whole_.clear();
    for (const auto& [at, part] : parts) {
      if (at != whole_.size()) return {Outcome::Kept, {}};
      whole_.insert(whole_.end(), part.octets.begin(), part.octets.end());
      if (!part.more) {
        parts_.erase(datagram);
        return {Outcome::Complete, whole_};
      }
    }
    return {Outcome::Kept, {}};
  }
  void forget(uint32_t datagram, base::Now) override { EXPECT_EQ(parts_.erase(datagram), 1u); }
  [[nodiscard]] size_t held() const { return parts_.size(); }

  bool refuse = false;

 private:
  struct Part {
    bool more;
    std::vector<uint8_t> octets;
  };
  using Parts = std::map<uint32_t, Part>;
  std::map<uint32_t, Parts> parts_;
  std::vector<uint8_t> whole_;
};

}  // namespace rnic::test
