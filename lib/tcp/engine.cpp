#include "tcp/engine.hpp"

#include <algorithm>

namespace rnic::tcp {

namespace flag = wire::tcp_flag;

namespace {

constexpr uint64_t kPortPurpose = 0x706f727473;  // names the use of the secret
constexpr uint64_t kQuantum = 128 * 1024;  // payload that one output() sends
constexpr size_t kQuotedLeast = 8;  // RFC 792: ports and sequence number

/// What a connection may send in a turn: whole runs of segments, as few as take kQuantum. What a
/// turn and an ACK cost is shared by as many segments as go down together, however large they are,
/// and what its application means by 128 KB goes out as a whole, with the headers of all layers.
uint64_t quantum_of(uint32_t emss) {
  const uint32_t run = TxRun::kMost * emss;
  return uint64_t{(static_cast<uint32_t>(kQuantum) + run - 1) / run} * run;
}

}  // namespace

Engine::Engine(const Config& config, Egress& egress, const Secret& secret, uint64_t seed,
               base::Now now)
    : egress_(egress),
      secret_(secret),
      random_(secret, seed ^ kPortPurpose),
      shared_(config, egress, secret, now),
      listeners_(config.max_listeners),
      cookies_(shared_.config, secret, shared_.syn_terms),
      connections_(config.max_connections, secret) {}

base::MemoryUses Engine::memory_use(const Config& config) {
  const uint32_t connections = config.max_connections;
  return {
      {"limits.max_connections", ConnectionTable::octets_for(connections)},
      {"tcp.max_records", RecordPool::chunk_octets_for(config.max_records, connections)},
      {"tcp.max_records_per_connection",
       RecordPool::directory_octets_for(config.max_records, connections,
                                        config.max_records_per_connection)},
      {"tcp.max_range_sets", RangePool::octets_for(Shared::range_sets_of(config))},
      {"tcp.max_saved_octets", SavedRecords::octets_for(config.max_saved_octets)},
      {"tcp.max_listeners", ListenerTable::octets_for(config.max_listeners)},
      {"tcp.max_time_wait", TimeWaitTable::octets_for(config.max_time_wait)},
  };
}

base::Now Engine::next_deadline() const {
  // Pending output is due at once, for a caller that polls by deadlines only.
  return is_pending() ? base::Now{} : shared_.wheel.next_deadline();
}

bool Engine::quiescent() const {
  return shared_.replies.empty() && shared_.records.live() == 0 && shared_.ranges.in_use() == 0 &&
         shared_.saved.blocks_in_use() == 0 && connections_.live() == 0;
}

void Engine::on_timers(base::Now now) {
  shared_.wheel.expire(now, [this, now](base::TimerNode& node) {
    if (node.owner == nullptr) {
      shared_.time_wait.fired(now);
    } else {
      static_cast<Connection*>(node.owner)->on_timers(now);
    }
  });
  if (!shared_.closed.empty()) finish_closed(now);
}

// --- Segments ---

namespace {

/// Copies a segment member by member, so that the caller can keep the original in registers unless
/// the segment takes the slow path.
inline SegmentIn same(const SegmentIn& segment) {
  return {segment.source, segment.destination, segment.tcp, segment.checksum_verified, segment.ecn};
}

}  // namespace

inline bool Engine::find_flow(const SegmentIn& in, Connection*& found) {
  Connection* const last = found = connections_.last_found();
  if (found != nullptr && found->expects(in)) [[likely]]
    return true;
  const uint8_t* header = in.tcp.data();
  if (last == nullptr || !last->is_between(in)) {
    found = connections_.find({in.destination, base::load_be16(header + 2)},
                              {in.source, base::load_be16(header)});
    if (found == nullptr) return false;
    if (found != last) {
      found->prefetch();
      found->prefetch_for_taking();
    }
  }
  return found->expects_header(header);
}

void Engine::input(const SegmentIn& segment, base::Now now) {
  Connection* connection = nullptr;
  const bool expected = segment.tcp.size() >= wire::kTcpHeaderMin && find_flow(segment, connection);
  const auto taken = expected ? connection->take_predicted(segment, now) : fast_path::Taken::No;
  if (taken == fast_path::Taken::No) [[unlikely]] {
    const SegmentIn copy = same(segment);
    input_any(connection, copy, now);
  } else {
    ++shared_.counters.segments_in;
    if (taken == fast_path::Taken::Ack) ++shared_.counters.acks_in;
    ++shared_.counters.predicted_in;
  }
  if (!shared_.closed.empty()) finish_closed(now);
}

[[gnu::noinline]] void Engine::input_any(Connection* connection, const SegmentIn& segment,
                                         base::Now now) {
  ++shared_.counters.segments_in;
  if (predicting_ && connection != nullptr && connection->take_text_beside(segment, now)) return;
  input_parsed(connection, segment, now);
}

[[gnu::noinline]] void Engine::input_parsed(Connection* connection, const SegmentIn& segment,
                                            base::Now now) {
  Segment parsed;
  switch (parse(segment, parsed)) {
    case FormError::None: break;
    case FormError::Malformed: ++shared_.counters.malformed; return;
    case FormError::Checksum: ++shared_.counters.checksum_errors; return;
  }
  if (parsed.payload.empty()) ++shared_.counters.acks_in;
  if (connection == nullptr || connection->over()) {
    input_no_connection(parsed, now);
  } else {
    connection->input(parsed, predicting_, now);
  }
}

void Engine::input_no_connection(const Segment& segment, base::Now now) {
  if (!egress_.lands_here(segment.local,
                          segment.remote)) {  // its connection, if any, belongs to another stack
    ++shared_.counters.not_at_home;
    return;
  }
  const uint32_t listener = listeners_.find(segment.local);
  const bool listening = listener != ListenerTable::kNone;
  std::optional<base::Seq32> old_snd_nxt;
  switch (shared_.time_wait.input(segment, listening, now)) {
    case TimeWait::Verdict::Done: return;
    case TimeWait::Verdict::Reopen:
      old_snd_nxt = shared_.time_wait.end(segment.local, segment.remote);
      break;
    case TimeWait::Verdict::Elsewhere: break;
  }
  if (listening) {
    input_listen(listeners_.at(listener), segment, old_snd_nxt, now);
    return;
  }
  if (!segment.has(flag::kRst)) shared_.reset_reply(segment);  // RFC 9293 s.3.10.7.1
}

void Engine::icmp_error(const llp::IcmpError& error, base::Now now) {
  ++shared_.counters.icmp_in;
  if (error.kind == llp::IcmpError::Kind::SourceQuench) {  // RFC 6633
    ++shared_.counters.icmp_ignored;
    return;
  }
  if (error.tcp.size() < kQuotedLeast) {
    ++shared_.counters.icmp_unmatched;
    return;
  }
  const Endpoint local{error.source, base::load_be16(&error.tcp[0])};
  const Endpoint remote{error.destination, base::load_be16(&error.tcp[2])};
  Connection* connection = connections_.find(local, remote);
  if (connection == nullptr || connection->over()) {
    ++shared_.counters.icmp_unmatched;
    return;
  }
  connection->icmp(error, base::Seq32(base::load_be32(&error.tcp[4])), now);
  if (!shared_.closed.empty()) finish_closed(now);
}

// --- Output ---

/// In a conversation most turns that received something have one thing to do: to put the ACK of it
/// off. \return nothing else was to be done
bool Engine::only_puts_off(base::Now now) {
  Connection* const connection = shared_.round.only();
  if (connection == nullptr || !shared_.closed.empty() || !shared_.replies.empty()) return false;
  if (!connection->only_puts_off(now)) return false;
  connection->turn_over(Connection::Served::Waits, now);
  shared_.round.turned(false);
  return true;
}

/// Those behind the connection whose turn it is come nearer in two steps, as what a user works with
/// stands in its connection. Where nothing but ACKs goes out there is no need to look ahead: each
/// connection has just had the segments that it acknowledges.
inline void Engine::look_ahead() {
  const Connection* const next = shared_.round.second();
  if (next == nullptr) return;
  const Connection* const after = shared_.round.third();
  shared_.ahead.begin(next->binding().used, after, after == nullptr ? 0 : sizeof *after);
}

void Engine::serve_round(base::Now now) {
  if (!shared_.closed.empty()) finish_closed(now);
  shared_.round.begin(now);
  if (!shared_.replies.empty() && !shared_.out.send(shared_.replies, now)) return;
  // Connections are served round robin with a quantum each. One that a limit of the stack holds
  // back goes to the end of the round; output() ends when the first such connection comes round
  // again.
  Connection* first_starved = nullptr;
  const uint64_t sent_before = octets_sent();
  uint64_t sent = 0;
  bool quantum_up = false;
  while (Connection* connection = shared_.round.front()) {
    if (connection == first_starved) break;
    // One output() sends one quantum in all, so that segments are received while they are still in
    // the cache and arrivals do not wait long. The order of the round keeps this fair.
    if (sent >= kQuantum) {
      quantum_up = true;
      break;
    }
    if (text_goes_) look_ahead();
    using Served = Connection::Served;
    const Served served = connection->serve(quantum_of(connection->emss()), now);
    shared_.ahead.finish();
    const uint64_t sent_by_now = octets_sent() - sent_before;
    text_goes_ = sent_by_now != sent;
    sent = sent_by_now;
    // A call-up may have ended any connection. Its memory stays valid until finish_closed().
    if (first_starved != nullptr && first_starved->over()) first_starved = nullptr;
    if (connection->over()) continue;  // it has left the round
    if (served == Served::PortFull) break;
    connection->turn_over(served, now);
    if (served == Served::Starved && first_starved == nullptr) first_starved = connection;
  }
  if (!shared_.closed.empty()) {
    finish_closed(now);
    static_cast<void>(shared_.out.send(shared_.replies, now));
  }
  shared_.round.turned(quantum_up);
}

void Engine::finish_closed(base::Now now) {
  while (Connection* connection = shared_.closed.front()) {
    connection->finish(now);
    connections_.erase(*connection);
  }
}

uint64_t Engine::validate() {
  connections_.validate();
  listeners_.validate();
  cookies_.validate();
  Holdings all;
  connections_.for_each([&](const Connection& connection) {
    connection.add_to(all);
    if (!connection.over()) connection.validate();
  });
  shared_.validate(all);
  uint32_t of_listeners = 0;
  listeners_.for_each(
      [&](const Listener& listener) { of_listeners += listener.half_open.taken(); });
  RNIC_CHECK(all.half_open == of_listeners);
  return all.records;
}

}  // namespace rnic::tcp
