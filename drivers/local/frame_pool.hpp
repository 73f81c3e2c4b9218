/// \file
/// FramePool: the buffers of a local port.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "port/port.hpp"

namespace rnic::local {

class FramePool {
 public:
  /// \param octets of each buffer
  FramePool(uint32_t buffers, uint32_t octets);

  /// All or nothing. \return false: there are not that many
  bool take(std::span<port::Packet> out);
  /// Takes buffers of this pool back, each once.
  void give_back(std::span<const port::Packet> packets);
  [[nodiscard]] bool is_empty() const { return unused_.empty(); }

 private:
  [[nodiscard]] uint32_t index_of(const port::Packet& packet) const;

  uint32_t octets_;
  std::vector<uint8_t> memory_;
  std::vector<uint32_t> unused_;  // a stack of indices. Invariant: room for all of them
  std::vector<bool> is_used_;
};

}  // namespace rnic::local
