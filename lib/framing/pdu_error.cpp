#include "framing/pdu_error.hpp"

namespace rnic::framing {

const char* to_string(PduError error) {
  switch (error) {
    case PduError::None: return "none";
    case PduError::Crc: return "a wrong CRC";
    case PduError::BadMarker: return "a marker points elsewhere than to the next PDU";
    case PduError::BadKey: return "a framing PDU with a wrong key";
    case PduError::BadLength: return "a framing PDU and the PDUs in it do not fit together";
    case PduError::PduTooLong: return "a PDU longer than what was agreed";
  }
  return "unknown";
}

}  // namespace rnic::framing
