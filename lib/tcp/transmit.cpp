#include <algorithm>

#include "llp/pseudo_header.hpp"
#include "tcp/engine.hpp"
#include "wire/inet_checksum.hpp"

namespace rnic::tcp {

namespace flag = wire::tcp_flag;

bool Engine::open_slot(Connection& c, TxSlot& slot) {
  if (!egress_.begin(c.local_end.address, c.remote_end.address, slot)) {
    ++counters_.send_waits;
    return false;
  }
  slot.traffic_class = static_cast<uint8_t>(c.options.dscp << 2);
  slot.hop_limit = c.options.hop_limit;
  return true;
}

bool Engine::begin(Connection& c, TxSlot& slot) {
  if (!open_slot(c, slot)) return false;
  if (slot.room < header_length(c) + c.effective_mss) {  // the MTU has just shrunk: EMSS follows
    egress_.cancel(slot);
    ++counters_.send_waits;
    return false;
  }
  return true;
}

uint64_t Engine::room_to_offer(const Connection& c) const {
  const uint64_t most = uint64_t{0xffff} << c.tcb.rcv_wind_shift;
  const uint64_t room =
      std::min({uint64_t{config_.receive_window}, uint64_t{c.user->receive_room()}, most});
  return room >> c.tcb.rcv_wind_shift << c.tcb.rcv_wind_shift;
}

uint16_t Engine::advertise(Connection& c) {
  if (c.user != nullptr && receives(c.state) && !c.doomed) {
    const uint64_t room = room_to_offer(c);
    const uint64_t edge = c.tcb.rcv_nxt + room;
    // RFC 9293 s.3.8.6.2.2: the edge moves by worthwhile steps, and never back.
    c.rcv_buff = std::max(c.rcv_buff, static_cast<uint32_t>(room));
    const uint64_t step = std::min<uint64_t>(c.ack.rcv_mss(), c.rcv_buff / 2 + 1);
    if (edge >= c.tcb.rcv_edge + step) c.tcb.rcv_edge = edge;
  }
  return static_cast<uint16_t>(std::min<uint64_t>(c.tcb.rcv_wnd() >> c.tcb.rcv_wind_shift, 0xffff));
}

void Engine::complete(TxSlot& slot, const Endpoint& local, const Endpoint& remote, uint32_t length,
                      base::Now now) {
  if (!slot.checksum_open) {
    const uint32_t sum =
        llp::pseudo_header_sum(local.address, remote.address, wire::kProtocolTcp, length);
    base::store_be16(slot.tcp + wire::kTcpChecksumAt,
                     wire::checksum_fold(wire::checksum_add(sum, {slot.tcp, length})));
  }
  ++counters_.segments_out;
  egress_.send(slot, length, now);
}

void Engine::finish(Connection& c, TxSlot& slot, uint64_t offset, uint32_t payload, uint8_t flags,
                    base::Now now) {
  const uint32_t header = header_length(c);
  if (c.ecn.on()) flags |= ecn_flags(c, slot);
  wire::write_tcp(slot.tcp, {.source_port = c.local_end.port,
                             .destination_port = c.remote_end.port,
                             .sequence = c.tcb.snd_seq(offset),
                             .acknowledgment = c.tcb.ack_seq(),
                             .flags = flags,
                             .window = advertise(c),
                             .header_length = header});
  if (c.tcb.ts_ok) {
    uint8_t* options = slot.tcp + wire::kTcpHeaderMin;
    base::store_be32(options, 0x0101080a);  // NOP NOP TSopt
    base::store_be32(options + 4, c.tcb.timestamp(now));
    base::store_be32(options + 8, c.tcb.ts_recent);
  }
  c.ack.sent();
  complete(slot, c.local_end, c.remote_end, header + payload, now);
}

bool Engine::send_ack(Connection& c, base::Now now) {
  TxSlot slot;
  if (!open_slot(c, slot)) return false;
  wire::TcpOptionWriter options(slot.tcp + wire::kTcpHeaderMin);
  if (c.tcb.ts_ok) {
    options.nop();
    options.nop();
    options.timestamps({c.tcb.timestamp(now), c.tcb.ts_recent});
  }
  AckPolicy::SackBlocks blocks;
  if (const uint32_t count = c.ack.fill_sack(blocks); count != 0) {
    options.sack(blocks.data(), count);
  }
  const uint32_t header = wire::kTcpHeaderMin + options.finish();
  wire::write_tcp(
      slot.tcp, {.source_port = c.local_end.port,
                 .destination_port = c.remote_end.port,
                 .sequence = c.tcb.snd_seq(c.tcb.snd_nxt),
                 .acknowledgment = c.tcb.ack_seq(),
                 .flags = static_cast<uint8_t>(flag::kAck | (c.ecn.on() ? ecn_flags(c, slot) : 0)),
                 .window = advertise(c),
                 .header_length = header});
  c.ack.sent_alone();
  ++counters_.acks_out;
  complete(slot, c.local_end, c.remote_end, header, now);
  return true;
}

bool Engine::send_window_probe(Connection& c, base::Now now) {
  // RFC 9293 s.3.8.6.1. The last octet acknowledged goes out again: the peer must answer what lies
  // before its window, and no record is cut for it. Before the first octet the probe is empty.
  if (c.tcb.flight() != 0) {
    c.window_probe_due = false;
    return true;
  }
  TxSlot slot;
  if (!begin(c, slot)) return false;
  const uint64_t una = c.tcb.snd_una;
  const uint32_t length = una != 0 ? 1 : 0;
  if (length != 0) slot.tcp[header_length(c)] = c.last_octet;
  finish(c, slot, una - 1, length, flag::kAck, now);
  c.window_probe_due = false;
  ++c.unanswered_probes;
  ++counters_.window_probes;
  return true;
}

bool Engine::send_replies(base::Now now) {
  while (!replies_.empty()) {
    Reply& r = replies_.front();
    TxSlot slot;
    if (!egress_.begin(r.local.address, r.remote.address, slot)) {
      if (egress_.path_mtu(r.remote.address) == 0) {  // nobody to tell
        replies_.pop();
        continue;
      }
      ++counters_.send_waits;
      return false;
    }
    if (r.stamped) {
      wire::TcpOptionWriter options(r.options.data());
      options.nop();
      options.nop();
      options.timestamps({timestamp_at(r.ts_offset, now), r.ts_recent});
      r.options_length = static_cast<uint8_t>(options.finish());
    }
    wire::write_tcp(slot.tcp, {.source_port = r.local.port,
                               .destination_port = r.remote.port,
                               .sequence = r.seq,
                               .acknowledgment = r.ack,
                               .flags = r.flags,
                               .window = r.window,
                               .header_length = wire::kTcpHeaderMin + r.options_length});
    std::copy_n(r.options.begin(), r.options_length, slot.tcp + wire::kTcpHeaderMin);
    slot.traffic_class |= r.traffic_class;
    if ((r.flags & flag::kRst) != 0) {
      ++counters_.resets_out;
    } else if ((r.flags & flag::kSyn) == 0) {
      ++counters_.acks_out;
    }
    complete(slot, r.local, r.remote, wire::kTcpHeaderMin + r.options_length, now);
    replies_.pop();
  }
  return true;
}

}  // namespace rnic::tcp
