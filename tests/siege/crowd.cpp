#include "siege/crowd.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "llp/pseudo_header.hpp"
#include "wire/inet_checksum.hpp"
#include "wire/ipv4.hpp"
#include "wire/ipv6.hpp"
#include "wire/mpa.hpp"
#include "wire/nd.hpp"
#include "wire/tcp.hpp"

namespace rnic::siege {

namespace flag = wire::tcp_flag;

namespace {

constexpr uint32_t kOther = 0x0a010001;              // 10.1.0.1
constexpr uint32_t kFirstOwn = 0x0a020001;           // 10.2.0.1 and the next ones
constexpr uint64_t kOther6 = 0xfd00000100000000;     // fd00:1::/64
constexpr uint64_t kFirstOwn6 = 0xfd00000200000000;  // fd00:2::/64 and the next ones
constexpr uint64_t kFirstHost = 0x1000;              // of a /64, above the client's
constexpr wire::MacAddress kServerMac{0x02, 0x00, 0x00, 0x00, 0x00, 0x0b};
constexpr uint16_t kFirstPort = 1024;  // below the client's ephemeral ports
constexpr uint32_t kPorts = 48'000;
constexpr uint32_t kEther = 14;
constexpr base::Duration kSlow = std::chrono::seconds(1);

constexpr std::array kNames{"SYN only",
                            "blind data",
                            "silent",
                            "part of a Request",
                            "an octet a second",
                            "garbage",
                            "garbage behind the key",
                            "reset at once",
                            "Request, then reset",
                            "Request, then FIN",
                            "started, then silent",
                            "started, half closed",
                            "started, then garbage"};

std::vector<uint8_t> request() {
  std::vector<uint8_t> octets(wire::kMpaStartHeaderSize);
  wire::write_mpa_start_header(octets.data(), wire::kMpaRequestKey, {.crc = true});
  return octets;
}

}  // namespace

const char* to_string(Attack attack) { return kNames[static_cast<size_t>(attack)]; }

const char* to_string(Origin origin) {
  switch (origin) {
    case Origin::OneOther: return "one other address";
    case Origin::EachOwn: return "each its own address";
    case Origin::TheClients: return "the client's address";
  }
  return "?";
}

Crowd::Crowd(port::Port& inner, const CrowdPlan& plan, base::Now begin)
    : inner_(inner), plan_(plan), random_(plan.seed), next_arrival_(begin) {}

base::Now Crowd::next_deadline() const {
  base::Now next = inner_.next_deadline();
  if (arrived_ < plan_.strangers) next = base::earlier(next, next_arrival_);
  return slow_.empty() ? next : base::earlier(next, slow_.begin()->first);
}

void Crowd::step(base::Now now) {
  while (arrived_ < plan_.strangers && next_arrival_ <= now) {
    arrive(now);
    next_arrival_ += plan_.interval;
  }
  while (!slow_.empty() && slow_.begin()->first <= now) {
    const Key key = slow_.begin()->second;
    slow_.erase(slow_.begin());
    if (const auto found = strangers_.find(key); found != strangers_.end()) {
      say_slowly(found->second, now);
    }
  }
}

void Crowd::arrive(base::Now now) {
  const uint32_t number = arrived_++;
  Stranger stranger;
  stranger.attack = plan_.attacks[number % plan_.attacks.size()];
  stranger.port = static_cast<uint16_t>(kFirstPort + number % kPorts);
  stranger.next = base::Seq32(random_.next32());
  stranger.address = address_of(number);
  if (stranger.attack == Attack::BlindData) {
    stranger.expected = base::Seq32(random_.next32());
    say(stranger, flag::kAck | flag::kPsh, random_octets(100), now);
    return;
  }
  say(stranger, flag::kSyn, {}, now);
  strangers_[{stranger.address, stranger.port}] = stranger;
}

IpAddress Crowd::address_of(uint32_t number) const {
  if (plan_.client.is_v4()) {
    switch (plan_.origin) {
      case Origin::OneOther: return IpAddress::v4(kOther);
      case Origin::EachOwn: return IpAddress::v4(kFirstOwn + number);
      case Origin::TheClients: return plan_.client;
    }
  }
  switch (plan_.origin) {
    case Origin::OneOther: return {kOther6, kFirstHost + number};
    case Origin::EachOwn: return {kFirstOwn6 + number, kFirstHost};
    case Origin::TheClients: return {plan_.client.high(), kFirstHost + number};
  }
  return {};
}

uint32_t Crowd::rx_burst(std::span<port::Packet> out, base::Now now) {
  const uint32_t came = inner_.rx_burst(out, now);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < came; ++i) {
    if (hear(out[i], now)) {
      inner_.free({&out[i], 1});
    } else {
      out[kept++] = out[i];
    }
  }
  return kept;
}

std::optional<Crowd::Heard> Crowd::parse(base::ByteView frame) {
  if (frame.size() < kEther) return std::nullopt;
  IpAddress destination;
  base::ByteView octets;
  if (base::load_be16(&frame[12]) == wire::kEtherTypeIpv4) {
    const auto ip = wire::parse_ipv4(frame.subspan(kEther));
    if (!ip || ip->protocol != wire::kProtocolTcp) return std::nullopt;
    destination = IpAddress::v4(ip->destination);
    octets = frame.subspan(kEther + ip->header_length, ip->total_length - ip->header_length);
  } else {
    const auto ip = wire::parse_ipv6(frame.subspan(kEther));
    if (!ip || ip->next_header != wire::kProtocolTcp) return std::nullopt;
    destination = {ip->destination.high, ip->destination.low};
    octets = frame.subspan(kEther + wire::kIpv6Header, ip->payload_length);
  }
  const auto tcp = wire::TcpView::parse(octets);
  if (!tcp) return std::nullopt;
  return Heard{destination, *tcp};
}

bool Crowd::hear(const port::Packet& frame, base::Now now) {
  const auto heard = parse(frame.view());
  if (!heard) return answer_solicitation(frame.view(), now);
  const bool low_port = heard->tcp.destination_port() < kFirstPort + kPorts;
  if (heard->destination == plan_.client && !low_port) return false;  // the client's
  const auto found = strangers_.find({heard->destination, heard->tcp.destination_port()});
  if (found == strangers_.end()) return true;
  if (heard->tcp.has(flag::kRst)) {
    strangers_.erase(found);
  } else {
    hear(found->second, heard->tcp, now);
  }
  return true;
}

void Crowd::hear(Stranger& stranger, const wire::TcpView& tcp, base::Now now) {
  if (tcp.has(flag::kSyn) && !stranger.open && stranger.attack != Attack::SynOnly) {
    stranger.open = true;
    stranger.next += 1;
    stranger.expected = tcp.sequence() + 1;
    opened(stranger, now);
  } else if (stranger.open && tcp.sequence() == stranger.expected && !tcp.payload().empty()) {
    stranger.expected += static_cast<uint32_t>(tcp.payload().size());
    replied(stranger, now);
  }
}

bool Crowd::answer_solicitation(base::ByteView frame, base::Now now) {
  if (frame.size() < kEther || base::load_be16(&frame[12]) != wire::kEtherTypeIpv6) return false;
  const auto ip = wire::parse_ipv6(frame.subspan(kEther));
  if (!ip || ip->next_header != wire::kNextIcmpv6) return false;
  const base::ByteView octets = frame.subspan(kEther + wire::kIpv6Header, ip->payload_length);
  const auto asked = wire::parse_neighbour_message(octets);
  if (!asked || asked->type != wire::kIcmpv6NeighbourSolicitation) return false;
  const IpAddress target(asked->target.high, asked->target.low);
  if (target == plan_.client) return false;
  const auto found = strangers_.lower_bound({target, 0});
  if (found == strangers_.end() || found->first.first != target) return true;
  // Nobody is where these say that they are.
  if (found->second.attack == Attack::SynOnly) return true;
  port::Packet answer;
  if (!inner_.alloc({&answer, 1})) return true;
  const uint32_t at = write_ip(answer.data, target, wire::kNextIcmpv6, wire::kNdMessage);
  answer.data[kEther + wire::kIpv6HopLimitAt] = wire::kNdHopLimit;
  wire::write_neighbour_message(answer.data + at,
                                {.type = wire::kIcmpv6NeighbourAdvertisement,
                                 .flags = wire::kNdFlagSolicited | wire::kNdFlagOverride,
                                 .target = asked->target,
                                 .link = inner_.info().mac});
  const uint32_t pseudo =
      llp::pseudo_header_sum(target, plan_.server, wire::kNextIcmpv6, wire::kNdMessage);
  base::store_be16(
      answer.data + at + wire::kIcmpChecksumAt,
      wire::checksum_fold(wire::checksum_add(pseudo, {answer.data + at, wire::kNdMessage})));
  send(answer, at + wire::kNdMessage, now);
  return true;
}

void Crowd::opened(Stranger& stranger, base::Now now) {
  std::vector<uint8_t> octets = request();
  say(stranger, flag::kAck, {}, now);
  switch (stranger.attack) {
    case Attack::PartOfRequest: octets.resize(1 + random_.below(19)); break;
    case Attack::Garbage: octets = random_octets(1 + random_.below(200)); break;
    case Attack::GarbageBehindKey: {
      const std::vector<uint8_t> behind = random_octets(1 + random_.below(600));
      octets.resize(wire::kMpaKeySize);
      octets.insert(octets.end(), behind.begin(), behind.end());
      break;
    }
    case Attack::OctetASecond: slow_.emplace(now, Key{stranger.address, stranger.port}); return;
    case Attack::ResetAtOnce: return say(stranger, flag::kRst | flag::kAck, {}, now);
    case Attack::SynOnly:
    case Attack::BlindData:
    case Attack::Silent: return;
    default: break;
  }
  say(stranger, flag::kAck | flag::kPsh, octets, now);
  if (stranger.attack == Attack::RequestThenReset) {
    say(stranger, flag::kRst | flag::kAck, {}, now);
  } else if (stranger.attack == Attack::RequestThenFin) {
    say(stranger, flag::kFin | flag::kAck, {}, now);
  }
}

/// A Reply: what follows is not acknowledged either.
void Crowd::replied(Stranger& stranger, base::Now now) {
  ++started_;
  say(stranger, flag::kAck, {}, now);
  if (stranger.attack == Attack::StartedHalfClosed) {
    say(stranger, flag::kFin | flag::kAck, {}, now);
  } else if (stranger.attack == Attack::StartedGarbage) {
    say(stranger, flag::kAck | flag::kPsh, random_octets(300), now);
  }
}

void Crowd::say_slowly(Stranger& stranger, base::Now now) {
  const std::vector<uint8_t> octets = request();
  if (stranger.said == octets.size()) return;
  say(stranger, flag::kAck | flag::kPsh, {&octets[stranger.said++], 1}, now);
  slow_.emplace(now + kSlow, Key{stranger.address, stranger.port});
}

void Crowd::say(Stranger& stranger, uint8_t flags, base::ByteView octets, base::Now now) {
  port::Packet frame;
  if (!inner_.alloc({&frame, 1})) return;  // lost, as on any wire
  const auto tcp_length = static_cast<uint32_t>(wire::kTcpHeaderMin + octets.size());
  const uint32_t at = write_ip(frame.data, stranger.address, wire::kProtocolTcp, tcp_length);
  const bool acks = (flags & flag::kAck) != 0;
  wire::write_tcp(frame.data + at, {.source_port = stranger.port,
                                    .destination_port = plan_.port,
                                    .sequence = stranger.next,
                                    .acknowledgment = acks ? stranger.expected : base::Seq32(0),
                                    .flags = flags,
                                    .window = 0xffff});
  std::copy(octets.begin(), octets.end(), frame.data + at + wire::kTcpHeaderMin);
  stranger.next += static_cast<uint32_t>(octets.size());
  send(frame, at + tcp_length, now);
}

uint32_t Crowd::write_ip(uint8_t* frame, const IpAddress& source, uint8_t protocol,
                         uint32_t length) const {
  wire::write_ether(frame, kServerMac, inner_.info().mac,
                    source.is_v4() ? wire::kEtherTypeIpv4 : wire::kEtherTypeIpv6);
  if (source.is_v4()) {
    wire::Ipv4 ip;
    ip.total_length = static_cast<uint16_t>(wire::kIpv4Header + length);
    ip.fragment = wire::kIpv4DontFragment;
    ip.ttl = 64;
    ip.protocol = protocol;
    ip.source = source.as_v4();
    ip.destination = plan_.server.as_v4();
    wire::write_ipv4(frame + kEther, ip);
    return kEther + wire::kIpv4Header;
  }
  wire::Ipv6 ip;
  ip.payload_length = length;
  ip.next_header = protocol;
  ip.hop_limit = 64;
  ip.source = {source.high(), source.low()};
  ip.destination = {plan_.server.high(), plan_.server.low()};
  wire::write_ipv6(frame + kEther, ip);
  return kEther + wire::kIpv6Header;
}

void Crowd::send(port::Packet& frame, uint32_t length, base::Now now) {
  frame.length = length;
  frame.ip_checksum = frame.l4_checksum = port::Checksum::Open;
  if (inner_.tx_burst({&frame, 1}, now) == 0) inner_.free({&frame, 1});
}

std::vector<uint8_t> Crowd::random_octets(size_t n) {
  std::vector<uint8_t> octets(n);
  for (uint8_t& octet : octets) octet = static_cast<uint8_t>(random_.below(256));
  return octets;
}

}  // namespace rnic::siege
