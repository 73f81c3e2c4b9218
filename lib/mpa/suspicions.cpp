#include "mpa/suspicions.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "crc/crc.hpp"

namespace rnic::mpa {

uint32_t checksum_of(base::ByteView octets) {
  return crc::update(crc::kInit, octets.data(), octets.size());
}

bool Suspicions::drop(base::Range range, base::ByteView octets) {
  if (used_ != 0 && seen_before(range, octets)) return false;
  if (exhausted()) return false;
  for (Entry& entry : entries_) {
    if (entry.range.begin != UINT64_MAX) continue;
    const uint32_t checksum = checksum_of(octets);
    entry = {range, checksum, checksum ^ crc::shift(crc::kInit, range.size()), range.size()};
    ++used_;
    return true;
  }
  return false;
}

/// A retransmission may hold the octets of several dropped segments. Each of its octets must have
/// come before: a new octet may be damaged, even if all octets in front of it are the same as
/// before.
bool Suspicions::seen_before(base::Range range, base::ByteView octets) const {
  uint64_t seen = range.begin;  // octets before this offset have come before
  const auto goes_on = [&](const Entry& entry) {
    if (entry.range.begin < range.begin || entry.range.begin > seen) return false;
    if (entry.range.end <= seen || entry.range.end > range.end) return false;
    const uint64_t from = entry.range.begin - range.begin;
    return checksum_of(octets.subspan(from, entry.range.size())) == entry.checksum;
  };
  while (seen != range.end) {
    const auto* const next = std::find_if(entries_.begin(), entries_.end(), goes_on);
    if (next == entries_.end()) return false;
    seen = next->range.end;
  }
  return true;
}

/// A CRC is linear, so the part of each FPDU can be taken out of the difference in any order.
void Suspicions::compare(base::Range range, const uint8_t* octets) {
  for (Entry& entry : entries_) {
    const uint64_t begin = std::max(range.begin, entry.range.begin);
    const uint64_t end = std::min(range.end, entry.range.end);
    if (begin >= end) continue;
    const uint32_t part = crc::update(0, octets + (begin - range.begin), end - begin);
    entry.difference ^= crc::shift(part, entry.range.end - end);
    entry.not_placed -= end - begin;
    if (entry.not_placed != 0 || entry.difference == 0) continue;
    entry = {};
    --used_;
  }
}

void Suspicions::validate() const {
  uint32_t used = 0;
  for (const Entry& entry : entries_) {
    if (entry.range.begin == UINT64_MAX) continue;
    ++used;
    RNIC_CHECK(entry.not_placed <= entry.range.size());
    // An entry whose octets were placed exactly as they had been dropped stays: the drop was
    // needless.
    RNIC_CHECK(entry.not_placed != 0 || entry.difference == 0);
  }
  RNIC_CHECK(used == used_);
}

}  // namespace rnic::mpa
