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

  /// The whole header of frames to one station: the first size() octets.
  [[nodiscard]] std::array<uint8_t, wire::kEtherHeader + wire::kVlanTag> to(
      const port::MacAddress& destination, uint16_t type) const {
    std::array<uint8_t, wire::kEtherHeader + wire::kVlanTag> made = octets_;
    write(made.data(), type);
    wire::store_mac(made.data() + wire::kEtherDestinationAt, destination);
    return made;
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

  std::array<uint8_t, wire::kEtherHeader + wire::kVlanTag> octets_{};
  uint32_t size_;
  uint16_t vlan_;
};

}  // namespace rnic::net
