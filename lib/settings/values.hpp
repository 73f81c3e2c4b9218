/// \file
/// Single values of the configuration: how they are parsed, stored, and written back for the
/// documentation. Private to this folder.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/time.hpp"
#include "settings/settings.hpp"

namespace rnic::settings {

/// A value as it stands in the file or an override.
struct Raw {
  std::variant<bool, int64_t, double, std::string, std::vector<Raw>> value;
};

using Mac = std::array<uint8_t, 6>;

/// The two targets of a value such as "10.0.0.1/24".
struct InterfaceAddress {
  IpAddress* address;
  uint8_t* prefix;
};

/// The variable that a key's value is stored in. Its type decides which values are accepted.
using Target =
    std::variant<bool*, uint8_t*, uint16_t*, uint32_t*, uint64_t*, double*, base::Duration*,
                 std::string*, std::vector<std::string>*, std::vector<uint32_t>*,
                 CongestionControl*, Ecn*, dpdk::Hugepages*, WorkerSettings::Mode*,
                 WorkerSettings::Idle*, Framing*, net::FragmentPolicy*, Mac*, IpAddress*,
                 InterfaceAddress, std::vector<net::Prefix>*, std::vector<net::StaticRoute>*>;

/// An inclusive range of whole numbers, of octets, of nanoseconds, or of a share.
struct Range {
  int64_t lo = 0;
  int64_t hi = 0;
};

/// The limits on a key's values besides its type.
struct Accepted {
  Range range;
  bool octets = false;  ///< also accept a text such as "4MB"
};

/// Stores a value. \return what is wrong with it and what to write instead; nothing when it was
/// stored.
[[nodiscard]] std::optional<std::string> assign(const Target& target, const Accepted& limits,
                                                const Raw& raw);

/// The text of an override, as a value that the file could have for this target.
[[nodiscard]] Raw raw_from_text(const Target& target, std::string_view text);

/// The present value as it is written in the file.
[[nodiscard]] std::string value_text(const Target& target, const Accepted& limits);
/// The accepted values as a text: "1..64", "64KB..1GB", "true, false"; empty: only prose can say
/// them.
[[nodiscard]] std::string range_text(const Target& target, const Accepted& limits);

/// The number of a key that takes whole numbers.
[[nodiscard]] uint64_t number_at(const Target& target);
void set_number(const Target& target, uint64_t value);

/// Octets as a text: a power of two with a unit ("64KB"), any other number as it is.
[[nodiscard]] std::string octets_text(int64_t value);
[[nodiscard]] std::string duration_text(base::Duration duration);
[[nodiscard]] std::string mac_text(const Mac& mac);

/// The one of `candidates` that the user probably meant by `word`; empty: none is near.
[[nodiscard]] std::string nearest(std::string_view word,
                                  const std::vector<std::string>& candidates);

}  // namespace rnic::settings
