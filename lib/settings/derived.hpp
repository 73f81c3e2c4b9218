/// \file
/// Limits that follow from another limit if the file does not give them. Private to this folder.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "settings/findings.hpp"
#include "settings/table.hpp"

namespace rnic::settings {

inline constexpr uint64_t kNoBound = std::numeric_limits<uint64_t>::max();

/// A limit is times * from / over, within the bounds here and within the range of the key itself.
struct Rule {
  std::string_view key;   ///< "tcp.max_records"
  std::string_view from;  ///< "limits.max_connections"
  uint64_t times = 1;
  uint64_t over = 1;
  uint64_t at_least = 0;
  uint64_t at_most = kNoBound;
  bool within = false;             ///< never above `from`, whatever `at_least` says
  std::string_view room_for = {};  ///< nor below eight of this key
};

/// All rules, in an order in which each `from` is known when it is needed.
[[nodiscard]] std::span<const Rule> all_rules();
/// The rule of a key; nullptr: the key has a default of its own.
[[nodiscard]] const Rule* find_rule(std::string_view key);

/// The value that the rule gives with the device's other limits.
[[nodiscard]] uint64_t derived(const Rule& rule, Scope& scope);
/// Fills in the limits that the file gave neither for `table` ("device#0") nor for all devices.
void derive(DeviceSettings& device, const std::string& table, const Places& places);

/// The rule as a text: "64 * limits.max_connections, at least 16384".
[[nodiscard]] std::string rule_text(const Rule& rule);

}  // namespace rnic::settings
