/// \file
/// Keys that had other names in earlier releases. Private to this folder.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rnic::settings {

/// One key by its full names, without a device: "mpa.hold_limit", "framing.hold_limit".
struct Renamed {
  std::string_view was;
  std::string_view now;  ///< in a section that a device may override
};

[[nodiscard]] std::span<const Renamed> all_renamed();
/// The row of an old name; nullptr: no key ever had it.
[[nodiscard]] const Renamed* find_renamed(std::string_view section, std::string_view name);

/// The message for an old name, with what to write instead. \param device the device's name; empty:
/// the key stands in the section for all devices. \param in_override the key is in an override
[[nodiscard]] std::string renamed_text(const Renamed& renamed, std::string_view device,
                                       bool in_override);

}  // namespace rnic::settings
