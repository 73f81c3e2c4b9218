#include "fingerprint.hpp"

#include <isa-l/crc64.h>

namespace rnic::simulation {

void Fingerprint::add(const void* octets, size_t size) {
  if (size != 0) crc_ = ::crc64_ecma_refl(crc_, static_cast<const uint8_t*>(octets), size);
}

void Fingerprint::number(uint64_t value) { add(&value, sizeof value); }

void Fingerprint::text(std::string_view text) {
  number(text.size());
  add(text.data(), text.size());
}

void Fingerprint::sent(uint32_t side, base::ByteView octets, base::Now now) {
  number(side);
  number(static_cast<uint64_t>(base::nanos(now)));
  number(octets.size());
  add(octets.data(), octets.size());
}

void Fingerprint::event(uint32_t side, const device::Event& event, base::Now now) {
  number(side);
  number(static_cast<uint64_t>(base::nanos(now)));
  for (const uint64_t value :
       {uint64_t(event.kind), uint64_t{event.qp}, uint64_t{event.local.port},
        uint64_t{event.remote.port}, uint64_t(event.end), uint64_t{event.agreed.crc},
        uint64_t{event.agreed.markers_send}, uint64_t{event.agreed.markers_receive},
        uint64_t{event.agreed.revision}, uint64_t{event.agreed.peer_to_peer},
        uint64_t{event.agreed.rtr}, uint64_t{event.agreed.ird.value_or(0)},
        uint64_t{event.agreed.ord.value_or(0)}}) {
    number(value);
  }
  text(event.fault.rule);
  text(event.detail);
  number(event.private_data.size());
  add(event.private_data.data(), event.private_data.size());
}

void Fingerprint::completion(uint32_t side, const Completion& completion, base::Now now) {
  number(side);
  number(static_cast<uint64_t>(base::nanos(now)));
  for (const uint64_t value :
       {completion.id, uint64_t(completion.opcode), uint64_t(completion.status),
        uint64_t{completion.solicited}, uint64_t{completion.has_immediate},
        uint64_t{completion.length}, uint64_t{completion.qp}, uint64_t{completion.invalidated_stag},
        completion.original}) {
    number(value);
  }
  add(completion.immediate.data(), completion.immediate.size());
}

void Fingerprint::counter(std::string_view layer, const base::CounterRow& row) {
  text(layer);
  text(row.name);
  number(row.value);
}

void Fingerprint::counters(const device::Device& device) {
  device.for_each_counter(
      [this](const char* layer, const base::CounterRow& row) { counter(layer, row); });
}

}  // namespace rnic::simulation
