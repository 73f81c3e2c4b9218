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

/// What an event says beside its kind; each field where the event has it.
template <typename Kind>
void Fingerprint::add_event(const Kind& event) {
  number(event.qp);
  number(event.local.port);
  number(event.remote.port);
  text(event.detail);
  if constexpr (requires { event.end; }) number(static_cast<uint64_t>(event.end));
  if constexpr (requires { event.fault; }) add_fault(event.fault);
  if constexpr (requires { event.facts; }) add_facts(event.facts);
  if constexpr (requires { event.private_data; }) {
    number(event.private_data.size());
    add(event.private_data.data(), event.private_data.size());
  }
}

void Fingerprint::add_fault(const std::optional<Fault>& fault) {
  number(fault.has_value());
  if (!fault) return;
  number(static_cast<uint64_t>(fault->layer) << 16 | uint64_t{fault->type} << 8 | fault->code);
  text(fault->failed() ? fault->rule : "");
}

void Fingerprint::add_facts(const ConnectionFacts& facts) {
  for (const bool fact :
       {facts.crc, facts.markers_send, facts.markers_receive, facts.peer_to_peer}) {
    number(fact);
  }
  number(facts.revision);
  number(static_cast<uint64_t>(facts.rtr));
  for (const auto& reads : {facts.ird, facts.ord, facts.peer_ird, facts.peer_ord}) {
    number(reads.value_or(UINT32_MAX));
  }
}

void Fingerprint::event(uint32_t side, const Event& event, base::Now now) {
  number(side);
  number(static_cast<uint64_t>(base::nanos(now)));
  text(event::to_string(event));  // not its index, which another kind may change
  std::visit([this](const auto& each) { add_event(each); }, event);
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

/// What has not happened is left out, so that a counter that is new changes nothing where it is 0.
void Fingerprint::counter(std::string_view layer, const base::CounterRow& row) {
  if (row.value == 0) return;
  text(layer);
  text(row.name);
  number(row.value);
}

void Fingerprint::counters(const device::Device& device) {
  device.for_each_counter(
      [this](const char* layer, const base::CounterRow& row) { counter(layer, row); });
}

}  // namespace rnic::simulation
