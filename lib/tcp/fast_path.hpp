/// \file
/// Header prediction (RFC 7323 s.5.6, after Van Jacobson): what nearly every segment of a calm
/// connection is, the next one in order or the acknowledgment of what was sent once, is recognized
/// by a few comparisons.
#pragma once

#include <cstdint>

#include "base/octet_pattern.hpp"
#include "base/time.hpp"
#include "tcp/connection_core.hpp"
#include "tcp/keep_alive.hpp"
#include "tcp/receiver.hpp"
#include "tcp/sender.hpp"
#include "tcp/tcp.hpp"

/// All other segments go the whole way, with the same result: what is done here is what is left of
/// it when nothing out of the ordinary is under way. Whoever brings such a thing about ends the
/// prediction.
namespace rnic::tcp::fast_path {

/// Nothing is under way that an expected segment would have to be looked at for.
[[nodiscard]] inline bool calm(const ConnectionCore& core, const Sender& sender,
                               const Receiver& receiver) {
  return core.life.state() == State::Established && !core.life.fin_wanted() && sender.calm() &&
         receiver.calm();
}
/// The next segment is predicted where it is calm.
void predict(ConnectionCore& core, const Sender& sender, const Receiver& receiver);

/// It is of this connection, and its header begins as predicted. \param in 20 octets at least
[[nodiscard]] inline bool expects(const ConnectionCore& core, const SegmentIn& in) {
  using base::OctetPattern;
  const auto same = [](const IpAddress& a, const IpAddress& b) {
    return _mm_cmpeq_epi8(OctetPattern::load(&a), OctetPattern::load(&b));
  };
  const Binding& b = core.binding;
  const __m128i addresses =
      _mm_and_si128(same(in.source, b.remote.address), same(in.destination, b.local.address));
  return OctetPattern::all(_mm_and_si128(addresses, core.prediction.compare(in.tcp.data())));
}
/// The same of a segment that is known to be of this connection.
[[nodiscard]] inline bool expects_header(const ConnectionCore& core, const uint8_t* header) {
  return base::OctetPattern::all(core.prediction.compare(header));
}
enum class Taken : uint8_t {
  No,  ///< it is to go the whole way
  Ack,
  Text,
};
/// \param in what is expected
[[nodiscard]] Taken take(ConnectionCore& core, Sender& sender, Receiver& receiver,
                         KeepAlive& keep_alive, const SegmentIn& in, base::Now now);

}  // namespace rnic::tcp::fast_path
