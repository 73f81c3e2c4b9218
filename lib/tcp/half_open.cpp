#include "tcp/half_open.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.hpp"
#include "base/log.hpp"

namespace rnic::tcp {

HalfOpenPlaces::HalfOpenPlaces(uint32_t limit, std::unique_ptr<llp::Admission> by_age)
    : limit_(limit), by_age_(std::move(by_age)) {}

uint32_t HalfOpenPlaces::enter(const IpAddress& from, base::Handle who) {
  ++taken_;
  return by_age_ ? by_age_->enter(from, who) : 0;
}

void HalfOpenPlaces::leave(uint32_t seat) {
  --taken_;
  if (by_age_) by_age_->leave(seat);
}

base::Handle HalfOpenPlaces::gives_way(const IpAddress& newcomer) const {
  return by_age_ ? by_age_->gives_way(newcomer) : base::Handle{};
}

uint32_t HalfOpenPlaces::held_by(const IpAddress& address) const {
  return by_age_ ? by_age_->held_by(address) : 0;
}

void HalfOpenPlaces::validate() const {
  RNIC_CHECK(taken_ <= limit_);
  if (by_age_) by_age_->validate();
  RNIC_CHECK(!by_age_ || (by_age_->capacity() == limit_ && by_age_->size() == taken_));
}

namespace {

/// Half-open connections get at most half of all places, since they have not even proved that their
/// address is their own. The other half is for connections that have proved it.
uint32_t limit_of(const Config& config) {
  return std::min(config.max_half_open, (config.max_connections + 1) / 2);
}

}  // namespace

HalfOpen::HalfOpen(const Config& config, const Secret& secret)
    : secret_(secret),
      limit_(limit_of(config)),
      listener_limit_(config.max_half_open_per_listener),
      some_give_way_(!config.syn_cookies && config.max_half_open != 0),
      all_(limit_, some_give_way_ ? std::make_unique<llp::Admission>(limit_, secret) : nullptr) {}

/// A listener has a table of its own only where its limit may be reached before the common one.
HalfOpenPlaces HalfOpen::places_of_listener() const {
  const bool by_age = some_give_way_ && listener_limit_ != 0 && listener_limit_ < limit_;
  return {listener_limit_,
          by_age ? std::make_unique<llp::Admission>(listener_limit_, secret_) : nullptr};
}

void HalfOpen::enter(HalfOpenSeat& seat, HalfOpenPlaces& listener, const IpAddress& from,
                     base::Handle who) {
  seat = {&listener, all_.enter(from, who), listener.enter(from, who)};
}

void HalfOpen::leave(HalfOpenSeat& seat) {
  if (seat.of_listener == nullptr) return;
  all_.leave(seat.among_all);
  seat.of_listener->leave(seat.among_listeners);
  seat = {};
}

void HalfOpen::log_displaced(const HalfOpenPlaces& listener, const Endpoint& from, base::Now now) {
  const uint64_t count = log_.note(now);
  if (count == 0) return;
  base::log(base::LogLevel::Warning, "tcp", [&] {
    return std::to_string(count) + " half-open " +
           (count == 1 ? "connection" : "connections, at last") + " from " + to_string(from) +
           ", gave way to newer ones: " +
           (all_.full() ? "tcp.max_half_open" : "tcp.max_half_open_per_listener") +
           " is reached and SYN cookies are off (tcp.syn_cookies), " +
           std::to_string(exhausted(listener).held_by(from.address)) + " of them from there";
  });
}

}  // namespace rnic::tcp
