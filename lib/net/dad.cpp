#include "net/dad.hpp"

#include <algorithm>
#include <string>

#include "base/check.hpp"
#include "base/log.hpp"

namespace rnic::net {

Dad::Dad(const Config& config, Routes& routes, Counters& counters, base::Now now)
    : routes_(routes), counters_(counters), interval_(config.neighbour_retry) {
  if (config.dad_transmits == 0) return;
  // RFC 4862 s.5.4.2: the first solicitation waits for a random time, since hosts that are switched
  // on at the same time would otherwise ask at the same time.
  base::Prng random(config.seed ^ 0x6461640000000000ull);
  constexpr base::Duration kMostDelay = std::chrono::seconds(1);
  const auto delay = base::Duration(random.below(static_cast<uint64_t>(kMostDelay.count())));
  for (const IpAddress& address : routes.addresses6()) {
    tentative_.push_back({address, config.dad_transmits, now + delay});
    routes.set_usable(address, false);
  }
}

const Dad::Tentative* Dad::find(const IpAddress& address) const {
  const auto it = std::find_if(tentative_.begin(), tentative_.end(),
                               [&](const Tentative& t) { return t.address == address; });
  return it == tentative_.end() ? nullptr : &*it;
}

// RFC 4862 s.5.4.5: a duplicate address is not used.
void Dad::conflict(const IpAddress& address) {
  ++counters_.duplicate_addresses;
  base::log(base::LogLevel::Error, "net", [&] {
    return "somebody on the link has " + to_string(address) +
           " already: it is not used; configure another address";
  });
  std::erase_if(tentative_, [&](const Tentative& t) { return t.address == address; });
}

std::optional<IpAddress> Dad::due(base::Now now) {
  for (auto it = tentative_.begin(); it != tentative_.end();) {
    if (it->deadline > now) {
      ++it;
    } else if (it->left == 0) {
      routes_.set_usable(it->address, true);
      it = tentative_.erase(it);
    } else {
      --it->left;
      it->deadline = now + interval_;
      return it->address;
    }
  }
  return std::nullopt;
}

base::Now Dad::next_deadline() const {
  base::Now next = base::kNever;
  for (const Tentative& t : tentative_) next = base::earlier(next, t.deadline);
  return next;
}

void Dad::validate() const {
  for (const Tentative& t : tentative_) RNIC_CHECK(!routes_.is_ours(t.address));
}

}  // namespace rnic::net
