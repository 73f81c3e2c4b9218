#include "tuf/negotiation.hpp"

#include "tuf/config.hpp"

namespace rnic::tuf {
namespace {

/// The lowest limit of the length of PDUs that a session accepts: the headers of a DDP segment fit
/// many times.
constexpr uint16_t kSessionPduMin = 256;

}  // namespace

wire::TufStart make_start(const Config& config, const llp::StreamTraits& transport,
                          wire::TufKey key) {
  wire::TufStart start;
  start.packing = config.packing;
  // s.5.4 reads a segment from its first octet on, so alignment mode needs a transport that shows
  // segments.
  const bool align_receive = config.align_receive && transport.shows_segments;
  start.receive_modes = static_cast<uint8_t>((align_receive ? wire::kTufModeAlign : 0) |
                                             (config.markers_receive ? wire::kTufModeMarkers : 0));
  // s.2: alignment mode if the underlying TCP is framing-aware, marker mode in any case.
  start.send_modes = static_cast<uint8_t>(wire::kTufModeMarkers |
                                          (transport.atomic_records ? wire::kTufModeAlign : 0));
  start.marker_interval = config.marker_interval;
  start.max_pdu = static_cast<uint16_t>(config.max_pdu);
  start.key = key;
  return start;
}

uint8_t choose_mode(uint8_t receiver_wants, uint8_t sender_has) {
  const uint8_t both = receiver_wants & sender_has;
  if ((both & wire::kTufModeAlign) != 0) return wire::kTufModeAlign;
  return both & wire::kTufModeMarkers;
}

std::optional<Agreed> agree(const wire::TufStart& own, const wire::TufStart& peer) {
  const uint8_t out = choose_mode(peer.receive_modes, own.send_modes);
  const uint8_t in = choose_mode(own.receive_modes, peer.send_modes);
  if (out == 0 || in == 0) return std::nullopt;
  if (out == wire::kTufModeMarkers &&
      (peer.marker_interval < kSessionIntervalMin || peer.max_pdu < kSessionPduMin)) {
    return std::nullopt;
  }
  Agreed agreed;
  agreed.send = out == wire::kTufModeAlign ? FramedSendMode::Align : FramedSendMode::Markers;
  agreed.receive =
      in == wire::kTufModeAlign ? FramedReceiveMode::Align : FramedReceiveMode::Markers;
  agreed.send_key = own.key;
  agreed.receive_key = peer.key;
  // s.5: PDUs are never packed against the receiver's wish. The format of PDUs is the same in both
  // directions, so both ends have to agree.
  agreed.pack_out = agreed.pack_in = own.packing && peer.packing;
  agreed.send_interval = peer.marker_interval;
  agreed.receive_interval = own.marker_interval;
  agreed.max_pdu_out = peer.max_pdu;
  agreed.max_pdu_in = own.max_pdu;
  return agreed;
}

bool choices_right(const wire::TufStart& request, const wire::TufStart& reply) {
  return reply.chosen_send == choose_mode(request.receive_modes, reply.send_modes) &&
         reply.chosen_receive == choose_mode(reply.receive_modes, request.send_modes);
}

}  // namespace rnic::tuf
