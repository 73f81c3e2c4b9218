#include "stream/path.hpp"

#include <algorithm>

namespace rnic::simulation {

namespace flag = wire::tcp_flag;

namespace {

constexpr uint32_t kJoinedMax = 16'384;  // octets of a segment that the middlebox makes
constexpr base::Duration kLongestBurst = std::chrono::seconds(2);

bool plain_data(const Datagram& d) {
  return d.payload() != 0 && !d.has(flag::kSyn | flag::kRst | flag::kFin | flag::kUrg);
}

}  // namespace

void Path::send(Datagram&& d, base::Now now) {
  ++counters_.packets;
  if (held_ && !join(d)) release_held(now);
  if (held_) {
    if (held_->tcp.size() > kJoinedMax || !prng_.chance(plan_.merge)) release_held(now);
    return;
  }
  if (plain_data(d) && prng_.chance(plan_.merge)) {
    held_until_ = now + base::Duration(static_cast<int64_t>(
                            prng_.below(static_cast<uint64_t>(plan_.merge_hold.count()) + 1)));
    held_ = std::move(d);
    return;
  }
  cut(std::move(d), now);
}

bool Path::join(const Datagram& d) {
  Datagram& h = *held_;
  if (!plain_data(d) || d.source != h.source || d.destination != h.destination ||
      d.header() != h.header() || d.traffic_class != h.traffic_class ||
      d.sequence() != h.sequence() + h.payload() ||
      !std::equal(d.tcp.begin(), d.tcp.begin() + wire::kTcpSequenceAt, h.tcp.begin()) ||
      h.tcp.size() + d.payload() > kJoinedMax) {
    return false;
  }
  // The later header says more; the sequence number is the earlier one's.
  const std::vector<uint8_t> payload(d.tcp.begin() + d.header(), d.tcp.end());
  const uint32_t sequence = h.sequence();
  const uint8_t flags = h.flags() | d.flags();
  std::copy(d.tcp.begin(), d.tcp.begin() + d.header(), h.tcp.begin());
  base::store_be32(&h.tcp[wire::kTcpSequenceAt], sequence);
  h.tcp[wire::kTcpFlagsAt] = flags;
  h.tcp.insert(h.tcp.end(), payload.begin(), payload.end());
  complete_checksum(h);
  ++counters_.joined;
  return true;
}

void Path::release_held(base::Now now) {
  Datagram d = std::move(*held_);
  held_.reset();
  // What a middlebox has joined leaves in packets of the path's size again.
  const uint32_t room = std::min(mtu_, 1500u) - (d.source.is_v4() ? 20 : 40) - d.header();
  while (d.payload() > room) {
    Datagram head = d;
    head.tcp.resize(d.header() + room);
    head.tcp[wire::kTcpFlagsAt] &= static_cast<uint8_t>(~flag::kPsh);
    complete_checksum(head);
    d.tcp.erase(d.tcp.begin() + d.header(), d.tcp.begin() + d.header() + room);
    base::store_be32(&d.tcp[wire::kTcpSequenceAt], d.sequence() + room);
    complete_checksum(d);
    cut(std::move(head), now);
  }
  cut(std::move(d), now);
}

void Path::cut(Datagram&& d, base::Now now) {
  while (d.payload() > 1 && !d.has(flag::kSyn | flag::kRst | flag::kUrg) &&
         prng_.chance(plan_.split)) {
    ++counters_.cut;
    const auto at = static_cast<uint32_t>(prng_.between(1, d.payload() - 1));
    Datagram head = d;
    head.tcp.resize(d.header() + at);
    head.tcp[wire::kTcpFlagsAt] &= static_cast<uint8_t>(~(flag::kPsh | flag::kFin));
    complete_checksum(head);
    d.tcp.erase(d.tcp.begin() + d.header(), d.tcp.begin() + d.header() + at);
    base::store_be32(&d.tcp[wire::kTcpSequenceAt], d.sequence() + at);
    complete_checksum(d);
    weather(std::move(head), now);
  }
  weather(std::move(d), now);
}

void Path::damage(Datagram& d) {
  ++counters_.corrupted;
  do {
    const uint64_t bit = prng_.below(d.tcp.size() * 8);
    d.tcp[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
  } while (prng_.chance(0.3) || checksum_right(d));
}

bool Path::opens_window(const Datagram& d) {
  if (d.has(flag::kSyn | flag::kRst)) return false;
  bool& closed = closed_[base::load_be32(d.tcp.data())];
  const bool was_closed = closed;
  closed = base::load_be16(&d.tcp[wire::kTcpWindowAt]) == 0;
  return was_closed && !closed && d.payload() == 0;
}

void Path::weather(Datagram&& d, base::Now now) {
  if (d.ip_length() > mtu_) {
    ++counters_.too_big;
    if (too_big_) too_big_(d, mtu_, now);
    return;
  }
  if (!in_burst_) {
    in_burst_ = prng_.chance(plan_.burst_enter);
    burst_ends_ = now + kLongestBurst;
  } else if (now > burst_ends_ || prng_.chance(plan_.burst_leave)) {
    in_burst_ = false;
  }
  const bool opening = plan_.lose_opening != 0 && opens_window(d);
  if (in_burst_ || prng_.chance(plan_.drop) || (opening && prng_.chance(plan_.lose_opening))) {
    ++counters_.dropped;
    return;
  }
  if (prng_.chance(plan_.duplicate)) {
    ++counters_.duplicated;
    Datagram copy = d;
    queue(std::move(copy), now);
  }
  if (prng_.chance(plan_.corrupt)) damage(d);
  queue(std::move(d), now);
}

void Path::queue(Datagram&& d, base::Now now) {
  base::Now leaves = now;
  if (plan_.bits_per_second != 0) {
    const auto wire = base::Duration(static_cast<int64_t>(uint64_t{d.ip_length() + 38} * 8 *
                                                          1'000'000'000 / plan_.bits_per_second));
    const base::Duration waiting = wire_free_ > now ? wire_free_ - now : base::Duration(0);
    const auto queued = static_cast<uint64_t>(waiting / std::max(wire, base::Duration(1)));
    if (queued > plan_.queue_packets) {
      ++counters_.dropped;
      return;
    }
    if (plan_.mark_packets != 0 && queued >= plan_.mark_packets && (d.traffic_class & 3) != 0) {
      d.traffic_class |= 3;
      ++counters_.marked;
    }
    wire_free_ = std::max(wire_free_, now) + wire;
    leaves = wire_free_;
  }
  if ((d.traffic_class & 3) != 0 && prng_.chance(plan_.mark)) {
    d.traffic_class |= 3;
    ++counters_.marked;
  }
  const auto up_to = [&](base::Duration most) {
    return base::Duration(
        static_cast<int64_t>(prng_.below(static_cast<uint64_t>(most.count()) + 1)));
  };
  base::Now arrival = leaves + plan_.delay + up_to(plan_.jitter);
  if (!plan_.jitter_reorders) last_arrival_ = arrival = std::max(arrival, last_arrival_);
  if (prng_.chance(plan_.reorder)) {
    ++counters_.reordered;
    arrival += up_to(plan_.reorder_span);
  }
  flights_.emplace(arrival, std::move(d));
}

void Path::run(base::Now now) {
  if (held_ && held_until_ <= now) release_held(now);
  while (!flights_.empty() && flights_.begin()->first <= now) {
    Datagram d = std::move(flights_.begin()->second);
    flights_.erase(flights_.begin());
    deliver_(std::move(d), now);
  }
}

base::Now Path::next_deadline() const {
  base::Now next = held_ ? held_until_ : base::kNever;
  if (!flights_.empty()) next = base::earlier(next, flights_.begin()->first);
  return next;
}

}  // namespace rnic::simulation
