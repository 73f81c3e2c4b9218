// Framed streams where something is in the way: a middlebox, a path that changes, a backlog that is
// full, a listener that goes; and ends of one direction and of both.

#include "framed_world.hpp"

namespace rnic::test {
namespace {

FramedReceiveMode read_as(FramedSendMode mode) {
  switch (mode) {
    case FramedSendMode::Align: return FramedReceiveMode::Align;
    case FramedSendMode::Markers: return FramedReceiveMode::Markers;
    default: return FramedReceiveMode::Plain;
  }
}

/// Frames one behind the other; what comes are the same octets, in whatever pieces.
void carry_octets(World& world, FramedStream& from, FramedStream& to, uint32_t count, size_t size) {
  Octets sent, got;
  for (uint32_t i = 0; i < count; ++i) {
    const Octets one = frame(size, i);
    sent.insert(sent.end(), one.begin(), one.end());
  }
  std::array<uint8_t, 4096> piece;
  uint32_t next = 0;
  ASSERT_TRUE(world.wait([&] {
    while (next < count && must(from.send(frame(size, next))) != 0) ++next;
    while (const size_t n = must(to.read(piece))) {
      got.insert(got.end(), piece.begin(), piece.begin() + static_cast<ptrdiff_t>(n));
    }
    return got.size() >= sent.size();
  }));
  EXPECT_EQ(got, sent);
}

// Everything that the left device sends is cut in two on the way. Frames come
// whole and in order all the same, the receiver of that direction is told of a middlebox and the
// other one is not; with markers instead the stream goes on. Without a middlebox nobody is told.
TEST(FramedPath, AMiddleboxThatCuts_TUF_5_2_06) {
  for (const bool cuts : {true, false}) {
    Config config = loopback_config();
    if (cuts) config.set("device.rnic0.impair.resegment=1.0");
    World world(config);
    {
      auto options = framing(FramedSendMode::Align, FramedReceiveMode::Align);
      options.middlebox_limit = 200;
      options.packing = false;
      FramedStreamListener listener =
          must(world.right.listen_framed(kFramedPort, {.framing = mirrored(options)}));
      FramedPair pair = connect(world, listener, options);
      transfer(world, pair.near, pair.far, 300, pair.near.frame_limit());
      transfer(world, pair.far, pair.near, 300, pair.far.frame_limit());
      EXPECT_EQ(pair.far.is_middlebox_suspected(), cuts);
      EXPECT_FALSE(pair.near.is_middlebox_suspected());
      EXPECT_EQ(must(world.right.counter("tuf", "middlebox_suspected")) != 0, cuts);
      EXPECT_EQ(must(world.left.counter("tuf", "middlebox_suspected")), 0u);
      if (cuts) {
        EXPECT_GT(must(world.right.counter("tuf", "unaligned_segments_in")), 300u);
      }
      ASSERT_TRUE(world.wait([&] { return pair.near.unacknowledged() == 0; }));
      must(pair.near.set_send_mode(FramedSendMode::Markers));
      must(pair.far.set_receive_mode(FramedReceiveMode::Markers));
      transfer(world, pair.near, pair.far, 300, 3000);
    }
    EXPECT_TRUE(world.becomes_quiescent());
  }
}

// Segments of 300 octets. In emergency mode frames of 512 octets go, in
// pieces, and come whole, also behind the middlebox; without it they are refused with the limit,
// and a smaller one goes.
TEST(FramedPath, EmergencyMode_TUF_5_2_01_TUF_A_08) {
  for (const bool cuts : {true, false}) {
    Config config = loopback_config();
    if (cuts) config.set("device.rnic0.impair.resegment=1.0");
    World world(config);
    {
      const auto options = framing(FramedSendMode::Align, FramedReceiveMode::Align);
      FramedStreamListener listener =
          must(world.right.listen_framed(kFramedPort, {.framing = mirrored(options)}));
      FramedPair pair;
      pair.near = must(world.left.connect_framed({world.right.address(), kFramedPort}, options,
                                                 {.max_segment = 300}));
      ASSERT_TRUE(world.wait([&] {
        if (!pair.far.is_valid()) {
          if (auto stream = listener.accept()) pair.far = std::move(*stream);
        }
        return pair.far.is_valid() && pair.near.state() == StreamState::Open;
      }));
      const uint32_t limit = pair.near.frame_limit();
      EXPECT_LE(limit, 300u - 8);
      const auto refused = pair.near.send(frame(512, 1));
      ASSERT_FALSE(refused.has_value());
      EXPECT_EQ(refused.error().code, ErrorCode::MessageSize);
      EXPECT_NE(refused.error().message.find(std::to_string(limit)), std::string::npos);
      transfer(world, pair.near, pair.far, 50, limit);
      must(pair.near.set_emergency(true));
      EXPECT_EQ(pair.near.frame_limit(), 512u);
      EXPECT_EQ(pair.near.usable_emss(), limit);
      EXPECT_EQ(pair.near.send(frame(513, 1)).error().code, ErrorCode::MessageSize);
      transfer(world, pair.near, pair.far, 100, 512);
      EXPECT_GT(must(world.left.counter("tuf", "frames_cut")), 0u);
      must(pair.near.set_emergency(false));
      EXPECT_EQ(pair.near.frame_limit(), limit);
    }
    EXPECT_TRUE(world.becomes_quiescent());
  }
}

// The path turns out wider while the stream runs. The notice comes; where the
// application asked for it the next frame is refused once, and the same frame goes when it is sent
// again.
TEST(FramedPath, EmssGrowsInTheMiddle_TUF_A_05) {
  for (const bool asked : {true, false}) {
    Config config = loopback_config();
    config.set("tcp.mtu_probe_from_base=true");
    World world(config);
    {
      auto options = framing(FramedSendMode::Align, FramedReceiveMode::Align);
      options.refuse_on_growth = asked;
      FramedStreamListener listener =
          must(world.right.listen_framed(kFramedPort, {.framing = mirrored(options)}));
      FramedPair pair = connect(world, listener, options);
      const uint32_t before = pair.near.usable_emss(), notices = pair.near.emss_changes();
      EXPECT_LE(before, 1024u);
      std::array<uint8_t, 65536> piece;
      uint32_t sent = 0, got = 0, refusals = 0;
      ASSERT_TRUE(world.wait([&] {
        const bool enough = sent > 400 && pair.near.usable_emss() > 1400;
        for (int burst = 0; burst < 16 && !enough; ++burst) {  // a probe wants a queue behind it
          const auto n = pair.near.send(frame(pair.near.frame_limit(), sent));
          if (!n) {
            EXPECT_EQ(n.error().code, ErrorCode::MessageSize);
            ++refusals;
          } else if (*n != 0) {
            ++sent;
          }
        }
        while (const size_t length = must(pair.far.receive(piece))) {
          EXPECT_EQ(Octets(piece.begin(), piece.begin() + static_cast<ptrdiff_t>(length)),
                    frame(length, got));
          ++got;
        }
        return enough && got == sent;
      })) << pair.near.usable_emss();
      EXPECT_GT(pair.near.emss_changes(), notices);
      EXPECT_EQ(refusals != 0, asked) << refusals;
      EXPECT_EQ(must(world.left.counter("tuf", "message_size_errors")), refusals);
      EXPECT_FALSE(pair.far.is_middlebox_suspected());
    }
    EXPECT_TRUE(world.becomes_quiescent());
  }
}

// Each direction has its mode, in all combinations.
TEST(FramedPath, EveryModeAgainstEveryOther_TUF_4_01) {
  constexpr FramedSendMode kModes[] = {FramedSendMode::Plain, FramedSendMode::Atomic,
                                       FramedSendMode::Align, FramedSendMode::Markers};
  World world;
  for (const FramedSendMode there : kModes) {
    for (const FramedSendMode back : kModes) {
      SCOPED_TRACE(std::string(to_string(there)) + " there, " + to_string(back) + " back");
      auto near = framing(there, read_as(back));
      auto far = mirrored(near);
      far.send_mode = back;
      far.receive_mode = read_as(there);
      near.send_interval = far.receive_interval = 300;
      near.receive_interval = far.send_interval = 700;
      FramedStreamListener listener =
          must(world.right.listen_framed(kFramedPort, {.framing = far}));
      FramedPair pair = connect(world, listener, near);
      EXPECT_EQ(pair.near.send_mode(), there);
      EXPECT_EQ(pair.far.send_mode(), back);
      EXPECT_EQ(pair.near.receive_mode(), read_as(back));
      const auto move = [&](FramedSendMode mode, FramedStream& from, FramedStream& to) {
        const bool whole = read_as(mode) != FramedReceiveMode::Plain;
        whole ? transfer(world, from, to, 60, 1400) : carry_octets(world, from, to, 60, 1400);
      };
      move(there, pair.near, pair.far);
      move(back, pair.far, pair.near);
      move(there, pair.near, pair.far);
      // A half close of one direction leaves the other one as it is.
      pair.near.finish_sending();
      ASSERT_TRUE(world.wait([&] { return pair.far.at_end(); }));
      move(back, pair.far, pair.near);
      EXPECT_FALSE(pair.near.at_end());
    }
  }
  EXPECT_TRUE(world.becomes_quiescent());
}

// A backlog of two: the third connection that nobody has accepted is refused, and told so; each
// accept() makes room for one.
TEST(FramedListeners, ABacklogThatIsFull) {
  World world;
  {
    const auto options = framing(FramedSendMode::Align, FramedReceiveMode::Align);
    FramedStreamListener listener =
        must(world.right.listen_framed(kFramedPort, {.backlog = 2, .framing = mirrored(options)}));
    const auto dial = [&] {
      return must(world.left.connect_framed({world.right.address(), kFramedPort}, options));
    };
    const auto opens = [&](FramedStream& stream, uint64_t waiting) {
      world.wait([&] {
        return stream.state() == StreamState::Open &&
               must(world.right.counter("device", "framed_accepted")) == waiting;
      });
      return stream.state() == StreamState::Open;
    };
    // The handshake may be over before the refusal: the stream ends at once, then.
    const auto is_refused = [&](FramedStream& stream) {
      world.wait([&] { return stream.state() == StreamState::Ended; });
      return stream.state() == StreamState::Ended && !stream.status().has_value();
    };
    FramedStream first = dial(), second, third;
    EXPECT_TRUE(opens(first, 1));
    second = dial();
    EXPECT_TRUE(opens(second, 2));
    EXPECT_EQ(must(world.right.counter("device", "framed_refused")), 0u);
    third = dial();
    EXPECT_TRUE(is_refused(third));
    EXPECT_EQ(third.send(frame(10, 1)).error().code, third.status().error().code);
    EXPECT_EQ(must(world.right.counter("device", "framed_refused")), 1u);
    auto accepted = listener.accept();
    ASSERT_TRUE(accepted);
    FramedStream fourth = dial();
    EXPECT_TRUE(opens(fourth, 3));
    FramedStream fifth = dial();
    EXPECT_TRUE(is_refused(fifth));
    transfer(world, first, *accepted, 20, 1000);  // in the order of their coming
    auto next = listener.accept();
    ASSERT_TRUE(next);
    transfer(world, *next, second, 20, 1000);
  }
  EXPECT_TRUE(world.becomes_quiescent());
}

// A listener that goes resets the connections that wait, leaves the accepted ones alone, and its
// port is free.
TEST(FramedListeners, OneThatGoesWithConnectionsWaiting) {
  World world;
  {
    const auto options = framing(FramedSendMode::Align, FramedReceiveMode::Align);
    auto listener = std::make_unique<FramedStreamListener>(
        must(world.right.listen_framed(kFramedPort, {.framing = mirrored(options)})));
    FramedPair kept = connect(world, *listener, options);
    std::vector<FramedStream> waiting;
    for (int i = 0; i < 3; ++i) {
      waiting.push_back(
          must(world.left.connect_framed({world.right.address(), kFramedPort}, options)));
    }
    ASSERT_TRUE(
        world.wait([&] { return must(world.right.counter("device", "framed_accepted")) == 4; }));
    must(waiting[0].send(frame(500, 1)));  // whatever it has sent
    listener.reset();
    for (FramedStream& one : waiting) {
      EXPECT_TRUE(world.wait([&] { return one.state() == StreamState::Ended; }));
      EXPECT_EQ(one.how_ended(), StreamEnd::PeerReset);
    }
    transfer(world, kept.near, kept.far, 50, 1000);
    FramedStream late =
        must(world.left.connect_framed({world.right.address(), kFramedPort}, options));
    EXPECT_TRUE(world.wait([&] { return late.state() == StreamState::Ended; }));
    EXPECT_EQ(late.status().error().code, ErrorCode::Unreachable);
    FramedStreamListener again =
        must(world.right.listen_framed(kFramedPort, {.framing = mirrored(options)}));
    FramedPair pair = connect(world, again, options);
    transfer(world, pair.far, pair.near, 50, 1000);
  }
  EXPECT_TRUE(world.becomes_quiescent());
}

// Both ends finish at once behind what they have sent; all of it arrives, and both end Closed. An
// end that is let go delivers what it has sent, and resets who sends to it afterwards.
TEST(FramedEnds, OfBothDirectionsAndOfOne) {
  World world;
  {
    const auto options = framing(FramedSendMode::Align, FramedReceiveMode::Align);
    FramedStreamListener listener =
        must(world.right.listen_framed(kFramedPort, {.framing = mirrored(options)}));
    const auto count = [&](FramedStream& stream) {
      std::array<uint8_t, 4096> piece;
      uint32_t frames = 0;
      EXPECT_TRUE(world.wait([&] {
        while (must(stream.receive(piece)) != 0) ++frames;
        return stream.at_end();
      }));
      return frames;
    };
    FramedPair pair = connect(world, listener, options);
    for (uint64_t i = 0; i < 30; ++i) {
      must(pair.near.send(frame(1000, i)));
      must(pair.far.send(frame(1000, i)));
    }
    pair.near.finish_sending();
    pair.far.finish_sending();
    EXPECT_EQ(count(pair.far), 30u);
    EXPECT_EQ(count(pair.near), 30u);
    EXPECT_TRUE(world.wait([&] { return pair.near.how_ended() && pair.far.how_ended(); }));
    EXPECT_EQ(pair.near.how_ended(), StreamEnd::Closed);
    EXPECT_EQ(pair.far.how_ended(), StreamEnd::Closed);

    FramedPair other = connect(world, listener, options);
    for (uint64_t i = 0; i < 30; ++i) must(other.near.send(frame(1000, i)));
    other.near.close();
    EXPECT_EQ(count(other.far), 30u);
    EXPECT_TRUE(world.wait([&] {
      const auto sent = other.far.send(frame(100, 1));
      return !sent.has_value();
    }));
    EXPECT_NE(other.far.how_ended(), std::nullopt);
  }
  EXPECT_TRUE(world.becomes_quiescent());
}

}  // namespace
}  // namespace rnic::test
