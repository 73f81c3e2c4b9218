/// \file
/// Remembers the MTUs of paths that are smaller than the link's (RFC 1191, RFC 8201).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/check.hpp"
#include "base/time.hpp"
#include "rnic/address.hpp"

namespace rnic::net {

/// A fixed table with one place for each hash: a newer destination takes the place of an older one,
/// whose MTU then has to be found again. Entries age, so that a path that grew is found (RFC 1191
/// s.6.3).
class PathMtu {
 public:
  explicit PathMtu(base::Duration lifetime) : lifetime_(lifetime) {}

  /// The MTU of the path, in octets of an IP packet. UINT32_MAX: no limit is known.
  [[nodiscard]] uint32_t find(const IpAddress& destination, base::Now now) const {
    if (used_ == 0) [[likely]]
      return UINT32_MAX;
    const Entry& entry = entries_[place(destination)];
    if (entry.destination != destination || now >= entry.expires) return UINT32_MAX;
    return entry.mtu;
  }

  /// Remembers a smaller path MTU; a known MTU is never raised. \param mtu octets of an IP packet
  void reduce(const IpAddress& destination, uint32_t mtu, base::Now now) {
    if (!destination.is_v4() && mtu < kLeast6) return;  // RFC 8201 s.4
    mtu = std::min(std::max(mtu, kLeast4), find(destination, now));
    Entry& entry = entries_[place(destination)];
    if (entry.destination == IpAddress{}) ++used_;
    entry = {destination, mtu, now + lifetime_};
  }
  /// Recounts the entries, each of which must be in its place.
  void validate() const {
    uint32_t used = 0;
    for (size_t i = 0; i < kEntries; ++i) {
      if (entries_[i].destination == IpAddress{}) continue;
      ++used;
      RNIC_CHECK(place(entries_[i].destination) == i);
      RNIC_CHECK(entries_[i].mtu >= (entries_[i].destination.is_v4() ? kLeast4 : kLeast6));
    }
    RNIC_CHECK(used == used_);
  }

 private:
  struct Entry {
    IpAddress destination;
    uint32_t mtu = 0;
    base::Now expires{};
  };
  static constexpr size_t kEntries = 256;
  static constexpr uint32_t kLeast4 = 68;    // RFC 1191 s.3
  static constexpr uint32_t kLeast6 = 1280;  // RFC 8200 s.5

  [[nodiscard]] static size_t place(const IpAddress& destination) {
    const uint64_t hash = (destination.low() ^ destination.high()) * 0x9e3779b97f4a7c15ull;
    return static_cast<size_t>(hash >> 56);
  }

  base::Duration lifetime_;
  std::array<Entry, kEntries> entries_{};
  uint32_t used_ = 0;
};

}  // namespace rnic::net
