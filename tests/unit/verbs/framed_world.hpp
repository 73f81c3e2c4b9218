/// \file
/// Framed streams of two devices in one context, the way an application sees them.
#pragma once

#include <array>

#include "verbs_pair.hpp"

namespace rnic::test {

inline constexpr uint16_t kFramedPort = 7200;
inline constexpr uint64_t kThere = 0x0123'4567'89ab;
inline constexpr uint64_t kBack = 0xfedc'ba98'7654;

using Octets = std::vector<uint8_t>;

/// A frame that begins with how many octets follow.
inline Octets frame(size_t size, uint64_t seed) {
  Octets out = octets(size, seed);
  out[0] = static_cast<uint8_t>((size - 2) >> 8);
  out[1] = static_cast<uint8_t>(size - 2);
  return out;
}

inline FramingOptions framing(FramedSendMode send, FramedReceiveMode receive) {
  FramingOptions out;
  out.send_mode = send;
  out.receive_mode = receive;
  out.send_key = kThere;
  out.receive_key = kBack;
  return out;
}

/// What the other end of such a stream has.
inline FramingOptions mirrored(FramingOptions options) {
  std::swap(options.send_key, options.receive_key);
  std::swap(options.send_interval, options.receive_interval);
  return options;
}

struct FramedPair {
  FramedStream near;
  FramedStream far;
};

inline FramedPair connect(World& world, FramedStreamListener& listener,
                          const FramingOptions& options) {
  FramedPair pair;
  pair.near = must(world.left.connect_framed({world.right.address(), kFramedPort}, options));
  const bool done = world.wait([&] {
    if (!pair.far.is_valid()) {
      if (auto stream = listener.accept()) pair.far = std::move(*stream);
    }
    return pair.far.is_valid() && pair.near.state() == StreamState::Open;
  });
  if (!done) throw std::runtime_error("no connection: " + to_string(pair.near.remote()));
  return pair;
}

/// Sends frames of many sizes up to `most` one behind the other; they come whole and in order.
inline void transfer(World& world, FramedStream& from, FramedStream& to, uint32_t count,
                     uint32_t most) {
  std::array<uint8_t, 65536> piece;
  uint32_t sent = 0, got = 0;
  const auto made = [&](uint32_t i) { return frame(2 + (i * 977 + most - 2) % (most - 1), i); };
  ASSERT_TRUE(world.wait([&] {
    while (sent < count && must(from.send(made(sent))) != 0) ++sent;
    while (const size_t n = must(to.receive(piece))) {
      EXPECT_EQ(Octets(piece.begin(), piece.begin() + static_cast<ptrdiff_t>(n)), made(got)) << got;
      ++got;
    }
    return got == count;
  })) << sent
      << " sent, " << got << " received";
}

}  // namespace rnic::test
