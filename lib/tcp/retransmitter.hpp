/// \file
/// Retransmission of whole segments with their first boundaries, or of the pieces of a record that
/// does not fit a segment any more.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "base/time.hpp"
#include "tcp/attempt.hpp"
#include "tcp/connection_core.hpp"
#include "tcp/flight.hpp"
#include "tcp/segment_writer.hpp"

namespace rnic::tcp {

/// The progress of the retransmission of a record in pieces: the port may be full between two
/// pieces.
class CutProgress {
 public:
  /// \param live the unacknowledged part of the record. \return the offset at which its next piece
  /// begins
  [[nodiscard]] uint64_t resume(base::Range live) const {
    return live.contains(next_) ? next_ : live.begin;
  }
  void sent_to(uint64_t offset) { next_ = offset; }
  /// The whole record was sent, or counts as lost: the next retransmission starts from its first
  /// octet.
  void forget() { next_ = 0; }

 private:
  uint64_t next_ = 0;
};

/// A Retransmitter has no state of its own: the sender makes one for each step.
class Retransmitter {
 public:
  /// All parameters outlive this. \param progress is kept between two steps
  Retransmitter(const ConnectionCore& core, Flight& flight, SegmentWriter& writer,
                CutProgress& progress)
      : core_(core), flight_(flight), writer_(writer), progress_(progress) {}

  /// Sends the segment that begins with this record. \param emss its largest payload
  [[nodiscard]] Attempt send(uint64_t number, uint32_t emss, base::Now now);

 private:
  [[nodiscard]] Attempt send_whole(uint64_t number, uint32_t emss, base::Now now);
  [[nodiscard]] Attempt send_cut(uint64_t number, uint32_t emss, base::Now now);
  /// Keeps a copy of the record, from which all its pieces are sent. \return Sent: there is a copy
  [[nodiscard]] Attempt keep_copy(uint64_t number);
  void count(uint32_t octets);

  const ConnectionCore& core_;
  Flight& flight_;
  SegmentWriter& writer_;
  CutProgress& progress_;
};

}  // namespace rnic::tcp
