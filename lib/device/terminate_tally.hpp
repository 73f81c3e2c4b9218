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

/// Belongs to the worker. A peer may send codes that no RFC defines: codes beyond the first
/// kMaxCodes different ones are counted together, so that a peer cannot make the table grow.
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
  /// The counts in the order in which the codes first appeared; codes without a place of their own
  /// come last.
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
  size_t used_ = 0;  // Invariant: <= kMaxCodes; no two places have the same code
  TerminateCount others_;
};

}  // namespace rnic::device
