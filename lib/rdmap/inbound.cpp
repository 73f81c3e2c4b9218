#include "rdmap/inbound.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/starved.hpp"
#include "rdmap/terminate.hpp"

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

}  // namespace

Inbound::Inbound(const Options& options, const StreamMemory& memory, const Links& links)
    : extensions_(options.extensions),
      memory_(memory),
      life_(links.life),
      receives_(links.receives),
      requester_(links.requester),
      responder_(links.responder),
      completions_(links.completions),
      stream_(links.stream),
      counters_(links.counters),
      owner_(links.owner),
      wait_(options.receive_wait) {
  stream_.provide(wire::kRdmapTerminateQn, 1);  // RDMAP-5.4-01
  // The receives that an earlier endpoint on the same queue has accepted stay.
  stream_.provide(wire::kRdmapSendQn, receives_.accepted());
}

void Inbound::begin(bool send_rtr) {
  send_rtr_in_ = send_rtr;
  if (!send_rtr) return;
  receives_.begin_at(2);
  stream_.provide(wire::kRdmapSendQn, 1);
}

void Inbound::validate() const {
  receives_.validate();
  RNIC_CHECK(!send_rtr_in_ || life_.state() != EndpointState::Idle);
  RNIC_CHECK(!wait_.is_going() || life_.running());
  RNIC_CHECK(!receives_.waits() || wait_.is_going());
}

void Inbound::accept_posted() {
  while (receives_.has_posted()) {
    receives_.accept();
    stream_.provide(wire::kRdmapSendQn, 1);
  }
}

base::ByteView Inbound::read_request(const ddp::SegmentReport& segment) const {
  const auto header = wire::parse_ddp_untagged(segment.view());
  if (!header) return {};
  // R7306-8-01: a Terminate attaches the header of a Read Request, and none of an atomic's.
  const OpcodeRow* row = opcode_row(wire::rdmap_opcode(header->rsvd_ulp));
  if (row == nullptr || !row->attached || header->qn != row->qn) return {};
  return responder_.read_request(header->msn);
}

void Inbound::refuse_buffer(const ddp::SegmentReport& segment) {
  const auto header = wire::parse_ddp_untagged(segment.view());
  if (!header || header->qn != wire::kRdmapSendQn || !receives_.has_msn(header->msn)) return;
  receives_.refuse(header->msn);
}

Fault Inbound::check(uint8_t control, bool tagged, uint32_t qn, const OpcodeRow*& row) const {
  return check_control(
      control, {.version = life_.version(), .extensions = extensions_, .tagged = tagged, .qn = qn},
      row);
}

Fault Inbound::tagged_target(const wire::DdpTaggedHeader& header, uint32_t payload,
                             ddp::TaggedTarget& out) {
  const OpcodeRow* row = nullptr;
  const Fault fault = check(header.rsvd_ulp, true, 0, row);
  if (fault.failed()) return fault;
  out.rights = row->rights;
  if (row->asked) return requester_.response_target(header, payload, out);
  out.same = {0, UINT64_MAX};
  out.quiet = true;  // deliver_write() only counts
  out.messages = &counters_.writes_in;
  return ddp::kNoFault;
}

Fault Inbound::untagged_target(const wire::DdpUntaggedHeader& header, ddp::UntaggedTarget& out) {
  const OpcodeRow* row = nullptr;
  const Fault fault = check(header.rsvd_ulp, false, header.qn, row);
  if (fault.failed()) return fault;
  switch (header.qn) {
    case wire::kRdmapSendQn: {
      if (send_rtr_in_ && header.msn == 1) {
        out = {};  // the message must be empty
        break;
      }
      const ReceiveSlot& slot = receives_.of_msn(header.msn);
      if (row->size != 0) {  // Immediate Data do not go to the user's memory
        out = {.internal = receives_.immediate_buffer(header.msn), .length = row->size};
      } else {
        out = {.sges = slot.work->sges(), .length = slot.work->length};
      }
      break;
    }
    case wire::kRdmapReadRequestQn:
      out = {.internal = responder_.buffer(header.msn), .length = row->size};
      break;
    case wire::kRdmapAtomicResponseQn:
      out = {.internal = requester_.response_buffer(header.msn), .length = row->size};
      break;
    default: out = {.internal = terminate_in_, .length = terminate_in_.size()}; break;
  }
  return ddp::kNoFault;
}

/// Takes receives of a shared queue when the first segment of a message has come; messages get them
/// in their order. A message in order is the first without a receive; any other MSN breaks a rule.
/// For a message ahead of the order, the messages between get theirs, too, so that none of them
/// ever waits for a later one.
bool Inbound::find_buffer(const wire::DdpUntaggedHeader& header, uint32_t missing, bool in_order) {
  if (header.qn != wire::kRdmapSendQn || (in_order && missing != 1)) return false;
  if (!receives_.claim(missing, in_order)) return false;
  stream_.provide(wire::kRdmapSendQn, missing);
  return true;
}

/// The first call for a message begins its wait, and later calls ask whether the wait goes on.
/// Messages that wait for a shared queue get receives in the order in which they began to wait.
bool Inbound::waits_for_buffer(const wire::DdpUntaggedHeader& header, base::Now now) {
  const OpcodeRow* row = nullptr;
  if (header.qn != wire::kRdmapSendQn || check(header.rsvd_ulp, false, header.qn, row).failed()) {
    return false;
  }
  const bool goes_on = wait_.is_going() && wait_.msn() == header.msn;
  if (goes_on && !wait_.is_over(now)) return true;
  if (goes_on) {
    ++counters_.receive_waits_expired;
    leave_wait();
    return false;
  }
  leave_wait();
  if (!wait_.is_allowed()) return false;
  wait_.begin(header.msn, now);
  receives_.begin_wait();
  ++waits_begun_;
  ++counters_.receive_waits;
  owner_.wait_began(wait_.deadline());
  return true;
}

bool Inbound::may_resume(base::Now now) const {
  if (!wait_.is_going()) return false;
  return wait_.is_over(now) || receives_.serves_wait(wait_.msn());
}

void Inbound::leave_wait() {
  wait_.end();
  receives_.end_wait();
}

Fault Inbound::deliver_tagged(const wire::DdpTaggedHeader& header, uint32_t payload) {
  const OpcodeRow& row = *opcode_row(wire::rdmap_opcode(header.rsvd_ulp));
  return (this->*row.deliver_segment)(header, payload);
}

Fault Inbound::deliver_untagged(const wire::DdpUntaggedHeader& header, uint64_t length,
                                bool uniform, const ddp::SegmentReport& segment, base::Now now) {
  if (!uniform) return kMixedMessage;
  const OpcodeRow& row = *opcode_row(wire::rdmap_opcode(header.rsvd_ulp));
  return (this->*row.deliver_message)({row, header, length, segment, now});
}

Fault Inbound::deliver_write(const wire::DdpTaggedHeader& header, uint32_t payload) {
  written_ += payload;
  if (header.last) ++counters_.writes_in;  // RDMAP-5.1-02: the user is not told
  return ddp::kNoFault;
}

/// DDP tells of some segments without L by their octets alone.
uint32_t Inbound::take_written() {
  const uint64_t octets = std::exchange(written_, 0) + stream_.take_quiet_octets();
  return static_cast<uint32_t>(std::min<uint64_t>(octets, UINT32_MAX));
}

Fault Inbound::deliver_send(const UntaggedMessage& message) {
  if (send_rtr_in_ && message.header.msn == 1) return ddp::kNoFault;  // CM6581-9.2-07
  uint32_t invalidated = 0;
  if (message.row.invalidates) {
    // RFC 5040 s.5.3: the STag is invalidated before the user sees the completion.
    invalidated = message.header.rsvd_ulp_tail;
    if (memory_.invalidate(invalidated) != mem::AccessFault::None) return kCannotInvalidate;
  }
  ++counters_.sends_in;
  static_cast<void>(take_written());
  completions_.report_receive({.solicited = message.row.solicited,
                               .length = static_cast<uint32_t>(message.length),
                               .invalidated_stag = invalidated});
  return ddp::kNoFault;
}

Fault Inbound::deliver_immediate(const UntaggedMessage& message) {
  if (message.length != message.row.size) return kBadImmediate;
  ++counters_.immediates_in;
  completions_.report_receive({.solicited = message.row.solicited,
                               .has_immediate = true,
                               .length = message.row.size,
                               .written = take_written(),
                               .immediate = receives_.front().immediate});
  return ddp::kNoFault;
}

/// A request that has to wait for its time is answered when the owner's timer says so.
void Inbound::request_delivered() {
  const base::Now due = responder_.next_due();
  if (due != base::kNever) [[unlikely]]
    owner_.response_stalled(due);
  life_.call_ready();
}

Fault Inbound::deliver_read_request(const UntaggedMessage& message) {
  const Fault fault = responder_.deliver_read_request(message);
  if (!fault.failed()) request_delivered();
  return fault;
}

Fault Inbound::deliver_atomic_request(const UntaggedMessage& message) {
  const Fault fault = responder_.deliver_atomic_request(message);
  if (!fault.failed()) request_delivered();
  return fault;
}

Fault Inbound::deliver_read_response(const wire::DdpTaggedHeader& header, uint32_t payload) {
  bool finished = false;
  const Fault fault = requester_.deliver_read_response(header, payload, finished);
  if (finished) owner_.response_finished();
  return fault;
}

Fault Inbound::deliver_atomic_response(const UntaggedMessage& message) {
  const Fault fault = requester_.deliver_atomic_response(message);
  if (!fault.failed()) owner_.response_finished();
  return fault;
}

Fault Inbound::deliver_terminate(const UntaggedMessage& message) {
  ++counters_.terminates_in;
  const auto octets = base::ByteView(terminate_in_).first(message.length);
  auto received = read_terminate(octets);
  event::TerminateReceived event;
  if (received) {
    event.fault = received->fault;
    if (received->order == wire::TerminateBitOrder::Siw) ++counters_.siw_terminates;
    event.detail = std::move(received->detail);
    event.request = requester_.terminated(received->header, code_of(event.fault));
  } else {
    ++counters_.malformed_terminates;
    event.fault = Fault{FaultLayer::Rdmap, 0x2, 0xff, "RDMAP-5.4-06"};
    event.detail = base::worded([&] { return "malformed Terminate received: " + hex(octets); });
  }
  owner_.terminate_received(std::move(event), message.now);
  return ddp::kNoFault;
}

}  // namespace rnic::rdmap
