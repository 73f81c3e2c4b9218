/// \file
/// Descriptors of the unacknowledged records, oldest first: one ring for each connection, which
/// grows and shrinks by chunks of a pool that all connections of a stack share.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/time.hpp"
#include "base/zero_array.hpp"
#include "llp/stream.hpp"

namespace rnic::tcp {

namespace record_flag {
inline constexpr uint16_t kPush = 1 << 0;
inline constexpr uint16_t kSegmentStart = 1 << 1;  ///< a segment began here when it was first sent
inline constexpr uint16_t kSacked = 1 << 2;
inline constexpr uint16_t kLost = 1 << 3;           ///< presumed lost
inline constexpr uint16_t kRetransmitted = 1 << 4;  ///< with kLost: a retransmission is in flight
inline constexpr uint16_t kResent = 1 << 5;         ///< sent more than once, ever (Karn)
inline constexpr uint16_t kFin = 1 << 6;            ///< our FIN: one sequence number, no octet
inline constexpr uint16_t kCut = 1 << 7;            ///< counted as cut over several segments
}  // namespace record_flag

inline constexpr uint32_t kNoSaved = UINT32_MAX;

/// `length` counts sequence numbers.
struct Record : llp::SentRecord {
  uint32_t saved = kNoSaved;  ///< copy in SavedRecords, for records that were cut
  base::Now sent_at{};        ///< last transmission
  uint16_t flags = 0;

  [[nodiscard]] bool is(uint16_t flag) const { return (flags & flag) != 0; }
};

/// Chunks of descriptors for all connections of a stack, and directories of chunks for those that
/// hold many. All memory is taken at construction and touched at first use; a queue without records
/// holds none of it.
class RecordPool {
 public:
  static constexpr uint32_t kChunkRecords = 32;
  /// So many descriptors each queue may have whatever the others hold, if there are two chunks of
  /// them for each connection. So peers that acknowledge nothing stop no other connection: these
  /// are enough for a loss to be noticed by duplicate ACKs, and for a peer that delays its ACKs.
  static constexpr uint32_t kOwnRecords = 16;

  /// \param max_records limit of all descriptors at once, but for those that each queue may have
  /// in any case. \param max_connections at most as many queues are not empty at a time. Each may
  /// hold a part-filled chunk at either end, for which at most about half of the chunks are
  /// reserved: where this is less than two for each, no queue has records of its own.
  /// \param max_per_connection limit of the descriptors of one queue.
  RecordPool(uint32_t max_records, uint32_t max_connections, uint32_t max_per_connection);

  /// Only queues that have not all records of their own get another one.
  [[nodiscard]] bool full() const { return live_ >= max_records_ || free_.empty(); }
  /// A queue gets so many more, kChunkRecords at most, whatever it has: one that is empty may need
  /// two chunks for them.
  [[nodiscard]] bool has(uint32_t records) const {
    return uint64_t{live_} + records <= max_records_ && free_.size() >= 2;
  }
  [[nodiscard]] uint32_t live() const { return live_; }
  [[nodiscard]] uint32_t chunks_in_use() const { return free_.capacity() - free_.size(); }
  [[nodiscard]] uint32_t directories_in_use() const {
    return free_directories_.capacity() - free_directories_.size();
  }
  /// Checks the pool alone. Each queue knows what it holds of the pool; Shared::validate() compares
  /// the sums.
  void validate() const;
  /// The memory that the chunks of a pool take.
  [[nodiscard]] static uint64_t chunk_octets_for(uint32_t max_records, uint32_t max_connections);
  /// The memory that the directories of a pool take.
  [[nodiscard]] static uint64_t directory_octets_for(uint32_t max_records, uint32_t max_connections,
                                                     uint32_t max_per_connection);

 private:
  friend class RecordQueue;

  [[nodiscard]] static uint32_t chunks_for(uint32_t max_records, uint32_t max_connections);
  [[nodiscard]] static uint32_t directories_for(uint32_t max_records, uint32_t max_connections);
  [[nodiscard]] static uint32_t directory_size_for(uint32_t max_per_connection);

  base::ZeroArray<Record> records_;
  base::FreeNumbers free_;                 // chunks
  uint32_t directory_size_;                // power of two
  base::ZeroArray<uint32_t> directories_;  // rings of chunk numbers, directory_size_ each
  base::FreeNumbers free_directories_;
  uint32_t max_records_;
  uint32_t max_connections_;
  uint32_t own_records_;  // of each queue: kOwnRecords, or none
  uint32_t max_per_connection_;
  uint32_t live_ = 0;
};

/// One connection's ring. Records are numbered from 0 on, for ever: first() .. past_last().
class RecordQueue {
 public:
  explicit RecordQueue(RecordPool& pool) : pool_(pool) {}
  ~RecordQueue() { clear(); }
  RecordQueue(const RecordQueue&) = delete;
  RecordQueue& operator=(const RecordQueue&) = delete;

  [[nodiscard]] bool empty() const { return first_ == past_last_; }
  [[nodiscard]] uint64_t first() const { return first_; }
  [[nodiscard]] uint64_t past_last() const { return past_last_; }
  [[nodiscard]] uint64_t size() const { return past_last_ - first_; }
  /// There is no room for another record: a limit of the connection or of the stack is reached.
  [[nodiscard]] bool full() const {
    return size() >= pool_.max_per_connection_ ||
           (size() >= pool_.own_records_ && pool_.full()) || directory_full();
  }

  /// How many records there is room for, of `most` that are at most kPer. It may say 1 too early.
  /// full() must be false.
  [[nodiscard]] uint32_t places(uint32_t most) const {
    const bool sure = size() + most <= pool_.max_per_connection_ && pool_.has(most) &&
                      chunks() <= directory_mask_;
    return sure ? most : 1;
  }

  [[nodiscard]] Record& at(uint64_t number) { return pool_.records_[place_of(number)]; }
  [[nodiscard]] const Record& at(uint64_t number) const { return pool_.records_[place_of(number)]; }
  /// empty() must be false.
  [[nodiscard]] Record& front() {
    RNIC_DCHECK(!empty());
    return *head_;
  }
  [[nodiscard]] const Record& front() const {
    RNIC_DCHECK(!empty());
    return *head_;
  }
  [[nodiscard]] Record& back() { return at(past_last_ - 1); }
  [[nodiscard]] const Record& back() const { return at(past_last_ - 1); }

  /// full() must be false.
  void push_back(const Record& record) {
    RNIC_DCHECK(!full());
    const bool first = empty();
    // An empty queue holds no chunk, whatever the number of its next record.
    if (past_last_ % kPer == 0 || first) [[unlikely]] add_chunk();
    ++past_last_;
    ++pool_.live_;
    // Member by member, as a copy of the whole would wait for its parts to be written.
    Record& added = back();
    added.offset = record.offset;
    added.tag = record.tag;
    added.length = record.length;
    added.saved = record.saved;
    added.sent_at = record.sent_at;
    added.flags = record.flags;
    if (first) [[unlikely]] find_head();
  }
  /// Appends `count` records, which fill(record, i) writes. places(count) must be count.
  template <typename Fill>
  void push_back(uint32_t count, Fill&& fill) {
    for (uint32_t done = 0; done < count;) {
      const bool first = empty();
      const auto in_chunk = static_cast<uint32_t>(past_last_ % kPer);
      if (in_chunk == 0 || first) [[unlikely]] add_chunk();
      const uint32_t n = std::min(count - done, kPer - in_chunk);
      past_last_ += n;
      pool_.live_ += n;
      Record* added = &at(past_last_ - n);
      for (const uint32_t end = done + n; done < end; ++done) fill(*added++, done);
      if (first) [[unlikely]] find_head();
    }
  }
  void pop_front() {
    RNIC_DCHECK(!empty());
    ++first_;
    ++head_;
    --pool_.live_;
    if (first_ % kPer == 0 || empty()) give_back_chunk();
  }
  /// End of the contiguous memory that begins with front(). The queue may end before it.
  [[nodiscard]] const Record* row_end() const { return row_end_; }
  /// \param count records, none of them at or beyond row_end()
  void pop_front(uint32_t count) {
    RNIC_DCHECK(count <= size() && count <= static_cast<size_t>(row_end_ - head_));
    first_ += count;
    head_ += count;
    pool_.live_ -= count;
    if (head_ == row_end_ || empty()) give_back_chunk();
  }
  void clear();

  /// Number of the first record whose end lies beyond `offset`; past_last() when there is none.
  [[nodiscard]] uint64_t find(uint64_t offset) const;

  /// Number of chunks of the pool that the queue holds, from the chunk of the first record to that
  /// of the last.
  [[nodiscard]] uint64_t chunks() const {
    return empty() ? 0 : (past_last_ - 1) / kPer - first_ / kPer + 1;
  }
  /// The queue holds a directory of the pool.
  [[nodiscard]] bool is_wide() const { return directory_ != inline_; }
  void validate() const;

 private:
  static constexpr uint32_t kPer = RecordPool::kChunkRecords;
  static constexpr uint32_t kInlineChunks = 4;

  /// Index in the pool of the record with this number.
  [[nodiscard]] size_t place_of(uint64_t number) const {
    RNIC_DCHECK(number >= first_ && number < past_last_);
    return size_t{directory_[(number / kPer) & directory_mask_]} * kPer + number % kPer;
  }
  /// The next record needs a chunk for which the directory has no place, and no larger directory is
  /// free.
  [[nodiscard]] bool directory_full() const {
    return past_last_ % kPer == 0 && chunks() > directory_mask_ && !can_widen();
  }
  [[nodiscard]] bool can_widen() const {
    return directory_ == inline_ && !pool_.free_directories_.empty();
  }
  void move_directory(uint32_t* to, uint32_t mask);
  /// Takes a chunk for the next record.
  void add_chunk();
  /// Gives back the chunk of the record that was removed last.
  void give_back_chunk();
  void find_head() {
    head_ = &at(first_);
    row_end_ = head_ + (kPer - first_ % kPer);
  }

  RecordPool& pool_;
  uint32_t inline_[kInlineChunks] = {};  // the directory, as long as it is large enough
  uint32_t* directory_ = inline_;
  uint32_t directory_mask_ = kInlineChunks - 1;
  Record* head_ = nullptr;     // record first_, unless empty
  Record* row_end_ = nullptr;  // end of its chunk
  uint64_t first_ = 0;
  uint64_t past_last_ = 0;
};

}  // namespace rnic::tcp
