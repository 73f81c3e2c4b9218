/// \file
/// PackStore: remembers which ULPDUs were packed into a framing PDU (s.5), until it is
/// acknowledged.
#pragma once

#include <cstdint>

#include "framing/pool.hpp"
#include "llp/stream.hpp"

namespace rnic::tuf {

/// The tag of one ULPDU. The ULPDUs of a framing PDU are chained in their order.
struct PackedUlpdu {
  llp::RecordTag tag;
  uint32_t next = framing::kNone;
};

/// One store serves all sessions of a device; its memory is taken at construction. A node stands
/// for a ULPDU, and the first node of a chain for the framing PDU.
class PackStore {
 public:
  explicit PackStore(uint32_t ulpdus) : pool_(ulpdus), capacity_(ulpdus) {}
  [[nodiscard]] static uint64_t octets_for(uint32_t ulpdus) {
    return framing::Pool<PackedUlpdu>::octets_for(ulpdus);
  }

  [[nodiscard]] uint32_t free() const { return pool_.free(); }
  [[nodiscard]] uint32_t used() const { return capacity_ - pool_.free(); }
  void validate() const { pool_.validate(); }

  /// Begins a chain; free() must not be 0. \return its node
  uint32_t begin(const llp::RecordTag& tag) {
    const uint32_t node = pool_.take();
    pool_[node] = {tag, framing::kNone};
    return node;
  }
  /// Adds a ULPDU to the chain that ends with `last`; free() must not be 0. \return the new last
  /// node
  uint32_t append(uint32_t last, const llp::RecordTag& tag) {
    const uint32_t node = begin(tag);
    pool_[last].next = node;
    return node;
  }
  [[nodiscard]] const PackedUlpdu& operator[](uint32_t node) const { return pool_[node]; }
  /// Gives a node back. \return its contents
  PackedUlpdu give(uint32_t node) {
    const PackedUlpdu held = pool_[node];
    pool_.give(node);
    return held;
  }

 private:
  framing::Pool<PackedUlpdu> pool_;
  uint32_t capacity_;
};

}  // namespace rnic::tuf
