#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <string>

#include "dpdk/device_setup.hpp"
#include "dpdk/eth_port.hpp"
#include "dpdk/ethdev.hpp"
#include "dpdk/log_capture.hpp"
#include "dpdk/mbuf_pool.hpp"
#include "dpdk/wire_alarm.hpp"
#include "offload/offload.hpp"

namespace rnic::dpdk {
namespace {

/// The rings between the two ports and the pools of both; shared by them, as either may hold
/// buffers of the other's pool.
struct Medium {
  MbufPool pool_a;
  MbufPool pool_b;
  rte_ring* a_to_b = nullptr;
  rte_ring* b_to_a = nullptr;
  std::unique_ptr<WireAlarm> wakes_b;  // gone before the rings
  std::unique_ptr<WireAlarm> wakes_a;

  Medium() = default;
  Medium(const Medium&) = delete;
  Medium& operator=(const Medium&) = delete;
  ~Medium() {
    for (rte_ring* ring : {a_to_b, b_to_a}) {
      void* frame = nullptr;
      while (ring != nullptr && rte_ring_dequeue(ring, &frame) == 0) {
        rte_pktmbuf_free(static_cast<rte_mbuf*>(frame));
      }
      rte_ring_free(ring);
    }
  }
};

Result<std::shared_ptr<Medium>> make_medium(const RingPairOptions& options) {
  auto medium = std::make_shared<Medium>();
  for (rte_ring** ring : {&medium->a_to_b, &medium->b_to_a}) {
    *ring = rte_ring_create(unique_name('r').c_str(), rte_align32pow2(options.ring_size),
                            SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
    if (*ring == nullptr) {
      return base::fail(ErrorCode::ResourceExhausted, "no memory for a ring of " +
                                                          std::to_string(options.ring_size) +
                                                          " frames: " + memory_left());
    }
  }
  auto wakes_b = WireAlarm::make(medium->a_to_b, options.one_thread);
  if (!wakes_b) return tl::unexpected(wakes_b.error());
  medium->wakes_b = std::move(*wakes_b);
  auto wakes_a = WireAlarm::make(medium->b_to_a, options.one_thread);
  if (!wakes_a) return tl::unexpected(wakes_a.error());
  medium->wakes_a = std::move(*wakes_a);
  for (MbufPool* pool : {&medium->pool_a, &medium->pool_b}) {
    auto made = make_pool(options.pool_size, options.mtu + port::kLinkHeader);
    if (!made) return tl::unexpected(made.error());
    *pool = std::move(*made);
  }
  return medium;
}

/// The part of the medium that one end uses.
struct End {
  rte_ring* rx;
  rte_ring* tx;
  rte_mempool* pool;
  WireAlarm* wakes_us;
  WireAlarm* wakes_peer;
};

Result<std::unique_ptr<port::Port>> make_port(const std::string& name, const port::MacAddress& mac,
                                              const RingPairOptions& options, End end,
                                              std::shared_ptr<Medium> medium) {
  uint16_t taken = 0;
  if (rte_eth_dev_get_port_by_name(("net_ring_" + name).c_str(), &taken) == 0) {
    return base::fail(ErrorCode::AlreadyExists, "a ring device \"" + name + "\" is open already");
  }
  EthPortSetup port;
  port.device = std::make_shared<OpenDevice>();
  LogCapture capture;
  const int id = rte_eth_from_rings(name.c_str(), &end.rx, 1, &end.tx, 1, 0);
  if (id < 0) {
    return base::fail(ErrorCode::Environment,
                      "the ring device \"" + name + "\" cannot be made" + capture.quote());
  }
  port.device->own(static_cast<uint16_t>(id), true);
  DeviceSetup setup;
  setup.name = name;
  setup.mtu = options.mtu;
  setup.ring_size = options.ring_size;
  setup.tell_mtu = false;
  setup.offloads = false;
  if (auto started = start_device(port.device->id(), setup, {&end.pool, 1}); !started) {
    return tl::unexpected(started.error());
  }
  port.info = {name, mac, options.mtu, port::ChecksumMode::Trusted, {}};
  port.pool = end.pool;
  port.wakes_us = end.wakes_us;
  port.wakes_peer = end.wakes_peer;
  port.memory = std::move(medium);
  return std::make_unique<EthPort>(std::move(port));
}

}  // namespace

Result<PortPair> open_ring_pair(std::string_view name_a, std::string_view name_b,
                                const RingPairOptions& options) {
  if (auto status = check_sizes(options.mtu, options.ring_size, options.pool_size); !status) {
    return tl::unexpected(status.error());
  }
  for (const std::string_view name : {name_a, name_b}) {
    if (name.empty() || name.size() > kRingNameMax) {
      return base::fail(ErrorCode::InvalidArgument, "ring device name \"" + std::string(name) +
                                                        "\": 1 to " + std::to_string(kRingNameMax) +
                                                        " characters");
    }
  }
  auto medium = make_medium(options);
  if (!medium) return tl::unexpected(medium.error());
  Medium& m = **medium;
  auto a =
      make_port(std::string(name_a), options.mac_a, options,
                {m.b_to_a, m.a_to_b, m.pool_a.get(), m.wakes_a.get(), m.wakes_b.get()}, *medium);
  if (!a) return tl::unexpected(a.error());
  auto b =
      make_port(std::string(name_b), options.mac_b, options,
                {m.a_to_b, m.b_to_a, m.pool_b.get(), m.wakes_b.get(), m.wakes_a.get()}, *medium);
  if (!b) return tl::unexpected(b.error());
  return PortPair{std::move(*a), std::move(*b)};
}

}  // namespace rnic::dpdk
