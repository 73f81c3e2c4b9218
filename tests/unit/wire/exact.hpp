/// \file
/// What every format owes to octets that somebody else sent: nothing is read behind their end.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.hpp"

namespace rnic::wire {

using Octets = std::vector<uint8_t>;

/// The first `size` of some octets, in memory that ends with them: a sanitizer sees one read more.
class Exact {
 public:
  Exact(base::ByteView octets, size_t size) : octets_(new uint8_t[size]), size_(size) {
    std::copy_n(octets.begin(), size, octets_.get());
  }
  explicit Exact(base::ByteView octets) : Exact(octets, octets.size()) {}
  [[nodiscard]] base::ByteView view() const { return {octets_.get(), size_}; }

 private:
  std::unique_ptr<uint8_t[]> octets_;
  size_t size_;
};

/// `parse` takes `octets`, and not one of the shorter lengths.
template <typename Parse>
void expect_all_needed(base::ByteView octets, Parse parse) {
  for (size_t size = 0; size < octets.size(); ++size) {
    EXPECT_FALSE(parse(Exact(octets, size).view())) << size << " of " << octets.size();
  }
  EXPECT_TRUE(parse(Exact(octets).view()));
}

/// Memory for a writer, exactly as long as what it is to write, and full of what it is to replace.
template <typename Write>
Octets written(size_t size, Write write) {
  // GCC warns of branches of a writer that this length does not take, where it sees the length.
  const volatile size_t unseen = size;
  const std::unique_ptr<uint8_t[]> room(new uint8_t[unseen]);
  std::fill_n(room.get(), size, uint8_t{0xee});
  write(room.get());
  return {room.get(), room.get() + size};
}

}  // namespace rnic::wire
