#include "dpdk/device_setup.hpp"

#include <rte_ethdev.h>

#include "dpdk/eal.hpp"

namespace rnic::dpdk {
namespace {

tl::unexpected<base::Error> refused(const DeviceSetup& setup, const char* step, int rc) {
  const auto code = rc == -ENOTSUP || rc == -EINVAL ? base::Errc::Unsupported
                    : rc == -ENOMEM                 ? base::Errc::ResourceExhausted
                    : rc == -EPERM || rc == -EACCES ? base::Errc::PermissionDenied
                                                    : base::Errc::Environment;
  return base::fail(code, "device " + setup.name + " refuses " + step + " (MTU " +
                              std::to_string(setup.mtu) + ", ring " +
                              std::to_string(setup.ring_size) + "): " + rte_strerror(-rc));
}

}  // namespace

base::Status check_sizes(uint32_t mtu, uint32_t ring_size, uint32_t pool_size) {
  if (!Eal::started()) {
    return base::fail(base::Errc::WrongState, "DPDK is not started: call dpdk::Eal::init() first");
  }
  if (mtu < 576 || mtu > 64000) {
    return base::fail(base::Errc::InvalidArgument,
                      "MTU " + std::to_string(mtu) + " is not in 576 to 64000");
  }
  if (ring_size < 32 || ring_size > 32768) {
    return base::fail(base::Errc::InvalidArgument,
                      "ring size " + std::to_string(ring_size) + " is not in 32 to 32768");
  }
  if (pool_size < 128 || pool_size > (1u << 20)) {
    return base::fail(base::Errc::InvalidArgument,
                      "pool size " + std::to_string(pool_size) + " is not in 128 to 1048576");
  }
  return {};
}

base::Result<port::ChecksumMode> start_device(uint16_t id, const DeviceSetup& setup,
                                              rte_mempool* pool) {
  rte_eth_dev_info facts{};
  if (int rc = rte_eth_dev_info_get(id, &facts); rc != 0) return refused(setup, "its facts", rc);

  // TCP's checksum is worth a device's help in both directions or not at all. IPv4's header is
  // summed with the header's template, so only its check is asked for.
  constexpr uint64_t kRx = RTE_ETH_RX_OFFLOAD_TCP_CKSUM;
  constexpr uint64_t kTx = RTE_ETH_TX_OFFLOAD_TCP_CKSUM;
  const bool offload = setup.offloads && (facts.rx_offload_capa & kRx) == kRx &&
                       (facts.tx_offload_capa & kTx) == kTx;
  rte_eth_conf conf{};
  if (setup.tell_mtu) conf.rxmode.mtu = setup.mtu;
  if (offload) {
    conf.rxmode.offloads = kRx | (facts.rx_offload_capa & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM);
    conf.txmode.offloads = kTx;
  }
  if (int rc = rte_eth_dev_configure(id, 1, 1, &conf); rc != 0) {
    return refused(setup, "the configuration", rc);
  }
  auto rx_slots = static_cast<uint16_t>(setup.ring_size);
  auto tx_slots = rx_slots;
  if (int rc = rte_eth_dev_adjust_nb_rx_tx_desc(id, &rx_slots, &tx_slots); rc != 0) {
    return refused(setup, "the ring size", rc);
  }
  rte_eth_rxconf rx_conf = facts.default_rxconf;
  rx_conf.offloads = conf.rxmode.offloads;
  rte_eth_txconf tx_conf = facts.default_txconf;
  tx_conf.offloads = conf.txmode.offloads;
  const auto socket = static_cast<unsigned>(rte_eth_dev_socket_id(id));
  if (int rc = rte_eth_rx_queue_setup(id, 0, rx_slots, socket, &rx_conf, pool); rc != 0) {
    return refused(setup, "a receive queue", rc);
  }
  if (int rc = rte_eth_tx_queue_setup(id, 0, tx_slots, socket, &tx_conf); rc != 0) {
    return refused(setup, "a transmit queue", rc);
  }
  if (int rc = rte_eth_dev_start(id); rc != 0) return refused(setup, "to start", rc);
  return offload ? port::ChecksumMode::Offload : port::ChecksumMode::Software;
}

}  // namespace rnic::dpdk
