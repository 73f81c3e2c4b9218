/// \file
/// What the checkers of one world have found: nothing, or the first thing that is wrong.
#pragma once

#include <string>
#include <utility>

namespace rnic::simulation {

class Verdict {
 public:
  /// The first failure counts; what follows it is mostly its consequence.
  void fail(std::string checker, std::string message) {
    if (failed_) return;
    failed_ = true;
    checker_ = std::move(checker);
    message_ = std::move(message);
  }

  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] const std::string& checker() const { return checker_; }
  [[nodiscard]] const std::string& message() const { return message_; }

 private:
  bool failed_ = false;
  std::string checker_;
  std::string message_;
};

}  // namespace rnic::simulation
