// Where the buffers of frames come from, and when.
#include "net/tx_queue.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <vector>

#include "support/fake_port.hpp"

namespace rnic::net {
namespace {

constexpr base::Now kNow = base::from_nanos(1'000'000'000);

port::PortInfo info(uint32_t mtu = 1500) {
  return {"fake", {2, 0, 0, 0, 0, 1}, mtu, port::ChecksumMode::Software};
}

/// Sends one frame alone. \return where its octets are
const uint8_t* send_one(TxQueue& queue) {
  port::Packet packet;
  EXPECT_TRUE(queue.open(packet, kNow));
  packet.length = 60;
  queue.push(packet, kNow);
  EXPECT_TRUE(queue.flush(kNow));
  queue.validate();
  return packet.data;
}

TEST(TxQueue, BuffersComeBehindFramesAndNotBeforeThem) {
  test::FakePort port(info());
  Counters counters;
  TxQueue queue(port, counters);
  send_one(queue);
  for (int i = 0; i < 100; ++i) {
    port::Packet packet;
    const uint32_t before = port.alloc_calls;
    ASSERT_TRUE(queue.open(packet, kNow));
    EXPECT_EQ(port.alloc_calls, before) << "frame " << i;
    queue.cancel(packet);
    send_one(queue);
  }
  EXPECT_EQ(counters.no_buffer, 0u);
}

// Its lines have been asked for when it came.
TEST(TxQueue, TheBufferThatCameFirstIsUsedFirst) {
  test::FakePort port(info());
  Counters counters;
  TxQueue queue(port, counters);
  const uint8_t* last = send_one(queue);
  for (uint32_t i = 1; i < TxQueue::kBurst; ++i) {
    const uint8_t* next = send_one(queue);
    EXPECT_GT(next, last) << "the port's buffers lie in the order in which it gives them";
    last = next;
  }
}

// Turns of sixteen jumbo frames do with sixteen buffers, as the port gives those first that came
// back last: others would drive source and target out of the caches.
TEST(TxQueue, LargeBuffersThatWereUsedLastAreUsedNext) {
  test::FakePort port(info(9000));
  Counters counters;
  TxQueue queue(port, counters);
  std::set<const uint8_t*> used;
  for (int turn = 0; turn < 20; ++turn) {
    std::array<port::Packet, 16> packets;
    ASSERT_EQ(queue.open(packets, kNow), packets.size());
    for (port::Packet& packet : packets) {
      used.insert(packet.data);
      packet.length = 9000;
    }
    queue.push(packets, kNow);
    EXPECT_TRUE(queue.flush(kNow));
    queue.validate();
  }
  EXPECT_EQ(used.size(), 16u);
}

// A port may say anything about its MTU.
TEST(TxQueue, OneBufferIsTakenWhereItIsHuge) {
  test::FakePort port(info(1u << 20), 4);
  Counters counters;
  TxQueue queue(port, counters);
  send_one(queue);
  EXPECT_EQ(port.outstanding(), 0u);
}

// Somebody waits for the frames, and nobody for the buffers of the next ones.
TEST(TxQueue, FramesThatAreHandedOverLeaveBeforeTheirBuffersAreReplaced) {
  test::FakePort port(info());
  Counters counters;
  TxQueue queue(port, counters);
  for (int i = 0; i < 2 * static_cast<int>(TxQueue::kBurst); ++i) {
    port::Packet packet;
    ASSERT_TRUE(queue.open(packet, kNow));
    packet.length = 60;
    queue.push(packet, kNow);
    const uint32_t allocs = port.alloc_calls;
    const uint32_t bursts = port.tx_calls;
    queue.hand_over(kNow);
    EXPECT_EQ(port.tx_calls, bursts + 1);
    EXPECT_EQ(queue.unsent(), 0u);
    EXPECT_EQ(port.alloc_calls, allocs) << "frame " << i;
    EXPECT_TRUE(queue.flush(kNow));
    EXPECT_EQ(port.tx_calls, bursts + 1) << "nothing is left to be sent";
    queue.validate();
  }
  EXPECT_EQ(counters.no_buffer, 0u);
}

TEST(TxQueue, WhatThePortRefusesFromHandOverIsLeftToFlush) {
  test::FakePort port(info());
  Counters counters;
  TxQueue queue(port, counters);
  port::Packet packet;
  ASSERT_TRUE(queue.open(packet, kNow));
  packet.length = 60;
  queue.push(packet, kNow);
  port.tx_room = 0;
  queue.hand_over(kNow);
  EXPECT_EQ(queue.unsent(), 1u);
  EXPECT_FALSE(queue.flush(kNow));
  port.tx_room = UINT32_MAX;
  EXPECT_TRUE(queue.flush(kNow));
  EXPECT_EQ(counters.port_full, 2u);
}

TEST(TxQueue, APoolThatGivesNoMoreIsNoErrorWhileThereAreSpares) {
  test::FakePort port(info(), 8);
  Counters counters;
  TxQueue queue(port, counters);
  port::Packet packet;
  ASSERT_TRUE(queue.open(packet, kNow));
  port.refuse_alloc = true;
  packet.length = 60;
  queue.push(packet, kNow);
  ASSERT_TRUE(queue.flush(kNow));
  for (int i = 0; i < 3; ++i) send_one(queue);
  EXPECT_EQ(counters.no_buffer, 0u);
  EXPECT_FALSE(queue.open(packet, kNow));
  EXPECT_EQ(counters.no_buffer, 1u);
  port.refuse_alloc = false;
  send_one(queue);
}

}  // namespace
}  // namespace rnic::net
