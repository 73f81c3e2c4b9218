/// \file
/// Quantities of several kinds in words, for errors that say what is in the way.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace rnic::base {

/// So many of one kind.
struct Quantity {
  uint64_t count;
  const char* one;      ///< "queue pair"
  const char* several;  ///< "queue pairs"
};

/// \return "2 regions, 1 window and 1 queue pair": the kinds of which there are some; "" if there
/// are none
[[nodiscard]] inline std::string in_words(std::initializer_list<Quantity> quantities) {
  std::vector<std::string> parts;
  for (const Quantity& each : quantities) {
    if (each.count == 0) continue;
    parts.push_back(std::to_string(each.count) + " " + (each.count == 1 ? each.one : each.several));
  }
  std::string words;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i != 0) words += i + 1 == parts.size() ? " and " : ", ";
    words += parts[i];
  }
  return words;
}

}  // namespace rnic::base
