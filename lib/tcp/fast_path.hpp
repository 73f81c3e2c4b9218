/// \file
/// Header prediction (RFC 7323 s.5.6, after Van Jacobson). On a connection without loss nearly
/// every segment is the next one in order, or acknowledges data that was sent once; a few
/// comparisons recognize both.
#pragma once

#include <cstdint>

#include "base/octet_pattern.hpp"
#include "base/time.hpp"
#include "tcp/connection_core.hpp"
#include "tcp/keep_alive.hpp"
#include "tcp/receiver.hpp"
#include "tcp/sender.hpp"
#include "tcp/tcp.hpp"

/// All other segments take the slow path. The slow path would give the same result for a predicted
/// segment, too: this one does the steps that are left of it where predictable() holds. A mutator
/// that makes predictable() false ends the prediction.
namespace rnic::tcp::fast_path {

/// The precondition of text beside the next segment: that of header prediction, but for the order.
/// There may be holes.
[[nodiscard]] inline bool predictable_beside(const ConnectionCore& core, const Sender& sender,
                                             const Receiver& receiver) {
  return core.life.state() == State::Established && !core.life.fin_wanted() &&
         sender.predictable() && receiver.unmarked();
}
/// The precondition of header prediction: no loss, probe, FIN, mark or closed window is being dealt
/// with, so a segment with the expected header needs no other processing than that of this file.
[[nodiscard]] inline bool predictable(const ConnectionCore& core, const Sender& sender,
                                      const Receiver& receiver) {
  return predictable_beside(core, sender, receiver) && receiver.predictable();
}
/// Predicts the next segment if predictable() holds, and text beside it if that is possible.
void predict(ConnectionCore& core, const Sender& sender, const Receiver& receiver);

/// The segment belongs to this connection, and its header is as predicted. \param in at least 20
/// octets
[[nodiscard]] inline bool expects(const ConnectionCore& core, const SegmentIn& in) {
  using base::OctetPattern;
  const auto same = [](const IpAddress& a, const IpAddress& b) {
    return _mm_cmpeq_epi8(OctetPattern::load(&a), OctetPattern::load(&b));
  };
  const Binding& binding = core.binding();
  const __m128i addresses = _mm_and_si128(same(in.source, binding.remote.address),
                                          same(in.destination, binding.local.address));
  return OctetPattern::all(_mm_and_si128(addresses, core.prediction.compare(in.tcp.data())));
}
/// The header of a segment that belongs to this connection is as predicted.
[[nodiscard]] inline bool expects_header(const ConnectionCore& core, const uint8_t* header) {
  return base::OctetPattern::all(core.prediction.compare(header));
}
enum class Taken : uint8_t {
  No,  ///< the segment has to take the slow path
  Ack,
  ReorderedAck,  ///< an ACK of records that others have overtaken: there may be a loss, so
                 ///< predict() has to be called
  Text,
};
/// Takes a segment without text. \param in a segment for which expects() is true
[[nodiscard]] Taken take_ack(ConnectionCore& core, Sender& sender, Receiver& receiver,
                             KeepAlive& keep_alive, const SegmentIn& in, base::Now now);
/// A segment between the addresses of the connection.
struct ExpectedIn {
  base::ByteView tcp;
  bool checksum_verified = false;
  uint8_t ecn = 0;
};
/// Takes a segment with text. \param in a segment for which expects() is true
[[nodiscard]] Taken take_text(ConnectionCore& core, Sender& sender, Receiver& receiver,
                              ExpectedIn in, base::Now now);

/// The addresses and ports are those of the connection. \param in at least 20 octets
[[nodiscard]] inline bool is_between(const ConnectionCore& core, const SegmentIn& in) {
  const Binding& binding = core.binding();
  return in.source == binding.remote.address && in.destination == binding.local.address &&
         base::load_be16(in.tcp.data()) == binding.remote.port &&
         base::load_be16(in.tcp.data() + 2) == binding.local.port;
}
/// Takes a segment with text that is not the next one, or behind which a hole ends. Nothing else of
/// it may be unexpected: Prediction::beside() is true, the header is one that would be predicted at
/// this place, and the segment lies in the window and acknowledges nothing new. \param in a segment
/// of this connection, of at least 20 octets. \return No or Text
[[nodiscard]] Taken take_text_beside(ConnectionCore& core, Sender& sender, Receiver& receiver,
                                     KeepAlive& keep_alive, const SegmentIn& in, base::Now now);

}  // namespace rnic::tcp::fast_path
