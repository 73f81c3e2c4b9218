/// \file
/// Where a PDU with its framing lies in the stream.
#pragma once

#include <cstdint>

namespace rnic::framing {

/// The PDUs of a stream lie one behind the other: the next one begins where this one ends.
struct PduSpan {
  uint64_t begin = 0;   ///< first octet: a marker or framing header in front of it if there is one
  uint64_t header = 0;  ///< MPA: ULPDU_Length; ULP framing: the PDU itself
  uint64_t end = 0;     ///< behind the last octet of its own
  uint32_t ulpdu_length = 0;  ///< octets of the ULPDU in it, markers not counted
  uint64_t unit_end = 0;      ///< ULP framing, alignment mode: behind its framing PDU

  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(end - begin); }
};

}  // namespace rnic::framing
