#include "tcp/saved_records.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"

namespace rnic::tcp {

namespace {
constexpr uint32_t kNone = UINT32_MAX;

uint32_t blocks_for(uint32_t max_octets) {
  return std::max(max_octets / SavedRecords::kBlockOctets, 1u);
}
}  // namespace

SavedRecords::SavedRecords(uint32_t max_octets)
    : octets_(size_t{blocks_for(max_octets)} * kBlockOctets),
      next_(blocks_for(max_octets)),
      free_(blocks_for(max_octets)) {}

uint64_t SavedRecords::octets_for(uint32_t max_octets) {
  return uint64_t{blocks_for(max_octets)} * (kBlockOctets + 2 * sizeof(uint32_t));
}

bool SavedRecords::fits(uint32_t length) const {
  const uint32_t need = (length + kBlockOctets - 1) / kBlockOctets;
  return need <= free_.size();
}

bool SavedRecords::fits_half(uint32_t length) const {
  const uint32_t need = (length + kBlockOctets - 1) / kBlockOctets;
  const uint32_t in_use = blocks_in_use();
  return in_use == 0 ? fits(length) : in_use + need <= free_.capacity() / 2;
}

uint32_t SavedRecords::save(base::ByteView octets) {
  RNIC_DCHECK(!octets.empty());
  if (!fits(static_cast<uint32_t>(octets.size()))) return kNone;
  uint32_t first = kNone;
  uint32_t last = kNone;
  for (size_t done = 0; done < octets.size(); done += kBlockOctets) {
    const uint32_t block = free_.take();
    (last == kNone ? first : next_[last]) = block;
    const size_t n = std::min<size_t>(kBlockOctets, octets.size() - done);
    std::memcpy(&octets_[size_t{block} * kBlockOctets], &octets[done], n);
    last = block;
  }
  next_[last] = kNone;
  return first;
}

void SavedRecords::copy(uint32_t saved, uint32_t from, uint32_t length, uint8_t* out) const {
  uint32_t block = saved;
  for (; from >= kBlockOctets; from -= kBlockOctets) block = next_[block];
  while (length != 0) {
    RNIC_DCHECK(block != kNone);
    const uint32_t n = std::min(length, kBlockOctets - from);
    std::memcpy(out, &octets_[size_t{block} * kBlockOctets + from], n);
    out += n;
    length -= n;
    from = 0;
    block = next_[block];
  }
}

uint32_t SavedRecords::blocks_of(uint32_t saved) const {
  uint32_t count = 0;
  for (; saved != kNone; saved = next_[saved]) {
    RNIC_CHECK(saved < free_.fresh() && count < free_.capacity());
    ++count;
  }
  return count;
}

void SavedRecords::release(uint32_t saved) {
  while (saved != kNone) {
    const uint32_t next = next_[saved];
    free_.give(saved);
    saved = next;
  }
}

}  // namespace rnic::tcp
