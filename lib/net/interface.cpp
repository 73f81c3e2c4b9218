#include <algorithm>

#include "base/check.hpp"
#include "net/arp_table.hpp"
#include "net/icmp.hpp"
#include "net/ipv4_input.hpp"
#include "net/ipv4_output.hpp"
#include "net/net.hpp"
#include "net/path_mtu.hpp"
#include "net/rate_limit.hpp"
#include "net/route.hpp"
#include "net/tx_queue.hpp"
#include "wire/arp.hpp"
#include "wire/ether.hpp"

namespace rnic::net {

class Interface::Impl final : public ArpUser {
 public:
  Impl(const Config& config, port::Port& port, base::Now now)
      : config_(config),
        port_(port),
        mac_(port.info().mac),
        mode_(port.info().checksum),
        l4_room_(std::min(config.mtu, port.info().mtu) - wire::kIpv4Header),
        last_now_(now),
        route_(config),
        output_(config, port.info().mac),
        tx_(port, counters_),
        icmp_limit_(config.icmp_per_second, now),
        arp_(config, *this, counters_, now) {
    RNIC_CHECK(config.mtu >= 68 &&
               config.prefix_length <= 32);  // RFC 791: every net carries 68 octets
  }

  std::optional<Ipv4In> input(const port::Packet& frame, base::Now now);
  bool begin(llp::IpAddress source, llp::IpAddress destination, TxFrame& frame);
  void send(TxFrame& frame, uint8_t protocol, uint32_t l4_length, base::Now now);

  void send_arp_request(llp::IpAddress target, const port::MacAddress& to, base::Now now) override;
  void unpark(port::Packet& frame, const port::MacAddress& to, base::Now now) override;
  void drop_parked(port::Packet& frame) override;

  // What the last destination's way was.
  struct Hop {
    bool valid = false;
    llp::IpAddress destination;
    llp::IpAddress next_hop;
    const port::MacAddress* mac = nullptr;  // nullptr: not looked up
    uint64_t generation = 0;                // of the ARP table, when mac was looked up
  };

  bool find_hop(llp::IpAddress destination);
  const port::MacAddress* find_mac(llp::IpAddress destination);
  void input_arp(base::ByteView octets, base::Now now);
  void input_icmp(const Ipv4In& in, base::Now now);
  void send_arp(const wire::Arp& arp, const port::MacAddress& to, uint64_t& counter, base::Now now);

  Config config_;
  port::Port& port_;
  Counters counters_;
  port::MacAddress mac_;
  port::ChecksumMode mode_;
  uint32_t l4_room_;
  base::Now last_now_;  // begin() is told no time
  Route route_;
  Ipv4Output output_;
  TxQueue tx_;
  RateLimit icmp_limit_;
  ArpTable arp_;  // behind tx_ and port_: its parked frames go back first
  Hop hop_;
  PathMtu path_mtu_;
};

std::optional<Ipv4In> Interface::Impl::input(const port::Packet& frame, base::Now now) {
  last_now_ = now;
  ++counters_.frames_in;
  if (frame.length < wire::kEtherHeader) {
    ++counters_.short_frames;
    return std::nullopt;
  }
  const port::MacAddress to = wire::load_mac(frame.data + wire::kEtherDestinationAt);
  const uint16_t type = base::load_be16(frame.data + wire::kEtherTypeAt);
  const bool to_all = to == wire::kMacBroadcast && type == wire::kEtherTypeArp;
  // RFC 1122 s.3.3.6: an IP packet to one host does not come in a link layer broadcast.
  if (to != mac_ && !to_all) {
    ++counters_.not_ours;
    return std::nullopt;
  }
  if (type == wire::kEtherTypeArp) {
    input_arp(frame.view().subspan(wire::kEtherHeader), now);
    return std::nullopt;
  }
  if (type != wire::kEtherTypeIpv4) {
    ++counters_.unknown_ethertype;
    return std::nullopt;
  }
  std::optional<Ipv4In> in =
      ipv4_input(frame, route_, mode_ == port::ChecksumMode::Trusted, counters_);
  if (!in || in->protocol == wire::kProtocolTcp) return in;
  if (in->protocol == wire::kProtocolIcmp) {
    input_icmp(*in, now);
  } else {
    ++counters_.ip_unknown_protocol;
  }
  return std::nullopt;
}

void Interface::Impl::input_arp(base::ByteView octets, base::Now now) {
  ++counters_.arp_in;
  const std::optional<wire::Arp> arp = wire::parse_arp(octets);
  if (!arp || !wire::is_station(arp->sender_mac)) {
    ++counters_.arp_malformed;
    return;
  }
  // Talk between others, and announcements to all, teach us nothing.
  if (!route_.is_ours(arp->target_ip)) return;
  // RFC 5227 s.2.1.1: a probe has no sender address yet; it is answered, but not learned.
  const bool probe = arp->operation == wire::kArpRequest && arp->sender_ip == 0;
  if (!probe && !route_.is_neighbour(arp->sender_ip)) {
    ++counters_.arp_malformed;
    return;
  }
  const llp::IpAddress sender = llp::IpAddress::v4(arp->sender_ip);
  if (arp->operation == wire::kArpReply) {
    if (arp->target_mac == mac_) arp_.on_reply(sender, arp->sender_mac, now);
    return;
  }
  if (!probe) arp_.on_request(sender, arp->sender_mac, now);
  const wire::Arp reply{wire::kArpReply, mac_, config_.address.as_v4(), arp->sender_mac,
                        arp->sender_ip};
  send_arp(reply, arp->sender_mac, counters_.arp_replies_out, now);
}

void Interface::Impl::input_icmp(const Ipv4In& in, base::Now now) {
  switch (classify_icmp(in.payload)) {
    case IcmpKind::Malformed: ++counters_.icmp_malformed; return;
    case IcmpKind::Other: ++counters_.icmp_other; return;
    case IcmpKind::EchoRequest: break;
  }
  // A request longer than our MTU cannot be answered in one packet.
  if (in.payload.size() > l4_room_ || !icmp_limit_.allow(now)) {
    ++counters_.icmp_limited;
    return;
  }
  TxFrame reply;
  if (!begin(in.destination, in.source, reply)) return;
  write_echo_reply(reply.l4, in.payload);
  ++counters_.icmp_echo_in;
  send(reply, wire::kProtocolIcmp, static_cast<uint32_t>(in.payload.size()), now);
}

bool Interface::Impl::find_hop(llp::IpAddress destination) {
  if (hop_.valid && hop_.destination == destination) return true;
  const std::optional<llp::IpAddress> next_hop = route_.next_hop(destination);
  if (!next_hop) return false;
  hop_ = {true, destination, *next_hop, nullptr, 0};
  return true;
}

const port::MacAddress* Interface::Impl::find_mac(llp::IpAddress destination) {
  RNIC_CHECK(find_hop(destination));
  if (hop_.mac == nullptr || hop_.generation != arp_.generation()) {
    hop_.mac = arp_.find(hop_.next_hop);
    hop_.generation = arp_.generation();
  }
  return hop_.mac;
}

bool Interface::Impl::begin(llp::IpAddress source, llp::IpAddress destination, TxFrame& frame) {
  if (!find_hop(destination)) {
    ++counters_.no_route;
    return false;
  }
  if (!tx_.open(frame.packet, last_now_)) return false;
  frame.l4 = frame.packet.data + kHeaders;
  frame.l4_room = l4_room_;
  frame.l4_checksum_open = mode_ != port::ChecksumMode::Software;
  frame.source = source;
  frame.destination = destination;
  frame.traffic_class = 0;
  frame.hop_limit = 0;
  return true;
}

void Interface::Impl::send(TxFrame& frame, uint8_t protocol, uint32_t l4_length, base::Now now) {
  RNIC_CHECK(l4_length <= l4_room_);
  last_now_ = now;
  port::Packet& packet = frame.packet;
  output_.write(packet.data, frame.destination.as_v4(), protocol, frame.traffic_class,
                frame.hop_limit, l4_length);
  packet.length = kHeaders + l4_length;
  packet.ip_checksum = port::Checksum::Unknown;
  // Ports complete checksums of TCP only.
  packet.l4_checksum = frame.l4_checksum_open && protocol == wire::kProtocolTcp
                           ? port::Checksum::Open
                           : port::Checksum::Unknown;
  const port::MacAddress* mac = find_mac(frame.destination);
  if (mac != nullptr) [[likely]] {
    wire::store_mac(packet.data + wire::kEtherDestinationAt, *mac);
    tx_.push(packet, now);
  } else {
    tx_.release_place();
    arp_.park(hop_.next_hop, packet, now);
  }
  frame.l4 = nullptr;
}

void Interface::Impl::send_arp(const wire::Arp& arp, const port::MacAddress& to, uint64_t& counter,
                               base::Now now) {
  port::Packet packet;
  if (!tx_.open(packet, now)) return;
  wire::write_ether(packet.data, to, mac_, wire::kEtherTypeArp);
  wire::write_arp(packet.data + wire::kEtherHeader, arp);
  packet.length = wire::kEtherHeader + wire::kArpPacket;
  packet.ip_checksum = port::Checksum::Unknown;
  packet.l4_checksum = port::Checksum::Unknown;
  ++counter;
  tx_.push(packet, now);
}

void Interface::Impl::send_arp_request(llp::IpAddress target, const port::MacAddress& to,
                                       base::Now now) {
  const wire::Arp request{wire::kArpRequest, mac_, config_.address.as_v4(), {}, target.as_v4()};
  send_arp(request, to, counters_.arp_requests_out, now);
}

void Interface::Impl::unpark(port::Packet& frame, const port::MacAddress& to, base::Now now) {
  wire::store_mac(frame.data + wire::kEtherDestinationAt, to);
  if (!tx_.push_late(frame, now)) drop_parked(frame);
}

void Interface::Impl::drop_parked(port::Packet& frame) {
  ++counters_.arp_unresolved;
  port_.free({&frame, 1});
}

Interface::Interface(const Config& config, port::Port& port, base::Now now)
    : impl_(std::make_unique<Impl>(config, port, now)) {}
Interface::~Interface() = default;

std::optional<Ipv4In> Interface::input(const port::Packet& frame, base::Now now) {
  return impl_->input(frame, now);
}
bool Interface::begin(llp::IpAddress source, llp::IpAddress destination, TxFrame& frame) {
  return impl_->begin(source, destination, frame);
}
void Interface::send(TxFrame& frame, uint8_t protocol, uint32_t l4_length, base::Now now) {
  impl_->send(frame, protocol, l4_length, now);
}
void Interface::cancel(TxFrame& frame) {
  impl_->tx_.cancel(frame.packet);
  frame.l4 = nullptr;
}
bool Interface::flush(base::Now now) {
  impl_->last_now_ = now;
  return impl_->tx_.flush(now);
}
uint32_t Interface::unsent() const { return impl_->tx_.unsent(); }
void Interface::on_timers(base::Now now) {
  impl_->last_now_ = now;
  impl_->arp_.on_timers(now);
}
base::Now Interface::next_deadline() const { return impl_->arp_.next_deadline(); }
const Config& Interface::config() const { return impl_->config_; }
port::Port& Interface::port() { return impl_->port_; }
const Counters& Interface::counters() const { return impl_->counters_; }
bool Interface::has_route(llp::IpAddress destination) const {
  return impl_->route_.next_hop(destination).has_value();
}
uint32_t Interface::path_mtu(llp::IpAddress destination) const {
  if (!has_route(destination)) return 0;
  return std::min(impl_->config_.mtu, impl_->path_mtu_.find(destination, impl_->last_now_));
}
void Interface::reduce_path_mtu(llp::IpAddress destination, uint32_t mtu, base::Now now) {
  if (mtu < impl_->config_.mtu) impl_->path_mtu_.reduce(destination, mtu, now);
}

}  // namespace rnic::net
