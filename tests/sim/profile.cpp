#include "profile.hpp"

#include <algorithm>
#include <array>

#include "base/prng.hpp"

namespace rnic::simulation {

namespace {

using base::Prng;
using std::chrono::microseconds;
using std::chrono::milliseconds;

/// A number in [low, high], finer than integers.
double real(Prng& prng, double low, double high) {
  return low + (high - low) * static_cast<double>(prng.below(1u << 20)) / (1u << 20);
}

template <typename F>
void both_ways(WorldPlan& plan, F&& f) {
  for (Weather& weather : plan.weather) f(weather);
}
template <typename F>
void both_ends(WorldPlan& plan, F&& f) {
  for (device::DeviceConfig& device : plan.devices) f(device);
}

void markers(WorldPlan& plan, bool on) {
  both_ends(plan, [&](device::DeviceConfig& d) { d.mpa.markers_receive = on; });
}

void set_mtu(WorldPlan& plan, uint32_t mtu) {
  plan.mtu = mtu;
  both_ends(plan, [&](device::DeviceConfig& d) { d.net.mtu = mtu; });
}

void clean(WorldPlan& plan, Prng& prng) {
  plan.prompt = true;
  markers(plan, prng.chance(0.5));
}

void loss(WorldPlan& plan, Prng& prng) {
  both_ways(plan, [&](Weather& w) { w.drop = real(prng, 0.002, 0.05); });
  markers(plan, prng.chance(0.7));
}

void burst_loss(WorldPlan& plan, Prng& prng) {
  both_ways(plan, [&](Weather& w) {
    w.burst_enter = real(prng, 0.001, 0.01);
    w.burst_leave = real(prng, 0.2, 0.5);
  });
  markers(plan, prng.chance(0.7));
}

void reorder(WorldPlan& plan, Prng& prng) {
  both_ways(plan, [&](Weather& w) {
    w.reorder = real(prng, 0.01, 0.3);
    w.reorder_max = static_cast<uint32_t>(prng.between(1, 32));
  });
  markers(plan, prng.chance(0.7));
}

void duplicate(WorldPlan& plan, Prng& prng) {
  both_ways(plan, [&](Weather& w) {
    w.duplicate = real(prng, 0.01, 0.2);
    w.reorder = real(prng, 0, 0.05);
  });
  markers(plan, prng.chance(0.5));
}

void corrupt(WorldPlan& plan, Prng& prng) {
  both_ways(plan, [&](Weather& w) { w.corrupt = real(prng, 0.002, 0.02); });
  markers(plan, true);
}

void hostile_weather(WorldPlan& plan, Prng& prng) {
  both_ways(plan, [&](Weather& w) {
    w.drop = real(prng, 0.005, 0.02);
    w.burst_enter = real(prng, 0, 0.002);
    w.burst_leave = real(prng, 0.25, 0.5);  // a burst ends within the repetitions of a FIN
    w.duplicate = real(prng, 0.002, 0.01);
    w.corrupt = real(prng, 0.0005, 0.005);
    w.reorder = real(prng, 0.01, 0.04);
    w.reorder_max = 32;
    w.jitter = microseconds(prng.between(0, 50));
  });
}

void hostile(WorldPlan& plan, Prng& prng) {
  hostile_weather(plan, prng);
  markers(plan, true);
}

void hostile_no_markers(WorldPlan& plan, Prng& prng) {
  hostile_weather(plan, prng);
  markers(plan, false);
}

void hostile_far(WorldPlan& plan, Prng& prng) {
  hostile(plan, prng);
  plan.delay = milliseconds(prng.between(1, 40));
  plan.bits_per_second = 1'000'000'000;
}

void jitter(WorldPlan& plan, Prng& prng) {
  plan.delay = microseconds(prng.between(100, 5000));
  both_ways(plan, [&](Weather& w) { w.jitter = microseconds(prng.between(10, 1000)); });
  markers(plan, prng.chance(0.7));
}

void small_mtu(WorldPlan& plan, Prng& prng) {
  set_mtu(plan, static_cast<uint32_t>(prng.between(296, 1000)));
  both_ways(plan, [&](Weather& w) { w.drop = real(prng, 0, 0.01); });
  markers(plan, prng.chance(0.5));
}

void large_mtu(WorldPlan& plan, Prng& prng) {
  set_mtu(plan, static_cast<uint32_t>(prng.between(4000, 9000)));
  both_ways(plan, [&](Weather& w) {
    w.drop = real(prng, 0, 0.01);
    w.corrupt = real(prng, 0, 0.005);
  });
  markers(plan, prng.chance(0.7));
}

void resegment(WorldPlan& plan, Prng& prng) {
  both_ways(plan, [&](Weather& w) {
    w.resegment = real(prng, 0.05, 0.8);
    w.drop = real(prng, 0, 0.02);
    w.reorder = real(prng, 0, 0.03);
  });
  markers(plan, prng.chance(0.7));
}

void no_sack(WorldPlan& plan, Prng& prng) {
  both_ways(plan, [&](Weather& w) {
    w.drop = real(prng, 0.001, 0.02);
    w.reorder = real(prng, 0, 0.02);
  });
  both_ends(plan, [](device::DeviceConfig& d) { d.tcp.sack = false; });
  markers(plan, prng.chance(0.7));
}

void no_timestamps(WorldPlan& plan, Prng& prng) {
  hostile(plan, prng);
  both_ends(plan, [](device::DeviceConfig& d) { d.tcp.timestamps = false; });
}

void one_sided_markers(WorldPlan& plan, Prng& prng) {
  both_ways(plan, [&](Weather& w) {
    w.drop = real(prng, 0, 0.02);
    w.reorder = real(prng, 0, 0.05);
  });
  const uint64_t with = prng.below(2);
  plan.devices[with].mpa.markers_receive = true;
  plan.devices[1 - with].mpa.markers_receive = false;
  plan.devices[with].tcp.sack = prng.chance(0.5);
}

void packing(WorldPlan& plan, Prng& prng) {
  plan.sizes = Sizes::Tiny;
  plan.messages = static_cast<uint32_t>(prng.between(400, 800));
  plan.window = 64;
  plan.receive_window = 64;
  both_ways(plan, [&](Weather& w) {
    w.drop = real(prng, 0, 0.01);
    w.reorder = real(prng, 0, 0.02);
  });
  markers(plan, prng.chance(0.5));
}

void tiny_window(WorldPlan& plan, Prng& prng) {
  // Below one segment, too: the sender has to cut records.
  const auto window = static_cast<uint32_t>(prng.between(1, 4) * prng.between(600, 6000));
  both_ends(plan, [&](device::DeviceConfig& d) {
    d.tcp.receive_window = window;
    d.mpa.receive_window = window;
  });
  both_ways(plan, [&](Weather& w) { w.drop = real(prng, 0, 0.005); });
  plan.delay = microseconds(prng.between(1, 50));
  markers(plan, prng.chance(0.5));
}

void pause(WorldPlan& plan, Prng& prng) {
  plan.pause = real(prng, 0.01, 0.1);
  plan.pause_max = milliseconds(prng.between(1, 400));
  plan.bits_per_second = 1'000'000'000;
  both_ways(plan, [&](Weather& w) { w.drop = real(prng, 0, 0.01); });
  markers(plan, prng.chance(0.7));
}

void small_hold(WorldPlan& plan, Prng& prng) {
  both_ways(plan, [&](Weather& w) {
    w.drop = real(prng, 0.005, 0.03);
    w.reorder = real(prng, 0.01, 0.1);
    w.resegment = real(prng, 0, 0.2);
  });
  const auto hold = static_cast<uint32_t>(prng.between(4, 64)) << 10;
  both_ends(plan, [&](device::DeviceConfig& d) {
    d.mpa.hold_limit = hold;
    d.limits.hold_octets = 2 * hold;
  });
  markers(plan, prng.chance(0.3));
}

void narrow_link(WorldPlan& plan, Prng& prng) {
  // Loss by overflow of the link's own queue.
  plan.bits_per_second = prng.between(20, 200) * 1'000'000;
  plan.queue_frames = static_cast<uint32_t>(prng.between(8, 64));
  plan.delay = microseconds(prng.between(50, 2000));
  markers(plan, prng.chance(0.7));
}

void terminate(WorldPlan& plan, Prng& prng) {
  plan.violations = true;
  if (prng.chance(0.5)) {
    both_ways(plan, [&](Weather& w) {
      w.drop = real(prng, 0, 0.01);
      w.reorder = real(prng, 0, 0.03);
    });
  }
  markers(plan, prng.chance(0.7));
}

void terminate_hostile(WorldPlan& plan, Prng& prng) {
  hostile(plan, prng);
  plan.violations = true;
  plan.violation_turn += 10;
}

void reject(WorldPlan& plan, Prng& prng) {
  plan.rejections = true;
  both_ways(plan, [&](Weather& w) { w.drop = real(prng, 0, 0.02); });
  markers(plan, prng.chance(0.5));
}

void crc_off(WorldPlan& plan, Prng& prng) {
  both_ends(plan, [](device::DeviceConfig& d) { d.mpa.crc = false; });
  both_ways(plan, [&](Weather& w) {
    w.drop = real(prng, 0, 0.02);
    w.reorder = real(prng, 0, 0.05);
    w.corrupt = real(prng, 0, 0.005);
    w.repair = 0;  // nothing but the CRC would catch those
  });
  markers(plan, prng.chance(0.7));
}

/// ULP framing in the place of MPA. Without a CRC nobody notices octets behind a repaired checksum.
void framed(WorldPlan& plan, Prng& prng, bool align) {
  both_ways(plan, [](Weather& w) { w.repair = 0; });
  both_ends(plan, [&](device::DeviceConfig& d) {
    d.framing = Framing::Tuf;
    d.tuf.align_receive = align;
    d.tuf.packing = prng.chance(0.7);
    d.tuf.marker_interval = static_cast<uint16_t>(prng.chance(0.5) ? 512 : prng.between(512, 9000));
    d.tuf.receive_window = 1u << 20;
    d.limits.max_packed = static_cast<uint32_t>(prng.chance(0.3) ? prng.between(0, 64) : 4096);
  });
}

void framed_align(WorldPlan& plan, Prng& prng) {
  hostile_weather(plan, prng);
  framed(plan, prng, true);
}

void framed_markers(WorldPlan& plan, Prng& prng) {
  hostile_weather(plan, prng);
  framed(plan, prng, false);
}

/// One direction aligned, the other with markers, and a middlebox between them.
void framed_resegment(WorldPlan& plan, Prng& prng) {
  resegment(plan, prng);
  framed(plan, prng, true);
  if (prng.chance(0.5)) plan.devices[prng.below(2)].tuf.align_receive = false;
}

void framed_tiny_window(WorldPlan& plan, Prng& prng) {
  tiny_window(plan, prng);
  framed(plan, prng, prng.chance(0.5));
  both_ends(plan, [](device::DeviceConfig& d) { d.tuf.receive_window = d.mpa.receive_window; });
}

void in_order_only(WorldPlan& plan, Prng& prng) {
  hostile(plan, prng);
  both_ends(plan, [](device::DeviceConfig& d) { d.mpa.out_of_order = false; });
}

/// Damage alone: half of the octets behind a right checksum are never seen by TCP. Small FPDUs
/// share segments, and losses make that most come ahead of the order.
void damage(WorldPlan& plan, Prng& prng) {
  both_ways(plan, [&](Weather& w) {
    w.corrupt = real(prng, 0.005, 0.04);
    w.repair = 1;
    w.drop = real(prng, 0.002, 0.02);
    w.reorder = real(prng, 0, 0.1);
    w.duplicate = real(prng, 0, 0.01);
  });
  plan.corrupt_at_once = true;
  if (prng.chance(0.5)) {
    plan.sizes = Sizes::Tiny;
    plan.window = 64;
    plan.receive_window = 64;
  }
  markers(plan, prng.chance(0.5));
}

/// Senders that cut FPDUs, on a path that loses and, by chance, damages as well.
void cut_weather(WorldPlan& plan, Prng& prng) {
  const bool damaging = prng.chance(0.3);
  both_ways(plan, [&](Weather& w) {
    w.drop = real(prng, 0, 0.01);
    w.reorder = real(prng, 0, 0.02);
    w.corrupt = damaging ? real(prng, 0, 0.005) : 0;
    w.repair = 1;
  });
  plan.corrupt_at_once = prng.chance(0.5);
}

void cut_siw(WorldPlan& plan, Prng& prng) {
  cut_weather(plan, prng);
  plan.cutters[prng.below(2)] = Cutter::Siw;
  if (prng.chance(0.5)) plan.cutters[0] = plan.cutters[1] = Cutter::Siw;
  markers(plan, false);
}

void cut_gro(WorldPlan& plan, Prng& prng) {
  cut_weather(plan, prng);
  plan.cutters[0] = plan.cutters[1] = Cutter::Gro;
  markers(plan, prng.chance(0.5));
}

/// Options that many a peer lacks: no window scaling, so that what is offered is below the rings,
/// and, by chance, neither SACK nor timestamps.
void no_scaling(WorldPlan& plan, Prng& prng) {
  const uint64_t without = prng.below(3);
  for (uint32_t side = 0; side < 2; ++side) {
    device::DeviceConfig& device = plan.devices[side];
    device.tcp.receive_window = device.mpa.receive_window = 4u << 20;
    if (without == 1 - side) continue;
    device.tcp.window_scaling = false;
    device.tcp.sack = prng.chance(0.3);
    device.tcp.timestamps = prng.chance(0.5);
  }
  const bool losing = prng.chance(0.7);
  both_ways(plan, [&](Weather& w) {
    w.drop = losing ? real(prng, 0, 0.02) : 0;
    w.reorder = losing ? real(prng, 0, 0.05) : 0;
  });
  plan.prompt = !losing;
  markers(plan, prng.chance(0.5));
}

/// Windows around a segment that grow and shrink: their right edge goes back, too.
void squeezed(WorldPlan& plan, Prng& prng) {
  both_ends(plan, [&](device::DeviceConfig& d) {
    d.tcp.window_scaling = prng.chance(0.5);
    d.tcp.sack = prng.chance(0.5);
  });
  for (Squeeze& squeeze : plan.squeezes) {
    squeeze.least = static_cast<uint32_t>(prng.between(1, 2000));
    squeeze.most = squeeze.least + static_cast<uint32_t>(prng.between(500, 20'000));
    squeeze.change = real(prng, 0.005, 0.2);
    squeeze.after = static_cast<uint32_t>(prng.below(200));
  }
  plan.octets = 300'000;
  plan.messages = 60;
  both_ways(plan, [&](Weather& w) { w.drop = real(prng, 0, 0.005); });
  markers(plan, prng.chance(0.5));
}

/// One small message at a time, to a peer that offers less than a segment since some time, and
/// nothing gets lost: none of them is to wait for a timer (RFC 9293 s.3.8.6.2.1 (2)).
void small_messages(WorldPlan& plan, Prng& prng) {
  plan.prompt = true;
  plan.sizes = Sizes::Small;
  plan.octets = 0;
  plan.window = 1;
  both_ends(plan, [&](device::DeviceConfig& d) {
    d.tcp.window_scaling = prng.chance(0.5);
    d.tcp.sack = prng.chance(0.5);
    d.tcp.pacing = false;
    d.tcp.rto_min = milliseconds(200);
  });
  for (Squeeze& squeeze : plan.squeezes) {
    squeeze.least = squeeze.most = static_cast<uint32_t>(prng.between(1100, 1400));
    squeeze.after = static_cast<uint32_t>(prng.between(5, 60));
  }
  markers(plan, prng.chance(0.5));
}

void cut_middlebox(WorldPlan& plan, Prng& prng) {
  cut_weather(plan, prng);
  const double share = prng.chance(0.3) ? 1 : real(prng, 0.001, 0.3);
  both_ways(plan, [&](Weather& w) { w.resegment = share; });
  markers(plan, prng.chance(0.5));
}

/// Messages that come before their receives wait, and a Write behind one may be complete at its
/// sender before it is placed.
void late_receives(WorldPlan& plan, Prng& prng) {
  plan.receive_delay = microseconds(prng.between(20, 20'000));
  plan.receive_window = static_cast<uint32_t>(prng.between(2, 8));
  plan.delivered_when_complete = false;
  both_ways(plan, [&](Weather& w) {
    w.drop = real(prng, 0, 0.02);
    w.reorder = real(prng, 0, 0.05);
    w.resegment = real(prng, 0, 0.1);
  });
  if (prng.chance(0.3)) {
    framed(plan, prng, prng.chance(0.5));
  } else {
    markers(plan, prng.chance(0.5));
  }
}

constexpr std::array kProfiles{
    Profile{"clean", "nothing is lost", clean},
    Profile{"hostile", "everything at once, markers on", hostile},
    Profile{"loss", "single frames are lost", loss},
    Profile{"terminate", "an application breaks a rule beside healthy connections", terminate},
    Profile{"reorder", "frames are held back", reorder},
    Profile{"corrupt", "octets change, half of them behind a correct TCP checksum", corrupt},
    Profile{"resegment", "a middlebox cuts segments", resegment},
    Profile{"burst-loss", "runs of frames are lost", burst_loss},
    Profile{"packing", "hundreds of tiny messages", packing},
    Profile{"hostile-no-markers", "everything at once, nothing locates FPDUs", hostile_no_markers},
    Profile{"duplicate", "frames arrive twice", duplicate},
    Profile{"tiny-window", "the receive window is a few kilobytes or less", tiny_window},
    Profile{"jitter", "delays vary", jitter},
    Profile{"small-mtu", "MTU 296 to 1000", small_mtu},
    Profile{"large-mtu", "MTU 4000 to 9000", large_mtu},
    Profile{"pause", "a device is not polled for a while", pause},
    Profile{"no-sack", "duplicate ACKs and time-outs only", no_sack},
    Profile{"no-timestamps", "hostile without RFC 7323 timestamps", no_timestamps},
    Profile{"reject", "connects are rejected or refused beside healthy ones", reject},
    Profile{"crc-off", "both sides ask for no CRC", crc_off},
    Profile{"one-sided-markers", "markers in one direction", one_sided_markers},
    Profile{"small-hold", "hold space of a few kilobytes", small_hold},
    Profile{"narrow-link", "the link's queue overflows", narrow_link},
    Profile{"hostile-far", "hostile with a long way", hostile_far},
    Profile{"terminate-hostile", "rules broken on a hostile wire", terminate_hostile},
    Profile{"in-order-only", "hostile, out-of-order placement off", in_order_only},
    Profile{"damage", "octets change behind a right checksum, from the first FPDU on", damage},
    Profile{"cut-siw", "Read Responses are cut as Linux siw does", cut_siw},
    Profile{"cut-gro", "segments are joined and cut anew", cut_gro},
    Profile{"cut-middlebox", "a middlebox cuts a few segments, or each", cut_middlebox},
    Profile{"no-scaling", "peers without window scaling, SACK, timestamps", no_scaling},
    Profile{"squeezed", "windows around a segment, which shrink, too", squeezed},
    Profile{"small-messages", "small messages, a window below a segment, no loss", small_messages},
    Profile{"late-receives", "messages come before their receives are posted", late_receives},
    Profile{"tuf-align", "hostile, ULP framing in alignment mode", framed_align},
    Profile{"tuf-markers", "hostile, ULP framing in marker mode", framed_markers},
    Profile{"tuf-resegment", "a middlebox cuts segments of ULP framing", framed_resegment},
    Profile{"tuf-tiny-window", "ULP framing in a window of a few kilobytes", framed_tiny_window},
};

/// What no profile cares about is chosen by the seed.
void choose_rest(WorldPlan& plan, Prng& prng) {
  plan.pipes = static_cast<uint32_t>(prng.between(2, 4));
  plan.messages = static_cast<uint32_t>(prng.between(110, 160));
  plan.window = static_cast<uint32_t>(prng.between(1, 24));
  plan.receive_window = static_cast<uint32_t>(prng.between(2, 32));
  plan.delay = microseconds(prng.between(2, 200));
  plan.shared_queues = prng.chance(0.3);
  constexpr std::array<uint32_t, 4> kMtus{1500, 1500, 1492, 9000};
  set_mtu(plan, kMtus[prng.below(kMtus.size())]);
  const bool cubic = prng.chance(0.5);
  const Ecn ecn = prng.chance(0.3) ? Ecn::Offer : Ecn::Accept;
  const bool paced = prng.chance(0.2);
  for (uint32_t side = 0; side < 2; ++side) {
    device::DeviceConfig& device = plan.devices[side];
    device.name = side == 0 ? "left" : "right";
    device.net.address = IpAddress::v4(0x0a000001u + side);
    device.seed = prng.next();
    device.secret = {prng.next(), prng.next()};
    device.tcp.congestion_control = cubic ? CongestionControl::Cubic : CongestionControl::NewReno;
    device.tcp.ecn = ecn;
    device.tcp.pacing = paced;
    device.tcp.pack_records = prng.chance(0.8);
    // Three copies of an RTR that are lost, or dropped on suspicion, take longer than the default.
    device.mpa.rtr_timeout = device.mpa.start_timeout;
    device.tcp.max_connections = 64;
    device.tcp.max_time_wait = 1024;
    device.tcp.max_records = 16384;
    device.tcp.max_records_per_connection = prng.chance(0.2) ? 64 : 4096;
    // Whoever waits longer than these gives up for a good reason: bad weather is not one of them.
    device.tcp.user_timeout = std::chrono::seconds(3000);
    device.tcp.orphan_timeout = std::chrono::seconds(3000);
    device.tcp.close_timeout = std::chrono::seconds(600);
    device.tcp.time_wait = std::chrono::seconds(120);
    device.tcp.rto_min = milliseconds(prng.chance(0.5) ? 200 : 5);
    device.mpa.receive_window = 1u << 20;
    device.tcp.receive_window = 1u << 20;
    device.limits.max_qps = 32;
    device.limits.max_cqs = 32;
    device.limits.max_pds = 32;
    device.limits.max_regions = 512;
    device.limits.max_connections = 32;
    device.limits.max_events = 1024;
    device.limits.hold_octets = 2u << 20;
  }
}

}  // namespace

std::span<const Profile> profiles() { return kProfiles; }

WorldPlan make_plan(const Profile& profile, uint64_t seed) {
  // The profile's name is part of the seed: worlds of one seed in two profiles differ.
  uint64_t mixed = seed * 0x9e3779b97f4a7c15ull;
  for (const char* c = profile.name; *c != '\0'; ++c)
    mixed = (mixed ^ uint8_t(*c)) * 0x100000001b3ull;
  Prng prng(mixed);
  WorldPlan plan;
  plan.profile = profile.name;
  plan.seed = mixed;
  choose_rest(plan, prng);
  plan.violation_turn = seed / kProfiles.size() * kViolationsPerWorld;
  profile.apply(plan, prng);
  return plan;
}

}  // namespace rnic::simulation
