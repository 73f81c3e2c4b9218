#include "tuf/modes.hpp"

namespace rnic::tuf {

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
