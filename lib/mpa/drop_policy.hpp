/// \file
/// Silent drop (RFC 5044 s.8): an octet is committed when the CRC of its FPDU has proven it, or
/// when it cannot be proven before its commit (decision 9).
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "framing/locator.hpp"
#include "mpa/config.hpp"
#include "mpa/counters.hpp"
#include "mpa/fpdu_reader.hpp"
#include "mpa/suspicions.hpp"

namespace rnic::mpa {

/// Decides for each located segment of one connection whether the transport is to drop it, and
/// counts the drops.
class DropPolicy {
 public:
  DropPolicy(const Config& config, const FpduReader& reader, framing::HoldStore& store,
             Counters& counters)
      : enabled_(config.silent_drop),
        limit_(config.drop_limit),
        reader_(reader),
        store_(store),
        counters_(counters) {}

  [[nodiscard]] framing::Refusal refuses(const framing::Arrivals& arrivals,
                                         const framing::LocatedSegment& segment,
                                         base::ByteView octets);
  /// An FPDU was proven and placed.
  void placed(const framing::PduSpan& span, const uint8_t* data) {
    suspicions_.placed({span.begin, span.end}, data);
  }
  /// refuses() has proven this cut FPDU when it judged the last segment.
  [[nodiscard]] bool has_proven(const framing::PduSpan& span) const {
    return proven_ == base::Range{span.begin, span.end};
  }
  /// Another segment is looked at: forgets the FPDU of has_proven().
  void forget_proven() { proven_ = {framing::kUnlocated, framing::kUnlocated}; }
  /// Checks that no segment was dropped more often than the limit allows.
  void validate() const {
    suspicions_.validate();
    for (const DropCount& count : drop_counts_) RNIC_CHECK(count.drops <= limit_);
  }

 private:
  struct DropCount {
    uint64_t begin = UINT64_MAX;
    uint32_t drops = 0;
    uint32_t checksum = 0;  // checksum of the octets that were dropped last
  };
  enum class Judgement : uint8_t {
    Sound,     // every octet is proven
    Bad,       // an FPDU that begins in the segment has a wrong CRC
    BadPiece,  // a CRC is wrong, but the held octets or a wrong begin may be the reason
    Doubtful,  // nothing can prove the segment
  };
  /// The result of going from FPDU to FPDU of a segment, by the length of each.
  struct Walk {
    uint64_t at = 0;  // end of the last FPDU
    uint32_t good = 0;
    uint32_t bad = 0;    // FPDUs with a wrong CRC
    bool tiles = false;  // the last FPDU ends where the part ends
  };
  /// The segment that a judgement is about.
  struct Case {
    const framing::Arrivals& arrivals;
    const framing::LocatedSegment& segment;
    base::Range range;
    base::ByteView octets;
  };

  [[nodiscard]] Judgement judge(const Case& c);
  [[nodiscard]] Judgement judge_front(const Case& c);
  [[nodiscard]] Judgement judge_unlocated(const Case& c);
  [[nodiscard]] Judgement judge_started(const Case& c, uint64_t begin);
  [[nodiscard]] uint64_t started_before(const Case& c) const;
  [[nodiscard]] bool may_begin(uint64_t offset) const;
  [[nodiscard]] Walk walk(const Case& c, base::Range part) const;
  [[nodiscard]] DropCount& drops_of(uint64_t begin, uint64_t ordered);
  [[nodiscard]] framing::Refusal drop_bad(const Case& c, bool piece);

  const bool enabled_;    // Config::silent_drop
  const uint32_t limit_;  // Config::drop_limit
  const FpduReader& reader_;
  framing::HoldStore& store_;
  Counters& counters_;
  Suspicions suspicions_;
  base::Range proven_{framing::kUnlocated, framing::kUnlocated};
  std::array<DropCount, 8> drop_counts_{};
};

}  // namespace rnic::mpa
