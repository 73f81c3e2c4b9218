#include "tcp/fast_path.hpp"

#include <cstring>

#include "base/bytes.hpp"
#include "tcp/segment.hpp"

namespace rnic::tcp::fast_path {

namespace flag = wire::tcp_flag;

namespace {

constexpr uint32_t kTimestampsHead = 0x0101080a;  // NOP NOP TSopt (RFC 7323 appendix A)

/// The window field in the byte order of the wire, for a comparison.
uint32_t window_field(const uint8_t* header) {
  uint16_t field;
  std::memcpy(&field, header + wire::kTcpWindowAt, sizeof field);
  return field;
}

/// \param stamp set to TSval, where timestamps are on
inline bool stamps_good(uint32_t header_octets, const Receiver& receiver, const uint8_t* header,
                        uint32_t& stamp) {
  if (header_octets == wire::kTcpHeaderMin) return true;
  const uint8_t* options = header + wire::kTcpOptionsAt;
  stamp = base::load_be32(options + 4);
  return base::load_be32(options) == kTimestampsHead && receiver.stamp_good(stamp);
}

[[gnu::noinline]] bool checksum_right(const ConnectionCore& core, base::ByteView tcp) {
  const Binding& binding = core.binding();
  return checksum_good(binding.remote.address, binding.local.address, tcp);
}

/// TSecr, where timestamps are on.
inline uint32_t echo_of(const ConnectionCore& core, const uint8_t* header) {
  return core.prediction.header_octets() != wire::kTcpHeaderMin
             ? base::load_be32(header + wire::kTcpOptionsAt + 8)
             : 0;
}

/// Takes SND.WND from the header unless the window is zero. The rest of the segment was checked
/// before.
inline bool window_stays_open(ConnectionCore& core, Sender& sender, const uint8_t* header) {
  const uint32_t field = window_field(header);
  if (field == core.prediction.window_field()) [[likely]]
    return true;
  if (field == 0) return false;
  core.prediction.set_window_field(field);
  sender.take_plain_window(base::load_be16(header + wire::kTcpWindowAt));
  return true;
}

// This is a function of its own, so that text which acknowledges nothing new does not pay for the
// registers of an ACK.
[[gnu::noinline]] bool take_carried_ack(Sender& sender, uint32_t acked, uint32_t echo,
                                        base::Now now) {
  return sender.take_plain_ack(acked, echo, now);
}

/// Data offset and flags are those of text, as Prediction expects them.
inline bool is_header_of_text(const uint8_t* header, uint32_t header_octets) {
  return (header[wire::kTcpDataOffsetAt] & 0xf0) == header_octets << 2 &&
         (header[wire::kTcpFlagsAt] & ~flag::kPsh) == flag::kAck;
}

}  // namespace

Taken take_text(ConnectionCore& core, Sender& sender, Receiver& receiver, ExpectedIn in,
                base::Now now) {
  const Tcb& tcb = core.tcb;
  const uint32_t length = core.prediction.header_octets();
  uint32_t stamp = 0;
  const uint8_t* header = in.tcp.data();
  const size_t size = in.tcp.size();
  const base::Range range{tcb.rcv_nxt, tcb.rcv_nxt + size - length};
  if (size < length || size > 0xffff || range.end > tcb.rcv_edge) return Taken::No;
  if (!stamps_good(length, receiver, header, stamp)) return Taken::No;
  if (in.ecn == ecn_codepoint::kCe && core.ecn.on()) return Taken::No;
  const uint32_t ack = base::load_be32(header + wire::kTcpAcknowledgmentAt);
  const bool old = ack == tcb.snd_seq(tcb.snd_una).value;
  const uint32_t acked = old ? 0 : sender.flight().plain_ack(ack);
  if (!old && acked == 0) return Taken::No;
  if (!in.checksum_verified && !checksum_right(core, in.tcp)) return Taken::No;
  if (window_field(header) == 0) return Taken::No;
  receiver.take_stamp(range.begin, stamp, now);
  const base::ByteView text{header + length, size - length};
  if (core.binding().user->inspect(range, text, now) != llp::InspectVerdict::Accept) {
    ++core.shared.counters.inspect_drops;
    return Taken::Text;
  }
  if (core.life.over()) return Taken::Text;
  // The window is taken only now, because a segment that inspect() drops must change nothing.
  (void)window_stays_open(core, sender, header);
  if (acked != 0) {
    if (!take_carried_ack(sender, acked, echo_of(core, header), now)) {
      predict(core, sender, receiver);
    }
    if (core.life.over()) return Taken::Text;
  } else if (!sender.take_plain_text(now)) {
    predict(core, sender, receiver);
  }
  const bool push = (header[wire::kTcpFlagsAt] & flag::kPsh) != 0;
  receiver.take_in_order(range, text, push, now);
  return Taken::Text;
}

void predict(ConnectionCore& core, const Sender& sender, const Receiver& receiver) {
  const Tcb& tcb = core.tcb;
  const Binding& binding = core.binding();
  if (!predictable_beside(core, sender, receiver)) {
    core.prediction.end();
    return;
  }
  core.prediction.begin(binding.remote.port, binding.local.port, tcb.rcv_seq(tcb.rcv_nxt),
                        tcb.header_length(), tcb.snd_wnd, tcb.snd_wind_shift);
  if (!receiver.predictable()) core.prediction.end_order();
}

Taken take_ack(ConnectionCore& core, Sender& sender, Receiver& receiver, KeepAlive& keep_alive,
               const SegmentIn& in, base::Now now) {
  const uint8_t* header = in.tcp.data();
  const uint32_t ack = base::load_be32(header + wire::kTcpAcknowledgmentAt);
  const uint32_t acked = sender.flight().plain_ack(ack);
  uint32_t stamp = 0;
  const uint32_t length = core.prediction.header_octets();
  if (acked == 0 || !stamps_good(length, receiver, header, stamp)) return Taken::No;
  if (!in.checksum_verified && !checksum_right(core, in.tcp)) return Taken::No;
  if (!window_stays_open(core, sender, header)) return Taken::No;
  const uint32_t echo = echo_of(core, header);
  keep_alive.heard(now);
  receiver.take_stamp(core.tcb.rcv_nxt, stamp, now);
  return sender.take_plain_ack(acked, echo, now) ? Taken::Ack : Taken::ReorderedAck;
}

Taken take_text_beside(ConnectionCore& core, Sender& sender, Receiver& receiver,
                       KeepAlive& keep_alive, const SegmentIn& in, base::Now now) {
  const Tcb& tcb = core.tcb;
  const uint32_t length = core.prediction.header_octets();
  const uint8_t* header = in.tcp.data();
  uint32_t stamp = 0;
  if (!core.prediction.beside() || in.tcp.size() <= length || in.tcp.size() > 0xffff) {
    return Taken::No;
  }
  if (!is_header_of_text(header, length)) return Taken::No;
  if (!stamps_good(length, receiver, header, stamp)) return Taken::No;
  if (in.ecn == ecn_codepoint::kCe && core.ecn.on()) return Taken::No;
  const base::Seq32 seq(base::load_be32(header + wire::kTcpSequenceAt));
  const Receiver::Text arrived{tcb.rcv_offset(seq), in.tcp.subspan(length),
                               (header[wire::kTcpFlagsAt] & flag::kPsh) != 0, false};
  if (!receiver.offers(arrived)) return Taken::No;
  const uint32_t ack = base::load_be32(header + wire::kTcpAcknowledgmentAt);
  if (ack != tcb.snd_seq(tcb.snd_una).value || window_field(header) == 0) return Taken::No;
  if (!in.checksum_verified && !checksum_right(core, in.tcp)) return Taken::No;
  keep_alive.heard(now);
  receiver.take_stamp(static_cast<uint64_t>(arrived.begin), stamp, now);
  const bool beyond = receiver.is_beyond(arrived);
  Receiver::NewText text;
  if (!(beyond ? receiver.inspect_beyond(arrived, now)
               : receiver.inspect_text(arrived, text, now))) {
    return Taken::Text;
  }
  // An old segment does not change the window (RFC 9293 s.3.10.7.4, fifth).
  if (tcb.snd_wl1 <= arrived.begin) (void)window_stays_open(core, sender, header);
  sender.take_beside_text(arrived.begin, now);
  if (beyond) {
    receiver.take_beyond(arrived, now);
    return Taken::Text;
  }
  receiver.take_text(arrived, text, now);
  if (receiver.predictable() && !core.life.over()) predict(core, sender, receiver);
  return Taken::Text;
}

}  // namespace rnic::tcp::fast_path
