// Ports that a program reserves, tells to others, and uses later: over the wire and over sockets.

#include "rnic/consumer.hpp"
#include "verbs_pair.hpp"

namespace rnic::test {
namespace {

struct ReservingMode {
  const char* name;
  bool sockets;
  bool threaded;
};

class VerbsReserving : public testing::TestWithParam<ReservingMode> {
 protected:
  [[nodiscard]] static Config config() {
    return GetParam().sockets ? socket_config(GetParam().threaded)
                              : loopback_config(GetParam().threaded);
  }
  /// The address of the left device, which over sockets is the right one's, too.
  [[nodiscard]] Endpoint any_port() const { return {world_.left.address(), 0}; }
  template <typename T>
  static void expect_error(const T& result, ErrorCode code, const std::string& word) {
    ASSERT_FALSE(result.has_value()) << word;
    EXPECT_EQ(result.error().code, code) << result.error().message;
    EXPECT_NE(result.error().message.find(word), std::string::npos) << result.error().message;
  }
  /// \return the end of the one that has asked
  Endpoint accept(Side& side) {
    const auto asked = world_.await<event::ConnectRequest>(side.device);
    EXPECT_TRUE(asked);
    must(side.qp.accept(asked->request));
    EXPECT_TRUE(world_.await<event::Established>(side.device, side.qp.number()));
    return asked->remote;
  }

  World world_{config()};
};

INSTANTIATE_TEST_SUITE_P(Modes, VerbsReserving,
                         testing::Values(ReservingMode{"WireInline", false, false},
                                         ReservingMode{"WireThreaded", false, true},
                                         ReservingMode{"SocketsInline", true, false},
                                         ReservingMode{"SocketsThreaded", true, true}),
                         [](const auto& mode) { return mode.param.name; });

TEST_P(VerbsReserving, APortIsToldBeforeItIsListenedOn) {
  PortReservation port = must(world_.left.reserve(any_port()));
  const Endpoint told = port.local();
  EXPECT_EQ(told.address, world_.left.address());
  ASSERT_NE(told.port, 0);
  Side early(world_.right), late(world_.right), here(world_.left);
  must(early.qp.connect(told));
  const auto refused = world_.await<event::ConnectFailed>(world_.right, early.qp.number());
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->end, StreamEnd::Refused);
  expect_error(world_.left.listen(told), ErrorCode::AlreadyExists, "is reserved for another use");
  EXPECT_EQ(must(world_.left.listen(port)), told);
  EXPECT_EQ(port.local(), Endpoint{}) << "the listener has it";
  must(port.destroy());
  must(late.qp.connect(told));
  EXPECT_EQ(accept(here), must(late.qp.local()));
  must(world_.left.unlisten(told));
}

TEST_P(VerbsReserving, AConnectionComesFromThere) {
  must(world_.right.listen(7490));
  PortReservation port = must(world_.left.reserve(any_port()));
  const Endpoint source = port.local();
  Side from(world_.left), to(world_.right);
  const Endpoint there{world_.right.address(), 7490};
  ConnectOptions options;
  options.source = source;
  expect_error(from.qp.connect(port, there, {}, options), ErrorCode::InvalidArgument,
               "leave ConnectOptions::source out");
  expect_error(from.qp.connect(there, {}, options), ErrorCode::AlreadyExists,
               "is reserved for another use");
  const std::vector<uint8_t> too_much(600);
  expect_error(from.qp.connect(port, there, too_much), ErrorCode::InvalidArgument, "600");
  EXPECT_EQ(port.local(), source) << "it is reserved as before";
  must(from.qp.connect(port, there));
  EXPECT_EQ(port.local(), Endpoint{});
  EXPECT_EQ(accept(to), source);
  EXPECT_EQ(must(from.qp.local()), source);
}

TEST_P(VerbsReserving, TheHandleGivesThePortBack) {
  Endpoint local;
  {
    const PortReservation port = must(world_.left.reserve(any_port()));
    local = port.local();
    expect_error(world_.left.reserve(local), ErrorCode::AlreadyExists,
                 "this device's application has it");
  }
  PortReservation port = must(world_.left.reserve(local));
  PortReservation moved = std::move(port);
  EXPECT_EQ(moved.local(), local);
  EXPECT_EQ(port.local(), Endpoint{});
  PortReservation& itself = moved;
  moved = std::move(itself);
  EXPECT_EQ(moved.local(), local);
  moved = must(world_.left.reserve(any_port()));
  EXPECT_TRUE(world_.left.reserve(local)) << "another one took its place in the handle";
  must(moved.destroy());
  EXPECT_EQ(moved.local(), Endpoint{});
  must(moved.destroy());
}

TEST_P(VerbsReserving, WhatIsNoReservationOfTheCaller) {
  PortReservation empty;
  Side side(world_.left);
  const Endpoint there{world_.right.address(), 7490};
  expect_error(world_.left.listen(empty), ErrorCode::WrongState, "empty");
  expect_error(world_.left.listen_stream(empty), ErrorCode::WrongState, "empty");
  expect_error(world_.left.listen_framed(empty), ErrorCode::WrongState, "empty");
  expect_error(side.qp.connect(empty, there), ErrorCode::WrongState, "empty");
  PortReservation port = must(world_.left.reserve(any_port()));
  const std::string other = " is reserved at device rnic0, and not at rnic1";
  expect_error(world_.right.listen(port), ErrorCode::InvalidArgument, other);
  expect_error(world_.right.listen_stream(port), ErrorCode::InvalidArgument, other);
  expect_error(world_.right.listen_framed(port), ErrorCode::InvalidArgument, other);
  Side wrong(world_.right);
  expect_error(wrong.qp.connect(port, there), ErrorCode::InvalidArgument, other);
  QueuePair none;
  expect_error(none.connect(port, there), ErrorCode::WrongState, "empty");
  expect_error(world_.left.reserve(at("192.0.2.1", 0)), ErrorCode::InvalidArgument, "192.0.2.1");
  EXPECT_TRUE(world_.left.listen(port));
}

TEST_P(VerbsReserving, AConsumersIsItsOwn_SEC_7_1_01) {
  Consumer one = must(world_.left.create_consumer({.name = "one", .quotas = {.listeners = 1}}));
  Consumer two = must(world_.left.create_consumer({.name = "two"}));
  PortReservation port = must(one.reserve(any_port()));
  const Endpoint local = port.local();
  EXPECT_EQ(must(one.info()).used.listeners, 1u);
  expect_error(one.reserve(), ErrorCode::ResourceExhausted, "quotas.listeners");
  expect_error(one.destroy(), ErrorCode::WrongState, "reserved port");
  Side side(world_.left);
  for (const auto& error : {two.listen(port).error(), world_.left.listen(port).error(),
                            side.qp.connect(port, {world_.right.address(), 7490}).error()}) {
    EXPECT_EQ(error.code, ErrorCode::PermissionDenied) << error.message;
  }
  expect_error(two.reserve(local), ErrorCode::AlreadyExists, "(consumer \"one\" has it)");
  EXPECT_EQ(must(one.listen(port)), local);
  expect_error(two.reserve(local), ErrorCode::AlreadyExists, "(consumer \"one\" has it)");
  must(one.unlisten(local));
  Consumer gone;
  expect_error(gone.reserve(), ErrorCode::WrongState, "empty");
  expect_error(gone.listen(port), ErrorCode::WrongState, "empty");
}

TEST_P(VerbsReserving, StreamsListenThere) {
  PortReservation plain = must(world_.left.reserve(any_port()));
  PortReservation framed = must(world_.left.reserve(any_port()));
  const Endpoint there = plain.local();
  if (GetParam().sockets) {
    expect_error(world_.left.listen_stream(plain), ErrorCode::Unsupported, "");
    EXPECT_EQ(plain.local(), there);
    return;
  }
  StreamListener listener = must(world_.left.listen_stream(plain));
  EXPECT_EQ(listener.local(), there);
  EXPECT_EQ(plain.local(), Endpoint{});
  Stream near = must(world_.right.connect_stream(there));
  std::optional<Stream> far;
  EXPECT_TRUE(world_.wait([&] {
    if (!far) far = listener.accept();
    return far.has_value();
  }));
  FramedListenerOptions options;
  options.framing.send_key = options.framing.receive_key = world_.left.new_framing_key();
  options.backlog = 0;
  EXPECT_FALSE(world_.left.listen_framed(framed, options));
  options.backlog = 4;
  const Endpoint frames = framed.local();
  FramedStreamListener of_frames = must(world_.left.listen_framed(framed, options));
  EXPECT_EQ(of_frames.local(), frames);
}

// A device and its application may end before the handle.
TEST_P(VerbsReserving, TheHandleMayOutliveTheContext) {
  PortReservation port;
  {
    World world(config());
    port = must(world.left.reserve());
  }
  EXPECT_NE(port.local().port, 0);
}

}  // namespace
}  // namespace rnic::test
