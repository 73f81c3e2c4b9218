#include "net/neighbours.hpp"

#include <algorithm>
#include <bit>

#include "base/check.hpp"

namespace rnic::net {

Neighbours::Neighbours(const Config& config, NeighbourUser& user, Counters& counters, base::Now now)
    : config_(config),
      user_(user),
      counters_(counters),
      requests_(kRequestsPerSecond, now),
      entries_(std::max(config.neighbours, 1u)),
      heads_(std::bit_ceil(entries_.size() * 2), kNone) {}

Neighbours::~Neighbours() {
  for (Entry& entry : entries_) {
    if (entry.state != State::Free) remove(entry);
  }
}

uint32_t& Neighbours::chain(const llp::IpAddress& ip) {
  const uint64_t hash = (ip.high() ^ ip.low()) * 0x9e3779b97f4a7c15ull;
  return heads_[(hash >> 40) & (heads_.size() - 1)];
}

Neighbours::Entry* Neighbours::lookup(const llp::IpAddress& ip) {
  for (uint32_t i = chain(ip); i != kNone; i = entries_[i].next) {
    if (entries_[i].ip == ip) return &entries_[i];
  }
  return nullptr;
}

const port::MacAddress* Neighbours::find(const llp::IpAddress& ip) {
  Entry* entry = lookup(ip);
  if (entry == nullptr || entry->state == State::Incomplete) return nullptr;
  entry->used = true;
  return &entry->mac;
}

void Neighbours::park(const llp::IpAddress& ip, port::Packet& frame, base::Now now) {
  Entry* entry = lookup(ip);
  if (entry == nullptr) {
    entry = make(ip, true, now);
    RNIC_CHECK(entry != nullptr);
    entry->used = true;
    ask(*entry, now);
  }
  RNIC_CHECK(entry->state == State::Incomplete);
  if (entry->parked_count == kParked) {
    user_.drop_parked(entry->parked[entry->parked_first]);
    entry->parked_first = (entry->parked_first + 1) % kParked;
    --entry->parked_count;
  }
  entry->parked[(entry->parked_first + entry->parked_count) % kParked] = frame;
  ++entry->parked_count;
}

void Neighbours::on_answer(const llp::IpAddress& ip, const std::optional<port::MacAddress>& mac,
                           bool overrides, base::Now now) {
  Entry* entry = lookup(ip);
  if (entry == nullptr || entry->state == State::Reachable) return;
  // RFC 4861 s.7.2.5: without an address there is nothing to complete an entry with.
  const bool incomplete = entry->state == State::Incomplete;
  if (!mac && incomplete) return;
  if (mac && !incomplete && !overrides && *mac != entry->mac) return;
  confirm(*entry, mac.value_or(entry->mac), now);
}

void Neighbours::on_request(const llp::IpAddress& ip, const port::MacAddress& mac, base::Now now) {
  Entry* entry = lookup(ip);
  if (entry == nullptr) {
    entry = make(ip, false, now);
    if (entry != nullptr) confirm(*entry, mac, now);
    return;
  }
  if (entry->state == State::Incomplete || entry->mac == mac) {
    confirm(*entry, mac, now);
  } else {
    doubt(*entry, now);
  }
}

void Neighbours::on_claim(const llp::IpAddress& ip, const port::MacAddress& mac, base::Now now) {
  Entry* entry = lookup(ip);
  if (entry == nullptr) return;
  if (entry->state == State::Incomplete) {
    confirm(*entry, mac, now);
  } else if (entry->mac != mac) {
    doubt(*entry, now);
  }
}

// Anybody can write in another's name: ask before believing a new address.
void Neighbours::doubt(Entry& entry, base::Now now) {
  if (entry.state != State::Reachable) return;
  entry.state = State::Probing;
  entry.requests = 0;
  ask(entry, now);
}

Neighbours::Entry* Neighbours::make(const llp::IpAddress& ip, bool may_replace_used,
                                    base::Now now) {
  Entry* entry = take_place(may_replace_used);
  if (entry == nullptr) return nullptr;
  entry->ip = ip;
  entry->state = State::Incomplete;
  entry->used = false;
  entry->requests = 0;
  entry->since = now;
  entry->parked_count = 0;
  uint32_t& head = chain(ip);
  entry->next = head;
  head = static_cast<uint32_t>(entry - entries_.data());
  ++size_;
  return entry;
}

// A free place, or that of the oldest entry; entries that nobody here talks to go first.
Neighbours::Entry* Neighbours::take_place(bool may_replace_used) {
  Entry* oldest = nullptr;
  if (size_ < entries_.size()) {
    for (Entry& entry : entries_) {
      if (entry.state == State::Free) return &entry;
    }
  }
  ++counters_.neighbours_full;
  for (Entry& entry : entries_) {
    if (entry.used && !may_replace_used) continue;
    if (oldest == nullptr || (oldest->used && !entry.used) ||
        (oldest->used == entry.used && entry.since < oldest->since)) {
      oldest = &entry;
    }
  }
  if (oldest != nullptr) remove(*oldest);
  return oldest;
}

void Neighbours::remove(Entry& entry) {
  for (; entry.parked_count != 0; --entry.parked_count) {
    user_.drop_parked(entry.parked[entry.parked_first]);
    entry.parked_first = (entry.parked_first + 1) % kParked;
  }
  const auto index = static_cast<uint32_t>(&entry - entries_.data());
  uint32_t* link = &chain(entry.ip);
  while (*link != index) link = &entries_[*link].next;
  *link = entry.next;
  entry.state = State::Free;
  entry.deadline = base::kNever;
  --size_;
  ++generation_;
}

void Neighbours::confirm(Entry& entry, const port::MacAddress& mac, base::Now now) {
  entry.mac = mac;
  entry.state = State::Reachable;
  entry.used = entry.parked_count != 0;
  entry.requests = 0;
  entry.since = now;
  ++generation_;
  set_deadline(entry, now + (entry.ip.is_v4() ? config_.arp_lifetime : config_.nd_lifetime));
  while (entry.parked_count != 0) {
    port::Packet frame = entry.parked[entry.parked_first];
    entry.parked_first = (entry.parked_first + 1) % kParked;
    --entry.parked_count;
    user_.unpark(frame, entry.mac, now);
  }
}

// RFC 1122 s.2.3.2.1, RFC 4861 s.7.2.2: not more than one request a second and destination
// (neighbour_retry).
void Neighbours::ask(Entry& entry, base::Now now) {
  ++entry.requests;
  set_deadline(entry, now + config_.neighbour_retry);
  if (!requests_.allow(now)) return;
  // The known address is asked first; when it is silent, everybody is (RFC 1122 s.2.3.2.1, unicast
  // poll).
  const bool unicast =
      entry.state == State::Probing && entry.requests == 1 && config_.neighbour_retries > 1;
  user_.solicit(entry.ip, unicast ? &entry.mac : nullptr, now);
}

void Neighbours::expire(Entry& entry, base::Now now) {
  if (entry.state == State::Reachable) {
    if (!entry.used) return remove(entry);
    entry.state = State::Probing;
    entry.requests = 0;
    return ask(entry, now);
  }
  if (entry.requests >= config_.neighbour_retries) return remove(entry);
  ask(entry, now);
}

void Neighbours::set_deadline(Entry& entry, base::Now deadline) {
  entry.deadline = deadline;
  next_deadline_ = base::earlier(next_deadline_, deadline);
}

void Neighbours::on_timers(base::Now now) {
  if (now < next_deadline_) return;
  for (Entry& entry : entries_) {
    if (entry.state != State::Free && entry.deadline <= now) expire(entry, now);
  }
  next_deadline_ = base::kNever;
  for (const Entry& entry : entries_)
    next_deadline_ = base::earlier(next_deadline_, entry.deadline);
}

}  // namespace rnic::net
