/// \file
/// How much of a long enumeration a test goes through: all of it where the environment has
/// LONG_FORM, as the long tests do (`./scripts/test --long`), a part of it otherwise.
#pragma once

#include <cstdlib>

namespace rnic::test {

inline bool is_long_form() { return std::getenv("LONG_FORM") != nullptr; }

/// `usual`, or `whole` in the long form.
template <typename T>
T by_form(T usual, T whole) {
  return is_long_form() ? whole : usual;
}

}  // namespace rnic::test
