#include "tuf/modes.hpp"

namespace rnic::tuf {

const char* to_string(SendMode mode) {
  switch (mode) {
    case SendMode::Plain: return "plain";
    case SendMode::Atomic: return "atomic";
    case SendMode::Align: return "alignment";
    case SendMode::Markers: return "markers";
  }
  return "unknown";
}

const char* to_string(ReceiveMode mode) {
  switch (mode) {
    case ReceiveMode::Plain: return "plain";
    case ReceiveMode::Align: return "alignment";
    case ReceiveMode::Markers: return "markers";
  }
  return "unknown";
}

const char* to_string(Error error) {
  switch (error) {
    case Error::None: return "none";
    case Error::BadKey: return "a framing PDU with a wrong key";
    case Error::BadLength: return "a framing PDU and the PDUs in it do not fit together";
    case Error::BadMarker: return "a marker points elsewhere than to the next PDU";
    case Error::PduTooLong: return "a PDU longer than what was agreed";
  }
  return "unknown";
}

}  // namespace rnic::tuf
