/// \file
/// Passes all segments of a stack to its Egress.
#pragma once

#include <cstdint>

#include "base/time.hpp"
#include "rnic/address.hpp"
#include "tcp/counters.hpp"
#include "tcp/reply_queue.hpp"
#include "tcp/tcp.hpp"

namespace rnic::tcp {

class SegmentOut {
 public:
  /// Both parameters outlive this.
  SegmentOut(Egress& egress, Counters& counters) : egress_(egress), counters_(counters) {}

  /// Room for one segment. False: the port is full, which is a wait.
  [[nodiscard]] bool open(const IpAddress& source, const IpAddress& destination, TxSlot& slot,
                          base::Now now);
  /// Room for one segment at least, and for `most` at most. False: the port is full.
  [[nodiscard]] bool open(const IpAddress& source, const IpAddress& destination, uint32_t most,
                          TxRun& room, base::Now now);
  /// Sends the first `complete` segments, whose checksums are set, and gives back the other room.
  void complete(TxRun& room, uint32_t complete, base::Now now) {
    counters_.segments_out += complete;
    egress_.send_run(room, complete, now);
  }
  /// See Egress::hand_over().
  void hand_over(base::Now now) { egress_.hand_over(now); }
  /// Sets the checksum of a segment. `length` octets of header and payload are in place.
  static void sum(uint8_t* tcp, const Endpoint& local, const Endpoint& remote, uint32_t length);
  /// Sets the checksum and sends the segment. `length` octets of header and payload are in place.
  void complete(TxSlot& slot, const Endpoint& local, const Endpoint& remote, uint32_t length,
                base::Now now);
  void cancel(TxSlot& slot) { egress_.cancel(slot); }
  /// Sends the replies that belong to no connection. False: the port is full.
  [[nodiscard]] bool send(ReplyQueue& replies, base::Now now);

  [[nodiscard]] uint32_t path_mtu(const IpAddress& destination, base::Now now) const {
    return egress_.path_mtu(destination, now);
  }
  void reduce_path_mtu(const IpAddress& destination, uint32_t mtu, base::Now now) {
    egress_.reduce_path_mtu(destination, mtu, now);
  }
  /// R1 (RFC 9293 s.3.8.3) was reached: see Egress::doubt_path().
  void doubt_path(const IpAddress& destination, base::Now now) {
    ++counters_.path_doubts;
    egress_.doubt_path(destination, now);
  }

 private:
  [[nodiscard]] bool send(Reply& reply, base::Now now);

  Egress& egress_;
  Counters& counters_;
};

}  // namespace rnic::tcp
