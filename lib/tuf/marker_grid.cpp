#include "tuf/marker_grid.hpp"

#include <algorithm>

namespace rnic::tuf {

uint64_t MarkerGrid::end_of(uint64_t begin, uint64_t content) const {
  if (!on()) return begin + content;
  uint64_t at = begin;
  while (content != 0) {
    const uint64_t marker = next(at);
    const uint64_t run = std::min(marker - at, content);
    at += run;
    content -= run;
    if (content != 0) at += wire::kTufMarkerSize;
  }
  return at;
}

uint32_t MarkerGrid::count(uint64_t begin, uint64_t end) const {
  uint32_t markers = 0;
  for (uint64_t at = next(begin); at < end; at = next(at + 1)) ++markers;
  return markers;
}

bool MarkerGrid::change_interval(uint64_t offset, uint16_t interval, uint64_t keep) {
  if (change_ != UINT64_MAX) {
    if (change_ >= keep) return false;
    start_ = change_;
    interval_ = later_;
  }
  change_ = next(offset);
  later_ = interval;
  return true;
}

uint32_t marked_pdu_max(const MarkerGrid& grid, uint64_t begin) {
  const uint64_t first = grid.after(begin);
  const uint64_t end = first + wire::kTufPduMax;
  uint64_t content = wire::kTufPduMax;
  for (uint64_t marker = grid.next(first); marker < end; marker = grid.next(marker + 1)) {
    content -= std::min<uint64_t>(wire::kTufMarkerSize, end - marker);
  }
  return static_cast<uint32_t>(content);
}

}  // namespace rnic::tuf
