/// \file
/// Passive opens in SYN-RECEIVED: how many there may be, of all listeners and of one, and who gives
/// way where no cookie can be sent instead.
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

/// The places under one limit.
class HalfOpenPlaces {
 public:
  /// None.
  HalfOpenPlaces() = default;
  /// \param by_age who has them, by age and address; nullptr: nobody has to give way
  HalfOpenPlaces(uint32_t limit, std::unique_ptr<llp::Admission> by_age);

  [[nodiscard]] uint32_t taken() const { return taken_; }
  [[nodiscard]] bool full() const { return taken_ >= limit_; }
  /// full() is false. \return the seat, for leave()
  uint32_t enter(const IpAddress& from, base::Handle who);
  void leave(uint32_t seat);
  /// Whose place a newcomer takes. Invalid: nobody's.
  [[nodiscard]] base::Handle gives_way(const IpAddress& newcomer) const;
  /// Places that an address has, or in IPv6 its /64; 0 where nobody gives way.
  [[nodiscard]] uint32_t held_by(const IpAddress& address) const;
  void validate() const;

 private:
  uint32_t limit_ = 0;
  uint32_t taken_ = 0;  // Invariant: at most limit_.
  // Invariant: as many seats as limit_, of which taken_ are taken.
  std::unique_ptr<llp::Admission> by_age_;
};

/// Where a half-open connection stands; HalfOpen writes it.
struct HalfOpenSeat {
  HalfOpenPlaces* of_listener = nullptr;  ///< nullptr: it is not half open
  uint32_t among_all = 0;
  uint32_t among_listeners = 0;  ///< in `of_listener`
};

/// Those of all listeners, and by whose limit one of them gives way.
class HalfOpen {
 public:
  /// \param secret keys the search by address: strangers choose their addresses
  HalfOpen(const Config& config, const Secret& secret);

  /// The places of a new listener.
  [[nodiscard]] HalfOpenPlaces places_of_listener() const;
  [[nodiscard]] bool has_place(const HalfOpenPlaces& listener) const {
    return !all_.full() && !listener.full();
  }
  /// There is a place. \param listener outlives the stay, where it is
  void enter(HalfOpenSeat& seat, HalfOpenPlaces& listener, const IpAddress& from, base::Handle who);
  /// If it is half open.
  void leave(HalfOpenSeat& seat);
  /// There is no place: whose a newcomer from there takes. Invalid: nobody's.
  [[nodiscard]] base::Handle gives_way(const HalfOpenPlaces& listener,
                                       const IpAddress& newcomer) const {
    return exhausted(listener).gives_way(newcomer);
  }
  /// Says in the log that one from there gives way; it has not left yet.
  void log_displaced(const HalfOpenPlaces& listener, const Endpoint& from, base::Now now);

  [[nodiscard]] uint32_t live() const { return all_.taken(); }
  void validate() const { all_.validate(); }

 private:
  /// Whose limit stands in the way.
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
