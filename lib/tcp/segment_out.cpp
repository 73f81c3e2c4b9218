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

void SegmentOut::complete(TxSlot& slot, const Endpoint& local, const Endpoint& remote,
                          uint32_t length, base::Now now) {
  if (!slot.checksum_open) {
    const uint32_t sum =
        llp::pseudo_header_sum(local.address, remote.address, wire::kProtocolTcp, length);
    base::store_be16(slot.tcp + wire::kTcpChecksumAt,
                     wire::checksum_fold(wire::checksum_add(sum, {slot.tcp, length})));
  }
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

bool SegmentOut::send(Reply& r, base::Now now) {
  TxSlot slot;
  if (!egress_.begin(r.local.address, r.remote.address, slot, now)) {
    if (egress_.path_mtu(r.remote.address, now) == 0) return true;  // no route: it is dropped
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
  return true;
}

}  // namespace rnic::tcp
