/// \file
/// What the result of a call that DPDK refused means; private to the driver.
#pragma once

#include <string>

#include "rnic/error.hpp"

namespace rnic::dpdk {

/// \param rc the negative result of a call. -1 is EPERM by its number, but drivers return it for
/// whatever failed (memory that ran out, a socket that is busy), so it says nothing about rights:
/// those that a device needs are looked at before it is opened.
ErrorCode code_of(int rc) noexcept;

/// \return the reason in words, for the end of an error's text
std::string reason_of(int rc);

}  // namespace rnic::dpdk
