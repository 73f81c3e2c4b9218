/// \file
/// What the log says while something is done.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/log.hpp"

namespace rnic::test {

/// Warnings and errors from its making to take(). The log is off before and behind.
class Logged {
 public:
  Logged() {
    base::set_log_level(base::LogLevel::Warning);
    ::testing::internal::CaptureStderr();
  }
  Logged(const Logged&) = delete;
  Logged& operator=(const Logged&) = delete;
  ~Logged() {
    if (!taken_) static_cast<void>(take());
  }
  std::string take() {
    taken_ = true;
    base::set_log_level(base::LogLevel::Off);
    return ::testing::internal::GetCapturedStderr();
  }

 private:
  bool taken_ = false;
};

}  // namespace rnic::test
