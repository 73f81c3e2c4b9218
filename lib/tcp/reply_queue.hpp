/// \file
/// Segments that belong to no connection and wait for the output stage: RST, the ACKs of TIME-WAIT,
/// SYN-ACKs with a cookie.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/check.hpp"
#include "base/seq32.hpp"
#include "rnic/address.hpp"
#include "tcp/segment.hpp"

namespace rnic::tcp {

struct Reply {
  Endpoint local;
  Endpoint remote;
  base::Seq32 seq;
  base::Seq32 ack;
  uint8_t flags = 0;
  uint8_t traffic_class = 0;
  uint8_t options_length = 0;  ///< a multiple of 4
  uint16_t window = 0;
  /// The reply carries the timestamps of a connection, filled in when it is sent (RFC 7323 s.3.2: a
  /// RST SHOULD carry them).
  bool stamped = false;
  uint32_t ts_offset = 0;
  uint32_t ts_recent = 0;
  std::array<uint8_t, 40> options{};
};

/// A bounded queue, first in, first out. A reply that does not fit is lost, as if by the network.
class ReplyQueue {
 public:
  static constexpr uint32_t kCapacity = 256;

  ReplyQueue() : replies_(kCapacity) {}

  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] Reply& front() { return replies_[first_]; }
  void pop() {
    first_ = (first_ + 1) % kCapacity;
    --count_;
  }
  /// The place of a new reply, reset; nullptr: full.
  [[nodiscard]] Reply* push() {
    if (count_ == kCapacity) return nullptr;
    Reply& reply = replies_[(first_ + count_++) % kCapacity];
    reply = Reply{};
    return &reply;
  }
  /// Checks the bounds, and that each reply has flags and a destination.
  void validate() const {
    RNIC_CHECK(count_ <= kCapacity && first_ < kCapacity && replies_.size() == kCapacity);
    for (uint32_t i = 0; i < count_; ++i) {
      const Reply& reply = replies_[(first_ + i) % kCapacity];
      RNIC_CHECK(reply.flags != 0 && !reply.remote.address.is_unspecified());
      RNIC_CHECK(reply.options_length <= reply.options.size() && reply.options_length % 4 == 0);
    }
  }

  /// Queues a RST for a segment that belongs to no connection and is no RST itself (RFC 9293
  /// s.3.5.2, groups 1 and 2).
  void reset(const Segment& segment) {
    Reply* reply = push();
    if (reply == nullptr) return;
    reply->local = segment.local;
    reply->remote = segment.remote;
    if (segment.has(wire::tcp_flag::kAck)) {
      reply->seq = segment.ack;
      reply->flags = wire::tcp_flag::kRst;
    } else {
      reply->ack = segment.seq + segment.length();
      reply->flags = wire::tcp_flag::kRst | wire::tcp_flag::kAck;
    }
  }

 private:
  std::vector<Reply> replies_;
  uint32_t first_ = 0;
  uint32_t count_ = 0;
};

}  // namespace rnic::tcp
