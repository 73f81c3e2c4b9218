/// \file
/// What the device may answer, and what was seen of it.
#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <map>
#include <stdexcept>
#include <string>

#include "rnic/error.hpp"

namespace rnic::spin {

/// The device has done what it must not.
class Violation : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The result that a call has to have.
enum class Expect : uint8_t { Success, Failure, Either };

/// The result that a call has to have that something may be in the way of.
[[nodiscard]] constexpr Expect unless(bool in_the_way) {
  return in_the_way ? Expect::Failure : Expect::Success;
}

/// Holds answers against what they may be, counts them, and remembers the last ones.
class Judge {
 public:
  using Codes = std::initializer_list<ErrorCode>;

  /// \param codes what a failure may be
  /// \return whether the call has succeeded
  bool answered(const std::string& call, const Status& status, Expect expect, Codes codes);
  template <typename T>
  bool answered(const std::string& call, const Result<T>& result, Expect expect, Codes codes) {
    return answered(call, result ? Status{} : Status{tl::unexpected(result.error())}, expect,
                    codes);
  }
  /// Something that came of itself.
  void seen(const std::string& what);
  [[noreturn]] void broken(const std::string& what) const;
  void require(bool good, const std::string& what) const {
    if (!good) broken(what);
  }

  /// How often each call has succeeded and failed, and how much of each kind has come.
  [[nodiscard]] const std::map<std::string, uint64_t>& counts() const { return counts_; }
  /// The last ones, oldest first.
  [[nodiscard]] const std::deque<std::string>& history() const { return history_; }

 private:
  static constexpr size_t kRemembered = 40;
  void remember(const std::string& what);

  std::map<std::string, uint64_t> counts_;
  std::deque<std::string> history_;
};

}  // namespace rnic::spin
