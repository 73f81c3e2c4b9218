#include "dpdk/device_setup.hpp"

#include <rte_ethdev.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "base/log.hpp"
#include "dpdk/eal.hpp"
#include "dpdk/refusal.hpp"
#include "net/rss.hpp"

namespace rnic::dpdk {
namespace {

tl::unexpected<Error> refused(const DeviceSetup& setup, const char* step, int rc) {
  return base::fail(code_of(rc), "device " + setup.name + " refuses " + step + " (MTU " +
                                     std::to_string(setup.mtu) + ", ring " +
                                     std::to_string(setup.ring_size) + "): " + reason_of(rc));
}

constexpr uint64_t kTcpHashes = RTE_ETH_RSS_NONFRAG_IPV4_TCP | RTE_ETH_RSS_NONFRAG_IPV6_TCP;
constexpr uint32_t kLongestKey = 64;  // i40e's has 52 octets; the first 40 reach over all addresses

uint8_t key_length(const rte_eth_dev_info& facts) {
  return facts.hash_key_size == 0 ? net::kRssKeyOctets : facts.hash_key_size;
}

/// net::kSymmetricRssKey, continued to the length that the device asks for.
std::array<uint8_t, kLongestKey> long_key() {
  std::array<uint8_t, kLongestKey> key;
  for (uint32_t i = 0; i < kLongestKey; ++i) key[i] = net::kSymmetricRssKey[i % 2];
  return key;
}

/// \return whether the device can spread TCP as net::queue_of() computes
bool spreads_tcp(const rte_eth_dev_info& facts, size_t queues) {
  const bool key = key_length(facts) >= net::kRssKeyOctets && key_length(facts) <= kLongestKey;
  return (facts.flow_type_rss_offloads & kTcpHashes) == kTcpHashes && key &&
         std::has_single_bit(facts.reta_size) && facts.reta_size <= RTE_ETH_RSS_RETA_SIZE_512 &&
         queues <= facts.reta_size && queues <= facts.max_rx_queues &&
         queues <= facts.max_tx_queues;
}

using Table =
    std::array<rte_eth_rss_reta_entry64, RTE_ETH_RSS_RETA_SIZE_512 / RTE_ETH_RETA_GROUP_SIZE>;

/// Spreads the queues evenly over the table of a started device. \return the spread that the device
/// reports; empty: it reports none, or another one than it was told
std::optional<port::ReceiveSpread> set_spread(uint16_t id, const rte_eth_dev_info& facts,
                                              uint16_t queues) {
  const uint16_t places = facts.reta_size;
  const port::ReceiveSpread wanted = net::even_spread(queues, places);
  Table table{};
  for (uint16_t i = 0; i < places; ++i) {
    rte_eth_rss_reta_entry64& group = table[i / RTE_ETH_RETA_GROUP_SIZE];
    group.mask |= uint64_t{1} << i % RTE_ETH_RETA_GROUP_SIZE;
    group.reta[i % RTE_ETH_RETA_GROUP_SIZE] = wanted.table[i];
  }
  if (rte_eth_dev_rss_reta_update(id, table.data(), places) != 0) return std::nullopt;
  for (auto& group : table) std::fill(std::begin(group.reta), std::end(group.reta), UINT16_MAX);
  if (rte_eth_dev_rss_reta_query(id, table.data(), places) != 0) return std::nullopt;
  for (uint16_t i = 0; i < places; ++i) {
    const uint16_t queue = table[i / RTE_ETH_RETA_GROUP_SIZE].reta[i % RTE_ETH_RETA_GROUP_SIZE];
    if (queue != wanted.table[i]) return std::nullopt;
  }
  // Not every device takes the key with its configuration, nor by this call: only the key that it
  // reports afterwards counts.
  std::array<uint8_t, kLongestKey> key = long_key();
  rte_eth_rss_conf conf{key.data(), key_length(facts), kTcpHashes};
  rte_eth_dev_rss_hash_update(id, &conf);
  key.fill(0);
  conf.rss_hf = 0;
  if (rte_eth_dev_rss_hash_conf_get(id, &conf) != 0 || (conf.rss_hf & kTcpHashes) != kTcpHashes ||
      !std::equal(wanted.key.begin(), wanted.key.end(), key.begin())) {
    return std::nullopt;
  }
  return wanted;
}

}  // namespace

uint32_t buffer_room(uint32_t least, uint32_t frame) {
  // net_af_xdp puts frames into chunks of the kernel, of 2048 octets at least, which it does not
  // tell; net_virtio has 12 octets of its own in front of each frame.
  constexpr uint32_t kLeast = 2048;
  constexpr uint32_t kDriverHeader = 16;
  return std::max({kLeast, least, frame + kDriverHeader});
}

Status check_sizes(uint32_t mtu, uint32_t ring_size, uint32_t pool_size) {
  if (!Eal::started()) {
    return base::fail(ErrorCode::WrongState, "DPDK is not started: call dpdk::Eal::init() first");
  }
  if (mtu < 576 || mtu > 64000) {
    return base::fail(ErrorCode::InvalidArgument,
                      "MTU " + std::to_string(mtu) + " is not in 576 to 64000");
  }
  if (ring_size < 32 || ring_size > 32768) {
    return base::fail(ErrorCode::InvalidArgument,
                      "ring size " + std::to_string(ring_size) + " is not in 32 to 32768");
  }
  if (pool_size < 128 || pool_size > (1u << 20)) {
    return base::fail(ErrorCode::InvalidArgument,
                      "pool size " + std::to_string(pool_size) + " is not in 128 to 1048576");
  }
  return {};
}

namespace {

Result<StartedDevice> configure_and_start(uint16_t id, const DeviceSetup& setup,
                                          const rte_eth_dev_info& facts,
                                          std::span<rte_mempool* const> pools) {
  // TCP's checksum is worth a device's help in both directions or not at all. IPv4's header is
  // summed with the header's template, so only its check is asked for.
  constexpr uint64_t kRx = RTE_ETH_RX_OFFLOAD_TCP_CKSUM;
  constexpr uint64_t kTx = RTE_ETH_TX_OFFLOAD_TCP_CKSUM;
  const bool offload = setup.offloads && (facts.rx_offload_capa & kRx) == kRx &&
                       (facts.tx_offload_capa & kTx) == kTx;
  const auto queues = static_cast<uint16_t>(pools.size());
  rte_eth_conf conf{};
  if (setup.tell_mtu) conf.rxmode.mtu = setup.mtu;
  if (offload) {
    conf.rxmode.offloads = kRx | (facts.rx_offload_capa & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM);
    conf.txmode.offloads = kTx;
  }
  // A driver that knows of a removal tells LinkProbe.
  conf.intr_conf.rmv = (*facts.dev_flags & RTE_ETH_DEV_INTR_RMV) != 0 ? 1 : 0;
  std::array<uint8_t, kLongestKey> key = long_key();
  if (queues > 1) {
    conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    conf.rx_adv_conf.rss_conf = {key.data(), key_length(facts), kTcpHashes};
  }
  if (int rc = rte_eth_dev_configure(id, queues, queues, &conf); rc != 0) {
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
  for (uint16_t queue = 0; queue < queues; ++queue) {
    int rc = rte_eth_rx_queue_setup(id, queue, rx_slots, socket, &rx_conf, pools[queue]);
    if (rc != 0) return refused(setup, "a receive queue", rc);
    rc = rte_eth_tx_queue_setup(id, queue, tx_slots, socket, &tx_conf);
    if (rc != 0) return refused(setup, "a transmit queue", rc);
  }
  if (int rc = rte_eth_dev_start(id); rc != 0) return refused(setup, "to start", rc);
  StartedDevice started;
  started.checksum = offload ? port::ChecksumMode::Offload : port::ChecksumMode::Software;
  return started;
}

}  // namespace

Result<StartedDevice> start_device(uint16_t id, const DeviceSetup& setup,
                                   std::span<rte_mempool* const> pools) {
  rte_eth_dev_info facts{};
  if (int rc = rte_eth_dev_info_get(id, &facts); rc != 0) return refused(setup, "its facts", rc);
  if (pools.size() > 1 && spreads_tcp(facts, pools.size())) {
    auto started = configure_and_start(id, setup, facts, pools);
    if (!started) return started;
    const auto queues = static_cast<uint16_t>(pools.size());
    if (auto spread = set_spread(id, facts, queues)) {
      started->spread = std::move(*spread);
      return started;
    }
    if (int rc = rte_eth_dev_stop(id); rc != 0) return refused(setup, "to stop", rc);
  }
  if (pools.size() > 1) {
    base::log(base::LogLevel::Warning, "dpdk", [&] {
      return setup.name + ": one queue instead of " + std::to_string(pools.size()) +
             ": the device does not spread TCP by a hash that is known (RSS)";
    });
  }
  return configure_and_start(id, setup, facts, pools.first(1));
}

}  // namespace rnic::dpdk
