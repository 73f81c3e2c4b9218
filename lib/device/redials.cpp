#include "device/redials.hpp"

#include <algorithm>

#include "device/connection_events.hpp"

namespace rnic::device {

Redials::Redials(size_t most, Resources& resources, EventQueue& events, DeviceCounters& counters)
    : resources_(resources), events_(events), counters_(counters) {
  waiting_.reserve(most);
}

bool Redials::wants(const Connection& connection, framing::StartFailure why) {
  return connection.has_redial() && connection.evicted_for() == nullptr &&
         (why == framing::StartFailure::NoReply || why == framing::StartFailure::ResetBeforeReply ||
          why == framing::StartFailure::NotEnhanced);
}

void Redials::add(QueuePair& qp, std::unique_ptr<Connection::Redial> redial) {
  qp.await_redial();
  waiting_.push_back(std::move(redial));
}

/// \return what the queue pair waits for; nullptr: it does not wait
std::unique_ptr<Connection::Redial> Redials::take(const QueuePair& qp) {
  const auto is_its = [&](const auto& redial) { return redial->qp == qp.number(); };
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), is_its);
  if (!qp.awaits_redial() || found == waiting_.end()) return nullptr;
  std::unique_ptr<Connection::Redial> gone = std::move(*found);
  waiting_.erase(found);
  return gone;
}

void Redials::give_up(QueuePair& qp, const Connection::Redial& redial, std::string why) {
  qp.end_connection();
  ++counters_.connects_failed;
  event::ConnectFailed event;
  event.qp = qp.number();
  event.context = qp.context();
  event.remote = redial.remote;
  event.detail = std::move(why);
  events_.emit(std::move(event));
  qp.abort();
  events_.emit(disconnected(qp, {}, redial.remote, "there was no second attempt"));
}

}  // namespace rnic::device
