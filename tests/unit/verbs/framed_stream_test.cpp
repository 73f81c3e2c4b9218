// Framed streams, the way an application sees them: inline and with worker threads.

#include <atomic>
#include <thread>

#include "framed_world.hpp"

namespace rnic::test {
namespace {

class Framed : public ::testing::TestWithParam<bool> {
 protected:
  FramedStreamListener listen(const FramingOptions& options) {
    return must(world.right.listen_framed(kFramedPort, {.framing = options}));
  }
  World world{loopback_config(GetParam())};
};

INSTANTIATE_TEST_SUITE_P(Modes, Framed, ::testing::Bool(),
                         [](const auto& mode) { return mode.param ? "Threaded" : "Inline"; });

// TUF-A-01
TEST_P(Framed, WholeFramesBothWaysThenCloses) {
  for (const bool markers : {false, true}) {
    FramingOptions options =
        framing(markers ? FramedSendMode::Markers : FramedSendMode::Align,
                markers ? FramedReceiveMode::Markers : FramedReceiveMode::Align);
    options.send_interval = 512;
    options.receive_interval = 256;
    FramedStreamListener listener = listen(mirrored(options));
    FramedPair pair = connect(world, listener, options);
    EXPECT_EQ(pair.near.remote(), pair.far.local());
    EXPECT_EQ(pair.near.send_mode(), options.send_mode);
    EXPECT_EQ(pair.far.receive_interval(), 512);
    EXPECT_EQ(pair.near.send_interval(), 512);
    EXPECT_EQ(pair.far.send_interval(), 256);
    EXPECT_EQ(FramedStream().send_interval(), 0);
    transfer(world, pair.near, pair.far, 500, pair.near.frame_limit());
    transfer(world, pair.far, pair.near, 500, pair.far.frame_limit());
    pair.near.finish_sending();
    EXPECT_TRUE(world.wait([&] { return pair.far.at_end(); }));
    EXPECT_EQ(pair.near.send(frame(9, 1)).error().code, ErrorCode::WrongState);
    transfer(world, pair.far, pair.near, 20, 1000);  // the other half is open
    pair.far.finish_sending();
    EXPECT_TRUE(world.wait([&] { return pair.near.how_ended() && pair.far.how_ended(); }));
    EXPECT_EQ(pair.near.how_ended(), StreamEnd::Closed);
    EXPECT_TRUE(pair.far.status().has_value());
    EXPECT_TRUE(pair.near.at_end());
    EXPECT_FALSE(pair.far.is_middlebox_suspected());
  }
  EXPECT_TRUE(world.becomes_quiescent());
  EXPECT_GE(must(world.left.counter("tuf", "pdus_in")), 1040u);
}

// What an application wished for while the stream was still being opened is done once it is open.
TEST_P(Framed, FinishedWhileItOpens) {
  const auto options = framing(FramedSendMode::Align, FramedReceiveMode::Align);
  FramedStreamListener listener = listen(mirrored(options));
  FramedStream near =
      must(world.left.connect_framed({world.right.address(), kFramedPort}, options));
  near.finish_sending();
  FramedStream far;
  EXPECT_TRUE(world.wait([&] {
    if (!far.is_valid()) {
      if (auto stream = listener.accept()) far = std::move(*stream);
    }
    return far.is_valid() && far.at_end();
  }));
  transfer(world, far, near, 20, 1000);  // the other half is open
}

// TUF-3-01, TUF-A-04, TUF-A-06: whole, or refused with the limit.
TEST_P(Framed, AFrameThatDoesNotFitIsRefused) {
  {
    const auto options = framing(FramedSendMode::Align, FramedReceiveMode::Align);
    FramedStreamListener listener = listen(mirrored(options));
    FramedPair pair = connect(world, listener, options);
    const uint32_t limit = pair.near.frame_limit();
    EXPECT_EQ(limit, pair.near.usable_emss());
    EXPECT_GE(pair.near.emss_changes(), 1u);
    EXPECT_FALSE(pair.near.writable(limit + 1));
    const auto refused = pair.near.send(frame(limit + 1, 1));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::MessageSize);
    EXPECT_NE(refused.error().message.find(std::to_string(limit)), std::string::npos);
    EXPECT_EQ(pair.near.send(octets(100, 3)).error().code, ErrorCode::InvalidArgument);
    EXPECT_EQ(pair.near.send({}).error().code, ErrorCode::InvalidArgument);
    EXPECT_TRUE(pair.near.writable(limit));
    EXPECT_EQ(must(pair.near.send(frame(limit, 1))), limit);
    ASSERT_TRUE(world.wait([&] { return pair.far.readable() == limit; }));
    Octets buffer(limit - 1);
    const auto small = pair.far.receive(buffer);  // the frame stays
    ASSERT_FALSE(small.has_value());
    EXPECT_EQ(small.error().code, ErrorCode::MessageSize);
    EXPECT_EQ(pair.far.readable(), limit);
    buffer.resize(limit);
    EXPECT_EQ(must(pair.far.receive(buffer)), limit);
    EXPECT_EQ(buffer, frame(limit, 1));
  }
  EXPECT_TRUE(world.becomes_quiescent());
}

// TUF-A-03
TEST_P(Framed, AtomicFramesAddNothing) {
  {
    const auto options = framing(FramedSendMode::Atomic, FramedReceiveMode::Plain);
    FramedStreamListener listener = listen(options);
    FramedPair pair = connect(world, listener, options);
    EXPECT_EQ(pair.near.send(octets(pair.near.frame_limit() + 1, 1)).error().code,
              ErrorCode::MessageSize);
    must(pair.near.send(octets(700, 1)));
    must(pair.near.send(octets(800, 2)));
    Octets all = octets(700, 1), got(1500);
    const Octets second = octets(800, 2);
    all.insert(all.end(), second.begin(), second.end());
    ASSERT_TRUE(world.wait([&] { return pair.far.readable() == 1500; }));
    EXPECT_EQ(must(pair.far.read(got)), 1500u);
    EXPECT_EQ(got, all);
  }
  EXPECT_TRUE(world.becomes_quiescent());
}

// TUF-A-02, TUF-A-07, TUF-2-01: plain octets first, then framing on the open stream.
TEST_P(Framed, FramingIsEnabledLater) {
  {
    const auto plain = framing(FramedSendMode::Plain, FramedReceiveMode::Plain);
    FramedStreamListener listener = listen(plain);
    FramedPair pair = connect(world, listener, plain);
    const uint64_t key = world.left.new_framing_key();
    EXPECT_NE(key, world.left.new_framing_key());
    must(pair.near.send(octets(10, 1)));
    ASSERT_TRUE(world.wait([&] { return pair.far.readable() == 10; }));
    Octets hello(10);
    EXPECT_EQ(must(pair.far.receive(hello)), 10u);
    EXPECT_EQ(pair.near.set_send_mode(FramedSendMode::Align).error().code,
              ErrorCode::InvalidArgument);
    must(pair.near.set_packing(false));
    EXPECT_FALSE(pair.near.packing());
    must(pair.near.set_send_mode(FramedSendMode::Align, key));
    must(pair.far.set_receive_mode(FramedReceiveMode::Align, key));
    transfer(world, pair.near, pair.far, 100, 1000);
    ASSERT_TRUE(world.wait([&] { return pair.near.unacknowledged() == 0; }));
    must(pair.near.set_send_interval(1024));
    must(pair.far.set_receive_interval(1024));
    EXPECT_FALSE(pair.near.set_send_interval(15).has_value());
    must(pair.near.set_max_frame(5000));
    must(pair.near.set_send_mode(FramedSendMode::Markers));
    must(pair.far.set_receive_mode(FramedReceiveMode::Markers));
    EXPECT_EQ(pair.near.frame_limit(), 5000u);
    transfer(world, pair.near, pair.far, 100, 5000);
  }
  EXPECT_TRUE(world.becomes_quiescent());
}

// TUF-2-01, TUF-A-01: the supported set is known, and another mode is refused.
TEST_P(Framed, OpaqueFramesHaveNoMarkers) {
  {
    auto options = framing(FramedSendMode::Align, FramedReceiveMode::Align);
    options.format = FrameFormat::opaque();
    FramedStreamListener listener = listen(mirrored(options));
    FramedPair pair = connect(world, listener, options);
    EXPECT_TRUE(pair.near.supports(FramedSendMode::Align));
    EXPECT_TRUE(pair.near.supports(FramedSendMode::Atomic));
    EXPECT_FALSE(pair.near.supports(FramedSendMode::Markers));
    EXPECT_FALSE(pair.near.supports(FramedReceiveMode::Markers));
    EXPECT_EQ(pair.near.set_send_mode(FramedSendMode::Markers).error().code,
              ErrorCode::Unsupported);
    EXPECT_EQ(pair.near.set_receive_mode(FramedReceiveMode::Markers).error().code,
              ErrorCode::Unsupported);
    must(pair.near.send(octets(77, 1)));
    must(pair.near.send(octets(78, 2)));
    Octets got(100);
    ASSERT_TRUE(world.wait([&] { return pair.far.readable() == 77; }));
    EXPECT_EQ(must(pair.far.receive(got)), 77u);
    ASSERT_TRUE(world.wait([&] { return pair.far.readable() == 78; }));
    options.send_mode = FramedSendMode::Markers;
    EXPECT_EQ(world.left.connect_framed({world.right.address(), kFramedPort}, options).error().code,
              ErrorCode::Unsupported);
  }
  EXPECT_TRUE(world.becomes_quiescent());
}

TEST_P(Framed, AnotherKeyIsAProtocolError) {
  {
    const auto options = framing(FramedSendMode::Align, FramedReceiveMode::Align);
    FramedStreamListener listener = listen(options);  // keys not the other way round
    FramedPair pair = connect(world, listener, options);
    must(pair.near.send(frame(100, 1)));
    Octets got(200);
    Result<size_t> answer = 0;
    ASSERT_TRUE(world.wait([&] { return !(answer = pair.far.receive(got)).has_value(); }));
    EXPECT_EQ(answer.error().code, ErrorCode::Protocol);
    EXPECT_EQ(pair.far.readable(), 0u);
    EXPECT_GE(must(world.right.counter("tuf", "bad_key_errors")), 1u);
    pair.far.abort();
    EXPECT_TRUE(world.wait([&] { return pair.near.how_ended().has_value(); }));
    EXPECT_EQ(pair.near.how_ended(), StreamEnd::PeerReset);
    EXPECT_EQ(pair.near.send(frame(100, 1)).error().code, ErrorCode::Reset);
    EXPECT_EQ(pair.near.set_packing(true).error().code, ErrorCode::WrongState);
  }
  EXPECT_TRUE(world.becomes_quiescent());
}

TEST_P(Framed, AnEndInsideAFrameIsToldAndFramesBeforeAResetAreGiven) {
  {
    FramedStreamListener listener =
        listen(framing(FramedSendMode::Plain, FramedReceiveMode::Markers));
    FramedPair pair =
        connect(world, listener, framing(FramedSendMode::Plain, FramedReceiveMode::Plain));
    must(pair.near.send(Octets{0, 0, 0, 0, 0, 9, 1, 2}));  // a marker, and a part of a frame
    pair.near.finish_sending();
    Octets got(200);
    Result<size_t> answer = 0;
    ASSERT_TRUE(world.wait([&] { return !(answer = pair.far.receive(got)).has_value(); }));
    EXPECT_EQ(answer.error().code, ErrorCode::Protocol);
    EXPECT_FALSE(pair.far.at_end());
  }
  {
    const auto options = framing(FramedSendMode::Align, FramedReceiveMode::Align);
    FramedStreamListener listener = listen(mirrored(options));
    FramedPair pair = connect(world, listener, options);
    must(pair.near.send(frame(100, 1)));
    ASSERT_TRUE(world.wait([&] { return pair.far.readable() == 100; }));
    pair.near.abort();
    EXPECT_TRUE(world.wait([&] { return pair.far.state() == StreamState::Ended; }));
    Octets got(200);
    EXPECT_EQ(must(pair.far.receive(got)), 100u);
    EXPECT_EQ(pair.far.receive(got).error().code, ErrorCode::Reset);
    EXPECT_EQ(pair.far.status().error().code, ErrorCode::Reset);
    ASSERT_TRUE(world.wait([&] { return pair.near.how_ended().has_value(); }));
    EXPECT_EQ(pair.near.how_ended(), StreamEnd::Aborted);
  }
  EXPECT_TRUE(world.becomes_quiescent());
}

TEST_P(Framed, ArgumentsThatCannotBe) {
  const auto options = framing(FramedSendMode::Align, FramedReceiveMode::Align);
  const auto refused = [&](FramingOptions bad) {
    const auto far = world.right.listen_framed(kFramedPort, {.framing = bad});
    const auto near = world.left.connect_framed({world.right.address(), kFramedPort}, bad);
    return !far && !near && far.error().code == ErrorCode::InvalidArgument &&
           near.error().code == ErrorCode::InvalidArgument;
  };
  FramingOptions bad = options;
  bad.send_key = 0;
  EXPECT_TRUE(refused(bad));
  bad.send_key = 1ull << 48;
  EXPECT_TRUE(refused(bad));
  bad = options;
  bad.receive_interval = 15;
  EXPECT_TRUE(refused(bad));
  bad = options;
  bad.format.length_octets = 5;
  EXPECT_TRUE(refused(bad));
  bad = options;
  bad.max_frame = 65529;
  EXPECT_TRUE(refused(bad));
  bad = options;
  bad.send_mode = static_cast<FramedSendMode>(4);
  EXPECT_TRUE(refused(bad));
  bad = options;
  bad.receive_mode = static_cast<FramedReceiveMode>(3);
  EXPECT_TRUE(refused(bad));
  EXPECT_FALSE(world.left.connect_framed(at("::", 1), options).has_value());
  EXPECT_FALSE(world.left.connect_framed(at("10.0.0.2", 0), options).has_value());
  EXPECT_FALSE(world.right.listen_framed(at("10.0.0.9", 0), {.framing = options}).has_value());
  EXPECT_FALSE(
      world.right.listen_framed(kFramedPort, {.backlog = 0, .framing = options}).has_value());
  FramedStreamListener listener = listen(options);
  const auto twice = world.right.listen_framed(kFramedPort, {.framing = options});
  ASSERT_FALSE(twice.has_value());
  EXPECT_EQ(twice.error().code, ErrorCode::AlreadyExists);
}

TEST_P(Framed, HandlesThatWereGivenUpAndNobodyListening) {
  {
    const auto options = framing(FramedSendMode::Align, FramedReceiveMode::Align);
    FramedStream lost =
        must(world.left.connect_framed({world.right.address(), kFramedPort}, options));
    EXPECT_EQ(lost.frame_limit(), 0u);
    EXPECT_TRUE(world.wait([&] { return lost.state() == StreamState::Ended; }));
    EXPECT_EQ(lost.status().error().code, ErrorCode::Unreachable);
    FramedStreamListener listener = listen(mirrored(options));
    FramedPair pair = connect(world, listener, options);
    must(pair.near.send(frame(1000, 1)));
    pair.near.close();
    EXPECT_FALSE(pair.near.is_valid());
    EXPECT_EQ(pair.near.send(frame(9, 1)).error().code, ErrorCode::WrongState);
    EXPECT_FALSE(pair.near.set_packing(true).has_value());
    EXPECT_TRUE(world.wait([&] { return pair.far.readable() == 1000; }));
    FramedStreamListener moved = std::move(listener);
    EXPECT_EQ(listener.local(), Endpoint{});
    EXPECT_FALSE(listener.accept());
    EXPECT_EQ(moved.local(), (Endpoint{{}, kFramedPort}));
  }
  EXPECT_TRUE(world.becomes_quiescent());
}

TEST_P(Framed, NoMoreStreamsThanTheLimit) {
  Config config = loopback_config(GetParam());
  config.set("limits.max_framed_streams=2");
  World small(config);
  {
    const auto options = framing(FramedSendMode::Align, FramedReceiveMode::Align);
    FramedStreamListener listener =
        must(small.right.listen_framed(kFramedPort, {.backlog = 2, .framing = mirrored(options)}));
    FramedPair first = connect(small, listener, options);
    FramedPair second = connect(small, listener, options);
    const auto third = small.left.connect_framed({small.right.address(), kFramedPort}, options);
    ASSERT_FALSE(third.has_value());
    EXPECT_EQ(third.error().code, ErrorCode::ResourceExhausted);
    EXPECT_NE(third.error().message.find("limits.max_framed_streams"), std::string::npos);
    transfer(small, second.near, second.far, 50, 1000);
    first.near.close();
    first.far.close();
    ASSERT_TRUE(small.wait([&] {  // their places are free again
      auto again = small.left.connect_framed({small.right.address(), kFramedPort}, options);
      return again.has_value();
    }));
  }
  EXPECT_TRUE(small.becomes_quiescent());
}

TEST(FramedThreads, ManyFramesFromOneThreadToAnother) {
  World world(loopback_config(true));
  constexpr uint32_t kFrames = 5000;
  std::atomic<uint32_t> good{0};
  {
    const auto options = framing(FramedSendMode::Align, FramedReceiveMode::Align);
    FramedStreamListener listener =
        must(world.right.listen_framed(kFramedPort, {.framing = mirrored(options)}));
    FramedPair pair = connect(world, listener, options);
    std::thread receiver([&] {
      Octets got(2000);
      for (uint32_t i = 0; i < kFrames;) {
        const auto n = pair.far.receive(got);
        if (!n) return;
        if (*n == 0) {
          std::this_thread::yield();
          continue;
        }
        if (Octets(got.begin(), got.begin() + static_cast<ptrdiff_t>(*n)) ==
            frame(2 + i % 1300, i)) {
          ++good;
        }
        ++i;
      }
    });
    for (uint32_t i = 0; i < kFrames;) {
      const auto n = pair.near.send(frame(2 + i % 1300, i));
      if (!n) break;
      if (*n == 0) {
        std::this_thread::yield();
      } else {
        ++i;
      }
    }
    receiver.join();
  }
  EXPECT_EQ(good.load(), kFrames);
  EXPECT_TRUE(world.becomes_quiescent());
}

}  // namespace
}  // namespace rnic::test
