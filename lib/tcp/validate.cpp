#include "tcp/engine.hpp"

namespace rnic::tcp {

namespace {

void check_receive_side(const Connection& c) {
  uint64_t past = c.tcb.rcv_nxt;
  for (const base::Range& range : c.committed.ranges()) {
    RNIC_CHECK(range.begin > past && !range.empty());
    past = range.end;
  }
  RNIC_CHECK(c.committed.empty() || past <= c.tcb.rcv_edge);
  RNIC_CHECK(!c.tcb.fin_reached || (c.fin_seen && c.fin_offset == c.tcb.rcv_nxt));
  RNIC_CHECK(!c.fin_seen || past <= c.fin_offset);
}

}  // namespace

void Engine::validate_connection(Connection& c) const {
  c.tcb.validate();
  c.board.validate();
  c.rack.validate();
  c.tail_probe.validate();
  c.recovery.validate();
  c.spurious.validate();
  c.ack.validate();
  c.path.validate();
  c.ecn.validate();
  c.handshake.validate();
  check_receive_side(c);
  RNIC_CHECK(c.cc.cwnd() >= c.cc.smss());
  // What is in flight is watched: RFC 6298 s.5.1.
  if (synchronized(c.state) && c.state != State::TimeWait) {
    RNIC_CHECK(c.tcb.flight() == 0 || c.timers.runs(Timer::Rto));
  }
  RNIC_CHECK(!c.prediction.on() || calm(c));
  c.timers.validate();
}

void Engine::validate() {
  uint64_t records = 0;
  uint32_t half_open = 0;
  connections_.validate();
  challenge_acks_.validate();
  half_open_.validate();
  time_wait_.validate();
  connections_.for_each([&](Connection& c) {
    records += c.board.size();
    if (c.doomed) return;
    if (c.state == State::SynReceived && c.acceptor != nullptr) ++half_open;
    validate_connection(c);
  });
  RNIC_CHECK(records == record_pool_.live());
  uint32_t of_listeners = 0;
  listeners_.for_each([&](const Listener& listener) {
    listener.half_open.validate();
    of_listeners += listener.half_open.taken();
  });
  RNIC_CHECK(half_open == half_open_.live() && half_open == of_listeners);
}

}  // namespace rnic::tcp
