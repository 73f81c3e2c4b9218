#include "settings/renamed.hpp"

namespace rnic::settings {
namespace {

constexpr Renamed kRenamed[] = {
    {"tcp.max_connections", "limits.max_connections"},
    {"mpa.receive_window", "tcp.receive_window"},
    {"tuf.receive_window", "tcp.receive_window"},
    {"mpa.hold_limit", "framing.hold_limit"},
    {"tuf.hold_limit", "framing.hold_limit"},
    {"mpa.early_limit", "framing.early_limit"},
    {"tuf.early_limit", "framing.early_limit"},
    {"mpa.out_of_order", "framing.out_of_order"},
    {"tuf.out_of_order", "framing.out_of_order"},
    {"mpa.start_timeout", "framing.start_timeout"},
    {"tuf.start_timeout", "framing.start_timeout"},
    {"device.framing", "framing.protocol"},
};

}  // namespace

std::span<const Renamed> all_renamed() { return kRenamed; }

const Renamed* find_renamed(std::string_view section, std::string_view name) {
  const std::string path = std::string(section) + "." + std::string(name);
  for (const Renamed& renamed : kRenamed) {
    if (renamed.was == path) return &renamed;
  }
  return nullptr;
}

std::string renamed_text(const Renamed& renamed, std::string_view device, bool in_override) {
  const std::string now(renamed.now);
  const std::string full = device.empty() ? now : "device." + std::string(device) + "." + now;
  if (in_override) return "is called " + now + " now: write " + full + "=VALUE";
  const size_t dot = now.find('.');
  return "is called " + now + " now: write " + now.substr(dot + 1) + " in [" +
         (device.empty() ? "" : "device.") + now.substr(0, dot) + "]";
}

}  // namespace rnic::settings
