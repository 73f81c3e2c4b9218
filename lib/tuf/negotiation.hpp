/// \file
/// The negotiation of what s.4 of the draft leaves open, which two ends of this implementation do
/// before they frame. These are functions of values: they make the frames and compute what follows
/// from them.
///
///     initiator   Request -------->            what it wants, what it can, its key
///                        <--------  Reply      the same of the responder, and both modes; its
///                                              receive framing is on behind Go
///                 Go      -------->            its receive framing is on; framing PDUs follow
///                        <--------  framing PDUs
///
/// So no framed octet is sent before the peer has said that it expects framing.
#pragma once

#include <cstdint>
#include <optional>

#include "llp/stream.hpp"
#include "tuf/modes.hpp"

namespace rnic::tuf {

struct Config;

/// The framing of both directions, as one end sees them.
struct Agreed {
  FramedSendMode send = FramedSendMode::Plain;
  FramedReceiveMode receive = FramedReceiveMode::Plain;
  wire::TufKey send_key = 0;
  wire::TufKey receive_key = 0;
  bool pack_out = false;  ///< several PDUs in a framing PDU: both sides want it
  bool pack_in = false;
  uint16_t send_interval = 0;
  uint16_t receive_interval = 0;
  uint32_t max_pdu_out = wire::kTufPduMax;  ///< marker mode
  uint32_t max_pdu_in = wire::kTufPduMax;
};

/// Makes the frame of this end. A sender always has marker mode, and alignment mode when the
/// transport keeps records whole (s.2). A receiver that does not see segments asks for marker mode
/// alone.
[[nodiscard]] wire::TufStart make_start(const Config& config, const llp::StreamTraits& transport,
                                        wire::TufKey key);

/// The mode of one direction: one that its receiver asks for and its sender has, preferably
/// alignment mode (s.4). 0: there is none.
[[nodiscard]] uint8_t choose_mode(uint8_t receiver_wants, uint8_t sender_has);

/// Agrees on both directions; empty when a direction has no mode in common, or values are
/// impossible.
[[nodiscard]] std::optional<Agreed> agree(const wire::TufStart& own, const wire::TufStart& peer);

/// The Reply's choices are those that follow from both frames.
[[nodiscard]] bool choices_right(const wire::TufStart& request, const wire::TufStart& reply);

}  // namespace rnic::tuf
