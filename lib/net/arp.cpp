#include "net/arp.hpp"

#include <optional>

#include "base/log.hpp"
#include "wire/ether.hpp"

namespace rnic::net {

void Arp::input(base::ByteView octets, base::Now now) {
  ++counters_.arp_in;
  const std::optional<wire::Arp> arp = wire::parse_arp(octets);
  if (!arp || !wire::is_station(arp->sender_mac)) {
    ++counters_.arp_malformed;
    return;
  }
  if (routes_.is_ours(arp->sender_ip)) {
    if (arp->sender_mac != mac_) conflict(*arp, now);
    return;
  }
  const IpAddress sender = IpAddress::v4(arp->sender_ip);
  if (!routes_.is_ours(arp->target_ip)) {
    // Messages between other hosts are not used. An announcement (RFC 5227 s.3) may be forged, so a
    // known neighbour is only asked for its address again.
    const bool announcement = arp->sender_ip == arp->target_ip && routes_.is_neighbour(sender);
    if (announcement) neighbours_.on_claim(sender, arp->sender_mac, now);
    return;
  }
  // RFC 5227 s.2.1.1: a probe has no sender address yet, so it is answered, but its sender is not
  // learned.
  const bool probe = arp->operation == wire::kArpRequest && arp->sender_ip == 0;
  if (!probe && !routes_.is_neighbour(sender)) {
    ++counters_.arp_malformed;
    return;
  }
  if (arp->operation == wire::kArpReply) {
    if (arp->target_mac == mac_) neighbours_.on_answer(sender, arp->sender_mac, true, now);
    return;
  }
  if (!probe) neighbours_.on_request(sender, arp->sender_mac, now);
  const wire::Arp reply{wire::kArpReply, mac_, arp->target_ip, arp->sender_mac, arp->sender_ip};
  send(reply, arp->sender_mac, counters_.arp_replies_out, now);
}

// Another host claims one of our addresses. The address is kept and defended by an announcement, at
// most once in kDefendInterval (RFC 5227 s.2.4 (c)).
void Arp::conflict(const wire::Arp& claim, base::Now now) {
  ++counters_.address_conflicts;
  if (now < may_defend_) return;
  may_defend_ = now + kDefendInterval;
  base::log(base::LogLevel::Error, "net", [&] {
    return to_string(IpAddress::v4(claim.sender_ip)) +
           " is ours, but another host on the link uses it, too: give one of them another";
  });
  const wire::Arp ours{wire::kArpRequest, mac_, claim.sender_ip, {}, claim.sender_ip};
  send(ours, wire::kMacBroadcast, counters_.address_defences, now);
}

void Arp::solicit(uint32_t target, const port::MacAddress* known, base::Now now) {
  const IpAddress source = routes_.source_for(IpAddress::v4(target));
  const wire::Arp request{wire::kArpRequest, mac_, source.as_v4(), {}, target};
  send(request, known != nullptr ? *known : wire::kMacBroadcast, counters_.arp_requests_out, now);
}

void Arp::send(const wire::Arp& arp, const port::MacAddress& to, uint64_t& counter, base::Now now) {
  port::Packet packet;
  uint8_t* p = output_.begin_raw(packet, now);
  if (p == nullptr) return;
  wire::write_arp(p, arp);
  ++counter;
  output_.send_raw(packet, wire::kEtherTypeArp, wire::kArpPacket, to, now);
}

}  // namespace rnic::net
