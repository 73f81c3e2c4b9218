#include "tcp/engine.hpp"

namespace rnic::tcp {

namespace {

constexpr size_t kQuotedLeast = 8;  // RFC 792: ports and sequence number

}  // namespace

void Engine::icmp_error(const IcmpError& error, base::Now now) {
  ++counters_.icmp_in;
  if (error.kind == IcmpError::Kind::SourceQuench) {  // RFC 6633
    ++counters_.icmp_ignored;
    return;
  }
  if (error.tcp.size() < kQuotedLeast) {
    ++counters_.icmp_unmatched;
    return;
  }
  const Endpoint local{error.source, base::load_be16(&error.tcp[0])};
  const Endpoint remote{error.destination, base::load_be16(&error.tcp[2])};
  Connection* const c = connections_.find(local, remote);
  if (c == nullptr || c->doomed) {
    ++counters_.icmp_unmatched;
    return;
  }
  take_icmp(*c, error, base::Seq32(base::load_be32(&error.tcp[4])), now);
  if (!doomed_.empty()) reap(now);
}

void Engine::take_icmp(Connection& c, const IcmpError& error, base::Seq32 seq, base::Now now) {
  // RFC 5927 s.4.1: only what quotes a number that is in flight can be about us.
  const bool opening = in_any(c.state, State::SynSent, State::SynReceived);
  const int64_t offset = c.tcb.snd_offset(seq);
  const bool outstanding = opening ? c.handshake.was_sent() && seq == c.tcb.iss
                                   : offset >= static_cast<int64_t>(c.tcb.snd_una) &&
                                         offset < static_cast<int64_t>(c.tcb.snd_nxt);
  if (error.kind == IcmpError::Kind::PacketTooBig) {
    packet_too_big(c, error, outstanding, now);
    return;
  }
  if (!outstanding) {
    ++counters_.icmp_unverified;
    return;
  }
  // RFC 9293 s.3.9.2.2 (MUST-56). RFC 5927 s.5.2: of a connection that is synchronized a hard error
  // is no more than that, either: octets have gone both ways, and anybody who sees them can lie.
  if (error.kind == IcmpError::Kind::Soft || !opening) {
    ++counters_.icmp_soft;
    c.soft_error = true;
    return;
  }
  ++counters_.icmp_hard;
  const bool passive = c.state == State::SynReceived && c.acceptor != nullptr;
  doom(c, opening && !passive ? StreamEnd::Refused : StreamEnd::Unreachable, false);
}

}  // namespace rnic::tcp
