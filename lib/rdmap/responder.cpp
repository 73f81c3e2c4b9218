#include "rdmap/responder.hpp"

#include <algorithm>

#include "rdmap/atomic.hpp"
#include "rdmap/opcodes.hpp"

namespace rnic::rdmap {

Responder::Responder(const EndpointConfig& config, const StreamMemory& memory, Counters& counters,
                     RequestStore& requests)
    : memory_(memory), counters_(counters), inbound_(config.ird, requests.inbound) {}

// --- requests ---

void Responder::deliver(const UntaggedMessage& message, bool atomic) {
  const uint32_t number = inbound_.delivered() + 1;
  base::Duration delay = late_stall_.of(number);
  for (const Stall& stall : stalls_) delay = std::max(delay, stall.of(number));
  if (delay.count() != 0) ++counters_.responses_stalled;
  inbound_.deliver(message.segment, atomic, message.now + delay, message.now);
}

Fault Responder::deliver_read_request(const UntaggedMessage& message) {
  ++counters_.read_requests_in;
  if (message.length != message.row.size) return kBadReadRequest;
  const wire::RdmapReadRequest read = inbound_.of_msn(message.header.msn).read();
  if (read.size != 0) {  // RDMAP-5.2.1-04: nothing of a zero-length Read's source is checked
    const auto grant =
        memory_.access(read.source_stag, read.source_to, read.size, Access::RemoteRead);
    const Fault fault = protection_fault(grant.fault);
    if (fault.failed()) return fault;
  }
  deliver(message, false);
  return ddp::kNoFault;
}

Fault Responder::locate_target(const wire::RdmapAtomicRequest& request, uint8_t*& out) const {
  const auto grant = memory_.access(request.stag, request.to, kAtomicSize, Access::RemoteAtomic);
  const Fault fault = protection_fault(grant.fault);
  if (fault.failed()) return fault;
  // An atomic works on one word of memory, which must not be split over two pieces.
  if (grant.run != kAtomicSize) return protection_fault(mem::AccessFault::Bounds);
  // RFC 7306 s.8.2: the address has to be aligned, whatever the TO counts from.
  if (!is_aligned(grant.at)) return kUnalignedAtomic;
  out = grant.at;
  return ddp::kNoFault;
}

Fault Responder::deliver_atomic_request(const UntaggedMessage& message) {
  if (message.length != message.row.size) return kBadAtomicRequest;
  const wire::RdmapAtomicRequest request = inbound_.of_msn(message.header.msn).atomic_request();
  if (!is_known(request)) return kUnknownAtomic;
  uint8_t* target = nullptr;
  const Fault fault = locate_target(request, target);
  if (fault.failed()) return fault;
  deliver(message, true);
  return ddp::kNoFault;
}

// --- responses ---

void Responder::execute_now(uint32_t seq, uint8_t* target) {
  const uint64_t original = execute(inbound_.at(seq).atomic_request(), target);
  inbound_.execute(seq, original, next_response_msn_++);
}

/// An atomic is carried out at its turn among the responses, not at its delivery: by RFC 7306 s.7
/// it may not start before the responses to all earlier requests were generated.
Fault Responder::carry_out(uint32_t seq) {
  const InboundRequest& request = inbound_.at(seq);
  if (!request.atomic || request.executed) return ddp::kNoFault;
  uint8_t* target = nullptr;
  const Fault fault = locate_target(request.atomic_request(), target);
  if (fault.failed()) return fault;
  execute_now(seq, target);
  ++counters_.atomics_in;
  return ddp::kNoFault;
}

ddp::OutboundMessage Responder::message(uint32_t seq, uint8_t version) const {
  const InboundRequest& request = inbound_.at(seq);
  if (request.atomic) {
    return {.version = version,
            .rsvd_ulp = wire::rdmap_control(WireOpcode::AtomicResponse, version),
            .qn = wire::kRdmapAtomicResponseQn,
            .msn = request.response_msn,
            .length = wire::kRdmapAtomicResponseSize};
  }
  const wire::RdmapReadRequest read = request.read();
  return {.tagged = true,
          .version = version,
          .rsvd_ulp = wire::rdmap_control(WireOpcode::ReadResponse, version),
          .stag = read.sink_stag,  // RDMAP-4.4-02: as they came
          .to = read.sink_to,
          .length = read.size};
}

mem::AccessFault Responder::locate(uint32_t seq, const ddp::Cut& cut, Payload& out) const {
  const InboundRequest& request = inbound_.at(seq);
  if (request.atomic) {
    out.make(cut, [&](uint8_t* octets) {
      wire::write_rdmap(octets, wire::RdmapAtomicResponse{.id = request.atomic_request().id,
                                                          .original = request.original});
    });
    return mem::AccessFault::None;
  }
  const wire::RdmapReadRequest read = request.read();
  const Sge source{read.source_to, read.size, read.source_stag};
  return out.gather(memory_, {&source, 1}, cut, Access::RemoteRead);
}

void Responder::open(uint32_t seq, SourceRun& out) const {
  const InboundRequest& request = inbound_.at(seq);
  if (request.atomic) return;
  const wire::RdmapReadRequest read = request.read();
  static_cast<void>(
      memory_.open({read.source_to, read.size, read.source_stag}, Access::RemoteRead, out));
}

std::array<uint8_t, wire::kRdmapReadRequestSize> Responder::rest(uint32_t seq,
                                                                 uint32_t done) const {
  std::array<uint8_t, wire::kRdmapReadRequestSize> left;
  inbound_.at(seq).remaining(done, left.data());
  return left;
}

uint64_t Responder::octets_waiting(uint64_t most, uint32_t overhead, bool begun) const {
  uint64_t waiting = 0;
  for (uint32_t response = inbound_.ready() + (begun ? 1 : 0);
       response != inbound_.end_of_ready() && waiting <= most; ++response) {
    const ddp::OutboundMessage next = message(response, 1);
    waiting += next.header_size() + uint64_t{next.length} + overhead;
  }
  return waiting;
}

}  // namespace rnic::rdmap
