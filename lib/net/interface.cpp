#include <algorithm>

#include "net/arp.hpp"
#include "net/dad.hpp"
#include "net/fragments.hpp"
#include "net/icmp.hpp"
#include "net/ipv4_input.hpp"
#include "net/ipv6_input.hpp"
#include "net/known_pair.hpp"
#include "net/nd.hpp"
#include "net/neighbours.hpp"
#include "net/net.hpp"
#include "net/output.hpp"
#include "net/path_mtu.hpp"
#include "net/routes.hpp"
#include "net/tx_queue.hpp"
#include "wire/ether.hpp"
#include "wire/icmp.hpp"

namespace rnic::net {

class alignas(64) Interface::Impl final : public NeighbourUser {
 public:
  Impl(const Config& config, port::Port& port, base::Now now, Reassembler* reassembler)
      : config_(for_queue(config, port.info().spread)),
        port_(port),
        mac_(port.info().mac),
        routes_(config, mac_),
        tx_(port, counters_),
        neighbours_(config, *this, counters_, now),
        output_(config, port, routes_, neighbours_, tx_, counters_),
        arp_(mac_, routes_, neighbours_, output_, counters_),
        dad_(config_, routes_, counters_, now),
        nd_(mac_, routes_, dad_, neighbours_, output_, counters_, now),
        icmp_(config_, routes_, output_, nd_, counters_, now),
        fragments_(config, reassembler, counters_),
        ipv4_(routes_, fragments_, icmp_, counters_, trusted()),
        ipv6_(routes_, fragments_, icmp_, counters_, trusted()),
        path_mtu_(config.path_mtu_lifetime),
        pair_(mac_, config.vlan, trusted()) {
    config_.mtu = std::min(config.mtu, port.info().mtu);
  }

  /// All queues of a device see the fragments of a TCP segment, and all have the device's
  /// addresses. Only queue 0 reports datagrams that never become whole, and looks for duplicates of
  /// the addresses.
  static Config for_queue(Config config, const port::ReceiveSpread& spread) {
    if (spread.queue != 0) config.icmp_errors_per_second = config.dad_transmits = 0;
    return config;
  }

  std::optional<TcpIn> input(const port::Packet& frame, base::Now now) {
    TcpIn in = pair_.nothing();  // kept in registers when the calls are inlined
    if (pair_.open(frame, in, counters_)) [[likely]] {
      ++counters_.frames_in;
      return in;
    }
    if (!input_other(frame, in, now)) return std::nullopt;
    return in;
  }
  bool input_other(const port::Packet& frame, TcpIn& in, base::Now now) {
    const std::optional<IpIn> other = input_any(frame, now);
    if (!other) return false;
    neighbours_.on_segment(other->source, wire::load_mac(frame.data + wire::kEtherSourceAt), now);
    pair_.learn(frame, *other);
    in.ecn = other->ecn;
    in.l4_checksum_good = other->l4_checksum_good;
    in.payload = other->payload;
    return true;
  }
  std::optional<IpIn> input_any(const port::Packet& frame, base::Now now);
  void on_timers(base::Now now);

  void solicit(const IpAddress& target, const port::MacAddress* known, base::Now now) override {
    if (target.is_v4()) {
      arp_.solicit(target.as_v4(), known, now);
    } else {
      nd_.solicit(target, known, now);
    }
  }
  void unpark(port::Packet& frame, const port::MacAddress& to, base::Now now) override {
    wire::store_mac(frame.data + wire::kEtherDestinationAt, to);
    if (!tx_.push_late(frame, now)) drop_parked(frame);
  }
  void drop_parked(port::Packet& frame) override {
    ++counters_.neighbour_unresolved;
    port_.free({&frame, 1});
  }

  void validate() const {
    tx_.validate();
    neighbours_.validate();
    dad_.validate();
    fragments_.validate();
    path_mtu_.validate();
  }

  [[nodiscard]] bool trusted() const {
    return port_.info().checksum == port::ChecksumMode::Trusted;
  }

  Config config_;
  port::Port& port_;
  Counters counters_;
  port::MacAddress mac_;
  Routes routes_;
  TxQueue tx_;
  Neighbours neighbours_;  // declared after tx_ and port_, so its parked frames go back first
  Output output_;
  Arp arp_;
  Dad dad_;
  Nd nd_;
  Icmp icmp_;
  Fragments fragments_;
  Ipv4Input ipv4_;
  Ipv6Input ipv6_;
  PathMtu path_mtu_;
  KnownPair pair_;
};

std::optional<IpIn> Interface::Impl::input_any(const port::Packet& frame, base::Now now) {
  ++counters_.frames_in;
  if (frame.length < wire::kEtherHeader) {
    ++counters_.short_frames;
    return std::nullopt;
  }
  const port::MacAddress to = wire::load_mac(frame.data + wire::kEtherDestinationAt);
  const auto opened = output_.link().open(frame.view(), counters_);
  if (!opened) return std::nullopt;
  const uint16_t type = opened->type;
  const bool ours = to == mac_;
  if (type == wire::kEtherTypeIpv4 && ours) [[likely]] {
    return ipv4_.input(frame, opened->packet, now);
  }
  // RFC 1122 s.3.3.6: an IP packet to one host is not accepted from a link layer broadcast. Link
  // layer groups are used by IPv6 only (RFC 2464 s.7).
  const bool to_group = to[0] == 0x33 && to[1] == 0x33 && type == wire::kEtherTypeIpv6;
  if (!ours && !to_group && !(to == wire::kMacBroadcast && type == wire::kEtherTypeArp)) {
    ++counters_.not_ours;
    return std::nullopt;
  }
  // A packet that we sent to a group may come back from a hub and must not be taken for another
  // host's (RFC 4862 s.5.4.3).
  if (to_group && wire::load_mac(frame.data + wire::kEtherSourceAt) == mac_) {
    ++counters_.not_ours;
    return std::nullopt;
  }
  if (type == wire::kEtherTypeIpv6 && routes_.has_ipv6()) {
    return ipv6_.input(frame, opened->packet, to_group, now);
  }
  if (type == wire::kEtherTypeArp) {
    arp_.input(opened->packet, now);
  } else {
    ++counters_.unknown_ethertype;
  }
  return std::nullopt;
}

void Interface::Impl::on_timers(base::Now now) {
  neighbours_.on_timers(now);
  while (const std::optional<IpAddress> tentative = dad_.due(now)) nd_.probe(*tentative, now);
  ExpiredDatagram expired;
  while (fragments_.expire_one(now, expired)) {
    if (expired.quote.empty()) continue;
    const uint8_t type =
        expired.source.is_v4() ? wire::kIcmpTimeExceeded : wire::kIcmpv6TimeExceeded;
    icmp_.report({type, wire::kIcmpReassemblyTime, 0}, expired.quote, expired.destination,
                 expired.source, now);
  }
}

Interface::Interface(const Config& config, port::Port& port, base::Now now,
                     Reassembler* reassembler)
    : impl_(std::make_unique<Impl>(config, port, now, reassembler)) {}
Interface::~Interface() = default;

void Interface::set_error_user(IcmpErrorUser* user) { impl_->icmp_.set_error_user(user); }
std::optional<TcpIn> Interface::input(const port::Packet& frame, base::Now now) {
  return impl_->input(frame, now);
}
bool Interface::begin(const IpAddress& source, const IpAddress& destination, TxFrame& frame,
                      base::Now now) {
  return impl_->output_.begin(source, destination, frame, now);
}
void Interface::send(TxFrame& frame, uint8_t protocol, uint32_t l4_length, base::Now now) {
  impl_->output_.send(frame, protocol, l4_length, now);
}
bool Interface::begin_run(const IpAddress& source, const IpAddress& destination, uint32_t most,
                          TxRun& run, base::Now now) {
  return impl_->output_.begin_run(source, destination, most, run, now);
}
void Interface::send_run(TxRun& run, uint8_t protocol, std::span<const uint32_t> l4_lengths,
                         base::Now now) {
  impl_->output_.send_run(run, protocol, l4_lengths, now);
}
void Interface::cancel(TxFrame& frame) {
  impl_->tx_.cancel(frame.packet);
  frame.l4 = nullptr;
}
bool Interface::flush(base::Now now) { return impl_->tx_.flush(now); }
void Interface::hand_over(base::Now now) {
  if (impl_->tx_.unsent() != 0) impl_->tx_.hand_over(now);
}
uint32_t Interface::unsent() const { return impl_->tx_.unsent(); }
void Interface::on_timers(base::Now now) { impl_->on_timers(now); }
base::Now Interface::next_deadline() const {
  const base::Now next =
      base::earlier(impl_->neighbours_.next_deadline(), impl_->fragments_.next_deadline());
  return base::earlier(next, impl_->dad_.next_deadline());
}
port::Port& Interface::port() { return impl_->port_; }
const Counters& Interface::counters() const { return impl_->counters_; }
bool Interface::has_route(IpAddress destination) const {
  return impl_->routes_.next_hop(destination).has_value();
}
IpAddress Interface::source_for(IpAddress destination) const {
  return impl_->routes_.source_for(destination);
}
bool Interface::is_ours(IpAddress address) const { return impl_->routes_.is_ours(address); }
uint32_t Interface::path_mtu(IpAddress destination, base::Now now) const {
  if (!impl_->output_.knows_hop(destination) && !has_route(destination)) return 0;
  return std::min(impl_->config_.mtu, impl_->path_mtu_.find(destination, now));
}
void Interface::doubt_path(IpAddress destination, base::Now now) {
  const auto hop = impl_->routes_.next_hop(destination);
  if (hop) impl_->neighbours_.on_silence(*hop, now);
}
uint32_t Interface::link_mtu(IpAddress destination) const {
  return has_route(destination) ? impl_->config_.mtu : 0;
}
void Interface::reduce_path_mtu(IpAddress destination, uint32_t mtu, base::Now now) {
  if (mtu < impl_->config_.mtu) impl_->path_mtu_.reduce(destination, mtu, now);
}

void Interface::validate() const { impl_->validate(); }

}  // namespace rnic::net
