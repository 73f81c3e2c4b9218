// The public API over two inline devices: connections, transfers, errors.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <utility>

#include "verbs_pair.hpp"

namespace rnic::test {
namespace {

template <typename Answer>
ErrorCode code_of(const Answer& status) {
  EXPECT_FALSE(status.has_value());
  if (status) return ErrorCode::InvalidArgument;
  EXPECT_FALSE(status.error().message.empty());
  EXPECT_EQ(status.error().message.find('\n'), std::string::npos) << status.error().message;
  return status.error().code;
}

class Verbs : public ::testing::Test {
 protected:
  World world_;
};

TEST_F(Verbs, NamesItsDevices) {
  EXPECT_EQ(world_.context.device_names(), (std::vector<std::string>{"rnic0", "rnic1"}));
  EXPECT_EQ(to_string(world_.left.address()), "10.0.0.1");
  EXPECT_EQ(world_.right.name(), "rnic1");
  EXPECT_EQ(world_.left.mtu(), 1500u);
  EXPECT_FALSE(world_.context.threaded());
  EXPECT_FALSE(world_.context.environment().empty());
}

// DPDK has less room for a name, and counts each device that is opened.
TEST_F(Verbs, AWireHasANameOfAnyLengthThatIsAllowed) {
  for (const size_t length : {1, 11, 12, 19, 31}) {
    const std::string name(length, 'w');
    const Config config =
        Config::from_text("[[wire]]\nname = \"" + name + "\"\n[[device]]\nport = \"wire:" + name +
                              ":0\"\naddress = \"10.1.0.1/24\"\n",
                          "names.toml");
    for (int i = 0; i < 6; ++i) {
      const auto context = Context::open(config);
      EXPECT_TRUE(context) << length << ": " << context.error().message;
    }
  }
}

TEST_F(Verbs, AMessageHasLessThanTwoToThe32Octets_VERBS_21) {
  Side a(world_.left);
  SendRequest request{.id = 1, .opcode = Opcode::Send};
  request.sges = {{.length = UINT32_MAX}, {.length = 1}};
  const Status refused = a.qp.post_send(request);
  EXPECT_EQ(code_of(refused), ErrorCode::InvalidArgument);
  EXPECT_EQ(refused.error().message, "the message is longer than 2^32 - 1 octets: split it");
  request.sges[1].length = 0;
  EXPECT_TRUE(a.qp.post_send(request)) << "it waits for a connection";
}

// Every number of the enumeration's type: what has no name is refused, and nothing is sent.
TEST_F(Verbs, OpcodesWithoutANameAreRefused) {
  Side a(world_.left);
  Memory memory(a.pd, octets(8, 1), Access::LocalWrite);
  for (uint32_t number = 0; number < 256; ++number) {
    const auto opcode = static_cast<Opcode>(number);
    const bool known = number <= static_cast<uint32_t>(Opcode::FastRegister);
    if (known && opcode != Opcode::Receive) continue;
    EXPECT_EQ(code_of(a.qp.post_send(request(opcode, memory.all()))), ErrorCode::InvalidArgument)
        << number;
  }
}

TEST_F(Verbs, RightsWithoutANameAreRefused) {
  Side a(world_.left);
  std::vector<uint8_t> memory(8);
  constexpr auto kUnknown = static_cast<Access>(1u << 7);
  for (const AccessSet access : {AccessSet(static_cast<Access>(~0u)), AccessSet(kUnknown),
                                 Access::RemoteWrite | static_cast<Access>(1u << 31)}) {
    const auto region = a.pd.register_memory(std::as_writable_bytes(std::span(memory)), access);
    ASSERT_FALSE(region) << access.bits();
    EXPECT_EQ(region.error().code, ErrorCode::InvalidArgument);
  }
}

TEST_F(Verbs, WaitsForAsLongAsIsSaid) {
  const auto waits = [&](auto timeout) {
    int looked = 0;
    return world_.context.wait_until([&] { return ++looked == 10; }, timeout);
  };
  EXPECT_TRUE(waits(kForever));
  EXPECT_TRUE(waits(kForever - std::chrono::nanoseconds(1)));
  EXPECT_TRUE(waits(std::chrono::milliseconds::max())) << "more nanoseconds than there are";
  EXPECT_TRUE(waits(std::chrono::duration<double>(1e300)));
  EXPECT_FALSE(waits(std::chrono::nanoseconds(0)));
  EXPECT_FALSE(waits(std::chrono::nanoseconds(-1)));
  EXPECT_FALSE(waits(std::chrono::nanoseconds::min()));
  EXPECT_FALSE(waits(std::chrono::hours::min()));
}

TEST_F(Verbs, ItsOwnAddressIsNoPeer) {
  Side a(world_.left);
  const Status refused = a.qp.connect({world_.left.address(), 7471});
  EXPECT_EQ(code_of(refused), ErrorCode::InvalidArgument);
  EXPECT_NE(refused.error().message.find("10.0.0.1 is this device's own address"),
            std::string::npos);
  EXPECT_EQ(world_.left.port(), "wire:loop:0");
}

TEST_F(Verbs, TheNextDeadlineIsThatOfTheNearestTimer) {
  Side a(world_.left);
  EXPECT_FALSE(world_.context.next_deadline()) << "nothing is planned";
  must(a.qp.connect({world_.right.address(), 7471}));
  world_.left.poll();
  const auto retransmission = world_.context.next_deadline();
  ASSERT_TRUE(retransmission);
  EXPECT_GE(*retransmission, std::chrono::nanoseconds(0));
  EXPECT_LE(*retransmission, std::chrono::seconds(60))
      << "tcp.rto_max: a stalled test has sent again";
  must(a.qp.post_send(SendRequest{.id = 3, .opcode = Opcode::Send}));
  EXPECT_EQ(world_.context.next_deadline(), std::chrono::nanoseconds(0)) << "the doorbell rings";
}

TEST_F(Verbs, PrivateDataGoesBothWays) {
  // MPA-7.1: as much as the specification allows.
  const std::vector<uint8_t> question = octets(508, 1);
  const std::vector<uint8_t> answer = octets(508, 2);
  Side a(world_.left);
  Side b(world_.right);
  must(world_.right.listen(7471));
  must(a.qp.connect(at("10.0.0.2", 7471), question));
  const auto asked = world_.await<event::ConnectRequest>(world_.right);
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->private_data, question);
  EXPECT_EQ(to_string(asked->remote).substr(0, 9), "10.0.0.1:");
  must(b.qp.accept(asked->request, answer));
  const auto up = world_.await<event::Established>(world_.left, a.qp.number());
  ASSERT_TRUE(up);
  EXPECT_EQ(up->private_data, answer);
  EXPECT_EQ(to_string(up->remote), "10.0.0.2:7471");
  ASSERT_TRUE(world_.await<event::Established>(world_.right, b.qp.number()));
  EXPECT_EQ(code_of(b.qp.accept(asked->request)), ErrorCode::WrongState);
  EXPECT_EQ(code_of(world_.right.reject(asked->request)), ErrorCode::NotFound);
}

TEST_F(Verbs, WriteReadSendOfManySizes) {
  Side a(world_.left);
  Side b(world_.right);
  world_.connect(a, b);
  uint64_t seed = 1;
  for (const uint32_t size : {1u, 2u, 3u, 4u, 5u, 63u, 64u, 65u, 1399u, 1440u, 1460u, 4096u, 65535u,
                              65536u, 1u << 20, (1u << 20) + 13}) {
    exchange(world_, a, b, size, seed += 2);
    if (HasFailure()) FAIL() << size << " octets";
  }
  // The other direction of the same connection.
  World& w = world_;
  Memory from(b.pd, octets(5000, 9), Access::LocalWrite);
  Memory to(a.pd, std::vector<uint8_t>(5000), kEverything);
  must(b.qp.post_send(request(Opcode::Write, from.all(), to, 5)));
  w.expect_done(b.send_cq, 5, 5000);
  must(b.qp.post_send(request(Opcode::Read, from.all(), to, 6)));  // behind the Write: it arrived
  w.expect_done(b.send_cq, 6, 5000);
  EXPECT_EQ(to.data, from.data);
}

TEST_F(Verbs, ZeroLengthMessages) {
  Side a(world_.left);
  Side b(world_.right);
  world_.connect(a, b);
  must(b.qp.post_receive(ReceiveRequest{.id = 4}));
  must(a.qp.post_send(SendRequest{.id = 3, .opcode = Opcode::Send}));
  world_.expect_done(a.send_cq, 3, 0);
  world_.expect_done(b.receive_cq, 4, 0);
}

TEST_F(Verbs, GathersAndScatters) {
  Side a(world_.left);
  Side b(world_.right);
  world_.connect(a, b);
  Memory from(a.pd, octets(16 * 100, 3), Access::LocalRead);
  Memory to(b.pd, std::vector<uint8_t>(16 * 100), Access::LocalWrite);
  SendRequest send{.id = 1, .opcode = Opcode::Send};
  ReceiveRequest into{.id = 2};
  for (uint32_t i = 0; i < kMaxSge; ++i) {
    send.sges.push_back(from.region.sge(i * 100, 100));
    into.sges.push_back(to.region.sge((kMaxSge - 1 - i) * 100, 100));
  }
  must(b.qp.post_receive(into));
  must(a.qp.post_send(send));
  world_.expect_done(b.receive_cq, 2, 1600);
  for (uint32_t i = 0; i < kMaxSge; ++i) {
    EXPECT_TRUE(std::equal(from.data.begin() + i * 100, from.data.begin() + (i + 1) * 100,
                           to.data.begin() + (kMaxSge - 1 - i) * 100));
  }
  send.sges.push_back({});
  EXPECT_EQ(code_of(a.qp.post_send(send)), ErrorCode::InvalidArgument);
}

TEST_F(Verbs, SolicitedAndInvalidate) {
  Side a(world_.left);
  Side b(world_.right);
  world_.connect(a, b);
  Memory from(a.pd, octets(100, 3), Access::LocalRead);
  Memory to(b.pd, std::vector<uint8_t>(100), Access::LocalWrite);
  Memory victim(b.pd, std::vector<uint8_t>(100), kEverything | Access::RemoteInvalidate, &b.qp);
  must(b.qp.post_receive(receive(to.all(), 1)));
  must(b.qp.post_receive(receive(to.all(), 2)));
  SendRequest solicited = request(Opcode::Send, from.all());
  solicited.solicited = true;
  must(a.qp.post_send(solicited));
  auto done = world_.await(b.receive_cq);
  ASSERT_TRUE(done);
  EXPECT_TRUE(done->solicited);
  EXPECT_EQ(done->invalidated_stag, 0u);
  SendRequest invalidate = request(Opcode::SendInvalidate, from.all());
  invalidate.invalidate_stag = victim.region.stag();
  must(a.qp.post_send(invalidate));
  done = world_.await(b.receive_cq);
  ASSERT_TRUE(done);
  EXPECT_FALSE(done->solicited);
  EXPECT_EQ(done->invalidated_stag, victim.region.stag());
  // It is gone: a Write to it is refused.
  must(a.qp.post_send(request(Opcode::Write, from.all(), victim)));
  EXPECT_TRUE(world_.await<event::TerminateSent>(world_.right, b.qp.number()));
}

TEST_F(Verbs, UnsignaledCompletesOnlyWithError) {
  Side a(world_.left);
  Side b(world_.right);
  world_.connect(a, b);
  Memory from(a.pd, octets(100, 3), Access::LocalRead);
  Memory to(b.pd, std::vector<uint8_t>(100), kEverything);
  SendRequest quiet = request(Opcode::Write, from.all(), to, 1);
  quiet.signaled = false;
  must(a.qp.post_send(quiet));
  must(a.qp.post_send(request(Opcode::Write, from.all(), to, 2)));
  world_.expect_done(a.send_cq, 2, 100);
  Completion none;
  EXPECT_EQ(a.send_cq.poll({&none, 1}), 0u);
  EXPECT_EQ(from.data, to.data);
}

TEST_F(Verbs, RejectCarriesPrivateData) {
  const std::vector<uint8_t> reason = {'n', 'o'};
  Side a(world_.left);
  must(world_.right.listen(7471));
  must(a.qp.connect(at("10.0.0.2", 7471)));
  const auto asked = world_.await<event::ConnectRequest>(world_.right);
  ASSERT_TRUE(asked);
  must(world_.right.reject(asked->request, reason));
  const auto rejected = world_.await<event::Rejected>(world_.left, a.qp.number());
  ASSERT_TRUE(rejected);
  EXPECT_EQ(rejected->private_data, reason);
  EXPECT_TRUE(world_.becomes_quiescent());
}

TEST_F(Verbs, DisconnectIsGraceful) {
  Side a(world_.left);
  Side b(world_.right);
  world_.connect(a, b);
  Memory from(a.pd, octets(300000, 3), Access::LocalRead);
  Memory to(b.pd, std::vector<uint8_t>(300000), kEverything);
  // What was posted before is sent.
  must(a.qp.post_send(request(Opcode::Write, from.all(), to)));
  world_.disconnect(a, b);
  EXPECT_EQ(from.data, to.data);
  world_.expect_done(a.send_cq, 1, 300000);
  EXPECT_TRUE(world_.becomes_quiescent());
  EXPECT_TRUE(a.qp.disconnect()) << "it has ended already";
  EXPECT_EQ(code_of(Side(world_.left).qp.disconnect()), ErrorCode::WrongState);
}

// From Idle to Idle again: what a queue pair says of itself, and a second life with another number.
TEST_F(Verbs, AQueuePairTellsItsStateAndLivesAgain_VERBS_18) {
  Side a(world_.left);
  Side b(world_.right);
  int mine = 0;
  EXPECT_EQ(a.qp.state(), QueuePairState::Idle);
  must(a.qp.modify({.ird = 2, .context = &mine}));
  world_.connect(a, b);
  EXPECT_EQ(a.qp.state(), QueuePairState::Rts);
  const auto attributes = must(a.qp.query());
  EXPECT_EQ(attributes.number, a.qp.number());
  EXPECT_EQ(attributes.send_depth, 64u);
  EXPECT_EQ(attributes.ird, 2u);
  EXPECT_EQ(attributes.max_send_sge, kMaxSge);
  EXPECT_TRUE(attributes.answers_close);
  EXPECT_EQ(attributes.context, &mine);
  EXPECT_EQ(code_of(a.qp.modify({.state = QueuePairState::Idle})), ErrorCode::WrongState);
  Memory to(b.pd, std::vector<uint8_t>(8), Access::LocalWrite);
  must(b.qp.post_receive(receive(to.all(), 5)));
  const uint32_t a_before = a.qp.number();
  const uint32_t b_before = b.qp.number();
  must(a.qp.drain());
  // The peer's close is answered without anybody's doing, and both have ended.
  const auto gone = world_.await<event::Disconnected>(world_.left, a_before);
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->error, QueuePairError::None);
  EXPECT_EQ(gone->context, &mine);
  ASSERT_TRUE(world_.await<event::Disconnected>(world_.right, b_before));
  EXPECT_EQ(a.qp.state(), QueuePairState::Error);
  must(a.qp.modify({.state = QueuePairState::Idle}));
  must(b.qp.modify({.state = QueuePairState::Idle}));
  EXPECT_NE(a.qp.number(), a_before);
  world_.connect(a, b);
  const auto old = world_.await(b.receive_cq);
  ASSERT_TRUE(old);
  EXPECT_EQ(old->qp, b_before);
  EXPECT_EQ(old->status, CompletionStatus::Flushed);
  exchange(world_, a, b, 1000, 4);
  must(a.qp.modify({.state = QueuePairState::Error}));
  ASSERT_TRUE(world_.await<event::Disconnected>(world_.right, b.qp.number()));
}

// The same questions through the public API.
TEST_F(Verbs, ADeviceTellsItsLimitsAndConnections) {
  Side a(world_.left);
  Side b(world_.right);
  EXPECT_FALSE(must(a.qp.info()).connected);
  world_.connect(a, b);
  const DeviceLimits limits = must(world_.left.limits());
  EXPECT_EQ(limits.max_qps, 1024u);
  EXPECT_EQ(limits.qps, 1u);
  EXPECT_EQ(limits.cqs, 2u);
  EXPECT_EQ(limits.connections, 1u);
  EXPECT_EQ(limits.max_sge, kMaxSge);
  exchange(world_, a, b, 1000, 1);
  const QueuePairInfo info = must(a.qp.info());
  EXPECT_EQ(info.state, QueuePairState::Rts);
  EXPECT_GT(info.mulpdu, 1000u);
  EXPECT_GT(info.transport.rtt.count(), 0);
  EXPECT_GT(info.transport.cwnd, 0u);
  const auto connections = must(world_.right.connections());
  ASSERT_EQ(connections.size(), 1u);
  EXPECT_EQ(connections[0].qp, b.qp.number());
  must(world_.right.abort(connections[0].id));
  const auto gone = world_.await<event::Disconnected>(world_.left, a.qp.number());
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->end, StreamEnd::PeerReset);
  EXPECT_EQ(code_of(world_.right.abort(connections[0].id)), ErrorCode::NotFound);
}

TEST_F(Verbs, WhatIsOutstandingIsFlushed) {
  Side a(world_.left);
  Side b(world_.right);
  world_.connect(a, b);
  Memory to(b.pd, std::vector<uint8_t>(100), Access::LocalWrite);
  for (uint64_t id = 1; id <= 3; ++id) must(b.qp.post_receive(receive(to.all(), id)));
  world_.disconnect(a, b);
  for (uint64_t id = 1; id <= 3; ++id) {
    const auto done = world_.await(b.receive_cq);
    ASSERT_TRUE(done);
    EXPECT_EQ(done->status, CompletionStatus::Flushed);
    EXPECT_EQ(done->id, id);
  }
}

TEST_F(Verbs, ErrorsOfNamesAndAddresses) {
  const auto unknown = world_.context.device("rnic7");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::NotFound);
  EXPECT_NE(unknown.error().message.find("rnic0, rnic1"), std::string::npos);

  must(world_.right.listen(7471));
  EXPECT_EQ(code_of(world_.right.listen(7471)), ErrorCode::AlreadyExists);
  must(world_.left.listen(7471));
  const Endpoint chosen = must(world_.right.listen(0));
  EXPECT_EQ(chosen.address, IpAddress{});
  EXPECT_EQ(code_of(world_.right.listen(chosen)), ErrorCode::AlreadyExists);
  must(world_.right.unlisten(chosen));
  EXPECT_EQ(code_of(world_.right.listen(7472, {.framing = static_cast<Framing>(2)})),
            ErrorCode::InvalidArgument);
  must(world_.right.unlisten(7471));
  EXPECT_EQ(code_of(world_.right.unlisten(7471)), ErrorCode::NotFound);

  Side a(world_.left);
  for (const Endpoint& nobody :
       {Endpoint{}, at("10.0.0.2", 0), at("0.0.0.0", 1), at("::", 1), at("224.0.0.1", 1)}) {
    EXPECT_EQ(code_of(a.qp.connect(nobody)), ErrorCode::InvalidArgument) << to_string(nobody);
  }
  const std::vector<uint8_t> too_much(513);
  EXPECT_EQ(code_of(a.qp.connect(at("10.0.0.2", 1), too_much)), ErrorCode::InvalidArgument);
}

TEST_F(Verbs, NobodyListens) {
  Side a(world_.left);
  must(a.qp.connect(at("10.0.0.2", 9)));
  const auto failed = world_.await<event::ConnectFailed>(world_.left, a.qp.number());
  ASSERT_TRUE(failed);
  EXPECT_FALSE(failed->detail.empty());
  EXPECT_EQ(code_of(a.qp.connect(at("10.0.0.2", 9))), ErrorCode::WrongState);
  EXPECT_TRUE(world_.becomes_quiescent());
}

TEST_F(Verbs, AQueuePairHasOneConnection) {
  Side a(world_.left);
  Side b(world_.right);
  world_.connect(a, b);
  EXPECT_EQ(code_of(a.qp.connect(at("10.0.0.2", 7471))), ErrorCode::WrongState);
  world_.disconnect(a, b);
  EXPECT_EQ(code_of(a.qp.connect(at("10.0.0.2", 7471))), ErrorCode::WrongState);
}

TEST_F(Verbs, FullQueues) {
  Side a(world_.left, 4);
  Memory here(a.pd, octets(10, 1), Access::LocalWrite);
  for (int i = 0; i < 4; ++i) {
    must(a.qp.post_send(request(Opcode::Send, here.all())));
    must(a.qp.post_receive(receive(here.all())));
  }
  EXPECT_EQ(code_of(a.qp.post_send(request(Opcode::Send, here.all()))),
            ErrorCode::ResourceExhausted);
  EXPECT_EQ(code_of(a.qp.post_receive(receive(here.all()))), ErrorCode::ResourceExhausted);
  EXPECT_EQ(code_of(a.qp.post_send(request(Opcode::Receive, here.all()))),
            ErrorCode::InvalidArgument);
}

TEST_F(Verbs, BadResources) {
  EXPECT_FALSE(world_.left.create_cq(0));
  Side a(world_.left);
  Side b(world_.right);
  EXPECT_FALSE(a.pd.create_qp(b.send_cq, b.receive_cq));
  EXPECT_FALSE(a.pd.create_qp(a.send_cq, a.receive_cq, {.ird = 1u << 20}));
  uint8_t octet = 0;
  EXPECT_FALSE(
      a.pd.register_memory(std::span(static_cast<std::byte*>(nullptr), 16), Access::LocalWrite));
  EXPECT_FALSE(a.pd.register_memory(std::as_writable_bytes(std::span(&octet, UINT64_MAX)),
                                    Access::LocalWrite));
  EXPECT_EQ(code_of(a.qp.start_trace(10)), ErrorCode::WrongState);
  EXPECT_FALSE(a.qp.take_trace());
}

TEST_F(Verbs, TraceOfAConnection) {
  Side a(world_.left);
  Side b(world_.right);
  world_.connect(a, b);
  must(a.qp.start_trace(1000));
  must(b.qp.start_trace(1000));
  exchange(world_, a, b, 50000, 4);
  const auto sent = must(a.qp.take_trace());
  const auto received = must(b.qp.take_trace());
  const auto total = [](const std::vector<TraceEvent>& events, TraceKind kind) {
    uint64_t sum = 0;
    for (const TraceEvent& event : events) sum += event.kind == kind ? event.end - event.begin : 0;
    return sum;
  };
  EXPECT_GE(total(sent, TraceKind::Sent), 100000u);  // the Write and the Send
  EXPECT_GE(total(received, TraceKind::InOrder), 100000u);
}

// What is counted is in the file: looking flushes.
TEST(Capture, CountersOfACaptureAreThoseOfItsFile) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("rnic-verbs-" + std::to_string(getpid()));
  Config config = loopback_config();
  config.set("device.rnic0.capture.file=" + file.string());
  {
    World world(config);
    Side a(world.left);
    Side b(world.right);
    world.connect(a, b);
    EXPECT_GE(must(world.left.counter("capture", "frames")), 5u);
    EXPECT_EQ(must(world.left.counter("capture", "octets")), std::filesystem::file_size(file));
    const Result<uint64_t> none = world.right.counter("capture", "frames");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, ErrorCode::NotFound) << "it has none";
  }
  std::filesystem::remove(file);
}

TEST_F(Verbs, CountersHaveNamesAndMove) {
  Side a(world_.left);
  Side b(world_.right);
  world_.connect(a, b);
  exchange(world_, a, b, 1000, 4);
  for (const Counter& counter : world_.left.counters()) {
    EXPECT_FALSE(counter.layer.empty() || counter.name.empty() || counter.help.empty());
  }
  EXPECT_GT(must(world_.left.counter("tcp", "data_segments_out")), 0u);
  EXPECT_EQ(must(world_.left.counter("device", "connections_established")), 1u);
  for (const char* layer : {"tcp", "no such layer"}) {
    const auto misspelt = world_.left.counter(layer, "no such counter");
    ASSERT_FALSE(misspelt);
    EXPECT_EQ(misspelt.error().code, ErrorCode::NotFound);
    EXPECT_NE(misspelt.error().message.find(layer), std::string::npos);
  }
}

/// An offence on one connection, while another one between the same devices lives on.
class Offences : public Verbs {
 protected:
  static constexpr uint32_t kSize = 4096;
  static constexpr uint8_t kUntouched = 0x5a;

  Offences()
      : a_(world_.left),
        b_(world_.right),
        good_a_(world_.left),
        good_b_(world_.right),
        source_(a_.pd, octets(kSize, 1), Access::LocalWrite),
        target_(b_.pd, std::vector<uint8_t>(kSize, kUntouched), kEverything),
        readable_(b_.pd, std::vector<uint8_t>(kSize, kUntouched),
                  Access::LocalWrite | Access::RemoteRead),
        writable_(b_.pd, std::vector<uint8_t>(kSize, kUntouched),
                  Access::LocalWrite | Access::RemoteWrite) {
    world_.connect(a_, b_);
    world_.connect(good_a_, good_b_);
  }

  SendRequest aimed(Opcode opcode, const Memory& at) { return request(opcode, source_.all(), at); }

  void expect_terminate(const SendRequest& offence, int layer, int type, int code) {
    const std::vector<uint8_t> before = source_.data;
    must(a_.qp.post_send(offence));
    const auto sent = world_.await<event::TerminateSent>(world_.right);
    const auto received = world_.await<event::TerminateReceived>(world_.left);
    ASSERT_TRUE(sent && received);
    EXPECT_EQ(sent->qp, b_.qp.number());
    EXPECT_EQ(received->qp, a_.qp.number());
    for (const Fault& fault : {sent->fault, received->fault}) {
      EXPECT_EQ(static_cast<int>(fault.layer), layer) << describe(fault);
      EXPECT_EQ(fault.type, type) << describe(fault);
      EXPECT_EQ(fault.code, code) << describe(fault);
    }
    EXPECT_TRUE(world_.await<event::Disconnected>(world_.left, a_.qp.number()));
    EXPECT_TRUE(world_.await<event::Disconnected>(world_.right, b_.qp.number()));
    for (const Memory* memory : {&target_, &readable_, &writable_}) {
      EXPECT_EQ(memory->data, std::vector<uint8_t>(kSize, kUntouched));
    }
    EXPECT_EQ(source_.data, before);
    exchange(world_, good_a_, good_b_, 20000, 77);
    EXPECT_FALSE(world_.take<event::Disconnected>(world_.left));
    EXPECT_FALSE(world_.take<event::Disconnected>(world_.right));
  }

  Side a_;
  Side b_;
  Side good_a_;
  Side good_b_;
  Memory source_;
  Memory target_;
  Memory readable_;
  Memory writable_;
};

// DDP-7.1-08
TEST_F(Offences, WriteOutsideTheRegion) {
  SendRequest offence = aimed(Opcode::Write, target_);
  offence.sges[0].length = 1000;  // one segment: those before would be within their rights
  offence.remote.offset += kSize - 999;
  expect_terminate(offence, 1, 1, 0x01);
}

// DDP-7.1-07
TEST_F(Offences, WriteWithAWrongStag_DDP_8_3_03) {
  SendRequest offence = aimed(Opcode::Write, target_);
  offence.remote.stag ^= 0x10;
  expect_terminate(offence, 1, 1, 0x00);
}

// DDP-7.1-07
TEST_F(Offences, WriteToARevokedRegion_DDP_8_3_03) {
  const SendRequest offence = aimed(Opcode::Write, target_);
  must(target_.region.deregister());
  expect_terminate(offence, 1, 1, 0x00);
}

// DDP-7.1-09
TEST_F(Offences, WriteIntoAnotherDomain) {
  Memory foreign(good_b_.pd, std::vector<uint8_t>(kSize, kUntouched), kEverything);
  expect_terminate(aimed(Opcode::Write, foreign), 1, 1, 0x02);
  EXPECT_EQ(foreign.data, std::vector<uint8_t>(kSize, kUntouched));
}

// RFC 5040 s.4.8: access rights violation
TEST_F(Offences, WriteWithoutTheRight) {
  expect_terminate(aimed(Opcode::Write, readable_), 0, 1, 0x02);
}

// RFC 5040 s.4.8
TEST_F(Offences, ReadWithoutTheRight) {
  expect_terminate(aimed(Opcode::Read, writable_), 0, 1, 0x02);
}

// RFC 5040 s.4.8
TEST_F(Offences, ReadOutsideTheRegion) {
  SendRequest offence = aimed(Opcode::Read, target_);
  offence.remote.offset -= 1;
  expect_terminate(offence, 0, 1, 0x01);
}

// DDP-7.1-02
TEST_F(Offences, SendWithoutAReceive) {
  expect_terminate(request(Opcode::Send, source_.all()), 1, 2, 0x02);
}

TEST_F(Offences, LocalRegionThatIsGone) {
  const SendRequest offence = aimed(Opcode::Write, target_);
  must(source_.region.deregister());
  must(a_.qp.post_send(offence));
  const auto done = world_.await(a_.send_cq);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->status, CompletionStatus::LocalProtection);
  EXPECT_EQ(target_.data, std::vector<uint8_t>(kSize, kUntouched));
  exchange(world_, good_a_, good_b_, 20000, 78);
}

TEST_F(Offences, LocalPieceOutsideOfItsRegion) {
  SendRequest offence = aimed(Opcode::Write, target_);
  offence.sges[0].address += kSize - 99;
  offence.sges[0].length = 100;
  must(a_.qp.post_send(offence));
  const auto done = world_.await(a_.send_cq);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->status, CompletionStatus::LocalProtection);
  EXPECT_EQ(target_.data, std::vector<uint8_t>(kSize, kUntouched));
}

TEST_F(Verbs, HandlesGoInAnySaneOrder) {
  // Each number: which of three steps comes when. Queue pairs before the domain and their queues,
  // regions before the domain.
  std::array<int, 3> order = {0, 1, 2};
  do {
    auto a = std::make_unique<Side>(world_.left);
    auto b = std::make_unique<Side>(world_.right);
    world_.connect(*a, *b);
    auto from = std::make_unique<Memory>(a->pd, octets(200000, 5), Access::LocalWrite);
    auto to = std::make_unique<Memory>(b->pd, std::vector<uint8_t>(200000), kEverything);
    must(a->qp.post_send(request(Opcode::Write, from->all(), *to)));  // in flight all the while
    world_.context.poll();
    for (const int step : order) {
      if (step == 0) from.reset(), to.reset();
      if (step == 1) a->qp = QueuePair();
      if (step == 2) b->qp = QueuePair();
      world_.context.poll();
    }
    a.reset();
    b.reset();
    EXPECT_TRUE(world_.becomes_quiescent());
  } while (std::ranges::next_permutation(order).found);
  // Nothing leaked: everything that there is can be had again.
  EXPECT_EQ(must(world_.left.counter("device", "regions_registered")),
            must(world_.left.counter("device", "regions_deregistered")));
}

TEST_F(Verbs, ARegionThatGoesWhileItIsReadIsNotTouchedLater) {
  Side a(world_.left);
  Side b(world_.right);
  world_.connect(a, b);
  Memory from(a.pd, octets(1 << 20, 5), Access::LocalWrite);
  Memory to(b.pd, std::vector<uint8_t>(1 << 20), kEverything);
  must(a.qp.post_send(request(Opcode::Write, from.all(), to)));
  for (int i = 0; i < 3; ++i) world_.context.poll();
  must(to.region.deregister());
  const std::vector<uint8_t> then = to.data;
  EXPECT_TRUE(world_.await<event::Disconnected>(world_.right, b.qp.number()));
  EXPECT_EQ(to.data, then);
}

TEST_F(Verbs, MovedHandlesStillWork) {
  Side a(world_.left);
  Side b(world_.right);
  QueuePair moved = std::move(a.qp);
  a.qp = std::move(moved);
  ProtectionDomain pd = std::move(a.pd);
  a.pd = std::move(pd);
  Context elsewhere = std::move(world_.context);
  world_.context = std::move(elsewhere);
  world_.connect(a, b);
  exchange(world_, a, b, 100, 1);
}

// The framing of one port and one connection, beside MPA.
TEST(FramingChoice, OfAPortAndAConnection) {
  World world;
  Side a(world.left);
  Side b(world.right);
  must(world.right.listen(7500, {.framing = Framing::Tuf}));
  ConnectOptions options;
  options.framing = Framing::Tuf;
  must(a.qp.connect({world.right.address(), 7500}, {}, options));
  const auto asked = world.await<event::ConnectRequest>(world.right);
  ASSERT_TRUE(asked);
  must(b.qp.accept(asked->request));
  ASSERT_TRUE(world.await<event::Established>(world.left, a.qp.number()));
  ASSERT_TRUE(world.await<event::Established>(world.right, b.qp.number()));
  exchange(world, a, b, 50000, 3);
  world.disconnect(a, b);
  // A connection that speaks MPA to this port fails.
  Side c(world.left);
  must(c.qp.connect({world.right.address(), 7500}));
  EXPECT_TRUE(world.await<event::ConnectFailed>(world.left, c.qp.number()));
}

}  // namespace
}  // namespace rnic::test
