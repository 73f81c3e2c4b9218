#include "device/egress.hpp"

#include "base/check.hpp"
#include "net/rss.hpp"
#include "wire/tcp.hpp"

namespace rnic::device {

bool Egress::begin(const IpAddress& source, const IpAddress& destination, tcp::TxSlot& slot,
                   base::Now now) {
  RNIC_DCHECK(!building_);
  if (!interface_.begin(source, destination, frame_, now)) return false;
  building_ = true;
  slot.tcp = frame_.l4;
  slot.room = frame_.l4_room;
  slot.checksum_open = frame_.l4_checksum_open;
  slot.frame = &frame_;
  slot.traffic_class = 0;
  slot.hop_limit = 0;
  return true;
}

void Egress::send(tcp::TxSlot& slot, uint32_t length, base::Now now) {
  RNIC_DCHECK(building_);
  building_ = false;
  frame_.traffic_class = slot.traffic_class;
  frame_.hop_limit = slot.hop_limit;
  interface_.send(frame_, wire::kProtocolTcp, length, now);
}

void Egress::cancel(tcp::TxSlot&) {
  RNIC_DCHECK(building_);
  building_ = false;
  interface_.cancel(frame_);
}

bool Egress::begin_run(const IpAddress& source, const IpAddress& destination, uint32_t most,
                       tcp::TxRun& run, base::Now now) {
  static_assert(tcp::TxRun::kMost == net::TxRun::kMost);
  RNIC_DCHECK(!building_);
  if (!interface_.begin_run(source, destination, most, run_, now)) return false;
  building_ = true;
  run.common.room = run_.l4_room;
  run.common.checksum_open = run_.l4_checksum_open;
  run.common.traffic_class = 0;
  run.common.hop_limit = 0;
  run.count = run_.count;
  for (uint32_t i = 0; i < run.count; ++i) run.tcp[i] = run_.packets[i].data + run_.l4_at;
  run.common.tcp = run.tcp[0];
  return true;
}

void Egress::send_run(tcp::TxRun& run, uint32_t complete, base::Now now) {
  RNIC_DCHECK(building_ || run.count == 0);
  if (run.count == 0) return;
  building_ = false;
  run_.traffic_class = run.common.traffic_class;
  run_.hop_limit = run.common.hop_limit;
  interface_.send_run(run_, wire::kProtocolTcp, std::span(run.lengths).first(complete), now);
  run.count = 0;
}

uint32_t Egress::path_mtu(IpAddress destination, base::Now now) const {
  return interface_.path_mtu(destination, now);
}

uint32_t Egress::link_mtu(IpAddress destination) const { return interface_.link_mtu(destination); }

void Egress::reduce_path_mtu(IpAddress destination, uint32_t mtu, base::Now now) {
  interface_.reduce_path_mtu(destination, mtu, now);
}

void Egress::doubt_path(IpAddress destination, base::Now now) {
  interface_.doubt_path(destination, now);
}

bool Egress::lands_here(const Endpoint& local, const Endpoint& remote) const {
  return net::lands_here(interface_.port().info().spread, local, remote);
}

}  // namespace rnic::device
