#include "net/nd.hpp"

#include <optional>

#include "llp/pseudo_header.hpp"
#include "net/addresses.hpp"
#include "wire/inet_checksum.hpp"
#include "wire/ipv6.hpp"

namespace rnic::net {

void Nd::input(const IpIn& in, uint8_t hop_limit, base::Now now) {
  ++counters_.nd_in;
  const uint8_t type = in.payload[wire::kIcmpTypeAt];
  if (type != wire::kIcmpv6NeighbourSolicitation && type != wire::kIcmpv6NeighbourAdvertisement) {
    ++counters_.nd_ignored;
    return;
  }
  // RFC 4861 s.7.1: a hop limit of 255 proves that no router has forwarded the message.
  if (hop_limit != wire::kNdHopLimit) return malformed();
  const std::optional<wire::NeighbourMessage> message = wire::parse_neighbour_message(in.payload);
  if (!message || (message->link && !wire::is_station(*message->link))) return malformed();
  if (type == wire::kIcmpv6NeighbourSolicitation) {
    on_solicitation(in, *message, now);
  } else {
    on_advertisement(in, *message, now);
  }
}

void Nd::on_solicitation(const IpIn& in, const wire::NeighbourMessage& message, base::Now now) {
  const IpAddress target = from_wire(message.target);
  const bool to_group = !in.destination.is_unicast();
  // A host without an address sends its solicitation to the group, and without an option (RFC 4861
  // s.7.1.1).
  const bool probe = in.source.is_unspecified();
  if (probe ? message.link.has_value() || in.destination != solicited_node(target)
            : !routes_.is_neighbour(in.source)) {
    return malformed();
  }
  // RFC 4862 s.5.4.3: a probe shows that another host wants the same tentative address. A neighbour
  // that only wants to talk to this address gets no answer yet.
  if (dad_.is_tentative(target)) {
    if (probe) dad_.conflict(target);
    return;
  }
  if (!routes_.is_ours(target)) return;
  if (to_group && !probe && !message.link) return malformed();  // s.4.3: it MUST carry the option
  // Known neighbours, hosts that probe for an address, and all other hosts have separate limits, so
  // that none of these groups can use up the answers of another.
  RateLimit* own = probe ? &probe_answers_ : neighbours_.share_of(in.source, message.link);
  if (own == nullptr) own = &answers_;
  if (!own->allow(now)) {
    ++counters_.icmp_limited;
    return;
  }
  if (!probe && message.link) neighbours_.on_request(in.source, *message.link, now);
  wire::NeighbourMessage answer;
  answer.type = wire::kIcmpv6NeighbourAdvertisement;
  answer.flags = static_cast<uint8_t>(wire::kNdFlagOverride | (probe ? 0 : wire::kNdFlagSolicited));
  answer.target = message.target;
  answer.link = mac_;
  ++counters_.nd_advertisements_out;
  if (probe) {
    send(target, kAllNodes, wire::multicast_mac(wire::kAllNodes), answer, now);
  } else if (message.link) {
    send(target, in.source, *message.link, answer, now);
  } else if (const port::MacAddress* known = neighbours_.find(in.source); known != nullptr) {
    send(target, in.source, *known, answer, now);
  }
}

// Takes an advertisement (RFC 4861 s.7.2.5), with the difference that neighbours.hpp explains.
void Nd::on_advertisement(const IpIn& in, const wire::NeighbourMessage& message, base::Now now) {
  const IpAddress target = from_wire(message.target);
  const bool solicited = (message.flags & wire::kNdFlagSolicited) != 0;
  // RFC 4861 s.7.1.2: a solicited answer goes to the host that asked.
  if (solicited && !in.destination.is_unicast()) return malformed();
  if (dad_.is_tentative(target)) return dad_.conflict(target);  // RFC 4862 s.5.4.4
  if (routes_.is_ours(target)) {
    ++counters_.address_conflicts;
    return;
  }
  if (!routes_.is_neighbour(target) || !routes_.is_other_host(in.source)) return malformed();
  if (!solicited) {
    if (message.link) neighbours_.on_claim(target, *message.link, now);
    return;
  }
  const bool overrides = (message.flags & wire::kNdFlagOverride) != 0;
  neighbours_.on_answer(target, message.link, overrides, now);
}

void Nd::solicit(const IpAddress& target, const port::MacAddress* known, base::Now now) {
  const IpAddress source = routes_.source_for(target);
  if (source.is_unspecified()) return;
  wire::NeighbourMessage question;
  question.type = wire::kIcmpv6NeighbourSolicitation;
  question.target = to_wire(target);
  question.link = mac_;
  ++counters_.nd_solicitations_out;
  if (known != nullptr) {
    send(source, target, *known, question, now);
  } else {
    const wire::Ipv6Address group = wire::solicited_node(to_wire(target));
    send(source, from_wire(group), wire::multicast_mac(group), question, now);
  }
}

void Nd::probe(const IpAddress& target, base::Now now) {
  wire::NeighbourMessage question;
  question.type = wire::kIcmpv6NeighbourSolicitation;
  question.target = to_wire(target);
  ++counters_.nd_solicitations_out;
  const wire::Ipv6Address group = wire::solicited_node(question.target);
  send({}, from_wire(group), wire::multicast_mac(group), question, now);
}

void Nd::send(const IpAddress& source, const IpAddress& destination, const port::MacAddress& mac,
              const wire::NeighbourMessage& message, base::Now now) {
  TxFrame frame;
  if (!output_.begin_on_link(source, destination, frame, now)) return;
  const uint32_t length = wire::write_neighbour_message(frame.l4, message);
  const uint32_t pseudo = llp::pseudo_header_sum(source, destination, wire::kNextIcmpv6, length);
  base::store_be16(frame.l4 + wire::kIcmpChecksumAt,
                   wire::checksum_fold(wire::checksum_add(pseudo, {frame.l4, length})));
  frame.hop_limit = wire::kNdHopLimit;
  output_.send_on_link(frame, wire::kNextIcmpv6, length, mac, now);
}

}  // namespace rnic::net
