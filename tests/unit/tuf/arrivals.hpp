/// \file
/// The receiving duties of a transport, by hand: segments arrive in any order and cut in any way;
/// the user is told of each octet once.
#pragma once

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include "llp/stream.hpp"

namespace rnic::tuf {

class Arrivals {
 public:
  /// \param begin where the stream stands
  explicit Arrivals(llp::StreamUser& user, uint64_t begin = 0) : complete(begin), user_(user) {}

  /// A segment arrives. False: the user dropped (a part of) it.
  bool receive(uint64_t offset, base::ByteView octets) {
    std::vector<base::Range> gaps;
    uint64_t at = std::max(offset, complete);
    const uint64_t end = offset + octets.size();
    while (at < end) {
      const auto above = committed_.upper_bound(at);
      if (above != committed_.begin() && at < std::prev(above)->second) {
        at = std::prev(above)->second;
        continue;
      }
      const uint64_t stop = above == committed_.end() ? end : std::min(end, above->first);
      gaps.push_back({at, stop});
      at = stop;
    }
    if (gaps.empty()) return true;
    const auto part = [&](base::Range r) { return octets.subspan(r.begin - offset, r.size()); };
    if (gaps[0].size() != octets.size()) user_.clipped({std::max(offset, complete), end});
    for (const base::Range gap : gaps) {
      if (user_.inspect(gap, part(gap), now) != llp::InspectVerdict::Accept) return false;
    }
    const uint64_t before = complete;
    for (const base::Range gap : gaps) committed_[gap.begin] = gap.end;
    for (auto it = committed_.find(complete); it != committed_.end();
         it = committed_.find(complete)) {
      complete = it->second;
    }
    for (const base::Range gap : gaps) user_.place(gap, part(gap), gap.begin == before, now);
    if (complete != before) user_.ordered(complete, now);
    return true;
  }

  uint64_t complete;  ///< in order up to here
  base::Now now{};

 private:
  llp::StreamUser& user_;
  std::map<uint64_t, uint64_t> committed_;
};

}  // namespace rnic::tuf
