// Passive opens in SYN-RECEIVED: how many there may be, and who gives way where no cookie can be
// sent instead.

#include "base/log.hpp"
#include "tcp/engine.hpp"

namespace rnic::tcp {

/// A table of its own is for a listener that reaches its limit before all of them reach theirs.
std::unique_ptr<llp::Admission> Engine::half_open_by_age() const {
  const uint32_t limit = config_.max_half_open_per_listener;
  if (!half_open_by_age_ || limit == 0 || limit >= half_open_limit()) return nullptr;
  return std::make_unique<llp::Admission>(limit, secret_);
}

/// What is half open has shown nothing yet, not even that its address is its own: the other half of
/// the places is for those who have.
uint32_t Engine::half_open_limit() const {
  return std::min(config_.max_half_open, (config_.max_connections + 1) / 2);
}

bool Engine::half_open_place(const Listener& listener) const {
  return half_open_ < half_open_limit() && listener.half_open < config_.max_half_open_per_listener;
}

void Engine::now_half_open(Connection& c, uint32_t listener) {
  Listener& owner = listeners_.at(listener);
  c.listener = listener;
  ++owner.half_open;
  ++half_open_;
  const IpAddress& from = c.remote_end.address;
  if (half_open_by_age_) c.half_open_seat = half_open_by_age_->enter(from, c.handle);
  if (owner.by_age) c.half_open_seat_of_listener = owner.by_age->enter(from, c.handle);
}

void Engine::no_longer_half_open(Connection& c) {
  if (c.listener == ListenerTable::kNone) return;
  Listener& owner = listeners_.at(c.listener);
  if (half_open_by_age_) half_open_by_age_->leave(c.half_open_seat);
  if (owner.by_age) owner.by_age->leave(c.half_open_seat_of_listener);
  --owner.half_open;
  --half_open_;
  c.listener = ListenerTable::kNone;
}

/// Nobody is told: the address may be another's. If it is not, the RST that answers the ACK of the
/// handshake tells, or a SYN that comes again finds a place.
void Engine::displace_half_open(Listener& listener, const Endpoint& newcomer, base::Now now) {
  const bool own_limit = half_open_ < half_open_limit();
  llp::Admission* table = own_limit           ? listener.by_age.get()
                          : half_open_by_age_ ? &*half_open_by_age_
                                              : nullptr;
  if (table == nullptr) return;
  Connection* c = connections_.get(table->gives_way(newcomer.address));
  if (c == nullptr) return;
  ++counters_.half_open_displaced;
  if (const uint64_t count = half_open_log_.note(now); count != 0) {
    base::log(base::LogLevel::Warning, "tcp", [&] {
      return std::to_string(count) + " half-open " +
             (count == 1 ? "connection" : "connections, at last") + " from " +
             to_string(c->remote_end) + ", gave way to newer ones: " +
             (own_limit ? "tcp.max_half_open_per_listener" : "tcp.max_half_open") +
             " is reached and SYN cookies are off (tcp.syn_cookies), " +
             std::to_string(table->held_by(c->remote_end.address)) + " of them from there";
    });
  }
  doom(*c, StreamEnd::Aborted, false);
}

}  // namespace rnic::tcp
