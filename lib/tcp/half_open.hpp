/// \file
/// Passive opens in SYN-RECEIVED: their limits, for all listeners and for one, and the connection
/// that is displaced at the limit where no SYN cookie can be sent.
#pragma once

#include <cstdint>
#include <memory>

#include "base/pressure_log.hpp"
#include "base/slab.hpp"
#include "base/time.hpp"
#include "llp/admission.hpp"
#include "rnic/address.hpp"
#include "tcp/config.hpp"
#include "tcp/isn.hpp"

namespace rnic::tcp {

/// The half-open connections under one limit.
class HalfOpenPlaces {
 public:
  /// Makes a limit of 0: there is no place.
  HalfOpenPlaces() = default;
  /// \param by_age the holders by age and address; nullptr: none is ever displaced
  HalfOpenPlaces(uint32_t limit, std::unique_ptr<llp::Admission> by_age);

  [[nodiscard]] uint32_t taken() const { return taken_; }
  [[nodiscard]] bool full() const { return taken_ >= limit_; }
  /// Takes a place; full() must be false. \return the seat, to be passed to leave()
  uint32_t enter(const IpAddress& from, base::Handle who);
  void leave(uint32_t seat);
  /// The connection that a newcomer displaces. Invalid: none.
  [[nodiscard]] base::Handle gives_way(const IpAddress& newcomer) const;
  /// Places that an address holds, or in IPv6 all addresses of its /64; 0 if connections are never
  /// displaced.
  [[nodiscard]] uint32_t held_by(const IpAddress& address) const;
  void validate() const;

 private:
  uint32_t limit_ = 0;
  uint32_t taken_ = 0;  // Invariant: at most limit_.
  // Invariant: has limit_ seats, of which taken_ are taken.
  std::unique_ptr<llp::Admission> by_age_;
};

/// The places of one half-open connection. Only HalfOpen writes it.
struct HalfOpenSeat {
  HalfOpenPlaces* of_listener = nullptr;  ///< nullptr: the connection is not half open
  uint32_t among_all = 0;
  uint32_t among_listeners = 0;  ///< seat in `of_listener`
};

/// The half-open connections of all listeners, and the limit by which one of them is displaced.
class HalfOpen {
 public:
  /// \param secret keys the hash of addresses, since remote hosts choose theirs
  HalfOpen(const Config& config, const Secret& secret);

  /// The places of a new listener.
  [[nodiscard]] HalfOpenPlaces places_of_listener() const;
  [[nodiscard]] bool has_place(const HalfOpenPlaces& listener) const {
    return !all_.full() && !listener.full();
  }
  /// Takes a place of both limits; has_place() must be true. \param listener must not move until
  /// leave()
  void enter(HalfOpenSeat& seat, HalfOpenPlaces& listener, const IpAddress& from, base::Handle who);
  /// Does nothing if the connection is not half open.
  void leave(HalfOpenSeat& seat);
  /// The connection that a newcomer from this address displaces when has_place() is false. Invalid:
  /// none.
  [[nodiscard]] base::Handle gives_way(const HalfOpenPlaces& listener,
                                       const IpAddress& newcomer) const {
    return exhausted(listener).gives_way(newcomer);
  }
  /// Logs that the connection from `from` is displaced; called before it leaves.
  void log_displaced(const HalfOpenPlaces& listener, const Endpoint& from, base::Now now);

  [[nodiscard]] uint32_t live() const { return all_.taken(); }
  void validate() const { all_.validate(); }

 private:
  /// The places whose limit is reached.
  [[nodiscard]] const HalfOpenPlaces& exhausted(const HalfOpenPlaces& listener) const {
    return all_.full() ? all_ : listener;
  }

  const Secret secret_;
  const uint32_t limit_;
  const uint32_t listener_limit_;
  const bool some_give_way_;
  HalfOpenPlaces all_;
  base::PressureLog log_;
};

}  // namespace rnic::tcp
