/// \file
/// Start frames octet by octet, written down without the code under test.
#pragma once

#include "support/mpa_fakes.hpp"
#include "wire/mpa.hpp"

namespace rnic::mpa {

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

}  // namespace rnic::mpa
