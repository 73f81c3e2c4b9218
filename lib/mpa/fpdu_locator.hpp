/// \file
/// Finds FPDUs in arriving segments (RFC 5044 s.6): from the delivery point on, behind an FPDU that
/// is proven or located, or by a marker.
#pragma once

#include <cstdint>

#include "framing/receiver.hpp"
#include "mpa/config.hpp"
#include "mpa/drop_policy.hpp"
#include "mpa/fpdu_reader.hpp"

namespace rnic::mpa {

/// A PduError is an llp::PduError here.
class FpduLocator final : public framing::LocatorDefaults {
 public:
  FpduLocator(const Config& config, framing::HoldStore& store, Counters& counters)
      : all_markers_(config.check_all_markers),
        out_of_order_(config.out_of_order),
        store_(store),
        drop_policy_(config, reader_, store, counters) {}

  /// Full operation begins at `offset` of the stream.
  void start(uint64_t offset, const framing::Negotiated& agreed) {
    reader_ = FpduReader(MarkerGrid(agreed.markers_receive, offset), agreed.crc, all_markers_);
  }

  void locate(const framing::Arrivals& arrivals, base::ByteView octets,
              framing::LocatedSegment& out);
  [[nodiscard]] bool is_one_pdu(uint64_t begin, base::ByteView octets, framing::PduSpan& span) {
    constexpr size_t kLeast = wire::kMpaMarkerSize + wire::kMpaLengthSize;
    if (octets.size() < kLeast) return false;
    drop_policy_.forget_proven();
    const uint64_t header = fpdu_header(reader_.grid(), begin);
    find_fpdu(reader_.grid(), begin, base::load_be16(octets.data() + (header - begin)), span);
    return span.end == begin + octets.size() &&
           reader_.verify(span, octets.data()) == framing::PduError::None;
  }
  [[nodiscard]] bool begins_early(const framing::Arrivals& arrivals, base::Range range,
                                  base::ByteView octets) {
    if (out_of_order_ && arrivals.placed().last_ends_at(range.begin)) [[likely]]
      return true;
    uint64_t first = 0;
    return find_early(arrivals, range, octets, first) && first == range.begin;
  }
  [[nodiscard]] framing::Refusal refuses(const framing::Arrivals& arrivals,
                                         const framing::LocatedSegment& segment,
                                         base::ByteView octets) {
    return drop_policy_.refuses(arrivals, segment, octets);
  }
  [[nodiscard]] uint64_t first_in(const framing::Arrivals& arrivals, base::Range held) const;
  [[nodiscard]] framing::Extent extent(const framing::Arrivals& arrivals, uint64_t at,
                                       framing::PduSpan& span, framing::PduError& error) const;
  [[nodiscard]] framing::PduError verify(const framing::PduSpan& span, const uint8_t* data) const {
    if (drop_policy_.has_proven(span)) return framing::PduError::None;
    return reader_.verify(span, data);
  }
  [[nodiscard]] llp::UlpduView view(const framing::PduSpan& span, const uint8_t* data) {
    if (reader_.grid().on() || span.ulpdu_length == 0) return view_between_markers(span, data);
    store_.pieces()[0] = {data + wire::kMpaLengthSize, span.ulpdu_length};
    return {{store_.pieces(), 1}, span.ulpdu_length};
  }
  void placed(const framing::PduSpan& span, const uint8_t* data) {
    drop_policy_.placed(span, data);
  }
  [[nodiscard]] framing::PduError overlap() const { return framing::PduError::BadMarker; }
  void validate(const framing::Arrivals&) const { drop_policy_.validate(); }

 private:
  [[nodiscard]] bool find_first(const framing::Arrivals& arrivals,
                                const framing::LocatedSegment& segment, base::ByteView octets,
                                uint64_t& first) const;
  [[nodiscard]] bool find_early(const framing::Arrivals& arrivals, base::Range range,
                                base::ByteView octets, uint64_t& first) const;
  [[nodiscard]] bool find_by_neighbour(const framing::Arrivals& arrivals, base::Range range,
                                       base::ByteView octets, uint64_t& first, bool& inside) const;
  [[nodiscard]] bool end_of_started(const framing::Arrivals& arrivals, uint64_t begin,
                                    base::Range range, base::ByteView octets, uint64_t& end) const;
  [[nodiscard]] llp::UlpduView view_between_markers(const framing::PduSpan& span,
                                                    const uint8_t* data);
  [[nodiscard]] uint64_t find_by_marker(base::Range range, base::ByteView octets) const;

  const bool all_markers_;   // Config::check_all_markers
  const bool out_of_order_;  // Config::out_of_order
  framing::HoldStore& store_;
  FpduReader reader_;
  DropPolicy drop_policy_;
};

using FpduReceiver = framing::Receiver<FpduLocator>;

}  // namespace rnic::mpa
