// Every state against every kind of segment at every interesting position: enumerated, and compared
// with the tables of rfc9293_table.hpp.
#include <sstream>

#include "raw_peer.hpp"
#include "rfc9293_table.hpp"
#include "support/long_form.hpp"

namespace rnic::testing {
namespace {

using tcp::State;

constexpr uint32_t kWindow = 1000;  // ours
constexpr uint16_t kPeerWindow = 2000;
constexpr uint32_t kFlight = 10;  // octets that the peer has not acknowledged

tcp::Config small() {
  tcp::Config c = RawPeer::bare();
  c.receive_window = kWindow;
  c.max_connections = 2;
  c.max_records = c.max_records_per_connection = 64;
  c.max_saved_octets = 4096;
  return c;
}

/// A connection in one of the states, and the model of it.
struct Scene {
  RawPeer p{small()};
  ConnectionModel model;

  void look(State state, bool active) {
    model.state = state;
    model.active_open = active;
    model.iss = kIss;
    model.irs = kIrs;
    model.max_snd_wnd = kPeerWindow;
    while (!p.silent()) {
      const Segment s = p.next();
      if ((s.flags & flag::kAck) == 0) continue;
      model.rcv_nxt = s.ack;
      model.rcv_wnd = s.window;
    }
  }
  void established(bool shut) {
    p.accept(option_mss(1460), {}, kPeerWindow);
    model.rcv_nxt = kIrs + 1;
    model.rcv_wnd = kWindow;
    model.snd_una = model.snd_nxt = kIss + 1;
    if (shut) {
      p.user.room = 0;
      p.inject({.seq = kIrs + 1,
                .ack = kIss + 1,
                .flags = flag::kAck | flag::kPsh,
                .window = kPeerWindow,
                .payload = kWindow});
    }
    p.send_record(kFlight);
    model.snd_nxt += kFlight;
    look(State::Established, false);
  }
  void close() {
    p.user.stream->close();
    p.stack.output(p.now);
    ++model.snd_nxt;
  }
  void peer(uint8_t flags, uint32_t ack) {
    p.inject({.seq = model.rcv_nxt, .ack = ack, .flags = flags, .window = kPeerWindow});
    model.snd_una = ack;
  }
};

void reach_syn_received(Scene& s, bool active) {
  if (active) {
    s.p.connect();
  } else {
    s.p.acceptor.next.push_back(&s.p.user);
  }
  s.p.inject({.seq = kIrs, .flags = flag::kSyn, .window = kPeerWindow});
  s.look(State::SynReceived, active);
  s.model.snd_una = kIss;
  s.model.snd_nxt = kIss + 1;
}

void reach_closing_states(Scene& s, State state, bool shut) {
  s.established(shut);
  const uint32_t all = kIss + 1 + kFlight;
  switch (state) {
    case State::FinWait1: s.close(); break;
    case State::FinWait2:
      s.close();
      s.peer(flag::kAck, all + 1);
      break;
    case State::TimeWait:
      s.close();
      s.peer(flag::kAck, all + 1);
      s.peer(flag::kAck | flag::kFin, all + 1);
      break;
    case State::CloseWait: s.peer(flag::kAck | flag::kFin, kIss + 1); break;
    case State::LastAck:
      s.peer(flag::kAck | flag::kFin, kIss + 1);
      s.close();
      break;
    case State::Closing:
      s.close();
      s.peer(flag::kAck | flag::kFin, kIss + 1);
      break;
    default: break;
  }
  s.look(state, false);
}

void reach(Scene& s, State state, bool active, bool shut) {
  switch (state) {
    case State::Closed:
      s.p.our_port = 9;
      s.model.rcv_nxt = kIrs + 1;
      s.model.snd_una = s.model.snd_nxt = kIss + 1;
      s.look(state, false);
      break;
    case State::Listen:
      s.p.acceptor.next.push_back(&s.p.user);
      s.model.rcv_nxt = kIrs + 1;
      s.model.snd_una = s.model.snd_nxt = kIss + 1;
      s.look(state, false);
      break;
    case State::SynSent:
      s.p.connect();
      s.model.rcv_nxt = kIrs;
      s.model.rcv_wnd = kWindow;
      s.model.snd_una = kIss;
      s.model.snd_nxt = kIss + 1;
      s.look(state, true);
      break;
    case State::SynReceived: reach_syn_received(s, active); break;
    default: reach_closing_states(s, state, shut); break;
  }
}

State state_of(Scene& s, bool syn_sent_again = false) {
  if (s.p.stack.live_connections() == 0) {
    return s.model.state == State::Listen ? State::Listen : State::Closed;
  }
  if (s.p.user.how_ended) return syn_sent_again ? State::SynReceived : State::TimeWait;
  if (s.p.user.stream == nullptr) return State::SynReceived;
  return s.p.stack.info(*s.p.user.stream, s.p.now)->state;
}

std::string describe(const Scene& s, const SegmentModel& m) {
  std::ostringstream out;
  out << tcp::to_string(s.model.state) << (s.model.active_open ? " (active)" : "") << " window "
      << s.model.rcv_wnd << ", segment" << (m.syn ? " SYN" : "") << (m.ack ? " ACK" : "")
      << (m.rst ? " RST" : "") << (m.fin ? " FIN" : "") << " seq RCV.NXT" << std::showpos
      << rfc9293::distance(s.model.rcv_nxt, m.seq);
  if (m.ack) out << " ack SND.UNA" << rfc9293::distance(s.model.snd_una, m.ack_number);
  out << std::noshowpos << " text " << m.text << ", in flight "
      << s.model.snd_nxt - s.model.snd_una;
  return out.str();
}

void check_reply(const Scene& s, const SegmentModel& m, const Owed& owed,
                 const std::vector<Segment>& replies) {
  if (owed.reply == Reply::Nothing) {
    EXPECT_TRUE(replies.empty()) << "flags " << int{replies[0].flags};
    return;
  }
  if (owed.reply == Reply::AckOrNothing && replies.empty()) return;
  ASSERT_EQ(replies.size(), 1u);
  const Segment& r = replies[0];
  switch (owed.reply) {
    case Reply::Ack:
    case Reply::AckOrNothing: compare(r, {.seq = s.model.snd_nxt, .ack = owed.rcv_nxt}); break;
    case Reply::SynAck:
      if (s.model.state == State::TimeWait) {  // MAY-2 (1): beyond the old incarnation
        compare(r, {.flags = kSynAck, .ack = owed.rcv_nxt});
        EXPECT_TRUE(base::after(base::Seq32(r.seq), base::Seq32(s.model.snd_nxt)));
      } else {
        compare(r, {.flags = kSynAck, .seq = kIss, .ack = owed.rcv_nxt});
      }
      break;
    case Reply::ResetAtAck: compare(r, {.flags = flag::kRst, .seq = m.ack_number}); break;
    case Reply::ResetAckAll:
      compare(r, {.flags = flag::kRst | flag::kAck, .seq = 0, .ack = m.seq + m.length()});
      break;
    case Reply::Nothing: break;
  }
}

void check_one(State state, bool active, bool shut, const SegmentModel& relative) {
  Scene s;
  reach(s, state, active, shut);
  SegmentModel m = relative;
  m.seq += s.model.rcv_nxt;
  m.ack_number += s.model.snd_una;
  SCOPED_TRACE(describe(s, m));
  ASSERT_EQ(state_of(s), state);
  const Owed owed = rfc9293::owed_to(s.model, m);
  const uint64_t ordered = s.p.user.ordered_to;
  s.p.user.places.clear();
  s.p.inject({.seq = m.seq,
              .ack = m.ack ? m.ack_number : 0,
              .flags = static_cast<uint8_t>((m.syn ? flag::kSyn : 0) | (m.ack ? flag::kAck : 0) |
                                            (m.rst ? flag::kRst : 0) | (m.fin ? flag::kFin : 0)),
              .window = kPeerWindow,
              .payload = m.text});
  s.p.wait(milliseconds(60));  // the delayed ACK; no retransmission is due yet
  std::vector<Segment> replies;
  while (!s.p.silent()) replies.push_back(s.p.next());
  check_reply(s, m, owed, replies);
  const bool new_syn = !replies.empty() && (replies[0].flags & flag::kSyn) != 0;
  EXPECT_EQ(tcp::to_string(state_of(s, new_syn)), std::string(tcp::to_string(owed.state)));
  EXPECT_EQ(s.p.user.ordered_to - ordered, owed.in_order);
  uint64_t placed = 0;
  for (const base::Range& range : s.p.user.places) placed += range.size();
  EXPECT_EQ(placed, uint64_t{owed.in_order} + owed.held);
  if (s.p.user.stream != nullptr && s.p.user.is_established && !s.p.user.how_ended) {
    EXPECT_EQ(s.p.stack.info(*s.p.user.stream, s.p.now)->snd_una,
              uint64_t{owed.snd_una} - kIss - 1);
  }
  EXPECT_TRUE(m.syn || s.p.user.clean());  // inject() does not leave a number for a SYN
}

struct Start {
  State state;
  bool active = false;
  bool shut = false;
};

void PrintTo(const Start& c, std::ostream* out) {
  *out << tcp::to_string(c.state) << (c.active ? " active" : "") << (c.shut ? " shut" : "");
}

class StateEvent : public ::testing::TestWithParam<Start> {};

// TCP-9293-3.10-01, TCP-9293-3.10-02, TCP-9293-3.10-03, TCP-9293-3.10-04, TCP-9293-3.10-06,
// TCP-9293-3.5.2-01, TCP-9293-3.5.3-01, TCP-5961-3-01, TCP-5961-4-01, TCP-5961-5-01
TEST_P(StateEvent, EverySegmentIsAnsweredByTheBook) {
  const Start c = GetParam();
  const int32_t edge = c.shut ? 0 : static_cast<int32_t>(kWindow);
  // Left of the window, at its begin, inside, at its last octet, at and beyond its end.
  const std::vector<int32_t> begins = {-100000,  -50,       -2,       -1,   0,        1,
                                       edge / 2, edge - 50, edge - 1, edge, edge + 1, 100000};
  const std::vector<uint32_t> texts = {0, 1, 2, 51, 100, 1200};
  // Far too old, at the edges of RFC 5961 s.5.2, old, duplicate, partial, all but the FIN, all, too
  // new.
  const int32_t peer_window = kPeerWindow;
  const std::vector<int32_t> acks = {-1000000, -peer_window - 1, -peer_window, -1,     0, 1, 5,
                                     kFlight,  kFlight + 1,      kFlight + 2,  1000000};
  // Three has no divisor in common with the numbers of values: all of each meet most of the others.
  const uint32_t step = test::by_form(3u, 1u);
  uint32_t cases = 0;
  for (uint32_t bits = 0; bits < 16; ++bits) {
    SegmentModel m{.syn = (bits & 1) != 0,
                   .ack = (bits & 2) != 0,
                   .rst = (bits & 4) != 0,
                   .fin = (bits & 8) != 0};
    for (const int32_t begin : begins) {
      for (const uint32_t text : texts) {
        for (const int32_t ack : acks) {
          m.seq = static_cast<uint32_t>(begin);
          m.text = text;
          m.ack_number = static_cast<uint32_t>(ack);
          if (++cases % step == 0) check_one(c.state, c.active, c.shut, m);
          if (HasFailure()) FAIL() << "after " << cases << " cases";
          if (!m.ack) break;
        }
      }
    }
  }
  EXPECT_GT(cases, 5000u);
}

INSTANTIATE_TEST_SUITE_P(
    AllStates, StateEvent,
    ::testing::Values(Start{State::Closed}, Start{State::Listen}, Start{State::SynSent},
                      Start{State::SynReceived}, Start{State::SynReceived, true},
                      Start{State::Established}, Start{State::Established, false, true},
                      Start{State::FinWait1}, Start{State::FinWait1, false, true},
                      Start{State::FinWait2}, Start{State::FinWait2, false, true},
                      Start{State::CloseWait}, Start{State::Closing}, Start{State::LastAck},
                      Start{State::TimeWait}));

}  // namespace
}  // namespace rnic::testing
