/// \file
/// What a configuration says of a local wire.
#pragma once

#include <cstddef>
#include <string_view>

namespace rnic::local {

/// A port's name begins so; the folder of the wire follows.
inline constexpr std::string_view kPrefix = "local:";
/// The longest path of a wire's folder, in octets: the name of a socket has 108 with its own file.
inline constexpr size_t kMostPath = 92;

}  // namespace rnic::local
