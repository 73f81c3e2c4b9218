#include "stream/attacker.hpp"

#include <algorithm>

#include "wire/tcp_options.hpp"

namespace rnic::simulation {

namespace flag = wire::tcp_flag;

namespace {

constexpr uint32_t kFar = 1u << 30;  // beyond every window there is

}  // namespace

Datagram Attacker::forge(const Judge& judge, uint32_t side, const Judge::Numbers& n) {
  const Endpoint& victim = judge.end(side);
  const Endpoint& peer = judge.end(1 - side);
  const uint32_t window = std::max(n.window, 2u);
  const auto inside = static_cast<uint32_t>(n.rcv_nxt + prng_.between(1, window - 1));
  const auto outside = static_cast<uint32_t>(n.rcv_nxt + kFar + prng_.below(kFar));
  // RFC 5961 s.5.2: acceptable is what lies from a window below SND.UNA to SND.NXT. kFar is
  // farther.
  const auto wild = static_cast<uint32_t>(n.snd_nxt + kFar + prng_.below(kFar));
  wire::TcpHeader header{.source_port = peer.port,
                         .destination_port = victim.port,
                         .sequence = base::Seq32(prng_.chance(0.5) ? inside : outside),
                         .acknowledgment = base::Seq32(wild),
                         .flags = flag::kAck,
                         .window = static_cast<uint16_t>(prng_.below(65'536))};
  uint32_t payload = 0;
  bool stamps = prng_.chance(0.5);
  switch (prng_.below(6)) {
    case 0:
      header.flags = flag::kRst;
      if (prng_.chance(0.5)) header.flags |= flag::kAck;
      break;
    case 1: header.flags = flag::kSyn; break;
    case 2: header.flags = flag::kSyn | flag::kAck; break;
    case 3:  // data right where the next is expected
      header.sequence = base::Seq32(n.rcv_nxt);
      payload = static_cast<uint32_t>(prng_.between(1, 1000));
      if (prng_.chance(0.3)) header.flags |= flag::kFin;
      break;
    case 4:
      payload = static_cast<uint32_t>(prng_.between(1, 1000));
      header.flags |= flag::kPsh;
      break;
    default: header.sequence = base::Seq32(n.rcv_nxt); break;
  }
  header.header_length = wire::kTcpHeaderMin + (stamps ? wire::kTcpTimestampsPadded : 0);
  Datagram d{peer.address, victim.address, {}, 0};
  d.tcp.resize(header.header_length + payload);
  wire::write_tcp(d.tcp.data(), header);
  if (stamps) {
    uint8_t* options = d.tcp.data() + wire::kTcpHeaderMin;
    base::store_be32(options, 0x0101080a);
    base::store_be32(options + 4, prng_.next32());
    base::store_be32(options + 8, prng_.next32());
  }
  for (uint32_t i = 0; i < payload; ++i) {
    d.tcp[header.header_length + i] = static_cast<uint8_t>(prng_.next());
  }
  complete_checksum(d);
  return d;
}

Datagram Attacker::quoted(const Judge& judge, uint32_t side, const Judge::Numbers& n) {
  const Endpoint& us = judge.end(side);
  const Endpoint& peer = judge.end(1 - side);
  Datagram d{us.address, peer.address, {}, 0};
  d.tcp.resize(wire::kTcpHeaderMin + prng_.below(1440));
  wire::write_tcp(
      d.tcp.data(),
      {.source_port = us.port,
       .destination_port = peer.port,
       .sequence = base::Seq32(static_cast<uint32_t>(n.snd_nxt + kFar + prng_.below(kFar))),
       .flags = flag::kAck});
  return d;
}

Datagram Attacker::spoofed_syn(const Endpoint& victim) {
  Datagram d{IpAddress::v4(0x0b000000u + static_cast<uint32_t>(prng_.below(1u << 24))),
             victim.address,
             {},
             0};
  d.tcp.resize(wire::kTcpHeaderMin);
  wire::write_tcp(d.tcp.data(), {.source_port = static_cast<uint16_t>(prng_.between(1, 65'535)),
                                 .destination_port = victim.port,
                                 .sequence = base::Seq32(prng_.next32()),
                                 .flags = flag::kSyn,
                                 .window = 65'535});
  complete_checksum(d);
  return d;
}

}  // namespace rnic::simulation
