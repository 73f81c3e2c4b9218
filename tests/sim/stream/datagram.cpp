#include "stream/datagram.hpp"

#include <algorithm>

#include "llp/pseudo_header.hpp"
#include "wire/inet_checksum.hpp"
#include "wire/ipv4.hpp"

namespace rnic::simulation {

namespace {

uint16_t sum_of(const Datagram& d) {
  const uint32_t sum = llp::pseudo_header_sum(d.source, d.destination, wire::kProtocolTcp,
                                              static_cast<uint32_t>(d.tcp.size()));
  return wire::checksum_fold(wire::checksum_add(sum, d.tcp));
}

}  // namespace

bool checksum_right(const Datagram& d) { return sum_of(d) == 0; }

void complete_checksum(Datagram& d) {
  base::store_be16(&d.tcp[wire::kTcpChecksumAt], 0);
  base::store_be16(&d.tcp[wire::kTcpChecksumAt], sum_of(d));
}

std::vector<uint8_t> ethernet_frame(const Datagram& d) {
  constexpr uint32_t kEther = 14;
  const bool v4 = d.source.is_v4();
  const uint32_t ip = v4 ? wire::kIpv4Header : 40;
  std::vector<uint8_t> frame(kEther + ip);
  base::store_be16(&frame[12], v4 ? 0x0800 : 0x86dd);
  uint8_t* p = &frame[kEther];
  if (v4) {
    wire::write_ipv4(p, {.total_length = d.ip_length(),
                         .tos = d.traffic_class,
                         .fragment = wire::kIpv4DontFragment,
                         .ttl = 64,
                         .protocol = wire::kProtocolTcp,
                         .source = d.source.as_v4(),
                         .destination = d.destination.as_v4()});
  } else {
    base::store_be32(p, 6u << 28 | uint32_t{d.traffic_class} << 20);
    base::store_be16(p + 4, static_cast<uint16_t>(d.tcp.size()));
    p[6] = wire::kProtocolTcp;
    p[7] = 64;
    base::store_be64(p + 8, d.source.high());
    base::store_be64(p + 16, d.source.low());
    base::store_be64(p + 24, d.destination.high());
    base::store_be64(p + 32, d.destination.low());
  }
  frame.insert(frame.end(), d.tcp.begin(), d.tcp.end());
  return frame;
}

}  // namespace rnic::simulation
