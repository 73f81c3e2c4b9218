/// \file
/// Copies between octets that lie together and a run that has gaps at equal distances, as a stream
/// with markers has (RFC 5044 s.4.3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rnic::llp {

/// Where a run of octets has gaps.
struct Spacing {
  static constexpr uint32_t kLeastBetween = 64;
  /// Octets from which on a kernel is quicker than copies of the pieces: how many lines there are
  /// in each piece, which a processor guesses by what it has seen, is another in each short run.
  static constexpr size_t kMany = 2048;

  uint32_t first = 0;    ///< octets in front of the first gap; 0: the run begins with it
  uint32_t between = 0;  ///< octets between two gaps, at least kLeastBetween
  uint32_t gap = 0;      ///< octets of a gap

  /// \return the gaps in front of the last one of `n` octets
  [[nodiscard]] uint32_t gaps(size_t n) const {
    return n <= first ? 0 : 1 + (static_cast<uint32_t>(n) - first - 1) / between;
  }
};

/// Copies between the pieces one by one would store each line of 64 octets in two parts, as no
/// piece begins with a line. A kernel fills lines.
struct SpacedKernel {
  const char* name;
  /// Copies the n octets of a run with gaps to `dst`, one behind the other.
  void (*gather)(uint8_t* dst, const uint8_t* src, size_t n, const Spacing& spacing);
  /// Copies n octets into a run with gaps. What gaps in front of the last octet have afterwards is
  /// not said; nothing else outside of the pieces is written.
  void (*spread)(uint8_t* dst, const uint8_t* src, size_t n, const Spacing& spacing);
};

/// The kernel that suits this CPU; it is chosen when it is first asked for. Any thread may ask.
[[nodiscard]] const SpacedKernel& spaced_kernel();
/// The kernels that this CPU has; the first one runs on each.
[[nodiscard]] std::vector<SpacedKernel> spaced_kernels();

}  // namespace rnic::llp
