#include "llp/framing.hpp"

#include <algorithm>
#include <cstring>

namespace rnic::llp {

const char* to_string(FramingError error) {
  switch (error) {
    case FramingError::None: return "none";
    case FramingError::Closed: return "TCP connection closed or lost (MPA error 1)";
    case FramingError::Crc: return "MPA CRC mismatch (MPA error 2)";
    case FramingError::MarkerMismatch: return "marker and ULPDU length disagree (MPA error 3)";
    case FramingError::BadStartFrame: return "invalid MPA Request or Reply (MPA error 4)";
    case FramingError::LocalCatastrophic: return "local catastrophic error (MPA error 5)";
    case FramingError::InsufficientIrd: return "insufficient IRD resources (MPA error 6)";
    case FramingError::NoMatchingRtr: return "no matching RTR option (MPA error 7)";
  }
  return "unknown";
}

[[gnu::noinline]] uint32_t UlpduView::copy_prefix(uint8_t* dst, uint32_t n) const {
  uint32_t done = 0;
  for (const base::ByteView piece : pieces) {
    if (done == n) break;
    const auto take = std::min<uint32_t>(n - done, static_cast<uint32_t>(piece.size()));
    std::memcpy(dst + done, piece.data(), take);
    done += take;
  }
  return done;
}

}  // namespace rnic::llp
