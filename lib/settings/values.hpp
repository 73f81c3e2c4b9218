/// \file
/// One value of the configuration: what the file may say, where it goes, and how it is written back
/// for the documentation. Private to this folder.
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

/// A value as the file or an override has it.
struct Raw {
  std::variant<bool, int64_t, double, std::string, std::vector<Raw>> value;
};

using Mac = std::array<uint8_t, 6>;

/// "10.0.0.1/24" goes to two places.
struct InterfaceAddress {
  IpAddress* address;
  uint8_t* prefix;
};

/// Where a key's value goes. The alternative decides what is accepted.
using Target =
    std::variant<bool*, uint8_t*, uint16_t*, uint32_t*, uint64_t*, double*, base::Duration*,
                 std::string*, std::vector<std::string>*, std::vector<uint32_t>*,
                 CongestionControl*, Ecn*, dpdk::Hugepages*, WorkerSettings::Mode*,
                 WorkerSettings::Idle*, Framing*, net::FragmentPolicy*, Mac*, IpAddress*,
                 InterfaceAddress, std::vector<net::Prefix>*, std::vector<net::StaticRoute>*>;

/// Inclusive; of whole numbers, of octets, of nanoseconds, or of a share.
struct Range {
  int64_t lo = 0;
  int64_t hi = 0;
};

/// What a key accepts besides its type.
struct Accepted {
  Range range;
  bool octets = false;  ///< "4MB" is as good as a number
};

/// Stores a value. \return what is wrong with it and what to write instead; nothing when it was
/// stored.
[[nodiscard]] std::optional<std::string> assign(const Target& target, const Accepted& limits,
                                                const Raw& raw);

/// The text of an override as the file would have it for this target.
[[nodiscard]] Raw raw_from_text(const Target& target, std::string_view text);

/// The present value as it is written in the file.
[[nodiscard]] std::string value_text(const Target& target, const Accepted& limits);
/// What is accepted: "1..64", "64KB..1GB", "true, false"; empty where only prose can say it.
[[nodiscard]] std::string range_text(const Target& target, const Accepted& limits);

/// The number of a key that takes whole numbers.
[[nodiscard]] uint64_t number_at(const Target& target);
void set_number(const Target& target, uint64_t value);

/// "64KB"; a number that is none of those is written as it is.
[[nodiscard]] std::string octets_text(int64_t value);
[[nodiscard]] std::string duration_text(base::Duration duration);
[[nodiscard]] std::string mac_text(const Mac& mac);

/// Of `candidates`, the one that the user meant by `word`; empty when none is near.
[[nodiscard]] std::string nearest(std::string_view word,
                                  const std::vector<std::string>& candidates);

}  // namespace rnic::settings
