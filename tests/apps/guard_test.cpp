// What a thread of a program carries out is guarded from its first octet on.

#include <gtest/gtest.h>

#include <array>
#include <new>
#include <string>

#include "program/program.hpp"

namespace rnic::program {
namespace {

// Nothing is asked for on the way into the guard, however much the body holds: a std::function of
// it would be made outside, and what that throws ends the process.
TEST(Guard, ABodyOfAnySizeIsGuardedAsAWhole) {
  const std::array<char, 256> much{};
  auto body = [much] {
    if (much[0] == 0) throw std::bad_alloc();
  };
  static_assert(noexcept(caught(body)), "the call itself may throw");
  const Thrown thrown = caught(body);
  ASSERT_TRUE(thrown);
  EXPECT_NE(std::string(thrown.what()).find("out of memory"), std::string::npos);
}

TEST(Guard, WhatGoesWellIsNothing) {
  int carried_out = 0;
  EXPECT_FALSE(caught([&] { ++carried_out; }));
  EXPECT_EQ(carried_out, 1);
}

}  // namespace
}  // namespace rnic::program
