#include <net/if.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "dpdk/device_setup.hpp"
#include "dpdk/eth_port.hpp"
#include "dpdk/ethdev.hpp"
#include "dpdk/kernel_link.hpp"
#include "dpdk/log_capture.hpp"
#include "dpdk/mbuf_pool.hpp"
#include "dpdk/refusal.hpp"
#include "offload/offload.hpp"
#include "process/fork_pause.hpp"

namespace rnic::dpdk {
namespace {

constexpr uint32_t kUsualMtu = 1500;  // of an Ethernet

/// A parsed spec: "name,key=value,..." with the keys that matter here.
struct Spec {
  std::string name;
  std::string arguments;

  [[nodiscard]] bool is(std::string_view driver) const { return name.starts_with(driver); }
  [[nodiscard]] bool is_vdev() const { return is("net_") || is("eth_"); }
  [[nodiscard]] bool is_pci() const {
    return name.find(':') != std::string::npos && name.find('.') != std::string::npos;
  }
  [[nodiscard]] std::string value(std::string_view key) const {
    std::string_view rest = arguments;
    while (!rest.empty()) {
      const std::string_view pair = rest.substr(0, rest.find(','));
      if (pair.starts_with(key) && pair.substr(key.size()).starts_with('=')) {
        return std::string(pair.substr(key.size() + 1));
      }
      rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    }
    return {};
  }
  void add(std::string_view key, uint32_t number) {
    if (!value(key).empty()) return;
    if (!arguments.empty()) arguments += ',';
    arguments += std::string(key) + "=" + std::to_string(number);
  }
};

Spec parse_spec(std::string_view text) {
  const size_t comma = text.find(',');
  if (comma == std::string_view::npos) return {std::string(text), {}};
  return {std::string(text.substr(0, comma)), std::string(text.substr(comma + 1))};
}

/// Checks what net_af_packet needs from the kernel: the interface, the right to it, and its MTU.
Status check_interface(const Spec& spec, uint32_t mtu) {
  const std::string name = spec.value("iface");
  if (name.empty()) {
    return base::fail(ErrorCode::InvalidArgument,
                      spec.name + " needs an interface: write \"" + spec.name + ",iface=<name>\"");
  }
  if (name.size() >= IFNAMSIZ || if_nametoindex(name.c_str()) == 0) {
    return base::fail(ErrorCode::NotFound, "no interface \"" + name + "\": `ip link` shows them");
  }
  const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return base::fail(ErrorCode::PermissionDenied, "no right to open packet sockets on " + name +
                                                       ": run as root or with CAP_NET_RAW");
  }
  ifreq request{};
  std::memcpy(request.ifr_name, name.c_str(), name.size());
  const bool known = ioctl(fd, SIOCGIFMTU, &request) == 0;
  close(fd);
  if (known && request.ifr_mtu < static_cast<int>(mtu)) {
    return base::fail(ErrorCode::InvalidArgument,
                      "interface " + name + " has MTU " + std::to_string(request.ifr_mtu) +
                          ", not " + std::to_string(mtu) + ": `ip link set " + name + " mtu " +
                          std::to_string(mtu) + "`, or configure a smaller MTU");
  }
  return {};
}

/// Opens the queue of a TAP interface, and checks the MTU of the interface: net_tap itself claims
/// no MTU above 1500.
Result<std::unique_ptr<TapQueue>> open_tap(uint32_t index, uint32_t mtu) {
  ifreq request{};
  if (if_indextoname(index, request.ifr_name) == nullptr) {
    return base::fail(ErrorCode::Environment, "the interface of net_tap is gone");
  }
  request.ifr_mtu = static_cast<int>(mtu);
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool set = fd >= 0 && ioctl(fd, SIOCSIFMTU, &request) == 0;
  const std::string why = std::generic_category().message(errno);
  if (fd >= 0) close(fd);
  auto queue = TapQueue::find(request.ifr_name);
  if (set && queue != nullptr) return queue;
  return base::fail(ErrorCode::Unsupported, std::string("interface ") + request.ifr_name +
                                                " takes no MTU of " + std::to_string(mtu) + ": " +
                                                why + "; configure a smaller one");
}

/// The queue of the TAP interface; nullptr: it was not found.
std::unique_ptr<TapQueue> find_tap(uint32_t index) {
  char name[IF_NAMESIZE];
  return if_indextoname(index, name) == nullptr ? nullptr : TapQueue::find(name);
}

/// \param own frames are written to the tap without the driver \return nullptr: there is no tap
Result<std::unique_ptr<TapQueue>> tap_of(const Spec& spec, const rte_eth_dev_info& facts, bool own,
                                         uint32_t mtu) {
  if (own) return open_tap(facts.if_index, mtu);
  return spec.is("net_tap") ? find_tap(facts.if_index) : nullptr;
}

/// \return how the kernel is asked for the link: net_af_packet and net_af_xdp call it up at any
/// time, and net_tap calls a tap in another namespace down; nullptr: the driver tells
std::unique_ptr<KernelLink> kernel_link_of(const Spec& spec, const rte_eth_dev_info& facts,
                                           const TapQueue* tap) {
  if (tap != nullptr) return KernelLink::open(facts.if_index, tap->descriptor());
  if (!spec.is("net_af_packet") && !spec.is("net_af_xdp")) return nullptr;
  return KernelLink::open(facts.if_index);
}

/// Gives the device a frame size that fits. \return octets that one mbuf must hold
uint32_t fit_frames(Spec& spec, const PortOptions& options) {
  const uint32_t frame = options.mtu + port::kLinkHeader;
  if (spec.is("net_af_packet")) {
    constexpr uint32_t kRingHeader = 128;  // TPACKET2_HDRLEN, sockaddr_ll, and room to round
    const uint32_t size = std::max(2048u, std::bit_ceil(frame + kRingHeader));
    const uint32_t block = std::max(size, 16384u);
    spec.add("blocksz", block);
    spec.add("framesz", size);
    spec.add("framecnt", std::max(options.ring_size, 2 * block / size));
    // The driver copies what the kernel gives, up to its frame size.
    return std::max<uint32_t>(frame,
                              static_cast<uint32_t>(std::atoi(spec.value("framesz").c_str())));
  }
  if (spec.is("net_memif")) {
    spec.add("bsize", std::max(2048u, (frame + 63) / 64 * 64));
    spec.add("rsize", std::clamp<uint32_t>(std::bit_width(options.ring_size - 1), 5, 14));
  }
  return frame;
}

/// The ring's geometry, as fit_frames() or the user has told it to net_af_packet.
PacketRingShape ring_shape(const Spec& spec) {
  const auto number = [&spec](std::string_view key) {
    return static_cast<uint32_t>(std::atoi(spec.value(key).c_str()));
  };
  return {.block = number("blocksz"), .frame = number("framesz"), .frames = number("framecnt")};
}

/// Finds the device or plugs it. \return its number; `plugged` when it was not there before
Result<uint16_t> find_or_plug(const Spec& spec, bool& plugged) {
  uint16_t id = 0;
  plugged = false;
  if (rte_eth_dev_get_port_by_name(spec.name.c_str(), &id) == 0) return id;
  if (!spec.is_vdev() && !spec.is_pci()) {
    return base::fail(ErrorCode::NotFound,
                      "no device \"" + spec.name +
                          "\": give a PCI address, or a virtual device such as "
                          "\"net_af_packet0,iface=veth0\" or \"net_memif0,role=server\"");
  }
  LogCapture capture;
  const char* bus = spec.is_vdev() ? "vdev" : "pci";
  const int rc = rte_eal_hotplug_add(bus, spec.name.c_str(), spec.arguments.c_str());
  if (rc != 0 || rte_eth_dev_get_port_by_name(spec.name.c_str(), &id) != 0) {
    const char* remedy = spec.is_vdev() ? "check its name and arguments"
                                        : "bind it to vfio-pci, and let no other process have it";
    return base::fail(
        rc == -EACCES ? ErrorCode::PermissionDenied : ErrorCode::Environment,
        "device " + spec.name + " cannot be opened" + capture.quote() + ": " + remedy);
  }
  plugged = true;
  return id;
}

/// Makes the device hear frames to `mac`: its own address, an added one, or everything.
Status take_address(uint16_t id, const port::MacAddress& mac, const Spec& spec) {
  rte_eth_allmulticast_enable(id);  // not every device can do it, nor needs it
  rte_ether_addr own{};
  rte_eth_macaddr_get(id, &own);
  if (std::equal(mac.begin(), mac.end(), own.addr_bytes)) return {};
  rte_ether_addr asked{};
  std::copy(mac.begin(), mac.end(), asked.addr_bytes);
  if (rte_eth_dev_mac_addr_add(id, &asked, 0) == 0) return {};
  const int rc = rte_eth_promiscuous_enable(id);
  if (rc != 0 && rc != -ENOTSUP) {
    return base::fail(ErrorCode::Unsupported,
                      "device " + spec.name + " does not hear another MAC address than its own");
  }
  return {};
}

/// Sets up and starts a device that was found or plugged. \return the ports of its queues, at most
/// `queues`
Result<std::vector<EthPortSetup>> start(std::shared_ptr<OpenDevice> owned, const Spec& spec,
                                        uint16_t queues, const PortOptions& options,
                                        uint32_t frame) {
  std::vector<EthPortSetup> ports;
  std::vector<rte_mempool*> pools;
  auto memory = std::make_shared<std::vector<MbufPool>>();
  const auto device = std::move(owned);  // on failure it is closed before `memory` goes
  rte_eth_dev_info facts{};
  if (int rc = rte_eth_dev_info_get(device->id(), &facts); rc != 0) {
    return base::fail(ErrorCode::Environment,
                      "device " + spec.name + " does not tell its facts: " + reason_of(rc));
  }
  const uint32_t room = buffer_room(facts.min_rx_bufsize, frame);
  for (uint16_t i = 0; i < queues; ++i) {
    // net_af_xdp puts 2,048 buffers into its fill ring and forgets all its rings when it is closed
    // (DPDK 22.11, eth_dev_close()): its buffers end with the pool, and none of ours is missing.
    auto pool = make_pool(options.pool_size, room, spec.is("net_af_xdp"));
    if (!pool) return tl::unexpected(pool.error());
    pools.push_back(pool->get());
    memory->push_back(std::move(*pool));
  }
  DeviceSetup setup;
  setup.name = spec.name;
  setup.mtu = options.mtu;
  setup.ring_size = options.ring_size;
  // Large frames are written to the TAP without the driver, which has no larger MTU.
  const bool own_tap = spec.is("net_tap") && options.mtu > kUsualMtu;
  setup.offloads = !own_tap;
  setup.tell_mtu =
      !spec.is("net_af_packet") && !spec.is("net_memif") && !spec.is("net_ring") && !own_tap;
  LogCapture capture;
  auto started = start_device(device->id(), setup, pools);
  if (!started) {
    return base::fail(started.error().code, started.error().message + capture.quote());
  }
  auto tap = tap_of(spec, facts, own_tap, options.mtu);
  if (!tap) return tl::unexpected(tap.error());
  rte_ether_addr own{};
  rte_eth_macaddr_get(device->id(), &own);
  port::PortInfo info;
  info.name = spec.name;
  info.mtu = options.mtu;
  info.checksum = started->checksum;
  info.spread = std::move(started->spread);
  std::copy(std::begin(own.addr_bytes), std::end(own.addr_bytes), info.mac.begin());
  if (options.mac) info.mac = *options.mac;
  if (auto status = take_address(device->id(), info.mac, spec); !status) {
    return tl::unexpected(status.error());
  }
  std::unique_ptr<MemifRedial> redial;
  if (spec.is("net_memif") && spec.value("role") != "server") {
    redial = std::make_unique<MemifRedial>(device->id());
  }
  device->set_probe(std::make_unique<LinkProbe>(
      device->id(), kernel_link_of(spec, facts, tap->get()), std::move(redial)));
  memory->resize(info.spread.queues);
  for (uint16_t i = 0; i < info.spread.queues; ++i) {
    EthPortSetup port;
    port.memory = memory;
    port.device = device;
    port.info = info;
    port.pool = pools[i];
    ports.push_back(std::move(port));
    if (spec.is("net_memif")) ports.back().gate = std::make_unique<BurstGate>();
    ports.back().info.spread.queue = i;
  }
  ports.front().tap = std::move(*tap);
  ports.front().sends_to_tap = own_tap;
  return ports;
}

PortDescriptors::Kind descriptors_of(const Spec& spec) {
  if (spec.is("net_af_packet")) return PortDescriptors::Kind::PacketSocket;
  if (spec.is("net_tap")) return PortDescriptors::Kind::Tun;
  return PortDescriptors::Kind::None;
}

/// Marks the device as ours, so that it is not opened twice.
bool claim(uint16_t id) {
  rte_eth_dev_owner owner{};
  if (rte_eth_dev_owner_new(&owner.id) != 0) return false;
  std::strncpy(owner.name, "rnic", sizeof owner.name - 1);
  return rte_eth_dev_owner_set(id, &owner) == 0;
}

}  // namespace

Result<std::vector<std::unique_ptr<port::Port>>> open_queues(std::string_view text, uint16_t queues,
                                                             const PortOptions& options) {
  if (auto status = check_sizes(options.mtu, options.ring_size, options.pool_size); !status) {
    return tl::unexpected(status.error());
  }
  if (queues < 1 || queues > kMaxQueues) {
    return base::fail(ErrorCode::InvalidArgument,
                      std::to_string(queues) + " queues: 1 to " + std::to_string(kMaxQueues));
  }
  Spec spec = parse_spec(text);
  if (spec.is("net_af_packet")) {
    if (auto status = check_interface(spec, options.mtu); !status) {
      return tl::unexpected(status.error());
    }
  }
  const uint32_t frame = fit_frames(spec, options);
  const process::ForkDelay delay;
  const PortDescriptors::Kind kind = descriptors_of(spec);
  const std::vector<int> before = PortDescriptors::list(kind);
  bool plugged = false;
  auto device = std::make_shared<OpenDevice>();
  auto id = find_or_plug(spec, plugged);
  if (!id) return tl::unexpected(id.error());
  LogCapture capture;
  if (!claim(*id)) {
    return base::fail(ErrorCode::AlreadyExists, "device " + spec.name + " is open already");
  }
  device->own(*id, plugged);
  auto setups = start(std::move(device), spec, queues, options, frame);
  if (!setups) return tl::unexpected(setups.error());
  std::vector<std::unique_ptr<port::Port>> ports;
  if (spec.is("net_af_packet") && plugged && setups->size() == 1) {
    setups->front().ring = PacketRing::find(before, ring_shape(spec));
  }
  if (plugged) setups->front().device->adopt(kind, before);
  for (EthPortSetup& setup : *setups) ports.push_back(std::make_unique<EthPort>(std::move(setup)));
  return ports;
}

Result<std::unique_ptr<port::Port>> open_port(std::string_view spec, const PortOptions& options) {
  auto ports = open_queues(spec, 1, options);
  if (!ports) return tl::unexpected(ports.error());
  return std::move(ports->front());
}

}  // namespace rnic::dpdk
