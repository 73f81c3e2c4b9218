/// \file
/// Options of TCP, as the dice choose them.
#pragma once

#include "rnic-spin/dice.hpp"
#include "rnic/tcp_options.hpp"

namespace rnic::spin {

/// Options that every TCP takes, and that end no connection of a run.
[[nodiscard]] TcpOptions any_tcp(Dice& dice);
/// A value that no TCP takes.
[[nodiscard]] TcpOptions impossible_tcp(Dice& dice);

}  // namespace rnic::spin
