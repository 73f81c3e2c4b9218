#include "tcp/record_queue.hpp"

#include <bit>

namespace rnic::tcp {

RecordPool::RecordPool(uint32_t max_records, uint32_t max_connections, uint32_t max_per_connection)
    : max_records_(max_records), max_per_connection_(max_per_connection) {
  const uint32_t chunks = max_records / kChunkRecords + 1 + 2 * max_connections;
  records_.resize(size_t{chunks} * kChunkRecords);
  free_.reserve(chunks);
  for (uint32_t i = chunks; i-- > 0;) free_.push_back(i);
  directory_size_ = std::bit_ceil(max_per_connection / kChunkRecords + 2);
  directories_.resize(size_t{max_connections} * directory_size_);
}

void RecordQueue::push_back(const Record& record) {
  RNIC_DCHECK(!full());
  const bool new_chunk = past_last_ % kPer == 0 || empty();
  if (new_chunk) {
    // An empty queue holds no chunk, whatever the number it stands at.
    directory_[(past_last_ / kPer) & (pool_.directory_size_ - 1)] = pool_.free_.back();
    pool_.free_.pop_back();
  }
  ++past_last_;
  ++pool_.live_;
  back() = record;
}

void RecordQueue::pop_front() {
  RNIC_DCHECK(!empty());
  const uint32_t chunk = directory_[(first_ / kPer) & (pool_.directory_size_ - 1)];
  ++first_;
  --pool_.live_;
  if (first_ % kPer == 0 || empty()) pool_.free_.push_back(chunk);
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
