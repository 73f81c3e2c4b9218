/// \file
/// The configuration of MPA on one connection.
#pragma once

#include <cstdint>

#include "base/time.hpp"
#include "framing/config.hpp"
#include "framing/read_depths.hpp"

namespace rnic::mpa {

/// Each field is a run-time option.
struct Config : framing::Config {
  bool crc = true;                   ///< ask for CRC (C bit); off only when both sides say so
  bool markers_receive = false;      ///< ask the peer to put markers into what it sends us (M bit)
  bool markers_send_allowed = true;  ///< false: refuse a peer that asks us for markers
  bool check_all_markers = true;     ///< of an FPDU; false, with CRC: only those that locate one
  bool silent_drop = true;     ///< a bad CRC drops the segment before commit; false: Terminate
  uint32_t drop_limit = 8;     ///< silent drops of one range before the error is reported
  uint8_t revision = 2;        ///< the highest; 0: the draft's profile, which knows no other
  bool permissive = false;     ///< serve peers of revision 0 as well (RFC 5044 app. C)
  bool exchange_reads = true;  ///< initiator: agree on IRD and ORD (RFC 6581), when nobody says
  bool peer_to_peer = false;   ///< initiator: send an RTR (RFC 6581), when nobody says
  bool redial = true;          ///< initiator: once more with revision 1 (BUG-18)
  bool reject_closes = false;  ///< a reject ends TCP, too (RFC 5044 s.7.1.4.2); false: s.7.1.2
  bool rtr_send = true;        ///< zero-length Send as RTR (RFC 6581 s.9.2)
  bool rtr_write = true;       ///< zero-length Write as RTR
  bool rtr_read = true;        ///< zero-length Read as RTR
  base::Duration rtr_timeout = std::chrono::seconds(10);  ///< responder: from its Reply to the RTR
  base::Duration first_fpdu_delay{};  ///< initiator: from the Reply to the first FPDU (BUG-14)
  uint32_t reads_limit = framing::kReadsLimit;  ///< highest IRD and ORD told to the peer (BUG-19)
  bool reads_in_private_data = false;  ///< revision 1 as Chelsio has it: IRD, ORD first (BUG-12)
};

}  // namespace rnic::mpa
