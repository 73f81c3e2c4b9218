// Where a device listens for RDMA connections: one address or all, IPv4 and IPv6.

#include "device_pair.hpp"

namespace rnic::device {
namespace {

constexpr IpAddress v6(uint64_t number) { return {0xfd00'0000'0000'0000, number}; }
const IpAddress kSecond = IpAddress::v4(0x0a0000c8);

class Listening : public DevicePair {
 protected:
  Listening()
      : DevicePair([](DeviceConfig& config) {
          const bool is_left = config.name == "left";
          config.net.addresses = {{v6(is_left ? 1 : 2), 64}};
          if (!is_left) config.net.addresses.push_back({kSecond, 24});
        }) {}

  /// A connection to that address comes about, and says so at both ends.
  bool reaches(const IpAddress& address, uint16_t port, const ConnectOptions& options = {}) {
    QueuePair* from = left().make_qp();
    QueuePair* to = right().make_qp();
    const Endpoint there{address, port};
    EXPECT_TRUE(left().device->connect(*from, there, {}, now_, options).has_value());
    run_until(
        [&] { return right().has<event::ConnectRequest>() || left().has<event::ConnectFailed>(); });
    const auto request = right().take<event::ConnectRequest>();
    if (!request) return !left().take<event::ConnectFailed>().has_value();
    EXPECT_EQ(request->local, there);
    EXPECT_TRUE(right().device->accept(request->request, *to, {}, now_).has_value());
    EXPECT_TRUE(run_until(
        [&] { return left().has<event::Established>() && right().has<event::Established>(); }));
    EXPECT_EQ(left().take<event::Established>()->remote, there);
    EXPECT_TRUE(right().take<event::Established>());
    return true;
  }
};

TEST_F(Listening, EveryAddressOfBothFamilies_CM_05) {
  ASSERT_TRUE(right().device->listen(100).has_value());
  for (const auto& address : {right_end().address, kSecond, v6(2)}) {
    EXPECT_TRUE(reaches(address, 100)) << to_string(address);
  }
  EXPECT_FALSE(reaches(v6(2), 101));
}

TEST_F(Listening, OneAddressOnly_CM_05) {
  for (const auto& only : {right_end().address, kSecond, v6(2)}) {
    ASSERT_TRUE(right().device->listen(Endpoint{only, 200}).has_value());
    for (const auto& address : {right_end().address, kSecond, v6(2)}) {
      EXPECT_EQ(reaches(address, 200), address == only) << to_string(address);
    }
    ASSERT_TRUE(right().device->unlisten(Endpoint{only, 200}).has_value());
    EXPECT_FALSE(reaches(only, 200));
  }
}

// Listeners of one port have their own framing each, and keep it when another one goes.
TEST_F(Listening, EachListenerHasItsFraming) {
  const ConnectOptions framed{.framing = rnic::Framing::Tuf};
  const Endpoint first{right_end().address, 300}, second{kSecond, 300};
  ASSERT_TRUE(right().device->listen(first, {.framing = rnic::Framing::Tuf}).has_value());
  ASSERT_TRUE(right().device->listen(second).has_value());
  EXPECT_TRUE(reaches(first.address, 300, framed));
  EXPECT_TRUE(reaches(second.address, 300));
  ASSERT_TRUE(right().device->unlisten(second).has_value());
  EXPECT_FALSE(right().device->unlisten(second).has_value());
  EXPECT_TRUE(reaches(first.address, 300, framed));
  EXPECT_FALSE(reaches(first.address, 300));
}

// The framing of a listener goes with it: whoever listens there next has the device's.
TEST_F(Listening, AFramingEndsWithItsListener) {
  const Endpoint end{right_end().address, 400};
  ASSERT_TRUE(right().device->listen(end, {.framing = rnic::Framing::Tuf}).has_value());
  ASSERT_TRUE(right().device->unlisten(end).has_value());
  ASSERT_TRUE(right().device->listen(end).has_value());
  EXPECT_TRUE(reaches(end.address, end.port));
  EXPECT_FALSE(reaches(end.address, end.port, {.framing = rnic::Framing::Tuf}));
}

TEST_F(Listening, AForeignAddressIsRefused) {
  const auto status = right().device->listen(Endpoint{v6(77), 200});
  ASSERT_FALSE(status.has_value());
  EXPECT_NE(status.error().message.find("fd00::4d"), std::string::npos);
}

}  // namespace
}  // namespace rnic::device
