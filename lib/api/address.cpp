#include "rnic/address.hpp"

#include <arpa/inet.h>

#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "api/no_throw.hpp"

namespace rnic {

namespace {

uint64_t load(const uint8_t* octets) {
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = value << 8 | octets[i];
  return value;
}

void store(uint8_t* octets, uint64_t value) {
  for (int i = 7; i >= 0; --i, value >>= 8) octets[i] = static_cast<uint8_t>(value);
}

/// The parts of an endpoint's text.
struct Parts {
  std::string address;  // empty: every address
  std::optional<uint16_t> port;
};

std::optional<uint16_t> parse_port(std::string_view digits) {
  uint16_t port = 0;
  const char* end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, port);
  if (parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
  return port;
}

/// Splits a text into address and port. Nothing: a bracket is not closed, or does not enclose an
/// IPv6 address, or the text behind the address is no port. An IPv6 address has a port only behind
/// brackets (RFC 5952 s.6): "fe80::1:80" would be ambiguous.
std::optional<Parts> split(const std::string& text) {
  size_t end = text.find(':');
  Parts parts;
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == std::string::npos || close == 1) return std::nullopt;
    parts.address = text.substr(1, close - 1);
    if (parts.address.find(':') == std::string::npos) return std::nullopt;  // IPv6 has one
    end = close + 1;
  } else if (end != text.rfind(':')) {
    return Parts{text, std::nullopt};
  } else {
    parts.address = text.substr(0, end);
  }
  if (end >= text.size()) return parts;
  if (text[end] != ':') return std::nullopt;
  parts.port = parse_port(std::string_view(text).substr(end + 1));
  if (!parts.port) return std::nullopt;
  return parts;
}

tl::unexpected<Error> no_endpoint(const std::string& text, const char* examples) {
  return tl::unexpected(Error{ErrorCode::InvalidArgument,
                              "\"" + text + "\" is not an address with a port: write " + examples});
}

Result<IpAddress> parse_address(const std::string& text) {
  // inet_pton() would see only the octets before a zero.
  const bool whole = text.find('\0') == std::string::npos;
  in_addr v4{};
  if (whole && inet_pton(AF_INET, text.c_str(), &v4) == 1) {
    return IpAddress::v4(ntohl(v4.s_addr));
  }
  in6_addr v6{};
  if (whole && inet_pton(AF_INET6, text.c_str(), &v6) == 1) {
    return IpAddress(load(v6.s6_addr), load(v6.s6_addr + 8));
  }
  return tl::unexpected(Error{ErrorCode::InvalidArgument,
                              "\"" + text + "\" is not an IP address: write 10.0.0.1 or fd00::1"});
}

Result<Endpoint> make_endpoint(const Parts& parts, uint16_t port) {
  if (parts.address.empty()) return Endpoint{{}, port};
  const auto ip = parse_address(parts.address);
  if (!ip) return tl::unexpected(ip.error());
  return Endpoint{*ip, port};
}

/// The text of an address.
struct Written {
  std::array<char, INET6_ADDRSTRLEN> text{};

  explicit Written(const IpAddress& address) {
    if (address.is_v4()) {
      const in_addr raw{htonl(address.as_v4())};
      inet_ntop(AF_INET, &raw, text.data(), text.size());
    } else {
      in6_addr raw{};
      store(raw.s6_addr, address.high());
      store(raw.s6_addr + 8, address.low());
      inet_ntop(AF_INET6, &raw, text.data(), text.size());
    }
  }
};

}  // namespace

std::string to_string(const IpAddress& address) {
  return text_or_none([&]() -> std::string { return Written(address).text.data(); });
}

std::string to_string(const Endpoint& endpoint) {
  return text_or_none([&] {
    const Written address(endpoint.address);
    std::string text;
    if (!endpoint.address.is_v4()) text += '[';
    text += address.text.data();
    if (!endpoint.address.is_v4()) text += ']';
    return text + ":" + std::to_string(endpoint.port);
  });
}

Result<IpAddress> parse_ip(const std::string& text) {
  return result_or_exhausted([&] { return parse_address(text); });
}

Result<Endpoint> parse_endpoint(const std::string& text) {
  return result_or_exhausted([&]() -> Result<Endpoint> {
    const std::optional<Parts> parts = split(text);
    if (!parts || !parts->port) return no_endpoint(text, "10.0.0.1:80 or [fd00::1]:80");
    return make_endpoint(*parts, *parts->port);
  });
}

Result<Endpoint> parse_endpoint(const std::string& text, uint16_t port) {
  return result_or_exhausted([&]() -> Result<Endpoint> {
    const std::optional<Parts> parts = split(text);
    if (!parts) return no_endpoint(text, "10.0.0.1, 10.0.0.1:80 or [fd00::1]:80");
    return make_endpoint(*parts, parts->port.value_or(port));
  });
}

}  // namespace rnic
