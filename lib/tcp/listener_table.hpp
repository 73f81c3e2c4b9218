/// \file
/// The listeners of a stack and the ports that are reserved for listeners to come, in a hash table
/// that is bounded and allocates nothing after construction.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/bucket_heads.hpp"
#include "base/check.hpp"
#include "base/time.hpp"
#include "llp/transport.hpp"
#include "tcp/connection_options.hpp"
#include "tcp/half_open.hpp"

namespace rnic::tcp {

struct Listener {
  Endpoint local;
  llp::Acceptor* acceptor = nullptr;  ///< nullptr: the port is reserved, and nobody listens yet
  ConnectionOptions options;          ///< for the connections that it accepts
  HalfOpenPlaces half_open;           ///< its connections in SYN-RECEIVED
  base::Now cookies_until{};          ///< ACKs are looked at for cookies until then
  uint32_t next = UINT32_MAX;         ///< chain of the bucket, or of the free list
};

/// Maps (address, port) to a listener or to a reservation; an unspecified address stands for all
/// addresses. Listeners on one address and on all addresses may share a port; a reservation shares
/// its port with nobody at any of its addresses.
class ListenerTable {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  explicit ListenerTable(uint32_t capacity)
      : buckets_(std::bit_ceil(capacity + 1), kNone), capacity_(capacity) {
    listeners_.reserve(capacity);
  }

  /// The memory that a table of this capacity takes.
  [[nodiscard]] static uint64_t octets_for(uint32_t capacity) {
    return uint64_t{capacity} * sizeof(Listener) + std::bit_ceil(capacity + 1) * sizeof(uint32_t);
  }

  [[nodiscard]] bool full() const { return free_ == kNone && listeners_.size() == capacity_; }
  [[nodiscard]] Listener& at(uint32_t number) { return listeners_[number]; }
  [[nodiscard]] const Listener& at(uint32_t number) const { return listeners_[number]; }

  /// The listener of exactly this endpoint.
  [[nodiscard]] uint32_t find_exact(const Endpoint& local) const {
    const uint32_t i = place_of(local);
    return i != kNone && is_listener(i) ? i : kNone;
  }
  /// The listener for a connection to `local`: the one of its address, or else the one of all
  /// addresses.
  [[nodiscard]] uint32_t find(const Endpoint& local) const {
    uint32_t any = kNone;
    for (uint32_t i = buckets_[bucket(local.port)]; i != kNone; i = listeners_[i].next) {
      const Endpoint& have = listeners_[i].local;
      if (have.port != local.port || !is_listener(i)) continue;
      if (have.address == local.address) return i;
      if (have.address.is_unspecified()) any = i;
    }
    return any;
  }

  /// The reservation of `local`, or of some of its addresses, or of more than these.
  [[nodiscard]] uint32_t find_reserved(const Endpoint& local) const {
    uint32_t i = buckets_[bucket(local.port)];
    while (i != kNone && (is_listener(i) || !overlap(i, local))) i = listeners_[i].next;
    return i;
  }
  /// A listener or a reservation that has the port at one of the addresses of `local`.
  [[nodiscard]] uint32_t find_holder(const Endpoint& local) const {
    uint32_t i = buckets_[bucket(local.port)];
    while (i != kNone && !overlap(i, local)) i = listeners_[i].next;
    return i;
  }
  /// \return whether there is a listener or a reservation at any address of this port
  [[nodiscard]] bool is_taken(uint16_t port) const {
    uint32_t i = buckets_[bucket(port)];
    while (i != kNone && listeners_[i].local.port != port) i = listeners_[i].next;
    return i != kNone;
  }

  /// full() must be false.
  uint32_t insert(const Endpoint& local, llp::Acceptor& acceptor, const ConnectionOptions& options,
                  HalfOpenPlaces half_open = {}) {
    const uint32_t i = reserve(local);
    begin(i, acceptor, options, std::move(half_open));
    return i;
  }
  /// full() must be false, and find_holder() must find none.
  uint32_t reserve(const Endpoint& local) {
    const uint32_t i = take_place();
    uint32_t& head = buckets_[bucket(local.port)];
    listeners_[i] = {.local = local, .next = head};
    head = i;
    return i;
  }
  /// Makes a listener of a reservation.
  void begin(uint32_t number, llp::Acceptor& acceptor, const ConnectionOptions& options,
             HalfOpenPlaces half_open) {
    Listener& listener = listeners_[number];
    listener.acceptor = &acceptor;
    listener.options = options;
    listener.half_open = std::move(half_open);
  }
  /// Calls f(listener) for each listener and each reservation.
  template <typename F>
  void for_each(F&& f) {
    for (const uint32_t head : buckets_) {
      for (uint32_t i = head; i != kNone; i = listeners_[i].next) f(listeners_[i]);
    }
  }
  void erase(uint32_t number) {
    uint32_t* link = &buckets_[bucket(listeners_[number].local.port)];
    while (*link != number) link = &listeners_[*link].next;
    *link = listeners_[number].next;
    listeners_[number] = {};
    listeners_[number].next = free_;
    free_ = number;
  }
  /// Recounts the places: each is in the chain of its port's bucket, or free.
  void validate() const {
    size_t places = 0;
    base::for_each_busy_bucket(buckets_, kNone, [&](size_t b) {
      for (uint32_t i = buckets_[b]; i != kNone; i = listeners_[i].next, ++places) {
        RNIC_CHECK(places < listeners_.size() && bucket(listeners_[i].local.port) == b);
        RNIC_CHECK(place_of(listeners_[i].local) == i);
        RNIC_CHECK(is_listener(i) || is_alone(i));
        listeners_[i].half_open.validate();
      }
    });
    for (uint32_t i = free_; i != kNone; i = listeners_[i].next, ++places) {
      RNIC_CHECK(places < listeners_.size() && listeners_[i].local == Endpoint{});
    }
    RNIC_CHECK(places == listeners_.size() && places <= capacity_);
  }

 private:
  [[nodiscard]] bool is_listener(uint32_t number) const {
    return listeners_[number].acceptor != nullptr;
  }
  /// The listener or the reservation of exactly this endpoint.
  [[nodiscard]] uint32_t place_of(const Endpoint& local) const {
    uint32_t i = buckets_[bucket(local.port)];
    while (i != kNone && listeners_[i].local != local) i = listeners_[i].next;
    return i;
  }
  [[nodiscard]] bool overlap(uint32_t number, const Endpoint& local) const {
    return llp::overlap(listeners_[number].local, local);
  }
  /// \return whether nobody else has the port at one of the addresses of a reservation
  [[nodiscard]] bool is_alone(uint32_t number) const {
    for (uint32_t i = buckets_[bucket(listeners_[number].local.port)]; i != kNone;
         i = listeners_[i].next) {
      if (i != number && overlap(i, listeners_[number].local)) return false;
    }
    return true;
  }
  /// A place that was given back, or else the next one that was never used.
  uint32_t take_place() {
    if (free_ == kNone) {
      listeners_.emplace_back();
      return static_cast<uint32_t>(listeners_.size() - 1);
    }
    return std::exchange(free_, listeners_[free_].next);
  }
  [[nodiscard]] size_t bucket(uint16_t port) const { return port & (buckets_.size() - 1); }

  std::vector<Listener> listeners_;  ///< reserved at construction, so that no listener moves and
                                     ///< unused memory stays untouched
  std::vector<uint32_t> buckets_;
  uint32_t capacity_;
  uint32_t free_ = kNone;
};

}  // namespace rnic::tcp
