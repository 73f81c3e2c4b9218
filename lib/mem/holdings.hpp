/// \file
/// Holdings: the parts of an STag that do not fit an entry of the table, namely pieces of memory
/// and ties to regions.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/fail.hpp"
#include "mem/dependents.hpp"
#include "mem/piece_list.hpp"

namespace rnic::mem {

/// The holding of one STag. It does not move as long as it lives.
class Holding {
 public:
  Holding(uint32_t pieces, uint32_t ties, size_t position)
      : pieces_(pieces), ties_(ties), capacity_(pieces), position_(position) {}
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;

  [[nodiscard]] const PieceList& pieces() const { return pieces_; }
  [[nodiscard]] uint32_t capacity() const { return capacity_; }

  /// Adds a piece behind those that the holding has; at most as many as it was made for.
  /// \param length > 0
  void add(uint8_t* address, uint64_t length) { pieces_.add(address, length); }
  /// Lets `slot`, to which the holding belongs, stand on a region; on at most as many regions as it
  /// was made for.
  void stand_on(Dependents& region, uint32_t slot);
  /// Removes all ties and all pieces.
  void clear();

  /// Its index in Holdings, which alone writes it.
  [[nodiscard]] size_t position() const { return position_; }
  void move_to(size_t position) { position_ = position; }

 private:
  PieceList pieces_;
  std::vector<Tie> ties_;
  uint32_t capacity_;
  size_t position_;
};

/// All holdings of a table, with a limit for the pieces that they have together.
class Holdings {
 public:
  explicit Holdings(uint64_t max_pieces) : max_pieces_(max_pieces) {}

  /// Makes a holding. ResourceExhausted: all holdings together would have too many pieces.
  /// \throw std::bad_alloc
  Result<Holding*> make(uint32_t pieces, uint32_t ties);
  /// Destroys a holding that make() made.
  void drop(Holding* holding);
  [[nodiscard]] uint64_t pieces() const { return pieces_; }

 private:
  uint64_t max_pieces_;
  uint64_t pieces_ = 0;  // sum of the capacities of all holdings
  std::vector<std::unique_ptr<Holding>> all_;
};

}  // namespace rnic::mem
