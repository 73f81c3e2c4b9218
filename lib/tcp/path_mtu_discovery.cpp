#include <algorithm>
#include <array>
#include <string>

#include "base/log.hpp"
#include "tcp/engine.hpp"

namespace rnic::tcp {

namespace {

// RFC 1191 s.7.1
constexpr std::array<uint32_t, 11> kPlateaus{65535, 32000, 17914, 8166, 4352, 2002,
                                             1492,  1006,  508,   296,  68};
constexpr uint32_t kBlackHoleTimeouts = 3;  // of one segment, without progress
constexpr uint32_t kProbeFailures = 2;      // of one size; the first may be chance
constexpr uint32_t kSearchStep = 32;        // a search ends when less than this is left

uint32_t least_mtu(const IpAddress& address) { return address.is_v4() ? 68 : 1280; }
/// RFC 4821 s.7.2: small enough for nearly every path.
uint32_t base_mtu(const IpAddress& address) { return address.is_v4() ? 1024 : 1280; }

uint32_t plateau_below(uint32_t length) {
  for (const uint32_t plateau : kPlateaus) {
    if (plateau < length) return plateau;
  }
  return 0;
}

}  // namespace

void Engine::packet_too_big(Connection& c, const IcmpError& error, bool outstanding,
                            base::Now now) {
  uint32_t mtu = error.mtu;
  // RFC 1191 s.5: a router that does not say. (IPv6 routers always do.)
  if (mtu == 0 && c.remote_end.address.is_v4()) mtu = plateau_below(error.quoted_length);
  // RFC 5927 s.7.1, RFC 8201 s.4: below the least there is, not below the packet that was too big,
  // or nothing that concerns what we send.
  if (mtu < least_mtu(c.remote_end.address) || mtu >= error.quoted_length ||
      mtu >= packet_octets(c)) {
    ++counters_.icmp_ignored;
    return;
  }
  if (!outstanding) {  // RFC 5927 s.7.2: believed when a segment times out, too
    ++counters_.icmp_unverified;
    c.path.pending_mtu = mtu;
    c.path.pending_una = c.tcb.snd_una;
    return;
  }
  lower_path_mtu(c, mtu, now);
}

void Engine::take_pending_mtu(Connection& c, base::Now now) {
  const uint32_t mtu = c.path.pending_mtu;
  c.path.pending_mtu = 0;
  if (c.tcb.snd_una != c.path.pending_una || mtu >= packet_octets(c)) return;
  lower_path_mtu(c, mtu, now);
}

void Engine::lower_path_mtu(Connection& c, uint32_t mtu, base::Now now) {
  ++counters_.path_mtu_reductions;
  mtu = std::max(mtu, least_link_mtu(c.remote_end.address));  // EMSS goes no lower
  egress_.reduce_path_mtu(c.remote_end.address, mtu, now);
  const uint32_t old = c.effective_mss;
  update_emss(c, true);
  if (c.effective_mss < old) send_again_smaller(c);
}

void Engine::send_again_smaller(Connection& c) {
  c.prediction.end();
  // RFC 1191 s.6.4: at once, and no sign of congestion: the window stays. Segments that were small
  // enough are on their way.
  for (uint64_t n = c.board.first(); n < c.board.past_last();) {
    if (c.board.at(n).offset >= c.tcb.snd_nxt) break;
    const uint64_t next = c.board.segment_end(n);
    const uint64_t octets = c.board.at(next - 1).end() - c.board.at(n).offset;
    for (; n < next; ++n) {
      if (octets > c.effective_mss && !c.board.at(n).is(record_flag::kSacked)) c.board.lose(n);
    }
  }
  if (c.board.owes_retransmission()) make_ready(c);
}

void Engine::start_path_search(Connection& c) {
  if (!config_.mtu_probing || !config_.mtu_probe_from_base) return;
  const uint32_t base = base_mtu(c.remote_end.address);
  if (egress_.path_mtu(c.remote_end.address) <= base) return;
  c.path.limit = base;
  c.path.active = true;
  update_emss(c, false);
}

void Engine::suspect_black_hole(Connection& c, base::Now now) {
  // RFC 4821 s.7.7, RFC 2923: full segments vanish and nobody says why.
  PathSearch& p = c.path;
  if (p.probe_end != 0 && c.tcb.snd_una <= p.probe_begin) probe_failed(c, now);
  if (!config_.mtu_probing || c.rto.backoff() < kBlackHoleTimeouts || c.board.empty()) return;
  const Record& last = c.board.at(c.board.segment_end(c.board.first()) - 1);
  const uint64_t octets = packet_octets(c) - c.effective_mss + last.end() - c.board.front().offset;
  // The packet that vanishes, which may be smaller than what a full one would be.
  const auto now_octets = static_cast<uint32_t>(std::min<uint64_t>(octets, packet_octets(c)));
  uint32_t lower = base_mtu(c.remote_end.address);
  if (now_octets <= lower) lower = c.remote_end.address.is_v4() ? kLeastReassembled : now_octets;
  if (lower >= now_octets) return;
  ++counters_.black_holes;
  base::log(base::LogLevel::Warning, "tcp", [&] {
    return "packets of " + std::to_string(now_octets) + " octets towards " +
           to_string(c.remote_end) + " vanish: " + std::to_string(lower) +
           " from here on (RFC 4821); is the path's MTU smaller than the device's?";
  });
  p.high = now_octets - 1;  // until a search has ended below it: see probe_due()
  p.limit = lower;
  p.active = true;
  p.failures = 0;
  p.next_at = now;
  update_emss(c, true);
}

uint32_t Engine::probe_size(const Connection& c) const {
  const PathSearch& p = c.path;
  const uint32_t most = std::min({egress_.path_mtu(c.remote_end.address), p.high,
                                  uint32_t{c.smss_peer} + ip_and_tcp_header(c)});
  if (most < p.limit + kSearchStep) return 0;
  // Once a while the whole path is tried at once; then the middle of what is left.
  return p.high == UINT32_MAX ? most : p.limit + std::max(kSearchStep, (most - p.limit + 1) / 2);
}

uint32_t Engine::probe_due(Connection& c, base::Now now) const {
  PathSearch& p = c.path;
  if (p.probe_end != 0 || now < p.next_at || !c.recovery.open() || c.board.lost_octets() != 0) {
    return 0;
  }
  const uint32_t size = probe_size(c);
  if (size == 0) {  // the search is over; the path may change (RFC 8899 s.5.1.1, PMTU_RAISE_TIMER)
    p.high = UINT32_MAX;
    p.failures = 0;
    p.next_at = now + config_.mtu_probe_interval;
    return 0;
  }
  // Segments behind it tell of its loss.
  const uint32_t larger = c.effective_mss + size - packet_octets(c);
  const uint32_t need = larger + 3 * c.effective_mss;
  return c.cc.cwnd() >= need && c.user->pending() >= need && c.tcb.usable_window() >= larger
             ? larger
             : 0;
}

Engine::Sent Engine::send_mtu_probe(Connection& c, uint32_t larger, base::Now now) {
  if (c.board.pipe() + larger > c.cc.cwnd()) {  // hold back until there is room for it
    c.cwnd_full_to = c.tcb.snd_nxt;
    return Sent::Nothing;
  }
  PathSearch& p = c.path;
  const uint32_t emss = c.effective_mss;
  // TUF draft s.5.1: the larger EMSS is good for one record.
  const uint64_t begin_at = c.tcb.snd_nxt;
  c.effective_mss = larger;
  c.user->emss_changed(larger);
  const Sent sent = c.doomed ? Sent::Nothing : send_pulled(c, now, true);
  c.effective_mss = emss;
  if (c.doomed) return Sent::Nothing;
  c.user->emss_changed(emss);
  if (sent == Sent::Yes && c.tcb.snd_nxt - begin_at > emss) {
    ++counters_.mtu_probes;
    // The record may have been smaller: only what was sent is proven.
    p.probed = packet_octets(c) - emss + static_cast<uint32_t>(c.tcb.snd_nxt - begin_at);
    p.probe_begin = begin_at;
    p.probe_end = c.tcb.snd_nxt;
    c.prediction.end();
  }
  return c.doomed ? Sent::Nothing : sent;
}

void Engine::probe_acked(Connection& c, base::Now now) {
  PathSearch& p = c.path;
  if (c.tcb.snd_una < p.probe_end) return;
  ++counters_.mtu_probes_confirmed;
  p.probe_end = 0;
  p.failures = 0;
  p.limit = p.probed;
  p.next_at = now;
  if (p.limit >= egress_.path_mtu(c.remote_end.address)) p = PathSearch{};  // all of it passes
  update_emss(c, true);
  make_ready(c);
}

void Engine::probe_failed(Connection& c, base::Now now) {
  PathSearch& p = c.path;
  ++counters_.mtu_probes_lost;
  p.probe_end = 0;
  p.next_at = now + c.rto.srtt();
  if (++p.failures < kProbeFailures) return;
  p.failures = 0;
  p.high = p.probed - 1;
}

bool Engine::lost_beside_probe(Connection& c, base::Now now) {
  // RFC 4821 s.7.3: the loss of a probe alone says nothing about congestion.
  const Record& r = c.board.at(c.board.find(c.path.probe_begin));
  if (!r.is(record_flag::kLost)) return true;
  const bool alone = c.board.lost_octets() - c.board.retransmitted_octets() == c.board.live(r);
  probe_failed(c, now);
  make_ready(c);
  return !alone;
}

}  // namespace rnic::tcp
