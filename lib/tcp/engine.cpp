#include "tcp/engine.hpp"

namespace rnic::tcp {

namespace {
constexpr uint64_t kPortPurpose = 0x706f727473;  // what the secret is used for here

/// A connection has a set for each direction.
uint32_t range_sets_of(const Config& config) {
  return std::min(config.max_range_sets, 2 * config.max_connections);
}
}  // namespace

Engine::Engine(const Config& config, Egress& egress, const Secret& secret, uint64_t seed,
               base::Now now)
    : config_(config),
      egress_(egress),
      secret_(secret),
      random_(secret, seed ^ kPortPurpose),
      challenge_acks_(config.challenge_ack_limit, config.challenge_ack_interval, counters_),
      wheel_(now),
      record_pool_(config.max_records, config.max_connections, config.max_records_per_connection),
      range_pool_(range_sets_of(config)),
      saved_(config.max_saved_octets),
      scratch_(kMaxRecordOctets),
      listeners_(config.max_listeners),
      half_open_(config, secret),
      connections_(config.max_connections, secret),
      time_wait_(config, secret, wheel_, replies_, challenge_acks_, counters_),
      syn_terms_(config, egress),
      cookies_(config, secret, syn_terms_) {}

base::MemoryUses Engine::memory_use(const Config& config) {
  const uint32_t connections = config.max_connections;
  return {
      {"limits.max_connections", ConnectionTable::octets_for(connections)},
      {"tcp.max_records", RecordPool::chunk_octets_for(config.max_records, connections)},
      {"tcp.max_records_per_connection",
       RecordPool::directory_octets_for(config.max_records, connections,
                                        config.max_records_per_connection)},
      {"tcp.max_range_sets", RangePool::octets_for(range_sets_of(config))},
      {"tcp.max_saved_octets", SavedRecords::octets_for(config.max_saved_octets)},
      {"tcp.max_listeners", ListenerTable::octets_for(config.max_listeners)},
      {"tcp.max_time_wait", TimeWaitTable::octets_for(config.max_time_wait)},
  };
}

void Engine::apply_options(Connection& c, const ConnectionOptions& options) {
  c.options = options;
  c.cc.select(options.congestion_control);
  c.cc.set_paced(options.pacing);
  c.pacing.enable(options.pacing);
}

Status Engine::set_options(Connection& c, const ConnectionOptions& options, base::Now now) {
  if (Status good = check_options(options, "set_options"); !good) return good;
  if (c.doomed) return {};
  apply_options(c, options);
  c.orphan_until = base::kNever;
  push_life(c, now);  // half_close may have changed
  arm_keep_alive(c, now);
  if (synchronized(c.state)) {
    update_emss(c, true);
    make_ready(c);
  }
  return {};
}

base::Now Engine::next_deadline() const {
  // What the output stage owes is due at once for whoever only polls by deadlines.
  return output_pending_ || !doomed_.empty() ? base::Now{} : wheel_.next_deadline();
}

bool Engine::quiescent() const {
  return replies_.empty() && record_pool_.live() == 0 && range_pool_.in_use() == 0 &&
         saved_.blocks_in_use() == 0 && connections_.live() == 0;
}

void Engine::on_timers(base::Now now) {
  wheel_.expire(now, [this, now](base::TimerNode& node) {
    if (node.owner == nullptr) {
      time_wait_.fired(now);
      return;
    }
    Connection& c = *static_cast<Connection*>(node.owner);
    fire(c, now);
    if (!c.doomed) c.timers.wait();
  });
  if (!doomed_.empty()) reap(now);
}

void Engine::fire(Connection& c, base::Now now) {
  if (c.doomed) return;
  const Timers& timers = c.timers;
  c.timers.fired();
  if (c.fin_wanted && orphan_over(c, now)) return;
  if (timers.due(Timer::Life, now)) {
    life_over(c, now);
    if (c.doomed) return;
  }
  if (timers.due(Timer::DelayedAck, now)) {
    c.ack.delay_over();
    make_ready(c);
  }
  if (timers.due(Timer::Probe, now) && c.tail_probe.fired(now)) make_ready(c);
  if (timers.due(Timer::Rto, now)) {
    if (in_any(c.state, State::SynSent, State::SynReceived)) {
      syn_timeout(c, now);
    } else {
      retransmission_timeout(c, now);
    }
    if (c.doomed) return;
  }
  if (timers.due(Timer::Reorder, now)) {
    AckYield none;
    bool lost = detect_losses(c, now);
    if (lost && c.path.probing()) lost = lost_beside_probe(c, now);
    if (lost) recover(c, none, true, now);
  }
  if (timers.due(Timer::Pacing, now)) {
    c.timers.clear(Timer::Pacing);
    make_ready(c);
  }
  if (timers.due(Timer::Persist, now)) {
    if (c.tcb.usable_window() == 0) {
      // One probe may get lost, and the time between two may be longer than the time-out.
      if (c.unanswered_probes >= 2 && now - c.progress_at >= c.options.user_timeout) {
        give_up(c);
        return;
      }
      c.window_probe_due = true;
      ++c.persist_backoff;
      c.rto.back_off();
      const base::Now next = now + c.rto.rto();
      c.timers.set(Timer::Persist, c.unanswered_probes != 0 ? before_give_up(c, next, now) : next);
    } else {
      c.sws_override = true;
      c.timers.clear(Timer::Persist);
    }
    make_ready(c);
  }
}

base::Now Engine::before_give_up(const Connection& c, base::Now next, base::Now now) {
  const base::Now end = c.progress_at + c.options.user_timeout;
  return end > now ? std::min(next, end) : next;
}

void Engine::give_up(Connection& c) {
  // R2 (RFC 9293 s.3.8.3). The USER TIMEOUT event of s.3.10.8 deletes the connection without a word
  // to the peer, which has not answered for long; what it sends later draws a RST.
  ++counters_.connections_timed_out;
  doom(c, StreamEnd::TimedOut, false);
}

bool Engine::orphan_over(Connection& c, base::Now now) {
  // A peer that answers probes keeps a connection for ever (RFC 9293 s.3.8.6.1, MUST-37), but who
  // has closed it waits for nothing (RFC 6429 s.5): what nobody reads must not hold memory without
  // end. Some timer runs as long as something is unacknowledged or held back.
  if (c.options.half_close || config_.orphan_timeout == base::Duration(0)) return false;
  if (c.state == State::FinWait2) return false;  // all is acknowledged: tcp.close_timeout's turn
  if (c.orphan_until == base::kNever) c.orphan_until = now + config_.orphan_timeout;
  if (now < c.orphan_until) return false;
  ++counters_.orphans_aborted;
  doom(c, StreamEnd::TimedOut, synchronized(c.state));
  return true;
}

void Engine::life_over(Connection& c, base::Now now) {
  c.timers.clear(Timer::Life);
  if (in_any(c.state, State::Established, State::CloseWait)) {
    if (c.options.keep_alive) keep_alive_due(c, now);
    return;
  }
  // Data before the FIN is still going out, or the peer's window is shut before it (MUST-37): R2
  // watches over that.
  if (in_any(c.state, State::LastAck, State::FinWait1, State::Closing) &&
      (c.board.size() > 1 || c.tcb.snd_wnd == 0)) {
    push_life(c, now);
    return;
  }
  ++counters_.connections_timed_out;
  const bool unreachable = c.soft_error && c.state == State::SynSent;
  doom(c, unreachable ? StreamEnd::Unreachable : StreamEnd::TimedOut, synchronized(c.state));
}

}  // namespace rnic::tcp
