/// \file
/// Events of connections, as the application reads them.
#pragma once

#include "base/starved.hpp"
#include "device/connection.hpp"
#include "device/queue_pair.hpp"
#include "rnic/event.hpp"

namespace rnic::device {

/// Makes an event that names the connection. \param why its detail; nullptr: it has none
template <typename Kind>
Kind about(Connection& connection, const char* why = nullptr) {
  Kind event;
  if (const QueuePair* qp = connection.queue_pair(); qp != nullptr) {
    event.qp = qp->number();
    event.context = qp->context();
  }
  event.local = connection.local();
  event.remote = connection.remote();
  if (why != nullptr) event.detail = base::worded([&] { return why; });
  return event;
}

/// The Terminate code for a failed start-up; nothing: the failure has no code.
[[nodiscard]] std::optional<Fault> fault_of(framing::StartFailure why);
/// What became of the TCP connection.
[[nodiscard]] StreamEnd end_of(framing::StartFailure why);

/// Makes the event of a start-up that failed. \param text its detail
template <typename Kind>
Kind ending(Connection& connection, framing::StartFailure why, const char* text) {
  auto event = about<Kind>(connection, text);
  event.fault = fault_of(why);
  event.end = end_of(why);
  return event;
}

/// Makes the last event of a connection whose queue pair has let go of its stream, or has none: the
/// end of a stream would bring it otherwise.
[[nodiscard]] event::Disconnected disconnected(const QueuePair& qp, const Endpoint& local,
                                               const Endpoint& remote, const char* why);

}  // namespace rnic::device
