#include "net/ipv6_headers.hpp"

#include "wire/icmp.hpp"
#include "wire/ipv6.hpp"

namespace rnic::net {

namespace {

using Result = Ipv6Chain::Result;

class Walk {
 public:
  Walk(base::ByteView packet, uint8_t next, uint32_t next_at, uint32_t at) : packet_(packet) {
    chain_.protocol = next;
    chain_.at = at;
    chain_.next_at = next_at;
  }

  Ipv6Chain run() {
    for (uint32_t headers = 0;; ++headers) {
      switch (chain_.protocol) {
        case wire::kNextHopByHop:
          // RFC 8200 s.4.1: hop-by-hop options are allowed only directly behind the IPv6 header.
          if (headers != 0 || chain_.at != wire::kIpv6Header) {
            return problem(wire::kIcmpv6UnknownNextHeader, chain_.next_at);
          }
          [[fallthrough]];
        case wire::kNextDestinationOptions:
        case wire::kNextRouting: break;
        case wire::kNextFragment:
          if (packet_.size() < chain_.at + wire::kIpv6FragmentHeader) return end(Result::Truncated);
          return end(Result::Fragment);
        default: return end(Result::Payload);
      }
      if (headers == kIpv6MaxHeaders) return end(Result::Drop);
      if (!step()) return chain_;
    }
  }

 private:
  Ipv6Chain end(Result result) {
    chain_.result = result;
    return chain_;
  }
  Ipv6Chain problem(uint8_t code, uint32_t pointer) {
    chain_.code = code;
    chain_.at = pointer;
    return end(Result::Problem);
  }
  bool stop(Result result) {
    end(result);
    return false;
  }

  // Passes over one header whose second octet tells its length.
  bool step() {
    const uint32_t at = chain_.at;
    if (packet_.size() < at + 8) return stop(Result::Truncated);
    const uint32_t length = (packet_[at + 1] + 1u) * 8;
    if (packet_.size() < at + length) return stop(Result::Truncated);
    if (chain_.protocol == wire::kNextRouting) {
      // RFC 8200 s.4.4, RFC 5095: no type of routing header is known here. A routing header without
      // segments left is passed over.
      if (packet_[at + 3] != 0) {
        problem(wire::kIcmpv6BadField, at + 2);
        return false;
      }
    } else if (!options(at + 2, at + length)) {
      return false;
    }
    chain_.protocol = packet_[at];
    chain_.next_at = at;
    chain_.at = at + length;
    return true;
  }

  // RFC 8200 s.4.2: the two highest bits of an unknown option tell what to do with the packet.
  bool options(uint32_t at, uint32_t end_at) {
    while (at < end_at) {
      if (++options_ > kIpv6MaxOptions) return stop(Result::Drop);
      const uint8_t type = packet_[at];
      if (type == wire::kIpv6OptionPad1) {
        ++at;
        continue;
      }
      if (at + 2 > end_at || at + 2 + packet_[at + 1] > end_at) {
        problem(wire::kIcmpv6BadField, at);
        return false;
      }
      switch (type >> 6) {
        case 0: break;
        case 1: return stop(Result::Drop);
        default:
          chain_.not_to_group = type >> 6 == 3;
          problem(wire::kIcmpv6UnknownOption, at);
          return false;
      }
      at += 2 + packet_[at + 1];
    }
    return true;
  }

  base::ByteView packet_;
  Ipv6Chain chain_;
  uint32_t options_ = 0;
};

}  // namespace

Ipv6Chain walk_ipv6(base::ByteView packet, uint32_t next_at, uint32_t at) {
  return Walk(packet, packet[next_at], next_at, at).run();
}

Ipv6Chain walk_fragmentable(base::ByteView octets, uint8_t next) {
  return Walk(octets, next, 0, 0).run();
}

}  // namespace rnic::net
