#include "mpa/marker_grid.hpp"

#include <algorithm>

#include "framing/mulpdu.hpp"

namespace rnic::mpa {

using framing::kMulpduMax;
using framing::kMulpduMin;

uint32_t MarkerGrid::count(uint64_t begin, uint64_t end) const {
  if (!on_ || end <= begin) return 0;
  const uint64_t first = next(begin);
  if (first >= end) return 0;
  return 1 + static_cast<uint32_t>((end - first - 1) / wire::kMpaMarkerInterval);
}

uint32_t mulpdu_of(uint32_t emss, bool markers) {
  uint32_t overhead = wire::kMpaLengthSize + wire::kMpaCrcSize + emss % 4;
  if (markers) {
    overhead +=
        wire::kMpaMarkerSize * ((emss + wire::kMpaMarkerInterval - 1) / wire::kMpaMarkerInterval);
  }
  return std::clamp(emss > overhead ? emss - overhead : 0, kMulpduMin, kMulpduMax);
}

}  // namespace rnic::mpa
