// The plain peer's receive side.

#include <algorithm>

#include "memory.hpp"
#include "stream/plain_peer.hpp"

namespace rnic::simulation {

namespace flag = wire::tcp_flag;

namespace {

constexpr base::Duration kFirstRto = std::chrono::milliseconds(400);
constexpr uint32_t kMostReneged = 40;

}  // namespace

PlainPeer::PlainPeer(const PeerPlan& plan, const ApplicationPlan& application,
                     const StreamContent& content, const Endpoint& local, const Endpoint& remote,
                     uint64_t seed, Verdict& verdict, Send send)
    : plan_(plan),
      application_(application),
      content_(content),
      local_(local),
      remote_(remote),
      prng_(seed),
      verdict_(verdict),
      send_(std::move(send)),
      iss_(prng_.next32()),
      clock_start_(prng_.next32()),
      have_(content.receive_octets, false),
      octets_(content.receive_octets),
      committed_(content.send_octets, false),
      rto_(kFirstRto) {}

uint64_t PlainPeer::window_edge() const {
  const uint64_t buffer = plan_.buffer - std::min<uint64_t>(shrunk_, plan_.buffer);
  uint64_t room = read_ + buffer > rcv_nxt_ ? read_ + buffer - rcv_nxt_ : 0;
  const uint32_t shift = scale_ ? plan_.scale_shift : 0;
  room = std::min<uint64_t>(room >> shift, 0xffff) << shift;
  return rcv_nxt_ + room;
}

void PlainPeer::receive(const Datagram& d, base::Now now) {
  if (!checksum_right(d)) return;
  const auto view = wire::TcpView::parse(d.tcp);
  if (!view || view->destination_port() != local_.port || view->source_port() != remote_.port) {
    return;
  }
  Segment s;
  if (!s.options.parse(view->options())) return;
  s.seq = view->sequence().value;
  s.ack = view->acknowledgment().value;
  s.flags = view->flags();
  s.window = view->window();
  s.payload = view->payload();
  if (s.has(flag::kRst)) {
    if (!done()) fail("was reset");
    return;
  }
  if (s.has(flag::kSyn)) return take_syn(s, now);
  if (phase_ == Phase::Closed || phase_ == Phase::SynSent || !s.has(flag::kAck)) return;
  if (timestamps_ && s.options.timestamps &&
      static_cast<int32_t>(s.options.timestamps->value - ts_recent_) >= 0 &&
      static_cast<int32_t>(s.seq - (irs_ + 1 + static_cast<uint32_t>(rcv_nxt_))) <= 0) {
    ts_recent_ = s.options.timestamps->value;
  }
  if (phase_ == Phase::SynReceived && s.ack == iss_ + 1) open(now);
  take_ack(s, now);
  take_text(s, now);
  read(now);
}

void PlainPeer::take_syn(const Segment& s, base::Now now) {
  const bool answer = s.has(flag::kAck);
  if (phase_ == Phase::Open || (answer && s.ack != iss_ + 1)) {
    ack_now_ = true;
    return;
  }
  if (phase_ == Phase::Closed || phase_ == Phase::SynSent) {
    irs_ = s.seq;
    if (s.options.mss) their_mss_ = *s.options.mss;
    scale_ = plan_.scale && s.options.window_scale.has_value();
    their_shift_ = scale_ ? std::min<uint32_t>(*s.options.window_scale, 14) : 0;
    timestamps_ = plan_.timestamps && s.options.timestamps.has_value();
    if (timestamps_) ts_recent_ = s.options.timestamps->value;
    sack_ = plan_.sack && s.options.sack_permitted;
    edge_ = s.window;
  }
  if (answer) {
    open(now);
    ack_now_ = true;
    return;
  }
  phase_ = Phase::SynReceived;
  send_syn(now);
}

void PlainPeer::open(base::Now now) {
  phase_ = Phase::Open;
  rto_ = kFirstRto;
  rto_at_ = base::kNever;
  next_send_ = now;
}

void PlainPeer::take_ack(const Segment& s, base::Now now) {
  if (phase_ != Phase::Open) return;
  const auto of = [&](uint32_t number) {
    return static_cast<int64_t>(snd_una_) +
           static_cast<int32_t>(number - (iss_ + 1 + static_cast<uint32_t>(snd_una_)));
  };
  const int64_t ack = of(s.ack);
  const auto end = static_cast<int64_t>(content_.send_octets);
  if (ack < static_cast<int64_t>(snd_una_)) return;
  if (ack > static_cast<int64_t>(snd_max_) + (fin_sent_ ? 1 : 0)) {
    return fail("an ACK of what was not sent");
  }
  if (ack > end) fin_acked_ = true;
  const auto una = static_cast<uint64_t>(std::min(ack, end));
  const bool moved = una > snd_una_;
  for (uint64_t o = snd_una_; o < una; ++o) committed_[o] = true;
  snd_una_ = una;
  if (moved || fin_acked_) {
    rto_ = kFirstRto;
    const bool outstanding = snd_una_ < snd_max_ || (fin_sent_ && !fin_acked_);
    rto_at_ = outstanding ? now + rto_ : base::kNever;
    next_send_ = base::earlier(next_send_, now + plan_.pace);
  }
  // Windows of old segments may come late; the plain peer takes the furthest edge.
  edge_ = std::max(edge_, una + (uint64_t{s.window} << their_shift_));
  for (uint32_t i = 0; i < s.options.sack_count; ++i) {
    const int64_t left = std::max<int64_t>(of(s.options.sack[i].left.value), 0);
    const int64_t right = std::min(of(s.options.sack[i].right.value), end);
    if (right > static_cast<int64_t>(snd_max_)) fail("a SACK of what was not sent");
    for (int64_t o = left; o < right; ++o) committed_[static_cast<size_t>(o)] = true;
  }
}

void PlainPeer::take_text(const Segment& s, base::Now now) {
  const int64_t begin = static_cast<int64_t>(rcv_nxt_) +
                        static_cast<int32_t>(s.seq - (irs_ + 1 + static_cast<uint32_t>(rcv_nxt_)));
  const auto end = begin + static_cast<int64_t>(s.payload.size());
  const bool fin = s.has(flag::kFin);
  if (s.payload.empty() && !fin) {
    if (begin != static_cast<int64_t>(rcv_nxt_) && !fin_received_) ack_now_ = true;
    return;
  }
  const bool in_order = begin <= static_cast<int64_t>(rcv_nxt_);
  const uint64_t was = rcv_nxt_;
  const auto edge = static_cast<int64_t>(window_edge());
  for (int64_t o = std::max<int64_t>(begin, 0); o < std::min(end, edge); ++o) {
    const auto at = static_cast<size_t>(o);
    if (at >= have_.size()) return fail("octets beyond the stream");
    if (have_[at]) continue;
    have_[at] = true;
    octets_[at] = s.payload[static_cast<size_t>(o - begin)];
    newest_ = at;
  }
  if (fin && end <= edge) their_fin_ = static_cast<uint64_t>(end);
  while (rcv_nxt_ < have_.size() && have_[rcv_nxt_]) ++rcv_nxt_;
  if (their_fin_ && rcv_nxt_ == *their_fin_) fin_received_ = true;
  if (rcv_nxt_ != was) {
    const auto wrong =
        pattern_difference({&octets_[was], rcv_nxt_ - was}, content_.receive_key, was);
    if (wrong) fail("wrong octet at " + std::to_string(was + *wrong));
  }
  if (prng_.chance(plan_.renege)) forget();
  if (prng_.chance(plan_.shrink)) shrunk_ = prng_.below(plan_.buffer);
  // RFC 5681 s.4.2: out of order, or into a hole, at once.
  ++unacked_segments_;
  if (!in_order || rcv_nxt_ == was || fin || unacked_segments_ >= plan_.ack_every) ack_now_ = true;
  if (ack_at_ == base::kNever) ack_at_ = now + plan_.ack_delay;
}

/// RFC 2018 s.8 lets a receiver that runs out of memory. Its peer may find out by a time-out, which
/// is a minute when all that is left was sent before: more than some would outlast the world.
void PlainPeer::forget() {
  const auto ahead = have_.begin() + static_cast<int64_t>(rcv_nxt_);
  if (reneged_ == kMostReneged || std::find(ahead, have_.end(), true) == have_.end()) return;
  ++reneged_;
  std::fill(ahead, have_.end(), false);
}

void PlainPeer::read(base::Now now) {
  if (!stopped_once_ && rcv_nxt_ >= application_.stop_at) {
    stopped_once_ = true;
    stopped_until_ = now + application_.stop_for;
  }
  if (now < stopped_until_ || read_ == rcv_nxt_) return;
  const uint64_t before = window_edge();
  read_ = rcv_nxt_;
  // RFC 9293 s.3.8.6.2.2: tell of a step that is worth it.
  if (window_edge() >= before + std::min<uint64_t>(plan_.buffer / 2, plan_.mss)) ack_now_ = true;
}

void PlainPeer::run(base::Now now) {
  if (phase_ == Phase::Closed && plan_.active) {
    phase_ = Phase::SynSent;
    send_syn(now);
  }
  if (phase_ == Phase::Open) {
    read(now);
    if (shrunk_ != 0 && prng_.chance(0.05)) {
      shrunk_ = 0;
      ack_now_ = true;
    }
    transmit(now);
    if (ack_now_ || ack_at_ <= now) send_ack(now);
  } else if (rto_at_ <= now) {
    send_syn(now);
  }
}

base::Now PlainPeer::next_deadline() const {
  if (phase_ == Phase::Closed) return plan_.active ? base::Now{} : base::kNever;
  base::Now next = base::earlier(rto_at_, ack_at_);
  if (phase_ != Phase::Open) return next;
  if (ack_now_) return base::Now{};
  if (read_ != rcv_nxt_) next = base::earlier(next, stopped_until_);
  if (!done()) next = base::earlier(next, next_send_);
  return next;
}

std::string PlainPeer::describe() const {
  return "plain peer: received " + std::to_string(rcv_nxt_) + " of " +
         std::to_string(content_.receive_octets) + ", read " + std::to_string(read_) + ", sent " +
         std::to_string(snd_max_) + ", acknowledged " + std::to_string(snd_una_) + " of " +
         std::to_string(content_.send_octets) + ", window to " + std::to_string(edge_) +
         (fin_sent_ ? ", FIN sent" : "") + (fin_acked_ ? " and acknowledged" : "") +
         (fin_received_ ? ", FIN received" : "") + "\n";
}

}  // namespace rnic::simulation
