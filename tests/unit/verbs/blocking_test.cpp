// Calls that wait, on wires, local wires and sockets, inline and threaded.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <thread>

#include "blocking_world.hpp"
#include "support/long_form.hpp"

namespace rnic::test {
namespace {

class Blocking : public ::testing::TestWithParam<Setting> {};

TEST_P(Blocking, MessagesGoBothWaysAndReceivesAreUsedAgain) {
  Adapters world(GetParam());
  auto [a, b] = world.pair();
  const size_t sizes[] = {0, 1, kMaxInline, kMaxInline + 1, 4095, 4096};
  for (uint64_t i = 0; i < 60; ++i) {  // more than there are receives
    pass(a, b, sizes[i % std::size(sizes)], i);
    pass(b, a, sizes[(i + 1) % std::size(sizes)], 1000 + i);
  }
}

TEST_P(Blocking, MessagesWaitInTheirOrderUntilTheyAreTaken) {
  Adapters world(GetParam());
  auto [a, b] = world.pair();
  for (uint64_t i = 0; i < 16; ++i) must(a.send(bytes(300, i), kPatience));
  for (uint64_t i = 0; i < 16; ++i) {
    std::vector<std::byte> got(300);
    EXPECT_EQ(must(b.receive(got, kPatience)).length, 300u);
    EXPECT_EQ(got, bytes(300, i)) << i;
  }
}

TEST_P(Blocking, WhatCannotBeTakenIsSaidAndChangesNothing) {
  Adapters world(GetParam());
  auto [a, b] = world.pair();
  EXPECT_EQ(code_of(a.send(bytes(4097, 1), kPatience)), ErrorCode::InvalidArgument);
  std::vector<std::byte> got(99);
  EXPECT_EQ(code_of(b.receive(got, kNow)), ErrorCode::TimedOut);
  must(a.send(bytes(100, 2), kPatience));
  EXPECT_EQ(code_of(b.receive(got, kPatience)), ErrorCode::MessageSize);
  EXPECT_EQ(code_of(b.receive(got, kPatience)), ErrorCode::MessageSize) << "it stays";
  got.resize(100);
  EXPECT_EQ(must(b.receive(got, kPatience)).length, 100u);
  EXPECT_EQ(got, bytes(100, 2));
  pass(b, a, 64, 3);
}

TEST_P(Blocking, WriteReadAndAtomics) {
  Adapters world(GetParam());
  auto [a, b] = world.pair();
  std::vector<std::byte> from = bytes(300'000, 5);
  std::vector<std::byte> back(from.size());
  std::vector<std::byte> there(from.size());
  auto source = must(world.near.register_memory(from, Access::LocalRead));
  auto sink = must(world.near.register_memory(back, Access::LocalWrite));
  auto target = must(world.far.register_memory(
      there, Access::RemoteWrite | Access::RemoteRead | Access::LocalWrite));
  const RemoteAddress remote{target.stag(), target.address()};
  EXPECT_EQ(must(a.write({source.sge(0, 300'000)}, remote, kPatience)).length, 300'000u);
  EXPECT_EQ(must(a.read({sink.sge(0, 300'000)}, remote, kPatience)).length, 300'000u);
  EXPECT_EQ(there, from) << "a Read finds every Write before it placed";
  EXPECT_EQ(back, from);

  alignas(8) std::array<uint64_t, 1> word{40};
  auto counter = must(world.far.register_memory(std::as_writable_bytes(std::span(word)),
                                                Access::LocalWrite | Access::RemoteAtomic));
  const RemoteAddress at{counter.stag(), counter.address()};
  EXPECT_EQ(must(a.fetch_add(at, 2, kPatience)).original, 40u);
  EXPECT_EQ(must(a.compare_swap(at, 41, 7, kPatience)).original, 42u);
  EXPECT_EQ(word[0], 42u) << "what was there was another number";
  EXPECT_EQ(must(a.compare_swap(at, 42, 7, kPatience)).original, 42u);
  EXPECT_EQ(word[0], 7u);

  SendRequest immediate{.id = 3, .opcode = Opcode::Immediate, .signaled = false};
  immediate.immediate = {1, 2, 3, 4, 5, 6, 7, 8};
  must(a.carry_out(immediate, kPatience));
  std::vector<std::byte> nothing;
  const Completion told = must(b.receive(nothing, kPatience));
  EXPECT_TRUE(told.has_immediate);
  EXPECT_EQ(told.immediate, immediate.immediate);
}

TEST_P(Blocking, SendFromRegisteredMemory) {
  Adapters world(GetParam());
  auto [a, b] = world.pair({.message_size = 70'000, .receives = 2});
  std::vector<std::byte> from = bytes(70'000, 8);
  auto source = must(world.near.register_memory(from, Access::LocalRead));
  must(a.send({source.sge(0, 70'000)}, kPatience));
  std::vector<std::byte> got(70'000);
  EXPECT_EQ(must(b.receive(got, kPatience)).length, 70'000u);
  EXPECT_EQ(got, from);
}

TEST_P(Blocking, WhatThePeerForbidsIsPermissionDenied) {
  Adapters world(GetParam());
  auto [a, b] = world.pair();
  std::vector<std::byte> from(64);
  std::vector<std::byte> there(64);
  auto sink = must(world.near.register_memory(from, Access::LocalWrite));
  auto target = must(world.far.register_memory(there, Access::RemoteWrite));
  EXPECT_EQ(code_of(a.read({sink.sge(0, 64)}, {target.stag(), target.address()}, kPatience)),
            ErrorCode::PermissionDenied);
  std::vector<std::byte> got(64);
  EXPECT_EQ(code_of(b.receive(got, kPatience)), ErrorCode::Protocol);
  EXPECT_FALSE(b.peer_closed());
  EXPECT_EQ(code_of(b.receive(got, kPatience)), ErrorCode::Protocol) << "it stays so";
}

TEST_P(Blocking, AMessageLongerThanThePeersBuffersEndsTheConnection) {
  Adapters world(GetParam());
  auto [a, b] = world.pair({.message_size = 512});
  std::vector<std::byte> from(513);
  auto source = must(world.near.register_memory(from, Access::LocalRead));
  static_cast<void>(a.send({source.sge(0, 513)}, kPatience));
  std::vector<std::byte> got(512);
  EXPECT_EQ(code_of(b.receive(got, kPatience)), ErrorCode::Protocol);
}

TEST_P(Blocking, ACloseInOrder) {
  Adapters world(GetParam());
  auto [a, b] = world.pair();
  must(a.send(bytes(10, 1), kPatience));
  must(a.close(kPatience));
  must(a.close(kPatience));
  std::vector<std::byte> got(10);
  EXPECT_EQ(must(b.receive(got, kPatience)).length, 10u) << "what came before is given";
  EXPECT_FALSE(b.peer_closed());
  EXPECT_EQ(code_of(b.receive(got, kPatience)), ErrorCode::WrongState);
  EXPECT_TRUE(b.peer_closed());
  EXPECT_EQ(code_of(a.send(bytes(10, 1), kPatience)), ErrorCode::WrongState);
  must(b.close(kPatience));
}

TEST_P(Blocking, AnEndThatIsDestroyedResetsTheOther) {
  Adapters world(GetParam());
  auto [a, b] = world.pair();
  a = Connection();
  std::vector<std::byte> got(10);
  EXPECT_EQ(code_of(b.receive(got, kPatience)), ErrorCode::Reset);
  EXPECT_FALSE(b.peer_closed());
}

TEST_P(Blocking, NobodyListens) {
  Adapters world(GetParam());
  EXPECT_EQ(code_of(world.near.connect(world.there(kNobody), kPatience)), ErrorCode::Unreachable);
  const auto by_name = world.near.connect(to_string(world.there().address), kNobody, kPatience);
  EXPECT_EQ(code_of(by_name), ErrorCode::Unreachable);
  EXPECT_TRUE(by_name.error().message.starts_with(to_string(world.there().address)));
}

TEST_P(Blocking, NoSuchHost) {
  Adapters world(GetParam());
  // A label has at most 63 octets (RFC 1035 s.2.3.4), so nobody is asked for it.
  const std::string host(70, 'x');
  EXPECT_EQ(code_of(world.near.connect(host, kPort, kPatience)), ErrorCode::NotFound);
}

TEST_P(Blocking, AConnectAndAnAcceptRunOutOfTime) {
  Adapters world(GetParam());
  auto listener = must(world.far.listen(world.there()));
  EXPECT_EQ(listener.local(), world.there());
  EXPECT_EQ(code_of(listener.accept(kNow)), ErrorCode::TimedOut);
  EXPECT_EQ(code_of(world.near.connect(world.there(), kNow)), ErrorCode::TimedOut);
  // The listener passes over that connection, whether it got through or not, and the port still
  // works.
  EXPECT_EQ(code_of(listener.accept(std::chrono::milliseconds(1))), ErrorCode::TimedOut);
  listener = Listener();
  auto [a, b] = world.pair();
  pass(a, b, 10, 1);
}

TEST_P(Blocking, APortThatIsChosenIsToldAndTakesConnections) {
  Adapters world(GetParam());
  auto listener = must(world.far.listen({world.there().address, 0}));
  EXPECT_EQ(listener.local().address, world.there().address);
  ASSERT_NE(listener.local().port, 0);
  EXPECT_EQ(code_of(world.far.listen(listener.local())), ErrorCode::AlreadyExists);
  auto second = must(world.far.listen(0));
  EXPECT_NE(second.local().port, listener.local().port);
  auto [a, b] = must(world.near.connect_pair(world.far, 0, kPatience));
  pass(a, b, 100, 1);
}

TEST_P(Blocking, PeersThatWentAwayArePassedOver) {
  Adapters world(GetParam());
  Device near = world.near.device();
  auto listener = must(world.far.listen(world.there()));
  {
    Side gone(near);
    must(gone.qp.connect(world.there()));
    const auto asked = [&] { return must(world.far.device().limits()).connections == 1; };
    ASSERT_TRUE(world.context.wait_until(asked, kPatience));
  }
  Side stays(near);
  const std::array<uint8_t, 3> words{7, 8, 9};
  must(stays.qp.connect(world.there(), words));
  ConnectionOptions options;
  const std::array<uint8_t, 2> answer{5, 6};
  options.private_data = answer;
  auto accepted = must(listener.accept(kPatience, options));
  EXPECT_TRUE(std::ranges::equal(accepted.peer_data(), words));
  EXPECT_EQ(accepted.local(), world.there());
  EXPECT_NE(accepted.number(), 0u);

  // The queue pair was not made by the adapter: its events are left to whoever asks.
  std::optional<Event> event;
  ASSERT_TRUE(world.context.wait_until(
      [&] {
        event = world.near.poll_event();
        return event && std::holds_alternative<event::Established>(*event);
      },
      kPatience));
  EXPECT_EQ(event::common(*event).qp, stays.qp.number());
  EXPECT_TRUE(std::ranges::equal(std::get<event::Established>(*event).private_data, answer));
  EXPECT_EQ(event::common(*event).local, accepted.remote());
}

TEST_P(Blocking, AListenerThatEndsRejectsWhoHasAsked) {
  Adapters world(GetParam());
  Device near = world.near.device();
  auto listener = must(world.far.listen(world.there()));
  Side asks(near);
  must(asks.qp.connect(world.there()));
  const auto asked = [&] {
    return must(world.far.device().counter("device", "connect_requests")) == 1;
  };
  ASSERT_TRUE(world.context.wait_until(asked, kPatience));
  listener = Listener();  // nobody has waited at it
  std::optional<Event> event;
  const auto told = [&] { return (event = world.near.poll_event()).has_value(); };
  ASSERT_TRUE(world.context.wait_until(told, kPatience));
  EXPECT_TRUE(std::holds_alternative<event::Rejected>(*event));
}

TEST_P(Blocking, EventsThatNobodyTakesAreBounded) {
  Adapters world(GetParam());
  Device near = world.near.device();
  Side side(near);
  std::vector<QueuePair> failing;
  for (int i = 0; i < 300; ++i) {
    auto qp = must(side.pd.create_qp(side.send_cq, side.receive_cq, {1, 1, 1, 1}));
    must(qp.connect(world.there(kNobody)));
    ASSERT_TRUE(
        world.context.wait_until([&] { return qp.state() == QueuePairState::Error; }, kPatience));
    EXPECT_EQ(code_of(world.near.connect(world.there(kNobody), kPatience)), ErrorCode::Unreachable);
  }
  EXPECT_GE(world.near.events_lost(), 1u);
  uint64_t kept = 0;
  while (world.near.poll_event()) ++kept;
  EXPECT_EQ(kept, 256u);
}

TEST_P(Blocking, WrongOptions) {
  Adapters world(GetParam());
  const ConnectionOptions wrong[] = {{.message_size = 0},
                                     {.receives = 0},
                                     {.message_size = 4u << 20, .receives = 16},
                                     {.message_size = UINT32_MAX, .receives = UINT32_MAX}};
  for (const ConnectionOptions& options : wrong) {
    EXPECT_EQ(code_of(world.near.connect(world.there(), kPatience, options)),
              ErrorCode::InvalidArgument);
  }
  EXPECT_EQ(code_of(Adapter::open(world.context, "rnic7")), ErrorCode::NotFound);
  must(world.far.listen(kPort));
  auto first = must(world.far.listen(kPort));
  EXPECT_EQ(code_of(world.far.listen(kPort)), ErrorCode::AlreadyExists);
}

// Whoever waits for a peer learns of a mistake of its own at once.
TEST_P(Blocking, AnAcceptLooksAtItsOptionsFirst) {
  Adapters world(GetParam());
  Listener listener = must(world.far.listen(kPort));
  const std::vector<uint8_t> much(kMaxPrivateData + 1);
  ConnectionOptions wrong[4];
  wrong[0].private_data = much;
  wrong[1].connect.start.revision = 3;
  wrong[2].connect.ord_required = kReadsByApplication;
  wrong[3].connect.tcp.dscp = 64;
  for (const ConnectionOptions& options : wrong) {
    EXPECT_EQ(code_of(listener.accept(kForever, options)), ErrorCode::InvalidArgument);
  }
  ConnectionOptions good;
  good.private_data = std::span(much).first(kMaxPrivateData);
  good.connect.ord_required = kReadsByApplication - 1u;
  EXPECT_EQ(code_of(listener.accept(kNow, good)), ErrorCode::TimedOut);
}

// Two adapters of one device would take each other's events.
TEST_P(Blocking, ADeviceHasOneAdapter) {
  Context context = must(Context::open(config_of(GetParam())));
  std::optional<Adapter> first(must(Adapter::open(context, "rnic0")));
  EXPECT_EQ(code_of(Adapter::open(context, "rnic0")), ErrorCode::AlreadyExists);
  auto listener = std::make_unique<Listener>(must(first->listen(kPort)));
  first.reset();
  EXPECT_EQ(code_of(Adapter::open(context, "rnic0")), ErrorCode::AlreadyExists)
      << "the listener waits for its requests";
  listener.reset();
  EXPECT_TRUE(Adapter::open(context, "rnic0").has_value());
  EXPECT_TRUE(Adapter::open(context, "rnic0").has_value()) << "the other one has ended";
}

/// What stands on a context, and the context, each of which may end at any time.
struct Ending {
  std::unique_ptr<Context> context;
  std::unique_ptr<Adapter> near, far;
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Connection> a, b;

  explicit Ending(const Setting& setting)
      : context(std::make_unique<Context>(must(Context::open(config_of(setting))))),
        near(std::make_unique<Adapter>(must(Adapter::open(*context, "rnic0")))),
        far(std::make_unique<Adapter>(must(Adapter::open(*context, "rnic1")))),
        listener(std::make_unique<Listener>(must(far->listen(kNobody)))) {
    auto pair = must(near->connect_pair(*far, kPort, kPatience));
    a = std::make_unique<Connection>(std::move(pair.first));
    b = std::make_unique<Connection>(std::move(pair.second));
  }
  static constexpr size_t kKinds = 6;
  void end(size_t kind) {
    switch (kind) {
      case 0: context.reset(); break;
      case 1: near.reset(); break;
      case 2: far.reset(); break;
      case 3: listener.reset(); break;
      case 4: a.reset(); break;
      case 5: b.reset(); break;
    }
  }
};

TEST_P(Blocking, HandlesEndInAnyOrder) {
  std::array<size_t, Ending::kKinds> order{};
  std::iota(order.begin(), order.end(), size_t{0});
  const uint64_t step = by_form(37u, 1u);
  uint64_t number = 0;
  do {
    if (++number % step != 0) continue;
    Ending world(GetParam());
    must(world.a->send(bytes(100, number), kPatience));  // nobody takes it
    for (const size_t kind : order) {
      world.end(kind);
      if (world.a && world.b) pass(*world.b, *world.a, 200, number + kind);
    }
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(number, 720u);
}

INSTANTIATE_TEST_SUITE_P(All, Blocking, kAllSettings, setting_name);

// Inline alone: a worker may be through before the first look.
void run_out_of_time(On on) {
  Adapters world({.on = on});
  auto [a, b] = world.pair();
  std::vector<std::byte> from(64, std::byte{1});
  std::vector<std::byte> there(64);
  auto source = must(world.near.register_memory(from, Access::LocalRead));
  auto target = must(world.far.register_memory(there, Access::RemoteWrite));
  EXPECT_EQ(code_of(a.write({source.sge(0, 64)}, {target.stag(), target.address()}, kNow)),
            ErrorCode::TimedOut);
  const auto again = a.send(bytes(1, 1), kPatience);
  EXPECT_FALSE(again) << "the connection has ended";
  std::vector<std::byte> got(1);
  EXPECT_EQ(code_of(b.receive(got, kPatience)), ErrorCode::Reset);
}

TEST(BlockingHandles, ARequestThatRunsOutOfTimeGivesItsMemoryBack) {
  for (const On on : {On::Wire, On::Local, On::Sockets}) run_out_of_time(on);
}

TEST(BlockingHandles, EmptyOnesAnswerWrongState) {
  Connection empty;
  std::vector<std::byte> octets(8);
  EXPECT_EQ(code_of(empty.send(octets)), ErrorCode::WrongState);
  EXPECT_EQ(code_of(empty.receive(octets)), ErrorCode::WrongState);
  EXPECT_EQ(code_of(empty.carry_out({})), ErrorCode::WrongState);
  EXPECT_EQ(code_of(empty.close()), ErrorCode::WrongState);
  EXPECT_TRUE(empty.peer_data().empty());
  EXPECT_EQ(empty.number(), 0u);
  EXPECT_EQ(empty.local(), Endpoint{});
  Listener listener;
  EXPECT_EQ(code_of(listener.accept()), ErrorCode::WrongState);
}

// Nothing would drive the other context, and the call would only run out of time.
TEST(BlockingHandles, APairIsOfOneContext) {
  Adapters world({.on = On::Sockets});
  Adapters other({.on = On::Wire});
  const auto refused = world.near.connect_pair(other.far, kPort, kNow);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::InvalidArgument);
  EXPECT_NE(refused.error().message.find("another context"), std::string::npos);
}

TEST(BlockingHandles, MoveAndLeaveEmpty) {
  Adapters world({.on = On::Sockets});
  auto [a, b] = world.pair();
  Connection moved = std::move(a);
  pass(moved, b, 10, 1);
  EXPECT_EQ(code_of(a.close()), ErrorCode::WrongState);  // NOLINT(bugprone-use-after-move)
  auto listener = must(world.far.listen(kNobody));
  Listener other = std::move(listener);
  EXPECT_EQ(other.local().port, kNobody);
  EXPECT_EQ(code_of(listener.accept()), ErrorCode::WrongState);  // NOLINT(bugprone-use-after-move)
  other = must(world.far.listen(kPort));
  must(world.far.listen(kNobody));  // what it stood for before listens no more
  Listener& same = other;
  other = std::move(same);
  EXPECT_EQ(other.local().port, kPort);
  EXPECT_EQ(code_of(world.far.listen(kPort)), ErrorCode::AlreadyExists) << "it listens on";
  Connection& same_end = moved;
  moved = std::move(same_end);
  pass(moved, b, 10, 2);
}

TEST(BlockingThreads, AServerAndItsClients) {
  for (const On on : {On::Wire, On::Local, On::Sockets}) {
    Adapters world({on, true});
    constexpr uint64_t kClients = 4;
    constexpr uint64_t kMessages = 50;
    auto listener = must(world.far.listen(world.there()));
    std::thread server([&] {
      std::vector<std::thread> serving;
      for (uint64_t i = 0; i < kClients; ++i) {
        auto client = listener.accept(kPatience);
        if (!client) break;
        serving.emplace_back([one = std::move(*client)]() mutable {
          std::vector<std::byte> buffer(4096);
          while (const auto got = one.receive(buffer, kPatience)) {
            if (!one.send(std::span(buffer).first(got->length), kPatience)) return;
          }
        });
      }
      for (std::thread& thread : serving) thread.join();
    });
    std::vector<std::thread> clients;
    std::atomic<uint64_t> good = 0;
    for (uint64_t i = 0; i < kClients; ++i) {
      clients.emplace_back([&, i] {
        auto server_end = world.near.connect(to_string(world.there().address), kPort, kPatience);
        if (!server_end) return;
        std::vector<std::byte> back(4096);
        for (uint64_t k = 0; k < kMessages; ++k) {
          const auto message = bytes(1 + (i * 977 + k * 131) % 4096, i * 100 + k);
          if (!server_end->send(message, kPatience)) return;
          const auto got = server_end->receive(back, kPatience);
          if (!got || got->length != message.size()) return;
          if (std::memcmp(back.data(), message.data(), message.size()) == 0) ++good;
        }
        if (!server_end->close(kPatience)) good = 0;
      });
    }
    for (std::thread& client : clients) client.join();
    server.join();
    EXPECT_EQ(good, kClients * kMessages) << name_of(on);
  }
}

TEST(BlockingThreads, ThePeersApplicationSaysNo) {
  Adapters world({On::Sockets, true});
  Device far = world.far.device();
  auto listener = must(world.far.listen(world.there()));
  std::thread no([&] {
    std::optional<Event> event;
    if (!world.context.wait_until([&] { return (event = far.poll_event()).has_value(); },
                                  kPatience)) {
      return;
    }
    if (const auto* request = std::get_if<event::ConnectRequest>(&*event)) {
      static_cast<void>(far.reject(request->request));
    }
  });
  const auto refused = world.near.connect(world.there(), kPatience);
  no.join();
  EXPECT_EQ(code_of(refused), ErrorCode::Rejected);
}

TEST(BlockingFork, AChildHasNothingOfIt) {
  Adapters world({.on = On::Sockets});
  auto [a, b] = world.pair();
  auto listener = must(world.far.listen(kNobody));
  const pid_t child = fork();
  if (child == 0) {
    std::vector<std::byte> octets(8);
    const auto is_abandoned = [](const auto& result) {
      return !result && result.error().code == ErrorCode::Abandoned;
    };
    const bool good = is_abandoned(a.send(octets)) && is_abandoned(b.receive(octets)) &&
                      is_abandoned(listener.accept()) && is_abandoned(a.close()) &&
                      is_abandoned(world.near.connect(world.there())) &&
                      is_abandoned(world.near.connect_pair(world.far, kPort)) &&
                      is_abandoned(world.near.listen(kPort)) && !world.near.poll_event();
    a = Connection();
    listener = Listener();
    _exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  pass(a, b, 100, 1);
}

}  // namespace
}  // namespace rnic::test
