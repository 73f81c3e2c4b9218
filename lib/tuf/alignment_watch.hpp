/// \file
/// The middlebox detector of s.5.2: finds out whether something between the ends resegments the
/// stream.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "tuf/counters.hpp"
#include "wire/tuf.hpp"

namespace rnic::tuf {

/// Looks at each segment of an alignment mode stream and adds up evidence. A segment of one whole
/// framing PDU ends the run and resets the sum. A piece of a framing PDU is weak evidence: after
/// EMSS shrank, a window of framing PDUs is sent again in pieces. Octets of two framing PDUs in one
/// segment are strong evidence: no framing-aware TCP sends that, whatever its EMSS (s.5.1).
class AlignmentWatch {
 public:
  static constexpr uint32_t kPiece = 1;
  static constexpr uint32_t kTwoFrames = 64;

  /// \param limit the evidence in a run that makes a suspicion; 0: the watch is off
  AlignmentWatch(uint32_t limit, Counters& counters) : limit_(limit), counters_(counters) {}

  /// \param whole the range is the whole segment, not a part of it
  /// \param boundary begin of the first framing PDU known at or behind range.begin; UINT64_MAX:
  /// unknown
  /// \return true when this segment makes the run a suspicion, once a run
  bool segment(base::Range range, base::ByteView octets, bool whole, uint64_t boundary,
               wire::TufKey key) {
    const bool frame = octets.size() > wire::kTufHeaderSize && wire::is_tuf_frame(octets, key);
    if (whole && frame) {
      ++counters_.aligned_segments_in;
      run_ = 0;
      return false;
    }
    ++counters_.unaligned_segments_in;
    bool two = boundary > range.begin && boundary < range.end;
    if (boundary == range.begin && octets.size() >= wire::kTufHeaderSize) {
      two = wire::load_tuf_header(octets.data()).length + wire::kTufHeaderSize < octets.size();
    }
    const uint32_t before = run_;
    run_ += two ? kTwoFrames : kPiece;
    if (run_ < before) run_ = UINT32_MAX;
    if (limit_ == 0 || before >= limit_ || run_ < limit_) return false;
    ++counters_.middlebox_suspected;
    return true;
  }

 private:
  uint32_t limit_;
  uint32_t run_ = 0;
  Counters& counters_;
};

}  // namespace rnic::tuf
