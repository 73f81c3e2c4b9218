#include "tcp/saved_records.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"

namespace rnic::tcp {

namespace {
constexpr uint32_t kNone = UINT32_MAX;
}

SavedRecords::SavedRecords(uint32_t max_octets) {
  const uint32_t blocks = std::max(max_octets / kBlockOctets, 1u);
  octets_.resize(size_t{blocks} * kBlockOctets);
  next_.resize(blocks);
  for (uint32_t i = 0; i < blocks; ++i) next_[i] = i + 1 < blocks ? i + 1 : kNone;
  free_ = 0;
}

bool SavedRecords::fits(uint32_t length) const {
  const uint32_t need = (length + kBlockOctets - 1) / kBlockOctets;
  return need <= next_.size() - in_use_;
}

bool SavedRecords::fits_half(uint32_t length) const {
  const uint32_t need = (length + kBlockOctets - 1) / kBlockOctets;
  return in_use_ == 0 ? fits(length) : in_use_ + need <= next_.size() / 2;
}

uint32_t SavedRecords::save(base::ByteView octets) {
  RNIC_DCHECK(!octets.empty());
  if (!fits(static_cast<uint32_t>(octets.size()))) return kNone;
  const uint32_t first = free_;
  uint32_t last = first;
  for (size_t done = 0; done < octets.size(); done += kBlockOctets) {
    const uint32_t block = free_;
    free_ = next_[block];
    ++in_use_;
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

void SavedRecords::release(uint32_t saved) {
  while (saved != kNone) {
    const uint32_t next = next_[saved];
    next_[saved] = free_;
    free_ = saved;
    --in_use_;
    saved = next;
  }
}

}  // namespace rnic::tcp
