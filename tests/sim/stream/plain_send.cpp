// The plain peer's send side.

#include <algorithm>
#include <array>

#include "memory.hpp"
#include "stream/plain_peer.hpp"

namespace rnic::simulation {

namespace flag = wire::tcp_flag;

namespace {

constexpr base::Duration kMostRto = std::chrono::seconds(5);
constexpr uint32_t kUrgentBit = wire::tcp_flag::kUrg;

}  // namespace

uint32_t PlainPeer::most_payload() const {
  const uint32_t options = (timestamps_ ? 12 : 0);
  return std::min<uint32_t>(their_mss_, plan_.mss) - options;
}

uint32_t PlainPeer::odd_size() {
  const uint32_t most = most_payload();
  switch (prng_.below(4)) {
    case 0: return static_cast<uint32_t>(prng_.between(1, 7));
    case 1: return static_cast<uint32_t>(prng_.between(1, most));
    default: return most;
  }
}

void PlainPeer::emit(uint64_t offset, base::ByteView payload, uint8_t flags, bool stale,
                     base::Now now) {
  std::array<uint8_t, 40> options{};
  wire::TcpOptionWriter writer(options.data());
  if (timestamps_) {
    writer.nop();
    writer.nop();
    writer.timestamps({clock(now) - (stale ? 1000 : 0), ts_recent_});
  }
  if (sack_ && payload.empty() && rcv_nxt_ < have_.size()) {
    std::array<wire::SackBlock, 4> blocks{};
    uint32_t count = 0;
    const auto number = [&](uint64_t o) {
      return base::Seq32(irs_ + 1 + static_cast<uint32_t>(o));
    };
    const auto add = [&](uint64_t o) {
      uint64_t left = o;
      uint64_t right = o;
      while (left > rcv_nxt_ && have_[left - 1]) --left;
      while (right < have_.size() && have_[right]) ++right;
      for (uint32_t i = 0; i < count; ++i) {
        if (blocks[i].left == number(left)) return;
      }
      blocks[count++] = {number(left), number(right)};
    };
    // The block with the newest segment, then the lowest ones.
    if (newest_ > rcv_nxt_ && have_[newest_]) add(newest_);
    for (uint64_t o = rcv_nxt_; o < have_.size() && count < 3; ++o) {
      if (have_[o] && !have_[o - 1]) add(o);
    }
    if (count != 0) writer.sack(blocks.data(), count);
  }
  const uint32_t length = writer.finish();
  Datagram d{local_.address, remote_.address, {}, 0};
  d.tcp.resize(wire::kTcpHeaderMin + length + payload.size());
  const uint64_t window = (window_edge() - rcv_nxt_) >> (scale_ ? plan_.scale_shift : 0);
  wire::write_tcp(d.tcp.data(),
                  {.source_port = local_.port,
                   .destination_port = remote_.port,
                   .sequence = base::Seq32(iss_ + 1 + static_cast<uint32_t>(offset)),
                   .acknowledgment = base::Seq32(irs_ + 1 + static_cast<uint32_t>(rcv_nxt_) +
                                                 (fin_received_ ? 1u : 0u)),
                   .flags = flags,
                   .window = static_cast<uint16_t>(window),
                   .header_length = wire::kTcpHeaderMin + length});
  if ((flags & kUrgentBit) != 0) {
    base::store_be16(&d.tcp[wire::kTcpUrgentPointerAt], static_cast<uint16_t>(prng_.below(65'536)));
  }
  std::copy(options.begin(), options.begin() + length, d.tcp.begin() + wire::kTcpHeaderMin);
  std::copy(payload.begin(), payload.end(), d.tcp.begin() + wire::kTcpHeaderMin + length);
  complete_checksum(d);
  ack_now_ = false;
  ack_at_ = base::kNever;
  unacked_segments_ = 0;
  send_(std::move(d), now);
}

void PlainPeer::send_syn(base::Now now) {
  const bool answer = phase_ == Phase::SynReceived;
  std::array<uint8_t, 40> options{};
  wire::TcpOptionWriter writer(options.data());
  writer.mss(plan_.mss);
  if (answer ? sack_ : plan_.sack) writer.sack_permitted();
  if (answer ? timestamps_ : plan_.timestamps) {
    writer.timestamps({clock(now), answer ? ts_recent_ : 0});
  }
  if (answer ? scale_ : plan_.scale) writer.window_scale(plan_.scale_shift);
  const uint32_t length = writer.finish();
  Datagram d{local_.address, remote_.address, {}, 0};
  d.tcp.resize(wire::kTcpHeaderMin + length);
  wire::write_tcp(d.tcp.data(),
                  {.source_port = local_.port,
                   .destination_port = remote_.port,
                   .sequence = base::Seq32(iss_),
                   .acknowledgment = base::Seq32(answer ? irs_ + 1 : 0),
                   .flags = static_cast<uint8_t>(flag::kSyn | (answer ? flag::kAck : 0)),
                   .window = static_cast<uint16_t>(std::min<uint32_t>(plan_.buffer, 0xffff)),
                   .header_length = wire::kTcpHeaderMin + length});
  std::copy(options.begin(), options.begin() + length, d.tcp.begin() + wire::kTcpHeaderMin);
  complete_checksum(d);
  rto_at_ = now + rto_;
  rto_ = std::min(rto_ * 2, kMostRto);
  send_(std::move(d), now);
}

void PlainPeer::send_ack(base::Now now) {
  const uint64_t next = snd_max_ + (fin_sent_ ? 1 : 0);
  emit(next, {}, flag::kAck, false, now);
}

void PlainPeer::send_range(uint64_t begin, uint64_t end, bool stale, base::Now now) {
  std::vector<uint8_t> octets(end - begin);
  fill_pattern(octets, content_.send_key, begin);
  // Committed octets come with another content: the first commit must win.
  if (!stale && prng_.chance(0.5)) {
    for (uint64_t o = begin; o < end; ++o) {
      if (committed_[o]) octets[o - begin] ^= 0x5a;
    }
  }
  uint8_t flags = flag::kAck;
  if (prng_.chance(0.3)) flags |= flag::kPsh;
  if (prng_.chance(plan_.urgent)) flags |= flag::kUrg;
  snd_max_ = std::max(snd_max_, end);
  if (rto_at_ == base::kNever) rto_at_ = now + rto_;
  emit(begin, octets, flags, stale, now);
}

bool PlainPeer::send_over_committed(base::Now now) {
  if (snd_max_ == 0) return false;
  const uint64_t low = snd_una_ > 3000 ? snd_una_ - 3000 : 0;
  const uint64_t begin = prng_.between(low, snd_max_ - 1);
  const uint64_t end =
      std::min({begin + odd_size(), content_.send_octets, std::max(edge_, snd_max_)});
  if (begin >= end) return false;
  send_range(begin, end, false, now);
  return true;
}

bool PlainPeer::send_duplicate(base::Now now) {
  if (snd_una_ == 0) return false;
  const uint64_t begin = prng_.below(snd_una_);
  send_range(begin, std::min(begin + odd_size(), snd_una_), prng_.chance(0.5), now);
  return true;
}

bool PlainPeer::send_new(base::Now now) {
  const uint64_t limit = std::min({edge_, snd_una_ + plan_.flight_limit, content_.send_octets});
  if (snd_max_ >= limit) {
    if (!prng_.chance(plan_.beyond) || snd_max_ >= content_.send_octets) return false;
    // Beyond the window: the stack must take nothing of it, and answer.
    const uint64_t end = std::min<uint64_t>(snd_max_ + odd_size(), content_.send_octets);
    std::vector<uint8_t> octets(end - snd_max_);
    fill_pattern(octets, content_.send_key, snd_max_);
    const uint64_t begin = snd_max_;
    snd_max_ = end;  // it may have room by the time it arrives
    if (rto_at_ == base::kNever) rto_at_ = now + rto_;
    emit(begin, octets, flag::kAck, false, now);
    return true;
  }
  const uint64_t begin = snd_max_;
  const uint64_t end = std::min<uint64_t>(begin + odd_size(), limit);
  if (prng_.chance(plan_.hole)) {
    snd_max_ = end;
    if (rto_at_ == base::kNever) rto_at_ = now + rto_;
    return true;
  }
  send_range(begin, end, false, now);
  return true;
}

bool PlainPeer::send_fill(base::Now now) {
  uint64_t begin = snd_una_;
  while (begin < snd_max_ && committed_[begin]) ++begin;
  if (begin >= snd_max_) return false;
  send_range(begin, std::min<uint64_t>(begin + odd_size(), snd_max_), false, now);
  return true;
}

void PlainPeer::send_fin(base::Now now) {
  fin_sent_ = true;
  if (rto_at_ == base::kNever) rto_at_ = now + rto_;
  emit(content_.send_octets, {}, flag::kAck | flag::kFin, false, now);
}

bool PlainPeer::repeat(base::Now now) {
  if (repetitions_left_ == 0) return false;
  const bool repeated = (prng_.chance(plan_.overlap) && send_over_committed(now)) ||
                        (prng_.chance(plan_.duplicate) && send_duplicate(now));
  if (repeated) --repetitions_left_;
  return repeated;
}

bool PlainPeer::send_something(base::Now now) {
  if (repeat(now)) return true;
  if (plan_.hole > 0 && prng_.chance(0.2) && send_fill(now)) return true;
  if (send_new(now)) return true;
  if (snd_max_ == content_.send_octets && !fin_sent_ &&
      (!application_.close_after_peer || fin_received_)) {
    send_fin(now);
    return true;
  }
  return false;
}

void PlainPeer::retransmit(base::Now now) {
  rto_ = std::min(rto_ * 2, kMostRto);
  rto_at_ = base::kNever;
  if (snd_una_ < snd_max_) {
    rto_at_ = now + rto_;
    send_range(snd_una_, std::min<uint64_t>(snd_una_ + odd_size(), snd_max_), false, now);
  } else if (fin_sent_ && !fin_acked_) {
    rto_at_ = now + rto_;
    emit(content_.send_octets, {}, flag::kAck | flag::kFin, false, now);
  } else if (snd_max_ < content_.send_octets && edge_ <= snd_max_) {
    // RFC 9293 s.3.8.6.1: one octet beyond a closed window.
    rto_at_ = now + rto_;
    send_range(snd_max_, snd_max_ + 1, false, now);
  }
}

void PlainPeer::transmit(base::Now now) {
  if (rto_at_ <= now) {
    retransmit(now);
    // Nothing but the timer moves a hole that duplicates did not fill: the rest follows at once.
    for (uint32_t i = 0; i < 8 && send_fill(now); ++i) {
    }
  }
  if (next_send_ > now || done()) return;
  bool sent = false;
  for (uint32_t i = 0; i < 4 && send_something(now); ++i) sent = true;
  if (snd_max_ < content_.send_octets && edge_ <= snd_max_ && rto_at_ == base::kNever) {
    rto_at_ = now + rto_;
  }
  // Nothing to do but to wait for the other side: its next segment brings the turn.
  const auto pace = static_cast<uint64_t>(plan_.pace.count());
  next_send_ = sent ? now + base::Duration(1000 + static_cast<int64_t>(prng_.below(pace + 1)))
                    : now + std::chrono::milliseconds(20);
}

}  // namespace rnic::simulation
