// What programs say of an exception that nobody else has taken.

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include "program/program.hpp"

namespace rnic::program {
namespace {

TEST(Thrown, NothingWasThrown) {
  EXPECT_FALSE(caught([] {}));
}

TEST(Thrown, WhatTheMachineDoesNotGive) {
  const Thrown memory = caught([] { throw std::bad_alloc(); });
  ASSERT_TRUE(memory);
  EXPECT_NE(std::string(memory.what()).find("out of memory"), std::string::npos);
  const auto code = std::make_error_code(std::errc::resource_unavailable_try_again);
  const Thrown thread = caught([&] { throw std::system_error(code); });
  EXPECT_NE(std::string(thread.what()).find("no thread is to be had"), std::string::npos);
}

TEST(Thrown, TheTextGoesAlong) {
  EXPECT_STREQ(caught([] { throw std::runtime_error("the queue is gone"); }).what(),
               "an unexpected error: the queue is gone");
  const auto code = std::make_error_code(std::errc::permission_denied);
  const Thrown refused = caught([&] { throw std::system_error(code, "eventfd"); });
  EXPECT_NE(std::string(refused.what()).find("the system refused something: eventfd"),
            std::string::npos);
}

TEST(Thrown, ALongTextIsCutShort) {
  const Thrown thrown = caught([] { throw std::runtime_error(std::string(1000, 'x')); });
  const std::string said = thrown.what();
  EXPECT_EQ(said.size(), 255u);
  EXPECT_EQ(said.back(), 'x');
}

}  // namespace
}  // namespace rnic::program
