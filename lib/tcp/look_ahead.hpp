/// \file
/// LookAhead: fetches what the next connections need while another one sends.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/prefetch.hpp"
#include "llp/stream.hpp"

namespace rnic::tcp {

/// A core has some sixteen lines on their way to its first cache at once, and whoever asks for more
/// waits, be it for a line that is near. So a few are asked for at a time, and other work comes
/// between: the octets of segments.
///
/// Where memory is, is all that is known of it. It is never read, and may be gone.
class LookAhead {
 public:
  static constexpr uint32_t kLinesAtATime = 10;

  /// A turn begins. What was left of the last one is forgotten.
  /// \param used what the user of the next connection works with
  /// \param after, octets the connection behind that one; octets 0: there is none
  void begin(const llp::WorkingSet& used, const void* after, size_t octets) {
    first_ = 0;
    pieces_[0] = {static_cast<const char*>(after), octets};
    for (size_t i = 0; i < used.parts.size(); ++i) {
      pieces_[i + 1] = {static_cast<const char*>(used.parts[i].at), used.parts[i].sending};
    }
  }
  /// Some segments are going to be sent: a few more lines come meanwhile.
  void step() {
    if (first_ != pieces_.size()) [[unlikely]]
      fetch(kLinesAtATime * kLine);
  }
  /// Octets that were not asked for yet.
  [[nodiscard]] size_t left() const {
    size_t octets = 0;
    for (size_t i = first_; i < pieces_.size(); ++i) octets += pieces_[i].left;
    return octets;
  }
  /// The turn is over: what has not been asked for is asked for now.
  void finish() {
    while (first_ != pieces_.size()) fetch(SIZE_MAX);
  }

 private:
  static constexpr size_t kLine = 64;  // octets

  struct Piece {
    const char* at;
    size_t left;  // octets
  };

  /// Asks for as much of the first piece.
  void fetch(size_t most) {
    Piece& piece = pieces_[first_];
    const size_t octets = std::min(piece.left, most);
    base::prefetch(piece.at, octets);
    piece.at += octets;
    piece.left -= octets;
    if (piece.left == 0) ++first_;
  }

  std::array<Piece, 1 + std::tuple_size_v<decltype(llp::WorkingSet::parts)>> pieces_{};
  size_t first_ = pieces_.size();  // that is not fetched
};

}  // namespace rnic::tcp
