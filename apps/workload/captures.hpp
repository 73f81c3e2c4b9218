/// \file
/// What a program says at its end of captures that are not whole.
#pragma once

#include <string>

#include "rnic/verbs.hpp"

namespace rnic::workload {

/// \return `status`; where a capture of the context lacks frames that could not be written, the
/// status for outputs (2), after a line on stderr for each that begins with the program's name
int with_captures(const std::string& program, Context& context, int status);

}  // namespace rnic::workload
