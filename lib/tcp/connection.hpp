/// \file
/// Everything the engine knows about one connection. Plain data with the Stream's edge on top; what
/// is done with it is in Engine, split over files by RFC concept.
#pragma once

#include <cstdint>

#include "base/slab.hpp"
#include "base/time.hpp"
#include "llp/stream.hpp"
#include "llp/transport.hpp"
#include "tcp/ack_policy.hpp"
#include "tcp/congestion.hpp"
#include "tcp/connection_list.hpp"
#include "tcp/connection_options.hpp"
#include "tcp/ecn.hpp"
#include "tcp/half_open.hpp"
#include "tcp/handshake.hpp"
#include "tcp/keep_alive.hpp"
#include "tcp/pacing.hpp"
#include "tcp/path_mtu_discovery.hpp"
#include "tcp/prediction.hpp"
#include "tcp/rack.hpp"
#include "tcp/range_pool.hpp"
#include "tcp/recovery.hpp"
#include "tcp/rto.hpp"
#include "tcp/scoreboard.hpp"
#include "tcp/spurious.hpp"
#include "tcp/state.hpp"
#include "tcp/tail_probe.hpp"
#include "tcp/tcb.hpp"
#include "tcp/timers.hpp"

namespace rnic::tcp {

class Engine;

class Connection final : public llp::Stream {
 public:
  Connection(Engine& owner, base::TimerWheel& wheel, RecordPool& pool, RangePool& ranges,
             const Config& config)
      : engine(owner),
        rto(config),
        cc(config),
        timers(wheel, this, prediction),
        board(tcb, pool, ranges, prediction),
        rack(tcb, rto, board, timers),
        tail_probe(tcb, rto, board, timers, prediction, config),
        recovery(tcb, board, cc),
        spurious(tcb, rto, cc, config),
        committed(ranges),
        ack(tcb, committed, timers, config),
        path(tcb, prediction) {}

  // llp::Stream
  [[nodiscard]] llp::StreamTraits traits() const override {
    return {.can_drop = true,
            .out_of_order = true,
            .atomic_records = true,
            .release_on_ack = true,
            .emss_exact = true,
            .shows_segments = true};
  }
  [[nodiscard]] uint32_t emss() const override { return effective_mss; }
  [[nodiscard]] Endpoint local() const override { return local_end; }
  [[nodiscard]] Endpoint remote() const override { return remote_end; }
  void ready() override;
  void close() override;
  void abort() override;
  void room_grew() override;
  void set_user(llp::StreamUser& next) override { user = &next; }
  void set_trace(base::TraceSink* sink) override { trace_sink = sink; }
  [[nodiscard]] base::TraceSink* trace() const override { return trace_sink; }

  /// No octet beyond it was taken from the peer, in or out of order.
  [[nodiscard]] uint64_t taken_to() const {
    return committed.empty() ? tcb.rcv_nxt : committed.ranges().back().end;
  }

  Engine& engine;
  Prediction prediction;
  base::Handle handle;
  Tcb tcb;
  State state = State::Closed;
  uint16_t smss_peer = 536;      ///< MSS option of the peer (RFC 9293 MUST-15)
  uint32_t effective_mss = 536;  ///< EMSS: payload octets of a full segment
  llp::StreamUser* user = nullptr;
  base::TraceSink* trace_sink = nullptr;

  // Sending.
  bool user_ready = false;    ///< pull() may have something
  bool fin_wanted = false;    ///< close() was called
  bool fin_queued = false;    ///< our FIN has its place in the sequence
  bool sws_override = false;  ///< the override timer fired: send less than a full record
  bool window_probe_due = false;
  bool fin_seen = false;        ///< the peer's, in order or not: at fin_offset
  uint8_t last_octet = 0;       ///< octet at SND.NXT - 1, for window probes
  uint64_t piece_next = 0;      ///< progress of the cut record being retransmitted
  uint64_t cwnd_full_to = 0;    ///< what lies below it was sent while cwnd was the limit
  uint64_t flight_peak = 0;     ///< most octets in flight since SND.UNA was at flight_peak_from
  uint64_t flight_peak_to = 0;  ///< acknowledged up to here the peak is measured anew
  uint32_t persist_backoff = 0;
  uint32_t unanswered_probes = 0;  ///< window probes since the peer last said anything
  base::Now last_sent_at{};
  uint64_t small_end = 0;   ///< end of the last segment that was not full (Nagle)
  base::Now progress_at{};  ///< last time the peer acknowledged something, or sending began
  base::Now orphan_until = base::kNever;  ///< closed by the user: it has until then to get on
  RtoEstimator rto;
  Congestion cc;
  EcnState ecn;
  Pacing pacing;
  Timers timers;
  ConnectionLink ready_link;
  ConnectionLink doomed_link;

  // Loss.
  Scoreboard board;
  Rack rack;
  TailProbe tail_probe;
  Recovery recovery;
  SpuriousDetector spurious;

  // Receiving.
  PooledRanges committed;  ///< ranges beyond RCV.NXT that will never be asked for again
  AckPolicy ack;
  uint32_t rcv_buff = 0;  ///< RCV.BUFF: the largest room that the user ever had
  uint64_t fin_offset = 0;
  uint64_t urgent_end = 0;  ///< RCV.UP; 0: nothing was ever urgent

  // Life.
  Endpoint local_end;
  Endpoint remote_end;
  ConnectionOptions options;
  PathMtuDiscovery path;
  KeepAlive keep_alive;
  bool soft_error = false;            ///< ICMP spoke of a trouble that may pass
  llp::Acceptor* acceptor = nullptr;  ///< passive open
  HalfOpenSeat half_open;
  Handshake handshake;
  bool opened = false;    ///< reached ESTABLISHED
  bool doomed = false;    ///< to be ended by reap(); no call up but ended()
  bool tell_end = false;  ///< ended() is owed
  StreamEnd how_ended = StreamEnd::Closed;
};

}  // namespace rnic::tcp
