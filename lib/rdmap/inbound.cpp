#include "base/starved.hpp"
#include "rdmap/endpoint.hpp"
#include "rdmap/opcodes.hpp"

namespace rnic::rdmap {

namespace {

// RFC 5040 s.5.3: "STag cannot be invalidated", for an STag that does not exist, is not of this
// stream, or may not be invalidated. Figure 9 has the code under protection and operation errors;
// figure 10 names the two Send types with Invalidate under protection errors only.
constexpr Fault kCannotInvalidate{FaultLayer::Rdmap, 0x1, 0x09, "RDMAP-5.3-07"};

// RFC 5040 s.4.3: a message has one RDMAP control field and one Invalidate STag.
constexpr Fault kMixedMessage{FaultLayer::Rdmap, 0x2, 0x06, "DDP-4.3-02"};
// RFC 7306 s.6.3: exactly 8 octets; the text names no code.
constexpr Fault kBadImmediate{FaultLayer::Rdmap, 0x2, 0xff, "R7306-6-01"};

bool is_opcode(uint8_t control, WireOpcode opcode) {
  return wire::rdmap_opcode(control) == static_cast<uint8_t>(opcode);
}

/// RDMAP-4.8-08, RDMAP-4.8-09: a Terminate quotes what was left to do of a Read.
bool is_rest_of(const wire::RdmapReadRequest& left, const PostedSend& read) {
  if (read.sges().empty()) return false;
  const Sge& sink = read.sges()[0];
  const uint64_t offset = left.sink_to - sink.address;
  return left.sink_stag == sink.stag && offset <= sink.length && left.size == sink.length - offset;
}

bool is_response(uint8_t control) { return is_opcode(control, WireOpcode::ReadResponse); }

bool is_immediate(uint8_t control) {
  return is_opcode(control, WireOpcode::Immediate) ||
         is_opcode(control, WireOpcode::ImmediateSolicited);
}

}  // namespace

Fault Endpoint::Impl::check(uint8_t control, bool tagged, uint32_t qn,
                            const OpcodeRow*& row) const {
  return check_control(
      control, {.version = version_, .extensions = config_.extensions, .tagged = tagged, .qn = qn},
      row);
}

Fault Endpoint::Impl::tagged_rights(const wire::DdpTaggedHeader& header, uint32_t payload,
                                    AccessSet& rights) {
  const OpcodeRow* row = nullptr;
  const Fault fault = check(header.rsvd_ulp, true, 0, row);
  if (fault.failed()) return fault;
  rights = row->rights;
  return is_response(header.rsvd_ulp) ? outbound_.check(header, payload) : ddp::kNoFault;
}

Fault Endpoint::Impl::untagged_target(const wire::DdpUntaggedHeader& header,
                                      ddp::UntaggedTarget& out) {
  const OpcodeRow* row = nullptr;
  const Fault fault = check(header.rsvd_ulp, false, header.qn, row);
  if (fault.failed()) return fault;
  switch (header.qn) {
    case wire::kRdmapSendQn: {
      if (agreement_.send_rtr_in && header.msn == 1) {
        out = {};  // nothing may be in it
        break;
      }
      ReceiveSlot& slot = receives_.of_msn(header.msn);
      if (is_immediate(header.rsvd_ulp)) {
        out = {.internal = slot.immediate, .length = slot.immediate.size()};
      } else {
        out = {.sges = slot.work->sges(), .length = slot.work->length};
      }
      break;
    }
    case wire::kRdmapReadRequestQn: {
      InboundRequest& request = inbound_.of_msn(header.msn);
      const bool atomic = is_opcode(header.rsvd_ulp, WireOpcode::AtomicRequest);
      out = {.internal = request.raw,
             .length = atomic ? wire::kRdmapAtomicRequestSize : wire::kRdmapReadRequestSize};
      break;
    }
    case wire::kRdmapAtomicResponseQn:
      out = {.internal = outbound_.atomic_buffer(header.msn),
             .length = wire::kRdmapAtomicResponseSize};
      break;
    default: out = {.internal = terminate_in_, .length = terminate_in_.size()}; break;
  }
  return ddp::kNoFault;
}

Fault Endpoint::Impl::deliver_tagged(const wire::DdpTaggedHeader& header, uint32_t payload) {
  if (is_response(header.rsvd_ulp)) return deliver_read_response(header, payload);
  if (header.last) ++counters_.writes_in;  // RDMAP-5.1-02: the user is not told
  return ddp::kNoFault;
}

Fault Endpoint::Impl::deliver_untagged(const wire::DdpUntaggedHeader& header, uint64_t length,
                                       bool uniform, const ddp::SegmentReport& segment,
                                       base::Now now) {
  if (!uniform) return kMixedMessage;
  switch (static_cast<WireOpcode>(wire::rdmap_opcode(header.rsvd_ulp))) {
    case WireOpcode::Immediate:
    case WireOpcode::ImmediateSolicited:
      return deliver_immediate(*opcode_row(wire::rdmap_opcode(header.rsvd_ulp)), length);
    case WireOpcode::ReadRequest: return deliver_read_request(header.msn, length, segment);
    case WireOpcode::AtomicRequest: return deliver_atomic_request(header.msn, length, segment);
    case WireOpcode::AtomicResponse: return deliver_atomic_response(header.msn, length);
    case WireOpcode::Terminate: receive_terminate(length, now); return ddp::kNoFault;
    default: break;
  }
  return deliver_send(*opcode_row(wire::rdmap_opcode(header.rsvd_ulp)), header, length);
}

Fault Endpoint::Impl::deliver_send(const OpcodeRow& row, const wire::DdpUntaggedHeader& header,
                                   uint64_t length) {
  if (agreement_.send_rtr_in && header.msn == 1) return ddp::kNoFault;  // CM6581-9.2-07
  uint32_t invalidated = 0;
  if (row.invalidates) {
    // RFC 5040 s.5.3: invalidated before the user sees the completion.
    invalidated = header.rsvd_ulp_tail;
    const auto refused = memory_.invalidate(mem::Stag{invalidated}, config_.pd, config_.qp);
    if (refused != mem::AccessFault::None) return kCannotInvalidate;
  }
  ++counters_.sends_in;
  report_receive({.solicited = row.solicited,
                  .length = static_cast<uint32_t>(length),
                  .invalidated_stag = invalidated});
  return ddp::kNoFault;
}

Fault Endpoint::Impl::deliver_immediate(const OpcodeRow& row, uint64_t length) {
  if (length != wire::kRdmapImmediateSize) return kBadImmediate;
  ++counters_.immediates_in;
  report_receive({.solicited = row.solicited,
                  .has_immediate = true,
                  .length = wire::kRdmapImmediateSize,
                  .immediate = receives_.front().immediate});
  return ddp::kNoFault;
}

Fault Endpoint::Impl::accept_read(uint32_t msn, uint64_t length) {
  if (length != wire::kRdmapReadRequestSize) return kBadReadRequest;
  const wire::RdmapReadRequest read = inbound_.of_msn(msn).read();
  if (read.size != 0) {  // RDMAP-5.2.1-04: nothing of a zero-length Read's source is checked
    const auto grant = access(read.source_stag, read.source_to, read.size, Access::RemoteRead);
    const Fault fault = protection_fault(grant.fault);
    if (fault.failed()) return fault;
  }
  inbound_.deliver();
  call_ready();
  return ddp::kNoFault;
}

Fault Endpoint::Impl::deliver_read_request(uint32_t msn, uint64_t length,
                                           const ddp::SegmentReport& segment) {
  ++counters_.read_requests_in;
  inbound_.of_msn(msn).segment = segment;
  return accept_read(msn, length);
}

Fault Endpoint::Impl::deliver_read_response(const wire::DdpTaggedHeader& header, uint32_t payload) {
  const OutboundRequest* done = nullptr;
  const Fault fault = outbound_.deliver(header, payload, done);
  if (fault.failed() || done == nullptr) return fault;
  if (done->rtr) {
    finish_request(*done);
    return ddp::kNoFault;
  }
  ++counters_.read_responses_in;
  SendSlot& slot = sends_.at(done->seq);
  if (slot.work->opcode == Opcode::ReadInvalidate) {
    const mem::Stag sink{slot.work->sges()[0].stag};
    if (memory_.invalidate_local(sink, config_.pd, config_.qp) != mem::AccessFault::None) {
      slot.status = CompletionStatus::LocalProtection;
      return {FaultLayer::Rdmap, ddp::kLocalCatastrophic, 0x00, "RDMAP-7.1-01"};
    }
    ++counters_.local_invalidations;
  }
  finish_request(*done);
  return ddp::kNoFault;
}

/// The oldest Read or atomic has its response.
void Endpoint::Impl::finish_request(const OutboundRequest& request) {
  if (!request.rtr) sends_.at(request.seq).answered = true;
  outbound_.pop();
  complete_sends();
  // A fence or the ORD may have held back what follows; a graceful close may have waited (BUG-07).
  close_if_finished();
  if (sends_.has_next()) call_ready();
}

void Endpoint::Impl::receive_terminate(uint64_t length, base::Now now) {
  ++counters_.terminates_in;
  auto received = read_terminate(base::ByteView(terminate_in_).first(length));
  EndpointEvent event{.kind = EventKind::TerminateReceived};
  if (received) {
    event.fault = received->fault;
    if (received->order == wire::TerminateBitOrder::Siw) ++counters_.siw_terminates;
    event.detail = std::move(received->detail);
    blame(received->header);
  } else {
    ++counters_.malformed_terminates;
    event.fault = Fault{FaultLayer::Rdmap, 0x2, 0xff, "RDMAP-5.4-06"};
    event.detail = base::worded([&] {
      return "malformed Terminate received: " + hex(base::ByteView(terminate_in_).first(length));
    });
  }
  // RDMAP-5.4-05: we stop sending, too.
  set_state(EndpointState::Error);
  stream_.stop();
  current_.kind = Kind::None;
  owner_.event(event, now);
  flush();
  if (framing_ != nullptr) {
    framing_->discard_received();
    framing_->close();
  }
}

/// Marks the work request whose message the Terminate carries the header of.
void Endpoint::Impl::blame(const wire::Terminate& terminate) {
  const base::ByteView header{terminate.ddp_header.data(), terminate.ddp_header_size};
  const auto tagged = wire::parse_ddp_tagged(header);
  const auto untagged = wire::parse_ddp_untagged(header);
  const auto request = terminate.has_rdma_header
                           ? wire::parse_rdmap_read_request(terminate.rdma_header)
                           : std::nullopt;
  SendSlot* likely = nullptr;
  // The message that is being pulled is one of them.
  for (uint32_t seq = sends_.report(); seq != sends_.end(); ++seq) {
    SendSlot& slot = sends_.at(seq);
    const PostedSend& work = *slot.work;
    if (!slot.started) continue;
    bool blamed = false;
    if (work.opcode == Opcode::Write) {
      const uint64_t offset = tagged ? tagged->to - work.remote_offset : 0;
      blamed = tagged && tagged->stag == work.remote_stag &&
               (offset < work.length || (offset == 0 && work.length == 0));
    } else if (untagged) {
      const bool on_queue_1 = untagged->qn == wire::kRdmapReadRequestQn;
      blamed = on_queue_1 == has_response(work.opcode) && untagged->msn == slot.msn &&
               (on_queue_1 || untagged->qn == wire::kRdmapSendQn);
      if (request && is_read(work.opcode)) {
        // siw puts the size where the MSN belongs (RDMAP-4.8-10): the Read Request tells, too.
        const bool quoted = is_rest_of(*request, work);
        blamed = blamed && quoted;
        if (quoted && likely == nullptr) likely = &slot;
      }
    }
    if (blamed) {
      slot.status = CompletionStatus::RemoteTerminated;
      return;
    }
  }
  if (likely != nullptr) likely->status = CompletionStatus::RemoteTerminated;
}

}  // namespace rnic::rdmap
