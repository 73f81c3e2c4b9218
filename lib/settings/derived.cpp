#include "settings/derived.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace rnic::settings {
namespace {

constexpr uint64_t kRooms = 8;

// Each rule gives what a connection needs, so that a device with twice the connections is set up by
// one number; the lower bounds are what a device with few connections needs to be as quick. With
// the default limits the rules give the defaults of the structs.
// clang-format off
constexpr Rule kRules[] = {
    {.key = "limits.max_qps", .from = "limits.max_connections", .at_least = 64},
    {.key = "limits.max_cqs", .from = "limits.max_qps", .at_least = 64},
    {.key = "limits.max_pds", .from = "limits.max_qps", .over = 4, .at_least = 16},
    {.key = "limits.max_srqs", .from = "limits.max_qps", .over = 4, .at_least = 16},
    {.key = "limits.max_regions", .from = "limits.max_qps", .times = 64, .at_least = 4096},
    {.key = "limits.max_starting", .from = "limits.max_connections", .over = 4, .at_least = 16,
     .within = true},
    {.key = "limits.max_pending_requests", .from = "limits.max_connections", .over = 8,
     .at_least = 16, .within = true},
    {.key = "limits.max_events", .from = "limits.max_connections", .times = 4, .at_least = 256},
    {.key = "limits.hold_octets", .from = "limits.max_connections", .times = 8 << 10,
     .at_least = 1 << 20},
    {.key = "limits.max_packed", .from = "limits.max_connections", .times = 16, .at_least = 1024},
    {.key = "limits.max_streams", .from = "limits.max_connections"},
    {.key = "limits.stream_octets", .from = "limits.max_streams", .times = 128 << 10,
     .room_for = "limits.stream_buffer"},
    {.key = "framing.hold_limit", .from = "limits.hold_octets", .at_most = 1 << 20},
    {.key = "tcp.max_time_wait", .from = "limits.max_connections", .times = 16, .at_least = 1024},
    {.key = "tcp.max_range_sets", .from = "limits.max_connections", .times = 2},
    {.key = "tcp.max_half_open", .from = "limits.max_connections", .over = 8, .at_least = 16,
     .within = true},
    {.key = "tcp.max_half_open_per_listener", .from = "tcp.max_half_open"},
    {.key = "tcp.max_records", .from = "limits.max_connections", .times = 64, .at_least = 16384},
    {.key = "tcp.max_records_per_connection", .from = "tcp.max_records", .at_most = 16384},
    {.key = "tcp.max_saved_octets", .from = "limits.max_connections", .times = 4 << 10,
     .at_least = 256 << 10},
};
// clang-format on

const Key& key_at(std::string_view path) {
  const size_t dot = path.rfind('.');
  const Key* key = find_key(path.substr(0, dot), path.substr(dot + 1));
  RNIC_CHECK(key != nullptr);
  return *key;
}

uint64_t value_at(std::string_view path, Scope& scope) {
  return number_at(key_at(path).target(scope));
}

std::string shown(uint64_t value, bool octets) {
  return octets ? octets_text(static_cast<int64_t>(value)) : std::to_string(value);
}

}  // namespace

std::span<const Rule> all_rules() { return kRules; }

const Rule* find_rule(std::string_view key) {
  for (const Rule& rule : kRules) {
    if (rule.key == key) return &rule;
  }
  return nullptr;
}

uint64_t derived(const Rule& rule, Scope& scope) {
  const uint64_t from = value_at(rule.from, scope);
  uint64_t value = std::clamp(from * rule.times / rule.over, rule.at_least, rule.at_most);
  if (!rule.room_for.empty()) value = std::max(value, kRooms * value_at(rule.room_for, scope));
  if (rule.within) value = std::min(value, from);
  const Range range = key_at(rule.key).range;
  return std::clamp(value, static_cast<uint64_t>(range.lo), static_cast<uint64_t>(range.hi));
}

void derive(DeviceSettings& device, const std::string& table, const Places& places) {
  Scope scope;
  scope.device = &device;
  for (const Rule& rule : kRules) {
    const std::string key(rule.key);
    if (places.given(key) || places.given(table + "." + key)) continue;
    set_number(key_at(rule.key).target(scope), derived(rule, scope));
    device.followed.push_back(rule.key);
  }
}

std::string_view root_of(const DeviceSettings& device, std::string_view key) {
  const auto& followed = device.followed;
  while (std::find(followed.begin(), followed.end(), key) != followed.end()) {
    key = find_rule(key)->from;
  }
  return key;
}

std::string rule_text(const Rule& rule) {
  const bool octets = key_at(rule.key).accepted().octets;
  const std::string from(rule.from);
  std::string text = rule.times == 1 ? from : shown(rule.times, octets) + " * " + from;
  if (rule.over != 1) text += " / " + std::to_string(rule.over);
  if (rule.at_least != 0) text += ", at least " + shown(rule.at_least, octets);
  if (rule.at_most != kNoBound) text += ", at most " + shown(rule.at_most, octets);
  if (!rule.room_for.empty()) {
    text += ", at least " + std::to_string(kRooms) + " * " + std::string(rule.room_for);
  }
  if (rule.within) text += ", never above " + from;
  return text;
}

}  // namespace rnic::settings
