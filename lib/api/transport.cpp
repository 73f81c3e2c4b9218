#include "rnic/transport.hpp"

namespace rnic {

const char* to_string(StreamState state) {
  switch (state) {
    case StreamState::Connecting: return "connecting";
    case StreamState::Open: return "open";
    case StreamState::Ended: return "ended";
  }
  return "unknown";
}

const char* to_string(StreamEnd end) {
  switch (end) {
    case StreamEnd::Closed: return "closed";
    case StreamEnd::PeerReset: return "reset by peer";
    case StreamEnd::TimedOut: return "timed out";
    case StreamEnd::Refused: return "refused";
    case StreamEnd::Aborted: return "aborted";
    case StreamEnd::Unreachable: return "unreachable";
  }
  return "unknown";
}

const char* to_string(FramedSendMode mode) {
  switch (mode) {
    case FramedSendMode::Plain: return "plain";
    case FramedSendMode::Atomic: return "atomic";
    case FramedSendMode::Align: return "alignment";
    case FramedSendMode::Markers: return "markers";
  }
  return "unknown";
}

const char* to_string(FramedReceiveMode mode) {
  switch (mode) {
    case FramedReceiveMode::Plain: return "plain";
    case FramedReceiveMode::Align: return "alignment";
    case FramedReceiveMode::Markers: return "markers";
  }
  return "unknown";
}

}  // namespace rnic
