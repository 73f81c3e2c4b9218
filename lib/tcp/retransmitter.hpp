/// \file
/// Sending again: whole segments with the boundaries they had, or pieces of a record that does not
/// fit any more.
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
  /// All of them outlive this. \param piece_next progress of the record that is cut: what the
  /// sender keeps between two calls, 0 before the first
  Retransmitter(const ConnectionCore& core, Flight& flight, SegmentWriter& writer,
                uint64_t& piece_next)
      : core_(core), flight_(flight), writer_(writer), piece_next_(piece_next) {}

  /// The segment that begins with this record. \param emss its longest payload
  [[nodiscard]] Attempt send(uint64_t number, uint32_t emss, base::Now now);

 private:
  [[nodiscard]] Attempt send_whole(uint64_t number, uint32_t emss, base::Now now);
  [[nodiscard]] Attempt send_cut(uint64_t number, uint32_t emss, base::Now now);
  /// A copy of the record, of which all its pieces come. \return Yes: it is there
  [[nodiscard]] Attempt keep_copy(uint64_t number);
  void count(uint32_t octets);

  const ConnectionCore& core_;
  Flight& flight_;
  SegmentWriter& writer_;
  uint64_t& piece_next_;
};

}  // namespace rnic::tcp
