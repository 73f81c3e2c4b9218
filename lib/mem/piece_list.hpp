/// \file
/// Memory of several pieces, seen as one range of offsets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace rnic::mem {

/// The pieces of a region in the order of their offsets, which run from 0 without a gap. All memory
/// is taken at construction.
class PieceList {
 public:
  /// A place in a piece, and how many octets of the piece begin there.
  struct Place {
    uint8_t* at;
    uint64_t run;
  };

  explicit PieceList(uint32_t capacity) : capacity_(capacity) { pieces_.reserve(capacity); }

  [[nodiscard]] uint64_t length() const { return pieces_.empty() ? 0 : pieces_.back().end; }
  [[nodiscard]] size_t size() const { return pieces_.size(); }
  [[nodiscard]] bool full() const { return pieces_.size() == capacity_; }
  void clear() { pieces_.clear(); }
  /// Adds a piece. Precondition: not full(). \param length > 0; with all before it less than 2^64
  void add(uint8_t* address, uint64_t length) {
    pieces_.push_back({address, this->length() + length});
  }

  /// \param offset below length()
  [[nodiscard]] Place at(uint64_t offset) const {
    const auto piece = std::upper_bound(pieces_.begin(), pieces_.end(), offset,
                                        [](uint64_t o, const Piece& p) { return o < p.end; });
    const uint64_t start = piece == pieces_.begin() ? 0 : (piece - 1)->end;
    return {piece->address + (offset - start), piece->end - offset};
  }
  /// Calls `visit(address, length)` for each piece.
  template <typename F>
  void for_each(F&& visit) const {
    uint64_t start = 0;
    for (const Piece& piece : pieces_) {
      visit(piece.address, piece.end - start);
      start = piece.end;
    }
  }

 private:
  struct Piece {
    uint8_t* address;
    uint64_t end;  // offset behind its last octet
  };

  uint32_t capacity_;
  std::vector<Piece> pieces_;
};

}  // namespace rnic::mem
