#include "tcp/segment_writer.hpp"

#include <algorithm>

#include "base/bytes.hpp"

namespace rnic::tcp {

namespace flag = wire::tcp_flag;

bool SegmentWriter::open(TxSlot& slot, base::Now now) {
  if (!core_.shared.out.open(core_.binding().local.address, core_.binding().remote.address, slot,
                             now))
    return false;
  set_terms(slot);
  return true;
}

/// Sets what the connection asks of the packet.
void SegmentWriter::set_terms(TxSlot& slot) const {
  slot.traffic_class = static_cast<uint8_t>(core_.binding().options.dscp << 2);
  slot.hop_limit = core_.binding().options.hop_limit;
}

/// The segment fits the slot. It does not where the MTU has shrunk; EMSS will follow.
bool SegmentWriter::fits(const TxSlot& slot, uint32_t payload) {
  if (slot.room >= core_.tcb.header_length() + payload) [[likely]] return true;
  ++core_.shared.counters.send_waits;
  return false;
}

bool SegmentWriter::begin(uint32_t payload, TxSlot& slot, base::Now now) {
  if (!open(slot, now)) return false;
  if (fits(slot, payload)) return true;
  core_.shared.out.cancel(slot);
  return false;
}

bool SegmentWriter::fill(SegmentRun& run, uint32_t payload, base::Now now) {
  send(run, now);
  const Binding& binding = core_.binding();
  const bool filled = run.fill([&](uint32_t most, TxRun& room) {
    return core_.shared.out.open(binding.local.address, binding.remote.address, most, room, now);
  });
  if (!filled) return false;
  set_terms(run.slot());
  if (fits(run.slot(), payload)) return true;
  send(run, now);
  return false;
}

uint8_t SegmentWriter::ecn_flags(TxSlot& slot) {
  // RFC 3168 s.6.1.4-6.1.6: these segments are not ECN-capable unless the Config asks for it under
  // DCTCP (RFC 8257 s.4.1).
  if (core_.shared.config.dctcp_ect_on_control && core_.binding().dctcp() &&
      core_.ecn.sends_ect()) {
    slot.traffic_class |= ecn_codepoint::kEct0;
  }
  return core_.ecn.echoes() ? flag::kEce : 0;
}

uint8_t SegmentWriter::mark_new_data(EcnState& ecn, TxSlot& slot) {
  if (ecn.sends_ect()) slot.traffic_class |= ecn_codepoint::kEct0;
  if (!ecn.take_cwr()) return 0;
  ++core_.shared.counters.cwr_out;
  return flag::kCwr;
}

void SegmentWriter::write_header(TxSlot& slot, uint64_t offset, uint8_t flags, base::Now now) {
  const Binding& binding = core_.binding();
  if (core_.ecn.on()) flags |= ecn_flags(slot);
  wire::write_tcp(slot.tcp, {.source_port = binding.local.port,
                             .destination_port = binding.remote.port,
                             .sequence = core_.tcb.snd_seq(offset),
                             .acknowledgment = core_.tcb.ack_seq(),
                             .flags = flags,
                             .window = receiver_.advertise(),
                             .header_length = core_.tcb.header_length()});
  if (core_.tcb.ts_ok) {
    uint8_t* options = slot.tcp + wire::kTcpHeaderMin;
    base::store_be32(options, 0x0101080a);  // NOP NOP TSopt
    base::store_be32(options + 4, core_.tcb.timestamp(now));
    base::store_be32(options + 8, core_.tcb.ts_recent);
  }
  receiver_.ack_sent();
}

void SegmentWriter::send(TxSlot& slot, uint32_t payload, base::Now now) {
  const Binding& binding = core_.binding();
  const uint32_t length = core_.tcb.header_length() + payload;
  core_.shared.out.complete(slot, binding.local, binding.remote, length, now);
}

void SegmentWriter::finish(TxSlot& slot, uint64_t offset, uint32_t payload, uint8_t flags,
                           base::Now now) {
  write_header(slot, offset, flags, now);
  send(slot, payload, now);
}

bool SegmentWriter::send_ack(base::Now now) {
  TxSlot slot;
  if (!open(slot, now)) return false;
  wire::TcpOptionWriter options(slot.tcp + wire::kTcpHeaderMin);
  if (core_.tcb.ts_ok) {
    options.nop();
    options.nop();
    options.timestamps({core_.tcb.timestamp(now), core_.tcb.ts_recent});
  }
  AckPolicy::SackBlocks blocks;
  if (const uint32_t count = receiver_.fill_sack(blocks); count != 0) {
    options.sack(blocks.data(), count);
  }
  const uint32_t header = wire::kTcpHeaderMin + options.finish();
  wire::write_tcp(
      slot.tcp, {.source_port = core_.binding().local.port,
                 .destination_port = core_.binding().remote.port,
                 .sequence = core_.tcb.snd_seq(core_.tcb.snd_nxt),
                 .acknowledgment = core_.tcb.ack_seq(),
                 .flags = static_cast<uint8_t>(flag::kAck | (core_.ecn.on() ? ecn_flags(slot) : 0)),
                 .window = receiver_.advertise(),
                 .header_length = header});
  receiver_.ack_sent_alone(now);
  ++core_.shared.counters.acks_out;
  core_.shared.out.complete(slot, core_.binding().local, core_.binding().remote, header, now);
  return true;
}

bool SegmentWriter::send_owed_acks(EcnState& ecn, base::Now now) {
  while (ecn.owes_acks()) {
    TxSlot slot;
    if (!open(slot, now)) return false;
    const auto [ack, ece] = ecn.take_owed();
    send_older_ack(slot, ack, ece ? flag::kEce : 0, now);
    ++core_.shared.counters.ce_change_acks;
  }
  return true;
}

bool SegmentWriter::send_part_acks(base::Now now) {
  while (receiver_.ack().owes_parts()) {
    TxSlot slot;
    if (!open(slot, now)) return false;
    const uint8_t ece = core_.ecn.on() ? ecn_flags(slot) : 0;
    send_older_ack(slot, receiver_.take_ack_part(), ece, now);
    ++core_.shared.counters.part_acks_out;
  }
  return true;
}

void SegmentWriter::send_older_ack(TxSlot& slot, base::Seq32 ack, uint8_t flags, base::Now now) {
  wire::TcpOptionWriter options(slot.tcp + wire::kTcpHeaderMin);
  if (core_.tcb.ts_ok) {
    options.nop();
    options.nop();
    options.timestamps({core_.tcb.timestamp(now), core_.tcb.ts_recent});
  }
  const uint32_t header = wire::kTcpHeaderMin + options.finish();
  // The window is computed from the older ACK number, so that its right edge stays.
  const auto room =
      static_cast<uint64_t>(static_cast<int64_t>(core_.tcb.rcv_edge) - core_.tcb.rcv_offset(ack));
  wire::write_tcp(slot.tcp, {.source_port = core_.binding().local.port,
                             .destination_port = core_.binding().remote.port,
                             .sequence = core_.tcb.snd_seq(core_.tcb.snd_nxt),
                             .acknowledgment = ack,
                             .flags = static_cast<uint8_t>(flag::kAck | flags),
                             .window = static_cast<uint16_t>(
                                 std::min<uint64_t>(room >> core_.tcb.rcv_wind_shift, 0xffff)),
                             .header_length = header});
  ++core_.shared.counters.acks_out;
  core_.shared.out.complete(slot, core_.binding().local, core_.binding().remote, header, now);
}

}  // namespace rnic::tcp
