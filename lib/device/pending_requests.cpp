#include "device/pending_requests.hpp"

#include <string>

#include "base/check.hpp"

namespace rnic::device {

using base::fail;

namespace {

constexpr const char* kUnanswered =
    "refused: the application has too many unanswered requests (limits.max_pending_requests)";
constexpr const char* kBeyondBacklog =
    "refused: the application has too many unanswered requests of this listener "
    "(ListenOptions::backlog)";
constexpr const char* kBeyondQuota =
    "refused: the consumer that listens has too many unanswered requests (quotas.requests)";
constexpr const char* kTooLate = "refused: the consumer that listened does not listen any more";
constexpr const char* kBeyondPeer =
    "refused: its address has as many connections as one may have (limits.peer_connections)";

}  // namespace

PendingRequests::PendingRequests(const DeviceConfig& config, ConnectionTable& connections,
                                 Listeners& listeners, Consumers& consumers,
                                 DeviceCounters& counters)
    : config_(config),
      connections_(connections),
      listeners_(listeners),
      consumers_(consumers),
      counters_(counters) {
  unheard_.reserve(config.limits.max_pending_requests);
}

bool PendingRequests::admit(Connection& connection, base::Now now) {
  connection.leave_seat();
  // Only a listener or a request keeps a consumer: without the listener it may be gone, and another
  // one may have its number. The application is always there.
  const ListenerName& listener = connection.listener();
  if (listener.consumer != 0 && listeners_.get(listener) == nullptr) {
    ++counters_.requests_too_late;
    const auto why = [] { return "refused: its listener's consumer does not listen any more"; };
    connections_.refuse_request(connection, why, kTooLate, now);
    return false;
  }
  if (full()) {
    ++counters_.requests_refused;
    const auto why = [&] {
      return "refused: " + std::to_string(waiting_) +
             " requests wait for the application's answer (limits.max_pending_requests)";
    };
    connections_.refuse_request(connection, why, kUnanswered, now);
    return false;
  }
  if (!listeners_.enter(connection.listener())) {
    ++counters_.requests_beyond_backlog;
    const auto why = [&] {
      return "refused: the backlog of " + to_string(connection.listener().local) + " is full";
    };
    connections_.refuse_request(connection, why, kBeyondBacklog, now);
    return false;
  }
  if (!consumers_.admit(connection.listener().consumer, {.requests = 1})) {
    listeners_.leave(connection.listener());
    ++counters_.requests_beyond_quota;
    const auto why = [] { return "refused: its listener's consumer has reached quotas.requests"; };
    connections_.refuse_request(connection, why, kBeyondQuota, now);
    return false;
  }
  if (!connections_.admit_for_peer(connection)) {
    give_back(connection);
    ++counters_.requests_beyond_peer;
    const auto why = [&] {
      return "refused: that address has all " + std::to_string(config_.limits.peer_connections) +
             " of limits.peer_connections";
    };
    connections_.refuse_request(connection, why, kBeyondPeer, now);
    return false;
  }
  ++waiting_;
  return true;
}

Result<Connection*> PendingRequests::find(RequestHandle request) {
  Connection* connection = connections_.get({request.index, request.generation});
  if (connection == nullptr || connection->state() != ConnectionState::Requested) {
    return fail(ErrorCode::NotFound,
                "the connection request is gone or was answered already: wait for another one");
  }
  return connection;
}

void PendingRequests::over(const Connection& connection) {
  --waiting_;
  give_back(connection);
}

void PendingRequests::give_back(const Connection& connection) {
  listeners_.leave(connection.listener());
  consumers_.give_back(connection.listener().consumer, {.requests = 1});
}

/// Counts the requests that wait for an answer. \param listener its number; nothing: all listeners
uint32_t PendingRequests::count(std::optional<uint64_t> listener) {
  uint32_t found = 0;
  connections_.for_each([&](const Connection& connection) {
    const bool counts = !listener || connection.listener().number == *listener;
    found += counts && connection.state() == ConnectionState::Requested ? 1 : 0;
  });
  return found;
}

void PendingRequests::validate() {
  RNIC_CHECK(count({}) == waiting_);
  listeners_.validate([this](uint64_t number) { return count(number); });
}

}  // namespace rnic::device
