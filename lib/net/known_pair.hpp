/// \file
/// The short way in for packets like the one before: of two addresses that were judged already,
/// without anything that would have to be looked at.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "base/endian.hpp"
#include "net/counters.hpp"
#include "net/ipv4_input.hpp"
#include "net/packet.hpp"
#include "port/port.hpp"
#include "wire/ether.hpp"
#include "wire/ipv4.hpp"
#include "wire/ipv6.hpp"

namespace rnic::net {

/// Remembers the source and destination of the last TCP packet that passed all checks. A frame
/// between the same two, to our MAC address and untagged, with the plainest IP header there is,
/// needs no more than its lengths and its header checksum checked.
class KnownPair {
 public:
  /// \param vlan of the interface; on one with a VLAN nothing is remembered. \param trusted as in
  /// vouched()
  KnownPair(const port::MacAddress& mac, uint16_t vlan, bool trusted)
      : untagged_(vlan == 0), trusted_(trusted) {
    std::memcpy(&mac_, mac.data(), mac.size());
  }

  /// \param frame passed all checks, and `in` is its packet
  void learn(const port::Packet& frame, const IpIn& in) {
    if (!untagged_) return;
    source_ = in.source;
    destination_ = in.destination;
    known4_ = in.source.is_v4();
    known6_ = !known4_;
    if (known4_) {
      std::memcpy(addresses_.data(), frame.data + kAddresses4At, 8);
    } else {
      std::memcpy(addresses_.data(), frame.data + kAddresses6At, 32);
    }
  }
  /// The addresses have to be judged anew.
  void forget() { known4_ = known6_ = false; }

  /// True: the frame holds a TCP packet of the pair, and `in` is it. False: nothing is said.
  [[nodiscard]] bool open(const port::Packet& frame, IpIn& in, Counters& counters) const {
    if (frame.length < kAddresses4At + 8 || ((words(frame.data) ^ mac_) << 16) != 0) return false;
    const uint32_t type = base::load_be32(frame.data + wire::kEtherTypeAt);
    return type >> 8 == kPlain4 ? open4(frame, type, in, counters)
                                : open6(frame, type, in, counters);
  }

 private:
  static constexpr uint32_t kAddresses4At = wire::kEtherHeader + wire::kIpv4SourceAt;
  static constexpr uint32_t kAddresses6At = wire::kEtherHeader + wire::kIpv6SourceAt;
  static constexpr uint32_t kPlain4 = wire::kEtherTypeIpv4 << 8 | 0x45;  // five words: no options
  static constexpr uint32_t kPlain6 = wire::kEtherTypeIpv6 << 4 | 6;

  /// Eight octets, in whatever order.
  [[nodiscard]] static uint64_t words(const uint8_t* p) {
    uint64_t v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }

  [[nodiscard]] bool open4(const port::Packet& frame, uint32_t type, IpIn& in,
                           Counters& counters) const {
    const uint8_t* ip = frame.data + wire::kEtherHeader;
    // Length, identification, fragment, TTL, protocol.
    const uint64_t middle = base::load_be64(ip + wire::kIpv4LengthAt);
    constexpr uint64_t kFragmentAndProtocol =
        uint64_t{wire::kIpv4MoreFragments | wire::kIpv4OffsetMask} << 16 | 0xff;
    const uint64_t length = middle >> 48;
    if (!known4_ || words(ip + wire::kIpv4SourceAt) != addresses_[0] ||
        (middle & kFragmentAndProtocol) != wire::kProtocolTcp || length < wire::kIpv4Header ||
        length > frame.length - wire::kEtherHeader) {
      return false;
    }
    if (!vouched(frame.ip_checksum, trusted_) &&
        (frame.ip_checksum == port::Checksum::Bad ||
         !wire::ipv4_checksum_good({ip, wire::kIpv4Header}))) {
      return false;
    }
    ++counters.ip_in;
    give(frame, in, type & 3, {ip + wire::kIpv4Header, length - wire::kIpv4Header});
    return true;
  }

  [[nodiscard]] bool open6(const port::Packet& frame, uint32_t type, IpIn& in,
                           Counters& counters) const {
    const uint8_t* ip = frame.data + wire::kEtherHeader;
    if (type >> 12 != kPlain6 || !known6_ ||
        frame.length < wire::kEtherHeader + wire::kIpv6Header) {
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

  void give(const port::Packet& frame, IpIn& in, uint32_t ecn, base::ByteView payload) const {
    in.source = source_;
    in.destination = destination_;
    in.protocol = wire::kProtocolTcp;
    in.ecn = static_cast<uint8_t>(ecn);
    in.l4_checksum_good = vouched(frame.l4_checksum, trusted_);
    in.payload = payload;
  }

  uint64_t mac_ = 0;
  std::array<uint64_t, 4> addresses_{};  // as on the wire
  llp::IpAddress source_;
  llp::IpAddress destination_;
  bool known4_ = false;
  bool known6_ = false;
  bool untagged_;
  bool trusted_;
};

}  // namespace rnic::net
