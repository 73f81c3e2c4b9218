/// \file
/// The transmission control block: the variables of RFC 9293 section 3.3.1 under their own names.
///
/// Sequence positions are kept as 64-bit stream offsets that never wrap: offset 0 is the octet
/// after the SYN. They turn into 32-bit sequence numbers only at the wire.
#pragma once

#include <cstdint>

#include "base/check.hpp"
#include "base/seq32.hpp"
#include "base/time.hpp"
#include "tcp/peers_fin.hpp"
#include "wire/tcp.hpp"
#include "wire/tcp_options.hpp"

namespace rnic::tcp {

/// The value of a timestamp clock, which ticks once a millisecond (RFC 7323 s.5.4).
[[nodiscard]] inline uint32_t timestamp_at(uint32_t offset, base::Now now) {
  return static_cast<uint32_t>(base::nanos(now) / 1'000'000) + offset;
}

struct Tcb {
  // Send sequence variables.
  base::Seq32 iss;
  uint8_t snd_wind_shift = 0;
  uint64_t snd_una = 0;
  uint64_t snd_nxt = 0;
  uint32_t snd_wnd = 0;
  uint32_t snd_max_wnd = 0;  ///< MAX.SND.WND (RFC 5961 s.5, silly window avoidance)
  int64_t snd_wl1 = 0;       ///< SND.WL1 (RFC 9293 s.3.3.1), as an offset of the peer's stream
  int64_t snd_wl2 = 0;       ///< SND.WL2, as an offset of our stream

  // Receive sequence variables.
  base::Seq32 irs;
  uint8_t rcv_wind_shift = 0;
  PeersFin peers_fin = PeersFin::None;
  // Options agreed on the SYNs.
  bool ts_ok = false;
  bool sack_ok = false;
  uint64_t rcv_nxt = 0;  ///< delivery point; the peer's FIN is not counted in it
  /// Right edge of the windows offered so far, as the headers expressed it (RFC 7323 s.2.4: the
  /// actual maximum). It never moves left, even where scaling has rounded the latest offer below
  /// it.
  uint64_t rcv_edge = 0;

  // Timestamps (RFC 7323 s.4.3).
  uint32_t ts_recent = 0;
  uint32_t ts_offset = 0;  ///< our timestamp clock starts at a random point
  base::Now ts_recent_at{};

  [[nodiscard]] base::Seq32 snd_seq(uint64_t offset) const {
    return iss + 1 + static_cast<uint32_t>(offset);
  }
  [[nodiscard]] base::Seq32 rcv_seq(uint64_t offset) const {
    return irs + 1 + static_cast<uint32_t>(offset);
  }
  /// The value of the ACK field.
  [[nodiscard]] base::Seq32 ack_seq() const { return rcv_seq(ack_offset()); }
  [[nodiscard]] uint64_t ack_offset() const {
    if (peers_fin == PeersFin::Reached) [[unlikely]] return rcv_nxt + 1;
    return rcv_nxt;
  }

  /// Stream offset of a sequence number near SND.UNA / RCV.NXT; negative: before the stream.
  [[nodiscard]] int64_t snd_offset(base::Seq32 seq) const {
    return static_cast<int64_t>(snd_una) + static_cast<int32_t>(seq - snd_seq(snd_una));
  }
  [[nodiscard]] int64_t rcv_offset(base::Seq32 seq) const {
    return static_cast<int64_t>(rcv_nxt) + static_cast<int32_t>(seq - rcv_seq(rcv_nxt));
  }

  /// Header length of a segment with text, with the options that all segments carry.
  [[nodiscard]] uint32_t header_length() const {
    return wire::kTcpHeaderMin + (ts_ok ? wire::kTcpTimestampsPadded : 0);
  }
  [[nodiscard]] uint64_t flight() const { return snd_nxt - snd_una; }
  [[nodiscard]] uint64_t rcv_wnd() const { return rcv_edge > rcv_nxt ? rcv_edge - rcv_nxt : 0; }
  /// Octets that may be sent beyond SND.NXT; 0 when the peer has shrunk its window below it.
  [[nodiscard]] uint64_t usable_window() const {
    const uint64_t edge = snd_una + snd_wnd;
    return edge > snd_nxt ? edge - snd_nxt : 0;
  }

  /// Our timestamp clock.
  [[nodiscard]] uint32_t timestamp(base::Now now) const { return timestamp_at(ts_offset, now); }

  void validate() const {
    RNIC_CHECK(snd_una <= snd_nxt);
    RNIC_CHECK(snd_wind_shift <= 14 && rcv_wind_shift <= 14);
    RNIC_CHECK(snd_wnd <= snd_max_wnd);
  }
};

}  // namespace rnic::tcp
