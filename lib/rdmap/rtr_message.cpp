#include "rdmap/rtr_message.hpp"

#include <array>

#include "ddp/placement.hpp"
#include "rdmap/opcodes.hpp"

namespace rnic::rdmap {

namespace {

constexpr uint32_t kAnyStag = 1;  // for a message without octets; Linux siw uses the same

}  // namespace

void write_empty_write(uint8_t version, llp::UlpduWriter& out) {
  ddp::OutboundMessage message{.version = version};
  message.tagged = true;
  message.stag = kAnyStag;
  message.rsvd_ulp = wire::rdmap_control(WireOpcode::Write, version);
  ddp::write(message, {.length = 0, .last = true}, {}, out);
}

// RFC 6581 s.9.2.
void RtrMessage::write(uint8_t version, llp::UlpduWriter& out) const {
  if (kind_ == Rtr::Write) return write_empty_write(version, out);
  const bool read = kind_ == Rtr::Read;
  const WireOpcode opcode = read ? WireOpcode::ReadRequest : WireOpcode::Send;
  const ddp::OutboundMessage message{.version = version,
                                     .rsvd_ulp = wire::rdmap_control(opcode, version),
                                     .qn = read ? wire::kRdmapReadRequestQn : wire::kRdmapSendQn,
                                     .msn = 1,
                                     .length = payload_size()};
  std::array<uint8_t, wire::kRdmapReadRequestSize> request{};
  ddp::Pieces payload;
  if (read) {
    wire::write_rdmap(request.data(), wire::RdmapReadRequest{.source_stag = kAnyStag});
    payload.add(request.data(), message.length);
  }
  ddp::write(message, {.length = message.length, .last = true}, payload.view(), out);
}

}  // namespace rnic::rdmap
