/// \file
/// Builds one FPDU straight into the outgoing frame: length, ULPDU with its markers, pad and CRC.
#pragma once

#include <cstdint>

#include "llp/llp.hpp"
#include "mpa/marker_grid.hpp"

namespace rnic::mpa {

/// The payload is read once: crc::copy copies and sums a long piece in one pass. Short pieces
/// (headers, markers, pad) are copied, and summed together before the next long one.
class FpduWriter final : public llp::UlpduWriter {
 public:
  /// \param offset  stream offset of the FPDU's first octet
  /// \param max     longest ULPDU that may be begun
  FpduWriter(const MarkerGrid& grid, uint64_t offset, bool crc, uint32_t max, llp::Frame& out)
      : grid_(grid), out_(out), offset_(offset), max_(max), crc_on_(crc) {}

  void begin(uint32_t ulpdu_length) override;
  void put(base::ByteView octets) override;
  /// Writes pad, a marker if one is due, and CRC. False when nothing was begun.
  bool finish();

  [[nodiscard]] uint32_t markers() const { return markers_; }

 private:
  void write_due_marker();
  void sum();

  const MarkerGrid& grid_;
  llp::Frame& out_;
  framing::PduSpan span_;
  uint64_t offset_;            // stream offset of at_
  uint8_t* at_ = nullptr;      // place of the next octet
  uint8_t* summed_ = nullptr;  // octets before this point are in crc_
  uint32_t crc_ = 0;
  uint32_t max_;
  uint32_t left_ = 0;       // octets of the ULPDU still to come
  uint32_t to_marker_ = 0;  // content octets until a marker is due
  uint32_t markers_ = 0;
  bool crc_on_;
  bool begun_ = false;
};

}  // namespace rnic::mpa
