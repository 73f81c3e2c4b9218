/// \file
/// The fast path for a received packet that is like the one before it: its two addresses were
/// checked before, and its IP header is plain.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "base/endian.hpp"
#include "base/octet_pattern.hpp"
#include "net/counters.hpp"
#include "net/ipv4_input.hpp"
#include "net/packet.hpp"
#include "port/port.hpp"
#include "wire/ether.hpp"
#include "wire/ipv4.hpp"
#include "wire/ipv6.hpp"

namespace rnic::net {

/// Remembers the source and destination of the last TCP packet that passed all checks. For an
/// untagged frame between the same two addresses, to our MAC address and with an IP header without
/// options, only the lengths and the header checksum have to be checked.
class KnownPair {
 public:
  /// \param vlan VLAN of the interface; if it has one, nothing is remembered. \param trusted as in
  /// vouched()
  KnownPair(const port::MacAddress& mac, uint16_t vlan, bool trusted)
      : mac_(mac), untagged_(vlan == 0), trusted_(trusted) {}

  /// Remembers the addresses. \param frame has passed all checks. \param in its packet
  void learn(const port::Packet& frame, const IpIn& in) {
    forget();
    source_ = in.source;
    destination_ = in.destination;
    if (!untagged_) return;
    if (in.source.is_v4()) {
      base::OctetPattern::Octets part{};
      std::memcpy(part.data(), mac_.data(), mac_.size());
      base::store_be16(&part[wire::kEtherTypeAt], wire::kEtherTypeIpv4);
      part[wire::kEtherHeader] = 0x45;  // five words: no options
      first_.set(part);
      part = {};
      part[kProtocol4At - kSecondAt] = wire::kProtocolTcp;
      std::memcpy(&part[kAddresses4At - kSecondAt], frame.data + kAddresses4At, 8);
      second_.set(part);
    } else {
      known6_ = true;
      std::memcpy(addresses_.data(), frame.data + kAddresses6At, 32);
    }
  }
  /// An empty packet between the two addresses that were learnt last.
  [[nodiscard]] TcpIn nothing() const { return {.source = source_, .destination = destination_}; }
  /// Forgets the pair, so that the next frame takes all checks.
  void forget() {
    first_.clear();
    known6_ = false;
  }

  /// True: the frame holds a TCP packet of the pair, and `in` is set to it. False: the frame has to
  /// take all checks.
  [[nodiscard]] bool open(const port::Packet& frame, TcpIn& in, Counters& counters) const {
    if (frame.length < wire::kEtherHeader + wire::kIpv4Header) return false;
    const __m128i first = first_.compare(frame.data, kFirstMask);
    const __m128i second = second_.compare(frame.data + kSecondAt, kSecondMask);
    if (base::OctetPattern::all(_mm_and_si128(first, second))) [[likely]] {
      return open4(frame, in, counters);
    }
    return known6_ && open6(frame, in, counters);
  }

 private:
  static constexpr uint32_t kProtocol4At = wire::kEtherHeader + wire::kIpv4ProtocolAt;
  static constexpr uint32_t kAddresses4At = wire::kEtherHeader + wire::kIpv4SourceAt;
  static constexpr uint32_t kAddresses6At = wire::kEtherHeader + wire::kIpv6SourceAt;
  static constexpr uint32_t kPlain6 = wire::kEtherTypeIpv6 << 4 | 6;
  // The mask selects destination, type, version and header length, but not the source and the type
  // of service.
  static constexpr base::OctetPattern::Octets kFirstMask{
      0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0};
  // The last sixteen octets of the header: the mask selects the fragment bits, the protocol and
  // both addresses.
  static constexpr uint32_t kSecondAt = wire::kEtherHeader + wire::kIpv4Header - 16;
  static constexpr base::OctetPattern::Octets kSecondMask{
      0, 0, 0x3f, 0xff, 0, 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

  /// Eight octets in the machine's order, since they are only compared.
  [[nodiscard]] static uint64_t words(const uint8_t* p) {
    uint64_t v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }

  [[nodiscard]] bool open4(const port::Packet& frame, TcpIn& in, Counters& counters) const {
    const uint8_t* ip = frame.data + wire::kEtherHeader;
    const uint32_t length = base::load_be16(ip + wire::kIpv4LengthAt);
    if (length < wire::kIpv4Header || length > frame.length - wire::kEtherHeader) return false;
    if (frame.ip_checksum != port::Checksum::Good && !header_good(frame, ip)) return false;
    ++counters.ip_in;
    give(frame, in, ip[wire::kIpv4TosAt] & 3, {ip + wire::kIpv4Header, length - wire::kIpv4Header});
    return true;
  }
  [[nodiscard]] bool header_good(const port::Packet& frame, const uint8_t* ip) const {
    return vouched(frame.ip_checksum, trusted_) ||
           (frame.ip_checksum != port::Checksum::Bad &&
            wire::ipv4_checksum_good({ip, wire::kIpv4Header}));
  }

  [[nodiscard]] bool open6(const port::Packet& frame, TcpIn& in, Counters& counters) const {
    const uint8_t* ip = frame.data + wire::kEtherHeader;
    if (frame.length < wire::kEtherHeader + wire::kIpv6Header ||
        wire::load_mac(frame.data) != mac_ ||
        base::load_be32(frame.data + wire::kEtherTypeAt) >> 12 != kPlain6) {
      return false;
    }
    const uint8_t* a = ip + wire::kIpv6SourceAt;
    const uint64_t other = (words(a) ^ addresses_[0]) | (words(a + 8) ^ addresses_[1]) |
                           (words(a + 16) ^ addresses_[2]) | (words(a + 24) ^ addresses_[3]);
    const uint64_t length = base::load_be16(ip + wire::kIpv6LengthAt);
    if (other != 0 || ip[wire::kIpv6NextHeaderAt] != wire::kProtocolTcp ||
        length > frame.length - wire::kEtherHeader - wire::kIpv6Header) {
      return false;
    }
    ++counters.ip6_in;
    give(frame, in, ip[1] >> 4 & 3, {ip + wire::kIpv6Header, length});
    return true;
  }

  void give(const port::Packet& frame, TcpIn& in, uint32_t ecn, base::ByteView payload) const {
    in.ecn = static_cast<uint8_t>(ecn);
    in.l4_checksum_good = vouched(frame.l4_checksum, trusted_);
    in.payload = payload;
  }

  port::MacAddress mac_;
  bool untagged_;
  bool trusted_;
  bool known6_ = false;
  base::OctetPattern first_;             // octets 0 to 15 of IPv4 frames
  base::OctetPattern second_;            // octets of IPv4 frames from kSecondAt on
  std::array<uint64_t, 4> addresses_{};  // IPv6 addresses as on the wire
  IpAddress source_;
  IpAddress destination_;
};

}  // namespace rnic::net
