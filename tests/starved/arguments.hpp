/// \file
/// Every number that a call of the API takes, at the end of its type.
#pragma once

#include <string>
#include <vector>

#include "world.hpp"

namespace rnic::starved {

/// An entry of the table.
struct Extreme {
  /// Members of the public headers, "Class::member", separated by commas.
  const char* names;
  /// Makes the call. \return what it has answered.
  Status (*make)(World& world);
  /// It is to fail, whatever memory there is.
  bool impossible = true;
};

[[nodiscard]] const std::vector<Extreme>& extremes();

}  // namespace rnic::starved
