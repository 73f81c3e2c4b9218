#include "squeezing_port.hpp"

#include <algorithm>

#include "base/endian.hpp"
#include "offload/offload.hpp"
#include "wire/tcp.hpp"
#include "wire/tcp_options.hpp"

namespace rnic::simulation {

uint32_t SqueezingPort::tx_burst(std::span<port::Packet> packets, base::Now now) {
  // One at a time: what is refused comes again, and is no further segment.
  for (uint32_t i = 0; i < packets.size(); ++i) {
    squeeze(packets[i]);
    if (inner_.tx_burst(packets.subspan(i, 1), now) == 0) return i;
  }
  return static_cast<uint32_t>(packets.size());
}

void SqueezingPort::squeeze(port::Packet& packet) {
  const auto at = offload::locate_tcp(packet.view());
  if (!at) return;
  uint8_t* tcp = packet.data + at->tcp;
  Sender& sender = senders_[base::load_be32(tcp)];
  if ((tcp[wire::kTcpFlagsAt] & wire::tcp_flag::kSyn) != 0) {
    wire::TcpOptions options;
    const uint32_t begin = at->tcp + wire::kTcpHeaderMin;
    const bool parsed = options.parse(packet.view().subspan(begin, at->payload - begin));
    sender = {};
    if (parsed && scaling_) sender.shift = options.window_scale.value_or(0);
    return;
  }
  if (sender.segments++ < squeeze_.after) return;
  if (sender.limit == 0 || prng_.chance(squeeze_.change)) {
    sender.limit = static_cast<uint32_t>(prng_.between(squeeze_.least, squeeze_.most));
  }
  const uint32_t window = base::load_be16(tcp + wire::kTcpWindowAt);
  const uint32_t limit = std::max(sender.limit >> sender.shift, 1u);
  if (window <= limit) return;
  base::store_be16(tcp + wire::kTcpWindowAt, static_cast<uint16_t>(limit));
  if (packet.l4_checksum == port::Checksum::Open) return;
  offload::write_tcp_checksum({packet.data, packet.length}, *at);
}

}  // namespace rnic::simulation
