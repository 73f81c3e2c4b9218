/// \file
/// Retransmission: of whole segments with their first boundaries, or of pieces of a record that
/// does not fit any more.
#pragma once

#include <cstdint>

#include "base/time.hpp"
#include "tcp/attempt.hpp"
#include "tcp/connection_core.hpp"
#include "tcp/flight.hpp"
#include "tcp/segment_writer.hpp"

namespace rnic::tcp {

class Retransmitter {
 public:
  /// All parameters outlive this. \param piece_next progress in the record that is being cut, which
  /// the sender keeps between two calls; 0 before the first
  Retransmitter(const ConnectionCore& core, Flight& flight, SegmentWriter& writer,
                uint64_t& piece_next)
      : core_(core), flight_(flight), writer_(writer), piece_next_(piece_next) {}

  /// Sends the segment that begins with this record. \param emss its largest payload
  [[nodiscard]] Attempt send(uint64_t number, uint32_t emss, base::Now now);

 private:
  [[nodiscard]] Attempt send_whole(uint64_t number, uint32_t emss, base::Now now);
  [[nodiscard]] Attempt send_cut(uint64_t number, uint32_t emss, base::Now now);
  /// Keeps a copy of the record, from which all its pieces are sent. \return Sent: there is one
  [[nodiscard]] Attempt keep_copy(uint64_t number);
  void count(uint32_t octets);

  const ConnectionCore& core_;
  Flight& flight_;
  SegmentWriter& writer_;
  uint64_t& piece_next_;
};

}  // namespace rnic::tcp
