#include "net/neighbours.hpp"

#include <algorithm>
#include <bit>

#include "base/bucket_heads.hpp"
#include "base/check.hpp"

namespace rnic::net {

Neighbours::Neighbours(const Config& config, NeighbourUser& user, Counters& counters, base::Now now)
    : config_(config),
      user_(user),
      counters_(counters),
      requests_(kRequestsPerSecond, now),
      confirmations_(kRequestsPerSecond, now),
      entries_(std::max(config.neighbours, 1u)),
      heads_(std::bit_ceil(entries_.size() * 2), kNone),
      senders_(kSenders) {}

uint64_t Neighbours::octets_for(uint32_t neighbours) {
  return uint64_t{neighbours} * sizeof(Entry) +
         std::bit_ceil(uint64_t{neighbours} * 2) * sizeof(uint32_t) + kSenders * sizeof(Sender);
}

Neighbours::~Neighbours() {
  for (Entry& entry : made()) {
    if (entry.state != State::Free) remove(entry);
  }
}

uint32_t& Neighbours::chain(const IpAddress& ip) { return heads_[hash(ip) & (heads_.size() - 1)]; }

Neighbours::Entry* Neighbours::lookup(const IpAddress& ip) {
  for (uint32_t i = chain(ip); i != kNone; i = entries_[i].next) {
    if (entries_[i].ip == ip) return &entries_[i];
  }
  return nullptr;
}

RateLimit* Neighbours::share_of(const IpAddress& ip, const std::optional<port::MacAddress>& mac) {
  Entry* entry = lookup(ip);
  if (entry == nullptr || entry->state == State::Incomplete) return nullptr;
  return !mac || *mac == entry->mac ? &entry->answers : nullptr;
}

const port::MacAddress* Neighbours::find(const IpAddress& ip) {
  Entry* entry = lookup(ip);
  if (entry == nullptr || entry->state == State::Incomplete) return nullptr;
  entry->used = true;
  if (entry->state == State::Stale) set_deadline(*entry, base::Now{});  // on_timers() confirms it
  return &entry->mac;
}

void Neighbours::park(const IpAddress& ip, port::Packet& frame, base::Now now) {
  Entry* entry = lookup(ip);
  if (entry == nullptr) {
    entry = make(ip, true, now);
    RNIC_CHECK(entry != nullptr);
    entry->used = true;
    ask(*entry, now);
  }
  RNIC_CHECK(entry->state == State::Incomplete);
  // In a full table another neighbour may take this place before the answer comes.
  const bool answer_lasts = entry->asked && size_ < entries_.size();
  if (const port::MacAddress* mac = answer_lasts ? nullptr : sender_of(ip, now)) {
    ++counters_.neighbour_guessed;
    user_.unpark(frame, *mac, now);
    return;
  }
  if (entry->parked_count == kParked || (parked_ == kParkedInAll && entry->parked_count != 0)) {
    user_.drop_parked(entry->parked[entry->parked_first]);
    unqueue(*entry);
  } else if (parked_ == kParkedInAll) {
    user_.drop_parked(frame);
    return;
  }
  entry->parked[(entry->parked_first + entry->parked_count) % kParked] = frame;
  ++entry->parked_count;
  ++parked_;
}

void Neighbours::set_state(Entry& entry, State next) {
  RNIC_CHECK(kNeighbourTransitions.allows(entry.state, next));
  entry.state = next;
}

// Takes the oldest frame out of the entry; the caller owns the frame.
void Neighbours::unqueue(Entry& entry) {
  entry.parked_first = (entry.parked_first + 1) % kParked;
  --entry.parked_count;
  --parked_;
}

void Neighbours::on_answer(const IpAddress& ip, const std::optional<port::MacAddress>& mac,
                           bool overrides, base::Now now) {
  Entry* entry = lookup(ip);
  if (entry == nullptr) return;
  if (entry->state == State::Reachable || entry->state == State::Stale) return;
  // RFC 4861 s.7.2.5: without an address an entry cannot be completed.
  const bool incomplete = entry->state == State::Incomplete;
  if (!mac && incomplete) return;
  if (mac && !incomplete && !overrides && *mac != entry->mac) return;
  confirm(*entry, mac.value_or(entry->mac), now);
}

void Neighbours::on_request(const IpAddress& ip, const port::MacAddress& mac, base::Now now) {
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

void Neighbours::on_segment(const IpAddress& ip, const port::MacAddress& mac, base::Now now) {
  senders_[hash(ip) & (kSenders - 1)] = {ip, mac, now};
}

const port::MacAddress* Neighbours::sender_of(const IpAddress& ip, base::Now now) const {
  const Sender& sender = senders_[hash(ip) & (kSenders - 1)];
  return sender.ip == ip && now - sender.at < kSenderLife ? &sender.mac : nullptr;
}

void Neighbours::on_claim(const IpAddress& ip, const port::MacAddress& mac, base::Now now) {
  Entry* entry = lookup(ip);
  if (entry == nullptr) return;
  if (entry->state == State::Incomplete) {
    confirm(*entry, mac, now);
  } else if (entry->mac != mac) {
    doubt(*entry, now);
  }
}

void Neighbours::on_silence(const IpAddress& ip, base::Now now) {
  if (Entry* entry = lookup(ip); entry != nullptr) doubt(*entry, now);
}

// Anybody can send in another host's name, so a new address is believed only after it was asked
// for.
void Neighbours::doubt(Entry& entry, base::Now now) {
  if (entry.state != State::Reachable && entry.state != State::Stale) return;
  set_state(entry, State::Probing);
  ask(entry, now);
}

Neighbours::Entry* Neighbours::make(const IpAddress& ip, bool may_replace_used, base::Now now) {
  Entry* entry = take_place(may_replace_used);
  if (entry == nullptr) return nullptr;
  entry->ip = ip;
  set_state(*entry, State::Incomplete);
  entry->used = false;
  entry->asked = false;
  entry->requests = 0;
  entry->since = now;
  entry->answers = {kAnswersPerSecond, now};
  entry->parked_count = 0;
  uint32_t& head = chain(ip);
  entry->next = head;
  head = static_cast<uint32_t>(entry - entries_.data());
  ++size_;
  return entry;
}

// The worth of an entry when a place is needed; 0: the entry is not given up. Anybody can make us
// send to addresses that nobody has, by packets in their names. So when we want to reach a new
// address, an incomplete entry is worth less than a neighbour that has answered. A host that asks
// for us, of which there can be as many, does not take the place of a neighbour that we talk to.
uint32_t Neighbours::worth(const Entry& entry, bool may_replace_used) {
  if (entry.state == State::Incomplete) return may_replace_used ? 1 : 2;
  if (!entry.used) return may_replace_used ? 2 : 1;
  return may_replace_used ? 3 : 0;
}

// Finds a free place, or the place of the entry that is worth the least; among equals the oldest
// one.
Neighbours::Entry* Neighbours::take_place(bool may_replace_used) {
  if (size_ < entries_.size()) {
    for (Entry& entry : made()) {
      if (entry.state == State::Free) return &entry;
    }
    return &(entries_[made_++] = Entry{});
  }
  ++counters_.neighbours_full;
  Entry* least = nullptr;
  uint32_t least_worth = 0;
  for (Entry& entry : made()) {
    const uint32_t its = worth(entry, may_replace_used);
    if (its == 0) continue;
    if (least == nullptr || its < least_worth ||
        (its == least_worth && entry.since < least->since)) {
      least = &entry;
      least_worth = its;
    }
  }
  if (least != nullptr) remove(*least);
  return least;
}

void Neighbours::remove(Entry& entry) {
  while (entry.parked_count != 0) {
    user_.drop_parked(entry.parked[entry.parked_first]);
    unqueue(entry);
  }
  const auto index = static_cast<uint32_t>(&entry - entries_.data());
  uint32_t* link = &chain(entry.ip);
  while (*link != index) link = &entries_[*link].next;
  *link = entry.next;
  set_state(entry, State::Free);
  entry.deadline = base::kNever;
  --size_;
  ++generation_;
}

void Neighbours::confirm(Entry& entry, const port::MacAddress& mac, base::Now now) {
  entry.mac = mac;
  set_state(entry, State::Reachable);
  entry.used = entry.parked_count != 0;
  entry.requests = 0;
  entry.since = now;
  ++generation_;
  set_deadline(entry, now + (entry.ip.is_v4() ? config_.arp_lifetime : config_.nd_lifetime));
  while (entry.parked_count != 0) {
    port::Packet frame = entry.parked[entry.parked_first];
    unqueue(entry);
    user_.unpark(frame, entry.mac, now);
  }
}

// RFC 1122 s.2.3.2.1, RFC 4861 s.7.2.2: at most one request a second goes to one destination
// (neighbour_retry).
void Neighbours::ask(Entry& entry, base::Now now) {
  ++entry.requests;
  set_deadline(entry, now + config_.neighbour_retry);
  // Known neighbours are confirmed under a limit of their own, so that requests for absent hosts
  // cannot prevent it.
  if (!(entry.state == State::Probing ? confirmations_ : requests_).allow(now)) return;
  entry.asked = true;
  // The first question goes to the known address; if it stays unanswered, the next ones go to
  // everybody (RFC 1122 s.2.3.2.1, unicast poll).
  const bool unicast =
      entry.state == State::Probing && entry.requests == 1 && config_.neighbour_retries > 1;
  user_.solicit(entry.ip, unicast ? &entry.mac : nullptr, now);
}

void Neighbours::expire(Entry& entry, base::Now now) {
  if (entry.state == State::Reachable && !entry.used) {
    // RFC 4861 s.7.3.2: the entry is kept, so that a burst after a pause does not have to wait for
    // an answer.
    set_state(entry, State::Stale);
    entry.deadline = base::kNever;
    ++generation_;
    return;
  }
  if (entry.state == State::Reachable || entry.state == State::Stale) {
    set_state(entry, State::Probing);
    return ask(entry, now);
  }
  if (entry.requests >= config_.neighbour_retries) return remove(entry);
  ask(entry, now);
}

void Neighbours::set_deadline(Entry& entry, base::Now deadline) {
  entry.deadline = deadline;
  next_deadline_ = base::earlier(next_deadline_, deadline);
}

void Neighbours::validate() const {
  uint32_t size = 0;
  uint32_t parked = 0;
  for (uint32_t i = 0; i < made_; ++i) {
    const Entry& entry = entries_[i];
    if (entry.state == State::Free) continue;
    ++size;
    parked += entry.parked_count;
    RNIC_CHECK(entry.parked_count <= kParked && entry.parked_first < kParked);
    RNIC_CHECK(entry.parked_count == 0 || entry.state == State::Incomplete);
    RNIC_CHECK(next_deadline_ <= entry.deadline);
  }
  RNIC_CHECK(size == size_ && parked == parked_ && parked_ <= kParkedInAll);
  uint32_t chained = 0;
  base::for_each_busy_bucket(heads_, kNone, [&](size_t h) {
    for (uint32_t i = heads_[h]; i != kNone; i = entries_[i].next) {
      RNIC_CHECK(i < made_ && entries_[i].state != State::Free && ++chained <= size_);
      RNIC_CHECK((hash(entries_[i].ip) & (heads_.size() - 1)) == h);
    }
  });
  RNIC_CHECK(chained == size_);
}

void Neighbours::on_timers(base::Now now) {
  if (now < next_deadline_) return;
  for (Entry& entry : made()) {
    if (entry.state != State::Free && entry.deadline <= now) expire(entry, now);
  }
  next_deadline_ = base::kNever;
  for (const Entry& entry : made()) next_deadline_ = base::earlier(next_deadline_, entry.deadline);
}

}  // namespace rnic::net
