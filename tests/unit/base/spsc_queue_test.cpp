#include "base/spsc_queue.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <random>
#include <string>
#include <thread>

namespace rnic::base {
namespace {

TEST(SpscQueue, KeepsTheOrderAndIsFull) {
  SpscQueue<std::string> queue(5);
  EXPECT_EQ(queue.capacity(), 8u);
  std::deque<std::string> expected;
  std::mt19937 random(1);
  std::string out;
  for (int step = 0; step < 5000; ++step) {
    if (random() % 2 == 0) {
      const std::string text = "a text that is too long to be kept inside: " + std::to_string(step);
      ASSERT_EQ(queue.push(text), expected.size() < 8);
      if (expected.size() < 8) expected.push_back(text);
    } else {
      ASSERT_EQ(queue.pop(out), !expected.empty());
      if (expected.empty()) continue;
      ASSERT_EQ(out, expected.front());
      expected.pop_front();
    }
    ASSERT_EQ(queue.size(), expected.size());
    ASSERT_EQ(queue.empty(), expected.empty());
    queue.validate();
  }
}

// A ring would have gone through all of its slots.
TEST(SpscQueue, OnlyPlacesInUseAtOnceAreTouched) {
  SpscQueue<uint64_t> queue(1024);
  uint64_t out = 0;
  for (uint64_t i = 0; i < 5000; ++i) {
    ASSERT_TRUE(queue.push(i));
    ASSERT_TRUE(queue.push(i + 1));
    ASSERT_TRUE(queue.pop(out));
    ASSERT_TRUE(queue.pop(out));
  }
  EXPECT_LE(queue.touched(), 2u);
}

TEST(SpscQueue, WhatIsLeftIsDestroyed) {
  const auto shared = std::make_shared<int>(7);
  {
    SpscQueue<std::shared_ptr<int>> queue(4);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(queue.push(shared));
    std::shared_ptr<int> out;
    ASSERT_TRUE(queue.pop(out));
    EXPECT_EQ(shared.use_count(), 4);
  }
  EXPECT_EQ(shared.use_count(), 1);
}

TEST(SpscQueue, WorksBetweenTwoThreads) {
  constexpr uint64_t kElements = 200'000;
  SpscQueue<uint64_t> queue(16);
  std::thread producer([&] {
    for (uint64_t i = 0; i < kElements; ++i) {
      while (!queue.push(i)) std::this_thread::yield();
    }
  });
  for (uint64_t i = 0; i < kElements; ++i) {
    uint64_t out = 0;
    while (!queue.pop(out)) std::this_thread::yield();
    ASSERT_EQ(out, i);
  }
  producer.join();
  queue.validate();
}

}  // namespace
}  // namespace rnic::base
