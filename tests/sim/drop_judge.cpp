#include "drop_judge.hpp"

#include <algorithm>

namespace rnic::simulation {

namespace {

constexpr uint64_t kGoodSuspectedMax = 5;  // of a connection
// A piece of an FPDU may look like a whole one with a wrong CRC, once in some ten thousand.
constexpr uint64_t kGoodTakenForBadMax = 2;

std::string text_of(base::Range range) {
  return std::to_string(range.begin) + ".." + std::to_string(range.end);
}

}  // namespace

bool DropJudge::Arrival::damaged_in(base::Range part) const {
  return std::any_of(damaged.begin(), damaged.end(), [&](uint64_t d) { return part.contains(d); });
}

void DropJudge::arrived(base::Range range, std::vector<uint64_t> damaged) {
  if (!damaged.empty() && ++damages_[range.begin] > config_.drop_limit) {
    excuse_ = "more damages of one range than mpa.drop_limit";
  }
  arrivals_.push_back({range, std::move(damaged)});
}

bool DropJudge::only_good_arrived(base::Range range) const {
  bool any = false;
  for (const Arrival& arrival : arrivals_) {
    if (arrival.range.begin > range.begin || arrival.range.end < range.end) continue;
    if (arrival.damaged_in(range)) return false;
    any = true;
  }
  return any;
}

void DropJudge::record(TraceKind kind, base::Range range) {
  switch (kind) {
    case TraceKind::InOrder:
    case TraceKind::PlacedEarly: static_cast<void>(placed_.insert(range)); [[fallthrough]];
    case TraceKind::Held: return committed(range);
    case TraceKind::Delivered: delivered_ = range.end; return;
    case TraceKind::Suspected:
      if (!only_good_arrived(range)) {
        damaged_suspected_.push_back(range);
      } else if (++good_suspected_ > kGoodSuspectedMax) {
        verdict_.fail("suspicion", name_ + ": " + text_of(range) + " is the " +
                                       std::to_string(good_suspected_) +
                                       "th good segment that is dropped on suspicion");
      }
      return;
    case TraceKind::CrcDropped:
      // With a damaged piece committed the good rest of an FPDU is dropped in vain.
      if (only_good_arrived(range) && excuse_.empty() &&
          ++good_taken_for_bad_ > kGoodTakenForBadMax) {
        verdict_.fail("suspicion",
                      name_ + ": the good segment " + text_of(range) + " is dropped for its CRC");
      }
      return;
    default: return;
  }
}

void DropJudge::committed(base::Range range) {
  for (const Arrival& arrival : arrivals_) {
    for (const uint64_t octet : arrival.damaged) {
      if (!range.contains(octet) || committed_.contains({octet, octet + 1})) continue;
      const bool alone = std::none_of(arrivals_.begin(), arrivals_.end(), [&](const Arrival& a) {
        return a.range.contains(octet) && !a.damaged_in({octet, octet + 1});
      });
      if (alone) judge_octet(octet, arrival);
    }
  }
  static_cast<void>(committed_.insert(range));
}

/// Its octets are in the hands of DDP: traced as placed, or in an FPDU that is whole in the order.
bool DropJudge::placed(base::Range range) const {
  if (placed_.contains(range)) return true;
  const std::optional<base::Range> last = fpdu_at_(range.end - 1);
  return last && last->end <= delivered_;
}

/// Five suspicions are there. A damaged segment is one of them until the octets that it should have
/// had are placed: before that nobody can tell it from a cut.
bool DropJudge::known_to_cut() const {
  const auto open = std::count_if(damaged_suspected_.begin(), damaged_suspected_.end(),
                                  [&](base::Range range) { return !placed(range); });
  return good_suspected_ + static_cast<uint64_t>(open) >= kGoodSuspectedMax;
}

/// A damaged octet was committed: only an exception allows it.
void DropJudge::judge_octet(uint64_t octet, const Arrival& arrival) {
  took_damage_ = true;
  if (!config_.silent_drop || !config_.crc || !excuse_.empty()) return;
  const std::optional<base::Range> fpdu = fpdu_at_(octet);
  const bool cut = fpdu && (fpdu->begin < arrival.range.begin || fpdu->end > arrival.range.end);
  if (known_to_cut()) {
    excuse_ = "the sender is known to cut";
  } else if (cut && !config_.markers_receive) {
    excuse_ = "the FPDU was cut, and there are no markers";
  } else {
    verdict_.fail("silent drop", name_ + ": octet " + std::to_string(octet) + " of segment " +
                                     text_of(arrival.range) + ", FPDU " +
                                     (fpdu ? text_of(*fpdu) : "unknown") +
                                     ", is damaged and was committed");
  }
}

}  // namespace rnic::simulation
