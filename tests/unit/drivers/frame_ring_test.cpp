// FrameRing: which frames are carried, and that all of them come whole and in order.

#include "dpdk/frame_ring.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <thread>
#include <vector>

#include "base/prng.hpp"

namespace rnic::dpdk {
namespace {

constexpr uint32_t kRoom = 1518;
constexpr size_t kSlots = 16;  // carried frames that the receiver has at once

/// What came of one frame.
struct Came {
  bool carried = false;
  std::vector<uint8_t> octets;       // of a carried one
  port::Buffer* buffer = nullptr;    // the same
  const rte_mbuf* mbuf = nullptr;    // of another one
};

class Wire {
 public:
  explicit Wire(size_t capacity = 64) : ring_(capacity) {}

  /// A frame of octets that depend on `number`; by pointer if the ring does not carry it.
  bool send(uint32_t number, uint32_t length, uint32_t room = kRoom) {
    std::array<uint8_t, kRoom> octets;
    fill(octets.data(), number, length);
    if (ring_.carry({octets.data(), length, room, nullptr})) return true;
    return ring_.push(mbuf(number));
  }
  std::vector<Came> take(size_t most) {
    Taken taken;
    const size_t count = ring_.consume(most, taken);
    EXPECT_EQ(count, taken.came.size());
    return taken.came;
  }
  [[nodiscard]] Came take_one() {
    const std::vector<Came> came = take(1);
    return came.empty() ? Came{} : came.front();
  }
  FrameRing& ring() { return ring_; }

  static void fill(uint8_t* octets, uint32_t number, uint32_t length) {
    for (uint32_t i = 0; i < length; ++i) octets[i] = static_cast<uint8_t>(number * 7 + i);
  }
  /// Nobody looks into it.
  static rte_mbuf* mbuf(uint32_t number) {
    return reinterpret_cast<rte_mbuf*>(uintptr_t{number + 1} * 64);
  }
  static bool is(const Came& came, uint32_t number, uint32_t length) {
    if (!came.carried) return came.mbuf == mbuf(number);
    std::array<uint8_t, kRoom> octets;
    fill(octets.data(), number, length);
    return came.octets.size() == length &&
           std::equal(came.octets.begin(), came.octets.end(), octets.begin());
  }

 private:
  struct Taken {
    void operator()(const port::Packet& packet) {
      came.push_back({true, {packet.data, packet.data + packet.length}, packet.buffer, nullptr});
    }
    void operator()(rte_mbuf* mbuf) { came.push_back({false, {}, nullptr, mbuf}); }
    std::vector<Came> came;
  };

  FrameRing ring_;
};

TEST(FrameRing, CarriesShortFramesAndHandsOverLongOnes) {
  Wire wire;
  for (const uint32_t length : {60u, 150u, FrameRing::kCarried, FrameRing::kCarried + 1, kRoom}) {
    ASSERT_TRUE(wire.send(length, length));
    const Came came = wire.take_one();
    EXPECT_EQ(came.carried, length <= FrameRing::kCarried) << length;
    EXPECT_TRUE(Wire::is(came, length, length)) << length;
    EXPECT_EQ(wire.ring().release(came.buffer), came.carried);
  }
  EXPECT_TRUE(wire.ring().empty());
}

// Octets behind the frame are copied with it, so they have to be there.
TEST(FrameRing, CarriesNoFrameWithoutRoomBehindIt) {
  Wire wire;
  ASSERT_TRUE(wire.send(1, 100, FrameRing::kCarried - 1));
  EXPECT_FALSE(wire.take_one().carried);
}

TEST(FrameRing, FramesGoByPointerWhileTheReceiverKeepsTheSlots) {
  Wire wire;
  std::vector<Came> kept;
  for (uint32_t i = 0; i < kSlots; ++i) {
    ASSERT_TRUE(wire.send(i, 100));
    kept.push_back(wire.take_one());
    ASSERT_TRUE(kept.back().carried) << i;
  }
  ASSERT_TRUE(wire.send(kSlots, 100));
  EXPECT_FALSE(wire.take_one().carried);
  // The slot behind the oldest one is free again, and its turn is next.
  ASSERT_TRUE(wire.ring().release(kept[1].buffer));
  ASSERT_TRUE(wire.send(kSlots + 1, 100));
  const Came next = wire.take_one();
  EXPECT_TRUE(next.carried);
  EXPECT_EQ(next.buffer, kept[1].buffer);
}

TEST(FrameRing, IsFullOfEitherKind) {
  for (const uint32_t length : {100u, 1000u}) {
    Wire wire(4);
    for (uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(wire.send(i, length));
    EXPECT_FALSE(wire.send(4, length));
    EXPECT_FALSE(wire.ring().empty());
    EXPECT_TRUE(Wire::is(wire.take_one(), 0, length));
    EXPECT_TRUE(wire.send(4, length));
    for (uint32_t i = 1; i <= 4; ++i) EXPECT_TRUE(Wire::is(wire.take_one(), i, length)) << i;
  }
}

TEST(FrameRing, DoesNotTakeBackWhatIsNotItsOwn) {
  Wire wire;
  Wire other;
  ASSERT_TRUE(other.send(1, 100));
  EXPECT_FALSE(wire.ring().release(other.take_one().buffer));
  alignas(64) std::array<uint8_t, 256> elsewhere{};
  EXPECT_FALSE(wire.ring().release(reinterpret_cast<port::Buffer*>(elsewhere.data())));
  EXPECT_EQ(std::count(elsewhere.begin(), elsewhere.end(), 0), 256);
}

// Frames of any length, taken in bursts, kept, and given back in any order.
TEST(FrameRing, AnyFramesComeWholeAndInOrder) {
  base::Prng prng(11);
  Wire wire(32);
  std::deque<std::pair<uint32_t, uint32_t>> sent;  // number and length
  std::vector<port::Buffer*> kept;
  uint32_t carried = 0;
  uint32_t next = 0;
  for (uint32_t step = 0; step < 30'000; ++step) {
    const uint32_t length = 60 + prng.next32() % (prng.next32() % 2 == 0 ? 200 : 1400);
    if (wire.send(next, length)) sent.emplace_back(next, length);
    ++next;
    if (prng.next32() % 3 == 0) {
      for (const Came& came : wire.take(prng.next32() % 8)) {
        ASSERT_TRUE(Wire::is(came, sent.front().first, sent.front().second));
        sent.pop_front();
        if (came.carried) kept.push_back(came.buffer);
        carried += came.carried ? 1 : 0;
      }
    }
    while (!kept.empty() && prng.next32() % 4 != 0) {
      std::swap(kept[prng.next32() % kept.size()], kept.back());
      ASSERT_TRUE(wire.ring().release(kept.back()));
      kept.pop_back();
    }
  }
  EXPECT_GT(carried, 1000u);
}

TEST(FrameRing, TwoThreads) {
  constexpr uint32_t kFrames = 100'000;
  const auto length_of = [](uint32_t number) { return 60 + number * 37 % 300; };
  Wire wire(64);
  std::thread sender([&] {
    for (uint32_t i = 0; i < kFrames; ++i) {
      while (!wire.send(i, length_of(i))) std::this_thread::yield();
    }
  });
  uint32_t wrong = 0;
  for (uint32_t next = 0; next < kFrames;) {
    const std::vector<Came> came = wire.take(8);
    if (came.empty()) std::this_thread::yield();
    for (const Came& one : came) {
      wrong += Wire::is(one, next, length_of(next)) ? 0 : 1;
      ++next;
      if (one.carried) wire.ring().release(one.buffer);
    }
  }
  sender.join();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace rnic::dpdk
