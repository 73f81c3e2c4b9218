/// \file
/// Memory of simulated applications, at the same addresses in each process. Tagged offsets of
/// regions that are not zero-based are addresses: they travel in FPDUs, siw cuts its Read Responses
/// by them, and what is damaged or cut depends on them. With the addresses of the heap a world
/// would depend on the worlds before it and on where the system puts a process.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"

namespace rnic::simulation {

/// Octets of the address space of one world after the other; given back when this ends. When all
/// are given back, the next are at the beginning again.
class PlacedOctets {
 public:
  /// \param octets not 0; they hold what was there before. Throws std::bad_alloc when the machine
  /// has no more.
  explicit PlacedOctets(uint64_t octets);
  ~PlacedOctets();
  PlacedOctets(const PlacedOctets&) = delete;
  PlacedOctets& operator=(const PlacedOctets&) = delete;

  [[nodiscard]] uint8_t* data() { return begin_; }
  [[nodiscard]] const uint8_t* data() const { return begin_; }
  [[nodiscard]] uint64_t size() const { return size_; }

 private:
  uint8_t* begin_;
  uint64_t size_;
};

}  // namespace rnic::simulation
