// Ports that are reserved for the application or for one of its consumers: what they count for, who
// may use them, and what becomes of them.

#include "stream_pair.hpp"

namespace rnic::device {
namespace {

using llp::PortClaim;

class ReservedPortsTest : public Streams {
 protected:
  ReservedPortsTest() : ReservedPortsTest([](DeviceConfig&) {}) {}
  explicit ReservedPortsTest(const Tweak& tweak)
      : Streams([&](DeviceConfig& config) {
          config.limits.max_framed_streams = 2;
          tweak(config);
        }) {}

  Device& device() { return *left().device; }
  ReservedPorts& ports() { return device().reserved_ports(); }
  [[nodiscard]] Endpoint here(uint16_t port) { return {device().config().net.address, port}; }
  uint32_t make(const std::string& name, const ResourceCounts& quotas = {}) {
    return *device().consumers().create({.name = name, .quotas = quotas});
  }
  uint64_t used(uint32_t consumer) { return device().consumers().info(consumer)->used.listeners; }
  QueuePair* queue_pair(uint32_t consumer) {
    QueuePairSpec spec;
    spec.pd = *device().alloc_pd(consumer);
    spec.send_cq = spec.receive_cq = *device().create_cq(16, {}, consumer);
    return *device().create_qp(spec);
  }
  Status connect_from(QueuePair* qp, const Endpoint& reserved, const Endpoint& there,
                      PortClaim claim = PortClaim::Reserved) {
    return device().connect(*qp, there, {}, now_, {.source = reserved}, claim);
  }
  template <typename T>
  void expect_error(const T& result, ErrorCode code, const std::string& text) {
    ASSERT_FALSE(result.has_value()) << text;
    EXPECT_EQ(result.error().code, code);
    EXPECT_EQ(result.error().message, text);
    device().validate();
  }
};

TEST_F(ReservedPortsTest, ItsHolderListensThere) {
  const Endpoint local = *ports().reserve(here(9100), 0);
  EXPECT_EQ(local, here(9100));
  const std::string refused =
      "10.0.0.1:9100 is reserved for another use; choose another port (this device's application "
      "has it)";
  expect_error(device().listen(local), ErrorCode::AlreadyExists, "listen: " + refused);
  expect_error(device().listen_stream(local, 4), ErrorCode::AlreadyExists, "listen: " + refused);
  expect_error(ports().reserve(local, 0), ErrorCode::AlreadyExists, "reserve: " + refused);
  expect_error(device().listen(uint16_t{9100}), ErrorCode::AlreadyExists,
               "listen: [::]:9100 is reserved for another use; choose another port (this device's "
               "application has it)");
  EXPECT_EQ(*device().listen(local, {}, 0, PortClaim::Reserved), local);
  device().validate();
  QueuePair* const from = right().make_qp();
  ASSERT_TRUE(right().device->connect(*from, local, {}, now_).has_value());
  ASSERT_TRUE(run_until([&] { return left().has<event::ConnectRequest>(); }));
  EXPECT_EQ(left().take<event::ConnectRequest>()->listener, local);
  expect_error(ports().release(local), ErrorCode::NotFound,
               "destroy: nobody has reserved 10.0.0.1:9100: use what reserve() returned");
  ASSERT_TRUE(device().unlisten(local).has_value());
  EXPECT_TRUE(ports().reserve(local, 0).has_value());
  EXPECT_TRUE(ports().release(local).has_value());
  EXPECT_TRUE(device().listen(local).has_value());
}

TEST_F(ReservedPortsTest, WhoeverListensIsNamed) {
  const uint32_t index = make("index");
  ASSERT_TRUE(device().listen(here(9100), {}, index).has_value());
  expect_error(ports().reserve({{}, 9100}, 0), ErrorCode::AlreadyExists,
               "reserve: [::]:9100 is listened on; choose another port (consumer \"index\" has "
               "it)");
  ASSERT_TRUE(device().listen_stream(here(9200), 4).has_value());
  expect_error(ports().reserve(here(9200), 0), ErrorCode::AlreadyExists,
               "reserve: 10.0.0.1:9200 is listened on; choose another port");
  expect_error(
      ports().reserve({IpAddress::v4(0x0a0000ff), 0}, 0), ErrorCode::InvalidArgument,
      "reserve: 10.0.0.255 is no address of this device: use one of Device::addresses(), or "
      "none for all");
  expect_error(ports().reserve({}, 7), ErrorCode::NotFound,
               "reserve: there is no consumer 7: use one that has its handle");
}

TEST_F(ReservedPortsTest, OfOneConsumerIsUsedByNoOther_SEC_7_1_01) {
  const uint32_t one = make("one"), two = make("two");
  const Endpoint local = *ports().reserve(here(9100), one);
  const std::string refused =
      "another consumer has reserved 10.0.0.1:9100: only that one may use it, so reserve another";
  for (const uint32_t other : {0u, two}) {
    expect_error(device().listen(local, {}, other, PortClaim::Reserved),
                 ErrorCode::PermissionDenied, "listen: " + refused);
    expect_error(connect_from(queue_pair(other), local, right_end()), ErrorCode::PermissionDenied,
                 "connect: " + refused);
  }
  expect_error(device().listen_stream(local, 4, {}, PortClaim::Reserved),
               ErrorCode::PermissionDenied, "listen: " + refused);
  expect_error(device().listen(local, {}, two), ErrorCode::AlreadyExists,
               "listen: 10.0.0.1:9100 is reserved for another use; choose another port (consumer "
               "\"one\" has it)");
  QueuePair* const qp = queue_pair(two);
  expect_error(connect_from(qp, local, right_end(), PortClaim::None), ErrorCode::AlreadyExists,
               "connect: 10.0.0.1:9100 is reserved for another use; choose another port (consumer "
               "\"one\" has it)");
  EXPECT_TRUE(device().listen(local, {}, one, PortClaim::Reserved).has_value());
}

// A reservation has the share of the listener that it may become.
TEST_F(ReservedPortsTest, ItCountsAsAListener_DDP_8_3_2_03) {
  const uint32_t one = make("one", {.listeners = 1});
  const Endpoint local = *ports().reserve({}, one);
  EXPECT_EQ(used(one), 1u);
  expect_error(ports().reserve({}, one), ErrorCode::ResourceExhausted,
               "reserve: consumer \"one\" may have 1 listeners, has 1 and asks for 1 more: give "
               "some back, or raise quotas.listeners or its own quota");
  EXPECT_FALSE(device().listen(here(0), {}, one).has_value());
  EXPECT_EQ(device().consumers().destroy(one).error().code, ErrorCode::WrongState);
  ASSERT_TRUE(device().listen(local, {}, one, PortClaim::Reserved).has_value());
  EXPECT_EQ(used(one), 1u);
  device().validate();
  ASSERT_TRUE(device().unlisten(local, one).has_value());
  EXPECT_EQ(used(one), 0u);
  // Given back, and used up by a connection.
  ASSERT_TRUE(ports().release(*ports().reserve({}, one)).has_value());
  QueuePair* const qp = queue_pair(one);
  const Endpoint source = *ports().reserve({}, one);
  ASSERT_TRUE(connect_from(qp, source, right_end()).has_value());
  EXPECT_EQ(used(one), 0u);
  device().validate();
  // Its handle is gone: the consumer goes with its last port.
  const uint32_t two = make("two");
  const Endpoint last = *ports().reserve({}, two);
  device().consumers().release(two);
  EXPECT_TRUE(device().consumers().info(two).has_value());
  ASSERT_TRUE(ports().release(last).has_value());
  EXPECT_FALSE(device().consumers().info(two).has_value());
}

TEST_F(ReservedPortsTest, AConnectionHasItAsItsSource) {
  QueuePair* const qp = left().make_qp();
  for (const Endpoint& wanted : {here(9100), Endpoint{{}, 9100}}) {
    const Endpoint local = *ports().reserve(wanted, 0);
    // An error leaves the port reserved.
    EXPECT_FALSE(connect_from(qp, local, here(1)).has_value()) << "itself";
    const Endpoint other{IpAddress(0xfd00'0000'0000'0000, 2), kPort};
    EXPECT_FALSE(connect_from(qp, local, other).has_value()) << "another family";
    expect_error(device().listen(here(9100)), ErrorCode::AlreadyExists,
                 "listen: 10.0.0.1:9100 is reserved for another use; choose another port (this "
                 "device's application has it)");
    ASSERT_TRUE(connect_from(qp, local, right_end()).has_value());
    expect_error(
        ports().release(local), ErrorCode::NotFound,
        "destroy: nobody has reserved " + to_string(local) + ": use what reserve() returned");
    ASSERT_TRUE(run_until([&] { return right().has<event::ConnectRequest>(); }));
    const auto asked = right().take<event::ConnectRequest>();
    EXPECT_EQ(asked->remote, here(9100));
    ASSERT_TRUE(device().cancel_connect(*qp).has_value());
    ASSERT_TRUE(run_until([&] { return left().has<event::ConnectFailed>(); }));
    left().take<event::ConnectFailed>();
    run_for(std::chrono::milliseconds(50));  // beyond TIME-WAIT
    ASSERT_TRUE(device().modify_qp(*qp, {.state = QueuePairState::Idle}, now_).has_value());
  }
}

TEST_F(ReservedPortsTest, ItIsNotInItsOwnWay) {
  ASSERT_TRUE(
      connect_from(left().make_qp(), *ports().reserve(here(9100), 0), right_end()).has_value());
  const Endpoint again = *ports().reserve(here(9100), 0);
  expect_error(
      connect_from(left().make_qp(), again, right_end()), ErrorCode::AlreadyExists,
      "connect: 10.0.0.1:9100 to " + to_string(right_end()) + " exists; use another local port");
  EXPECT_TRUE(ports().release(again).has_value());
}

// The second attempt has any free port: that of the first may be in TIME-WAIT.
TEST_F(ReservedPortsTest, AFallBackTakesAnother) {
  ASSERT_TRUE(right().device->listen(right_end(9300), {.start = {.revision = 1}}).has_value());
  QueuePair* const qp = left().make_qp();
  const Endpoint local = *ports().reserve(here(9100), 0);
  const ConnectOptions options{.start = {.revision = 2, .fall_back = true}, .source = local};
  ASSERT_TRUE(
      device().connect(*qp, right_end(9300), {}, now_, options, PortClaim::Reserved).has_value());
  ASSERT_TRUE(run_until([&] { return right().has<event::ConnectRequest>(); }));
  const auto asked = right().take<event::ConnectRequest>();
  EXPECT_EQ(device().device_counters().connects_redialed, 1u);
  EXPECT_EQ(asked->remote.address, local.address);
  EXPECT_NE(asked->remote.port, local.port);
  device().validate();
}

TEST_F(ReservedPortsTest, StreamsListenThere) {
  const Endpoint plain = *ports().reserve(here(9100), 0);
  const Endpoint framed = *ports().reserve(here(9200), 0);
  EXPECT_EQ(used(0), 2u);
  EXPECT_FALSE(device().listen_stream(plain, 0, {}, PortClaim::Reserved)) << "no backlog";
  StreamListener* const listener = *device().listen_stream(plain, 4, {}, PortClaim::Reserved);
  EXPECT_EQ(listener->local(), plain);
  FramingOptions setup;
  setup.send_key = setup.receive_key = 1;
  EXPECT_TRUE(
      device().listen_framed(framed, 2, device().default_options(), setup, PortClaim::Reserved));
  EXPECT_EQ(used(0), 0u) << "the quota is of listeners for RDMA";
  device().validate();
  StreamSocket* const peer = *right().device->connect_stream(plain, {}, now_);
  EXPECT_TRUE(run_until([&] { return peer->is_established(); }));
  listener->stop(now_);
  EXPECT_TRUE(ports().reserve(plain, 0).has_value());
}

class FewListeners : public ReservedPortsTest {
 protected:
  FewListeners() : ReservedPortsTest([](DeviceConfig& config) { config.tcp.max_listeners = 2; }) {}
};

TEST_F(FewListeners, TheDeviceHasALimit) {
  ASSERT_TRUE(ports().reserve(here(9100), 0).has_value());
  ASSERT_TRUE(ports().reserve(here(9200), 0).has_value());
  expect_error(ports().reserve(here(9300), 0), ErrorCode::ResourceExhausted,
               "reserve: all listeners in use; raise tcp.max_listeners");
  EXPECT_EQ(used(0), 2u);
}

}  // namespace
}  // namespace rnic::device
