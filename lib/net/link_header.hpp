/// \file
/// The Ethernet header of one interface, with an 802.1Q tag when the interface is on a VLAN.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/bytes.hpp"
#include "net/counters.hpp"
#include "port/port.hpp"
#include "wire/ether.hpp"

namespace rnic::net {

class LinkHeader {
 public:
  using Octets = std::array<uint8_t, wire::kEtherHeader + wire::kVlanTag>;

  /// \param vlan 0: untagged
  LinkHeader(const port::MacAddress& mac, uint16_t vlan) : vlan_(vlan) {
    wire::write_ether(octets_.data(), {}, mac, wire::kEtherTypeVlan);
    base::store_be16(octets_.data() + wire::kVlanControlAt, vlan);
    size_ = wire::kEtherHeader + (vlan == 0 ? 0 : wire::kVlanTag);
  }

  /// Octets of the header, in front of the packet.
  [[nodiscard]] uint32_t size() const { return size_; }

  /// Writes the header except for the destination.
  void write(uint8_t* frame, uint16_t type) const {
    constexpr size_t kSource = sizeof(port::MacAddress);
    std::memcpy(frame + wire::kEtherSourceAt, octets_.data() + wire::kEtherSourceAt, kSource);
    if (vlan_ != 0) [[unlikely]] {
      std::memcpy(frame + wire::kEtherTypeAt, octets_.data() + wire::kEtherTypeAt, wire::kVlanTag);
    }
    base::store_be16(frame + size_ - 2, type);
  }

  /// The whole header of frames to one station, valid until the next call: the first size() octets.
  /// The last one is remembered: one that is put together now would be read across its parts, and
  /// wait until the last of them is in the cache.
  const Octets& to(const port::MacAddress& destination, uint16_t type) {
    const uint64_t made_for = word_of(destination, type);
    if (made_for != made_for_) [[unlikely]] make(destination, type, made_for);
    return made_;
  }

  struct Opened {
    uint16_t type = 0;
    base::ByteView packet;
  };

  /// Opens a frame, which has at least an Ethernet header. Empty: the frame is of another VLAN
  /// (counted).
  [[nodiscard]] std::optional<Opened> open(base::ByteView frame, Counters& counters) const {
    const uint16_t type = base::load_be16(frame.data() + wire::kEtherTypeAt);
    if (vlan_ == 0 && type != wire::kEtherTypeVlan) [[likely]] {
      return Opened{type, frame.subspan(wire::kEtherHeader)};
    }
    return open_tagged(frame, type, counters);
  }

 private:
  static uint64_t word_of(const port::MacAddress& destination, uint16_t type) {
    return uint64_t{base::load_be32(destination.data())} << 32 |
           uint64_t{base::load_be16(destination.data() + 4)} << 16 | type;
  }
  [[gnu::noinline]] void make(const port::MacAddress& destination, uint16_t type,
                              uint64_t made_for) {
    made_ = octets_;
    write(made_.data(), type);
    wire::store_mac(made_.data() + wire::kEtherDestinationAt, destination);
    made_for_ = made_for;
  }
  // Opens a frame on an interface with a VLAN, or a frame with a tag. A tag with identifier 0 only
  // gives a priority, and its frame belongs to no VLAN (IEEE 802.1Q s.6.9).
  [[nodiscard]] std::optional<Opened> open_tagged(base::ByteView frame, uint16_t type,
                                                  Counters& counters) const {
    const bool tagged = type == wire::kEtherTypeVlan;
    if (tagged && frame.size() < wire::kEtherHeader + wire::kVlanTag) {
      ++counters.short_frames;
      return std::nullopt;
    }
    const uint32_t id =
        tagged ? base::load_be16(frame.data() + wire::kVlanControlAt) & wire::kVlanIdMask : 0;
    if (id != vlan_) {
      ++counters.other_vlan;
      return std::nullopt;
    }
    return Opened{base::load_be16(frame.data() + wire::kVlanTypeAt),
                  frame.subspan(wire::kEtherHeader + wire::kVlanTag)};
  }

  Octets octets_{};
  uint32_t size_;
  uint16_t vlan_;
  Octets made_{};
  uint64_t made_for_ = 0;  // destination and type of made_; 0: none was made, as no type is 0
};

}  // namespace rnic::net
