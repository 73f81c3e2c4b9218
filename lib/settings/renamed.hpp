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
  std::string_view now;  ///< of a section that a device may have for itself
};

[[nodiscard]] std::span<const Renamed> all_renamed();
/// nullptr: no key was ever called that.
[[nodiscard]] const Renamed* find_renamed(std::string_view section, std::string_view name);

/// What is wrong with the old name, and what to write instead. \param device its name; empty: it
/// stands where it holds for all. \param in_override it is no line of a file
[[nodiscard]] std::string renamed_text(const Renamed& renamed, std::string_view device,
                                       bool in_override);

}  // namespace rnic::settings
