// What a test of TCP may look at inside a connection, beside what the wire shows.
#pragma once

#include "tcp/connection.hpp"

namespace rnic::tcp {

struct Inside {
  explicit Inside(llp::Stream& stream) : Inside(static_cast<const Connection&>(stream)) {}
  explicit Inside(const Connection& c)
      : tcb(c.tcb()),
        timers(c.timers()),
        ecn(c.ecn()),
        board(c.sender().flight().board()),
        rto(c.sender().flight().rto()),
        rack(c.sender().flight().rack()),
        tail_probe(c.sender().flight().tail_probe()),
        recovery(c.sender().flight().recovery()),
        spurious(c.sender().flight().spurious()),
        pacing(c.sender().flight().pacing()),
        path(c.sender().path()),
        committed(c.receiver().committed()),
        ack(c.receiver().ack()),
        cc(const_cast<Congestion&>(c.sender().flight().congestion())),
        persist_backoff(c.sender().persist().backoff()) {}

  const Tcb& tcb;
  const Timers& timers;
  const EcnState& ecn;
  const Scoreboard& board;
  const RtoEstimator& rto;
  const Rack& rack;
  const TailProbe& tail_probe;
  const Recovery& recovery;
  const SpuriousDetector& spurious;
  const Pacing& pacing;
  const PathMtuDiscovery& path;
  const PooledRanges& committed;
  const AckPolicy& ack;
  Congestion& cc;  // a test may put it into the phase that it is about
  uint32_t persist_backoff;
};

}  // namespace rnic::tcp
