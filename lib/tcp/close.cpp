#include "tcp/engine.hpp"

namespace rnic::tcp {

namespace flag = wire::tcp_flag;

void Engine::close_stream(Connection& c) {
  // RFC 9293 s.3.10.4
  if (c.doomed) return;
  if (c.state == State::SynSent) {
    doom(c, StreamEnd::Aborted, false);
    return;
  }
  // RFC 9293 s.3.6.1 (MAY-1), also when only the reader goes, behind a half close.
  if (c.options.half_duplex_close && c.user != nullptr && c.user->unread() != 0) {
    ++counters_.half_duplex_resets;
    doom(c, StreamEnd::Aborted, synchronized(c.state));
    return;
  }
  if (c.fin_wanted) return;
  c.fin_wanted = true;
  c.prediction.end();
  make_ready(c);  // everything that pull() still has goes out before the FIN
}

void Engine::abort_stream(Connection& c) {
  // RFC 9293 s.3.10.5
  if (c.doomed) return;
  doom(c, StreamEnd::Aborted, synchronized(c.state));
}

void Engine::room_grew(Connection& c) {
  if (c.doomed || c.user == nullptr || !receives(c.state)) return;
  // Receiver silly window avoidance (RFC 9293 s.3.8.6.2.2): tell only of a step that is worth it.
  const uint64_t room = room_to_offer(c);
  const uint64_t edge = c.tcb.rcv_nxt + room;
  c.rcv_buff = std::max(c.rcv_buff, static_cast<uint32_t>(room));
  const uint64_t step = std::min(2ull * c.ack.rcv_mss(), c.rcv_buff / 2 + 1ull);
  if (edge >= c.tcb.rcv_edge + step) {
    c.ack.ask();
    make_ready(c);
  }
}

void Engine::doom(Connection& c, StreamEnd how, bool send_rst) {
  if (c.doomed) return;
  c.doomed = true;
  c.prediction.end();
  c.tell_end = c.user != nullptr;
  c.how_ended = how;
  ready_.erase(c);
  if (send_rst) static_cast<void>(queue_rst(c));
  half_open_.leave(c.half_open);
  c.state = State::Closed;
  doomed_.push_back(c);
}

Reply* Engine::queue_rst(const Connection& c) {
  Reply* reply = replies_.push();
  if (reply == nullptr) return nullptr;  // the peer's next segment draws one
  reply->local = c.local_end;
  reply->remote = c.remote_end;
  reply->seq = c.tcb.snd_seq(c.tcb.snd_nxt);
  reply->ack = c.tcb.ack_seq();
  reply->flags = static_cast<uint8_t>(flag::kRst | flag::kAck);
  reply->stamped = c.tcb.ts_ok;
  reply->ts_offset = c.tcb.ts_offset;
  reply->ts_recent = c.tcb.ts_recent;
  // RFC 8257 s.3.6
  const bool ect = c.ecn.sends_ect() && c.cc.kind() == CongestionControl::Dctcp;
  if (ect) reply->traffic_class = ecn_codepoint::kEct0;
  return reply;
}

void Engine::push_life(Connection& c, base::Now now) {
  if (!c.fin_queued || c.doomed) return;
  if (c.options.half_close) {
    c.timers.clear(Timer::Life);
  } else {
    c.timers.set(Timer::Life, now + config_.close_timeout);
  }
}

void Engine::enter_time_wait(Connection& c, base::Now now) {
  // The connection's own memory is free from here on; its 4-tuple stays taken.
  TimeWaitEntry entry;
  entry.snd_nxt = c.tcb.snd_seq(c.tcb.snd_nxt);
  entry.rcv_nxt = c.tcb.ack_seq();
  entry.ts_recent = c.tcb.ts_recent;
  entry.ts_ok = c.tcb.ts_ok;
  entry.window = advertise(c);
  entry.wind_shift = c.tcb.rcv_wind_shift;
  entry.traffic_class = static_cast<uint8_t>(c.options.dscp << 2);
  time_wait_.enter(c.local_end, c.remote_end, entry, c.ack.due(), now);
  doom(c, StreamEnd::Closed, false);
}

void Engine::reap(base::Now now) {
  while (Connection* c = doomed_.front()) {
    doomed_.erase(*c);
    if (c->tell_end) {
      c->tell_end = false;
      llp::StreamUser* user = c->user;
      c->user = nullptr;
      ++counters_.connections_closed;
      user->ended(c->how_ended, now);
    }
    if (c->doomed) release(*c);
  }
}

void Engine::release(Connection& c) {
  for (uint64_t n = c.board.first(); n != c.board.past_last(); ++n) {
    saved_.release(c.board.at(n).saved);
  }
  c.board.clear();
  c.timers.stop();
  ready_.erase(c);
  connections_.erase(c);
}

}  // namespace rnic::tcp
