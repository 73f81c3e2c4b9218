/// \file
/// at(): endpoints as tests write them.
#pragma once

#include <string>

#include "rnic/address.hpp"

namespace rnic {

/// \param address as parse_ip() takes it; another text is an exception
inline Endpoint at(const std::string& address, uint16_t port) {
  return {parse_ip(address).value(), port};
}

}  // namespace rnic
