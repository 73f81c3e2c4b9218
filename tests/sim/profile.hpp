/// \file
/// Profiles: families of worlds. A profile and a seed give the parameters of one world.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/prng.hpp"
#include "base/time.hpp"
#include "cutting_port.hpp"
#include "device/config.hpp"
#include "impair/config.hpp"
#include "squeezing_port.hpp"

namespace rnic::simulation {

/// Queue pairs that break a rule, in a world that has them.
inline constexpr uint32_t kViolationsPerWorld = 3;

/// What happens to frames in one direction.
using Weather = impair::Config;

enum class Sizes : uint8_t {
  Mixed,  ///< 0 octets to 64 KB, a few up to 200 KB
  Tiny,   ///< many below 256 octets, the rest large enough for 1 MB in all
  Small,  ///< all below 256 octets
};

/// Everything that a world is made from.
struct WorldPlan {
  std::string profile;
  uint64_t seed = 0;
  Weather weather[2];                                ///< of what each device sends
  Cutter cutters[2] = {Cutter::None, Cutter::None};  ///< of what each device sends
  Squeeze squeezes[2];                               ///< of the windows that each device offers
  bool corrupt_at_once = false;                      ///< as soon as the start frames have passed
  uint32_t mtu = 1500;
  base::Duration delay{10'000};  ///< one way
  uint64_t bits_per_second = 10'000'000'000;
  uint32_t queue_frames = 4096;  ///< of the link, each direction; more are lost
  device::DeviceConfig devices[2];
  uint32_t pipes = 2;  ///< pairs of connected queue pairs with traffic
  Sizes sizes = Sizes::Mixed;
  uint32_t messages = 120;     ///< in all, at least
  uint64_t octets = 1u << 20;  ///< in all, at least
  uint32_t window = 16;        ///< messages that a flow keeps posted
  uint32_t receive_window = 32;
  base::Duration receive_delay{0};  ///< receives come up to so late, and messages wait for them
  double pause = 0;  ///< chance that a device sleeps, each millisecond
  base::Duration pause_max{0};
  bool prompt = false;                  ///< nothing gives a reason to wait for a timer
  bool violations = false;              ///< queue pairs whose application breaks a rule
  uint64_t violation_turn = 0;          ///< which rules: all have had their turn after some seeds
  bool rejections = false;              ///< connects that are rejected, or find no listener
  bool shared_queues = false;           ///< one completion queue a device
  bool delivered_when_complete = true;  ///< a completed Send or Write has arrived: TCP is our own
};

struct Profile {
  const char* name;
  const char* what;
  void (*apply)(WorldPlan& plan, base::Prng& prng);
};

[[nodiscard]] std::span<const Profile> profiles();
[[nodiscard]] WorldPlan make_plan(const Profile& profile, uint64_t seed);

}  // namespace rnic::simulation
