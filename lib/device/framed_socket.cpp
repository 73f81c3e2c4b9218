#include "device/framed_socket.hpp"

#include <algorithm>
#include <initializer_list>

namespace rnic::device {

using base::fail;

namespace {

tuf::StreamConfig stream_config(const FramingOptions& framing, const tcp::RingPool& rings) {
  return {.framing = framing, .ring_octets = rings.block_octets()};
}

Status check_format(const FrameFormat& format) {
  if (format.length_octets > 4 || (format.length_octets == 0 && format.length_at != 0)) {
    return fail(ErrorCode::InvalidArgument,
                "the length field of a frame has 1 to 4 octets, or it has none and begins at 0");
  }
  return {};
}

Status check_interval(uint16_t octets) {
  if (octets >= tuf::kIntervalMin) return {};
  return fail(ErrorCode::InvalidArgument, "a marker interval is 16 to 65535 octets");
}

Status first_error(std::initializer_list<Status> checks) {
  for (const Status& status : checks) {
    if (!status) return status;
  }
  return {};
}

}  // namespace

Status check_key(wire::TufKey key) {
  // TUF s.5: the key must not appear in data by chance, and nobody must guess it.
  if (key != 0 && key <= wire::kTufKeyMask) return {};
  return fail(
      ErrorCode::InvalidArgument,
      "alignment mode needs a key of 48 bits that is not 0: use new_framing_key(), and tell "
      "the peer");
}

Status check_pdu_max(uint32_t octets, const FrameFormat& format) {
  const uint32_t least = std::max(format.head(), 1u);
  if (octets >= least && octets <= wire::kTufPduMax) return {};
  return fail(ErrorCode::InvalidArgument,
              "max_frame " + std::to_string(octets) + ": give the longest frame of marker mode " +
                  std::to_string(least) + " to " + std::to_string(wire::kTufPduMax) +
                  " octets, so that it holds its length");
}

Status FramedKind::check(const FramingOptions& framing) {
  if (framing.send_mode > FramedSendMode::Markers ||
      framing.receive_mode > FramedReceiveMode::Markers) {
    return fail(ErrorCode::InvalidArgument,
                "a number without a name for send_mode or receive_mode: use an enumerator");
  }
  const bool marked = framing.send_mode == FramedSendMode::Markers ||
                      framing.receive_mode == FramedReceiveMode::Markers;
  if (marked && !framing.format.tells_length()) {
    return fail(ErrorCode::Unsupported,
                "marker mode needs frames that tell their length: give their format");
  }
  const Status fine;
  return first_error(
      {check_format(framing.format), check_interval(framing.send_interval),
       check_interval(framing.receive_interval), check_pdu_max(framing.max_frame, framing.format),
       framing.send_mode == FramedSendMode::Align ? check_key(framing.send_key) : fine,
       framing.receive_mode == FramedReceiveMode::Align ? check_key(framing.receive_key) : fine});
}

tuf::Counters FramedShared::with_own(tuf::Counters others) const {
#define RNIC_TUF_ADD(name, unit, help) \
  others.name += std::atomic_ref(counters.name).load(std::memory_order_relaxed);
  RNIC_TUF_COUNTERS(RNIC_TUF_ADD)
#undef RNIC_TUF_ADD
  return others;
}

FramedSocket::FramedSocket(const Place<FramedSocket>& place, const FramingOptions& framing,
                           FramedShared& shared)
    : FramedParts(shared.rings),
      TcpSocket<FramedKind>(place, stream_config(framing, shared.rings), shared.counters, &events,
                            rings.get()),
      framing_(framing) {}

Status FramedSocket::begin(llp::Stream& stream, const FramingOptions& framing) {
  attach(stream);
  keeps_records_ = stream.traits().atomic_records;
  if (auto status = set_send_mode(framing.send_mode, framing.send_key); !status) return status;
  return set_receive_mode(framing.receive_mode, framing.receive_key);
}

}  // namespace rnic::device
