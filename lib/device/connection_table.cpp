#include "device/connection_table.hpp"

#include <algorithm>

namespace rnic::device {

namespace {

constexpr const char* kDisplaced =
    "let go for another one: too many associations had not sent a whole Request "
    "(limits.max_starting)";
constexpr const char* kPlaceNeeded =
    "let go for another one: all places for connections are in use, and it had not sent a whole "
    "Request (limits.max_connections, descriptors)";
constexpr const char* kLingering = "reset: its place was needed, and its start-up had failed";
constexpr const char* kSilent =
    "let go for another one: it had been silent for longer than limits.silence";

}  // namespace

ConnectionTable::ConnectionTable(const DeviceConfig& config, DeviceCounters& counters,
                                 base::Now now)
    : config_(config),
      counters_(counters),
      slab_(config.limits.max_connections + kEvictingMax),
      starting_(std::min(config.limits.max_starting, config.limits.max_connections), config.secret),
      leaving_(starting_.capacity(), config.secret),
      peers_(peer_places(config.limits), config.secret),
      silence_(config.limits, config.secret, now) {
  // ended_ takes connections that end at moments in which no memory may be allocated.
  ended_.reserve(slab_.capacity());
}

uint64_t ConnectionTable::octets_for(const Limits& limits) {
  constexpr uint64_t kBeside = sizeof(base::Handle) + 2 * sizeof(void*);  // ended, orphans, redials
  const uint64_t places = uint64_t{limits.max_connections} + kEvictingMax;
  const uint64_t of_peers =
      limits.peer_connections == 0 ? 0 : llp::Admission::octets_for(peer_places(limits));
  return base::Slab<Connection>::octets_for(places) + places * kBeside + of_peers;
}

void ConnectionTable::validate() {
  uint32_t counted = 0;
  for_each([&](const Connection& connection) {
    connection.validate();
    if (connection.counts_for_peer()) ++counted;
  });
  RNIC_CHECK(counted == peers_.size());
  peers_.validate();
}

bool ConnectionTable::find_place(base::Now now) {
  if (!has_place()) make_room(now);
  if (slab_.live() == slab_.capacity()) {
    reap([this](Connection& connection) { leaving_events_->leaves(connection); });
  }
  return has_place();
}

void ConnectionTable::admit_start(const IpAddress& newcomer, base::Now now) {
  if (starting_.full()) displace(newcomer, kDisplaced, now);
}

bool ConnectionTable::admit_for_peer(Connection& connection) {
  const uint32_t most = config_.limits.peer_connections;
  if (most == 0) return true;
  if (peers_.held_by(connection.remote().address) >= most) return false;
  connection.count_for_peer(peers_);
  return true;
}

bool ConnectionTable::evict(base::Handle who, const char* why) {
  Connection* connection = slab_.get(who);
  if (connection == nullptr) return false;
  ++evicting_;
  connection->evict(why);
  return true;
}

/// Evicts the oldest start-up of the address that holds most. \param why a literal, for its event
void ConnectionTable::displace(const IpAddress& newcomer, const char* why, base::Now now) {
  const base::Handle who = starting_.gives_way(newcomer);
  Connection* connection = slab_.get(who);
  if (connection == nullptr) return;
  ++counters_.starts_displaced;
  const auto line = [&] {
    const bool all = why == kDisplaced;
    return "gave way to newer ones: " + std::to_string(starting_.size()) +
           " had not sent a whole Request" + (all ? " (limits.max_starting), " : ", ") +
           std::to_string(starting_.held_by(connection->remote().address)) + " of them from there" +
           (all ? ""
                : "; all places for connections are in use (limits.max_connections, "
                  "descriptors)");
  };
  note_pressure(displaced_log_, line, connection->remote(), now);
  evict(who, why);
}

bool ConnectionTable::make_room(base::Now now) {
  if (leaving_.size() != 0) {
    ++counters_.lingering_reset;
    return evict(leaving_.gives_way(), kLingering);
  }
  if (starting_.size() <= starting_.capacity() / 2 && displace_silent(now)) return true;
  if (starting_.size() == 0) return false;
  displace(IpAddress{}, kPlaceNeeded, now);
  return true;
}

/// Evicts the silent connection that gives way first. \return whether there was one
bool ConnectionTable::displace_silent(base::Now now) {
  const auto connection_of = [this](base::Handle who) -> Connection& { return *slab_.get(who); };
  const base::Handle who = silence_.gives_way(connection_of, now);
  if (!who.valid()) return false;
  ++counters_.silent_displaced;
  const llp::Admission& silent = silence_.silent();
  const Endpoint& remote = connection_of(who).remote();
  const auto why = [&] {
    return "established and silent, gave way to newer ones: " + std::to_string(silent.size()) +
           " had been silent for longer than limits.silence, " +
           std::to_string(silent.held_by(remote.address)) + " of them from there";
  };
  note_pressure(silent_log_, why, remote, now);
  return evict(who, kSilent);
}

void ConnectionTable::linger(Connection& connection) {
  connection.leave_seat();
  const bool nobodys = connection.is_responder() && connection.queue_pair() == nullptr &&
                       !connection.was_converted() && connection.evicted_for() == nullptr;
  if (!nobodys || !connection.has_stream()) return;
  if (leaving_.full()) {
    ++counters_.lingering_reset;
    evict(leaving_.gives_way(connection.remote().address), kLingering);
  }
  connection.take_seat(leaving_);
}

void ConnectionTable::ended(Connection& connection) {
  silence_.end(connection);
  connection.leave_seat();
  connection.leave_peer();
  if (connection.evicted_for() != nullptr) --evicting_;
  ended_.push_back(connection.handle());
}

}  // namespace rnic::device
