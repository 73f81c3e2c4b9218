/// \file
/// Addresses of a connection's ends.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "rnic/error.hpp"

namespace rnic {

/// An IPv6 address, or an IPv4 address that is mapped into one (RFC 4291 s.2.5.5.2), so that one
/// type and one comparison serve both families. Default: `::`, no address.
class IpAddress {
 public:
  constexpr IpAddress() = default;
  /// \param high, low the two halves of an IPv6 address, host order.
  constexpr IpAddress(uint64_t high, uint64_t low) : high_(high), low_(low) {}
  /// \param value four octets, host order: 0x0a000001 is 10.0.0.1.
  [[nodiscard]] static constexpr IpAddress v4(uint32_t value) { return {0, kMapped | value}; }

  [[nodiscard]] constexpr bool is_v4() const { return high_ == 0 && low_ >> 32 == kMapped >> 32; }
  /// The IPv4 address, host order. Precondition: is_v4().
  [[nodiscard]] constexpr uint32_t as_v4() const { return static_cast<uint32_t>(low_); }
  [[nodiscard]] constexpr uint64_t high() const { return high_; }
  [[nodiscard]] constexpr uint64_t low() const { return low_; }

  /// \return whether the address is `::` or 0.0.0.0
  [[nodiscard]] constexpr bool is_unspecified() const {
    return high_ == 0 && (low_ == 0 || low_ == kMapped);
  }
  /// \return whether the address may be one end of a connection: it is neither unspecified nor
  /// multicast nor reserved nor the limited broadcast (RFC 9293 s.3.9.2.3, MUST-57, MUST-63)
  [[nodiscard]] constexpr bool is_unicast() const {
    return is_v4() ? as_v4() != 0 && as_v4() >> 28 < 0xe
                   : (high_ | low_) != 0 && high_ >> 56 != 0xff;
  }
  /// \return whether the address is in fe80::/10 (RFC 4291 s.2.5.6)
  [[nodiscard]] constexpr bool is_link_local() const { return high_ >> 54 == 0xfe80 >> 6; }

  friend constexpr auto operator<=>(const IpAddress&, const IpAddress&) = default;

 private:
  static constexpr uint64_t kMapped = uint64_t{0xffff} << 32;

  uint64_t high_ = 0;
  uint64_t low_ = 0;
};

/// One end of a connection.
struct Endpoint {
  IpAddress address;  ///< unspecified, of either family: listen on every address
  uint16_t port = 0;
  friend constexpr auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

/// The address as a text: "10.0.0.1", "fe80::1" (RFC 5952).
[[nodiscard]] std::string to_string(const IpAddress& address);
/// The endpoint as a text: "10.0.0.1:80", "[fe80::1]:80".
[[nodiscard]] std::string to_string(const Endpoint& endpoint);
/// Parses "10.0.0.1" or "fd00::1". Any other text is an error that says so.
[[nodiscard]] Result<IpAddress> parse_ip(const std::string& text);
/// Parses "10.0.0.1:80" or "[fe80::1]:80"; ":80" is port 80 of every address. Any other text, also
/// one without a port, is an error that says so.
[[nodiscard]] Result<Endpoint> parse_endpoint(const std::string& text);
/// Parses an endpoint whose port may be left out and is `port` then: also "10.0.0.1", "fe80::1",
/// "[fe80::1]", and "" for every address.
[[nodiscard]] Result<Endpoint> parse_endpoint(const std::string& text, uint16_t port);

}  // namespace rnic
