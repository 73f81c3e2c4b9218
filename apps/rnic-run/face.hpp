/// \file
/// The face that the device shows to libibverbs.
#pragma once

#include <cstdlib>
#include <cstring>

namespace rnic::run {

/// \return whether the device stands there as one of RoCE, whose queue pairs find each other by GID
/// and number; else it is one of iWARP, and librdmacm connects them
inline bool is_roce() {
  static const bool asked = [] {
    const char* const value = std::getenv("RNIC_ROCE");
    return value != nullptr && std::strcmp(value, "1") == 0;
  }();
  return asked;
}

}  // namespace rnic::run
