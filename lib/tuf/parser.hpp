/// \file
/// Walks a framed stream in order, PDU by PDU (s.5.4, s.6).
#pragma once

#include <array>
#include <cstdint>

#include "tuf/marker_grid.hpp"
#include "tuf/modes.hpp"

namespace rnic::tuf {

/// The parameters by which a receiver reads the stream.
struct ReceiveLayout {
  FramedReceiveMode mode = FramedReceiveMode::Plain;
  FrameFormat format;
  wire::TufKey key = 0;                 ///< alignment mode
  MarkerGrid grid;                      ///< marker mode
  uint32_t max_pdu = wire::kTufPduMax;  ///< longest PDU that is taken, marker mode
};

/// The place of a PDU in the stream. The units of a stream follow each other without gaps.
struct Unit {
  uint64_t begin = 0;  ///< first octet, including a framing header or marker in front of the PDU
  uint64_t pdu = 0;    ///< first octet of the PDU
  uint64_t end = 0;    ///< behind the last octet of the PDU
  uint64_t frame_end = 0;  ///< alignment mode: end of the framing PDU around it
  uint32_t length = 0;     ///< octets of the PDU, without markers
};

enum class Parsed : uint8_t {
  Known,     ///< the place of the unit is known; some of its octets may be missing
  NeedMore,  ///< octets that tell the place have not come yet
  Bad,
};

/// Reads `n` octets that are no markers, the first at or behind `at`. `fetch(offset, dst, n)` gives
/// octets of the stream, or false when not all of them are there. \return the offset behind the
/// last octet read; 0 when an octet is missing
template <typename Fetch>
uint64_t fetch_content(const MarkerGrid& grid, uint64_t at, uint8_t* dst, uint32_t n,
                       Fetch&& fetch) {
  while (n != 0) {
    at = grid.after(at);
    const auto run = static_cast<uint32_t>(std::min<uint64_t>(grid.next(at) - at, n));
    if (!fetch(at, dst, run)) return 0;
    at += run;
    dst += run;
    n -= run;
  }
  return at;
}

/// Parses the unit at `at` in alignment mode. \param frame_end end of the framing PDU that contains
/// `at`; equal to `at` if a new framing PDU begins there
template <typename Fetch>
Parsed parse_aligned(const ReceiveLayout& layout, uint64_t at, uint64_t frame_end, Fetch&& fetch,
                     Unit& unit, framing::PduError& error) {
  unit.begin = unit.pdu = at;
  unit.frame_end = frame_end;
  if (at == frame_end) {
    std::array<uint8_t, wire::kTufHeaderSize> octets;
    if (!fetch(at, octets.data(), wire::kTufHeaderSize)) return Parsed::NeedMore;
    const wire::TufHeader header = wire::load_tuf_header(octets.data());
    error = header.key != layout.key ? framing::PduError::BadKey : framing::PduError::BadLength;
    if (header.key != layout.key || header.length == 0 || header.length > wire::kTufPduMax) {
      return Parsed::Bad;
    }
    unit.pdu = at + wire::kTufHeaderSize;
    unit.frame_end = unit.pdu + header.length;
  }
  const uint64_t room = unit.frame_end - unit.pdu;
  uint64_t length = room;
  if (layout.format.tells_length()) {
    error = framing::PduError::BadLength;
    if (room < layout.format.head()) return Parsed::Bad;
    std::array<uint8_t, kPduHeadMax> head;
    if (!fetch(unit.pdu, head.data(), layout.format.head())) return Parsed::NeedMore;
    length = layout.format.length_of(head);
    if (length == 0 || length > room) return Parsed::Bad;
  }
  unit.length = static_cast<uint32_t>(length);
  unit.end = unit.pdu + length;
  error = framing::PduError::None;
  return Parsed::Known;
}

template <typename Fetch>
Parsed parse_marked(const ReceiveLayout& layout, uint64_t at, Fetch&& fetch, Unit& unit,
                    framing::PduError& error) {
  const MarkerGrid& grid = layout.grid;
  unit.begin = at;
  unit.pdu = grid.after(at);
  std::array<uint8_t, kPduHeadMax> head;
  if (fetch_content(grid, at, head.data(), layout.format.head(), fetch) == 0) {
    return Parsed::NeedMore;
  }
  const uint64_t length = layout.format.length_of(head);
  error = framing::PduError::PduTooLong;
  if (length > std::min(layout.max_pdu, wire::kTufPduMax)) return Parsed::Bad;
  unit.end = unit.frame_end = grid.end_of(unit.pdu, length);
  if (unit.end - unit.pdu > wire::kTufPduMax) return Parsed::Bad;
  error = framing::PduError::BadLength;
  if (length == 0) return Parsed::Bad;
  unit.length = static_cast<uint32_t>(length);
  error = framing::PduError::None;
  return Parsed::Known;
}

/// A marker points to the next PDU. A pointer to a marker in front of that PDU counts as right, too
/// (docs/decisions/0006).
[[nodiscard]] inline bool marker_points_to(const MarkerGrid& grid, uint64_t marker,
                                           uint16_t next_pdu, uint64_t pdu_end) {
  const uint64_t target = marker + wire::kTufMarkerSize + next_pdu;
  return target == grid.after(pdu_end) || target == pdu_end;
}

/// Every marker of a unit is right (s.6): a marker in front of the PDU is 0, one inside the PDU
/// points to the next PDU, and both copies are equal. All octets of the unit must be there.
template <typename Fetch>
bool markers_right(const MarkerGrid& grid, const Unit& unit, Fetch&& fetch) {
  for (uint64_t marker = grid.next(unit.begin); marker < unit.end; marker = grid.next(marker + 1)) {
    std::array<uint8_t, wire::kTufMarkerSize> octets;
    if (!fetch(marker, octets.data(), wire::kTufMarkerSize)) return false;
    const uint16_t next_pdu = base::load_be16(octets.data());
    if (next_pdu != base::load_be16(&octets[2])) return false;
    if (marker < unit.pdu ? next_pdu != 0 : !marker_points_to(grid, marker, next_pdu, unit.end)) {
      return false;
    }
  }
  return true;
}

/// Parses the unit that begins at `at`, in alignment or marker mode.
template <typename Fetch>
Parsed parse_unit(const ReceiveLayout& layout, uint64_t at, uint64_t frame_end, Fetch&& fetch,
                  Unit& unit, framing::PduError& error) {
  return layout.mode == FramedReceiveMode::Align
             ? parse_aligned(layout, at, frame_end, fetch, unit, error)
             : parse_marked(layout, at, fetch, unit, error);
}

}  // namespace rnic::tuf
