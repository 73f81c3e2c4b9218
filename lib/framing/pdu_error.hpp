/// \file
/// The errors of PDUs of framing protocols.
#pragma once

#include <cstdint>

namespace rnic::framing {

/// The receiver of a framing has found a PDU wrong. The rest of the stream cannot be read. Each
/// framing has some of them only, and tells DDP by llp::FramingError.
enum class PduError : uint8_t {
  None,
  Crc,         ///< MPA: the CRC is another one than that of the FPDU (RFC 5044 s.8, error 2)
  BadMarker,   ///< a marker points elsewhere than to the begin of a PDU
  BadKey,      ///< ULP framing: a framing PDU begins where it must, with another key
  BadLength,   ///< ULP framing: a framing PDU and the PDUs in it do not fit together
  PduTooLong,  ///< ULP framing: a PDU is longer than what was agreed
};
[[nodiscard]] const char* to_string(PduError error);

}  // namespace rnic::framing
