#include "device/connection_events.hpp"

namespace rnic::device {

/// The failures of a start-up as MPA's own error codes (RFC 5044 s.8, RFC 6581 s.8).
std::optional<Fault> fault_of(framing::StartFailure why) {
  llp::FramingError error = llp::FramingError::None;
  switch (why) {
    case framing::StartFailure::BadKey:
    case framing::StartFailure::BothInitiators:
    case framing::StartFailure::BadRevision:
    case framing::StartFailure::BadLength:
    case framing::StartFailure::NotEnhanced:
    case framing::StartFailure::ForeignFrame:
    case framing::StartFailure::UnexpectedData: error = llp::FramingError::BadStartFrame; break;
    case framing::StartFailure::OutOfMemory:
    case framing::StartFailure::LocalError: error = llp::FramingError::LocalCatastrophic; break;
    case framing::StartFailure::InsufficientReads:
      error = llp::FramingError::InsufficientIrd;
      break;
    case framing::StartFailure::NoMatchingRtr: error = llp::FramingError::NoMatchingRtr; break;
    case framing::StartFailure::TimedOut:
    case framing::StartFailure::StreamEnded:
    case framing::StartFailure::NoReply:
    case framing::StartFailure::ResetBeforeReply:
    case framing::StartFailure::RtrMissing:
    case framing::StartFailure::RtrBroken:
    case framing::StartFailure::Refused:
    case framing::StartFailure::Unreachable:
    case framing::StartFailure::Unanswered: error = llp::FramingError::Closed; break;
    default: return std::nullopt;
  }
  return Fault{FaultLayer::Llp, 0, static_cast<uint8_t>(error), "MPA-8-01"};
}

StreamEnd end_of(framing::StartFailure why) {
  switch (why) {
    case framing::StartFailure::Refused: return StreamEnd::Refused;
    case framing::StartFailure::Unreachable: return StreamEnd::Unreachable;
    case framing::StartFailure::Unanswered:
    case framing::StartFailure::TimedOut:
    case framing::StartFailure::RtrMissing: return StreamEnd::TimedOut;
    default: return StreamEnd::Closed;
  }
}

event::Disconnected disconnected(const QueuePair& qp, const Endpoint& local,
                                 const Endpoint& remote, const char* why) {
  event::Disconnected event;
  event.qp = qp.number();
  event.context = qp.context();
  event.local = local;
  event.remote = remote;
  event.detail = base::worded([&] { return why; });
  event.end = StreamEnd::Aborted;
  return event;
}

}  // namespace rnic::device
