#include "mpa/suspicions.hpp"

#include "crc/crc.hpp"

namespace rnic::mpa {

uint32_t print_of(base::ByteView octets) {
  return crc::update(crc::kInit, octets.data(), octets.size());
}

bool Suspicions::drop(base::Range range, base::ByteView octets, const FpduClaim& claim) {
  if (used_ != 0 && seen_before(range, octets)) return false;
  if (exhausted()) return false;
  for (Entry& entry : entries_) {
    if (entry.range.begin != UINT64_MAX) continue;
    entry = {range, print_of(octets), claim};
    ++used_;
    return true;
  }
  return false;
}

/// A retransmission may bring more than the first transmission did.
bool Suspicions::seen_before(base::Range range, base::ByteView octets) {
  const Entry* same = nullptr;
  for (const Entry& entry : entries_) {
    if (entry.range.begin != range.begin || entry.range.size() > octets.size()) continue;
    if (print_of(octets.first(entry.range.size())) == entry.print) same = &entry;
  }
  if (same == nullptr) return false;
  for (Entry& entry : entries_) {
    // One of two kinds came twice, so the other one was damaged.
    if (entry.range == same->range && entry.print != same->print) give_back(entry);
  }
  return true;
}

/// An FPDU that begins where the claim does: it was a cut if it ends as the claim says, and damage
/// if it does not, or if the claim was whole and wrong.
void Suspicions::contradict(const FpduSpan& span) {
  for (Entry& entry : entries_) {
    if (entry.claim.begin != span.begin || entry.range.begin == UINT64_MAX) continue;
    if (entry.claim.whole || (entry.claim.end != UINT64_MAX && entry.claim.end != span.end)) {
      give_back(entry);
    }
  }
}

void Suspicions::give_back(Entry& entry) {
  entry = {};
  --used_;
}

}  // namespace rnic::mpa
