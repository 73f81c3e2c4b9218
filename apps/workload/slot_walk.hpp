/// \file
/// The way through the slots of a region in pieces, for who has others to serve between them.
#pragma once

#include <cstdint>

namespace rnic::workload {

class SlotWalk {
 public:
  struct Piece {
    uint64_t offset = 0;  ///< in the region; a multiple of 8 where the stride is one
    uint64_t octets = 0;  ///< of one slot
  };

  /// From slot `first` to the one before `end`: `octets` of each, which lie `stride` apart.
  void begin(uint32_t first, uint32_t end, uint64_t octets, uint64_t stride) {
    slot_ = first;
    end_ = octets == 0 ? first : end;
    octets_ = octets;
    stride_ = stride;
    done_ = 0;
  }
  [[nodiscard]] bool is_under_way() const { return slot_ < end_; }
  /// Only when is_under_way(). \param most octets, at least 8
  Piece next(uint64_t most) {
    const uint64_t left = octets_ - done_;
    const Piece piece{slot_ * stride_ + done_, left <= most ? left : most / 8 * 8};
    done_ += piece.octets;
    if (done_ != octets_) return piece;
    done_ = 0;
    ++slot_;
    return piece;
  }

 private:
  uint32_t slot_ = 0;
  uint32_t end_ = 0;
  uint64_t octets_ = 0;
  uint64_t stride_ = 0;
  uint64_t done_ = 0;  // Invariant: < octets_, a multiple of 8
};

}  // namespace rnic::workload
