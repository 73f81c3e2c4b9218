#include "dpdk/kernel_link.hpp"

#include <linux/ethtool.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>

namespace rnic::dpdk {

using port::LinkState;

LinkState link_of_interface(int socket, int index) {
  ifreq request{};
  request.ifr_ifindex = index;
  if (ioctl(socket, SIOCGIFNAME, &request) != 0) {
    return errno == ENODEV ? LinkState::Gone : LinkState::Up;
  }
  ethtool_value link{.cmd = ETHTOOL_GLINK, .data = 0};
  request.ifr_data = reinterpret_cast<char*>(&link);
  const bool told = ioctl(socket, SIOCETHTOOL, &request) == 0;
  return told && link.data == 0 ? LinkState::Down : LinkState::Up;
}

std::unique_ptr<KernelLink> KernelLink::open(uint32_t index, int tap) {
  auto made = wakeup::Descriptor::open(
      [] { return ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
  if (!made.is_open()) return nullptr;
  return std::unique_ptr<KernelLink>(
      new KernelLink(std::move(made), static_cast<int>(index), tap));
}

LinkState KernelLink::ask() const {
  if (tap_ < 0) return link_of_interface(socket_.get(), index_);
  ifreq attached{};
  if (ioctl(tap_, TUNGETIFF, &attached) != 0 && errno == EBADFD) return LinkState::Gone;
  const LinkState state = link_of_interface(socket_.get(), index_);
  // A tap may be moved to another network namespace: it works there, and nothing is known of it.
  return state == LinkState::Gone ? LinkState::Up : state;
}

}  // namespace rnic::dpdk
