#include "tcp/record_queue.hpp"

#include <algorithm>
#include <bit>
#include <vector>

namespace rnic::tcp {

// A queue of at most kOwnRecords records lies in two chunks, and one of n records in fewer than
// n / kChunkRecords + 2. The queues that are longer have at most max_records records together: the
// last one that grew beyond kOwnRecords did so below that limit. So a chunk is left for each queue
// where there are two for each connection beside those that all records fill.
uint32_t RecordPool::chunks_for(uint32_t max_records, uint32_t max_connections) {
  const uint32_t whole = max_records / kChunkRecords + 1;
  return whole + std::min(2 * max_connections, whole + 64);
}

// A queue keeps a directory until it has two chunks left. More chunks hold at least kChunkRecords +
// 1 records, so no more queues than this can have a directory at once.
uint32_t RecordPool::directories_for(uint32_t max_records, uint32_t max_connections) {
  return std::min(max_connections, max_records / (kChunkRecords + 1) + 1);
}

uint32_t RecordPool::directory_size_for(uint32_t max_per_connection) {
  return std::bit_ceil(max_per_connection / kChunkRecords + 2);
}

uint64_t RecordPool::chunk_octets_for(uint32_t max_records, uint32_t max_connections) {
  const uint64_t chunks = chunks_for(max_records, max_connections);
  return base::ZeroArray<Record>::octets_for(chunks * kChunkRecords) +
         base::FreeNumbers::octets_for(chunks);
}

uint64_t RecordPool::directory_octets_for(uint32_t max_records, uint32_t max_connections,
                                          uint32_t max_per_connection) {
  const uint64_t directories = directories_for(max_records, max_connections);
  return base::ZeroArray<uint32_t>::octets_for(directories *
                                               directory_size_for(max_per_connection)) +
         base::FreeNumbers::octets_for(directories);
}

RecordPool::RecordPool(uint32_t max_records, uint32_t max_connections, uint32_t max_per_connection)
    : records_(size_t{chunks_for(max_records, max_connections)} * kChunkRecords),
      free_(chunks_for(max_records, max_connections)),
      directory_size_(directory_size_for(max_per_connection)),
      directories_(size_t{directories_for(max_records, max_connections)} * directory_size_),
      free_directories_(directories_for(max_records, max_connections)),
      max_records_(max_records),
      max_connections_(max_connections),
      own_records_(max_records / (2 * kChunkRecords) >= max_connections ? kOwnRecords : 0),
      max_per_connection_(max_per_connection) {}

void RecordPool::validate() const {
  free_.validate();
  free_directories_.validate();
  RNIC_CHECK(live_ <= max_records_ + uint64_t{own_records_} * max_connections_);
  RNIC_CHECK(live_ <= uint64_t{chunks_in_use()} * kChunkRecords);
}

void RecordQueue::validate() const {
  RNIC_CHECK(size() <= pool_.max_per_connection_ && chunks() <= uint64_t{directory_mask_} + 1);
  RNIC_CHECK(directory_mask_ == (is_wide() ? pool_.directory_size_ : kInlineChunks) - 1);
  if (empty()) {
    RNIC_CHECK(!is_wide());
    return;
  }
  RNIC_CHECK(head_ == &at(first_) && row_end_ == head_ + (kPer - first_ % kPer));
  // The pool gave out each chunk, and the queue has none of them twice.
  std::vector<bool> mine(pool_.free_.fresh());
  for (uint64_t i = first_ / kPer; i <= (past_last_ - 1) / kPer; ++i) {
    const uint32_t chunk = directory_[i & directory_mask_];
    RNIC_CHECK(chunk < mine.size() && !mine[chunk]);
    mine[chunk] = true;
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

void RecordQueue::add_chunk() {
  if (chunks() > directory_mask_) {
    const size_t wide = pool_.free_directories_.take();
    move_directory(&pool_.directories_[wide * pool_.directory_size_], pool_.directory_size_ - 1);
  }
  directory_[(past_last_ / kPer) & directory_mask_] = pool_.free_.take();
}

void RecordQueue::give_back_chunk() {
  pool_.free_.give(directory_[((first_ - 1) / kPer) & directory_mask_]);
  if (directory_ != inline_ && chunks() <= kInlineChunks / 2) {
    const auto wide = static_cast<size_t>(directory_ - pool_.directories_.data());
    move_directory(inline_, kInlineChunks - 1);
    pool_.free_directories_.give(static_cast<uint32_t>(wide / pool_.directory_size_));
  }
  if (!empty()) find_head();
}

void RecordQueue::clear() {
  while (!empty()) pop_front();
}

uint64_t RecordQueue::find(uint64_t offset) const {
  uint64_t low = first_;
  uint64_t high = past_last_;
  if (low == high || offset < at(low).offset) return low;
  // Most records of a flight are as long as the first one, but for the ends of messages.
  constexpr uint32_t kStepsNear = 4;
  uint64_t near = std::min(low + (offset - at(low).offset) / at(low).length, high - 1);
  for (uint32_t steps = 0; steps < kStepsNear; ++steps) {
    const Record& record = at(near);
    if (offset < record.offset) {
      high = near--;
    } else if (offset < record.end()) {
      return near;
    } else {
      low = ++near;
    }
    if (low == high) return low;
  }
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
