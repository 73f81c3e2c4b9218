// A client of net_memif whose server turns it away, or has gone, connects again by itself.

#include "dpdk/memif_redial.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <string>

#include "dpdk/dpdk.hpp"
#include "wakeup/descriptor.hpp"

namespace rnic::dpdk {
namespace {

constexpr base::Now kAnyTime = base::from_nanos(0);

/// Where a server of net_memif listens, though no device stands behind it.
class Server {
 public:
  Server() {
    std::string pattern = (std::filesystem::temp_directory_path() / "memif-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    listen_again();
  }
  ~Server() { std::filesystem::remove_all(folder_); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] std::string path() const { return folder_ + "/memif"; }
  void listen_again() {
    socket_ = descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path().c_str(), sizeof address.sun_path - 1);
    ASSERT_EQ(bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(listen(socket_.get(), 4), 0);
  }
  void go() {
    socket_ = {};
    std::filesystem::remove(path());
  }
  /// \return whether somebody has connected, who is turned away
  [[nodiscard]] bool turns_one_away() {
    return descriptor(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC)).is_open();
  }

 private:
  static wakeup::Descriptor descriptor(int number) {
    return wakeup::Descriptor::open([number] { return number; });
  }

  std::string folder_;
  wakeup::Descriptor socket_;
};

class MemifClient : public ::testing::Test {
 protected:
  void SetUp() override {
    auto port = open_port("net_memif9,role=client,id=0,socket=" + server_.path() +
                          ",socket-abstract=no");
    ASSERT_TRUE(port) << port.error().message;
    port_ = std::move(*port);
    ASSERT_TRUE(server_.turns_one_away());
  }
  void look(uint32_t times) {
    for (uint32_t i = 0; i < times; ++i) EXPECT_EQ(port_->link(), port::LinkState::Down);
  }
  /// Nothing is received, and what is sent is not taken and stays the caller's.
  void expect_still() {
    std::array<port::Packet, 4> packets;
    EXPECT_EQ(port_->rx_burst(packets, kAnyTime), 0u);
    ASSERT_TRUE(port_->alloc(std::span(packets).first(1)));
    packets[0].length = 60;
    EXPECT_EQ(port_->tx_burst(std::span(packets).first(1), kAnyTime), 0u);
    port_->free(std::span(packets).first(1));
  }

  Server server_;
  std::unique_ptr<port::Port> port_;
};

TEST_F(MemifClient, ThatWasTurnedAwayConnectsAgain) {
  for (int times = 0; times < 3; ++times) {
    look(MemifRedial::kLooksBetween - 1);
    EXPECT_FALSE(server_.turns_one_away()) << "a start-up has its time";
    look(1);
    EXPECT_TRUE(server_.turns_one_away());
    expect_still();
  }
}

TEST_F(MemifClient, WhoseServerIsGoneConnectsWhenItIsThere) {
  server_.go();
  look(3 * MemifRedial::kLooksBetween);
  expect_still();
  server_.listen_again();
  look(MemifRedial::kLooksBetween);
  EXPECT_TRUE(server_.turns_one_away());
  expect_still();
}

}  // namespace
}  // namespace rnic::dpdk
