/// \file
/// PduWriter: builds ULPDUs of DDP straight into the outgoing frame, in a framing PDU (s.5) or with
/// markers in between (s.6).
#pragma once

#include <cstdint>

#include "llp/llp.hpp"
#include "tuf/marker_grid.hpp"

namespace rnic::tuf {

/// Octets of the length in front of a ULPDU, which is sent if the framing does not tell the length.
inline constexpr uint32_t kUlpduLengthSize = 2;

/// Takes one ULPDU of DDP.
class PduWriter final : public llp::UlpduWriter {
 public:
  /// \param offset stream offset of the first octet. \param header octets left free in front for a
  /// framing header. \param prefix the length of the ULPDU is written in front of it. \param max
  /// the longest ULPDU
  PduWriter(const MarkerGrid& grid, uint64_t offset, uint32_t header, bool prefix, uint32_t max,
            llp::Frame& out)
      : grid_(grid), out_(out), offset_(offset), header_(header), max_(max), prefix_(prefix) {}

  void write(uint32_t ulpdu_length, base::ByteView header,
             std::span<const base::ByteSpan> payload) override;
  /// A ULPDU of the announced length was written.
  [[nodiscard]] bool complete() const { return begun_ && left_ == 0; }
  [[nodiscard]] uint32_t markers() const { return markers_; }
  /// The place of the framing header; valid after write().
  [[nodiscard]] uint8_t* frame() const { return frame_; }

 private:
  void begin(uint32_t ulpdu_length);
  void put(base::ByteView octets);
  void copy(const uint8_t* src, uint32_t n);
  void write_due_marker();

  const MarkerGrid& grid_;
  llp::Frame& out_;
  uint64_t offset_;   // stream offset of at_
  uint64_t end_ = 0;  // stream offset behind the PDU
  uint8_t* frame_ = nullptr;
  uint8_t* at_ = nullptr;  // place of the next octet
  uint32_t header_;
  uint32_t max_;
  uint32_t left_ = 0;
  uint32_t markers_ = 0;
  bool prefix_;
  bool begun_ = false;
  bool content_ = false;  // an octet that is no marker was written
};

}  // namespace rnic::tuf
