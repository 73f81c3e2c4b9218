#include "tcp/record_queue.hpp"

#include <algorithm>
#include <bit>

namespace rnic::tcp {

RecordPool::RecordPool(uint32_t max_records, uint32_t max_connections, uint32_t max_per_connection)
    : max_records_(max_records), max_per_connection_(max_per_connection) {
  const uint32_t whole = max_records / kChunkRecords + 1;
  const uint32_t chunks = whole + std::min(2 * max_connections, whole + 64);
  records_.resize(size_t{chunks} * kChunkRecords);
  free_.reserve(chunks);
  for (uint32_t i = chunks; i-- > 0;) free_.push_back(i);
  directory_size_ = std::bit_ceil(max_per_connection / kChunkRecords + 2);
  // A queue keeps its directory down to two chunks: that many cannot do so at once and not hold
  // kChunkRecords + 1 records each.
  const uint32_t directories = std::min(max_connections, max_records / (kChunkRecords + 1) + 1);
  directories_.resize(size_t{directories} * directory_size_);
  free_directories_.reserve(directories);
  for (uint32_t i = directories; i-- > 0;) {
    free_directories_.push_back(&directories_[size_t{i} * directory_size_]);
  }
}

void RecordQueue::move_directory(uint32_t* to, uint32_t mask) {
  uint64_t number = first_ / kPer;
  for (uint64_t left = chunks(); left != 0; --left, ++number) {
    to[number & mask] = directory_[number & directory_mask_];
  }
  directory_ = to;
  directory_mask_ = mask;
}

void RecordQueue::push_back(const Record& record) {
  RNIC_DCHECK(!full());
  const bool new_chunk = past_last_ % kPer == 0 || empty();
  if (new_chunk) {
    if (chunks() > directory_mask_) {
      uint32_t* const wide = pool_.free_directories_.back();
      pool_.free_directories_.pop_back();
      move_directory(wide, pool_.directory_size_ - 1);
    }
    // An empty queue holds no chunk, whatever the number it stands at.
    directory_[(past_last_ / kPer) & directory_mask_] = pool_.free_.back();
    pool_.free_.pop_back();
  }
  ++past_last_;
  ++pool_.live_;
  back() = record;
  if (size() == 1) find_head();
}

void RecordQueue::give_back_chunk() {
  pool_.free_.push_back(directory_[((first_ - 1) / kPer) & directory_mask_]);
  if (directory_ != inline_ && chunks() <= kInlineChunks / 2) {
    uint32_t* const wide = directory_;
    move_directory(inline_, kInlineChunks - 1);
    pool_.free_directories_.push_back(wide);
  }
  if (!empty()) find_head();
}

void RecordQueue::clear() {
  while (!empty()) pop_front();
}

uint64_t RecordQueue::find(uint64_t offset) {
  uint64_t low = first_;
  uint64_t high = past_last_;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (at(middle).end() <= offset) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace rnic::tcp
