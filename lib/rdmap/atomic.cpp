#include "rdmap/atomic.hpp"

#include <atomic>
#include <cstring>

#include "base/check.hpp"
#include "rdmap/endpoint.hpp"
#include "rdmap/opcodes.hpp"
#include "rdmap/requests.hpp"

namespace rnic::rdmap {

uint64_t execute(const wire::RdmapAtomicRequest& request, uint8_t* target) {
  RNIC_CHECK(is_known(request) && is_aligned(target));
  static_assert(std::atomic_ref<uint64_t>::is_always_lock_free);
  std::atomic_ref<uint64_t> word(*reinterpret_cast<uint64_t*>(target));
  const bool add = request.code == static_cast<uint8_t>(wire::RdmapAtomicCode::FetchAdd);
  if (add && request.mask == 0) return word.fetch_add(request.data);
  uint64_t original = word.load();
  for (;;) {
    const uint64_t result = add ? fetch_add_result(original, request.data, request.mask)
                                : compare_swap_result(original, request);
    // The exchange takes place even where nothing changes: only so the value that is returned was
    // in memory at a moment of the one order that all threads see.
    if (word.compare_exchange_weak(original, result)) return original;
  }
}

Fault Endpoint::Impl::locate_target(const wire::RdmapAtomicRequest& request, uint8_t*& out) const {
  const auto grant = access(request.stag, request.to, kAtomicSize, Access::RemoteAtomic);
  const Fault fault = protection_fault(grant.fault);
  if (fault.failed()) return fault;
  // RFC 7306 s.8.2: the address is what must be aligned, whatever the TO counts from.
  if (!is_aligned(grant.at)) return kUnalignedAtomic;
  out = grant.at;
  return ddp::kNoFault;
}

Fault Endpoint::Impl::deliver_atomic_request(const UntaggedMessage& message) {
  InboundRequest& inbound = inbound_.of_msn(message.header.msn);
  if (message.length != message.row.size) return kBadAtomicRequest;
  const wire::RdmapAtomicRequest request = inbound.atomic_request();
  if (!is_known(request)) return kUnknownAtomic;
  uint8_t* target = nullptr;
  const Fault fault = locate_target(request, target);
  if (fault.failed()) return fault;
  inbound.segment = message.segment;
  inbound.atomic = true;
  inbound_.deliver();
  call_ready();
  return ddp::kNoFault;
}

void Endpoint::Impl::execute_now(InboundRequest& inbound, uint8_t* target) {
  inbound.original = execute(inbound.atomic_request(), target);
}

/// An atomic is carried out at its turn among the responses, not at its delivery: RFC 7306 s.7 lets
/// none start before the responses to all earlier requests were generated.
Fault Endpoint::Impl::carry_out(InboundRequest& inbound) {
  if (inbound.executed) return ddp::kNoFault;
  uint8_t* target = nullptr;
  const Fault fault = locate_target(inbound.atomic_request(), target);
  if (fault.failed()) return fault;
  execute_now(inbound, target);
  inbound.executed = true;
  inbound.response_msn = msns_.response++;
  ++counters_.atomics_in;
  return ddp::kNoFault;
}

Fault Endpoint::Impl::deliver_atomic_response(const UntaggedMessage& message) {
  const uint32_t msn = message.header.msn;
  const OutboundRequest* done = nullptr;
  const Fault fault = outbound_.deliver_atomic(msn, message.length, done);
  if (fault.failed()) return fault;
  ++counters_.atomic_responses_in;
  SendSlot& slot = sends_.at(done->seq);
  slot.original = wire::parse_rdmap_atomic_response(outbound_.atomic_buffer(msn))->original;
  if (!slot.work->sges().empty()) {
    const Sge& sink = slot.work->sges()[0];
    const auto grant = access(sink.stag, sink.address, sink.length, Access::LocalWrite);
    if (grant.fault != mem::AccessFault::None) {
      slot.status = CompletionStatus::LocalProtection;
      return {FaultLayer::Rdmap, ddp::kLocalCatastrophic, 0x00, "RDMAP-7.1-01"};
    }
    std::memcpy(grant.at, &slot.original, sizeof slot.original);
  }
  finish_request(*done);
  return ddp::kNoFault;
}

}  // namespace rnic::rdmap
