#include "tcp/engine.hpp"

namespace rnic::tcp {

namespace flag = wire::tcp_flag;

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
  if (time_wait_.add(c.local_end, c.remote_end, entry, now)) ++counters_.time_wait_displaced;
  arm_time_wait(now);
  if (c.ack.due()) acknowledge(*time_wait_.find(c.local_end, c.remote_end), now);
  doom(c, StreamEnd::Closed, false);
}

void Engine::arm_time_wait(base::Now now) {
  if (time_wait_timer_.armed()) return;
  const base::Now deadline = time_wait_.next_deadline(now);
  if (deadline != base::kNever) wheel_.arm(time_wait_timer_, deadline);
}

void Engine::acknowledge(const TimeWaitEntry& entry, base::Now now) {
  Reply* reply = replies_.push();
  if (reply == nullptr) return;  // the peer sends its FIN again
  reply->local = entry.local();
  reply->remote = entry.remote();
  reply->seq = entry.snd_nxt;
  reply->ack = entry.rcv_nxt;
  reply->flags = flag::kAck;
  reply->window = entry.window;
  reply->traffic_class = entry.traffic_class;
  if (entry.ts_ok) {
    wire::TcpOptionWriter options(reply->options.data());
    options.nop();
    options.nop();
    const uint64_t hash = keyed_hash(secret_, reply->local, reply->remote);
    options.timestamps({timestamp_at(timestamp_offset(hash), now), entry.ts_recent});
    reply->options_length = static_cast<uint8_t>(options.finish());
  }
}

bool Engine::may_reopen(const TimeWaitEntry& entry, const Arrival& a) const {
  // RFC 6191 s.2
  const bool stamped = config_.timestamps && a.options.timestamps.has_value();
  const bool beyond = base::after(a.seq, entry.rcv_nxt);
  if (!entry.ts_ok) return stamped || beyond;
  if (!stamped) return beyond;
  const auto newer = static_cast<int32_t>(a.options.timestamps->value - entry.ts_recent);
  return newer > 0 || (newer == 0 && beyond);
}

bool Engine::input_time_wait(const Arrival& a, base::Now now) {
  TimeWaitEntry* entry = time_wait_.find(a.local, a.remote);
  if (entry == nullptr) return false;
  if (a.has(flag::kRst)) return true;  // RFC 1337: no assassination of TIME-WAIT
  if (a.has(flag::kSyn)) {
    const uint32_t listener = listeners_.find(a.local);
    if (!a.has(flag::kAck | flag::kFin) && listener != ListenerTable::kNone &&
        may_reopen(*entry, a)) {
      const base::Seq32 old_snd_nxt = entry->snd_nxt;
      time_wait_.erase(*entry);
      ++counters_.time_wait_reopened;
      input_listen(listener, a, old_snd_nxt, now);
    } else if (challenge_acks_.allow(now)) {  // RFC 5961 s.4.2
      acknowledge(*entry, now);
    }
    return true;
  }
  if (entry->ts_ok && !a.options.timestamps) {  // RFC 7323 s.3.2
    ++counters_.paws_rejected;
    return true;
  }
  const bool old_stamp =
      entry->ts_ok && static_cast<int32_t>(a.options.timestamps->value - entry->ts_recent) < 0;
  const auto begin = static_cast<int32_t>(a.seq - entry->rcv_nxt);
  const bool fits =
      !old_stamp && in_window(begin, a.length(), int64_t{entry->window} << entry->wind_shift);
  if (fits && !a.has(flag::kAck)) return true;  // Fifth
  if (a.has(flag::kFin)) {
    // Eighth: the peer's FIN again, our last ACK was lost. It is always answered.
    if (!old_stamp && a.seq + a.length() == entry->rcv_nxt) {
      if (entry->ts_ok) entry->ts_recent = a.options.timestamps->value;
      time_wait_.restart(*entry, now);
    }
    acknowledge(*entry, now);
    return true;
  }
  // Nothing else is to be expected; what does not fit is answered at a limited rate. RFC 5961
  // s.5.2, with the largest unscaled window in the place of MAX.SND.WND.
  const bool ack_fits =
      !base::after(a.ack, entry->snd_nxt) && !base::after(entry->snd_nxt - 0xffff, a.ack);
  if (!(fits && ack_fits) && challenge_acks_.allow(now)) acknowledge(*entry, now);
  return true;
}

}  // namespace rnic::tcp
