/// \file
/// RFC 9293 s.3.10.7 (SEGMENT ARRIVES) with RFC 5961 in force, written down as tables: what a TCP
/// in a given state owes to a given segment. From the text of the RFCs alone; nothing of the engine
/// but its names of the states is used.
#pragma once

#include <array>
#include <cstdint>

#include "tcp/state.hpp"

namespace rnic::testing {

/// The variables that the rules speak of; absolute sequence numbers.
struct ConnectionModel {
  tcp::State state = tcp::State::Closed;
  bool active_open = false;
  uint32_t iss = 0;
  uint32_t snd_una = 0;
  uint32_t snd_nxt = 0;
  uint32_t max_snd_wnd = 0;
  uint32_t irs = 0;
  uint32_t rcv_nxt = 0;
  uint32_t rcv_wnd = 0;
};

struct SegmentModel {
  uint32_t seq = 0;
  uint32_t ack_number = 0;
  bool syn = false, ack = false, rst = false, fin = false;
  uint32_t text = 0;  ///< octets

  [[nodiscard]] uint32_t length() const { return text + (syn ? 1 : 0) + (fin ? 1 : 0); }
};

/// What goes back. Numbers are checked for each kind.
enum class Reply : uint8_t {
  Nothing,
  Ack,           ///< <SEQ=SND.NXT><ACK=RCV.NXT><CTL=ACK>, at once or after the delayed-ACK time
  AckOrNothing,  ///< the text is to be ignored; telling the peer where we are does no harm
  SynAck,        ///< <SEQ=ISS><ACK=RCV.NXT><CTL=SYN,ACK>
  ResetAtAck,    ///< <SEQ=SEG.ACK><CTL=RST>
  ResetAckAll,   ///< <SEQ=0><ACK=SEG.SEQ+SEG.LEN><CTL=RST,ACK>
};

struct Owed {
  Reply reply = Reply::Nothing;
  tcp::State state = tcp::State::Closed;  ///< afterwards
  uint32_t snd_una = 0;                   ///< afterwards
  uint32_t rcv_nxt = 0;                   ///< afterwards
  uint32_t in_order = 0;                  ///< octets delivered
  uint32_t held = 0;                      ///< octets taken beyond a hole
};

namespace rfc9293 {

using tcp::State;

[[nodiscard]] inline int32_t distance(uint32_t from, uint32_t to) {
  return static_cast<int32_t>(to - from);
}

/// One line of a table: in these states this is what follows.
struct Line {
  State state;
  State next;
};

// Second: a RST at RCV.NXT. A passive open goes back to LISTEN: its connection is gone. TIME-WAIT
// is not assassinated (RFC 1337 s.3, fix F1; s.3.6.1's quiet time would be void otherwise).
inline constexpr std::array kOnReset = {
    Line{State::SynReceived, State::Closed}, Line{State::Established, State::Closed},
    Line{State::FinWait1, State::Closed},    Line{State::FinWait2, State::Closed},
    Line{State::CloseWait, State::Closed},   Line{State::Closing, State::Closed},
    Line{State::LastAck, State::Closed},     Line{State::TimeWait, State::TimeWait},
};

// Fifth: everything that we sent is acknowledged.
inline constexpr std::array kOnAllAcknowledged = {
    Line{State::SynReceived, State::Established}, Line{State::Established, State::Established},
    Line{State::FinWait1, State::FinWait2},       Line{State::FinWait2, State::FinWait2},
    Line{State::CloseWait, State::CloseWait},     Line{State::Closing, State::TimeWait},
    Line{State::LastAck, State::Closed},          Line{State::TimeWait, State::TimeWait},
};

// Eighth: the FIN is reached.
inline constexpr std::array kOnFin = {
    Line{State::Established, State::CloseWait},
    Line{State::FinWait1, State::Closing},
    Line{State::FinWait2, State::TimeWait},
};

template <typename Table>
[[nodiscard]] State follow(const Table& table, State state) {
  for (const Line& line : table) {
    if (line.state == state) return line.next;
  }
  return state;
}

/// Seventh: these take text, and the FIN behind it.
[[nodiscard]] inline bool takes_text(State state) {
  return state == State::Established || state == State::FinWait1 || state == State::FinWait2;
}

/// Table 6.
[[nodiscard]] inline bool acceptable(const ConnectionModel& c, const SegmentModel& s) {
  const int64_t first = distance(c.rcv_nxt, s.seq);
  const int64_t last = first + s.length() - 1;
  const int64_t window = c.rcv_wnd;
  if (s.length() == 0) return window == 0 ? first == 0 : first >= 0 && first < window;
  if (window == 0) return false;
  // By the paragraph on trimming a segment that reaches over both edges has its part inside.
  return (first >= 0 && first < window) || (last >= 0 && last < window) ||
         (first < 0 && last >= window);
}

/// The repeated SYN of a connection that is not complete yet.
[[nodiscard]] inline Owed repeated_syn(const ConnectionModel& c) {
  // The ACK that is owed to what lies before the window rides on our SYN: the peer is in SYN-SENT,
  // where an ACK without SYN tells it nothing.
  return {.reply = Reply::SynAck, .state = c.state, .snd_una = c.snd_una, .rcv_nxt = c.rcv_nxt};
}

[[nodiscard]] inline Owed unchanged(const ConnectionModel& c, Reply reply) {
  return {.reply = reply, .state = c.state, .snd_una = c.snd_una, .rcv_nxt = c.rcv_nxt};
}

[[nodiscard]] inline Owed gone(const ConnectionModel& c, Reply reply = Reply::Nothing) {
  Owed owed = unchanged(c, reply);
  owed.state = State::Closed;
  return owed;
}

/// s.3.10.7.1
[[nodiscard]] inline Owed closed(const ConnectionModel& c, const SegmentModel& s) {
  if (s.rst) return unchanged(c, Reply::Nothing);
  return unchanged(c, s.ack ? Reply::ResetAtAck : Reply::ResetAckAll);
}

/// s.3.10.7.2
[[nodiscard]] inline Owed listen(const ConnectionModel& c, const SegmentModel& s) {
  if (s.rst) return unchanged(c, Reply::Nothing);
  if (s.ack) return unchanged(c, Reply::ResetAtAck);
  if (!s.syn) return unchanged(c, Reply::Nothing);
  Owed owed = unchanged(c, Reply::SynAck);
  owed.state = State::SynReceived;
  owed.rcv_nxt = s.seq + 1;
  return owed;
}

/// The part from the seventh step on: text and FIN of an acceptable segment.
inline void take_text(const ConnectionModel& c, const SegmentModel& s, uint32_t text_seq,
                      Owed& owed) {
  if (!takes_text(owed.state)) {
    if (s.text != 0 || s.fin) owed.reply = Reply::AckOrNothing;
    return;
  }
  const int64_t window = c.rcv_wnd;
  const int64_t first = distance(owed.rcv_nxt, text_seq);
  const int64_t end = first + s.text;
  const int64_t from = first < 0 ? 0 : first;
  const int64_t to = end < window ? end : window;
  const auto taken = static_cast<uint32_t>(to > from ? to - from : 0);
  if (s.text != 0 || s.fin) owed.reply = Reply::Ack;
  if (first > 0) {  // SHLD-31: kept
    owed.held = taken;
    return;
  }
  owed.in_order = taken;
  owed.rcv_nxt += taken;
  // The FIN has a sequence number of its own, but takes no room: it may stand at the edge. (By the
  // letter of Table 6 a FIN alone would have to wait for a window; peers are known that never send
  // it again then.)
  if (s.fin && end >= 0 && end == static_cast<int64_t>(taken) && end <= window) {
    ++owed.rcv_nxt;
    owed.state = follow(kOnFin, owed.state);
  }
}

/// s.3.10.7.3
[[nodiscard]] inline Owed syn_sent(const ConnectionModel& c, const SegmentModel& s) {
  if (s.ack && s.ack_number != c.iss + 1) {
    return unchanged(c, s.rst ? Reply::Nothing : Reply::ResetAtAck);
  }
  if (s.rst) return s.ack ? gone(c) : unchanged(c, Reply::Nothing);
  if (!s.syn) return unchanged(c, Reply::Nothing);
  Owed owed = unchanged(c, Reply::Ack);
  owed.rcv_nxt = s.seq + 1;
  if (!s.ack) {
    owed.state = State::SynReceived;
    owed.reply = Reply::SynAck;
    return owed;
  }
  owed.state = State::Established;
  owed.snd_una = s.ack_number;
  take_text(c, s, s.seq + 1, owed);
  owed.reply = Reply::Ack;
  return owed;
}

/// Fifth: the ACK field. False: the segment is not looked at any further.
[[nodiscard]] inline bool take_ack(const ConnectionModel& c, const SegmentModel& s, Owed& owed) {
  if (c.state == State::SynReceived) {
    if (s.ack_number != c.iss + 1) {  // s.3.5.2, group 2: not synchronized yet
      owed.reply = Reply::ResetAtAck;
      return false;
    }
  } else {
    // RFC 5961 s.5.2
    const int64_t ahead = distance(c.snd_una, s.ack_number);
    const int64_t flight = distance(c.snd_una, c.snd_nxt);
    // In TIME-WAIT nothing is said of ACKs that are too old (nobody sends to whom they matter).
    if (c.state == State::TimeWait && ahead < 0) {
      owed.reply = Reply::AckOrNothing;
      return false;
    }
    if (ahead > flight || ahead < -static_cast<int64_t>(c.max_snd_wnd)) {
      owed.reply = Reply::Ack;
      return false;
    }
    if (ahead <= 0 && flight != 0) return true;  // a duplicate
  }
  owed.snd_una = s.ack_number;
  if (distance(c.snd_una, s.ack_number) < 0) owed.snd_una = c.snd_una;
  if (owed.snd_una == c.snd_nxt) owed.state = follow(kOnAllAcknowledged, owed.state);
  return true;
}

[[nodiscard]] inline Owed other_states(const ConnectionModel& c, const SegmentModel& s);

/// What s.3.10.7.4 leaves to other places of the text. False: nothing of the kind.
[[nodiscard]] inline bool special(const ConnectionModel& c, const SegmentModel& s, Owed& owed) {
  if (s.rst || !s.syn) return false;
  if (c.state == State::SynReceived && s.seq == c.irs) {
    if (!s.ack) {
      owed = repeated_syn(c);
      return true;
    }
    if (!c.active_open) return false;
    // Figure 8: the SYN,ACK of a simultaneous open. Its SYN is known, the rest counts.
    SegmentModel rest = s;
    rest.syn = false;
    ++rest.seq;
    owed = other_states(c, rest);
    return true;
  }
  if (c.state == State::TimeWait && !c.active_open && !s.ack && !s.fin &&
      distance(c.rcv_nxt, s.seq) > 0) {
    // s.3.6.1 (MAY-2): a new incarnation beyond the old one's numbers.
    owed = {.reply = Reply::SynAck,
            .state = State::SynReceived,
            .snd_una = c.snd_una,
            .rcv_nxt = s.seq + 1};
    return true;
  }
  return false;
}

/// s.3.10.7.4
[[nodiscard]] inline Owed other_states(const ConnectionModel& c, const SegmentModel& s) {
  if (Owed owed; special(c, s, owed)) return owed;
  // First. With a zero window ACK and RST at RCV.NXT still count (MUST-66), the text does not.
  const bool shut = c.rcv_wnd == 0 && s.length() != 0 && s.seq == c.rcv_nxt;
  // So does the ACK, alone or with a FIN, of who has filled the window. (By the letter of Table 6
  // none of its ACKs would count as long as an octet of the window is missing, and two such ends
  // would answer each other without end.)
  const bool filled = s.text == 0 && !s.syn && !s.rst && s.seq == c.rcv_nxt + c.rcv_wnd &&
                      c.state != State::TimeWait;
  if (!acceptable(c, s) && !shut && !filled) {
    return unchanged(c, s.rst ? Reply::Nothing : Reply::Ack);
  }
  // Second, with RFC 5961 s.3.2.
  if (s.rst && c.state == State::TimeWait) return unchanged(c, Reply::Nothing);  // RFC 1337 s.3
  if (s.rst) {
    const int32_t ahead = distance(c.rcv_nxt, s.seq);
    if (ahead < 0) return unchanged(c, Reply::Nothing);  // it begins before the window
    if (ahead != 0) return unchanged(c, Reply::Ack);
    Owed owed = unchanged(c, Reply::Nothing);
    owed.state = follow(kOnReset, c.state);
    return owed;
  }
  // Fourth, with RFC 5961 s.4.2.
  if (s.syn) {
    if (c.state == State::SynReceived && !c.active_open) return gone(c);
    return unchanged(c, Reply::Ack);
  }
  if (!s.ack) return unchanged(c, Reply::Nothing);  // Fifth
  Owed owed = unchanged(c, Reply::Nothing);
  if (!take_ack(c, s, owed)) return owed;
  if (owed.state == State::Closed) return owed;  // LAST-ACK is over
  if (shut && s.text != 0) {
    owed.reply = Reply::Ack;
    return owed;
  }
  take_text(c, s, s.seq, owed);
  return owed;
}

[[nodiscard]] inline Owed owed_to(const ConnectionModel& c, const SegmentModel& s) {
  switch (c.state) {
    case State::Closed: return closed(c, s);
    case State::Listen: return listen(c, s);
    case State::SynSent: return syn_sent(c, s);
    default: return other_states(c, s);
  }
}

}  // namespace rfc9293
}  // namespace rnic::testing
