/// \file
/// The rate limit of RFC 5961 section 7. A stack answers only a limited number of unacceptable
/// segments with an ACK in each interval, over all its connections and TIME-WAIT.
#pragma once

#include <cstdint>

#include "base/check.hpp"
#include "base/time.hpp"
#include "tcp/counters.hpp"

namespace rnic::tcp {

class ChallengeAcks {
 public:
  /// \param limit the largest number of challenge ACKs in an interval. \param counters outlives
  /// this
  ChallengeAcks(uint32_t limit, base::Duration interval, Counters& counters)
      : limit_(limit), interval_(interval), counters_(counters) {}

  /// Asks for a challenge ACK. \return the ACK may go out, and is counted as sent
  [[nodiscard]] bool allow(base::Now now) {
    if (now - begun_ >= interval_) {
      begun_ = now;
      sent_ = 0;
    }
    if (sent_ >= limit_) {
      ++counters_.challenge_acks_limited;
      return false;
    }
    ++sent_;
    ++counters_.challenge_acks;
    return true;
  }

  void validate() const { RNIC_CHECK(sent_ <= limit_); }

 private:
  const uint32_t limit_;
  const base::Duration interval_;
  Counters& counters_;
  base::Now begun_{};  // start of the interval
  uint32_t sent_ = 0;  // challenge ACKs in the interval. Invariant: at most limit_
};

}  // namespace rnic::tcp
