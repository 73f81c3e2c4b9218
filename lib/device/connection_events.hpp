/// \file
/// Events of connections, as the application reads them.
#pragma once

#include "base/starved.hpp"
#include "device/connection.hpp"
#include "device/queue_pair.hpp"
#include "rnic/event.hpp"

namespace rnic::device {

/// An event with what it says of its connection. \param why nullptr: nothing is to be said
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

/// The code of what spoils a start-up; nothing: it has none.
[[nodiscard]] std::optional<Fault> fault_of(framing::StartFailure why);
/// What became of the TCP connection.
[[nodiscard]] StreamEnd end_of(framing::StartFailure why);

/// \param text for its detail
template <typename Kind>
Kind ending(Connection& connection, framing::StartFailure why, const char* text) {
  auto event = about<Kind>(connection, text);
  event.fault = fault_of(why);
  event.end = end_of(why);
  return event;
}

}  // namespace rnic::device
