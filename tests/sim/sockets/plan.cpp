#include "sockets/plan.hpp"

#include <array>

namespace rnic::simulation {

namespace {

using base::Prng;
using std::chrono::microseconds;
using std::chrono::milliseconds;

double real(Prng& prng, double low, double high) {
  return low + (high - low) * static_cast<double>(prng.below(1u << 20)) / (1u << 20);
}

template <typename F>
void both(SocketPlan& plan, F&& f) {
  for (SystemPlan& system : plan.systems) f(system);
}

void clean(SocketPlan&, Prng&) {}

void short_calls(SocketPlan& plan, Prng& prng) {
  const auto buffer = static_cast<uint32_t>(prng.between(4, 64)) << 10;
  const auto piece = static_cast<uint32_t>(prng.between(200, 20'000));
  both(plan, [&](SystemPlan& s) {
    s.send_buffer = buffer;
    s.receive_buffer = static_cast<uint32_t>(prng.between(4, 64)) << 10;
    s.longest_piece = piece;
    s.new_mss = 0.02;
    s.faults.partial = real(prng, 0.1, 0.7);
  });
  for (socket::Config& config : plan.sockets) {
    config.send_buffer = static_cast<uint32_t>(prng.between(4, 128)) << 10;
    config.receive_buffer = static_cast<uint32_t>(prng.between(4, 64)) << 10;
  }
}

void interrupted(SocketPlan& plan, Prng& prng) {
  both(plan, [&](SystemPlan& s) {
    s.faults.interrupted = real(prng, 0.01, 0.3);
    s.faults.again = real(prng, 0.01, 0.2);
    s.faults.late = real(prng, 0.1, 0.9);
    s.faults.late_max = microseconds(prng.between(1, 5000));
    s.faults.unasked = real(prng, 0.01, 0.2);
  });
}

void no_memory(SocketPlan& plan, Prng& prng) {
  short_calls(plan, prng);
  both(plan, [&](SystemPlan& s) {
    s.faults.no_memory = real(prng, 0.05, 0.5);
    s.faults.options = real(prng, 0.05, 0.5);
  });
  const auto hold = static_cast<uint32_t>(prng.between(4, 64)) << 10;
  for (device::DeviceConfig& d : plan.world.devices) {
    d.mpa.hold_limit = hold;
    d.limits.hold_octets = 2 * hold;
  }
}

void refused(SocketPlan& plan, Prng& prng) {
  plan.most_broken = 4;
  both(plan, [&](SystemPlan& s) {
    s.descriptors = static_cast<uint32_t>(prng.between(5, 9));
    s.has_ipv6 = prng.chance(0.5);
    s.faults.setup = real(prng, 0.05, 0.4);
    s.faults.refusal = real(prng, 0.1, 0.6);
    s.faults.options = real(prng, 0, 0.3);
  });
  for (socket::Config& config : plan.sockets) {
    config.backlog = static_cast<uint32_t>(prng.between(1, 4));
    config.max_connections = static_cast<uint32_t>(prng.between(3, 8));
  }
}

void broken(SocketPlan& plan, Prng& prng) {
  plan.most_broken = 6;
  both(plan, [&](SystemPlan& s) {
    s.faults.fatal = real(prng, 0.001, 0.02);
    s.faults.mute = real(prng, 0.001, 0.02);
    s.longest_piece = static_cast<uint32_t>(prng.between(500, 60'000));
  });
}

void hostile(SocketPlan& plan, Prng& prng) {
  interrupted(plan, prng);
  no_memory(plan, prng);
  broken(plan, prng);
  both(plan, [&](SystemPlan& s) {
    s.faults.setup = real(prng, 0, 0.1);
    s.faults.refusal = real(prng, 0, 0.2);
    s.has_ipv6 = prng.chance(0.7);
  });
}

/// Responders that install their receiver behind their Reply, as Linux siw does, and initiators
/// that soon have nothing more to say: what they say fits into the windows and is read late, or
/// never without new octets.
void late_receiver(SocketPlan& plan, Prng& prng) {
  both(plan, [&](SystemPlan& s) {
    s.late_receiver = milliseconds(prng.between(1, 205));
    s.faults.late = prng.chance(0.5) ? real(prng, 0, 0.5) : 0;
    s.faults.late_max = microseconds(prng.between(1, 2000));
  });
  plan.world.sizes = Sizes::Small;
  plan.world.octets = 0;
  plan.world.window = static_cast<uint32_t>(prng.between(1, 16));
  for (device::DeviceConfig& d : plan.world.devices) d.mpa.first_fpdu_delay = milliseconds(10);
}

/// ULP framing in the place of MPA: over a system's sockets it has marker mode only.
void framed(SocketPlan& plan, Prng& prng) {
  hostile(plan, prng);
  for (device::DeviceConfig& d : plan.world.devices) {
    d.framing = Framing::Tuf;
    d.tuf.align_receive = false;
    d.tuf.markers_receive = true;
    d.tuf.packing = prng.chance(0.7);
    d.tuf.receive_window = 1u << 20;
  }
}

constexpr std::array kProfiles{
    SocketProfile{"socket-clean", "nothing goes wrong", clean},
    SocketProfile{"socket-short", "calls move less than they could, buffers are small",
                  short_calls},
    SocketProfile{"socket-broken", "the network ends connections", broken},
    SocketProfile{"socket-interrupted", "signals, false EAGAIN, late events, events of nothing",
                  interrupted},
    SocketProfile{"socket-no-memory", "no memory in the system, little hold space", no_memory},
    SocketProfile{"socket-refused", "descriptors are used up, what is set up fails", refused},
    SocketProfile{"socket-hostile", "everything at once", hostile},
    SocketProfile{"socket-late", "receivers are installed behind the Reply", late_receiver},
    SocketProfile{"socket-framed", "everything at once, ULP framing", framed},
};

}  // namespace

std::span<const SocketProfile> socket_profiles() { return kProfiles; }

SocketPlan make_socket_plan(const SocketProfile& profile, uint64_t seed) {
  uint64_t mixed = seed * 0x9e3779b97f4a7c15ull;
  for (const char* c = profile.name; *c != '\0'; ++c) {
    mixed = (mixed ^ static_cast<uint8_t>(*c)) * 0x100000001b3ull;
  }
  Prng prng(mixed);
  SocketPlan plan;
  plan.world = make_plan(profiles()[0], mixed);  // the clean one: only its devices are used
  plan.world.profile = profile.name;
  plan.world.seed = mixed;
  plan.world.pause = 0;
  plan.world.shared_queues = false;
  plan.world.violations = plan.world.rejections = false;
  plan.world.delivered_when_complete = false;
  plan.world.pipes = static_cast<uint32_t>(prng.between(1, 3));
  for (uint32_t side = 0; side < 2; ++side) {
    plan.world.devices[side].mpa.redial = false;  // an attempt is one connection
    plan.systems[side].delay = microseconds(prng.between(5, 200));
    socket::Config& config = plan.sockets[side];
    config.nagle = prng.chance(0.2);
    config.align = prng.chance(0.8);
    config.pack_records = prng.chance(0.8);
    config.keep_alive = prng.chance(0.5);
    config.close_timeout = std::chrono::seconds(600);
    config.connect_timeout = std::chrono::seconds(600);
  }
  profile.apply(plan, prng);
  return plan;
}

}  // namespace rnic::simulation
