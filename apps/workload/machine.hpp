/// \file
/// The machine that a figure was measured on.
#pragma once

#include <string>

namespace rnic::workload {

/// "AMD EPYC 7763, 2 cores, Linux 6.1.0, load 0.12"
[[nodiscard]] std::string machine();

}  // namespace rnic::workload
