/// \file
/// Silence: since when a connection has not moved (limits.silence).
#pragma once

#include <cstdint>
#include <utility>

#include "base/time.hpp"

namespace rnic::device {

class Silence {
 public:
  /// How far a connection has come.
  struct Progress {
    uint64_t arrived = 0;  ///< octets of the peer
    uint32_t sends = 0;    ///< work requests of ours that have completed
    friend bool operator==(const Progress&, const Progress&) = default;
  };

  /// Keeps what is there now. \return it is not what was there at the last look
  bool look(const Progress& progress) { return progress != std::exchange(progress_, progress); }
  void set_since(base::Now when) { since_ = when; }
  [[nodiscard]] base::Now since() const { return since_; }

 private:
  Progress progress_;
  base::Now since_{};
};

}  // namespace rnic::device
