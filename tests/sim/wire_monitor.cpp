#include "wire_monitor.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/endian.hpp"
#include "offload/offload.hpp"
#include "wire/tcp.hpp"
#include "wire/tcp_options.hpp"

namespace rnic::simulation {

namespace flag = wire::tcp_flag;

namespace {

constexpr uint8_t kEce = 0x40;

bool after(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) > 0; }

std::string name_of(const PortPair& ports) {
  return "connection " + std::to_string(ports.port[0]) + "-" + std::to_string(ports.port[1]);
}

}  // namespace

/// The fields of a TCP segment that matter here.
struct WireMonitor::Segment {
  uint16_t source = 0;
  uint16_t destination = 0;
  uint32_t sequence = 0;
  uint32_t acknowledgement = 0;
  uint8_t flags = 0;
  uint16_t window = 0;
  bool syn = false;
  bool ack = false;
  base::ByteView options;
  base::ByteView payload;

  static std::optional<Segment> parse(base::ByteView frame) {
    const auto at = offload::locate_tcp(frame);
    if (!at) return std::nullopt;
    const uint8_t* tcp = frame.data() + at->tcp;
    Segment s;
    s.source = base::load_be16(tcp);
    s.destination = base::load_be16(tcp + 2);
    s.sequence = base::load_be32(tcp + 4);
    s.acknowledgement = base::load_be32(tcp + 8);
    s.flags = tcp[13];
    s.window = base::load_be16(tcp + 14);
    s.syn = s.has(flag::kSyn);
    s.ack = s.has(flag::kAck);
    s.options = frame.subspan(at->tcp + 20, at->payload - at->tcp - 20);
    s.payload = frame.subspan(at->payload, at->payload_size());
    return s;
  }

  [[nodiscard]] bool has(uint8_t f) const { return (flags & f) != 0; }
  /// Nothing but an ACK, with ECN-Echo or without.
  [[nodiscard]] bool plain() const { return (flags & ~kEce) == flag::kAck && payload.empty(); }
  /// The sequence number behind it.
  [[nodiscard]] uint32_t end() const {
    return sequence + static_cast<uint32_t>(payload.size()) +
           (has(flag::kSyn | flag::kFin) ? 1u : 0u);
  }

  template <typename F>
  void for_each_sack(F&& f) const {
    for (size_t i = 0; i + 1 < options.size();) {
      if (options[i] == 0) return;
      if (options[i] == 1) {
        ++i;
        continue;
      }
      const size_t length = options[i + 1];
      if (length < 2 || i + length > options.size()) return;
      for (size_t block = i + 2; options[i] == 5 && block + 8 <= i + length; block += 8) {
        f(base::load_be32(&options[block]), base::load_be32(&options[block + 4]));
      }
      i += length;
    }
  }

  [[nodiscard]] PortPair ports_sent_by(uint32_t side) const {
    PortPair pair;
    pair.port[side] = source;
    pair.port[1 - side] = destination;
    return pair;
  }
};

WireMonitor::Connection& WireMonitor::connection(const PortPair& ports) {
  return connections_[ports];
}

void WireMonitor::synchronise(const PortPair& ports, Connection& c, uint32_t sender,
                              uint32_t sequence) {
  Half& half = c.half[sender];
  if (half.synchronised && half.first == sequence + 1) return;
  half = {};
  half.synchronised = true;
  half.first = half.next = sequence + 1;
  const uint32_t to = 1 - sender;
  half.reference = std::make_unique<ReferenceReceiver>(
      name_of(ports) + " towards device " + std::to_string(to), verdict_,
      [this, ports, to](const WireMessage& message) { deliver_(ports, to, message); });
  Half& opposite = c.half[to];
  if (opposite.reference != nullptr) {
    half.reference->pair_with(*opposite.reference);
    opposite.reference->pair_with(*half.reference);
  }
}

void WireMonitor::check_content(const PortPair& ports, Half& half, int64_t offset,
                                base::ByteView payload) {
  for (size_t i = 0; i < payload.size(); ++i) {
    const int64_t at = offset + static_cast<int64_t>(i);
    if (at < 0) continue;
    const auto index = static_cast<size_t>(at);
    if (index >= half.octets.size()) {
      half.octets.resize(index, 0);
      half.known.resize(index, false);
      half.octets.insert(half.octets.end(), payload.begin() + static_cast<ptrdiff_t>(i),
                         payload.end());
      half.known.resize(half.octets.size(), true);
      return;
    }
    if (half.known[index] && half.octets[index] != payload[i]) {
      verdict_.fail("retransmission", name_of(ports) + ": stream octet " + std::to_string(at) +
                                          " is sent again with another value");
      return;
    }
    half.octets[index] = payload[i];
    half.known[index] = true;
  }
}

void WireMonitor::check_acknowledgement(const PortPair& ports, Half& acknowledged,
                                        const Segment& segment) {
  if (!acknowledged.synchronised || !segment.ack) return;
  const auto offset = [&](uint32_t sequence) {
    return static_cast<int64_t>(static_cast<int32_t>(sequence - acknowledged.first));
  };
  const int64_t ack = offset(segment.acknowledgement);
  const auto sent = static_cast<int64_t>(acknowledged.octets.size());
  if (ack > sent + 1) {  // one for the FIN
    verdict_.fail("acknowledgement", name_of(ports) + ": acknowledges octet " +
                                         std::to_string(ack) + " of " + std::to_string(sent));
  }
  if (ack > 0) {
    auto it = acknowledged.sacked.upper_bound(static_cast<uint64_t>(ack));
    if (it != acknowledged.sacked.begin() && std::prev(it)->second > static_cast<uint64_t>(ack)) {
      verdict_.fail("renege", name_of(ports) + ": asks for stream octet " + std::to_string(ack) +
                                  ", which it has SACKed before");
    }
  }
  segment.for_each_sack([&](uint32_t first, uint32_t last) {
    const int64_t begin = offset(first);
    const int64_t end = offset(last);
    if (end > sent || begin >= end) {
      verdict_.fail("acknowledgement", name_of(ports) + ": SACKs octets that were never sent");
    }
    if (begin <= ack) return;  // a duplicate that is reported (RFC 2883)
    uint64_t& known_end = acknowledged.sacked[static_cast<uint64_t>(begin)];
    known_end = std::max(known_end, static_cast<uint64_t>(end));
  });
}

void WireMonitor::check_news(const PortPair& ports, Connection& c, uint32_t side,
                             const Segment& segment) {
  Half& half = c.half[side];
  wire::TcpOptions options;
  if (!options.parse(segment.options)) return;
  if (segment.syn) {
    half.sack = options.sack_permitted;
    half.scale = options.window_scale;
  }
  if (!half.synchronised || !c.half[1 - side].synchronised || segment.has(flag::kRst)) return;
  if (after(segment.end(), half.next)) half.next = segment.end();
  half.fin_sent |= segment.has(flag::kFin);
  if (!segment.ack) return;
  half.acked = segment.acknowledgement;
  const uint32_t edge = half.acked + c.window(side, segment.window, segment.syn);
  if (segment.syn || !half.edge || after(edge, *half.edge)) half.edge = edge;
  // What an ACK covers has been taken, whatever the wire tells.
  const uint32_t fin = half.got_fin ? 1 : 0;
  const auto covered = static_cast<int32_t>(half.acked - fin - c.half[1 - side].first);
  if (covered > 0) half.note_got(half.got_next, static_cast<uint32_t>(covered));
  // Behind both FINs a TIME-WAIT entry, or a listener, answers whatever comes.
  const bool over = half.fin_sent && c.half[1 - side].fin_sent;
  const bool pure = segment.plain() && segment.sequence == half.next && !over;
  if (!half.idle_acks.idle({segment.acknowledgement, segment.window, segment.flags, options}, pure,
                           c.sack_agreed())) {
    return;
  }
  verdict_.fail("idle ACK", name_of(ports) + ": device " + std::to_string(side) +
                                " acknowledges nothing new and answers nothing");
}

void WireMonitor::Half::note_got(uint32_t begin, uint32_t end) {
  if (begin >= end) return;
  if (end > got.size()) got.resize(end, 0);
  std::memset(&got[begin], 1, end - begin);
  if (got_next == got.size()) return;
  const void* hole = std::memchr(&got[got_next], 0, got.size() - got_next);
  got_next = hole != nullptr ? static_cast<uint32_t>(static_cast<const uint8_t*>(hole) - got.data())
                             : static_cast<uint32_t>(got.size());
}

bool WireMonitor::refused(const Connection& c, uint32_t side, const Segment& segment,
                          const wire::TcpOptions& options) {
  const Half& half = c.half[side];
  // RFC 7323 s.5.3, R1; RFC 5961 s.4.2.
  if (options.timestamps && half.ts_recent && after(*half.ts_recent, options.timestamps->value))
    return true;
  if (segment.syn || !half.heard_acks.acceptable(segment.acknowledgement, half.next)) return true;
  // Table 6: all that ends before what is expected, or begins at the window's edge; an ACK alone
  // may stand there.
  const uint32_t next = c.half[1 - side].first + half.order();
  const uint32_t edge = half.edge.value_or(next);
  const bool shut = !after(edge, next);
  const bool empty = segment.end() == segment.sequence;
  const bool old = empty ? after(next, segment.sequence) : !after(segment.end(), next);
  return old ||
         (!after(edge, segment.sequence) && !(empty && segment.sequence == (shut ? next : edge)));
}

void WireMonitor::note_question(Connection& c, uint32_t side, const Segment& segment) {
  Half& half = c.half[side];
  const Half& opposite = c.half[1 - side];
  if (!half.synchronised || !opposite.synchronised || segment.has(flag::kRst)) return;
  wire::TcpOptions options;
  if (!options.parse(segment.options)) return;
  const bool sack = c.sack_agreed();
  const bool told = refusals_(side) != 0;
  const bool refuses = refused(c, side, segment, options);
  const auto offset = static_cast<int32_t>(segment.sequence - opposite.first);
  if (!refuses && options.timestamps && !after(segment.sequence, half.acked))
    half.ts_recent = options.timestamps->value;
  if (!refuses && segment.ack && (segment.payload.empty() || !told)) {
    half.heard_acks.take(segment.sequence, segment.acknowledgement,
                         c.window(1 - side, segment.window, segment.syn));
  }
  // What a device has dropped is missing to it: the wire does not tell which segments are behind.
  if (told) {
    if (!segment.plain() || segment.sequence != half.acked || refuses)
      half.idle_acks.asked(Question::BehindHole, sack, segment.end());
    return;
  }
  if (refuses) return half.idle_acks.asked(Question::Refused, sack);
  if (segment.plain() || offset < 0) return;
  const uint32_t before = half.order();
  const auto end = static_cast<uint32_t>(offset) + static_cast<uint32_t>(segment.payload.size());
  half.note_got(static_cast<uint32_t>(offset), end);
  if (segment.has(flag::kFin)) half.got_fin = end;
  half.idle_acks.asked(half.order() != before ? Question::News : Question::BehindHole, sack,
                       segment.end());
}

void WireMonitor::frame_sent(uint32_t side, base::ByteView frame, base::Now now) {
  fingerprint_.sent(side, frame, now);
  const auto segment = Segment::parse(frame);
  if (!segment) return;
  const PortPair ports = segment->ports_sent_by(side);
  Connection& c = connection(ports);
  if (segment->syn) synchronise(ports, c, side, segment->sequence);
  Half& half = c.half[side];
  check_acknowledgement(ports, c.half[1 - side], *segment);
  check_news(ports, c, side, *segment);
  if (!half.synchronised || segment->payload.empty()) return;
  check_content(ports, half, static_cast<int32_t>(segment->sequence - half.first),
                segment->payload);
}

void WireMonitor::frame_received(uint32_t side, const port::Packet& packet, base::Now) {
  const base::ByteView frame = packet.view();
  const auto segment = Segment::parse(frame);
  if (!segment) return;
  if (packet.l4_checksum != port::Checksum::Good) {
    const auto ip = offload::locate_ip(frame);
    const auto tcp = offload::locate_tcp(frame);
    if (!offload::ip_checksum_good(frame, *ip) || !offload::tcp_checksum_good(frame, *tcp)) return;
  }
  const auto found = connections_.find(segment->ports_sent_by(1 - side));
  if (found == connections_.end()) return;
  note_question(found->second, side, *segment);
  Half& half = found->second.half[1 - side];
  if (!half.synchronised || segment->payload.empty()) return;
  const auto offset = static_cast<int32_t>(segment->sequence - half.first);
  if (offset < 0) return;
  const auto begin = static_cast<uint64_t>(offset);
  arrive_(found->first, side, {begin, begin + segment->payload.size()},
          damaged_in(half, begin, segment->payload));
  half.reference->segment(begin, segment->payload);
}

std::vector<uint64_t> WireMonitor::damaged_in(const Half& half, uint64_t offset,
                                              base::ByteView payload) const {
  std::vector<uint64_t> damaged;
  if (offset >= half.octets.size()) return damaged;
  const uint64_t known = std::min<uint64_t>(payload.size(), half.octets.size() - offset);
  if (std::memcmp(&half.octets[offset], payload.data(), known) == 0) return damaged;
  for (uint64_t i = 0; i < payload.size() && offset + i < half.octets.size(); ++i) {
    if (half.octets[offset + i] != payload[i]) damaged.push_back(offset + i);
  }
  return damaged;
}

/// RFC 5044 s.4.1, s.4.3, word by word.
bool WireMonitor::find_next_boundary(Half& half) const {
  const uint64_t start = *half.reference->full_operation();
  const bool markers = half.reference->has_markers();
  uint64_t at = half.boundaries.back();
  uint64_t header = 0;
  for (uint64_t content = 0, most = 4; content < most; at += 4) {
    if (at + 4 > half.octets.size()) return false;
    if (markers && (at - start) % 512 == 0) continue;
    if (header == 0) {
      header = at;
      most = (2 + uint64_t{base::load_be16(&half.octets[at])} + 3) / 4 * 4 + 4;
    }
    content += 4;
  }
  half.boundaries.push_back(at);
  return true;
}

std::optional<base::Range> WireMonitor::fpdu_at(const PortPair& ports, uint32_t sender,
                                                uint64_t offset) {
  const auto found = connections_.find(ports);
  if (found == connections_.end()) return std::nullopt;
  Half& half = found->second.half[sender];
  if (half.reference == nullptr || !half.reference->full_operation()) return std::nullopt;
  if (half.boundaries.empty()) half.boundaries.push_back(*half.reference->full_operation());
  while (half.boundaries.back() <= offset) {
    if (!find_next_boundary(half)) return std::nullopt;
  }
  const auto end = std::upper_bound(half.boundaries.begin(), half.boundaries.end(), offset);
  if (end == half.boundaries.begin()) return std::nullopt;
  return base::Range{*std::prev(end), *end};
}

std::string WireMonitor::describe() const {
  std::string out;
  for (const auto& [ports, c] : connections_) {
    for (uint32_t sender = 0; sender < 2; ++sender) {
      const Half& half = c.half[sender];
      if (!half.synchronised) continue;
      out += "  " + name_of(ports) + " from device " + std::to_string(sender) + ": " +
             std::to_string(half.octets.size()) + " stream octets sent, reference at " +
             std::to_string(half.reference->position()) + "\n";
    }
  }
  return out;
}

}  // namespace rnic::simulation
