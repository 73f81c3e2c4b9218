#include "tcp/path_mtu_discovery.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "base/log.hpp"

namespace rnic::tcp {

namespace {

// RFC 1191 s.7.1
constexpr std::array<uint32_t, 11> kPlateaus{65535, 32000, 17914, 8166, 4352, 2002,
                                             1492,  1006,  508,   296,  68};
constexpr uint32_t kLeastReassembled = 576;  // RFC 791: every host accepts packets of this size

uint32_t plateau_below(uint32_t length) {
  for (const uint32_t plateau : kPlateaus) {
    if (plateau < length) return plateau;
  }
  return 0;
}

}  // namespace

PathMtuDiscovery::Verdict PathMtuDiscovery::judge(const llp::IcmpError& error,
                                                  const IpAddress& peer, uint32_t packet,
                                                  bool outstanding, uint32_t& mtu) {
  mtu = error.mtu;
  // RFC 1191 s.5: the message of an old router has no MTU (IPv6 routers always give one).
  if (mtu == 0 && peer.is_v4()) mtu = plateau_below(error.quoted_length);
  // RFC 5927 s.7.1, RFC 8201 s.4: ignores an MTU below the minimum, one that is not below the
  // packet that was too big, and one that does not limit our packets.
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

[[gnu::noinline, gnu::cold]] void PathMtuDiscovery::set_state(PathSearchState next) {
  RNIC_CHECK(kPathSearchTransitions.allows(state_, next));
  state_ = next;
}

void PathMtuDiscovery::start_search(uint32_t base) {
  set_state(PathSearchState::Searching);
  limit_ = base;
}

bool PathMtuDiscovery::suspect_black_hole(uint32_t size, const Endpoint& peer, base::Now now) {
  uint32_t lower = base_mtu(peer.address);
  if (size <= lower) lower = peer.address.is_v4() ? kLeastReassembled : size;
  if (lower >= size) return false;
  base::log(base::LogLevel::Warning, "tcp", [&] {
    return "packets of " + std::to_string(size) + " octets towards " + to_string(peer) +
           " vanish: " + std::to_string(lower) +
           " from here on (RFC 4821); is the path's MTU smaller than the device's?";
  });
  if (at_rest()) set_state(PathSearchState::Searching);
  high_ = size - 1;  // this limit holds until rest(), when the search below it has ended
  limit_ = lower;
  failures_ = 0;
  next_at_ = now;
  return true;
}

uint32_t PathMtuDiscovery::next_size(uint32_t most) const {
  most = std::min(most, high_);
  if (most < limit_ + kSearchStep) return 0;
  // A new search tries the largest size first, and then bisects the rest.
  return high_ == UINT32_MAX ? most : limit_ + std::max(kSearchStep, (most - limit_ + 1) / 2);
}

void PathMtuDiscovery::rest(base::Now until) {
  set_state(PathSearchState::SearchComplete);
  high_ = UINT32_MAX;
  failures_ = 0;
  next_at_ = until;
}

void PathMtuDiscovery::probe_sent(uint32_t size, uint64_t begin) {
  set_state(PathSearchState::Probing);
  probed_ = size;
  probe_begin_ = begin;
  probe_end_ = tcb_.snd_nxt;
  prediction_.end();
}

void PathMtuDiscovery::probe_confirmed(uint32_t path_mtu, base::Now now) {
  failures_ = 0;
  if (probed_ < path_mtu) {
    set_state(PathSearchState::Searching);
    limit_ = probed_;
    next_at_ = now;
    return;
  }
  set_state(PathSearchState::Disabled);
  limit_ = 0;  // packets of the path MTU pass
  high_ = UINT32_MAX;
  unverified_ = 0;
  next_at_ = {};
}

void PathMtuDiscovery::probe_lost(base::Now next_at) {
  set_state(PathSearchState::Searching);
  next_at_ = next_at;
  if (++failures_ < kProbeFailures) return;
  failures_ = 0;
  high_ = probed_ - 1;
}

void PathMtuDiscovery::validate() const {
  RNIC_CHECK(failures_ < kProbeFailures);
  RNIC_CHECK(enabled() == (limit_ != 0));
  RNIC_CHECK(enabled() || next_at_ == base::Now{});
  RNIC_CHECK(!at_rest() || (high_ == UINT32_MAX && failures_ == 0));
  RNIC_CHECK(!probing() || probed_ != 0);
  RNIC_CHECK(!probing() || (probe_begin_ < probe_end_ && probe_end_ <= tcb_.snd_nxt));
}

}  // namespace rnic::tcp
