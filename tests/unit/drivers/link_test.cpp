// What ports over DPDK and the kernel say of their link, and what memory they share with it. The
// EAL is started by main() in dpdk_test.cpp.

#include <gtest/gtest.h>
#include <net/if.h>
#include <rte_ethdev.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/log.hpp"
#include "device/device.hpp"
#include "device/link_watch.hpp"
#include "dpdk/dpdk.hpp"

// Of DPDK, for its drivers: what one does whose device was taken away.
extern "C" rte_eth_dev* rte_eth_dev_get_by_name(const char* name);
extern "C" int rte_eth_dev_callback_process(rte_eth_dev* device, rte_eth_event_type what,
                                            void* facts);

namespace rnic::dpdk {
namespace {

using port::LinkState;

PortOptions small_port() {
  PortOptions options;
  options.pool_size = 512;
  options.ring_size = 64;
  return options;
}

TEST(LinkOfADriver, IsWhatTheDriverSays) {
  auto port = open_port("net_ring7", small_port());
  ASSERT_TRUE(port) << port.error().message;
  uint16_t id = 0;
  ASSERT_EQ(rte_eth_dev_get_port_by_name("net_ring7", &id), 0);
  EXPECT_EQ((*port)->link(), LinkState::Up);
  ASSERT_EQ(rte_eth_dev_set_link_down(id), 0);
  EXPECT_EQ((*port)->link(), LinkState::Down);
  ASSERT_EQ(rte_eth_dev_set_link_up(id), 0);
  EXPECT_EQ((*port)->link(), LinkState::Up);
}

// One of the queues is told, and all of them know.
TEST(LinkOfADriver, ARemovalIsHeardOf) {
  auto ports = open_queues("net_null7,no-rx=1", 2, small_port());
  ASSERT_TRUE(ports) << ports.error().message;
  ASSERT_EQ(ports->size(), 2u);
  for (const auto& each : *ports) EXPECT_EQ(each->link(), LinkState::Up);
  rte_eth_dev* const device = rte_eth_dev_get_by_name("net_null7");
  ASSERT_NE(device, nullptr);
  rte_eth_dev_callback_process(device, RTE_ETH_EVENT_INTR_RMV, nullptr);
  for (const auto& each : *ports) EXPECT_EQ(each->link(), LinkState::Gone);
  ports->clear();
  auto again = open_port("net_null7", small_port());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ((*again)->link(), LinkState::Up) << "another device";
}

TEST(LinkOfAWire, IsMemoryThatNobodyWatches) {
  auto pair = open_ring_pair("link_a", "link_b");
  ASSERT_TRUE(pair) << pair.error().message;
  EXPECT_EQ(pair->first->link(), std::nullopt);
  EXPECT_EQ(pair->second->link(), std::nullopt);
}

/// The test runs on a thread of its own, in a network of its own.
class LinkOfAnInterface : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can make network namespaces";
    base::set_log_level(base::LogLevel::Off);
  }
  /// Skips where there are no namespaces. \param prepare a command of the shell
  template <typename F>
  void in_network(const std::string& prepare, F&& body) {
    bool made = false;
    std::thread([&] {
      made = unshare(CLONE_NEWNET) == 0 && run(prepare);
      if (made) body();
    }).join();
    if (!made) GTEST_SKIP() << "this machine allows no network namespaces";
  }
  static bool run(const std::string& command) { return std::system(command.c_str()) == 0; }
};

/// A device that looks at its link in virtual time.
class Watched {
 public:
  explicit Watched(port::Port& port) : device_(config(), port, now_) {}
  /// Lets the device look at its link. \return the event that it tells
  std::string told() {
    now_ += device::LinkWatch::kInterval;
    device_.poll(now_);
    std::string names;
    while (const auto event = device_.poll_event()) names += to_string(*event);
    return names;
  }

 private:
  static device::DeviceConfig config() {
    device::DeviceConfig config;
    config.net.address = IpAddress::v4(0x0a000001);
    return config;
  }

  base::Now now_{std::chrono::seconds(1)};
  device::Device device_;
};

TEST_F(LinkOfAnInterface, IsThatOfAPacketSocket_VERBS_20_b) {
  const std::string wire =
      "ip link add near type veth peer far && ip link set near up && ip link set far up";
  in_network(wire, [] {
    auto port = open_port("net_af_packet7,iface=near", small_port());
    ASSERT_TRUE(port) << port.error().message;
    Watched device(**port);
    EXPECT_EQ(device.told(), "");
    ASSERT_TRUE(run("ip link set far down"));
    EXPECT_EQ(device.told(), "port down") << "the other end is";
    EXPECT_EQ(device.told(), "");
    ASSERT_TRUE(run("ip link set far up"));
    EXPECT_EQ(device.told(), "port up");
    ASSERT_TRUE(run("ip link set near down"));
    EXPECT_EQ(device.told(), "port down") << "this end is";
    ASSERT_TRUE(run("ip link set near up"));
    EXPECT_EQ(device.told(), "port up");
    ASSERT_TRUE(run("ip link del near"));
    EXPECT_EQ(device.told(), "device fatal");
    EXPECT_EQ(device.told(), "");
  });
}

/// The mappings of this process, as /proc/self/maps describes them.
struct Mappings {
  int of_sockets = 0;
  std::string writable_code;  ///< the lines of memory that can be written and run as code
};

Mappings mappings() {
  Mappings found;
  std::ifstream file("/proc/self/maps");
  for (std::string line; std::getline(file, line);) {
    const std::string rights = line.substr(line.find(' ') + 1, 4);
    if (line.find(" socket:[") != std::string::npos) ++found.of_sockets;
    if (rights[1] == 'w' && rights[2] == 'x') found.writable_code += line + "\n";
  }
  return found;
}

// What a peer sends stands in memory that the kernel shares with the port. None of it is code.
TEST_F(LinkOfAnInterface, ItsPacketsAreNoCode_DDP_8_3_1_03) {
  const std::string wire =
      "ip link add near type veth peer far && ip link set near up && ip link set far up";
  in_network(wire, [] {
    auto port = open_port("net_af_packet8,iface=near", small_port());
    ASSERT_TRUE(port) << port.error().message;
    const Mappings found = mappings();
    EXPECT_EQ(found.of_sockets, 2) << "DPDK maps the rings, and so does the port";
    EXPECT_EQ(found.writable_code, "");
  });
}

/// Moves the interface to a network that lasts as long as `body` runs.
template <typename F>
void elsewhere(const std::string& interface, F&& body) {
  std::latch entered(1);
  std::latch done(1);
  bool made = false;
  long owner = 0;
  std::thread other([&] {
    made = unshare(CLONE_NEWNET) == 0;
    owner = syscall(SYS_gettid);
    entered.count_down();
    done.wait();
  });
  entered.wait();
  const std::string move = "ip link set " + interface + " netns " + std::to_string(owner);
  EXPECT_TRUE(made && std::system(move.c_str()) == 0) << move;
  body();
  done.count_down();
  other.join();
}

TEST_F(LinkOfAnInterface, IsThatOfATap_VERBS_20_b) {
  if (access("/dev/net/tun", R_OK | W_OK) != 0) {
    GTEST_SKIP() << "no /dev/net/tun to make a tap with";
  }
  in_network("true", [] {
    auto port = open_port("net_tap7,iface=rnictap", small_port());
    ASSERT_TRUE(port) << port.error().message;
    EXPECT_EQ((*port)->link(), LinkState::Up);
    ASSERT_TRUE(run("ip link set rnictap down"));
    EXPECT_EQ((*port)->link(), LinkState::Down);
    ASSERT_TRUE(run("ip link set rnictap up"));
    EXPECT_EQ((*port)->link(), LinkState::Up);
    ASSERT_TRUE(run("ip link del rnictap"));
    EXPECT_EQ((*port)->link(), LinkState::Gone);
  });
}

// There it works as before, but is not to be seen from here.
TEST_F(LinkOfAnInterface, ATapInAnotherNamespaceCountsAsUp) {
  if (access("/dev/net/tun", R_OK | W_OK) != 0) {
    GTEST_SKIP() << "no /dev/net/tun to make a tap with";
  }
  in_network("true", [] {
    auto port = open_port("net_tap7,iface=rnictap", small_port());
    ASSERT_TRUE(port) << port.error().message;
    elsewhere("rnictap", [&] { EXPECT_EQ((*port)->link(), LinkState::Up); });
  });
}

}  // namespace
}  // namespace rnic::dpdk
