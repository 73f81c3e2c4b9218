/// \file
/// The untagged buffer model: queues of anonymous buffers (RFC 5041 sections 4.3 and 7.1).
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.hpp"
#include "ddp/coverage.hpp"
#include "ddp/fault.hpp"
#include "rnic/work.hpp"
#include "wire/ddp.hpp"

namespace rnic::ddp {

/// One queue: the range of MSNs that have a buffer, and how much has come of the message that must
/// be delivered next. Both ends of the range only grow, modulo 2^32.
class UntaggedQueue {
 public:
  /// The owner made `n` more buffers available.
  void provide(uint32_t n) { buffers_ += n; }
  /// Fault 02 for the first message without a buffer, 03 for every other MSN outside the range
  /// between the first and the last available buffer.
  [[nodiscard]] Fault check(uint32_t msn) const;
  /// How many buffers have to be added until message `msn` has one.
  [[nodiscard]] uint32_t missing(uint32_t msn) const { return msn - deliver_msn_ + 1 - buffers_; }
  /// The message that must be delivered next.
  [[nodiscard]] uint32_t deliver_msn() const { return deliver_msn_; }
  /// Counts a segment of that message at its delivery. \param key as for Coverage
  void reached(const wire::DdpUntaggedHeader& header, uint32_t payload, uint64_t key);
  /// Counts one that has the RsvdULP of another segment of the message, which is counted as well.
  void reached_more(uint32_t mo, uint32_t payload, uint64_t key) {
    coverage_.add(mo, payload, key);
  }
  /// \return whether its segments cover [0, length), each octet once
  [[nodiscard]] bool whole(uint64_t length, uint64_t key) const {
    return coverage_.exactly(length, key);
  }
  /// \return whether all its segments carry the same RsvdULP (DDP-4.3-02)
  [[nodiscard]] bool uniform() const { return !mixed_; }
  /// The message was delivered; its buffer is used up.
  void consume() {
    ++deliver_msn_;  // DDP-4.3-04: from 0xFFFFFFFF to 0
    --buffers_;
    coverage_ = {};
    begun_ = mixed_ = false;
  }
  /// For tests of the wrap: the first MSN is 1 on every stream.
  void start_at(uint32_t msn) { deliver_msn_ = msn; }

 private:
  uint32_t deliver_msn_ = 1;
  uint32_t buffers_ = 0;  // Invariant: MSNs [deliver_msn_, deliver_msn_ + buffers_) have buffers
  // These describe the message deliver_msn_.
  Coverage coverage_;
  uint32_t rsvd_ulp_tail_ = 0;
  uint8_t rsvd_ulp_ = 0;
  bool begun_ = false;
  bool mixed_ = false;
};

/// The memory that an untagged message goes to: registered memory, or memory of the layer above.
struct UntaggedTarget {
  std::span<const Sge> sges;
  base::ByteSpan internal;  ///< used when not empty
  uint64_t length = 0;      ///< of the buffer
};

/// Checks MO and MO + length against the length of the buffer.
[[nodiscard]] Fault check_offset(uint32_t mo, uint32_t payload, uint64_t buffer);

}  // namespace rnic::ddp
