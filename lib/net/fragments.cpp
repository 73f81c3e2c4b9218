#include "net/fragments.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "wire/ipv4.hpp"

namespace rnic::net {

namespace {

constexpr uint8_t kNotEct = 0;
constexpr uint8_t kCe = 3;

constexpr uint32_t kLeastMtu4 = 68;    // RFC 791
constexpr uint32_t kLeastMtu6 = 1280;  // RFC 8200 s.5

uint32_t datagrams_of(const Config& config) {
  if (config.fragments == FragmentPolicy::Drop) return 0;
  const bool one = config.fragments == FragmentPolicy::One;
  return one ? std::min(1u, config.reassembly_datagrams) : config.reassembly_datagrams;
}

uint64_t octets_of(const Config& config) {
  if (config.fragments == FragmentPolicy::Mtu) return config.mtu;
  if (config.fragments == FragmentPolicy::Spanning) return config.reassembly_octets;
  return uint64_t{config.reassembly_datagrams} * Reassembler::kMaxOctets;
}

}  // namespace

std::optional<uint8_t> join_ecn(uint8_t seen, uint8_t first) {
  const bool marked = (seen >> kCe & 1) != 0;
  const bool not_capable = (seen >> kNotEct & 1) != 0;
  if (marked && not_capable) return std::nullopt;
  if (marked) return kCe;
  return not_capable ? kNotEct : first;
}

Fragments::Fragments(const Config& config, Reassembler* reassembler, Counters& counters)
    : timeout_(config.reassembly_timeout),
      reports_(config.fragments == FragmentPolicy::Drop || config.fragments == FragmentPolicy::Mtu),
      // RFC 5044 s.A.5.1: "Possibly the same size as the local link's MTU", which includes the IPv4
      // header.
      datagram_octets_(config.fragments == FragmentPolicy::Mtu ? config.mtu - wire::kIpv4Header
                                                               : Reassembler::kMaxOctets),
      octets_max_(octets_of(config)),
      reassembler_(reassembler),
      counters_(counters),
      datagrams_(reassembler == nullptr ? 0 : datagrams_of(config)) {}

Fragments::~Fragments() {
  for (Datagram& datagram : datagrams_) {
    if (datagram.taken && !datagram.dead && datagram.count != 0) {
      reassembler_->forget(datagram.number, base::Now{});
    }
  }
}

std::optional<Reassembled> Fragments::add(const Fragment& fragment, base::Now now) {
  ++counters_.ip_fragments;
  refused_.reset();
  const auto length = static_cast<uint32_t>(fragment.octets.size());
  const Range range{fragment.offset, fragment.offset + length};
  if (datagrams_.empty() || length == 0 || range.end > Reassembler::kMaxOctets ||
      (fragment.more && length % 8 != 0)) {
    ++counters_.ip_fragments_dropped;
    if (datagrams_.empty() && reports_ && fragment.offset == 0) {
      ++counters_.ip_reassembly_refused;
      report_refused(fragment.source, fragment.destination,
                     static_cast<uint32_t>(fragment.packet.size()), fragment.packet);
    }
    return std::nullopt;
  }
  Datagram& datagram = find_or_make(fragment, now);
  const Verdict verdict =
      datagram.dead ? Verdict::Duplicate : judge(datagram, range, fragment.more);
  if (verdict != Verdict::Fits) {
    ++counters_.ip_fragments_dropped;
    if (verdict == Verdict::Conflict) kill(datagram, now);
    if (datagram.unreported && fragment.offset == 0) {
      datagram.unreported = false;
      report_refused(fragment.source, fragment.destination,
                     static_cast<uint32_t>(fragment.packet.size()), fragment.packet);
    }
    return std::nullopt;
  }
  const bool room = make_room(datagram, range, now);
  record(datagram, fragment, range);
  if (!room) {
    --datagram.count;  // the reassembler does not have this fragment
    datagram.octets -= length;
    ++counters_.ip_fragments_dropped;
    refuse(datagram, now);
    return std::nullopt;
  }
  octets_ += length;
  return keep(datagram, fragment, now);
}

std::optional<Reassembled> Fragments::keep(Datagram& datagram, const Fragment& fragment,
                                           base::Now now) {
  const Reassembler::Result result =
      reassembler_->add(datagram.number, fragment.offset, fragment.more, fragment.octets, now);
  if (result.outcome == Reassembler::Outcome::Kept) return std::nullopt;
  if (result.outcome == Reassembler::Outcome::Refused) {
    datagram.count = 0;
    kill(datagram, now);
    return std::nullopt;
  }
  octets_ -= datagram.octets;
  datagram.octets = 0;
  const Reassembled whole{datagram.protocol, datagram.ecn_first, result.payload};
  const std::optional<uint8_t> ecn = join_ecn(datagram.ecn_seen, datagram.ecn_first);
  release(datagram);
  if (!ecn) {
    ++counters_.ip_reassembly_failed;
    return std::nullopt;
  }
  ++counters_.ip_reassembled;
  return Reassembled{whole.protocol, *ecn, whole.payload};
}

Fragments::Datagram& Fragments::find_or_make(const Fragment& fragment, base::Now now) {
  // RFC 8200 s.4.5: the next header of an IPv6 datagram is that of its first fragment, so it is no
  // part of the key.
  const uint8_t key_protocol = fragment.source.is_v4() ? fragment.protocol : uint8_t{0};
  Datagram* free_place = nullptr;
  Datagram* oldest = &datagrams_[0];
  for (Datagram& d : datagrams_) {
    if (!d.taken) {
      free_place = &d;
    } else if (d.id == fragment.id && d.source == fragment.source &&
               d.destination == fragment.destination && d.key_protocol == key_protocol) {
      return d;
    } else if (static_cast<int32_t>(d.number - oldest->number) < 0) {
      oldest = &d;
    }
  }
  if (free_place == nullptr) {
    ++counters_.ip_reassembly_full;
    if (!oldest->dead) kill(*oldest, now);
    free_place = oldest;
  }
  *free_place = Datagram{};
  free_place->taken = true;
  free_place->number = next_number_++;
  free_place->source = fragment.source;
  free_place->destination = fragment.destination;
  free_place->id = fragment.id;
  free_place->key_protocol = key_protocol;
  // The time of a datagram begins with the first fragment to arrive (RFC 8200 s.4.5).
  free_place->deadline = now + timeout_;
  next_deadline_ = base::earlier(next_deadline_, free_place->deadline);
  return *free_place;
}

Fragments::Verdict Fragments::judge(const Datagram& datagram, const Range& range, bool more) {
  for (uint32_t i = 0; i < datagram.count; ++i) {
    const Range& known = datagram.ranges[i];
    if (known.first == range.first && known.end == range.end) {
      const bool known_last = known.end == datagram.end;
      return known_last == !more ? Verdict::Duplicate : Verdict::Conflict;
    }
    if (range.first < known.end && known.first < range.end) return Verdict::Conflict;
    if (!more && known.end > range.end) return Verdict::Conflict;
  }
  if (datagram.end != 0 && (!more || range.end > datagram.end)) return Verdict::Conflict;
  return datagram.count < Reassembler::kMaxFragments ? Verdict::Fits : Verdict::Conflict;
}

void Fragments::record(Datagram& datagram, const Fragment& fragment, const Range& range) {
  datagram.ranges[datagram.count++] = range;
  datagram.octets += range.end - range.first;
  datagram.ecn_seen = static_cast<uint8_t>(datagram.ecn_seen | 1 << fragment.ecn);
  if (!fragment.more) datagram.end = range.end;
  if (fragment.offset != 0) return;
  datagram.protocol = fragment.protocol;
  datagram.ecn_first = fragment.ecn;
  datagram.first_size = static_cast<uint32_t>(fragment.packet.size());
  datagram.quoted = static_cast<uint32_t>(std::min<size_t>(fragment.packet.size(), kQuote));
  std::memcpy(datagram.quote.data(), fragment.packet.data(), datagram.quoted);
}

bool Fragments::make_room(const Datagram& datagram, const Range& range, base::Now now) {
  const uint32_t length = range.end - range.first;
  if (range.end > datagram_octets_ || datagram.octets + length > octets_max_) return false;
  while (octets_ + length > octets_max_) {
    Datagram* oldest = nullptr;
    for (Datagram& d : datagrams_) {
      if (!d.taken || d.dead || &d == &datagram || d.octets == 0) continue;
      if (oldest == nullptr || static_cast<int32_t>(d.number - oldest->number) < 0) oldest = &d;
    }
    RNIC_CHECK(oldest != nullptr);  // the datagram's own octets fit, so others have some
    refuse(*oldest, now);
  }
  return true;
}

void Fragments::refuse(Datagram& datagram, base::Now now) {
  ++counters_.ip_reassembly_refused;
  forget(datagram, now);
  datagram.dead = true;
  if (!reports_) return;
  datagram.unreported = datagram.quoted == 0;
  if (datagram.quoted == 0) return;
  report_refused(datagram.source, datagram.destination, datagram.first_size,
                 {datagram.quote.data(), datagram.quoted});
}

void Fragments::report_refused(const IpAddress& source, const IpAddress& destination, uint32_t size,
                               base::ByteView quote) {
  const uint32_t least = source.is_v4() ? kLeastMtu4 : kLeastMtu6;
  refused_ = RefusedDatagram{source, destination, std::max(size, least), quote};
}

void Fragments::kill(Datagram& datagram, base::Now now) {
  forget(datagram, now);
  datagram.dead = true;
  ++counters_.ip_reassembly_failed;
}

void Fragments::forget(Datagram& datagram, base::Now now) {
  if (datagram.count != 0 && !datagram.dead) reassembler_->forget(datagram.number, now);
  octets_ -= datagram.octets;
  datagram.octets = 0;
}

void Fragments::release(Datagram& datagram) {
  datagram.taken = false;
  update_deadline();
}

void Fragments::update_deadline() {
  next_deadline_ = base::kNever;
  for (const Datagram& d : datagrams_) {
    if (d.taken) next_deadline_ = base::earlier(next_deadline_, d.deadline);
  }
}

void Fragments::validate() const {
  uint64_t octets = 0;
  for (const Datagram& d : datagrams_) {
    if (!d.taken) continue;
    uint64_t of_ranges = 0;
    for (uint32_t i = 0; i < d.count; ++i) of_ranges += d.ranges[i].end - d.ranges[i].first;
    RNIC_CHECK(d.octets == (d.dead ? 0 : of_ranges));
    RNIC_CHECK(d.count <= Reassembler::kMaxFragments && d.quoted <= kQuote);
    RNIC_CHECK(next_deadline_ <= d.deadline);
    octets += d.octets;
  }
  RNIC_CHECK(octets == octets_ && octets_ <= octets_max_);
}

bool Fragments::expire_one(base::Now now, ExpiredDatagram& expired) {
  if (now < next_deadline_) return false;
  for (Datagram& d : datagrams_) {
    if (!d.taken || now < d.deadline) continue;
    expired = {d.source, d.destination, {}};
    if (!d.dead) {
      ++counters_.ip_reassembly_timeouts;
      forget(d, now);
      expired.quote = {d.quote.data(), d.quoted};
    }
    release(d);
    return true;
  }
  update_deadline();  // the deadline was that of a datagram whose place was given to another one
  return false;
}

}  // namespace rnic::net
