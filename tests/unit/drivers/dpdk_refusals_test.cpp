// What DPDK, its devices and the kernel refuse, and what is told of it; the EAL is started by
// main() in dpdk_test.cpp.
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <net/if.h>
#include <rte_alarm.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "../../support/logged.hpp"
#include "dpdk/device_setup.hpp"
#include "dpdk/dpdk.hpp"
#include "dpdk/interrupt_thread.hpp"
#include "dpdk/mbuf_pool.hpp"
#include "dpdk/path_floor.hpp"
#include "dpdk/reassembler.hpp"
#include "dpdk/refusal.hpp"

namespace rnic::dpdk {
namespace {

/// Small pools, as the process has little memory for many ports.
RingPairOptions small() {
  RingPairOptions options;
  options.mtu = 576;
  options.ring_size = 32;
  options.pool_size = 128;
  return options;
}

/// A device that gives back what it is given.
std::unique_ptr<port::Port> open_echo() {
  PortOptions options;
  options.mtu = 576;
  options.ring_size = 64;
  options.pool_size = 128;
  auto port = open_port("net_ring8", options);
  EXPECT_TRUE(port) << port.error().message;
  return port ? std::move(*port) : nullptr;
}

uint16_t number_of_echo() {
  uint16_t id = 0;
  EXPECT_EQ(rte_eth_dev_get_port_by_name("net_ring8", &id), 0);
  return id;
}

template <typename R>
void expect_refused(const R& result, ErrorCode code, const std::string& message) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, code) << result.error().message;
  EXPECT_EQ(result.error().message.substr(0, message.size()), message);
}

TEST(Sizes, EveryLimitIsNamed) {
  PortOptions port;
  port.ring_size = 31;
  expect_refused(open_port("net_null5", port), ErrorCode::InvalidArgument,
                 "ring size 31 is not in 32 to 32768");
  RingPairOptions pair = small();
  pair.pool_size = 127;
  expect_refused(open_ring_pair("limit_a", "limit_b", pair), ErrorCode::InvalidArgument,
                 "pool size 127 is not in 128 to 1048576");
  for (const uint32_t good : {32u, 32768u}) EXPECT_TRUE(check_sizes(1500, good, 128)) << good;
  for (const uint32_t good : {128u, 1u << 20}) EXPECT_TRUE(check_sizes(1500, 32, good)) << good;
  EXPECT_FALSE(check_sizes(1500, 32769, 128));
  EXPECT_FALSE(check_sizes(1500, 32, (1u << 20) + 1));
}

// rte_mbuf counts its octets in 16 bits.
TEST(MbufPools, AFrameFitsOneBuffer) {
  constexpr uint32_t kMost = (UINT16_MAX - RTE_PKTMBUF_HEADROOM) / 64 * 64;
  EXPECT_TRUE(make_pool(128, kMost));
  expect_refused(make_pool(128, kMost + 1), ErrorCode::InvalidArgument,
                 "frames of " + std::to_string(kMost + 1) + " octets do not fit one DPDK buffer");
}

TEST(MbufPools, BuffersThatAreStillOutAreToldOf) {
  test::Logged logged;
  {
    auto pool = make_pool(128, 576);
    ASSERT_TRUE(pool);
    for (int i = 0; i < 3; ++i) ASSERT_NE(rte_pktmbuf_alloc(pool->get()), nullptr);
  }
  {
    auto pool = make_pool(128, 576, true);
    ASSERT_TRUE(pool);
    ASSERT_NE(rte_pktmbuf_alloc(pool->get()), nullptr);
  }
  const std::string said = logged.take();
  EXPECT_NE(said.find("3 buffers were not returned before their port was closed"),
            std::string::npos);
  EXPECT_EQ(said.find("1 buffers"), std::string::npos) << "a ring was known to keep them";
}

// Those that are plain go back with one call; each other one as DPDK says.
TEST(MbufPools, EachBufferGoesBackWhereItCameFrom) {
  auto first = make_pool(128, 576);
  auto second = make_pool(128, 576);
  ASSERT_TRUE(first && second);
  const auto out = [&] {
    return rte_mempool_in_use_count(first->get()) + rte_mempool_in_use_count(second->get());
  };
  std::array<rte_mbuf*, 4> mbufs{};
  ASSERT_TRUE(allocate_mbufs(first->get(), mbufs.data(), 4));
  EXPECT_EQ(out(), 4u);
  free_mbufs(mbufs.data(), 4);
  EXPECT_EQ(out(), 0u) << "plain ones of one pool";

  ASSERT_TRUE(allocate_mbufs(first->get(), mbufs.data(), 2));
  ASSERT_TRUE(allocate_mbufs(second->get(), &mbufs[2], 2));
  free_mbufs(mbufs.data(), 4);
  EXPECT_EQ(rte_mempool_in_use_count(first->get()), 0u) << "of two pools";
  EXPECT_EQ(rte_mempool_in_use_count(second->get()), 0u);

  ASSERT_TRUE(allocate_mbufs(first->get(), mbufs.data(), 1));
  rte_mbuf_refcnt_update(mbufs[0], 1);
  free_mbufs(mbufs.data(), 1);
  EXPECT_EQ(out(), 1u) << "somebody else has it";
  free_mbufs(mbufs.data(), 1);
  EXPECT_EQ(out(), 0u);

  ASSERT_TRUE(allocate_mbufs(first->get(), mbufs.data(), 2));
  for (rte_mbuf* const mbuf : std::span(mbufs).first(2)) {
    ASSERT_NE(rte_pktmbuf_append(mbuf, 100), nullptr);
  }
  ASSERT_EQ(rte_pktmbuf_chain(mbufs[0], mbufs[1]), 0);
  free_mbufs(mbufs.data(), 1);
  EXPECT_EQ(out(), 0u) << "both of the chain";
}

// What allocate_mbufs() leaves as it is has to be right in a pool.
TEST(MbufPools, ABufferThatComesBackIsAsNew) {
  auto pool = make_pool(128, 576);
  ASSERT_TRUE(pool);
  std::array<rte_mbuf*, 2> mbufs{};
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(allocate_mbufs(pool->get(), mbufs.data(), 2));
    for (rte_mbuf* const mbuf : mbufs) {
      const char* reason = nullptr;
      EXPECT_EQ(rte_mbuf_check(mbuf, 1, &reason), 0) << reason;
      EXPECT_EQ(mbuf->next, nullptr);
      EXPECT_EQ(rte_mbuf_refcnt_read(mbuf), 1);
      EXPECT_EQ(mbuf->pkt_len, 0u);
      EXPECT_EQ(mbuf->ol_flags, 0u);
      EXPECT_EQ(rte_pktmbuf_headroom(mbuf), RTE_PKTMBUF_HEADROOM);
      mbuf->ol_flags = RTE_MBUF_F_TX_TCP_CKSUM;
      ASSERT_NE(rte_pktmbuf_append(mbuf, 100), nullptr);
    }
    ASSERT_EQ(rte_pktmbuf_chain(mbufs[0], mbufs[1]), 0);
    rte_pktmbuf_free(mbufs[0]);
  }
}

TEST(StartDevice, SaysWhatTheDeviceRefuses) {
  const auto echo = open_echo();
  ASSERT_NE(echo, nullptr);
  auto pool = make_pool(128, 576);
  ASSERT_TRUE(pool);
  rte_mempool* const mine = pool->get();
  DeviceSetup setup;
  setup.name = "it";
  setup.ring_size = 64;
  expect_refused(start_device(RTE_MAX_ETHPORTS, setup, {&mine, 1}), ErrorCode::Environment,
                 "device it refuses its facts (MTU 1500, ring 64): No such device");
  // It runs already.
  expect_refused(
      start_device(number_of_echo(), setup, {&mine, 1}), ErrorCode::Environment,
      "device it refuses the configuration (MTU 1500, ring 64): Device or resource busy");
}

// Drivers return -1 for whatever failed; only what says that rights lack is about rights.
TEST(Refusals, MinusOneIsNotAMissingRight) {
  EXPECT_EQ(code_of(-1), ErrorCode::Environment);
  EXPECT_EQ(reason_of(-1), "its driver gives no reason (-1)");
  EXPECT_EQ(code_of(-EACCES), ErrorCode::PermissionDenied);
  EXPECT_EQ(reason_of(-EACCES), "Permission denied");
  EXPECT_EQ(code_of(-ENOMEM), ErrorCode::ResourceExhausted);
  EXPECT_EQ(code_of(-ENOTSUP), ErrorCode::Unsupported);
  EXPECT_EQ(code_of(-EINVAL), ErrorCode::Unsupported);
}

TEST(OpenPort, TellsWhatItsDeviceHasNoMemoryFor) {
  expect_refused(open_port("net_null5,size=1073741824"), ErrorCode::ResourceExhausted,
                 "device net_null5 refuses a receive queue (MTU 1500, ring 1024): Cannot allocate "
                 "memory");
  EXPECT_TRUE(open_port("net_null5")) << "it was closed and unplugged";
}

// net_failsafe promises to spread TCP and takes no table: it is stopped, and started with one
// queue.
TEST(StartDevice, ADeviceThatTakesNoTableIsOneQueue) {
  PortOptions options;
  options.pool_size = 512;
  options.ring_size = 64;
  test::Logged logged;
  auto ports = open_queues("net_failsafe5,dev(net_null5)", 4, options);
  ASSERT_TRUE(ports) << ports.error().message;
  ASSERT_EQ(ports->size(), 1u);
  EXPECT_EQ(ports->front()->info().spread.queues, 1);
  EXPECT_NE(logged.take().find("net_failsafe5: one queue instead of 4: "), std::string::npos);
  std::array<port::Packet, 1> packet;
  ASSERT_TRUE(ports->front()->alloc(packet));
  packet[0].length = 64;
  EXPECT_EQ(ports->front()->tx_burst(packet, base::Now()), 1u) << "it runs";
}

/// On a thread of its own, whose rights and networks go with it.
template <typename F>
void aside(F&& body) {
  std::thread(std::forward<F>(body)).join();
}

TEST(OpenPort, PacketSocketsNeedARight) {
  Status status;
  aside([&] {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, 2> rights{};
    syscall(SYS_capget, &header, rights.data());
    rights[0].effective &= ~(1u << CAP_NET_RAW);
    syscall(SYS_capset, &header, rights.data());
    if (auto port = open_port("net_af_packet8,iface=lo"); !port) {
      status = tl::unexpected(port.error());
    }
  });
  expect_refused(status, ErrorCode::PermissionDenied,
                 "no right to open packet sockets on lo: run as root or with CAP_NET_RAW");
}

TEST(OpenPort, AnInterfaceTakesNoMoreThanItsMtu) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make network namespaces";
  Status status;
  bool made = false;
  aside([&] {
    made = unshare(CLONE_NEWNET) == 0;
    if (!made) return;
    ifreq request{};
    std::strcpy(request.ifr_name, "lo");
    request.ifr_mtu = 1000;
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    EXPECT_EQ(ioctl(fd, SIOCSIFMTU, &request), 0);
    close(fd);
    if (auto port = open_port("net_af_packet8,iface=lo"); !port) {
      status = tl::unexpected(port.error());
    }
  });
  if (!made) GTEST_SKIP() << "this machine allows no network namespaces";
  expect_refused(status, ErrorCode::InvalidArgument,
                 "interface lo has MTU 1000, not 1500: `ip link set lo mtu 1500`, or configure a "
                 "smaller MTU");
}

/// A device receives what it was given: frames of several mbufs.
class Chains : public ::testing::Test {
 protected:
  void SetUp() override {
    port_ = open_echo();
    ASSERT_NE(port_, nullptr);
  }
  /// A buffer with `length` octets, from `offset` on, that count on.
  rte_mbuf* part(uint16_t offset, uint16_t length) {
    std::array<port::Packet, 1> packet;
    EXPECT_TRUE(port_->alloc(packet));
    auto* mbuf = reinterpret_cast<rte_mbuf*>(packet[0].buffer);
    mbuf->data_off = offset;
    mbuf->data_len = length;
    mbuf->pkt_len = length;
    for (uint16_t i = 0; i < length; ++i) *rte_pktmbuf_mtod_offset(mbuf, uint8_t*, i) = next_++;
    return mbuf;
  }
  /// As one frame: `length` octets from `offset` of a buffer on, and `more` in another one.
  void send(uint16_t offset, uint16_t length, uint16_t more) {
    rte_mbuf* first = part(offset, length);
    rte_mbuf* second = part(0, more);
    ASSERT_EQ(rte_pktmbuf_chain(first, second), 0);
    ASSERT_EQ(rte_eth_tx_burst(number_of_echo(), 0, &first, 1), 1);
  }
  uint16_t buffer_octets() {
    rte_mbuf* one = part(0, 0);
    const uint16_t octets = one->buf_len;
    rte_pktmbuf_free(one);
    return octets;
  }
  void expect_whole(uint32_t length) {
    std::array<port::Packet, 4> packets;
    ASSERT_EQ(port_->rx_burst(packets, base::Now()), 1u);
    ASSERT_EQ(packets[0].length, length);
    for (uint32_t i = 0; i < length; ++i) ASSERT_EQ(packets[0].data[i], static_cast<uint8_t>(i));
    port_->free(std::span(packets).first(1));
  }
  void expect_nothing() {
    std::array<port::Packet, 4> packets;
    EXPECT_EQ(port_->rx_burst(packets, base::Now()), 0u);
  }

  std::unique_ptr<port::Port> port_;
  uint8_t next_ = 0;
};

TEST_F(Chains, BecomeOneRunOfOctetsInTheFirstBuffer) {
  send(RTE_PKTMBUF_HEADROOM, 100, 300);
  expect_whole(400);
  EXPECT_EQ(port_->counters().rx_linearised, 1u);
  EXPECT_EQ(port_->counters().rx_frames, 1u);
  EXPECT_EQ(port_->counters().rx_octets, 400u);
}

TEST_F(Chains, BecomeOneRunOfOctetsInABufferOfOurOwn) {
  send(buffer_octets() - 60, 60, 400);  // nothing fits behind the first
  expect_whole(460);
  EXPECT_EQ(port_->counters().rx_linearised, 1u);
  EXPECT_EQ(port_->counters().rx_dropped, 0u);
}

TEST_F(Chains, LongerThanABufferAreDropped) {
  send(0, buffer_octets(), 1);
  expect_nothing();
  EXPECT_EQ(port_->counters().rx_dropped, 1u);
  EXPECT_EQ(port_->counters().rx_linearised, 0u);
  EXPECT_EQ(port_->counters().alloc_failed, 0u);
}

TEST_F(Chains, WithoutABufferOfOurOwnAreDropped) {
  send(buffer_octets() - 60, 60, 400);
  std::vector<port::Packet> all(small().pool_size);
  while (!port_->alloc(all)) all.pop_back();
  const uint64_t failed = port_->counters().alloc_failed;
  expect_nothing();
  EXPECT_EQ(port_->counters().rx_dropped, 1u);
  EXPECT_EQ(port_->counters().alloc_failed, failed + 1);
  port_->free(all);
}

// What came to DPDK's interrupt thread before is done when it is drained.
TEST(InterruptThread, IsDrainedOfWhatCameBefore) {
  static std::atomic<int> served{0};
  for (int i = 1; i <= 3; ++i) {
    ASSERT_EQ(rte_eal_alarm_set(
                  1, [](void*) { ++served; }, nullptr),
              0);
    EXPECT_TRUE(drain_interrupt_thread());
    EXPECT_EQ(served.load(), i);
  }
}

// DPDK has RTE_MAX_LCORE places, of which main() has one.
TEST(Threads, NoMoreThanDpdkHasPlacesFor) {
  constexpr int kThreads = RTE_MAX_LCORE + 1;
  std::barrier all(kThreads);
  std::atomic<int> refused{0};
  std::atomic<int> wrong{0};
  const auto one = [&] {
    const Status status = Eal::register_thread();
    if (!status) {
      ++refused;
      if (status.error().code != ErrorCode::ResourceExhausted ||
          !status.error().message.starts_with("DPDK has no place for another thread: ")) {
        ++wrong;
      }
    }
    all.arrive_and_wait();
    if (status) Eal::unregister_thread();
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(one);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refused.load(), kThreads - (RTE_MAX_LCORE - 1));
  EXPECT_EQ(wrong.load(), 0);
  aside([] {
    EXPECT_TRUE(Eal::register_thread()) << "the places are free again";
    Eal::unregister_thread();
  });
}

/// Takes all memory that DPDK has, and gives it back piece by piece.
class NoMemory : public ::testing::Test {
 protected:
  static constexpr size_t kPiece = 128 << 10;
  void SetUp() override {
    for (const size_t size : {size_t{1} << 20, kPiece, size_t{1024}, size_t{64}}) {
      auto& taken = size == kPiece ? pieces_ : others_;
      while (void* memory = rte_malloc(nullptr, size, 0)) taken.push_back(memory);
    }
  }
  void TearDown() override {
    for (auto* taken : {&pieces_, &others_}) {
      for (void* memory : *taken) rte_free(memory);
    }
  }
  /// One of the large ones becomes small ones, which lie side by side.
  void break_one() {
    rte_free(others_.front());
    others_.erase(others_.begin());
    while (void* memory = rte_malloc(nullptr, kPiece, 0)) pieces_.push_back(memory);
  }

  std::vector<void*> pieces_;
  std::vector<void*> others_;
};

TEST_F(NoMemory, ForAWire) {
  expect_refused(open_ring_pair("poor_a", "poor_b", small()), ErrorCode::ResourceExhausted,
                 "no memory for 128 buffers of ");
}

TEST_F(NoMemory, ForTheFloorOfAMeasurement) {
  expect_refused(PathFloor::create({}), ErrorCode::ResourceExhausted,
                 "no memory for the floor's buffers: raise eal.memory_mb");
}

// The buffers come first, the table behind them: between nothing and enough there is a point where
// the one fits and the other does not.
TEST_F(NoMemory, ForTheTableOfAReassembler) {
  const ReassemblerOptions options{.datagrams = 1024, .mtu = 576};
  for (int i = 0; i < 16; ++i) break_one();
  bool buffers_fit = false;
  while (!buffers_fit && !pieces_.empty()) {
    rte_free(pieces_.back());
    pieces_.pop_back();
    const auto reassembler = make_reassembler(options);
    ASSERT_FALSE(reassembler) << "the table never was what did not fit";
    EXPECT_EQ(reassembler.error().code, ErrorCode::ResourceExhausted);
    const std::string& said = reassembler.error().message;
    buffers_fit = said.starts_with("no memory for a table of 1024 fragmented datagrams: ");
    EXPECT_TRUE(buffers_fit || said.starts_with("no memory for 8200 buffers of ")) << said;
  }
  EXPECT_TRUE(buffers_fit);
}

}  // namespace
}  // namespace rnic::dpdk
