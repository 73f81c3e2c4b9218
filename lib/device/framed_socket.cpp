#include "device/framed_socket.hpp"

#include <algorithm>
#include <initializer_list>

namespace rnic::device {

using base::fail;

namespace {

tuf::StreamConfig with_rings(tuf::StreamConfig config, const tcp::RingPool& rings) {
  config.ring_octets = rings.block_octets();
  return config;
}

Status check_format(const tuf::PduFormat& format) {
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
  // s.5: a key that data does not hold by chance, and that nobody guesses.
  if (key != 0 && key <= wire::kTufKeyMask) return {};
  return fail(ErrorCode::InvalidArgument,
              "alignment mode needs a key of 48 bits that is not 0: take new_framing_key(), and "
              "tell the peer");
}

Status check_pdu_max(uint32_t octets, const tuf::PduFormat& format) {
  if (octets >= std::max(format.head(), 1u) && octets <= wire::kTufPduMax) return {};
  return fail(ErrorCode::InvalidArgument,
              "the longest frame of marker mode is 65528 octets at most, and holds its length");
}

Status check_setup(const FramedSetup& setup) {
  if (setup.send > FramedSendMode::Markers || setup.receive > FramedReceiveMode::Markers) {
    return fail(ErrorCode::InvalidArgument,
                "a number without a name for send_mode or receive_mode");
  }
  const tuf::StreamConfig& stream = setup.stream;
  const bool marked =
      setup.send == FramedSendMode::Markers || setup.receive == FramedReceiveMode::Markers;
  if (marked && !stream.format.tells_length()) {
    return fail(ErrorCode::Unsupported,
                "marker mode needs frames that tell their length: give their format");
  }
  const Status fine;
  return first_error(
      {check_format(stream.format), check_interval(stream.send_interval),
       check_interval(stream.receive_interval), check_pdu_max(stream.max_pdu, stream.format),
       setup.send == FramedSendMode::Align ? check_key(setup.send_key) : fine,
       setup.receive == FramedReceiveMode::Align ? check_key(setup.receive_key) : fine});
}

tuf::Counters FramedShared::with_own(tuf::Counters others) const {
#define RNIC_TUF_ADD(name, unit, help) \
  others.name += std::atomic_ref(counters.name).load(std::memory_order_relaxed);
  RNIC_TUF_COUNTERS(RNIC_TUF_ADD)
#undef RNIC_TUF_ADD
  return others;
}

FramedSocket::FramedSocket(const Place<FramedSocket>& place, const FramedSetup& setup,
                           FramedShared& shared)
    : FramedParts(shared.rings),
      TcpSocket<FramedKind>(place, with_rings(setup.stream, shared.rings), shared.counters, &events,
                            rings.get()),
      config_(with_rings(setup.stream, shared.rings)) {}

Status FramedSocket::begin(llp::Stream& stream, const FramedSetup& setup) {
  attach(stream);
  keeps_records_ = stream.traits().atomic_records;
  if (auto status = set_send_mode(setup.send, setup.send_key); !status) return status;
  return set_receive_mode(setup.receive, setup.receive_key);
}

}  // namespace rnic::device
