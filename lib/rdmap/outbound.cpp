#include "base/sabotage.hpp"
#include "rdmap/engine.hpp"
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

wire::rdmap::Opcode wire_opcode(const SendWork& work) {
  using wire::rdmap::Opcode;
  switch (work.opcode) {
    case WorkOpcode::Write: return Opcode::Write;
    case WorkOpcode::Read: return Opcode::ReadRequest;
    case WorkOpcode::SendInvalidate:
      return work.solicited ? Opcode::SendSolicitedInvalidate : Opcode::SendInvalidate;
    case WorkOpcode::Send:
    case WorkOpcode::Receive: break;
  }
  return work.solicited ? Opcode::SendSolicited : Opcode::Send;
}

// The payload of a Read's message is a function of its work request: nothing is stored for a
// rebuild.
void emit_read_request(const SendWork& work, uint8_t* out) {
  const Sge sink = work.sge_count != 0 ? work.sges[0] : Sge{};
  wire::rdmap::emit(wire::rdmap::ReadRequest{.sink_stag = sink.stag,
                                             .sink_to = sink.address,
                                             .size = sink.length,
                                             .source_stag = work.remote_stag,
                                             .source_to = work.remote_to},
                    out);
}

}  // namespace

ddp::OutboundMessage Endpoint::Impl::message_of(const SendSlot& slot) const {
  const SendWork& work = slot.work;
  ddp::OutboundMessage message{.version = version_,
                               .rsvd_ulp = wire::rdmap::control(wire_opcode(work), version_),
                               .length = slot.length};
  switch (work.opcode) {
    case WorkOpcode::Write:
      message.tagged = true;
      message.stag = work.remote_stag;
      message.to = work.remote_to;
      break;
    case WorkOpcode::Read:
      message.qn = wire::rdmap::kReadRequestQn;
      message.msn = slot.msn;
      message.length = wire::rdmap::kReadRequestSize;
      break;
    case WorkOpcode::SendInvalidate: message.rsvd_ulp_tail = work.remote_stag; [[fallthrough]];
    case WorkOpcode::Send:
    case WorkOpcode::Receive:
      message.qn = wire::rdmap::kSendQn;
      message.msn = slot.msn;
      break;
  }
  return message;
}

ddp::OutboundMessage Endpoint::Impl::message_of(const InboundRead& read) const {
  return {.tagged = true,
          .version = version_,
          .rsvd_ulp = wire::rdmap::control(wire::rdmap::Opcode::ReadResponse, version_),
          .stag = read.request.sink_stag,  // RDMAP-4.4-02: as they came
          .to = read.request.sink_to,
          .length = read.request.size};
}

WorkStatus Endpoint::Impl::check_read(const SendSlot& slot) const {
  if (slot.work.sge_count > 1) return WorkStatus::LocalLength;
  if (slot.length == 0) return WorkStatus::Success;
  const Sge& sink = slot.work.sges[0];
  const auto grant = memory_.access({.stag = mem::Stag{sink.stag},
                                     .to = sink.address,
                                     .length = sink.length,
                                     .rights = mem::kLocalWrite,
                                     .pd = config_.pd,
                                     .stream = config_.qp});
  return grant.fault == mem::AccessFault::None ? WorkStatus::Success : WorkStatus::LocalProtection;
}

bool Endpoint::Impl::choose_send() {
  while (sends_.has_next() && sends_.at(sends_.next()).status != WorkStatus::Success) {
    sends_.advance();  // refused when it was posted
  }
  if (!sends_.has_next()) return false;
  SendSlot& slot = sends_.at(sends_.next());
  const uint32_t reads = outbound_reads_.outstanding();
  if (slot.work.fence && reads != 0) return false;
  if (slot.work.opcode == WorkOpcode::Read) {
    if (peer_finished_) {  // no Response can come any more
      fail();
      framing_->close();
      return false;
    }
    if (!outbound_reads_.has_room()) return false;  // RDMAP-6.1-02
    slot.status = check_read(slot);
  }
  if (slot.work.length() > UINT32_MAX) slot.status = WorkStatus::LocalLength;  // DDP-5.2-02
  if (slot.status != WorkStatus::Success) {
    // RFC 5040 s.7.1(1): an error while creating a message; Terminate goes in its place.
    raise({ddp::kLayerUpper, 0x0, 0x00, "RDMAP-7.1-02"}, {}, {});
    return false;
  }
  if (slot.work.opcode == WorkOpcode::Read) {
    slot.msn = read_msn_;
  } else if (slot.work.opcode != WorkOpcode::Write) {
    slot.msn = send_msn_;
  }
  current_ = {.kind = Kind::Send, .seq = sends_.next(), .message = message_of(slot)};
  return true;
}

void Endpoint::Impl::choose_response() {
  const uint32_t seq = inbound_reads_.ready();
  current_ = {.kind = Kind::Response, .seq = seq, .message = message_of(inbound_reads_.at(seq))};
}

bool Endpoint::Impl::choose() {
  if (responses_turn_ && inbound_reads_.has_ready()) {
    choose_response();
    return true;
  }
  if (choose_send()) return true;
  if (!running() || !inbound_reads_.has_ready()) return false;
  choose_response();
  return true;
}

mem::AccessFault Endpoint::Impl::locate_send(SendSlot& slot, const ddp::Cut& cut,
                                             ddp::Pieces& out) {
  return ddp::locate(memory_, who(), {slot.work.sges.data(), slot.work.sge_count}, cut.offset,
                     cut.length, mem::kLocalRead, out);
}

mem::AccessFault Endpoint::Impl::locate_response(const InboundRead& read, const ddp::Cut& cut,
                                                 ddp::Pieces& out) const {
  out.clear();
  if (cut.length == 0) return mem::AccessFault::None;
  const auto grant = memory_.access({.stag = mem::Stag{read.request.source_stag},
                                     .to = read.request.source_to + cut.offset,
                                     .length = cut.length,
                                     .rights = mem::kRemoteRead,
                                     .pd = config_.pd,
                                     .stream = config_.qp});
  if (grant.fault == mem::AccessFault::None) out.add(grant.at, cut.length);
  return grant.fault;
}

/// False: a Terminate was raised instead.
bool Endpoint::Impl::locate_payload(const Current& current, const ddp::Cut& cut, ddp::Pieces& out) {
  if (current.kind == Kind::Response) {
    const InboundRead& read = inbound_reads_.at(current.seq);
    const ddp::Fault fault = read_source_fault(locate_response(read, cut, out));
    if (!fault.failed()) return true;
    std::array<uint8_t, wire::rdmap::kReadRequestSize> left;
    read.remaining(cut.offset, left.data());
    ++counters_.faults;
    raise(fault, read.segment, left);
    return false;
  }
  SendSlot& slot = sends_.at(current.seq);
  if (locate_send(slot, cut, out) == mem::AccessFault::None) return true;
  slot.status = WorkStatus::LocalProtection;
  raise({ddp::kLayerUpper, 0x0, 0x00, "RDMAP-7.1-02"}, {}, {});
  return false;
}

void Endpoint::Impl::finish_message() {
  ++counters_.messages_out;
  if (current_.kind == Kind::Response) {
    inbound_reads_.served();
    provide_reads();
    responses_turn_ = false;
  } else {
    SendSlot& slot = sends_.at(current_.seq);
    if (slot.work.opcode == WorkOpcode::Read) {
      ++read_msn_;
      const Sge sink = slot.work.sge_count != 0 ? slot.work.sges[0] : Sge{};
      outbound_reads_.push({.seq = current_.seq,
                            .sink_stag = sink.stag,
                            .sink_to = sink.address,
                            .length = slot.length});
    } else if (slot.work.opcode != WorkOpcode::Write) {
      ++send_msn_;
    }
    sends_.advance();
    responses_turn_ = true;
    if (base::sabotaged(base::Defect::CompleteBeforeData) && slot.work.opcode != WorkOpcode::Read) {
      slot.early = true;
      complete_sends();
    }
  }
  current_.kind = Kind::None;
}

llp::PulledUlpdu Endpoint::Impl::pull(uint32_t max, bool whole_only, llp::UlpduWriter& out) {
  if (state_ == EndpointState::Terminating) return pull_terminate(max, out);
  if (!running()) return {};
  if (current_.kind == Kind::None && !choose()) {
    if (state_ == EndpointState::Terminating) return pull_terminate(max, out);
    close_if_finished();
    return {};
  }
  const ddp::Cut cut = ddp::cut(current_.message, current_.offset, max, whole_only);
  if (!cut.possible) return {};
  ddp::Pieces payload;
  std::array<uint8_t, wire::rdmap::kReadRequestSize> request;
  SendSlot* slot = current_.kind == Kind::Send ? &sends_.at(current_.seq) : nullptr;
  if (slot != nullptr && slot->work.opcode == WorkOpcode::Read) {
    emit_read_request(slot->work, request.data());
    payload.add(request.data() + cut.offset, cut.length);
  } else {
    if (!locate_payload(current_, cut, payload)) return pull_terminate(max, out);
    counters_.octets_out += cut.length;
  }
  if (slot != nullptr) slot->started = true;
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
  ddp::Pieces payload;
  switch (static_cast<Kind>(kind_of(tag))) {
    case Kind::None: return false;
    case Kind::Terminate: write_terminate(out); return true;
    case Kind::Response: {
      if (!inbound_reads_.holds(seq)) return false;
      const InboundRead& read = inbound_reads_.at(seq);
      if (locate_response(read, cut, payload) != mem::AccessFault::None) return false;
      ddp::write(message_of(read), cut, payload.view(), out);
      return true;
    }
    case Kind::Send: break;
  }
  if (!sends_.holds(seq)) return false;
  SendSlot& slot = sends_.at(seq);
  std::array<uint8_t, wire::rdmap::kReadRequestSize> request;
  if (slot.work.opcode == WorkOpcode::Read) {
    emit_read_request(slot.work, request.data());
    payload.add(request.data() + cut.offset, cut.length);
  } else if (locate_send(slot, cut, payload) != mem::AccessFault::None) {
    return false;
  }
  ddp::write(message_of(slot), cut, payload.view(), out);
  return true;
}

void Endpoint::Impl::released(const llp::RecordTag& tag) {
  const ddp::Cut cut = cut_of(tag);
  if (!cut.last) return;
  const uint32_t seq = seq_of(tag);
  switch (static_cast<Kind>(kind_of(tag))) {
    case Kind::None:
    case Kind::Terminate: return;
    case Kind::Response:
      inbound_reads_.release(seq);
      provide_reads();
      return;
    case Kind::Send: break;
  }
  if (!sends_.holds(seq)) return;
  SendSlot& slot = sends_.at(seq);
  slot.released = true;
  if (base::sabotaged(base::Defect::CompletionOutOfOrder) && slot.done() && !slot.reported) {
    slot.reported = true;
    report_work({.id = slot.work.id, .opcode = slot.work.opcode, .length = slot.length},
                slot.work.signaled);
  }
  // After a flush the user was told already, and only the slot is left to be freed.
  sends_.free_slots();
  if (running()) complete_sends();
}

void Endpoint::Impl::write_terminate(llp::UlpduWriter& out) {
  const ddp::OutboundMessage message{
      .version = version_,
      .rsvd_ulp = wire::rdmap::control(wire::rdmap::Opcode::Terminate, version_),
      .qn = wire::rdmap::kTerminateQn,
      .msn = 1,
      .length = terminate_size_};
  ddp::Pieces payload;
  payload.add(terminate_.data(), terminate_size_);
  ddp::write(message, {.length = terminate_size_, .last = true}, payload.view(), out);
}

llp::PulledUlpdu Endpoint::Impl::pull_terminate(uint32_t max, llp::UlpduWriter& out) {
  const uint32_t length = wire::ddp::kUntaggedSize + terminate_size_;
  if (state_ != EndpointState::Terminating || length > max) return {};
  write_terminate(out);
  ++counters_.terminates_out;
  ++counters_.segments_out;
  ++counters_.messages_out;
  // RFC 5040 s.5.4: nothing follows a Terminate; the half close lets it arrive (RDMAP-6.2.1-03).
  state_ = EndpointState::Error;
  closed_ = true;
  framing_->close();
  return {.length = length,
          .last = true,
          .tag = make_tag(static_cast<uint8_t>(Kind::Terminate), 0,
                          {.length = terminate_size_, .last = true})};
}

void Endpoint::Impl::close_if_finished() {
  if (state_ != EndpointState::Closing || closed_ || framing_ == nullptr) return;
  // The peer may close as soon as it sees our FIN: what we still wait for comes first.
  if (current_.kind != Kind::None || sends_.has_next() || outbound_reads_.outstanding() != 0 ||
      inbound_reads_.has_ready()) {
    return;
  }
  closed_ = true;
  framing_->close();
}

void Endpoint::Impl::call_ready() {
  if (framing_ != nullptr) framing_->ready();
}

}  // namespace rnic::rdmap
