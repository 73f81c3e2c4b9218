/// \file
/// Start frames octet by octet, and what the texts show of FPDUs, written down without the code
/// under test.
#pragma once

#include "support/mpa_fakes.hpp"
#include "wire/mpa.hpp"

namespace rnic::mpa {

/// Where the FPDUs of an initiator begin when its Request carries no private data.
inline constexpr uint64_t kStart = 20;

inline test::Octets start_frame(const wire::MpaKey& key, uint8_t flags, uint8_t revision,
                                size_t pd_length, const test::Octets& private_data = {}) {
  test::Octets frame(key.begin(), key.end());
  frame.insert(frame.end(), {flags, revision, static_cast<uint8_t>(pd_length >> 8),
                             static_cast<uint8_t>(pd_length)});
  frame.insert(frame.end(), private_data.begin(), private_data.end());
  return frame;
}
inline test::Octets request_frame(uint8_t flags, uint8_t revision, const test::Octets& data = {}) {
  return start_frame(wire::kMpaRequestKey, flags, revision, data.size(), data);
}
inline test::Octets reply_frame(uint8_t flags, uint8_t revision, const test::Octets& data = {}) {
  return start_frame(wire::kMpaReplyKey, flags, revision, data.size(), data);
}

/// An untagged Send of 24 zero octets as in the hex dumps of the texts.
inline test::Octets figure_ulpdu(uint8_t ddp_control, uint8_t rdmap_control, uint8_t msn) {
  test::Octets ulpdu(42, 0);
  ulpdu[0] = ddp_control;
  ulpdu[1] = rdmap_control;
  ulpdu[13] = msn;
  return ulpdu;
}

}  // namespace rnic::mpa
