// The edge that no exception passes: what becomes of each kind of them.

#include "verbs/boundary.hpp"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

namespace rnic::verbs {
namespace {

/// What a call answers whose body throws `thrown`.
template <typename E>
Error answer_to(const E& thrown) {
  const Status status = guarded("Device::call", [&]() -> Status { throw thrown; });
  EXPECT_FALSE(status);
  return status ? Error{} : status.error();
}

TEST(Boundary, MemoryThatTheMachineDoesNotGive) {
  for (const Error& error : {answer_to(std::bad_alloc()), answer_to(std::length_error("deque"))}) {
    EXPECT_EQ(error.code, ErrorCode::ResourceExhausted);
    EXPECT_TRUE(error.message.starts_with("Device::call: out of memory: ")) << error.message;
  }
}

TEST(Boundary, WhatElseTheSystemDoesNotGive) {
  const Error error = answer_to(
      std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again), "thread"));
  EXPECT_EQ(error.code, ErrorCode::ResourceExhausted);
  EXPECT_TRUE(error.message.starts_with("Device::call: thread: ")) << error.message;
}

TEST(Boundary, WhatNobodyHasForeseen) {
  const Error error = answer_to(std::runtime_error("no such thing"));
  EXPECT_EQ(error.code, ErrorCode::Environment);
  EXPECT_EQ(error.message, "Device::call: no such thing");
}

TEST(Boundary, WhatHasNoErrorToReturnAnswersOtherwise) {
  EXPECT_EQ(guarded_or(std::string("none"), []() -> std::string { throw std::bad_alloc(); }),
            "none");
  EXPECT_EQ(guarded_or(std::string("none"), []() -> std::string { return "some"; }), "some");
}

TEST(Boundary, DestructorsGoOn) {
  int step = 0;
  quietly([&] {
    step = 1;
    throw std::length_error("too long");
  });
  EXPECT_EQ(step, 1);
}

}  // namespace
}  // namespace rnic::verbs
