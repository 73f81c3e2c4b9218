#include "tcp/path_mtu_discovery.hpp"

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

uint32_t plateau_below(uint32_t length) {
  for (const uint32_t plateau : kPlateaus) {
    if (plateau < length) return plateau;
  }
  return 0;
}

}  // namespace

PathMtuDiscovery::Verdict PathMtuDiscovery::judge(const IcmpError& error, const IpAddress& peer,
                                                  uint32_t packet, bool outstanding,
                                                  uint32_t& mtu) {
  mtu = error.mtu;
  // RFC 1191 s.5: a router that does not say. (IPv6 routers always do.)
  if (mtu == 0 && peer.is_v4()) mtu = plateau_below(error.quoted_length);
  // RFC 5927 s.7.1, RFC 8201 s.4: below the least there is, not below the packet that was too big,
  // or nothing that concerns what we send.
  if (mtu < least_mtu(peer) || mtu >= error.quoted_length || mtu >= packet) {
    return Verdict::Ignored;
  }
  if (outstanding) return Verdict::Believed;
  unverified_ = mtu;
  unverified_una_ = tcb_.snd_una;
  return Verdict::Unverified;
}

std::optional<uint32_t> PathMtuDiscovery::take_unverified(uint32_t packet) {
  const uint32_t mtu = unverified_;
  unverified_ = 0;
  if (mtu == 0 || tcb_.snd_una != unverified_una_ || mtu >= packet) return std::nullopt;
  return mtu;
}

void PathMtuDiscovery::start_search(uint32_t base) {
  limit_ = base;
  searching_ = true;
}

void PathMtuDiscovery::black_hole(uint32_t size, uint32_t lower, base::Now now) {
  high_ = size - 1;  // until a search has ended below it: see rest()
  limit_ = lower;
  searching_ = true;
  failures_ = 0;
  next_at_ = now;
}

uint32_t PathMtuDiscovery::next_size(uint32_t most) const {
  most = std::min(most, high_);
  if (most < limit_ + kSearchStep) return 0;
  // Once a while the whole path is tried at once; then the middle of what is left.
  return high_ == UINT32_MAX ? most : limit_ + std::max(kSearchStep, (most - limit_ + 1) / 2);
}

void PathMtuDiscovery::rest(base::Now until) {
  high_ = UINT32_MAX;
  failures_ = 0;
  next_at_ = until;
}

void PathMtuDiscovery::probe_sent(uint32_t size, uint64_t begin) {
  probed_ = size;
  probe_begin_ = begin;
  probe_end_ = tcb_.snd_nxt;
  prediction_.end();
}

void PathMtuDiscovery::probe_confirmed(uint32_t path_mtu, base::Now now) {
  limit_ = probed_;
  probe_end_ = 0;
  failures_ = 0;
  next_at_ = now;
  if (limit_ < path_mtu) return;
  limit_ = 0;  // all of it passes
  high_ = UINT32_MAX;
  probed_ = unverified_ = 0;
  next_at_ = {};
  probe_begin_ = unverified_una_ = 0;
  searching_ = false;
}

void PathMtuDiscovery::probe_lost(base::Now next_at) {
  probe_end_ = 0;
  next_at_ = next_at;
  if (++failures_ < kProbeFailures) return;
  failures_ = 0;
  high_ = probed_ - 1;
}

void PathMtuDiscovery::validate() const {
  RNIC_CHECK(failures_ < kProbeFailures);
  RNIC_CHECK(!probing() || (searching_ && probed_ != 0));
  RNIC_CHECK(!probing() || (probe_begin_ < probe_end_ && probe_end_ <= tcb_.snd_nxt));
  RNIC_CHECK(searching_ || limit_ == 0);
}

void Engine::packet_too_big(Connection& c, const IcmpError& error, bool outstanding,
                            base::Now now) {
  using Verdict = PathMtuDiscovery::Verdict;
  uint32_t mtu = 0;
  switch (c.path.judge(error, c.remote_end.address, packet_octets(c), outstanding, mtu)) {
    case Verdict::Ignored: ++counters_.icmp_ignored; break;
    case Verdict::Unverified: ++counters_.icmp_unverified; break;
    case Verdict::Believed: lower_path_mtu(c, mtu, now); break;
  }
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
  c.path.lowered();
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
  const uint32_t base = PathMtuDiscovery::base_mtu(c.remote_end.address);
  if (egress_.path_mtu(c.remote_end.address) <= base) return;
  c.path.start_search(base);
  update_emss(c, false);
}

void Engine::suspect_black_hole(Connection& c, base::Now now) {
  // RFC 4821 s.7.7, RFC 2923: full segments vanish and nobody says why.
  if (c.path.probing() && c.tcb.snd_una <= c.path.probe_begin()) probe_failed(c, now);
  if (!config_.mtu_probing || c.rto.backoff() < kBlackHoleTimeouts || c.board.empty()) return;
  const Record& last = c.board.at(c.board.segment_end(c.board.first()) - 1);
  const uint64_t octets = packet_octets(c) - c.effective_mss + last.end() - c.board.front().offset;
  // The packet that vanishes, which may be smaller than what a full one would be.
  const auto now_octets = static_cast<uint32_t>(std::min<uint64_t>(octets, packet_octets(c)));
  uint32_t lower = PathMtuDiscovery::base_mtu(c.remote_end.address);
  if (now_octets <= lower) lower = c.remote_end.address.is_v4() ? kLeastReassembled : now_octets;
  if (lower >= now_octets) return;
  ++counters_.black_holes;
  base::log(base::LogLevel::Warning, "tcp", [&] {
    return "packets of " + std::to_string(now_octets) + " octets towards " +
           to_string(c.remote_end) + " vanish: " + std::to_string(lower) +
           " from here on (RFC 4821); is the path's MTU smaller than the device's?";
  });
  c.path.black_hole(now_octets, lower, now);
  update_emss(c, true);
}

uint32_t Engine::probe_due(Connection& c, base::Now now) {
  if (!c.path.may_probe(now) || !c.recovery.open() || c.board.lost_octets() != 0) return 0;
  const uint32_t size = c.path.next_size(std::min(egress_.path_mtu(c.remote_end.address),
                                                  uint32_t{c.smss_peer} + ip_and_tcp_header(c)));
  if (size == 0) {
    c.path.rest(now + config_.mtu_probe_interval);
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
    c.path.probe_sent(packet_octets(c) - emss + static_cast<uint32_t>(c.tcb.snd_nxt - begin_at),
                      begin_at);
  }
  return c.doomed ? Sent::Nothing : sent;
}

void Engine::probe_acked(Connection& c, base::Now now) {
  if (!c.path.probe_arrived()) return;
  ++counters_.mtu_probes_confirmed;
  c.path.probe_confirmed(egress_.path_mtu(c.remote_end.address), now);
  update_emss(c, true);
  make_ready(c);
}

void Engine::probe_failed(Connection& c, base::Now now) {
  ++counters_.mtu_probes_lost;
  c.path.probe_lost(now + c.rto.srtt());
}

bool Engine::lost_beside_probe(Connection& c, base::Now now) {
  // RFC 4821 s.7.3: the loss of a probe alone says nothing about congestion.
  const Record& r = c.board.at(c.board.find(c.path.probe_begin()));
  if (!r.is(record_flag::kLost)) return true;
  const bool alone = c.board.lost_octets() - c.board.retransmitted_octets() == c.board.live(r);
  probe_failed(c, now);
  make_ready(c);
  return !alone;
}

}  // namespace rnic::tcp
