#include "stream/judge.hpp"

#include <algorithm>

#include "memory.hpp"

namespace rnic::simulation {

namespace flag = wire::tcp_flag;

namespace {

constexpr uint8_t kEce = 0x40;
constexpr uint8_t kCwr = 0x80;
constexpr uint32_t kSmallestMss = 216;
constexpr uint32_t kDefaultMss = 536;  // RFC 9293 s.3.7.1 (MUST-15), IPv4
constexpr uint32_t kDefaultMssV6 = 1220;
// Whatever the MSS, the initial window is larger (RFC 6928), and the loss window than the second
// (RFC 5681 s.3.1): options take up to 40 octets.
constexpr uint64_t kWithinInitialWindow = 1700;
constexpr uint64_t kWithinLossWindow = 170;
// A port that refuses, a poll that comes late; below every retransmission time-out.
constexpr base::Duration kPromptly = std::chrono::milliseconds(8);

}  // namespace

Judge::Judge(std::string name, std::array<JudgedSide, 2> sides, Verdict& verdict)
    : name_(std::move(name)), sides_(std::move(sides)), verdict_(verdict) {
  for (uint32_t side = 0; side < 2; ++side) {
    halves_[side].got.resize(sides_[1 - side].octets, false);
  }
}

void Judge::fail(uint32_t side, const std::string& what) {
  verdict_.fail("judge", name_ + ", side " + std::to_string(side) + ": " + what);
}

bool Judge::matches(uint32_t from, const Datagram& d) const {
  const Endpoint& a = sides_[from].end;
  const Endpoint& b = sides_[1 - from].end;
  return d.source == a.address && d.destination == b.address &&
         base::load_be16(&d.tcp[wire::kTcpSourcePortAt]) == a.port &&
         base::load_be16(&d.tcp[wire::kTcpDestinationPortAt]) == b.port;
}

std::optional<Judge::Segment> Judge::parse(const Datagram& d, uint32_t side, bool loud) {
  const auto view = wire::TcpView::parse(d.tcp);
  if (!view || !checksum_right(d)) {
    if (loud) fail(side, view ? "wrong checksum" : "impossible header length");
    return std::nullopt;
  }
  Segment s;
  if (!s.options.parse(view->options())) {
    if (loud) fail(side, "impossible options");
    return std::nullopt;
  }
  s.seq = view->sequence().value;
  s.ack = view->acknowledgment().value;
  s.flags = view->flags();
  s.window = view->window();
  s.payload = view->payload();
  s.options_length = view->header_length() - wire::kTcpHeaderMin;
  return s;
}

uint64_t Judge::offset_in(uint32_t sender, uint64_t near, uint32_t sequence,
                          bool& before_start) const {
  const uint32_t base = *halves_[sender].iss + 1;
  const int64_t offset = static_cast<int64_t>(near) +
                         static_cast<int32_t>(sequence - (base + static_cast<uint32_t>(near)));
  before_start = offset < 0;
  return before_start ? 0 : static_cast<uint64_t>(offset);
}

bool Judge::agreed_timestamps() const {
  return halves_[0].syn.timestamps.has_value() && halves_[1].syn.timestamps.has_value();
}
bool Judge::agreed_sack() const {
  return halves_[0].syn.sack_permitted && halves_[1].syn.sack_permitted;
}
uint32_t Judge::shift_of(uint32_t side) const {
  const bool both = halves_[0].syn.window_scale && halves_[1].syn.window_scale;
  return both ? std::min<uint32_t>(*halves_[side].syn.window_scale, 14) : 0;
}

bool Judge::asks_for_ecn(const Segment& s) {
  return s.has(kEce) && s.has(kCwr) != s.has(flag::kAck);
}

void Judge::observe_syn(uint32_t side, const Segment& s) {
  Half& h = halves_[side];
  if (h.iss && *h.iss != s.seq) {
    // RFC 4987 s.3.6: a cookie is a function of the SYN. One that is sent again may tell of a
    // smaller MSS, its sender's path having become narrow, and is answered with another cookie.
    const bool another_cookie =
        sides_[side].forgets_syns && s.has(flag::kAck) && h.answered_mss != h.heard_mss;
    if (!another_cookie) return fail(side, "the SYN again with another number");
    if (halves_[1 - side].has_acked) return;
    h.former_iss = h.iss;
  }
  h.answered_mss = h.heard_mss;
  h.reduced |= h.iss.has_value();  // lost: the window begins with one segment (RFC 6928 s.2)
  h.iss = s.seq;
  if (!s.has(flag::kAck)) h.offered = std::max<uint64_t>(h.offered, s.window);
  // What a later SYN leaves out (ECN, options of a first try) is not agreed on.
  h.syn = s.options;
  (asks_for_ecn(s) ? h.sent_setup : h.sent_plain) = true;
}

void Judge::choose_cookie(uint32_t side, const Segment& s) {
  Half& peer = halves_[1 - side];
  if (!s.has(flag::kAck) || s.has(flag::kSyn)) return;
  halves_[side].has_acked = true;
  if (peer.former_iss && s.ack == *peer.former_iss + 1) peer.iss = peer.former_iss;
  peer.former_iss.reset();
}

bool Judge::answers_late_syn(uint32_t side, const Segment& s) {
  // RFC 9293 s.3.5, figure 9: a late copy of a SYN finds the listener, which cannot tell it from a
  // new one, in LISTEN again (s.3.10.7.2). It answers as it must, with a number of its own that
  // acknowledges the SYN alone, until its peer's RST or its own time-out.
  if (!is_gone(side) || !halves_[1 - side].iss) return false;
  Half& h = halves_[side];
  if (!s.has(flag::kAck) || s.ack != *halves_[1 - side].iss + 1) return false;
  if (!s.payload.empty() || s.has(flag::kFin)) return false;
  if (s.has(flag::kSyn)) h.late_iss = s.seq;
  return h.late_iss && s.seq == *h.late_iss + (s.has(flag::kSyn) ? 0 : 1);
}

void Judge::sent(uint32_t side, const Datagram& d, uint32_t path_mtu, base::Now) {
  const bool ours = sides_[side].ours;
  const auto s = parse(d, side, ours);
  if (!s) return;
  if (ours && answers_late_syn(side, *s)) return check_form(side, d, *s, path_mtu);
  if (s->has(flag::kSyn)) observe_syn(side, *s);
  choose_cookie(side, *s);
  Half& h = halves_[side];
  if (!ours || verdict_.failed()) {
    if (h.iss) {
      bool before = false;
      const uint64_t begin = offset_in(side, h.sent_end, s->seq, before);
      if (!before && !s->has(flag::kSyn)) {
        h.sent_end = std::max(h.sent_end, std::min(begin + s->payload.size(), sides_[side].octets));
      }
    }
    return;
  }
  if (s->has(flag::kRst)) {
    // Whoever has closed and forgotten the connection answers late copies so (RFC 9293 s.3.5.2).
    if (!is_gone(side)) fail(side, "RST");
    return;
  }
  check_form(side, d, *s, path_mtu);
  check_options(side, *s);
  if (!h.iss) return fail(side, "a segment before the SYN");
  if (s->has(flag::kAck) && halves_[1 - side].iss) check_ack(side, *s);
  const uint64_t before = h.sent_end;
  if (!s->has(flag::kSyn)) check_data(side, *s);
  check_ecn(side, d, *s, h.sent_end > before);
}

void Judge::check_form(uint32_t side, const Datagram& d, const Segment& s, uint32_t path_mtu) {
  if (!matches(side, d)) fail(side, "wrong addresses or ports");
  if ((d.tcp[wire::kTcpDataOffsetAt] & 0x0f) != 0) fail(side, "reserved bits are set");
  if (s.has(flag::kUrg)) fail(side, "URG is set");
  // A path that leaves less than the smallest MSS is not obeyed, on purpose (docs/tcp.md).
  const uint32_t obeyed = std::max<uint32_t>(path_mtu, kSmallestMss + (d.source.is_v4() ? 40 : 60));
  if (d.ip_length() > obeyed) {
    fail(side, "packet of " + std::to_string(d.ip_length()) + " on a path of " +
                   std::to_string(path_mtu));
  }
  if (!s.has(flag::kSyn) && !s.has(flag::kAck)) fail(side, "no ACK behind the SYN");
  const auto& peer = halves_[side].peer_syn;
  const uint32_t standard = d.source.is_v4() ? kDefaultMss : kDefaultMssV6;
  // A peer's MSS below what any network carries is not obeyed, on purpose (RFC 9293 s.3.7.1 gives
  // no floor; see docs/tcp.md).
  const uint32_t mss =
      peer ? std::max<uint32_t>(peer->mss.value_or(standard), kSmallestMss) : standard;
  if (s.payload.size() + s.options_length > mss && !s.payload.empty()) {
    fail(side, std::to_string(s.payload.size()) + " octets of payload and " +
                   std::to_string(s.options_length) + " of options for an MSS of " +
                   std::to_string(mss));
  }
}

void Judge::check_options(uint32_t side, const Segment& s) {
  const wire::TcpOptions& o = s.options;
  if (s.has(flag::kSyn)) {
    if (!o.mss) fail(side, "SYN without MSS");
    if (o.sack_count != 0) fail(side, "SACK blocks on a SYN");
    if (s.has(flag::kAck)) {
      // RFC 7323 s.2.2, s.3.2, RFC 2018 s.2: only what the SYN offered.
      const wire::TcpOptions& offer = halves_[1 - side].syn;
      if ((o.timestamps && !offer.timestamps) || (o.window_scale && !offer.window_scale) ||
          (o.sack_permitted && !offer.sack_permitted)) {
        fail(side, "SYN-ACK with an option that was not offered");
      }
    }
  } else {
    if (o.mss || o.window_scale || o.sack_permitted) fail(side, "a SYN's option on no SYN");
    if (o.timestamps.has_value() != agreed_timestamps()) {
      fail(side, o.timestamps ? "timestamps were not agreed on" : "timestamps are missing");
    }
    if (o.sack_count != 0 && !agreed_sack()) fail(side, "SACK was not agreed on");
  }
  if (!o.timestamps) return;
  Half& h = halves_[side];
  if (h.last_tsval && static_cast<int32_t>(o.timestamps->value - *h.last_tsval) < 0) {
    fail(side, "the timestamp clock runs backwards");
  }
  h.last_tsval = o.timestamps->value;
  if (s.has(flag::kAck) && h.tsvals.count(o.timestamps->echo) == 0) {
    fail(side, "echoes a timestamp that it did not receive");
  }
}

void Judge::check_data(uint32_t side, const Segment& s) {
  Half& h = halves_[side];
  bool early = false;
  const uint64_t begin = offset_in(side, h.sent_end, s.seq, early);
  const uint64_t end = begin + s.payload.size();
  if (early) {  // a probe of a connection that has sent nothing stands right before its stream
    if (!s.payload.empty()) fail(side, "data before its stream");
    return;
  }
  const uint64_t past = h.fin ? *h.fin + 1 : h.sent_end;
  if (begin > past) return fail(side, "a gap before " + std::to_string(begin));
  if (s.payload.empty() && !s.has(flag::kFin)) return;
  if (begin < h.sent_end) {
    h.reduced = true;
    h.resent_below = std::max(h.resent_below, end);
  }
  if (end > sides_[side].octets) return fail(side, "octets beyond its stream");
  if (h.fin && s.has(flag::kFin) && end != *h.fin) return fail(side, "another FIN");
  if (!s.payload.empty()) {
    if (const auto wrong = pattern_difference(s.payload, sides_[side].key, begin)) {
      return fail(side, "wrong octet at " + std::to_string(begin + *wrong) +
                            (begin < h.sent_end ? " of a retransmission" : ""));
    }
    if (!h.peer_syn) fail(side, "data before the handshake is complete");
    if (end > h.edge) {
      fail(side, "data up to " + std::to_string(end) + ", window up to " + std::to_string(h.edge));
    }
    const auto& boundary = sides_[side].is_boundary;
    if (boundary && (!boundary(begin) || !boundary(end))) {
      fail(side, "segment " + std::to_string(begin) + " to " + std::to_string(end) +
                     " holds no whole records");
    }
  }
  h.sent_end = std::max(h.sent_end, end);
  const uint64_t mss = h.peer_syn ? h.peer_syn->mss.value_or(kDefaultMssV6) : kDefaultMssV6;
  // RFC 6928; a tail loss probe (RFC 8985 s.7.3) may add a segment.
  if (!h.answered &&
      h.sent_end > (uint64_t{sides_[side].initial_segments} + 1) * std::max<uint64_t>(mss, 216)) {
    fail(side, "a first flight of " + std::to_string(h.sent_end) + " octets");
  }
  if (s.has(flag::kFin)) {
    if (end != sides_[side].octets) fail(side, "FIN before the end of its stream");
    h.fin = end;
  }
}

void Judge::check_ack(uint32_t side, const Segment& s) {
  Half& h = halves_[side];
  bool early = false;
  uint64_t ack = offset_in(1 - side, h.acked, s.ack, early);
  if (early) return fail(side, "acknowledges less than the SYN");
  const bool all = h.got_fin && h.got_next == *h.got_fin;
  if (ack > h.got_next + (all ? 1 : 0)) {
    return fail(side, "acknowledges " + std::to_string(ack) + " of " + std::to_string(h.got_next) +
                          " that arrived in order");
  }
  if (ack < h.acked) return fail(side, "its ACK goes back to " + std::to_string(ack));
  h.acked = ack;
  const uint32_t shift = s.has(flag::kSyn) ? 0 : shift_of(side);
  const uint64_t edge = ack + (uint64_t{s.window} << shift);
  // RFC 7323 s.2.4: the low bits of a scaled window are lost.
  if (edge + (uint64_t{1} << shift) <= h.offered && !(all && ack > *h.got_fin)) {
    fail(side,
         "takes back its window from " + std::to_string(h.offered) + " to " + std::to_string(edge));
  }
  if (ack > h.offered + (all ? 1 : 0) && !s.has(flag::kSyn)) {
    fail(side, "takes octets up to " + std::to_string(ack) + ", has offered up to " +
                   std::to_string(h.offered));
  }
  check_sack(side, s);
  h.offered = std::max(h.offered, edge);
  check_news(side, s);
}

void Judge::check_news(uint32_t side, const Segment& s) {
  Half& h = halves_[side];
  // Probes, of a shut window or of a silent peer, stand before what was sent.
  const uint32_t next = *h.iss + 1 + static_cast<uint32_t>(h.sent_end + (h.fin ? 1 : 0));
  const bool pure = s.payload.empty() && (s.flags & ~kEce) == flag::kAck && s.seq == next;
  // A TIME-WAIT entry answers whatever comes.
  const bool idle = h.idle_acks.idle({s.ack, static_cast<uint16_t>(s.window), s.flags, s.options},
                                     pure && !is_gone(side), agreed_sack());
  if (!idle) return;
  fail(side, "an ACK of " + std::to_string(h.acked) + " that says nothing new and answers nothing");
}

bool Judge::note_timestamp(uint32_t side, const Segment& s) {
  if (!s.options.timestamps) return false;
  const uint32_t value = s.options.timestamps->value;
  auto& newest = halves_[side].newest_tsval;
  const bool late = newest && static_cast<int32_t>(value - *newest) < 0;
  if (!late) newest = value;
  return late;
}

void Judge::check_refusal(uint32_t side, const Segment& s, bool late) {
  const Half& h = halves_[side];
  if (late || s.has(flag::kSyn) || s.options.timestamps.has_value() != agreed_timestamps()) return;
  bool before = false;
  const uint64_t begin = offset_in(1 - side, h.got_next, s.seq, before);
  const uint64_t length = s.payload.size() + (s.has(flag::kFin) ? 1 : 0);
  const uint64_t next = h.got_next + (h.got_fin == h.got_next ? 1 : 0);
  // RFC 9293 s.3.10.7.4, first, table 6; the window's edge is itself outside, but for an ACK alone.
  const uint64_t least = next + (length != 0 ? 1 : 0);
  const uint64_t last = h.offered + (s.payload.empty() && !s.has(flag::kRst) ? 1 : 0);
  const bool inside =
      h.offered <= next ? length == 0 && begin == next : begin < last && begin + length >= least;
  const uint32_t sent = *h.iss + 1 + static_cast<uint32_t>(h.sent_end + (h.fin ? 1 : 0));
  if (before || !inside || !h.heard_acks.acceptable(s.ack, sent)) return;
  fail(side, "refuses " + std::to_string(begin) + " to " + std::to_string(begin + length) +
                 ", expects " + std::to_string(next) + ", has offered up to " +
                 std::to_string(h.offered));
}

void Judge::forged(uint32_t side, const Datagram& d) {
  if (!halves_[side].iss || !halves_[1 - side].iss || !parse(d, side, false)) return;
  halves_[side].idle_acks.asked(Question::Refused, agreed_sack());
}

void Judge::check_sack(uint32_t side, const Segment& s) {
  const Half& h = halves_[side];
  for (uint32_t i = 0; i < s.options.sack_count; ++i) {
    bool a = false;
    bool b = false;
    const uint64_t left = offset_in(1 - side, h.acked, s.options.sack[i].left.value, a);
    const uint64_t right = offset_in(1 - side, h.acked, s.options.sack[i].right.value, b);
    if (a || b || left >= right || right > h.got.size()) {
      return fail(side, "impossible SACK block");
    }
    if (right > h.offered) {
      return fail(side, "SACK up to " + std::to_string(right) + ", has offered up to " +
                            std::to_string(h.offered));
    }
    for (uint64_t o = left; o < right; ++o) {
      if (!h.got[o]) return fail(side, "SACK of octet " + std::to_string(o) + ": never arrived");
    }
    if (i != 0 && left <= h.acked) return fail(side, "a SACK block below the ACK, not the first");
  }
}

void Judge::check_ecn(uint32_t side, const Datagram& d, const Segment& s, bool new_data) {
  const uint8_t ecn = d.traffic_class & 3;
  if (ecn == 3) fail(side, "sends CE");
  if (s.has(flag::kSyn)) {
    if (ecn != 0 && !sides_[side].ecn_on_syn) fail(side, "ECT on a SYN");
    return;
  }
  // RFC 3168 s.6.1.1: one SYN or SYN-ACK without the flags, either way, and nobody sets ECT. Who
  // has asked, or agreed, answers marks all the same. A SYN may come late (s.6.1.1.1): what was set
  // before may be marked, and is owed CWR.
  Half& h = halves_[side];
  const bool may_mark =
      h.sent_setup && h.got_setup && !h.got_plain && (!h.sent_plain || sides_[side].forgets_syns);
  if (ecn != 0 && !may_mark) fail(side, "ECT without agreement");
  h.sent_ect |= ecn != 0;
  if (s.has(kCwr) && !may_mark && !h.sent_ect) fail(side, "CWR without agreement");
  if (s.has(kEce) && (!h.sent_setup || !h.marked)) fail(side, "ECE without a mark");
  if (ecn != 0 && !new_data && !sides_[side].ecn_on_control) {
    fail(side, "ECT on what is no new data");
  }
}

void Judge::delivered(uint32_t side, const Datagram& d, Fate fate, base::Now) {
  if (!matches(1 - side, d)) return;
  const auto s = parse(d, side, false);
  if (!s || s->has(flag::kRst)) return;
  Half& h = halves_[side];
  if (s->options.timestamps) h.tsvals.insert(s->options.timestamps->value);
  const bool late = note_timestamp(side, *s);
  if (fate == Fate::Dropped) return;
  if ((d.traffic_class & 3) == 3) h.marked = true;
  if (s->has(flag::kSyn)) {
    if (asks_for_ecn(*s)) {
      h.got_setup = true;
    } else if (!sides_[side].forgets_syns) {
      h.got_plain = true;
    }
    // A SYN that is sent again may tell of less: its sender's path has become narrow meanwhile.
    const auto before = h.peer_syn ? h.peer_syn->mss : std::nullopt;
    h.peer_syn = s->options;
    h.heard_mss = s->options.mss;
    h.peer_syn->mss = std::max(h.peer_syn->mss, before);
    if (!s->has(flag::kAck)) h.edge = std::max<uint64_t>(h.edge, s->window);
  }
  // What a connection that is gone hears, or its listener says to a late SYN, is not about it.
  if (h.gone_before || halves_[1 - side].late_iss) return;
  if (fate == Fate::Taken) return take(side, *s);
  if (!h.iss || !halves_[1 - side].iss) return;
  check_refusal(side, *s, late);
  h.idle_acks.asked(Question::Refused, agreed_sack());
}

void Judge::take(uint32_t side, const Segment& s) {
  Half& h = halves_[side];
  if (s.has(flag::kAck) && h.iss) take_ack(side, s);
  if (!halves_[1 - side].iss) return;
  const auto order = [&] { return h.got_next + (h.got_fin == h.got_next ? 1 : 0); };
  const uint64_t before = order();
  if (!s.has(flag::kSyn)) take_data(side, s);
  // An ACK that is taken and brings nothing is not answered.
  const bool plain = (s.flags & ~(kEce | flag::kPsh)) == flag::kAck && s.payload.empty();
  if (!h.iss || plain) return;
  const auto length =
      static_cast<uint32_t>(s.payload.size()) + (s.has(flag::kSyn) || s.has(flag::kFin) ? 1 : 0);
  h.idle_acks.asked(order() != before ? Question::News : Question::BehindHole, agreed_sack(),
                    s.seq + length);
}

void Judge::take_ack(uint32_t side, const Segment& s) {
  Half& h = halves_[side];
  bool early = false;
  const uint64_t ack = offset_in(side, h.una, s.ack, early);
  if (early || ack > h.sent_end + 1) return;
  if (h.sent_end != 0) h.answered = true;
  h.una = std::max(h.una, ack);
  const uint32_t shift = s.has(flag::kSyn) ? 0 : shift_of(1 - side);
  h.heard_acks.take(s.seq, s.ack, uint32_t{s.window} << shift);
  const uint64_t window_end = ack + (uint64_t{s.window} << shift);
  h.edge = std::max(h.edge, window_end);
  h.open = true;
  h.echoed = s.has(kEce) && !s.has(flag::kSyn);
  h.reduced |= h.echoed;
  // RFC 9293 s.3.10.7.4, fifth: what is older than the newest news of the window says nothing.
  bool unknown = s.has(flag::kSyn) || !halves_[1 - side].iss;
  const uint64_t from = unknown ? 0 : offset_in(1 - side, h.got_next, s.seq, unknown);
  if (from < h.window_from) return;
  h.window_from = from;
  h.window_end = window_end;
}

bool Judge::could_send(uint32_t side, uint64_t given) const {
  const Half& h = halves_[side];
  if (!sides_[side].prompt || is_gone(side) || !h.open || h.fin) return false;
  if (given <= h.sent_end) return false;
  const uint64_t flight = h.sent_end - std::min(h.una, h.sent_end);
  // RFC 3168 s.6.1.2: with a window of one segment ECN-Echo is answered by a wait for the timer.
  const bool recovered = flight == 0 && h.una >= h.resent_below && !h.echoed;
  const uint64_t window = !h.reduced ? kWithinInitialWindow : recovered ? kWithinLossWindow : 0;
  return flight + (given - h.sent_end) <= window && given <= h.window_end;
}

void Judge::turned(uint32_t side, uint64_t given, base::Now now) {
  Half& h = halves_[side];
  if (h.waits_since != base::kNever && now - h.waits_since > kPromptly) {
    fail(side, "octets up to " + std::to_string(given) + " have waited for " +
                   std::to_string((now - h.waits_since).count() / 1'000'000) +
                   " ms, window up to " + std::to_string(h.window_end));
  }
  h.waits_since = could_send(side, given) ? base::earlier(h.waits_since, now) : base::kNever;
}

void Judge::take_data(uint32_t side, const Segment& s) {
  Half& h = halves_[side];
  bool early = false;
  const uint64_t begin = offset_in(1 - side, h.got_next, s.seq, early);
  if (early) return;
  // RFC 9293 s.3.10.7.4: what lies beyond the window is trimmed off, a FIN there, too.
  const uint64_t last = begin + s.payload.size();
  const uint64_t end = std::min<uint64_t>({last, h.got.size(), h.offered});
  for (uint64_t o = begin; o < end; ++o) h.got[o] = true;
  if (s.has(flag::kFin) && last <= h.offered) h.got_fin = last;
  while (h.got_next < h.got.size() && h.got[h.got_next]) ++h.got_next;
}

std::optional<Judge::Numbers> Judge::numbers(uint32_t side) const {
  const Half& h = halves_[side];
  const Half& peer = halves_[1 - side];
  if (!h.iss || !peer.iss || !h.peer_syn || !peer.peer_syn || h.una == 0) return std::nullopt;
  Numbers n;
  // A FIN has a number, too: who is to miss RCV.NXT must know it (RFC 5961 s.3.2).
  const uint64_t rcv_nxt = h.got_next + (h.got_fin == h.got_next ? 1 : 0);
  n.rcv_nxt = *peer.iss + 1 + static_cast<uint32_t>(rcv_nxt);
  n.window = static_cast<uint32_t>(h.offered - std::min(h.offered, h.got_next));
  n.snd_una = *h.iss + 1 + static_cast<uint32_t>(h.una);
  n.snd_nxt = *h.iss + 1 + static_cast<uint32_t>(h.sent_end + (h.fin ? 1 : 0));
  n.peer_window = static_cast<uint32_t>(h.edge - std::min(h.edge, h.una));
  return n;
}

std::string Judge::describe() const {
  std::string text = name_ + ":";
  for (uint32_t side = 0; side < 2; ++side) {
    const Half& h = halves_[side];
    text += " [" + to_string(sides_[side].end) + " sent " + std::to_string(h.sent_end) + " of " +
            std::to_string(sides_[side].octets) + ", told of " + std::to_string(h.una) +
            ", window to " + std::to_string(h.edge) + ", got " + std::to_string(h.got_next) +
            ", has acknowledged " + std::to_string(h.acked) + (h.fin ? ", FIN sent" : "") +
            (h.got_fin ? ", FIN received" : "") + "]";
  }
  return text + "\n";
}

}  // namespace rnic::simulation
