/// \file
/// The errors that a receiver can find in a PDU of a framing protocol.
#pragma once

#include <cstdint>

namespace rnic::framing {

/// An error in a PDU, behind which the rest of the stream cannot be read. Each framing has only
/// some of these errors and reports them to DDP as llp::FramingError.
enum class PduError : uint8_t {
  None,
  Crc,         ///< MPA: the CRC does not match the FPDU (RFC 5044 s.8, error 2)
  BadMarker,   ///< a marker does not point to the begin of a PDU
  BadKey,      ///< ULP framing: a framing PDU at the expected place has another key
  BadLength,   ///< ULP framing: a framing PDU and the PDUs in it do not fit together
  PduTooLong,  ///< ULP framing: a PDU is longer than agreed
};
[[nodiscard]] const char* to_string(PduError error);

}  // namespace rnic::framing
