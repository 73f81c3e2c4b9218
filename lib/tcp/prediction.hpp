/// \file
/// The header that header prediction (RFC 7323 s.5.6, after Van Jacobson) expects next on a
/// connection.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "base/octet_pattern.hpp"
#include "base/seq32.hpp"
#include "wire/tcp.hpp"

namespace rnic::tcp {

/// The first octets of the TCP header that is expected next; at first none is expected. The
/// prediction is on only while fast_path::predictable() holds: the parts of a connection have a
/// reference to it, and each mutator that makes predictable() false calls end().
class Prediction {
 public:
  /// The next segments take the slow path, until begin().
  void end() {
    end_order();
    beside_ = false;
  }
  /// There is a hole, so what comes next has more to it than being next. Text beside it is expected
  /// as before.
  void end_order() {
    on_ = false;
    header_.clear();
  }
  /// Expects the next segment at `sequence`. \param window SND.WND, as the last segment gave it.
  /// \param shift Snd.Wind.Shift
  void begin(uint16_t from_port, uint16_t to_port, base::Seq32 sequence, uint32_t header_octets,
             uint32_t window, uint8_t shift);
  /// The next segment starts at this sequence number.
  void expect(base::Seq32 sequence) {
    if (on_) header_.set_be32(wire::kTcpSequenceAt, sequence.value);
  }

  [[nodiscard]] bool on() const { return on_; }
  /// Text may be expected whose header differs from the one that begin() was told of in nothing but
  /// its place, wherever that is: fast_path::predictable_beside() holds.
  [[nodiscard]] bool beside() const { return beside_; }
  /// Compares a header with the expected one. \return 0xff in each octet that is as expected.
  /// \param p at least sixteen octets
  [[nodiscard]] __m128i compare(const uint8_t* p) const { return header_.compare(p, kMask); }
  /// Length of the expected TCP header.
  [[nodiscard]] uint32_t header_octets() const { return header_octets_; }
  /// The window field that gave SND.WND, in the byte order of the wire; a value that no field has
  /// if SND.WND was set otherwise.
  [[nodiscard]] uint32_t window_field() const { return window_field_; }
  void set_window_field(uint32_t field) { window_field_ = field; }
  /// Checks that the prediction, while it is on, is the one that begin() with these arguments would
  /// make, and that no header matches while it is off.
  void validate(uint16_t from_port, uint16_t to_port, base::Seq32 sequence, uint32_t header_octets,
                uint32_t window, uint8_t shift) const;

 private:
  // Of the first sixteen octets of a header the ports, the sequence number, the data offset and all
  // flags but PSH are compared. Reserved bits are ignored (RFC 9293 s.3.1).
  static constexpr base::OctetPattern::Octets kMask{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                                    0,    0,    0,    0,    0xf0, 0xf7, 0,    0};

  base::OctetPattern header_;
  bool on_ = false;      // header_ is valid
  bool beside_ = false;  // Invariant: true while on_.
  // Valid while beside_:
  uint32_t header_octets_ = wire::kTcpHeaderMin;
  uint32_t window_field_ = 1;
};

}  // namespace rnic::tcp
