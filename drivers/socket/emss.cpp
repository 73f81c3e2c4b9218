#include "socket/emss.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace rnic::socket {

namespace {

constexpr uint32_t kIpv4Header = 20;
constexpr uint32_t kIpv6Header = 40;
constexpr uint32_t kTcpHeader = 20;
constexpr uint32_t kTimestamps = 12;  // octets of the option with its usual padding
constexpr uint32_t kEthernetMtu = 1500;

uint32_t number_of(System& system, int descriptor, int level, int name) {
  int value = 0;
  socklen_t size = sizeof value;
  if (system.getsockopt(descriptor, level, name, &value, &size) != 0 || value < 0) return 0;
  return static_cast<uint32_t>(value);
}

}  // namespace

uint32_t choose_emss(const SegmentFacts& facts) {
  if (facts.send_mss != 0) return facts.send_mss;
  const uint32_t headers = (facts.v4 ? kIpv4Header : kIpv6Header) + kTcpHeader + kTimestamps;
  if (facts.path_mtu > headers) return facts.path_mtu - headers;
  return facts.configured_mtu != 0 && facts.configured_mtu < kEthernetMtu ? kSmallPathEmss
                                                                          : kUsualEmss;
}

SegmentFacts ask_system(System& system, int descriptor, bool v4, uint32_t configured_mtu) {
  SegmentFacts facts{.configured_mtu = configured_mtu, .v4 = v4};
  // For a connected socket this is tcpi_snd_mss, at the cost of copying four octets only.
  facts.send_mss = number_of(system, descriptor, IPPROTO_TCP, TCP_MAXSEG);
  if (facts.send_mss != 0) return facts;
  tcp_info info{};
  socklen_t size = sizeof info;
  if (system.getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) == 0) {
    facts.send_mss = info.tcpi_snd_mss;
  }
  if (facts.send_mss != 0) return facts;
  // An IPv6 socket with an IPv4 peer answers only for its own family.
  facts.path_mtu = number_of(system, descriptor, IPPROTO_IPV6, IPV6_MTU);
  if (facts.path_mtu == 0) facts.path_mtu = number_of(system, descriptor, IPPROTO_IP, IP_MTU);
  return facts;
}

}  // namespace rnic::socket
