/// \file
/// What a sender remembers of a loss that is being repaired.
#pragma once

#include <cstdint>

namespace rnic::tcp {

enum class RecoveryPhase : uint8_t { Open, Recovery, Loss };

/// Where F-RTO stands (RFC 5682 s.3.1).
enum class Frto : uint8_t {
  Off,
  AwaitAck,  ///< step 2: for the segment that was sent again
  NewData,   ///< step 3: new data went out; what does the next ACK cover?
};

struct Recovery {
  RecoveryPhase phase = RecoveryPhase::Open;
  uint64_t point = 0;  ///< RecoveryPoint: SND.NXT when it began
  // Proportional rate reduction (RFC 6937).
  uint64_t prr_delivered = 0;
  uint64_t prr_out = 0;
  uint64_t recover_fs = 0;
  bool force_retransmit = false;  ///< the first retransmission goes out whatever pipe says
  bool alone = false;             ///< nothing goes behind it: a time-out's has no new ACK yet
  // Was it for nothing? spurious.cpp.
  Frto frto = Frto::Off;
  uint32_t frto_new = 0;       ///< segments of new data that step 2 still lets out
  bool may_undo = false;       ///< the state before the reduction is saved
  bool eifel_armed = false;    ///< `retransmit_ts` is set, no new ACK came yet
  bool adapt_rto = false;      ///< RFC 4015 s.3.1 step 11 waits for its sample
  uint32_t retransmit_ts = 0;  ///< timestamp of the first retransmission
  uint32_t timeout_ts = 0;     ///< of the last time-out
  uint64_t undo_marker = 0;    ///< SND.UNA when it began
  int64_t undo_octets = 0;     ///< sent again, and not reported as duplicates (RFC 2883)
};

}  // namespace rnic::tcp
