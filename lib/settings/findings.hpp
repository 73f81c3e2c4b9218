/// \file
/// The place that each value of the configuration came from, and the errors found. Private to this
/// folder.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.hpp"

namespace rnic::settings {

/// A line of the file, or an override.
struct Place {
  uint32_t order = 0;  ///< the line number; overrides come after all lines
  std::string text;    ///< "nic.toml:7" or `override "tcp.sack=no"`
};

/// All errors found, one line each.
class Findings {
 public:
  void add(const Place& place, const std::string& key, const std::string& message) {
    std::pair line(place.order, place.text + ": " + (key.empty() ? "" : key + ": ") + message);
    // A value that holds for all devices is wrong for each of them, but is reported once.
    if (std::find(found_.begin(), found_.end(), line) == found_.end()) found_.push_back(line);
  }
  [[nodiscard]] bool empty() const { return found_.empty(); }

  /// The lines in the order of the file, at most as many as fit a screen.
  [[nodiscard]] Error error() {
    constexpr size_t kMost = 20;
    std::stable_sort(found_.begin(), found_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::string message;
    for (size_t i = 0; i < std::min(found_.size(), kMost); ++i) {
      message += (i == 0 ? "" : "\n") + found_[i].second;
    }
    if (found_.size() > kMost) {
      message += "\nand " + std::to_string(found_.size() - kMost) + " more like these";
    }
    return {ErrorCode::InvalidArgument, std::move(message)};
  }

 private:
  std::vector<std::pair<uint32_t, std::string>> found_;
};

/// The places at which keys were set. Devices and wires count from 0: "tcp.rto_min",
/// "device#0.tcp.rto_min", "wire#1.name"; the table itself is "device#0".
class Places {
 public:
  explicit Places(std::string file) : file_{0, std::move(file)} {}

  void set(const std::string& id, const Place& place) { places_.insert_or_assign(id, place); }
  [[nodiscard]] bool given(const std::string& id) const { return places_.contains(id); }
  /// \return whether any key below `id` was set
  [[nodiscard]] bool any_below(const std::string& id) const {
    const auto found = places_.lower_bound(id + ".");
    return found != places_.end() && found->first.starts_with(id + ".");
  }

  /// The place where `key` of `table` ("device#0") got its value: in the table, in the section for
  /// all devices, or, for a default, the table's head or no place in particular.
  [[nodiscard]] const Place& of(const std::string& table, const std::string& key) const {
    std::string own = table;
    own.append(".").append(key);
    for (const std::string& id : {own, key, table}) {
      const auto found = places_.find(id);
      if (found != places_.end()) return found->second;
    }
    return file_;
  }

 private:
  Place file_;
  std::map<std::string, Place> places_;
};

}  // namespace rnic::settings
