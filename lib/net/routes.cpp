#include "net/routes.hpp"

#include <algorithm>
#include <bit>

#include "base/check.hpp"
#include "net/addresses.hpp"

namespace rnic::net {

namespace {

// The number of leading bits that two addresses of one family have in common: at least 96 for IPv4
// in its mapped form.
uint32_t common_bits(const IpAddress& a, const IpAddress& b) {
  const uint64_t high = a.high() ^ b.high();
  if (high != 0) return static_cast<uint32_t>(std::countl_zero(high));
  return 64 + static_cast<uint32_t>(std::countl_zero(a.low() ^ b.low()));
}

}  // namespace

bool contains(const Prefix& prefix, const IpAddress& address) {
  const bool v4 = prefix.address.is_v4();
  return v4 == address.is_v4() &&
         common_bits(prefix.address, address) >= prefix.length + (v4 ? 96u : 0u);
}

Routes::Routes(const Config& config, const port::MacAddress& mac) {
  RNIC_CHECK(config.addresses.size() <= Config::kMaxAddresses &&
             config.routes.size() <= Config::kMaxRoutes);
  add_local({config.address, config.prefix_length});
  for (const Prefix& prefix : config.addresses) add_local(prefix);
  const auto is_link_local = [](const Local6& l) { return l.prefix.address.is_link_local(); };
  if (has_ipv6() && std::none_of(locals6_.begin(), locals6_.end(), is_link_local)) {
    add_local({link_local_address(mac), 64});
  }
  if (!config.gateway.is_unspecified()) add_way({IpAddress::v4(0), 0}, config.gateway);
  if (!config.gateway6.is_unspecified()) add_way({IpAddress(0, 0), 0}, config.gateway6);
  for (const StaticRoute& route : config.routes) add_way(route.to, route.gateway);
  std::stable_sort(ways_.begin(), ways_.end(),
                   [](const Way& a, const Way& b) { return a.to.length > b.to.length; });
}

void Routes::add_local(const Prefix& prefix) {
  if (prefix.address.is_unspecified()) return;
  RNIC_CHECK(prefix.length <= (prefix.address.is_v4() ? 32 : 128));
  if (prefix.address.is_v4()) {
    const uint32_t mask = prefix.length == 0 ? 0 : ~uint32_t{0} << (32 - prefix.length);
    locals4_.push_back({prefix.address.as_v4(), mask});
  } else {
    locals6_.push_back({prefix});
  }
  add_way(prefix, {});
}

void Routes::add_way(const Prefix& to, const IpAddress& gateway) { ways_.push_back({to, gateway}); }

bool Routes::is_ours(const IpAddress& address) const {
  if (address.is_v4()) return is_ours(address.as_v4());
  for (const Local6& local : locals6_) {
    if (local.prefix.address == address) return local.usable;
  }
  return false;
}

std::vector<IpAddress> Routes::addresses6() const {
  std::vector<IpAddress> all;
  for (const Local6& local : locals6_) all.push_back(local.prefix.address);
  return all;
}

void Routes::set_usable(const IpAddress& address, bool usable) {
  for (Local6& local : locals6_) {
    if (local.prefix.address == address) local.usable = usable;
  }
}

bool Routes::is_our_group(const IpAddress& group) const {
  if (!has_ipv6()) return false;
  if (group == kAllNodes) return true;
  for (const Local6& local : locals6_) {
    if (solicited_node(local.prefix.address) == group) return true;
  }
  return false;
}

bool Routes::is_other_host(const IpAddress& address) const {
  if (address.is_v4()) return is_other_host(address.as_v4());
  const bool loopback = address.high() == 0 && address.low() == 1;
  return address.is_unicast() && !loopback && !is_ours(address);
}

const Routes::Way* Routes::find(const IpAddress& destination) const {
  for (const Way& way : ways_) {
    if (contains(way.to, destination)) return &way;
  }
  return nullptr;
}

bool Routes::is_neighbour(const IpAddress& address) const {
  if (!is_other_host(address)) return false;
  for (const Way& way : ways_) {
    const bool on_link = way.gateway.is_unspecified() && contains(way.to, address);
    if (on_link || way.gateway == address) return true;
  }
  return false;
}

std::optional<IpAddress> Routes::next_hop(const IpAddress& destination) const {
  if (!is_other_host(destination)) return std::nullopt;
  const Way* way = find(destination);
  if (way == nullptr) return std::nullopt;
  return way->gateway.is_unspecified() ? destination : way->gateway;
}

IpAddress Routes::source_for(const IpAddress& destination) const {
  const std::optional<IpAddress> hop = next_hop(destination);
  if (!hop) return {};
  if (destination.is_v4()) {
    for (const Local4& local : locals4_) {
      if (((hop->as_v4() ^ local.address) & local.mask) == 0) {
        return IpAddress::v4(local.address);
      }
    }
    return locals4_.empty() ? IpAddress{} : IpAddress::v4(locals4_[0].address);
  }
  const Prefix* best = nullptr;
  uint32_t best_score = 0;
  for (const auto& [local, usable] : locals6_) {
    if (!usable) continue;
    // RFC 6724 s.5: rule 2 (scope) before rule 5.5 (next hop's link) before rule 8 (prefix).
    const bool scope = local.address.is_link_local() == destination.is_link_local();
    const uint32_t score = (scope ? 1024u : 0u) + (contains(local, *hop) ? 512u : 0u) +
                           common_bits(local.address, destination);
    if (best == nullptr || score > best_score) {
      best = &local;
      best_score = score;
    }
  }
  return best == nullptr ? IpAddress{} : best->address;
}

}  // namespace rnic::net
