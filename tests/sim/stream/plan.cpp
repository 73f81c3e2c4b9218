#include "stream/plan.hpp"

#include <algorithm>
#include <array>

#include "base/prng.hpp"

namespace rnic::simulation {

namespace {

using base::Prng;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

double real(Prng& prng, double low, double high) {
  return low + (high - low) * static_cast<double>(prng.below(1u << 20)) / (1u << 20);
}
uint32_t some(Prng& prng, uint32_t low, uint32_t high) {
  return static_cast<uint32_t>(prng.between(low, high));
}

template <typename F>
void both_ways(StreamPlan& plan, F&& f) {
  for (PathPlan& path : plan.path) f(path);
}
template <typename F>
void both_ends(StreamPlan& plan, F&& f) {
  for (tcp::Config& config : plan.tcp) f(config);
}
template <typename F>
void both_users(StreamPlan& plan, F&& f) {
  for (ApplicationPlan& application : plan.application) f(application);
}

void clean(StreamPlan& plan, Prng& prng) {
  plan.connections = some(prng, 1, 4);
  both_users(plan, [&](ApplicationPlan& a) { a.octets = prng.below(400'000); });
}

void loss(StreamPlan& plan, Prng& prng) {
  both_ways(plan, [&](PathPlan& p) { p.drop = real(prng, 0.001, 0.1); });
}

void heavy_loss(StreamPlan& plan, Prng& prng) {
  both_ways(plan, [&](PathPlan& p) { p.drop = real(prng, 0.1, 0.3); });
  both_users(plan, [&](ApplicationPlan& a) { a.octets = prng.below(60'000); });
}

void burst_loss(StreamPlan& plan, Prng& prng) {
  both_ways(plan, [&](PathPlan& p) {
    p.burst_enter = real(prng, 0.001, 0.02);
    p.burst_leave = real(prng, 0.05, 0.5);
  });
}

void reorder(StreamPlan& plan, Prng& prng) {
  both_ways(plan, [&](PathPlan& p) {
    p.reorder = real(prng, 0.01, 0.5);
    p.reorder_span = 2 * p.delay + microseconds(prng.between(10, 20'000));
  });
}

void duplicate(StreamPlan& plan, Prng& prng) {
  both_ways(plan, [&](PathPlan& p) {
    p.duplicate = real(prng, 0.01, 0.5);
    p.reorder = real(prng, 0, 0.1);
    p.reorder_span = milliseconds(2);
  });
}

void corrupt(StreamPlan& plan, Prng& prng) {
  both_ways(plan, [&](PathPlan& p) { p.corrupt = real(prng, 0.001, 0.1); });
}

void far(StreamPlan& plan, Prng& prng) {
  both_ways(plan, [&](PathPlan& p) {
    p.delay = milliseconds(prng.between(1, 150));
    p.jitter = milliseconds(prng.between(0, 50));
    p.drop = real(prng, 0, 0.03);
  });
}

void jitter(StreamPlan& plan, Prng& prng) {
  both_ways(plan, [&](PathPlan& p) {
    p.delay = milliseconds(prng.between(0, 20));
    p.jitter = milliseconds(prng.between(1, 20));
    p.jitter_reorders = true;
  });
}

void middlebox(StreamPlan& plan, Prng& prng) {
  both_ways(plan, [&](PathPlan& p) {
    p.split = real(prng, 0, 0.7);
    p.merge = real(prng, 0, 0.7);
    p.drop = real(prng, 0, 0.03);
    p.reorder = real(prng, 0, 0.05);
    p.reorder_span = milliseconds(3);
  });
}

void bottleneck(StreamPlan& plan, Prng& prng) {
  both_ways(plan, [&](PathPlan& p) {
    p.bits_per_second = prng.between(2, 50) * 1'000'000;
    p.queue_packets = some(prng, 5, 60);
    p.delay = microseconds(prng.between(100, 20'000));
  });
  both_users(plan, [&](ApplicationPlan& a) { a.octets = prng.between(100'000, 600'000); });
}

void marks(StreamPlan& plan, Prng& prng) {
  both_ends(plan, [&](tcp::Config& c) {
    c.ecn = prng.chance(0.8) ? Ecn::Offer : Ecn::Accept;
    if (c.congestion_control == CongestionControl::Dctcp) {
      c.congestion_control = CongestionControl::Cubic;
    }
  });
  both_ways(plan, [&](PathPlan& p) {
    p.mark = real(prng, 0.001, 0.2);
    p.drop = real(prng, 0, 0.02);
    p.delay = microseconds(prng.between(10, 10'000));
  });
}

void data_center(StreamPlan& plan, Prng& prng) {
  bottleneck(plan, prng);
  both_ends(plan, [&](tcp::Config& c) {
    c.ecn = Ecn::Offer;
    c.congestion_control = CongestionControl::Dctcp;
    c.dctcp_ect_on_control = prng.chance(0.3);
  });
  both_ways(plan, [&](PathPlan& p) {
    p.mark_packets = some(prng, 2, 10);
    p.delay = microseconds(prng.between(10, 1000));
  });
}

void whole_records(StreamPlan& plan, Prng& prng) {
  // Windows below a record and middleboxes would be reasons to cut one: neither is here.
  plan.whole_records = true;
  plan.mtu[1] = plan.mtu[0];
  both_users(plan, [&](ApplicationPlan& a) {
    a.records = true;
    a.ring = 1u << 20;
    a.read_rate_octets = 0;
    a.stop_for = {};
    a.drop = prng.chance(0.3) ? real(prng, 0, 0.03) : 0;
  });
  both_ends(plan, [](tcp::Config& c) {
    c.window_scaling = true;
    c.receive_window = 1u << 20;
    c.mtu_probing = false;  // a lost probe is cut
  });
  both_ways(plan, [&](PathPlan& p) {
    p.drop = real(prng, 0, 0.08);
    p.reorder = real(prng, 0, 0.2);
    p.reorder_span = milliseconds(5);
  });
}

void no_options(StreamPlan& plan, Prng& prng) {
  loss(plan, prng);
  both_ends(plan, [&](tcp::Config& c) {
    c.sack = prng.chance(0.2);
    c.timestamps = prng.chance(0.3);
    c.window_scaling = prng.chance(0.3);
  });
}

void small_window(StreamPlan& plan, Prng& prng) {
  both_users(plan, [&](ApplicationPlan& a) {
    a.ring = some(prng, 1, 8) * some(prng, 300, 3000);
    a.octets = prng.below(60'000);
    a.read_rate_octets = prng.chance(0.5) ? some(prng, 100, 20'000) : 0;
  });
  both_ways(plan, [&](PathPlan& p) { p.drop = real(prng, 0, 0.02); });
}

void stop_a_minute(StreamPlan& plan, Prng& prng) {
  both_users(plan, [&](ApplicationPlan& a) {
    a.octets = prng.between(100'000, 300'000);
    a.ring = some(prng, 4'000, 64'000);
    if (prng.chance(0.7)) {
      a.stop_at = prng.below(a.octets / 2);
      a.stop_for = seconds(prng.between(1, 60));
    }
  });
  both_ways(plan, [&](PathPlan& p) {
    p.drop = real(prng, 0, 0.05);
    p.lose_opening = 0.7;  // only a probe brings the news then
  });
}

void pause(StreamPlan& plan, Prng& prng) {
  const bool a_minute = prng.chance(0.2);
  plan.pause = a_minute ? 0.01 : real(prng, 0.05, 0.5);
  plan.pause_max = milliseconds(a_minute ? 60'000 : prng.between(1, 2000));
  both_ways(plan, [&](PathPlan& p) { p.delay = milliseconds(prng.between(1, 30)); });
}

void port_full(StreamPlan& plan, Prng& prng) {
  plan.port_full = real(prng, 0.05, 0.7);
  plan.poll_gap = microseconds(prng.between(0, 200));
  both_ways(plan, [&](PathPlan& p) { p.drop = real(prng, 0, 0.02); });
}

void all_weather(StreamPlan& plan, Prng& prng) {
  both_ways(plan, [&](PathPlan& p) {
    p.drop = real(prng, 0, 0.05);
    p.burst_enter = real(prng, 0, 0.003);
    p.burst_leave = real(prng, 0.1, 0.5);
    p.duplicate = real(prng, 0, 0.05);
    p.corrupt = real(prng, 0, 0.02);
    p.reorder = real(prng, 0, 0.2);
    p.reorder_span = milliseconds(prng.between(0, 10));
    p.delay = microseconds(prng.between(1, 50'000));
    p.jitter = microseconds(prng.between(0, 10'000));
    p.jitter_reorders = prng.chance(0.3);
    p.split = real(prng, 0, 0.1);
    p.merge = real(prng, 0, 0.1);
  });
  plan.poll_gap = microseconds(prng.below(500));
}

void hostile(StreamPlan& plan, Prng& prng) {
  all_weather(plan, prng);
  plan.connections = some(prng, 1, 3);
  plan.port_full = real(prng, 0, 0.1);
}

void attack(StreamPlan& plan, Prng& prng) {
  plan.attack_gap = microseconds(prng.between(50, 5000));
  both_ways(plan, [&](PathPlan& p) {
    p.drop = real(prng, 0, 0.02);
    p.delay = microseconds(prng.between(10, 10'000));
  });
}

/// The path gets narrower while octets flow.
void narrower(StreamPlan& plan, Prng& prng, RouterNews news) {
  for (uint32_t& mtu : plan.mtu) mtu = prng.chance(0.3) ? 9000 : 1500;
  const uint32_t later = some(prng, news == RouterNews::Nothing ? 600 : 296, 1400);
  both_users(plan, [&](ApplicationPlan& a) { a.octets = prng.between(50'000, 250'000); });
  both_ways(plan, [&](PathPlan& p) {
    p.delay = microseconds(prng.between(10, 10'000));
    p.later_mtu = later;
    p.mtu_at = microseconds(prng.below(static_cast<uint64_t>(p.delay.count()) / 100));
    p.news = news;
    p.drop = real(prng, 0, 0.02);
  });
}

void path_mtu(StreamPlan& plan, Prng& prng) {
  narrower(plan, prng, prng.chance(0.7) ? RouterNews::Mtu : RouterNews::NoMtu);
}

void black_hole(StreamPlan& plan, Prng& prng) {
  narrower(plan, prng, RouterNews::Nothing);
  both_ends(plan, [](tcp::Config& c) { c.mtu_probing = true; });
}

void forged_mtu(StreamPlan& plan, Prng& prng) {
  attack(plan, prng);
  plan.informed_forger = true;
  both_users(plan, [&](ApplicationPlan& a) { a.octets = prng.between(50'000, 250'000); });
}

void flood(StreamPlan& plan, Prng& prng) {
  attack(plan, prng);
  plan.flood = some(prng, 100, 2000);
  both_ends(plan, [&](tcp::Config& c) {
    c.syn_cookies = true;
    c.max_half_open = some(prng, 1, 16);
    c.max_half_open_per_listener = c.max_half_open;
    c.max_connections = 64;
  });
}

void plain_peer(StreamPlan& plan, Prng& prng) {
  plan.plain_peer = true;
  plan.connections = 1;
  PeerPlan& peer = plan.peer;
  peer.active = prng.chance(0.5);
  peer.mss = prng.chance(0.3) ? static_cast<uint16_t>(prng.between(216, 1460)) : 1460;
  peer.scale = prng.chance(0.7);
  peer.timestamps = prng.chance(0.7);
  peer.sack = prng.chance(0.7);
  peer.buffer = some(prng, 4'000, 200'000);
  peer.scale_shift = static_cast<uint8_t>(prng.below(10));  // the buffer is many times its unit
  peer.ack_every = some(prng, 1, 4);
  peer.ack_delay = milliseconds(prng.between(1, 200));
  peer.flight_limit = some(prng, 2'000, 64'000);
  peer.pace = microseconds(prng.between(10, 2000));
  plan.application[0].records = prng.chance(0.5);
  both_users(plan, [&](ApplicationPlan& a) { a.octets = prng.below(120'000); });
  both_ways(plan, [&](PathPlan& p) {
    p.delay = microseconds(prng.between(10, 20'000));
    p.drop = real(prng, 0, 0.03);
  });
}

void peer_rude(StreamPlan& plan, Prng& prng) {
  plain_peer(plan, prng);
  plan.peer.overlap = real(prng, 0.1, 0.8);
  plan.peer.duplicate = real(prng, 0, 0.3);
  plan.peer.hole = real(prng, 0, 0.3);
  plan.peer.urgent = real(prng, 0, 0.2);
  plan.peer.beyond = real(prng, 0, 0.2);
  both_ways(plan, [&](PathPlan& p) {
    p.reorder = real(prng, 0, 0.3);
    p.reorder_span = milliseconds(10);
    p.duplicate = real(prng, 0, 0.1);
  });
}

void peer_loss(StreamPlan& plan, Prng& prng) {
  plain_peer(plan, prng);
  both_ways(plan, [&](PathPlan& p) {
    p.drop = real(prng, 0.01, 0.2);
    p.reorder = real(prng, 0, 0.5);
    p.reorder_span = milliseconds(20);
    p.corrupt = real(prng, 0, 0.02);
  });
  both_users(plan, [&](ApplicationPlan& a) { a.octets = prng.below(60'000); });
}

void peer_renege(StreamPlan& plan, Prng& prng) {
  plain_peer(plan, prng);
  plan.peer.sack = true;
  plan.peer.renege = real(prng, 0.01, 0.2);
  both_ways(plan, [&](PathPlan& p) { p.drop = real(prng, 0.01, 0.08); });
}

void peer_shrinks(StreamPlan& plan, Prng& prng) {
  plain_peer(plan, prng);
  plan.peer.shrink = real(prng, 0.005, 0.1);
  plan.application[0].octets = prng.between(50'000, 200'000);
}

void peer_bare(StreamPlan& plan, Prng& prng) {
  plain_peer(plan, prng);
  plan.peer.scale = plan.peer.sack = false;
  plan.peer.timestamps = prng.chance(0.3);
  plan.peer.flight_limit = some(prng, 20'000, 200'000);  // up to the window, and no further
  // More room than the header can say, and a user that makes it step by step.
  plan.tcp[0].receive_window = 1u << 20;
  plan.application[0].ring = some(prng, 70'000, 500'000);
  plan.application[0].read_rate_octets = prng.chance(0.7) ? some(prng, 500, 20'000) : 0;
  plan.application[0].octets = prng.between(50'000, 200'000);
  plan.application[1].octets = prng.between(100'000, 300'000);
}

void peer_tiny(StreamPlan& plan, Prng& prng) {
  plain_peer(plan, prng);
  plan.peer.scale = prng.chance(0.3);
  plan.peer.scale_shift = static_cast<uint8_t>(prng.below(3));
  plan.peer.sack = prng.chance(0.5);
  plan.peer.buffer = some(prng, 300, 3'000);  // around a segment
  plan.peer.shrink = prng.chance(0.3) ? real(prng, 0, 0.02) : 0;
  both_users(plan, [&](ApplicationPlan& a) {
    a.octets = prng.between(5'000, 40'000);
    a.record_max = static_cast<uint32_t>(prng.between(100, 1448));
  });
}

/// Small messages to a peer whose window is mostly below a segment, and was larger once: nothing
/// gets lost, so that nobody waits for a timer.
void peer_small(StreamPlan& plan, Prng& prng) {
  plain_peer(plan, prng);
  plan.peer.buffer = some(prng, 700, 4'000);
  plan.peer.scale_shift = static_cast<uint8_t>(prng.below(3));
  plan.peer.shrink = prng.chance(0.3) ? real(prng, 0, 0.05) : 0;
  both_ways(plan, [](PathPlan& p) { p.drop = 0; });
  plan.application[0].records = false;
  both_users(plan, [&](ApplicationPlan& a) {
    a.octets = prng.between(2'000, 20'000);
    a.write_max = some(prng, 20, 1'000);
    a.write_gap = microseconds(prng.between(50, 100'000));
  });
}

void peer_stops(StreamPlan& plan, Prng& prng) {
  plain_peer(plan, prng);
  plan.application[0].octets = prng.between(100'000, 200'000);
  plan.peer.buffer = some(prng, 2'000, 40'000);
  plan.peer.scale_shift = static_cast<uint8_t>(prng.below(8));
  plan.application[1].stop_at = prng.below(80'000);
  plan.application[1].stop_for = seconds(prng.between(5, 90));
  plan.path[1].lose_opening = 0.7;
}

void peer_attack(StreamPlan& plan, Prng& prng) {
  plain_peer(plan, prng);
  plan.attack_gap = microseconds(prng.between(100, 5000));
}

constexpr std::array kStreamProfiles{
    StreamProfile{"tcp-clean", "several streams, nothing is lost", clean},
    StreamProfile{"tcp-hostile", "everything at once", hostile},
    StreamProfile{"tcp-loss", "0.1 to 10 % of the packets are lost", loss},
    StreamProfile{"tcp-peer-rude", "a plain peer that overlaps, repeats and leaves holes",
                  peer_rude},
    StreamProfile{"tcp-reorder", "up to half of the packets are held back", reorder},
    StreamProfile{"tcp-attack", "forged segments from off the path", attack},
    StreamProfile{"tcp-middlebox", "segments are cut and joined", middlebox},
    StreamProfile{"tcp-peer", "a plain peer, octets both ways", plain_peer},
    StreamProfile{"tcp-whole-records", "loss and reordering, and no record is ever cut",
                  whole_records},
    StreamProfile{"tcp-corrupt", "bits change, and the checksum tells", corrupt},
    StreamProfile{"tcp-burst-loss", "runs of packets are lost", burst_loss},
    StreamProfile{"tcp-peer-loss", "a plain peer behind a bad path", peer_loss},
    StreamProfile{"tcp-heavy-loss", "10 to 30 % of the packets are lost", heavy_loss},
    StreamProfile{"tcp-peer-shrinks", "a plain peer that takes its window back", peer_shrinks},
    StreamProfile{"tcp-small-window", "receive rings around a segment, slow readers", small_window},
    StreamProfile{"tcp-stop", "a reader stops for up to a minute", stop_a_minute},
    StreamProfile{"tcp-peer-renege", "a plain peer that forgets what it has SACKed", peer_renege},
    StreamProfile{"tcp-far", "up to 300 ms of round trip, with jitter", far},
    StreamProfile{"tcp-duplicate", "packets are copied", duplicate},
    StreamProfile{"tcp-jitter", "packets overtake each other", jitter},
    StreamProfile{"tcp-no-options", "without SACK, timestamps or scaling", no_options},
    StreamProfile{"tcp-peer-stops", "a plain peer stops reading for a minute", peer_stops},
    StreamProfile{"tcp-bottleneck", "a narrow link with a short queue", bottleneck},
    StreamProfile{"tcp-ecn", "congestion marks by chance", marks},
    StreamProfile{"tcp-dctcp", "DCTCP over a queue that marks", data_center},
    StreamProfile{"tcp-path-mtu", "the path gets narrower, and routers tell", path_mtu},
    StreamProfile{"tcp-black-hole", "the path gets narrower, and nobody tells", black_hole},
    StreamProfile{"tcp-forged-mtu", "somebody who sees the packets forges routers' messages",
                  forged_mtu},
    StreamProfile{"tcp-syn-flood", "spoofed SYNs beside two ends that want to talk", flood},
    StreamProfile{"tcp-pause", "a host sleeps", pause},
    StreamProfile{"tcp-port-full", "the port often has no room", port_full},
    StreamProfile{"tcp-peer-attack", "a plain peer, and forged segments", peer_attack},
    StreamProfile{"tcp-peer-bare", "a plain peer without scaling and SACK", peer_bare},
    StreamProfile{"tcp-peer-tiny", "a plain peer whose window is around a segment", peer_tiny},
    StreamProfile{"tcp-peer-small", "small messages, a plain peer with a small window", peer_small},
};

/// Which network: what the profiles chose stays as far as IPv6 allows it.
void choose_network(StreamPlan& plan, Prng& prng) {
  plan.network = prng.chance(0.5);
  plan.ipv6 = plan.flood == 0 && prng.chance(0.4);
  if (!plan.ipv6) return;
  constexpr uint32_t kLeast = 1280;  // RFC 8200 s.5
  for (uint32_t& mtu : plan.mtu) mtu = std::max(mtu, kLeast);
  both_ways(plan, [&](PathPlan& p) {
    if (p.later_mtu == 0) return;
    p.later_mtu = std::max(p.later_mtu, kLeast);
    if (p.news == RouterNews::NoMtu) p.news = RouterNews::Mtu;  // they always tell
  });
}

void choose_rest(StreamPlan& plan, Prng& prng) {
  plan.connections = prng.chance(0.3) ? 2 : 1;
  const base::Duration delay = microseconds(prng.between(5, 2000));
  both_ways(plan, [&](PathPlan& p) { p.delay = delay; });
  constexpr std::array<uint32_t, 5> kMtus{1500, 1500, 1492, 9000, 576};
  for (uint32_t& mtu : plan.mtu) mtu = kMtus[prng.below(kMtus.size())];
  const bool records = prng.chance(0.5);
  both_users(plan, [&](ApplicationPlan& a) {
    a.records = records;
    a.octets = prng.below(250'000);
    a.ring = prng.chance(0.5) ? 65'536 : some(prng, 8'000, 500'000);
    a.record_max = prng.chance(0.5) ? some(prng, 1, 2000) : 16'384;
    a.drop = prng.chance(0.2) ? real(prng, 0, 0.02) : 0;
    a.write_gap = prng.chance(0.2) ? microseconds(prng.between(1, 5000)) : microseconds(0);
  });
  // At most one end waits for the other's FIN.
  plan.application[prng.below(2)].close_after_peer = prng.chance(0.5);
  plan.poll_gap = prng.chance(0.3) ? microseconds(prng.below(100)) : microseconds(0);
  for (tcp::Config& c : plan.tcp) {
    constexpr std::array kControls{CongestionControl::Cubic, CongestionControl::Cubic,
                                   CongestionControl::NewReno, CongestionControl::Dctcp};
    constexpr std::array kEcns{Ecn::Off, Ecn::Accept, Ecn::Offer};
    c.congestion_control = kControls[prng.below(kControls.size())];
    c.ecn = kEcns[prng.below(kEcns.size())];
    c.hystart = prng.chance(0.7);
    c.frto = prng.chance(0.7);
    c.pacing = prng.chance(0.2);
    c.keep_alive = prng.chance(0.2);
    c.keep_alive_idle = milliseconds(prng.between(10, 5000));
    c.keep_alive_interval = seconds(20);
    c.keep_alive_count = 200;
    c.mtu_probe_from_base = prng.chance(0.2);
    c.mtu_probe_interval = seconds(prng.between(1, 600));
    c.sack = prng.chance(0.9);
    c.timestamps = prng.chance(0.8);
    c.window_scaling = prng.chance(0.9);
    c.pack_records = prng.chance(0.8);
    c.max_connections = 16;
    c.max_time_wait = 1024;  // what a device makes of so few, and quick to recount
    c.max_records = 8192;
    c.max_records_per_connection = prng.chance(0.2) ? 64 : 4096;
    c.max_saved_octets = 1u << 20;
    c.rto_min = milliseconds(prng.chance(0.5) ? 200 : 10);
    c.receive_window = prng.chance(0.5) ? 1u << 20 : some(prng, 10'000, 500'000);
    c.rto_max = seconds(60);
    // Whoever waits longer than these gives up for a good reason: bad weather is not one of them.
    c.user_timeout = seconds(3000);
    c.orphan_timeout = seconds(3000);
    c.connect_timeout = seconds(3000);
    c.syn_retries = 30;
    c.close_timeout = seconds(1500);
    c.time_wait = seconds(600);
  }
}

}  // namespace

std::span<const StreamProfile> stream_profiles() { return kStreamProfiles; }

StreamPlan make_stream_plan(const StreamProfile& profile, uint64_t seed) {
  // The profile's name is part of the seed: worlds of one seed in two profiles differ.
  uint64_t mixed = seed * 0x9e3779b97f4a7c15ull;
  for (const char* c = profile.name; *c != '\0'; ++c) {
    mixed = (mixed ^ uint8_t(*c)) * 0x100000001b3ull;
  }
  Prng prng(mixed);
  StreamPlan plan;
  plan.profile = profile.name;
  plan.seed = mixed;
  choose_rest(plan, prng);
  profile.apply(plan, prng);
  choose_network(plan, prng);
  return plan;
}

}  // namespace rnic::simulation
