#include "rnic-spin/tcp_choice.hpp"

#include <chrono>

namespace rnic::spin {

TcpOptions any_tcp(Dice& dice) {
  TcpOptions options{.nagle = dice.chance(50), .dscp = static_cast<uint8_t>(dice.below(64))};
  if (dice.chance(50)) options.hop_limit = static_cast<uint8_t>(1 + dice.below(255));
  if (dice.chance(50)) {
    options.keep_alive = dice.chance(50);
    options.keep_alive_idle = std::chrono::seconds(10 + dice.below(100));
    options.keep_alive_interval = std::chrono::seconds(1 + dice.below(10));
    options.keep_alive_count = static_cast<uint32_t>(2 + dice.below(6));
  }
  if (dice.chance(50)) options.user_timeout = std::chrono::seconds(30 + dice.below(100));
  return options;
}

TcpOptions impossible_tcp(Dice& dice) {
  TcpOptions options = any_tcp(dice);
  switch (dice.below(3)) {
    case 0: options.dscp = static_cast<uint8_t>(64 + dice.below(192)); break;
    case 1: options.keep_alive_count = static_cast<uint32_t>(dice.below(2)); break;
    default: options.user_timeout = std::chrono::milliseconds(0);
  }
  return options;
}

}  // namespace rnic::spin
