/// \file
/// Silence: the time since which a connection has made no progress (limits.silence).
#pragma once

#include <cstdint>
#include <utility>

#include "base/time.hpp"

namespace rnic::device {

class Silence {
 public:
  /// How far a connection has come.
  struct Progress {
    uint64_t arrived = 0;  ///< octets received from the peer
    uint32_t sends = 0;    ///< work requests of ours that have completed
    friend bool operator==(const Progress&, const Progress&) = default;
  };

  /// Stores the present progress. \return whether it has changed since the last look
  bool look(const Progress& progress) { return progress != std::exchange(progress_, progress); }
  void set_since(base::Now when) { since_ = when; }
  [[nodiscard]] base::Now since() const { return since_; }

 private:
  Progress progress_;
  base::Now since_{};
};

}  // namespace rnic::device
