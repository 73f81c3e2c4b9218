/// \file
/// The headers of one connection's segments.
#pragma once

#include <cstdint>

#include "base/time.hpp"
#include "tcp/connection_core.hpp"
#include "tcp/receiver.hpp"
#include "wire/tcp.hpp"
#include "wire/tcp_options.hpp"

namespace rnic::tcp {

/// Of a connection whose SYNs have crossed; each of its segments acknowledges what was received.
class SegmentWriter {
 public:
  /// All of them outlive this.
  SegmentWriter(ConnectionCore& core, Receiver& receiver) : core_(core), receiver_(receiver) {}

  /// Room for a header with any options. False: the port is full.
  [[nodiscard]] bool open(TxSlot& slot, base::Now now);
  /// Room for `payload` octets, too.
  [[nodiscard]] bool begin(uint32_t payload, TxSlot& slot, base::Now now);
  /// Where the payload of a slot begins.
  [[nodiscard]] uint8_t* payload_of(const TxSlot& slot) const {
    return slot.tcp + core_.tcb.header_length();
  }
  void cancel(TxSlot& slot) { core_.shared.out.cancel(slot); }
  /// ECT(0) and CWR of new data (RFC 3168 s.6.1.2). \return flags
  [[nodiscard]] uint8_t mark_new_data(TxSlot& slot);
  /// The payload is in its place: \param offset of its first octet in the stream
  void finish(TxSlot& slot, uint64_t offset, uint32_t payload, uint8_t flags, base::Now now);
  /// An ACK alone, with SACK blocks. False: the port is full.
  [[nodiscard]] bool send_ack(base::Now now);
  /// Those that a change of CE owes (RFC 8257 s.3.2). False: the port is full.
  [[nodiscard]] bool send_owed_acks(base::Now now);

 private:
  [[nodiscard]] uint8_t ecn_flags(TxSlot& slot) const;

  ConnectionCore& core_;
  Receiver& receiver_;
};

}  // namespace rnic::tcp
