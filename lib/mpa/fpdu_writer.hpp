/// \file
/// Builds one FPDU straight into the outgoing frame: length, ULPDU with its markers, pad and CRC.
#pragma once

#include <cstddef>
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
  /// \param mulpdu  the same for those that follow in frames of their own
  FpduWriter(const MarkerGrid& grid, uint64_t offset, bool crc, uint32_t max, llp::Frame& out,
             uint32_t mulpdu = 0)
      : grid_(grid),
        out_(out),
        offset_(offset),
        max_(max),
        first_max_(max),
        mulpdu_(mulpdu),
        crc_on_(crc) {}

  void write(uint32_t ulpdu_length, base::ByteView header,
             std::span<const base::ByteSpan> payload) override;
  llp::UlpduRoom next(const llp::PulledUlpdu& written) override;
  [[nodiscard]] bool append(const llp::PulledUlpdu& before, base::ByteView header,
                            base::ByteSpan payload) override;
  uint32_t append_series(llp::PulledUlpdu& before, llp::UlpduSeries& series,
                         uint32_t most) override;
  /// The FPDU was written, the last one where there are several.
  [[nodiscard]] bool complete() const { return size_ != 0; }
  /// Octets of that FPDU.
  [[nodiscard]] uint32_t size() const { return size_; }
  /// How many were written, and the markers in all of them.
  [[nodiscard]] uint32_t fpdus() const { return fpdus_; }
  [[nodiscard]] uint32_t markers() const { return markers_; }

 private:
  struct Sum;

  [[nodiscard]] bool make_place(const llp::PulledUlpdu& before, size_t length);
  [[nodiscard]] uint32_t room_behind() const;
  [[nodiscard]] uint32_t room_of_next() const;
  [[nodiscard]] uint8_t* open(uint32_t ulpdu_length);
  [[nodiscard]] Sum open(uint32_t ulpdu_length, base::ByteView header);
  void close(uint32_t ulpdu_length, Sum& sum) const;
  void put(base::ByteSpan piece, Sum& sum) const;
  void put(std::span<const base::ByteSpan> payload, size_t left, Sum& sum) const;
  void finish(Sum& sum) const;
  void write_between_markers(uint32_t ulpdu_length, base::ByteView header,
                             std::span<const base::ByteSpan> payload);

  const MarkerGrid& grid_;
  llp::Frame& out_;
  uint64_t offset_;  // stream offset of the first octet
  uint32_t max_;
  const uint32_t first_max_;
  const uint32_t mulpdu_;
  uint32_t size_ = 0;  // of the FPDU; 0: it was not written
  uint32_t fpdus_ = 0;
  uint32_t markers_ = 0;
  const bool crc_on_;
};

}  // namespace rnic::mpa
