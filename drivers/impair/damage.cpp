#include "impair/damage.hpp"

#include <cstring>

#include "base/endian.hpp"
#include "offload/offload.hpp"

namespace rnic::impair {
namespace {

constexpr uint32_t kFlagsOffset = 13;  // of the TCP header
constexpr uint8_t kFin = 0x01;
constexpr uint8_t kSyn = 0x02;
constexpr uint8_t kRst = 0x04;
constexpr uint8_t kPsh = 0x08;
constexpr uint8_t kUrg = 0x20;
constexpr uint8_t kCwr = 0x80;

void flip(port::Packet& packet, uint32_t begin, uint32_t end, base::Prng& prng) {
  const auto bit = static_cast<uint32_t>(prng.below(uint64_t{end - begin} * 8));
  packet.data[begin + bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
}

/// Makes lengths and checksums fit a payload that ends at `end`.
void finish_piece(port::Packet& packet, offload::TcpLayout at, uint32_t end) {
  packet.length = end;
  at.end = end;
  const base::ByteSpan frame{packet.data, packet.length};
  offload::write_ip_length(frame, at);
  offload::write_tcp_checksum(frame, at);
}

}  // namespace

bool flip_bit(port::Packet& packet, bool repair, base::Prng& prng) {
  if (packet.length <= offload::kEthernetHeader) return false;
  const base::ByteSpan frame{packet.data, packet.length};
  const auto tcp = offload::locate_tcp(frame);
  if (repair && tcp && tcp->payload_size() != 0) {
    flip(packet, tcp->payload, tcp->end, prng);
    offload::write_tcp_checksum(frame, *tcp);
    return true;
  }
  flip(packet, offload::kEthernetHeader, packet.length, prng);
  return false;
}

bool can_cut(const port::Packet& packet) {
  const auto at = offload::locate_tcp(packet.view());
  if (!at || at->payload_size() < 2) return false;
  if ((packet.data[at->tcp + kFlagsOffset] & (kSyn | kRst | kUrg)) != 0) return false;
  const auto ip = offload::locate_ip(packet.view());
  return offload::ip_checksum_good(packet.view(), *ip) &&
         offload::tcp_checksum_good(packet.view(), *at);
}

void cut(port::Packet& packet, port::Packet& rest, base::Prng& prng) {
  const offload::TcpLayout at = *offload::locate_tcp(packet.view());
  const auto first = static_cast<uint32_t>(prng.between(1, at.payload_size() - 1));
  const uint32_t second = at.payload_size() - first;
  std::memcpy(rest.data, packet.data, at.payload);
  std::memcpy(rest.data + at.payload, packet.data + at.payload + first, second);
  base::store_be32(rest.data + at.tcp + 4, base::load_be32(packet.data + at.tcp + 4) + first);
  packet.data[at.tcp + kFlagsOffset] &= static_cast<uint8_t>(~(kFin | kPsh));
  rest.data[at.tcp + kFlagsOffset] &= static_cast<uint8_t>(~kCwr);
  finish_piece(packet, at, at.payload + first);
  finish_piece(rest, at, at.payload + second);
}

}  // namespace rnic::impair
