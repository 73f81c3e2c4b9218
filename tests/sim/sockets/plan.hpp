/// \file
/// Profiles of worlds whose devices stand on sockets of simulated systems.
#pragma once

#include <cstdint>
#include <span>

#include "base/prng.hpp"
#include "profile.hpp"
#include "socket/config.hpp"
#include "sockets/faults.hpp"

namespace rnic::simulation {

/// Everything that such a world is made from.
struct SocketPlan {
  WorldPlan world;  ///< its link and its weather are not used
  SystemPlan systems[2];
  socket::Config sockets[2];
  uint32_t most_broken = 0;  ///< connections that faults may end, of both systems
};

struct SocketProfile {
  const char* name;
  const char* what;
  void (*apply)(SocketPlan& plan, base::Prng& prng);
};

[[nodiscard]] std::span<const SocketProfile> socket_profiles();
[[nodiscard]] SocketPlan make_socket_plan(const SocketProfile& profile, uint64_t seed);

}  // namespace rnic::simulation
