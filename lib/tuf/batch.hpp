/// \file
/// Batch: submissions that are sent as one, and their octets on the wire (s.5, s.6).
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "tuf/marker_grid.hpp"
#include "tuf/modes.hpp"
#include "tuf/submission_ring.hpp"

namespace rnic::tuf {

/// The parameters by which a sender builds the stream.
struct SendLayout {
  FramedSendMode mode = FramedSendMode::Plain;  ///< mode of the next submission
  FrameFormat format;
  /// Alignment mode: the same key for the life of the direction (s.5).
  std::optional<wire::TufKey> key;
  MarkerGrid grid;                      ///< marker mode
  uint32_t max_pdu = wire::kTufPduMax;  ///< longest PDU that is sent, marker mode
};

/// Consecutive submissions of one mode that become one framing PDU, one PDU with its markers, or
/// one buffer.
struct Batch {
  uint64_t at = 0;     ///< ring position of its first submission
  uint64_t past = 0;   ///< ring position behind its last submission
  uint32_t count = 0;  ///< submissions
  uint32_t body = 0;   ///< octets of these submissions
  uint32_t size = 0;   ///< octets in the stream, with framing header or markers
  FramedSendMode mode = FramedSendMode::Plain;
};

/// Makes batches of the submissions in the ring and writes any part of them, any number of times: a
/// retransmission is built again, with the same octets.
class BatchWriter {
 public:
  /// \param ring, layout outlive the writer
  BatchWriter(const SubmissionRing& ring, const SendLayout& layout)
      : ring_(ring), layout_(layout) {}

  /// `count` submissions from ring position `at` on, begun at stream offset `offset`.
  [[nodiscard]] Batch batch(uint64_t at, uint32_t count, uint64_t offset) const;
  /// A batch of the submission at `at` and as many behind it as fit a segment of `n` octets.
  [[nodiscard]] Batch packed(uint64_t at, uint32_t n, uint64_t offset) const;
  /// Writes octets [from, from + n) of a batch that begins at stream offset `begin`.
  void write(const Batch& b, uint64_t begin, uint32_t from, uint32_t n, uint8_t* dst) const;

 private:
  void write_body(const Batch& b, uint32_t from, uint32_t n, uint8_t* dst) const;
  void write_marked(const Batch& b, uint64_t begin, uint32_t from, uint32_t n, uint8_t* dst) const;

  const SubmissionRing& ring_;
  const SendLayout& layout_;
};

/// Octets of PDUs that fit a framing PDU in a segment of `emss` octets (s.3).
[[nodiscard]] uint32_t aligned_max(uint32_t emss);

}  // namespace rnic::tuf
