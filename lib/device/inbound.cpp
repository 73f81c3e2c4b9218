// Device: inbound associations: who is admitted, who gives way, who is refused.

#include "base/log.hpp"
#include "base/starved.hpp"
#include "device/device.hpp"

namespace rnic::device {

namespace {

constexpr const char* kDisplaced =
    "let go for another one: too many associations had not sent a whole Request "
    "(limits.max_starting)";
constexpr const char* kPlaceNeeded =
    "let go for another one: all places for connections are in use, and it had not sent a whole "
    "Request (limits.max_connections, descriptors)";
constexpr const char* kUnanswered =
    "refused: the application has too many unanswered requests (limits.max_pending_requests)";
constexpr const char* kLingering = "reset: its place was needed, and its start-up had failed";

}  // namespace

/// Those that are on their way out have their places in the slab still, and count no more.
bool Device::has_place() const {
  const size_t gone = ended_.size() + yielding_;
  return connections_.live() - gone < config_.limits.max_connections;
}

void Device::leave_seat(Connection& connection) {
  if (connection.table == nullptr) return;
  connection.table->leave(connection.seat);
  connection.table = nullptr;
}

void Device::take_seat(Connection& connection, llp::Admission& table) {
  leave_seat(connection);
  connection.seat = table.enter(connection.remote.address, connection.handle);
  connection.table = &table;
}

/// Its stream is reset. \param why for its event. \return there was one
bool Device::let_go(base::Handle who, const char* why) {
  Connection* connection = connections_.get(who);
  if (connection == nullptr) return false;
  leave_seat(*connection);
  connection->yields = why;
  ++yielding_;
  connection->stream->abort();
  return true;
}

/// The oldest start-up of the address that holds most. \param why for its event
void Device::displace(const IpAddress& newcomer, const char* why) {
  const base::Handle who = starting_.gives_way(newcomer);
  Connection* connection = connections_.get(who);
  if (connection == nullptr) return;
  ++counters_.starts_displaced;
  const auto line = [&] {
    const bool all = why == kDisplaced;
    return "gave way to newer ones: " + std::to_string(starting_.size()) +
           " had not sent a whole Request" + (all ? " (limits.max_starting), " : ", ") +
           std::to_string(starting_.held_by(connection->remote.address)) + " of them from there" +
           (all ? ""
                : "; all places for connections are in use (limits.max_connections, "
                  "descriptors)");
  };
  note_pressure(displaced_log_, line, connection->remote);
  let_go(who, why);
}

/// What has failed gives way before what may come to something. Half of the start-ups' places are
/// theirs, so that silent connections cannot keep newcomers out; beyond that start-ups give way, so
/// that who has not even sent a Request ends no connection.
bool Device::make_room() {
  if (leaving_.size() != 0) {
    ++counters_.lingering_reset;
    return let_go(leaving_.gives_way(), kLingering);
  }
  if (starting_.size() <= starting_.capacity() / 2 && displace_silent()) return true;
  if (starting_.size() == 0) return false;
  displace(IpAddress{}, kPlaceNeeded);
  return true;
}

bool Device::find_place() {
  if (!has_place()) make_room();
  if (connections_.live() == connections_.capacity()) reap_ended();
  return has_place();
}

base::Handle Device::make_responder(const Endpoint& local) {
  if (framing_of_listener(local) == Framing::Tuf) {
    return connections_.emplace(*this, framing::Role::Responder, config_.tuf, base::ByteView{});
  }
  return connections_.emplace(*this, framing::Role::Responder, config_.mpa, base::ByteView{});
}

llp::StreamUser* Device::incoming(llp::Stream& stream, const Endpoint& local,
                                  const Endpoint& remote, base::Now now) {
  if (starting_.full()) displace(remote.address, kDisplaced);
  base::Handle handle;
  if (find_place()) {
    const bool made = base::attempt([&] { handle = make_responder(local); });
    if (!made) {
      ++counters_.starved_connections;
      note_pressure(
          refused_log_, [] { return "refused: out of memory"; }, remote);
      return nullptr;
    }
  }
  Connection* connection = connections_.get(handle);
  if (connection == nullptr) {
    ++counters_.requests_refused;
    const auto why = [&] {
      return "refused: all " + std::to_string(config_.limits.max_connections) +
             " of limits.max_connections are in use";
    };
    note_pressure(refused_log_, why, remote);
    return nullptr;
  }
  connection->handle = handle;
  connection->stream = &stream;
  connection->local = local;
  connection->remote = remote;
  take_seat(*connection, starting_);
  connection->session().attach(stream);
  start_timers_.arm(connection->start_timer, now + connection->start_timeout());
  return &connection->session();
}

bool Device::admits_request(Connection& connection) {
  leave_seat(connection);
  if (pending_requests_ < config_.limits.max_pending_requests) {
    ++pending_requests_;
    return true;
  }
  ++counters_.requests_refused;
  const auto why = [&] {
    return "refused: " + std::to_string(pending_requests_) +
           " requests wait for the application's answer (limits.max_pending_requests)";
  };
  note_pressure(unanswered_log_, why, connection.remote);
  let_go(connection.handle, kUnanswered);
  return false;
}

/// The start-up has failed, and TCP still has to close: with a peer that does not play along for as
/// long as tcp.orphan_timeout.
void Device::linger(Connection& connection) {
  leave_seat(connection);
  const bool nobodys = connection.is_responder() && connection.queue_pair() == nullptr &&
                       connection.socket == nullptr && connection.yields == nullptr;
  if (!nobodys || connection.stream == nullptr) return;
  if (leaving_.full()) {
    ++counters_.lingering_reset;
    let_go(leaving_.gives_way(connection.remote.address), kLingering);
  }
  take_seat(connection, leaving_);
}

}  // namespace rnic::device
