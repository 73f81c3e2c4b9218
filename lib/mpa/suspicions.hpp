/// \file
/// Segments that nothing could prove before their commit and that were dropped on suspicion: a cut
/// FPDU and one whose length is damaged look alike when they arrive (RFC 5044 s.8, silent drop).
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.hpp"

namespace rnic::mpa {

/// The suspicions of one connection: an entry for each dropped segment. The entry is given back
/// when all octets of the segment have been placed and differ from those that were dropped, since
/// the segment was damaged then; otherwise it stays. So a connection drops at most kMost good
/// segments in its whole life, however many are under way. A full table shows that the sender, or
/// somebody on the path, cuts FPDUs, and from then on nothing is dropped on suspicion.
class Suspicions {
 public:
  static constexpr uint32_t kMost = 5;

  /// The table is full: FPDUs are being cut on the way, and nothing is dropped on suspicion any
  /// more.
  [[nodiscard]] bool exhausted() const { return used_ == kMost; }
  /// \return the segment is to be dropped. A segment whose octets have all come before is believed,
  /// since damage does not hit the same bit twice
  [[nodiscard]] bool drop(base::Range range, base::ByteView octets);
  /// The octets of an FPDU whose CRC is right were placed, which happens to each octet once.
  void placed(base::Range range, const uint8_t* octets) {
    if (used_ != 0) [[unlikely]]
      compare(range, octets);
  }
  /// Recounts the entries.
  void validate() const;

 private:
  struct Entry {
    base::Range range{UINT64_MAX, UINT64_MAX};  // unused: begins at UINT64_MAX
    uint32_t checksum = 0;
    uint32_t difference = 0;  // of the checksums of the dropped octets and of the placed ones
    uint64_t not_placed = 0;  // octets of the range that were not placed yet
  };

  [[nodiscard]] bool seen_before(base::Range range, base::ByteView octets) const;
  void compare(base::Range range, const uint8_t* octets);

  std::array<Entry, kMost> entries_{};
  uint32_t used_ = 0;
};

/// Two segments of one range whose checksums are equal carry the same octets.
[[nodiscard]] uint32_t checksum_of(base::ByteView octets);

}  // namespace rnic::mpa
