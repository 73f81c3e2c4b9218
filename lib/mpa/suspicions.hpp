/// \file
/// Segments that nothing could prove before their commit and that were dropped on suspicion: a cut
/// FPDU and one whose length is damaged look alike when they arrive (RFC 5044 s.8, silent drop).
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.hpp"

namespace rnic::mpa {

/// The suspicions of one connection. Each entry is one dropped segment. An entry is given back when
/// all its octets have been placed and are not those that were dropped, for then the segment was
/// damaged; otherwise it stays. So at most kMost good segments of a connection are ever dropped,
/// however many are on their way. A full table says that the sender, or somebody on the path, cuts
/// FPDUs: whoever cuts is believed.
class Suspicions {
 public:
  static constexpr uint32_t kMost = 5;

  /// The sender is known to cut.
  [[nodiscard]] bool exhausted() const { return used_ == kMost; }
  /// \return whether the segment is to be dropped. A segment each octet of which comes a second
  /// time is believed: damage does not hit the same bit twice.
  [[nodiscard]] bool drop(base::Range range, base::ByteView octets);
  /// The octets of an FPDU whose CRC is right. Each octet of the stream is placed once.
  void placed(base::Range range, const uint8_t* octets) {
    if (used_ != 0) [[unlikely]]
      compare(range, octets);
  }

 private:
  struct Entry {
    base::Range range{UINT64_MAX, UINT64_MAX};  // unused: begins at UINT64_MAX
    uint32_t print = 0;
    uint32_t difference = 0;  // of the dropped octets' print and that of the placed ones
    uint64_t not_placed = 0;  // octets
  };

  [[nodiscard]] bool seen_before(base::Range range, base::ByteView octets) const;
  void compare(base::Range range, const uint8_t* octets);

  std::array<Entry, kMost> entries_{};
  uint32_t used_ = 0;
};

/// Two segments of one range whose prints are equal carry the same octets.
[[nodiscard]] uint32_t print_of(base::ByteView octets);

}  // namespace rnic::mpa
