/// \file
/// The table of all keys, from which the parser and the documentation work. Private to this folder.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "settings/values.hpp"

namespace rnic::settings {

/// What the keys of a section are stored in; a key touches only the one of its section.
struct Scope {
  EalSettings* eal = nullptr;
  WorkerSettings* worker = nullptr;
  WireSettings* wire = nullptr;
  DeviceSettings* device = nullptr;
};

struct Section {
  std::string_view name;     ///< "tcp", "device.impair"
  std::string_view heading;  ///< as the file has it: "[tcp]", "[[device]]"
  bool per_device;           ///< a device may override it: [device.tcp]
  std::string_view help;
};

struct Key {
  std::string_view section;
  std::string_view name;
  Tier tier;
  Target (*target)(Scope& scope);
  std::string_view unit;
  Range range;
  std::string_view help;
  std::string_view default_note = {};  ///< where the default is not a constant
  std::string_view range_note = {};    ///< where the type does not tell

  [[nodiscard]] Accepted accepted() const { return {range, unit == "octets"}; }
  [[nodiscard]] std::string path() const { return std::string(section) + "." + std::string(name); }
};

[[nodiscard]] std::span<const Section> all_sections();
[[nodiscard]] std::span<const Key> all_keys();
/// nullptr: none of that name.
[[nodiscard]] const Section* find_section(std::string_view name);
[[nodiscard]] const Key* find_key(std::string_view section, std::string_view name);

}  // namespace rnic::settings
