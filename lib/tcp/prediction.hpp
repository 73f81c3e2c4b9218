/// \file
/// What header prediction (RFC 7323 s.5.6, after Van Jacobson) expects next of a connection.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "base/octet_pattern.hpp"
#include "base/seq32.hpp"
#include "wire/tcp.hpp"

namespace rnic::tcp {

/// How the header of the segment that is expected next begins; by default nothing is. It holds as
/// long as nothing is under way that this segment would have to be looked at for: the parts of a
/// connection have a reference to it, and what brings such a thing about ends it.
class Prediction {
 public:
  /// The whole way for the next segment, until begin().
  void end() {
    on_ = false;
    header_.clear();
  }
  /// \param window SND.WND, as the last segment said it with this scale
  void begin(uint16_t from_port, uint16_t to_port, base::Seq32 sequence, uint32_t header_octets,
             uint32_t window, uint8_t shift);
  /// The next one begins there.
  void expect(base::Seq32 sequence) {
    if (on_) header_.set_be32(wire::kTcpSequenceAt, sequence.value);
  }

  [[nodiscard]] bool on() const { return on_; }
  /// 0xff in each octet that is as expected. \param p sixteen octets at least
  [[nodiscard]] __m128i compare(const uint8_t* p) const { return header_.compare(p, kMask); }
  /// Of the expected segment's TCP header.
  [[nodiscard]] uint32_t header_octets() const { return header_octets_; }
  /// What SND.WND was made of, as on the wire; no field at all: it was made otherwise.
  [[nodiscard]] uint32_t window_field() const { return window_field_; }
  void set_window_field(uint32_t field) { window_field_ = field; }

 private:
  // Of a header's first sixteen octets: ports, sequence number, data offset and all flags but PSH.
  // Reserved bits are not looked at (RFC 9293 s.3.1).
  static constexpr base::OctetPattern::Octets kMask{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                                    0,    0,    0,    0,    0xf0, 0xf7, 0,    0};

  base::OctetPattern header_;
  bool on_ = false;  // header_ is one
  // While on_:
  uint32_t header_octets_ = wire::kTcpHeaderMin;
  uint32_t window_field_ = 1;
};

}  // namespace rnic::tcp
