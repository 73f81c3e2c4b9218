#include "rnic-perf/station.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace rnic::perf {

using workload::ControlMessage;

Error protocol_error(const std::string& what) { return Error{ErrorCode::Protocol, what}; }

Result<std::unique_ptr<Station>> Station::create(Device device, uint64_t memory, AccessSet rights) {
  std::unique_ptr<Station> station(new Station);
  auto end = workload::make_end(std::move(device), kQueueDepth);
  if (!end) return tl::unexpected(end.error());
  station->end = std::move(*end);
  auto buffer = workload::Buffer::allocate(memory, workload::Paging::HugeWhenTouched);
  auto control = workload::Buffer::allocate(2 * workload::kControlOctets, workload::Paging::Small);
  if (!buffer) return tl::unexpected(buffer.error());
  if (!control) return tl::unexpected(control.error());
  station->memory = std::move(*buffer);
  station->control_ = std::move(*control);
  auto region = station->end->pd.register_memory(
      std::as_writable_bytes(std::span(station->memory.data(), memory)), rights);
  if (!region) return tl::unexpected(region.error());
  station->region = std::move(*region);
  auto control_region = station->end->pd.register_memory(
      std::as_writable_bytes(station->control_.octets()), Access::LocalWrite);
  if (!control_region) return tl::unexpected(control_region.error());
  station->control_region_ = std::move(*control_region);
  return station;
}

Status Station::post_control_receive() {
  ReceiveRequest request;
  request.sges = {control_region_.sge(workload::kControlOctets, workload::kControlOctets)};
  return end->qp.post_receive(request);
}

Status Station::post_control_send(const ControlMessage& message) {
  encode(message, control_.octets().first(workload::kControlOctets));
  SendRequest request;
  request.sges = {control_region_.sge(0, workload::kControlOctets)};
  return end->qp.post_send(request);
}

Result<ControlMessage> Station::received() const {
  auto message = workload::decode_control(
      control_.octets().subspan(workload::kControlOctets, workload::kControlOctets));
  if (!message) return tl::unexpected(protocol_error("the peer is not an rnic-perf"));
  return *message;
}

bool matches(const Station& station, const ControlMessage& batch) {
  const uint32_t slots = std::min(batch.slots, batch.messages);
  for (uint32_t slot = 0; slot < slots; ++slot) {
    const uint64_t offset = slot * workload::slot_stride(batch.size);
    const auto octets = station.memory.octets().subspan(offset, batch.size);
    if (workload::compare(octets, batch.pattern, offset)) return false;
  }
  return true;
}

}  // namespace rnic::perf
