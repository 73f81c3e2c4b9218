/// \file
/// The table of all keys, from which the parser and the documentation work. Private to this folder.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "settings/values.hpp"

namespace rnic::settings {

/// The structs that keys are stored in; a key writes only the struct of its section.
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
  std::string_view default_note = {};  ///< for a default that is not a constant
  std::string_view range_note = {};    ///< for a range that the type does not tell

  [[nodiscard]] Accepted accepted() const { return {range, unit == "octets"}; }
  [[nodiscard]] std::string path() const { return std::string(section) + "." + std::string(name); }
};

[[nodiscard]] std::span<const Section> all_sections();
[[nodiscard]] std::span<const Key> all_keys();
/// The section of that name; nullptr: there is none.
[[nodiscard]] const Section* find_section(std::string_view name);
[[nodiscard]] const Key* find_key(std::string_view section, std::string_view name);

}  // namespace rnic::settings
