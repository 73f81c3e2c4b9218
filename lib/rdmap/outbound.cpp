#include <algorithm>

#include "rdmap/endpoint.hpp"
#include "rdmap/opcodes.hpp"

namespace rnic::rdmap {

namespace {

// RecordTag: what a record is, so that it can be written again octet by octet.
//   a = kind 8 | last 8 | 16 zero | slot sequence number 32     b = offset 32 | payload length 32
constexpr int kKindShift = 56;
constexpr int kLastShift = 48;

llp::RecordTag make_tag(uint8_t kind, uint32_t seq, const ddp::Cut& cut) {
  return {.a = uint64_t{kind} << kKindShift | uint64_t{cut.last} << kLastShift | seq,
          .b = uint64_t{cut.offset} << 32 | cut.length};
}
uint8_t kind_of(const llp::RecordTag& tag) { return static_cast<uint8_t>(tag.a >> kKindShift); }
uint32_t seq_of(const llp::RecordTag& tag) { return static_cast<uint32_t>(tag.a); }
ddp::Cut cut_of(const llp::RecordTag& tag) {
  return {.offset = static_cast<uint32_t>(tag.b >> 32),
          .length = static_cast<uint32_t>(tag.b),
          .last = (tag.a >> kLastShift & 1) != 0};
}

WireOpcode wire_opcode(const PostedSend& work) {
  switch (work.opcode) {
    case Opcode::Write: return WireOpcode::Write;
    case Opcode::Read:
    case Opcode::ReadInvalidate: return WireOpcode::ReadRequest;
    case Opcode::FetchAdd:
    case Opcode::CompareSwap: return WireOpcode::AtomicRequest;
    case Opcode::Immediate:
      return work.solicited ? WireOpcode::ImmediateSolicited : WireOpcode::Immediate;
    case Opcode::SendInvalidate:
      return work.solicited ? WireOpcode::SendSolicitedInvalidate : WireOpcode::SendInvalidate;
    case Opcode::Send:
    case Opcode::Receive:
    case Opcode::LocalInvalidate: break;
  }
  return work.solicited ? WireOpcode::SendSolicited : WireOpcode::Send;
}

Sge first_sge(const PostedSend& work) { return work.sges().empty() ? Sge{} : work.sges()[0]; }

wire::RdmapReadRequest read_request(const PostedSend& work) {
  const Sge sink = first_sge(work);
  return {.sink_stag = sink.stag,
          .sink_to = sink.address,
          .size = sink.length,
          .source_stag = work.remote_stag,
          .source_to = work.remote_offset};
}

wire::RdmapAtomicRequest atomic_request(const SendSlot& slot) {
  const PostedSend& work = *slot.work;
  const AtomicOperands operands = work.atomic();
  const bool add = work.opcode == Opcode::FetchAdd;
  const auto code = add ? wire::RdmapAtomicCode::FetchAdd : wire::RdmapAtomicCode::CompareSwap;
  // RFC 7306 s.5.2.1: FetchAdd sends 0 and all ones for what it does not use.
  return {.code = static_cast<uint8_t>(code),
          .id = slot.msn,
          .stag = work.remote_stag,
          .to = work.remote_offset,
          .data = operands.data,
          .mask = operands.mask,
          .compare = add ? 0 : operands.compare,
          .compare_mask = add ? ~uint64_t{0} : operands.compare_mask};
}

/// Octets of the message that carries out this work.
uint32_t message_length(const SendSlot& slot) {
  if (is_read(slot.work->opcode)) return wire::kRdmapReadRequestSize;
  if (is_atomic(slot.work->opcode)) return wire::kRdmapAtomicRequestSize;
  return slot.length();
}

}  // namespace

ddp::OutboundMessage Endpoint::Impl::message_of(const SendSlot& slot) const {
  const PostedSend& work = *slot.work;
  ddp::OutboundMessage message{.version = version_,
                               .rsvd_ulp = wire::rdmap_control(wire_opcode(work), version_),
                               .length = message_length(slot)};
  if (work.opcode == Opcode::Write) {
    message.tagged = true;
    message.stag = work.remote_stag;
    message.to = work.remote_offset;
    return message;
  }
  if (work.opcode == Opcode::SendInvalidate) message.rsvd_ulp_tail = work.remote_stag;
  message.qn = has_response(work.opcode) ? wire::kRdmapReadRequestQn : wire::kRdmapSendQn;
  message.msn = slot.msn;
  return message;
}

ddp::OutboundMessage Endpoint::Impl::message_of(const InboundRequest& request) const {
  if (request.atomic) {
    return {.version = version_,
            .rsvd_ulp = wire::rdmap_control(WireOpcode::AtomicResponse, version_),
            .qn = wire::kRdmapAtomicResponseQn,
            .msn = request.response_msn,
            .length = wire::kRdmapAtomicResponseSize};
  }
  const wire::RdmapReadRequest read = request.read();
  return {.tagged = true,
          .version = version_,
          .rsvd_ulp = wire::rdmap_control(WireOpcode::ReadResponse, version_),
          .stag = read.sink_stag,  // RDMAP-4.4-02: as they came
          .to = read.sink_to,
          .length = read.size};
}

/// Checks where the response to a Read or an atomic goes.
CompletionStatus Endpoint::Impl::check_sink(const SendSlot& slot) const {
  const PostedSend& work = *slot.work;
  if (work.sges().size() > 1) return CompletionStatus::LocalLength;
  if (work.sges().empty()) {
    // There is no sink whose STag could be invalidated.
    return work.opcode == Opcode::ReadInvalidate ? CompletionStatus::LocalLength
                                                 : CompletionStatus::Success;
  }
  const Sge& sink = work.sges()[0];
  if (is_atomic(work.opcode) && sink.length != kAtomicSize) {
    return CompletionStatus::LocalLength;
  }
  if (sink.length == 0) return CompletionStatus::Success;
  const auto grant = access(sink.stag, sink.address, sink.length, Access::LocalWrite);
  return grant.fault == mem::AccessFault::None ? CompletionStatus::Success
                                               : CompletionStatus::LocalProtection;
}

CompletionStatus Endpoint::Impl::check_work(const SendSlot& slot) const {
  if (slot.work->length > UINT32_MAX) return CompletionStatus::LocalLength;  // DDP-5.2-02
  if (slot.work->opcode == Opcode::Immediate && !slot.work->sges().empty()) {
    return CompletionStatus::LocalLength;
  }
  return has_response(slot.work->opcode) ? check_sink(slot) : CompletionStatus::Success;
}

/// Passes over work that was refused when it was posted, and carries out what needs no message.
/// \return whether there is work with a message that may be looked at now.
bool Endpoint::Impl::skip_without_message(base::Now now) {
  while (sends_.has_next()) {
    SendSlot& slot = sends_.at(sends_.next());
    if (slot.status != CompletionStatus::Success) {
      sends_.advance();
      continue;
    }
    if (slot.work->opcode != Opcode::LocalInvalidate) return true;
    // What was posted before may still have to be read from the region, or written to it:
    // released() comes back here when all of that has completed.
    if (sends_.report() != sends_.next()) return false;
    const mem::Stag stag{slot.work->remote_stag};
    if (memory_.invalidate_local(stag, config_.pd, config_.qp) != mem::AccessFault::None) {
      slot.status = CompletionStatus::LocalProtection;
      raise({FaultLayer::Rdmap, ddp::kLocalCatastrophic, 0x00, "RDMAP-7.1-02"}, {}, {}, now);
      return false;
    }
    ++counters_.local_invalidations;
    slot.released = true;
    sends_.advance();
    completions_.complete_sends();
  }
  return false;
}

bool Endpoint::Impl::choose_send(base::Now now) {
  if (!skip_without_message(now)) return false;
  SendSlot& slot = sends_.at(sends_.next());
  const bool request = has_response(slot.work->opcode);
  if (slot.work->fence && outbound_.outstanding() != 0) return false;
  if (request) {
    if (stream_.peer_has_finished()) {  // no response can come any more
      fail();
      framing_->close();
      return false;
    }
    if (!outbound_.has_room()) return false;  // RDMAP-6.1-02
  }
  slot.status = check_work(slot);
  if (slot.status != CompletionStatus::Success) {
    // RFC 5040 s.7.1(1): an error while creating a message; Terminate goes in its place.
    raise({FaultLayer::Rdmap, 0x0, 0x00, "RDMAP-7.1-02"}, {}, {}, now);
    return false;
  }
  if (request) {
    slot.msn = msns_.request;
  } else if (slot.work->opcode != Opcode::Write) {
    slot.msn = msns_.send;
  }
  current_ = {.kind = Kind::Send, .seq = sends_.next(), .message = message_of(slot)};
  return true;
}

/// False: a Terminate was raised instead.
bool Endpoint::Impl::choose_response(base::Now now) {
  const uint32_t seq = inbound_.ready();
  InboundRequest& request = inbound_.at(seq);
  if (request.atomic) {
    const Fault fault = carry_out(request);
    if (fault.failed()) {
      ++counters_.faults;
      raise(fault, request.segment, {}, now);
      return false;
    }
  }
  current_ = {.kind = Kind::Response, .seq = seq, .message = message_of(request)};
  return true;
}

bool Endpoint::Impl::choose(base::Now now) {
  if (responses_turn_ && inbound_.has_ready()) return choose_response(now);
  if (choose_send(now)) return true;
  if (!running() || !inbound_.has_ready()) return false;
  return choose_response(now);
}

mem::AccessFault Endpoint::Impl::locate_send(SendSlot& slot, const ddp::Cut& cut, MadePayload& made,
                                             ddp::Pieces& out) {
  if (is_read(slot.work->opcode)) {
    wire::write_rdmap(made.data(), read_request(*slot.work));
  } else if (is_atomic(slot.work->opcode)) {
    wire::write_rdmap(made.data(), atomic_request(slot));
  } else if (slot.work->opcode == Opcode::Immediate) {
    std::ranges::copy(slot.work->immediate(), made.begin());
  } else {
    return ddp::locate(memory_, who(), slot.work->sges(), cut.offset, cut.length, Access::LocalRead,
                       out);
  }
  out.clear();
  out.add(made.data() + cut.offset, cut.length);
  return mem::AccessFault::None;
}

mem::AccessFault Endpoint::Impl::locate_response(const InboundRequest& request, const ddp::Cut& cut,
                                                 MadePayload& made, ddp::Pieces& out) const {
  out.clear();
  if (request.atomic) {
    wire::write_rdmap(made.data(), wire::RdmapAtomicResponse{.id = request.atomic_request().id,
                                                             .original = request.original});
    out.add(made.data() + cut.offset, cut.length);
    return mem::AccessFault::None;
  }
  if (cut.length == 0) return mem::AccessFault::None;
  const wire::RdmapReadRequest read = request.read();
  const auto grant =
      access(read.source_stag, read.source_to + cut.offset, cut.length, Access::RemoteRead);
  if (grant.fault == mem::AccessFault::None) out.add(grant.at, cut.length);
  return grant.fault;
}

/// Finds the payload of a part of a message, when it is built first and whenever it is rebuilt.
mem::AccessFault Endpoint::Impl::locate(Kind kind, uint32_t seq, const ddp::Cut& cut,
                                        MadePayload& made, ddp::Pieces& out) {
  if (kind == Kind::Response) return locate_response(inbound_.at(seq), cut, made, out);
  return locate_send(sends_.at(seq), cut, made, out);
}

void Endpoint::Impl::refuse_payload(const Current& current, const ddp::Cut& cut,
                                    mem::AccessFault fault, base::Now now) {
  if (current.kind == Kind::Response) {
    const InboundRequest& request = inbound_.at(current.seq);
    std::array<uint8_t, wire::kRdmapReadRequestSize> left;
    request.remaining(cut.offset, left.data());
    ++counters_.faults;
    raise(protection_fault(fault), request.segment, left, now);
    return;
  }
  sends_.at(current.seq).status = CompletionStatus::LocalProtection;
  raise({FaultLayer::Rdmap, 0x0, 0x00, "RDMAP-7.1-02"}, {}, {}, now);
}

void Endpoint::Impl::finish_send(SendSlot& slot) {
  const PostedSend& work = *slot.work;
  if (has_response(work.opcode)) {
    const Sge sink = first_sge(work);
    const bool atomic = is_atomic(work.opcode);
    outbound_.push({.seq = current_.seq,
                    .atomic = atomic,
                    .id = slot.msn,
                    .sink_stag = sink.stag,
                    .sink_to = sink.address,
                    .length = slot.length(),
                    .coverage = {}});
    // R7306-5-10: a buffer of queue 3 for each atomic that is outstanding.
    if (atomic) stream_.queue(wire::kRdmapAtomicResponseQn).provide(1);
    ++msns_.request;
  } else if (work.opcode != Opcode::Write) {
    ++msns_.send;
  }
  sends_.advance();
  responses_turn_ = true;
}

void Endpoint::Impl::finish_message() {
  ++counters_.messages_out;
  if (current_.kind == Kind::Response) {
    inbound_.served();
    provide_requests();
    responses_turn_ = false;
  } else {
    finish_send(sends_.at(current_.seq));
  }
  current_.kind = Kind::None;
}

llp::PulledUlpdu Endpoint::Impl::pull(uint32_t max, bool whole_only, llp::UlpduWriter& out,
                                      base::Now now) {
  if (state_ == EndpointState::Terminating) return pull_terminate(max, out);
  if (!running()) return {};
  if (rtr_.is_pending()) return pull_rtr(max, out, now);
  if (nudge_pending_ && current_.kind == Kind::None) return pull_nudge(max, out);
  if (current_.kind == Kind::None && !choose(now)) {
    if (state_ == EndpointState::Terminating) return pull_terminate(max, out);
    close_if_finished();
    return {};
  }
  const ddp::Cut cut = ddp::cut(current_.message, current_.offset, max, whole_only);
  if (!cut.possible) return {};
  ddp::Pieces payload;
  MadePayload made;
  const mem::AccessFault fault = locate(current_.kind, current_.seq, cut, made, payload);
  if (fault != mem::AccessFault::None) {
    refuse_payload(current_, cut, fault, now);
    return pull_terminate(max, out);
  }
  if (current_.kind == Kind::Send) {
    SendSlot& slot = sends_.at(current_.seq);
    slot.started = true;
    if (!has_response(slot.work->opcode)) counters_.octets_out += cut.length;
  } else if (current_.message.tagged) {
    counters_.octets_out += cut.length;
  }
  ddp::write(current_.message, cut, payload.view(), out);
  ++counters_.segments_out;
  const llp::PulledUlpdu pulled{
      .length = current_.message.header_size() + cut.length,
      .last = cut.last,
      .tag = make_tag(static_cast<uint8_t>(current_.kind), current_.seq, cut)};
  current_.offset += cut.length;
  if (cut.last) {
    finish_message();
    close_if_finished();
  }
  return pulled;
}

bool Endpoint::Impl::rebuild(const llp::RecordTag& tag, llp::UlpduWriter& out) {
  const uint32_t seq = seq_of(tag);
  const ddp::Cut cut = cut_of(tag);
  const auto kind = static_cast<Kind>(kind_of(tag));
  if (kind == Kind::None) return false;
  if (kind == Kind::Terminate) {
    write_terminate(out);
    return true;
  }
  if (kind == Kind::Rtr) {
    rtr_.write(version_, out);
    return true;
  }
  if (kind == Kind::Nudge) {
    write_empty_write(version_, out);
    return true;
  }
  const bool response = kind == Kind::Response;
  if (response ? !inbound_.holds(seq) : !sends_.holds(seq)) return false;
  ddp::Pieces payload;
  MadePayload made;
  if (locate(kind, seq, cut, made, payload) != mem::AccessFault::None) return false;
  ddp::write(response ? message_of(inbound_.at(seq)) : message_of(sends_.at(seq)), cut,
             payload.view(), out);
  return true;
}

void Endpoint::Impl::released(const llp::RecordTag& tag) {
  const ddp::Cut cut = cut_of(tag);
  if (!cut.last) return;
  const uint32_t seq = seq_of(tag);
  switch (static_cast<Kind>(kind_of(tag))) {
    case Kind::None:
    case Kind::Terminate:
    case Kind::Rtr:
    case Kind::Nudge: return;
    case Kind::Response:
      inbound_.release(seq);
      provide_requests();
      return;
    case Kind::Send: break;
  }
  if (!sends_.holds(seq)) return;
  sends_.at(seq).released = true;
  // After a flush the request has completed already, and only its slot is left to be freed.
  sends_.free_slots();
  if (!running()) return;
  completions_.complete_sends();
  if (sends_.report() != sends_.next() || !sends_.has_next()) return;
  // The next request may be an invalidation that has waited for all before it.
  if (sends_.at(sends_.next()).work->opcode == Opcode::LocalInvalidate) call_ready();
}

bool Endpoint::Impl::fills_segment(uint32_t octets, uint32_t overhead) const {
  // Nothing is gathered for a Response, an RTR, a nudge or a Terminate, which go at once, nor for
  // work that has no message, nor where the queue is empty.
  const bool sends = current_.kind == Kind::None || current_.kind == Kind::Send;
  const bool own = rtr_.is_pending() || nudge_pending_;
  if (!running() || own || inbound_.has_ready() || !sends) return true;
  if (!sends_.has_next()) return true;
  uint64_t waiting = 0;
  for (uint32_t seq = sends_.next(); seq != sends_.end(); ++seq) {
    const SendSlot& slot = sends_.at(seq);
    if (slot.work->opcode == Opcode::LocalInvalidate) return true;
    const bool begun = current_.kind == Kind::Send && current_.seq == seq;
    const uint32_t payload = message_length(slot) - (begun ? current_.offset : 0);
    const bool tagged = slot.work->opcode == Opcode::Write;
    waiting +=
        uint64_t{payload} + overhead + (tagged ? wire::kDdpTaggedSize : wire::kDdpUntaggedSize);
    if (waiting >= octets) return true;
  }
  return false;
}

bool Endpoint::Impl::all_fits(uint32_t octets, uint32_t overhead) const {
  // The count of a long queue ends early, as each ULPDU that waits costs a header at least.
  uint64_t waiting = 0;
  const auto add = [&](uint64_t header_and_payload) { waiting += header_and_payload + overhead; };
  if (state_ == EndpointState::Terminating) add(wire::kDdpUntaggedSize + terminate_.size());
  if (rtr_.is_pending()) add(wire::kDdpUntaggedSize + wire::kRdmapReadRequestSize);
  if (nudge_pending_) add(wire::kDdpTaggedSize);
  if (current_.kind != Kind::None) {
    add(current_.message.header_size() + current_.message.length - current_.offset);
  }
  if (!running()) return waiting <= octets;
  uint32_t response = inbound_.ready();
  if (current_.kind == Kind::Response) ++response;
  for (; response != inbound_.next_delivery() && waiting <= octets; ++response) {
    const ddp::OutboundMessage message = message_of(inbound_.at(response));
    add(message.header_size() + uint64_t{message.length});
  }
  uint32_t send = sends_.next();
  if (current_.kind == Kind::Send) ++send;
  for (; send != sends_.end() && waiting <= octets; ++send) {
    const SendSlot& slot = sends_.at(send);
    if (slot.work->opcode == Opcode::LocalInvalidate) continue;
    add(wire::kDdpUntaggedSize + uint64_t{message_length(slot)});
  }
  return waiting <= octets;
}

void Endpoint::Impl::write_terminate(llp::UlpduWriter& out) {
  const ddp::OutboundMessage message{
      .version = version_,
      .rsvd_ulp = wire::rdmap_control(WireOpcode::Terminate, version_),
      .qn = wire::kRdmapTerminateQn,
      .msn = 1,
      .length = terminate_.size()};
  ddp::Pieces payload;
  terminate_.add_to(payload);
  ddp::write(message, {.length = terminate_.size(), .last = true}, payload.view(), out);
}

llp::PulledUlpdu Endpoint::Impl::pull_terminate(uint32_t max, llp::UlpduWriter& out) {
  const uint32_t length = wire::kDdpUntaggedSize + terminate_.size();
  if (state_ != EndpointState::Terminating || length > max) return {};
  write_terminate(out);
  ++counters_.terminates_out;
  ++counters_.segments_out;
  ++counters_.messages_out;
  // RFC 5040 s.5.4: nothing follows a Terminate; the half close lets it arrive (RDMAP-6.2.1-03).
  set_state(EndpointState::Error);
  framing_->close();
  return {.length = length,
          .last = true,
          .tag = make_tag(static_cast<uint8_t>(Kind::Terminate), 0,
                          {.length = terminate_.size(), .last = true})};
}

llp::PulledUlpdu Endpoint::Impl::pull_rtr(uint32_t max, llp::UlpduWriter& out, base::Now now) {
  const uint32_t payload = rtr_.payload_size();
  const uint32_t length = rtr_.header_size() + payload;
  if (length > max) return {};
  rtr_.write(version_, out);
  rtr_.set_sent();
  ++counters_.segments_out;
  ++counters_.messages_out;
  ++counters_.rtrs_out;
  if (rtr_.kind() == Rtr::Read) {
    ++msns_.request;
    outbound_.push({.rtr = true});
  } else if (rtr_.kind() == Rtr::Send) {
    ++msns_.send;
  }
  owner_.event({.kind = EventKind::RtrSent}, now);
  if (sends_.has_next()) call_ready();
  return {.length = length,
          .last = true,
          .tag = make_tag(static_cast<uint8_t>(Kind::Rtr), 0, {.length = payload, .last = true})};
}

/// The peer may have our octets and not know of them: the receiver of Linux siw was not installed
/// yet when they came. The octets of another FPDU wake it (decision 10).
void Endpoint::Impl::peer_silent() {
  const bool spoke = sends_.next() != 0 || rtr_.was_sent();
  if (!running() || !spoke) return;
  nudge_pending_ = true;
  call_ready();
}

llp::PulledUlpdu Endpoint::Impl::pull_nudge(uint32_t max, llp::UlpduWriter& out) {
  constexpr uint32_t kOctets = wire::kDdpTaggedSize;
  if (kOctets > max) return {};
  write_empty_write(version_, out);
  nudge_pending_ = false;
  ++counters_.segments_out;
  ++counters_.messages_out;
  ++counters_.nudges_out;
  if (sends_.has_next() || inbound_.has_ready()) call_ready();
  return {.length = kOctets,
          .last = true,
          .tag = make_tag(static_cast<uint8_t>(Kind::Nudge), 0, {.length = 0, .last = true})};
}

void Endpoint::Impl::close_if_finished() {
  if (state_ != EndpointState::Closing || framing_ == nullptr) return;
  // The peer may close as soon as it sees our FIN: what we still wait for comes first.
  if (rtr_.is_pending() || current_.kind != Kind::None || sends_.has_next() ||
      outbound_.outstanding() != 0 || inbound_.has_ready()) {
    return;
  }
  set_state(EndpointState::HalfClosed);
  framing_->close();
}

void Endpoint::Impl::call_ready() {
  if (framing_ != nullptr) framing_->ready();
}

}  // namespace rnic::rdmap
