/// \file
/// Writes the headers of the segments of one connection.
#pragma once

#include <cstdint>

#include "base/time.hpp"
#include "tcp/connection_core.hpp"
#include "tcp/receiver.hpp"
#include "tcp/segment_run.hpp"
#include "wire/tcp.hpp"
#include "wire/tcp_options.hpp"

namespace rnic::tcp {

/// A SegmentWriter is used in synchronized states, in which each segment has the ACK field.
class SegmentWriter {
 public:
  /// Both parameters outlive this.
  SegmentWriter(const ConnectionCore& core, Receiver& receiver)
      : core_(core), receiver_(receiver) {}

  /// Room for a header with any options. False: the port is full.
  [[nodiscard]] bool open(TxSlot& slot, base::Now now);
  /// Room for a header and `payload` octets.
  [[nodiscard]] bool begin(uint32_t payload, TxSlot& slot, base::Now now);
  /// Room for the next segment of a burst, of at most `payload` octets.
  [[nodiscard]] bool begin(SegmentRun& run, uint32_t payload, base::Now now) {
    return run.has_room() || fill(run, payload, now);
  }
  /// The place of the payload in a slot.
  [[nodiscard]] uint8_t* payload_of(const TxSlot& slot) const {
    return slot.tcp + core_.tcb.header_length();
  }
  void cancel(TxSlot& slot) { core_.shared.out.cancel(slot); }
  /// Sets ECT(0) for new data. \param ecn the state of the connection. \return the flag CWR if it
  /// is due (RFC 3168 s.6.1.2), else 0
  [[nodiscard]] uint8_t mark_new_data(EcnState& ecn, TxSlot& slot);
  /// Writes the header and sends the segment, whose payload is in place. \param offset stream
  /// offset of its first octet
  void finish(TxSlot& slot, uint64_t offset, uint32_t payload, uint8_t flags, base::Now now);
  /// Completes the next segment of a burst. All have the ACK, the window and the timestamps of the
  /// first one.
  void finish(SegmentRun& run, uint64_t offset, uint32_t payload, uint8_t flags, base::Now now);
  /// Sends the segments of a burst that are complete, and gives back the rest of the room.
  void send(SegmentRun& run, base::Now now) {
    run.take([&](TxRun& room, uint32_t complete) {
      core_.shared.out.complete(room, complete, now);
    });
  }
  /// Sends an ACK without data, with SACK blocks. False: the port is full.
  [[nodiscard]] bool send_ack(base::Now now);
  /// Sends the ACKs that are owed for changes of CE (RFC 8257 s.3.2). False: the port is full.
  [[nodiscard]] bool send_owed_acks(EcnState& ecn, base::Now now);
  /// Sends the ACKs that are owed for the first parts of a burst. False: the port is full.
  [[nodiscard]] bool send_part_acks(base::Now now);

 private:
  [[nodiscard]] bool fill(SegmentRun& run, uint32_t payload, base::Now now);
  /// Sends an ACK whose number is below RCV.NXT.
  void send_older_ack(TxSlot& slot, base::Seq32 ack, uint8_t flags, base::Now now);
  void set_terms(TxSlot& slot) const;
  [[nodiscard]] bool fits(const TxSlot& slot, uint32_t payload);
  [[nodiscard]] uint8_t ecn_flags(TxSlot& slot);
  void write_header(TxSlot& slot, uint64_t offset, uint8_t flags, base::Now now);
  void send(TxSlot& slot, uint32_t payload, base::Now now);

  const ConnectionCore& core_;
  Receiver& receiver_;
};

[[gnu::always_inline]] inline void SegmentWriter::finish(SegmentRun& run, uint64_t offset,
                                                         uint32_t payload, uint8_t flags,
                                                         base::Now now) {
  TxSlot& slot = run.slot();
  const uint32_t header = core_.tcb.header_length();
  if (run.knows_header()) [[likely]] {
    if (core_.ecn.on()) flags |= ecn_flags(slot);
    run.write_header(core_.tcb.snd_seq(offset), flags);
  } else {
    write_header(slot, offset, flags, now);
    if (!run.is_at_last()) run.learn_header(header);
  }
  const Binding& binding = core_.binding();
  if (!slot.checksum_open) {
    SegmentOut::sum(slot.tcp, binding.local, binding.remote, header + payload);
  }
  run.complete(header + payload);
}

}  // namespace rnic::tcp
