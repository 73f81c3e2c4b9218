/// \file
/// What kind of file a program is that rnic-run is about to run.
#pragma once

#include <string>

namespace rnic::run {

/// Programs that are linked statically have no loader, and into those that get rights of their own
/// it preloads nothing: neither finds the device. Of a script the interpreter is looked at.
/// \param program as execvp() takes it \return why not, for the user; empty: it can be preloaded
/// into, or it cannot be looked at
[[nodiscard]] std::string why_nothing_is_preloaded(const std::string& program);

}  // namespace rnic::run
