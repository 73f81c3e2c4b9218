#include "trace_check.hpp"

#include <array>

namespace rnic::simulation {

void TraceCheck::record(TraceKind kind, base::Range range, base::Now now) {
  if (file_ != nullptr) {
    static constexpr std::array kNames{"sent", "retransmitted", "in-order",  "placed-early",
                                       "held", "crc-dropped",   "delivered", "suspected"};
    std::fprintf(file_, "%.6f %s %s %llu %llu\n", static_cast<double>(base::nanos(now)) * 1e-9,
                 name_.c_str(), kNames[static_cast<size_t>(kind)],
                 static_cast<unsigned long long>(range.begin),
                 static_cast<unsigned long long>(range.end));
  }
  if (judge_ != nullptr) judge_->record(kind, range);
  switch (kind) {
    case TraceKind::InOrder:
    case TraceKind::PlacedEarly:
    case TraceKind::Held:
      // The trace begins in the middle of the stream: what came before it has arrived.
      if (!begun_ && !arrived_.insert({0, range.begin})) return;
      begun_ = true;
      if (!arrived_.insert(range)) verdict_.fail("trace", name_ + ": too many ranges to follow");
      break;
    case TraceKind::Delivered:
      if (begun_ && !arrived_.contains({0, range.end})) {
        verdict_.fail("trace", name_ + ": delivered up to " + std::to_string(range.end) +
                                   ", but octet " +
                                   std::to_string(arrived_.first_gap({0, range.end}).begin) +
                                   " has neither been placed nor held");
      }
      break;
    default: break;
  }
}

}  // namespace rnic::simulation
