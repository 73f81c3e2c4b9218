#include "rnic/egress.hpp"

#include "base/check.hpp"
#include "wire/tcp.hpp"

namespace rnic::nic {

bool Egress::begin(llp::IpAddress, llp::IpAddress destination, tcp::TxSlot& slot) {
  RNIC_DCHECK(!building_);
  if (!interface_.begin(destination, frame_)) return false;
  building_ = true;
  slot.tcp = frame_.l4;
  slot.room = frame_.l4_room;
  slot.checksum_open = frame_.l4_checksum_open;
  slot.frame = &frame_;
  return true;
}

void Egress::send(tcp::TxSlot&, uint32_t length, base::Now now) {
  RNIC_DCHECK(building_);
  building_ = false;
  interface_.send(frame_, wire::kIpProtocolTcp, length, now);
}

void Egress::cancel(tcp::TxSlot&) {
  RNIC_DCHECK(building_);
  building_ = false;
  interface_.cancel(frame_);
}

uint32_t Egress::path_mtu(llp::IpAddress destination) const {
  return interface_.has_route(destination) ? interface_.config().mtu : 0;
}

}  // namespace rnic::nic
