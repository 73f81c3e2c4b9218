/// \file
/// Builds one FPDU straight into the outgoing frame: length, ULPDU with its markers, pad and CRC.
#pragma once

#include <cstdint>

#include "crc/crc.hpp"
#include "llp/llp.hpp"
#include "mpa/marker_grid.hpp"

namespace rnic::mpa {

/// Without markers a long piece is read once: crc::copy copies and sums it in one pass. Short
/// pieces (headers, pad) are copied, and summed together before the next long one. With markers
/// everything is copied, and summed at the end.
class FpduWriter final : public llp::UlpduWriter {
 public:
  /// \param offset  stream offset of the FPDU's first octet
  /// \param max     longest ULPDU that may be begun
  FpduWriter(const MarkerGrid& grid, uint64_t offset, bool crc, uint32_t max, llp::Frame& out)
      : grid_(grid), out_(out), offset_(offset), max_(max), crc_on_(crc) {}

  void write(uint32_t ulpdu_length, base::ByteView header,
             std::span<const base::ByteSpan> payload) override;
  /// The FPDU was written.
  [[nodiscard]] bool complete() const { return at_ != nullptr; }
  [[nodiscard]] uint32_t markers() const { return markers_; }

 private:
  void put(base::ByteView header, std::span<const base::ByteSpan> payload, size_t left);
  void put_between_markers(base::ByteView header, std::span<const base::ByteSpan> payload,
                           size_t left);
  void put_between_markers(const uint8_t* src, uint32_t n);
  /// Writes pad, a marker if one is due, and CRC.
  void finish(uint32_t pad);
  void write_due_marker();

  const MarkerGrid& grid_;
  llp::Frame& out_;
  const uint64_t offset_;      // stream offset of the first octet
  uint8_t* at_ = nullptr;      // place of the next octet; nullptr: nothing was written
  uint8_t* summed_ = nullptr;  // octets before this point are in crc_
  uint32_t crc_ = crc::kInit;
  const uint32_t max_;
  uint32_t to_marker_ = 0;  // content octets until a marker is due
  uint32_t markers_ = 0;
  const bool crc_on_;
  framing::PduSpan span_;  // with markers only
};

}  // namespace rnic::mpa
