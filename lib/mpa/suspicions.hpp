/// \file
/// Segments that nothing could prove before their commit and that were dropped on suspicion: a cut
/// FPDU and one whose length is damaged look alike when they arrive (RFC 5044 s.8, silent drop).
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.hpp"
#include "mpa/markers.hpp"

namespace rnic::mpa {

/// What the FPDU that raised the doubt said of itself.
struct FpduClaim {
  uint64_t begin = UINT64_MAX;  ///< where it was taken to begin
  uint64_t end = UINT64_MAX;    ///< where it said that it ends; UINT64_MAX: not known
  bool whole = false;           ///< all of it was there, and its CRC was wrong
};

/// The suspicions of one connection. Each entry is one dropped segment. An entry is given back when
/// an FPDU is proven that contradicts it, for then the segment was damaged; otherwise it stays. So
/// at most kMost good segments of a connection are ever dropped, however many are on their way. A
/// full table says that the sender, or somebody on the path, cuts FPDUs: whoever cuts is believed
/// from then on.
class Suspicions {
 public:
  static constexpr uint32_t kMost = 5;

  /// The sender is known to cut.
  [[nodiscard]] bool exhausted() const { return used_ == kMost; }
  /// \return whether the segment is to be dropped. The same octets a second time are believed:
  /// damage does not hit the same bit twice.
  [[nodiscard]] bool drop(base::Range range, base::ByteView octets, const FpduClaim& claim);
  /// An FPDU whose CRC is right stands here.
  void proven(const FpduSpan& span) {
    if (used_ != 0) [[unlikely]]
      contradict(span);
  }

 private:
  struct Entry {
    base::Range range{UINT64_MAX, UINT64_MAX};  // unused: begins at UINT64_MAX
    uint32_t print = 0;
    FpduClaim claim;
  };

  [[nodiscard]] bool seen_before(base::Range range, base::ByteView octets);
  void contradict(const FpduSpan& span);
  void give_back(Entry& entry);

  std::array<Entry, kMost> entries_{};
  uint32_t used_ = 0;
};

/// Two segments of one range whose prints are equal carry the same octets.
[[nodiscard]] uint32_t print_of(base::ByteView octets);

}  // namespace rnic::mpa
