#include "tcp/segment_out.hpp"

#include <algorithm>

#include "base/bytes.hpp"
#include "llp/pseudo_header.hpp"
#include "tcp/tcb.hpp"
#include "wire/inet_checksum.hpp"
#include "wire/tcp.hpp"
#include "wire/tcp_options.hpp"

namespace rnic::tcp {

namespace flag = wire::tcp_flag;

bool SegmentOut::open(const IpAddress& source, const IpAddress& destination, TxSlot& slot,
                      base::Now now) {
  if (egress_.begin(source, destination, slot, now)) return true;
  ++counters_.send_waits;
  return false;
}

bool SegmentOut::open(const IpAddress& source, const IpAddress& destination, uint32_t most,
                      TxRun& room, base::Now now) {
  if (egress_.begin_run(source, destination, most, room, now)) return true;
  ++counters_.send_waits;
  return false;
}

void SegmentOut::sum(uint8_t* tcp, const Endpoint& local, const Endpoint& remote,
                     uint32_t length) {
  const uint32_t pseudo =
      llp::pseudo_header_sum(local.address, remote.address, wire::kProtocolTcp, length);
  base::store_be16(tcp + wire::kTcpChecksumAt,
                   wire::checksum_fold(wire::checksum_add(pseudo, {tcp, length})));
}

void SegmentOut::complete(TxSlot& slot, const Endpoint& local, const Endpoint& remote,
                          uint32_t length, base::Now now) {
  if (!slot.checksum_open) sum(slot.tcp, local, remote, length);
  ++counters_.segments_out;
  egress_.send(slot, length, now);
}

bool SegmentOut::send(ReplyQueue& replies, base::Now now) {
  while (!replies.empty()) {
    if (!send(replies.front(), now)) return false;
    replies.pop();
  }
  return true;
}

bool SegmentOut::send(Reply& reply, base::Now now) {
  TxSlot slot;
  if (!egress_.begin(reply.local.address, reply.remote.address, slot, now)) {
    if (egress_.path_mtu(reply.remote.address, now) == 0) return true;  // no route: drop it
    ++counters_.send_waits;
    return false;
  }
  if (reply.stamped) {
    wire::TcpOptionWriter options(reply.options.data());
    options.nop();
    options.nop();
    options.timestamps({timestamp_at(reply.ts_offset, now), reply.ts_recent});
    reply.options_length = static_cast<uint8_t>(options.finish());
  }
  wire::write_tcp(slot.tcp, {.source_port = reply.local.port,
                             .destination_port = reply.remote.port,
                             .sequence = reply.seq,
                             .acknowledgment = reply.ack,
                             .flags = reply.flags,
                             .window = reply.window,
                             .header_length = wire::kTcpHeaderMin + reply.options_length});
  std::copy_n(reply.options.begin(), reply.options_length, slot.tcp + wire::kTcpHeaderMin);
  slot.traffic_class |= reply.traffic_class;
  if ((reply.flags & flag::kRst) != 0) {
    ++counters_.resets_out;
  } else if ((reply.flags & flag::kSyn) == 0) {
    ++counters_.acks_out;
  }
  complete(slot, reply.local, reply.remote, wire::kTcpHeaderMin + reply.options_length, now);
  return true;
}

}  // namespace rnic::tcp
