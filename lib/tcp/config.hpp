/// \file
/// Every run-time knob of the TCP engine with unit, default and range (docs/settings.md).
#pragma once

#include <cstdint>

#include "base/time.hpp"
#include "rnic/transport.hpp"

namespace rnic::tcp {

struct Config {
  using Duration = base::Duration;
  static constexpr Duration ms(int64_t n) { return std::chrono::milliseconds(n); }

  bool sack = true;                   ///< offer SACK-permitted (RFC 2018)
  bool timestamps = true;             ///< offer timestamps (RFC 7323)
  bool window_scaling = true;         ///< offer window scale (RFC 7323)
  Ecn ecn = Ecn::Accept;              ///< RFC 3168; DCTCP offers it unless Off
  uint32_t ecn_syn_attempts = 1;      ///< SYNs that ask for ECN before one without, 1..32
  bool dctcp_ect_on_control = false;  ///< DCTCP: ECT on pure ACKs, retransmissions, probes, too
                                      ///< (RFC 8257 s.4.1)
  bool frto = true;  ///< F-RTO: find spurious time-outs by the ACKs of new data (RFC 5682)
  CongestionControl congestion_control = CongestionControl::Cubic;
  /// Initial window, SMSS, 1..64 (RFC 6928 s.2: n * SMSS is limited to n * 1460 octets, but not
  /// below two segments); 0: the table of RFC 5681.
  uint32_t initial_window_segments = 10;
  /// Growth of cwnd by one ACK in slow start, SMSS (RFC 3465); 1 = strict.
  uint32_t growth_limit_segments = 8;
  uint32_t max_cwnd = 16u << 20;  ///< octets
  /// Restart from the initial window after an idle time of an RTO (RFC 5681 s.4.1).
  bool idle_restart = true;
  bool cubic_fast_convergence = true;  ///< RFC 9438 s.4.7
  bool hystart = true;  ///< CUBIC's first slow start ends when the RTT rises (RFC 9406)
  Duration hystart_rtt_threshold_min = ms(4);   ///< MIN_RTT_THRESH
  Duration hystart_rtt_threshold_max = ms(16);  ///< MAX_RTT_THRESH
  uint32_t hystart_css_rounds = 5;              ///< CSS_ROUNDS, 1..64
  uint32_t hystart_css_growth_divisor = 4;      ///< CSS_GROWTH_DIVISOR, 2..64
  uint32_t dctcp_gain_shift = 4;                ///< g = 2^-this, 1..15 (RFC 8257 s.4.2)
  bool pacing = false;                          ///< spread a window over the round-trip time
  uint32_t pacing_slow_start_percent = 200;     ///< of cwnd / SRTT, 100..1000
  uint32_t pacing_percent = 120;                ///< the same, in congestion avoidance
  uint32_t receive_window = 4u << 20;  ///< octets advertised at most; the user may offer less
  Duration rto_initial = ms(1000);     ///< RFC 6298 s.2
  Duration rto_min = ms(200);          ///< RFC 6298 says 1 s; 200 ms is the field's habit
  Duration rto_max = ms(60000);        ///< >= 60 s (RFC 6298)
  Duration delayed_ack = ms(40);       ///< < 500 ms (RFC 9293 s.3.8.6.3)
  /// ACKs of the first parts of a burst that go before the ACK of all of it, where two holes lie
  /// near each other, 0..2. An ACK is repeated where nothing follows it, for 4 MB behind a hole and
  /// unless this is 0 (AckPolicy).
  uint32_t loss_acks = 2;
  /// The longest that RACK waits for a segment which others have overtaken, where it has seen some
  /// come so late; 0: one SRTT, as in RFC 8985 s.6.2.
  Duration reordering_max = ms(2);
  bool tail_loss_probe = true;  ///< RFC 8985 s.7; without it the RTO finds a lost tail
  /// Probe in a fast recovery, too, where RFC 8985 s.7.2 waits for the RTO (SHOULD).
  bool recovery_probe = true;
  /// TLP.max_ack_delay: how late a peer may acknowledge a single segment.
  Duration tlp_max_ack_delay = ms(40);
  Duration time_wait = ms(1000);  ///< RFC 9293 has 4 minutes (2 MSL), but timestamps and the ISN
                                  ///< already keep the octets of an old incarnation out
  Duration user_timeout = ms(100000);     ///< R2: give up after this long without progress
  Duration connect_timeout = ms(180000);  ///< give up an active open
  /// An active open that a RST refuses goes on, with a SYN every 10 ms, until so long after its
  /// begin; 0: a refusal is the end (RFC 9293 s.3.10.7.3).
  Duration refused_time = ms(0);
  uint32_t syn_retries = 8;
  /// A RST is sent when the peer's FIN does not follow ours within this time.
  Duration close_timeout = ms(5000);
  /// A connection that the user has closed while octets or its FIN are unacknowledged is reset when
  /// it makes no progress for this time, whatever the peer answers; 0: never.
  Duration orphan_timeout = ms(300'000);
  bool pack_records = true;                  ///< several small records may share a segment
  bool nagle = false;                        ///< RFC 9293 s.3.7.4, RFC 5044 s.A.2
  bool keep_alive = false;                   ///< RFC 9293 s.3.8.4
  Duration keep_alive_idle = ms(7'200'000);  ///< silence before the first probe
  Duration keep_alive_interval = ms(75'000);
  uint32_t keep_alive_count = 9;  ///< unanswered probes that end a connection
  bool syn_cookies = true;  ///< answer a SYN beyond the half-open limits with a cookie (RFC 4987)
  bool mtu_probing = true;  ///< find paths that drop full segments silently, and search for larger
                            ///< sizes (RFC 4821)
  /// Every connection starts with small segments and probes upward.
  bool mtu_probe_from_base = false;
  Duration mtu_probe_interval = ms(600'000);  ///< between searches for a larger MTU
  uint32_t max_connections = 1024;            ///< per stack, without TIME-WAIT
  uint32_t max_time_wait = 16384;             ///< entries of 64 octets; the oldest gives way
  /// Sets of ranges beyond a hole (1 KB each). A connection takes one for each direction that has a
  /// hole. At the limit an out-of-order segment is dropped.
  uint32_t max_range_sets = 2048;
  uint32_t max_listeners = 64;
  uint32_t max_half_open = 128;                 ///< SYN-RECEIVED at once, per stack
  uint32_t max_half_open_per_listener = 128;    ///< SYN-RECEIVED at once, per listener
  uint32_t max_records_per_connection = 16384;  ///< unacknowledged record descriptors
  uint32_t max_records = 65536;                 ///< unacknowledged record descriptors, per stack
  uint32_t max_saved_octets = 4u << 20;         ///< copies of records that had to be cut, per stack
  uint32_t challenge_ack_limit = 100;           ///< per interval, per stack (RFC 5961 s.7)
  Duration challenge_ack_interval = ms(1000);
  uint16_t ephemeral_first = 49152;  ///< active opens choose from here to 65535 (RFC 6056)
};

}  // namespace rnic::tcp
