#include "tcp/time_wait.hpp"

#include "base/check.hpp"
#include "tcp/tcb.hpp"
#include "wire/tcp_options.hpp"

namespace rnic::tcp {

namespace flag = wire::tcp_flag;

TimeWait::TimeWait(const Config& config, const Secret& secret, base::TimerWheel& wheel,
                   ReplyQueue& replies, ChallengeAcks& challenge_acks, Counters& counters)
    : secret_(secret),
      timestamps_(config.timestamps),
      wheel_(wheel),
      replies_(replies),
      challenge_acks_(challenge_acks),
      counters_(counters),
      table_(config.max_time_wait, config.time_wait, secret) {}

void TimeWait::enter(const Endpoint& local, const Endpoint& remote, const TimeWaitEntry& entry,
                     bool owes_ack, base::Now now) {
  if (table_.add(local, remote, entry, now)) ++counters_.time_wait_displaced;
  arm(now);
  if (owes_ack) acknowledge(*table_.find(local, remote), now);
}

void TimeWait::arm(base::Now now) {
  if (timer_.armed()) return;
  const base::Now deadline = table_.next_deadline(now);
  if (deadline != base::kNever) wheel_.arm(timer_, deadline);
}

void TimeWait::fired(base::Now now) {
  table_.expire(now);
  arm(now);
}

void TimeWait::acknowledge(const TimeWaitEntry& entry, base::Now now) {
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

bool TimeWait::may_reuse(const Endpoint& local, const Endpoint& remote, base::Now now) {
  const TimeWaitEntry* entry = table_.find(local, remote);
  return entry == nullptr || (entry->ts_ok && timestamps_ && table_.clock_ticked(*entry, now));
}

std::optional<base::Seq32> TimeWait::end(const Endpoint& local, const Endpoint& remote) {
  TimeWaitEntry* entry = table_.find(local, remote);
  if (entry == nullptr) return std::nullopt;
  const base::Seq32 snd_nxt = entry->snd_nxt;
  table_.erase(*entry);
  return snd_nxt;
}

bool TimeWait::may_reopen(const TimeWaitEntry& entry, const Segment& segment) const {
  // RFC 6191 s.2
  const bool stamped = timestamps_ && segment.options.timestamps.has_value();
  const bool beyond = base::after(segment.seq, entry.rcv_nxt);
  if (!entry.ts_ok) return stamped || beyond;
  if (!stamped) return beyond;
  const auto newer = static_cast<int32_t>(segment.options.timestamps->value - entry.ts_recent);
  return newer > 0 || (newer == 0 && beyond);
}

TimeWait::Verdict TimeWait::input(const Segment& segment, bool listening, base::Now now) {
  TimeWaitEntry* entry = table_.find(segment.local, segment.remote);
  if (entry == nullptr) return Verdict::Elsewhere;
  if (segment.has(flag::kRst)) return Verdict::Done;  // RFC 1337: no assassination of TIME-WAIT
  if (segment.has(flag::kSyn)) return take_syn(*entry, segment, listening, now);
  take_segment(*entry, segment, now);
  return Verdict::Done;
}

TimeWait::Verdict TimeWait::take_syn(const TimeWaitEntry& entry, const Segment& segment,
                                     bool listening, base::Now now) {
  if (!segment.has(flag::kAck | flag::kFin) && listening && may_reopen(entry, segment)) {
    ++counters_.time_wait_reopened;
    return Verdict::Reopen;
  }
  if (challenge_acks_.allow(now)) acknowledge(entry, now);  // RFC 5961 s.4.2
  return Verdict::Done;
}

void TimeWait::take_segment(TimeWaitEntry& entry, const Segment& segment, base::Now now) {
  if (entry.ts_ok && !segment.options.timestamps) {  // RFC 7323 s.3.2
    ++counters_.paws_rejected;
    return;
  }
  const bool old_stamp =
      entry.ts_ok && static_cast<int32_t>(segment.options.timestamps->value - entry.ts_recent) < 0;
  const auto begin = static_cast<int32_t>(segment.seq - entry.rcv_nxt);
  const bool fits =
      !old_stamp && in_window(begin, segment.length(), int64_t{entry.window} << entry.wind_shift);
  if (fits && !segment.has(flag::kAck)) return;  // Fifth
  if (segment.has(flag::kFin)) {
    // Eighth: the peer has retransmitted its FIN, since our last ACK was lost. A FIN is always
    // answered.
    if (!old_stamp && segment.seq + segment.length() == entry.rcv_nxt) {
      if (entry.ts_ok) entry.ts_recent = segment.options.timestamps->value;
      table_.restart(entry, now);
    }
    acknowledge(entry, now);
    return;
  }
  // Other unacceptable segments are answered at a limited rate. The ACK check is that of RFC 5961
  // s.5.2, with the largest unscaled window in the place of MAX.SND.WND.
  const bool ack_fits =
      !base::after(segment.ack, entry.snd_nxt) && !base::after(entry.snd_nxt - 0xffff, segment.ack);
  if (!(fits && ack_fits) && challenge_acks_.allow(now)) acknowledge(entry, now);
}

void TimeWait::validate() const {
  table_.validate();
  RNIC_CHECK(table_.live() == 0 || timer_.armed());
}

}  // namespace rnic::tcp
