/// \file
/// Introduction: what one queue pair of the RoCE face says to the other, as MPA's private data.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace rnic::run {

/// The side that connects sends it, and the other one answers with its own.
struct Introduction {
  static constexpr uint32_t kSize = 20;
  using Octets = std::array<uint8_t, kSize>;

  uint32_t from = 0;  ///< the number of the queue pair that says so
  uint32_t to = 0;    ///< that of the peer it was told of
  uint32_t psn = 0;   ///< the first packet's number that it was told to expect of that peer

  [[nodiscard]] Octets octets() const;
  /// \return nothing: whoever sent it is no queue pair of the RoCE face
  [[nodiscard]] static std::optional<Introduction> parse(std::span<const uint8_t> octets);
  friend bool operator==(const Introduction&, const Introduction&) = default;
};

}  // namespace rnic::run
