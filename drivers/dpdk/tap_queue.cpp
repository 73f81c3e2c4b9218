#include "dpdk/tap_queue.hpp"

#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include <cstdlib>
#include <filesystem>

namespace rnic::dpdk {

std::unique_ptr<TapQueue> TapQueue::find(const std::string& interface) {
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", unreadable)) {
    const int descriptor = std::atoi(entry.path().filename().c_str());
    ifreq request{};
    // A detached queue, as net_tap's first one is, has no name.
    if (ioctl(descriptor, TUNGETIFF, &request) != 0 || interface != request.ifr_name) continue;
    return std::unique_ptr<TapQueue>(new TapQueue(descriptor));
  }
  return nullptr;
}

bool TapQueue::send(base::ByteView frame) const {
  tun_pi no_information{};
  const iovec parts[] = {{&no_information, sizeof no_information},
                         {const_cast<uint8_t*>(frame.data()), frame.size()}};
  return writev(descriptor_, parts, 2) > 0;
}

}  // namespace rnic::dpdk
