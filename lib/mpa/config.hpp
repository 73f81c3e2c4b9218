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
  bool check_all_markers = true;     ///< false, with CRC: check only those that locate an FPDU
  bool silent_drop = true;     ///< drop a segment with a bad CRC before commit; false: Terminate
  uint32_t drop_limit = 8;     ///< silent drops of one segment before the error is reported
  uint8_t revision = 2;        ///< the highest revision; 0: the draft's profile, which has no other
  bool permissive = false;     ///< serve peers of revision 0 as well (RFC 5044 app. C)
  bool exchange_reads = true;  ///< initiator: by default agree on IRD and ORD (RFC 6581)
  bool peer_to_peer = false;   ///< initiator: by default send an RTR (RFC 6581)
  bool redial = true;          ///< initiator: try once more with revision 1 (BUG-18)
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
