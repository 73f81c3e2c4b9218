/// \file
/// The place in the stream of a PDU with its framing.
#pragma once

#include <cstdint>

namespace rnic::framing {

/// Stream offsets of a PDU. The PDUs of a stream follow each other without gaps: the next one
/// begins where this one ends.
struct PduSpan {
  uint64_t begin = 0;   ///< first octet, including a marker or framing header in front of the PDU
  uint64_t header = 0;  ///< MPA: ULPDU_Length; ULP framing: the PDU itself
  uint64_t end = 0;     ///< behind the last octet of the PDU
  uint32_t ulpdu_length = 0;  ///< octets of the ULPDU, without markers
  uint64_t unit_end = 0;      ///< ULP framing, alignment mode: end of the framing PDU around it

  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(end - begin); }
};

}  // namespace rnic::framing
