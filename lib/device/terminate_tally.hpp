/// \file
/// TerminateTally: how many Terminate messages of each code a device has sent and received.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <variant>
#include <vector>

#include "base/check.hpp"
#include "rnic/event.hpp"
#include "rnic/fault.hpp"
#include "rnic/queue_info.hpp"

namespace rnic::device {

/// The worker's. A peer may send codes that no RFC has: what is beyond kMaxCodes different ones is
/// counted together, so that it cannot make the table grow.
class TerminateTally {
 public:
  static constexpr size_t kMaxCodes = 64;

  void happened(const Event& event) {
    if (const auto* sent = std::get_if<event::TerminateSent>(&event)) {
      ++place(code_of(sent->fault)).sent;
    } else if (const auto* received = std::get_if<event::TerminateReceived>(&event)) {
      ++place(code_of(received->fault)).received;
    }
  }
  /// In the order of their first appearance; those without a place of their own last.
  [[nodiscard]] std::vector<TerminateCount> counts() const {
    std::vector<TerminateCount> all(counts_.begin(), counts_.begin() + used_);
    if (others_.sent != 0 || others_.received != 0) all.push_back(others_);
    return all;
  }
  /// Checks that no code has two places.
  void validate() const {
    RNIC_CHECK(used_ <= kMaxCodes);
    for (size_t i = 0; i < used_; ++i) {
      const auto same = [&](const TerminateCount& one) { return one.code == counts_[i].code; };
      RNIC_CHECK(std::count_if(counts_.begin(), counts_.begin() + used_, same) == 1);
    }
  }

 private:
  TerminateCount& place(const FaultCode& code) {
    const auto end = counts_.begin() + used_;
    const auto found = std::find_if(counts_.begin(), end,
                                    [&](const TerminateCount& one) { return one.code == code; });
    if (found != end) return *found;
    if (used_ == kMaxCodes) return others_;
    counts_[used_].code = code;
    return counts_[used_++];
  }

  std::array<TerminateCount, kMaxCodes> counts_{};
  size_t used_ = 0;  // Invariant: <= kMaxCodes; each of these has another code
  TerminateCount others_;
};

}  // namespace rnic::device
