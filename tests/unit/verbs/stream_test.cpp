// Streaming sockets, the way an application sees them: inline and with worker threads.

#include <array>
#include <atomic>
#include <thread>

#include "support/live_memory.hpp"
#include "verbs_pair.hpp"

namespace rnic::test {
namespace {

constexpr uint16_t kPort = 7100;

struct StreamPair {
  Stream near;
  Stream far;
};

StreamPair connect(World& world, StreamListener& listener) {
  StreamPair pair;
  pair.near = must(world.left.connect_stream({world.right.address(), listener.local().port}));
  const bool done = world.wait([&] {
    if (!pair.far.is_valid()) {
      if (auto stream = listener.accept()) pair.far = std::move(*stream);
    }
    return pair.far.is_valid() && pair.near.state() == StreamState::Open;
  });
  if (!done) throw std::runtime_error("no connection: " + to_string(pair.near.remote()));
  return pair;
}

/// Moves `content` from one end to the other in pieces of their own sizes.
void transfer(World& world, Stream& from, Stream& to, const std::vector<uint8_t>& content) {
  std::vector<uint8_t> got;
  size_t sent = 0;
  std::array<uint8_t, 5000> piece;
  ASSERT_TRUE(world.wait([&] {
    const auto rest = std::span(content).subspan(sent);
    sent += must(from.send(rest.first(std::min<size_t>(rest.size(), 3333))));
    const size_t n = must(to.receive(piece));
    got.insert(got.end(), piece.begin(), piece.begin() + static_cast<ptrdiff_t>(n));
    return got.size() >= content.size();
  }));
  EXPECT_EQ(got, content);
}

class Streaming : public ::testing::TestWithParam<bool> {
 protected:
  World world{loopback_config(GetParam())};
};

INSTANTIATE_TEST_SUITE_P(Modes, Streaming, ::testing::Bool(),
                         [](const auto& mode) { return mode.param ? "Threaded" : "Inline"; });

// Hello, Hello-Ack, then RDMA; and after a reject on with the stream.
TEST_P(Streaming, BecomesAnRdmaConnection_CM_03) {
  {
    StreamListener listener = must(world.right.listen_stream(kPort));
    for (const bool accepted : {false, true}) {
      StreamPair pair = connect(world, listener);
      Side near(world.left), far(world.right);
      transfer(world, pair.near, pair.far, octets(20, 1));
      const auto ack = octets(10, 2);
      must(pair.far.await_rdma(ack));
      EXPECT_TRUE(pair.far.is_converted());
      EXPECT_EQ(pair.far.send(ack).error().code, ErrorCode::WrongState);
      EXPECT_EQ(pair.far.await_rdma().error().code, ErrorCode::WrongState);
      ASSERT_TRUE(world.wait([&] { return pair.near.readable() == ack.size(); }));
      EXPECT_EQ(near.qp.connect(pair.near).error().code, ErrorCode::WrongState);  // unread
      std::array<uint8_t, 10> got;
      EXPECT_EQ(must(pair.near.receive(got)), ack.size());
      must(near.qp.connect(pair.near));
      const auto request = world.await<event::ConnectRequest>(world.right);
      ASSERT_TRUE(request);
      if (!accepted) {
        must(world.right.reject(request->request));
        EXPECT_TRUE(world.await<event::Rejected>(world.left));
        EXPECT_TRUE(
            world.wait([&] { return !pair.near.is_converted() && !pair.far.is_converted(); }));
        transfer(world, pair.near, pair.far, octets(100'000, 3));
        transfer(world, pair.far, pair.near, octets(100'000, 4));
        continue;
      }
      must(far.qp.accept(request->request));
      EXPECT_TRUE(world.await<event::Established>(world.left));
      EXPECT_TRUE(world.await<event::Established>(world.right));
      Memory out(near.pd, octets(5000, 5), kEverything), in(far.pd, octets(5000, 6), kEverything);
      must(far.qp.post_receive(receive(in.all())));
      must(near.qp.post_send(rnic::test::request(Opcode::Send, out.all())));
      EXPECT_TRUE(world.await(far.receive_cq));
      EXPECT_EQ(in.data, out.data);
    }
  }
  EXPECT_TRUE(world.becomes_quiescent());
}

TEST_P(Streaming, BothWaysThenCloses) {
  {
    StreamListener listener = must(world.right.listen_stream(kPort));
    EXPECT_EQ(listener.local(), (Endpoint{{}, kPort}));
    StreamPair pair = connect(world, listener);
    EXPECT_EQ(pair.near.remote(), pair.far.local());
    EXPECT_EQ(pair.near.local(), pair.far.remote());
    for (const uint32_t size : {1u, 1460u, 100'000u, 3u << 20}) {
      transfer(world, pair.near, pair.far, octets(size, size));
      transfer(world, pair.far, pair.near, octets(size, size + 1));
    }
    pair.near.finish_sending();
    EXPECT_TRUE(world.wait([&] { return pair.far.at_end(); }));
    EXPECT_EQ(pair.far.state(), StreamState::Open);
    const auto refused = pair.near.send(octets(1, 1));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::WrongState);
    transfer(world, pair.far, pair.near, octets(1000, 5));  // the other half is open
    pair.far.finish_sending();
    EXPECT_TRUE(world.wait([&] { return pair.near.how_ended() && pair.far.how_ended(); }));
    EXPECT_EQ(pair.near.how_ended(), StreamEnd::Closed);
    EXPECT_TRUE(pair.far.status().has_value());
    EXPECT_EQ(must(pair.near.receive(std::span<uint8_t>{})), 0u);
    EXPECT_TRUE(pair.near.at_end());
  }
  EXPECT_TRUE(world.becomes_quiescent());
}

TEST_P(Streaming, AListenersPortIsChosen) {
  {
    StreamListener listener = must(world.right.listen_stream(0));
    ASSERT_NE(listener.local().port, 0);
    StreamPair pair = connect(world, listener);
    transfer(world, pair.near, pair.far, octets(100, 1));
    FramedStreamListener framed =
        must(world.right.listen_framed(0, {.framing = FramingOptions::plain()}));
    EXPECT_NE(framed.local().port, 0);
    EXPECT_NE(framed.local(), listener.local());
  }
  EXPECT_TRUE(world.becomes_quiescent());
}

TEST_P(Streaming, AResetIsAnErrorAfterTheOctetsBeforeIt) {
  {
    StreamListener listener = must(world.right.listen_stream(kPort));
    StreamPair pair = connect(world, listener);
    must(pair.near.send(octets(50, 1)));
    EXPECT_TRUE(world.wait([&] { return pair.far.readable() == 50; }));
    pair.near.abort();
    EXPECT_TRUE(world.wait([&] { return pair.far.state() == StreamState::Ended; }));
    EXPECT_EQ(pair.far.how_ended(), StreamEnd::PeerReset);
    std::array<uint8_t, 100> piece;
    EXPECT_EQ(must(pair.far.receive(piece)), 50u);
    const auto error = pair.far.receive(piece);
    ASSERT_FALSE(error.has_value());
    EXPECT_EQ(error.error().code, ErrorCode::Reset);
    EXPECT_NE(error.error().message.find(to_string(pair.far.remote())), std::string::npos);
    EXPECT_FALSE(pair.far.send(piece).has_value());
    EXPECT_EQ(pair.far.writable(), 0u);
    EXPECT_TRUE(world.wait([&] { return pair.near.state() == StreamState::Ended; }));
    EXPECT_EQ(pair.near.status().error().code, ErrorCode::Reset);
  }
  EXPECT_TRUE(world.becomes_quiescent());
}

TEST_P(Streaming, NobodyListens) {
  {
    Stream stream = must(world.left.connect_stream({world.right.address(), kPort}));
    EXPECT_TRUE(world.wait([&] { return stream.state() == StreamState::Ended; }));
    EXPECT_EQ(stream.how_ended(), StreamEnd::Refused);
    EXPECT_EQ(stream.status().error().code, ErrorCode::Unreachable);
  }
  EXPECT_TRUE(world.becomes_quiescent());
}

// Without memory for the reason, the message still names the call, with its class like all others.
TEST(Stream, AStatusWithoutMemoryNamesItsCall) {
  World world{loopback_config()};
  Stream stream = must(world.left.connect_stream({world.right.address(), kPort}));
  EXPECT_TRUE(world.wait([&] { return stream.state() == StreamState::Ended; }));
  refuse_memory_after(0);
  const Status status = stream.status();
  EXPECT_TRUE(refuse_no_more());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::ResourceExhausted);
  EXPECT_TRUE(status.error().message.starts_with("TcpHandle::status: out of memory: "))
      << status.error().message;
}

TEST_P(Streaming, ArgumentsThatCannotBe) {
  EXPECT_FALSE(world.left.connect_stream(at("0.0.0.0", 1)).has_value());
  EXPECT_FALSE(world.left.connect_stream(at("10.0.0.2", 0)).has_value());
  EXPECT_FALSE(world.right.listen_stream(at("10.0.0.9", 0)).has_value());
  EXPECT_FALSE(world.right.listen_stream(at("10.0.0.9", kPort)).has_value());
  EXPECT_FALSE(world.right.listen_stream(kPort, {.backlog = 0}).has_value());
  StreamListener listener = must(world.right.listen_stream(at("10.0.0.2", kPort)));
  const auto twice = world.right.listen_stream(at("10.0.0.2", kPort));
  ASSERT_FALSE(twice.has_value());
  EXPECT_EQ(twice.error().code, ErrorCode::AlreadyExists);
}

TEST_P(Streaming, OptionsOfOneStream) {
  {
    StreamListener listener =
        must(world.right.listen_stream(kPort, {.stream = {.max_segment = 300}}));
    StreamPair pair = connect(world, listener);
    transfer(world, pair.far, pair.near, octets(30'000, 1));
    must(pair.near.set_options(
        {.congestion_control = CongestionControl::NewReno, .nagle = true, .keep_alive = true}));
    EXPECT_EQ(pair.near.set_options({.dscp = 64}).error().code, ErrorCode::InvalidArgument);
    StreamOptions nameless;
    nameless.congestion_control = static_cast<CongestionControl>(3);
    EXPECT_EQ(pair.near.set_options(nameless).error().code, ErrorCode::InvalidArgument);
    nameless = {};
    nameless.ecn = static_cast<Ecn>(3);
    EXPECT_EQ(pair.near.set_options(nameless).error().code, ErrorCode::InvalidArgument);
    EXPECT_FALSE(world.right.listen_stream(kPort + 1, {.stream = {.dscp = 64}}).has_value());
    const auto refused = world.left.connect_stream({world.right.address(), kPort},
                                                   {.keep_alive = true, .keep_alive_count = 0});
    EXPECT_FALSE(refused.has_value());
  }
  EXPECT_TRUE(world.becomes_quiescent());
}

TEST_P(Streaming, HandlesThatWereGivenUp) {
  {
    StreamListener listener = must(world.right.listen_stream(kPort));
    StreamPair pair = connect(world, listener);
    must(pair.near.send(octets(1000, 1)));
    pair.near.close();
    EXPECT_FALSE(pair.near.is_valid());
    EXPECT_EQ(pair.near.state(), StreamState::Ended);
    EXPECT_FALSE(pair.near.send(octets(1, 1)).has_value());
    EXPECT_TRUE(pair.near.at_end());
    EXPECT_TRUE(world.wait([&] { return pair.far.readable() == 1000; }));
    StreamListener moved = std::move(listener);
    EXPECT_EQ(listener.local(), Endpoint{});
    EXPECT_FALSE(listener.accept());
  }
  EXPECT_TRUE(world.becomes_quiescent());
}

/// Sends `total` octets of a pattern and checks the echo, on a thread of its own.
void client(Device device, const IpAddress& address, uint32_t total, uint64_t seed,
            std::atomic<int>& good) {
  auto stream = device.connect_stream({address, kPort});
  if (!stream) return;
  const std::vector<uint8_t> content = octets(total, seed);
  std::vector<uint8_t> got;
  size_t sent = 0;
  std::array<uint8_t, 4096> piece;
  while (!stream->at_end()) {
    const auto taken = stream->send(std::span(content).subspan(sent));
    if (sent < content.size() && !taken) return;
    if (taken) sent += *taken;
    if (sent == content.size()) stream->finish_sending();
    const auto n = stream->receive(piece);
    if (!n) return;
    got.insert(got.end(), piece.begin(), piece.begin() + static_cast<ptrdiff_t>(*n));
    if (*n == 0) std::this_thread::yield();
  }
  if (got == content) ++good;
}

/// Sends back what comes, until `stop`.
void echo(StreamListener& listener, const std::atomic<bool>& stop) {
  struct Echo {
    Stream stream;
    std::vector<uint8_t> pending;
  };
  std::vector<Echo> echoes;
  std::array<uint8_t, 4096> piece;
  while (!stop.load()) {
    while (auto stream = listener.accept()) echoes.push_back({std::move(*stream), {}});
    for (Echo& e : echoes) {
      if (e.pending.empty()) {
        const auto n = e.stream.receive(piece);
        if (n) e.pending.assign(piece.begin(), piece.begin() + static_cast<ptrdiff_t>(*n));
      }
      if (!e.pending.empty()) {
        const auto n = e.stream.send(e.pending);
        if (n) e.pending.erase(e.pending.begin(), e.pending.begin() + static_cast<ptrdiff_t>(*n));
      } else if (e.stream.at_end()) {
        e.stream.finish_sending();
      }
    }
    std::erase_if(echoes, [](const Echo& e) { return e.stream.how_ended().has_value(); });
    std::this_thread::yield();
  }
}

TEST(StreamingThreads, TwoClientThreadsAndAnEchoThread) {
  World world(loopback_config(true));
  std::atomic<int> good{0};
  {
    StreamListener listener = must(world.right.listen_stream(kPort));
    std::atomic<bool> stop{false};
    std::thread server([&] { echo(listener, stop); });
    std::thread first([&] { client(world.left, world.right.address(), 700'000, 1, good); });
    std::thread second([&] { client(world.left, world.right.address(), 1'000'001, 2, good); });
    first.join();
    second.join();
    stop.store(true);
    server.join();
  }
  EXPECT_EQ(good.load(), 2);
  EXPECT_TRUE(world.becomes_quiescent());
}

}  // namespace
}  // namespace rnic::test
