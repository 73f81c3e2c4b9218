/// \file
/// Reads the FPDUs of one direction: finds their ends and proves them (RFC 5044 s.4.4, s.6).
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "base/endian.hpp"
#include "crc/crc.hpp"
#include "framing/hold_store.hpp"
#include "framing/pdu_span.hpp"
#include "llp/framing.hpp"
#include "mpa/marker_grid.hpp"

namespace rnic::mpa {

class FpduReader {
 public:
  FpduReader() = default;
  /// \param all_markers look at each marker of an FPDU, not only at those that tell where one
  ///        begins; without CRC all are looked at anyway
  FpduReader(const MarkerGrid& grid, bool crc, bool all_markers)
      : grid_(grid), crc_(crc), all_markers_(all_markers || !crc) {}

  [[nodiscard]] const MarkerGrid& grid() const { return grid_; }
  [[nodiscard]] bool crc() const { return crc_; }

  /// Finds the place of the FPDU that begins at `begin`. Its length may be among held octets or in
  /// the segment `octets` at `range`; false when it has not come.
  [[nodiscard]] bool find(const framing::HeldOctets& held, uint64_t begin, base::Range range,
                          base::ByteView octets, framing::PduSpan& span) const;
  /// Finds it among held octets alone.
  [[nodiscard]] bool find(const framing::HeldOctets& held, uint64_t begin,
                          framing::PduSpan& span) const {
    return find(held, begin, {}, {}, span);
  }
  /// Stream offset of the FPDU to which a marker points; kUnlocated when the marker points to none.
  [[nodiscard]] uint64_t marker_target(uint64_t marker, const uint8_t* octets) const;
  /// Checks the CRC and the markers of an FPDU whose octets lie at `data` in one piece. \return its
  /// error, or None
  [[nodiscard]] framing::PduError verify(const framing::PduSpan& span, const uint8_t* data) const {
    // The CRC comes first (RFC 5044 s.4.4), then the markers inside (s.8, error 3).
    if (crc_) {
      const size_t covered = span.size() - wire::kMpaCrcSize;
      const uint32_t value = crc::finish(crc::update(crc::kInit, data, covered));
      if (value != base::load_le32(data + covered)) return framing::PduError::Crc;
    }
    // RFC 5044 s.8 leaves open which markers are checked. Without a CRC all are checked, since
    // nothing else would reveal a wrong pointer.
    if (!grid_.on() || !all_markers_) return framing::PduError::None;
    return verify_markers(span, data);
  }

 private:
  [[nodiscard]] framing::PduError verify_markers(const framing::PduSpan& span,
                                                 const uint8_t* data) const;

  MarkerGrid grid_;
  bool crc_ = true;
  bool all_markers_ = true;
};

}  // namespace rnic::mpa
