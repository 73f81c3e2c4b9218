#include "rdmap/requester.hpp"

#include "rdmap/opcodes.hpp"
#include "rdmap/quoted_work.hpp"
#include "rdmap/remote_status.hpp"
#include "rdmap/work_opcodes.hpp"

namespace rnic::rdmap {

Requester::Requester(const EndpointConfig& config, const StreamMemory& memory, Counters& counters,
                     const Queues& queues, Completions& completions)
    : extensions_(config.extensions),
      sink_rights_(config.strict_sinks ? Access::LocalWrite | Access::RemoteWrite
                                       : AccessSet(Access::LocalWrite)),
      memory_(memory),
      counters_(counters),
      sends_(queues.sends),
      completions_(completions),
      outbound_(config.ord, config.secret, queues.requests.outbound),
      list_stag_(memory_.draw_list_stag()) {
  sends_.forget_completed();
}

bool Requester::accept(bool connected, uint8_t version) {
  const uint32_t seq = sends_.accept();
  // DDP-6.2.1-01: a request posted after disconnect() is refused, at its place in the order of
  // completions. So is a Read or an atomic if the start-up agreed on an ORD of 0 (BUG-08), since
  // nothing could ever make room for it, and an operation that the stream's version does not have.
  const SendSlot& slot = sends_.at(seq);
  if (connected && slot.direct) [[likely]]
    return true;
  const bool spoken = !slot.row->extension || (extensions_ && version == 1);
  const bool impossible = (slot.row->awaits_response() && outbound_.limit() == 0) || !spoken;
  if (connected && !impossible) return true;
  sends_.fail(seq, CompletionStatus::Flushed,
              connected ? CompletionCause::NotAgreed : CompletionCause::Disconnected);
  return false;
}

// --- sending ---

Requester::Next Requester::pass_over() {
  while (sends_.has_next()) {
    const uint32_t seq = sends_.next();
    const SendSlot& slot = sends_.at(seq);
    if (slot.status != CompletionStatus::Success) {
      sends_.advance();
      continue;
    }
    if (slot.row->has_message()) return Next::Message;
    // Work posted before may still have to read the region or write to it; its release leads back
    // here (local_work_is_due()).
    const bool held =
        slot.row->waits ? sends_.report() != seq : slot.work->fence && outbound_.outstanding() != 0;
    if (held) return Next::Nothing;
    if (slot.row->carry_out(slot, memory_, counters_) != mem::AccessFault::None) {
      sends_.fail(seq, CompletionStatus::LocalProtection);
      return Next::Refused;
    }
    sends_.release(seq);
    sends_.advance();
    completions_.complete_sends();
  }
  return Next::Nothing;
}

Requester::Next Requester::choose(bool peer_finished) {
  const Next found = pass_over();
  if (found != Next::Message) return found;
  const uint32_t seq = sends_.next();
  const SendSlot& slot = sends_.at(seq);
  if (slot.work->fence && outbound_.outstanding() != 0) return Next::Nothing;
  if (slot.row->awaits_response()) {
    if (peer_finished) return Next::Unanswerable;
    if (!outbound_.has_room()) return Next::Nothing;  // RDMAP-6.1-02
  }
  const CompletionStatus status = check_work(slot);
  if (status != CompletionStatus::Success) {
    sends_.fail(seq, status);
    return Next::Refused;
  }
  const WorkRow& row = slot.message_row(slot.part);
  if (!row.tagged) sends_.number(seq, next_msn_[row.qn], list_stag_);
  return Next::Message;
}

CompletionStatus Requester::check_work(const SendSlot& slot) const {
  const PostedSend& work = *slot.work;
  const std::span<const Sge> sges = work.sges();
  const auto count = static_cast<uint32_t>(sges.size());
  if (check_shape(*slot.row, count, sges.data(), work.length) != PostResult::Ok) {
    return CompletionStatus::LocalLength;
  }
  return slot.row->awaits_response() ? check_sink(*slot.row, sges) : CompletionStatus::Success;
}

/// Checks the memory that the response to a Read or an atomic goes to.
CompletionStatus Requester::check_sink(const WorkRow& row, std::span<const Sge> pieces) const {
  const bool read = row.response == Response::Read;
  const auto fault = memory_.check(pieces, read ? sink_rights_ : AccessSet(Access::LocalWrite));
  return fault == mem::AccessFault::None ? CompletionStatus::Success
                                         : CompletionStatus::LocalProtection;
}

ddp::OutboundMessage Requester::message(uint32_t seq, uint8_t part, uint8_t version) const {
  const SendSlot& slot = sends_.at(seq);
  const PostedSend& work = *slot.work;
  const WorkRow& row = slot.message_row(part);
  const WireOpcode opcode = work.solicited ? row.solicited_message : row.message;
  ddp::OutboundMessage message{.version = version,
                               .rsvd_ulp = wire::rdmap_control(opcode, version),
                               .length = slot.message_length(part)};
  if (row.tagged) {
    message.tagged = true;
    message.stag = work.remote_stag;
    message.to = work.remote_offset;
    return message;
  }
  if (row.invalidates) message.rsvd_ulp_tail = work.remote_stag;
  message.qn = row.qn;
  message.msn = slot.msn;
  return message;
}

mem::AccessFault Requester::check_source(uint32_t seq, uint8_t part, bool whole,
                                         SourceRun& out) const {
  const SendSlot& slot = sends_.at(seq);
  if (!slot.message_row(part).sends_memory()) return mem::AccessFault::None;
  const std::span<const Sge> sges = slot.work->sges();
  if (sges.size() == 1) return memory_.open(sges[0], Access::LocalRead, out);
  return whole ? mem::AccessFault::None : memory_.check(sges, Access::LocalRead);
}

mem::AccessFault Requester::locate(uint32_t seq, uint8_t part, const ddp::Cut& cut,
                                   Payload& out) const {
  const SendSlot& slot = sends_.at(seq);
  const WorkRow& row = slot.message_row(part);
  if (row.make != nullptr) {
    out.make(cut, [&](uint8_t* octets) { row.make(slot, octets); });
    return mem::AccessFault::None;
  }
  const PostedSend& work = *slot.work;
  if (work.is_inline) {
    out.take(work.inline_data().subspan(cut.offset, cut.length));
    return mem::AccessFault::None;
  }
  return out.gather(memory_, work.sges(), cut, Access::LocalRead);
}

bool Requester::finish() {
  const uint32_t seq = sends_.next();
  const SendSlot& slot = sends_.at(seq);
  const WorkRow& row = slot.message_row(slot.part);
  const bool atomic = row.response == Response::Atomic;
  if (row.awaits_response()) {
    const Sge sink = sink_of(slot);
    outbound_.push({.seq = seq,
                    .atomic = atomic,
                    .id = slot.msn,
                    .sink_stag = sink.stag,
                    .sink_to = sink.address,
                    .length = slot.length(),
                    .coverage = {}});
  }
  if (!row.tagged) ++next_msn_[row.qn];
  slot.is_last(slot.part) ? sends_.advance() : sends_.next_part();
  return atomic;
}

void Requester::rtr_sent(Rtr kind) {
  if (kind == Rtr::Read) {
    ++next_msn_[wire::kRdmapReadRequestQn];
    outbound_.push({.rtr = true});
  } else if (kind == Rtr::Send) {
    ++next_msn_[wire::kRdmapSendQn];
  }
}

bool Requester::local_work_is_due() const {
  if (sends_.report() != sends_.next() || !sends_.has_next()) return false;
  return !sends_.at(sends_.next()).row->has_message();
}

/// Octets of a request's FPDUs that were not pulled. \param begun the message that was begun is not
/// counted
uint64_t Requester::octets_left(const SendSlot& slot, uint32_t overhead, bool begun) {
  uint64_t octets = 0;
  for (uint8_t part = slot.part;; ++part) {
    if (!begun || part != slot.part) {
      const bool tagged = slot.message_row(part).tagged;
      octets += uint64_t{slot.message_length(part)} + overhead +
                (tagged ? wire::kDdpTaggedSize : wire::kDdpUntaggedSize);
    }
    if (slot.is_last(part)) return octets;
  }
}

bool Requester::fills(uint32_t octets, uint32_t overhead, uint32_t pulled) const {
  if (!sends_.has_next()) return true;
  uint64_t waiting = 0;
  for (uint32_t seq = sends_.next(); seq != sends_.end(); ++seq) {
    const SendSlot& slot = sends_.at(seq);
    if (!slot.row->has_message()) return true;
    waiting += octets_left(slot, overhead, false) - (seq == sends_.next() ? pulled : 0);
    if (waiting >= octets) return true;
  }
  return false;
}

uint64_t Requester::octets_waiting(uint64_t most, uint32_t overhead, bool begun) const {
  uint64_t waiting = 0;
  for (uint32_t seq = sends_.next(); seq != sends_.end() && waiting <= most; ++seq) {
    const SendSlot& slot = sends_.at(seq);
    if (!slot.row->has_message()) continue;
    waiting += octets_left(slot, overhead, begun && seq == sends_.next());
  }
  return waiting;
}

// --- responses ---

Fault Requester::response_target(const wire::DdpTaggedHeader& header, uint32_t payload,
                                 ddp::TaggedTarget& out) {
  const OutboundRequest* read = nullptr;
  const Fault fault = outbound_.find(header, payload, read);
  if (fault.failed() || read == nullptr) return fault;
  const std::span<const Sge> pieces = sends_.at(read->seq).work->sges();
  if (pieces.size() > 1) {
    out.sges = pieces;
    out.offset = header.to - read->sink_to;
  } else {
    // A Response ends with L, and with it the right to write to the sink.
    out.same = {read->sink_to, read->sink_to + read->length};
    out.coverage = outbound_.coverage_of(*read);
  }
  return ddp::kNoFault;
}

/// A response is here, and our own memory cannot take it.
Fault Requester::refuse_sink(uint32_t seq) {
  sends_.fail(seq, CompletionStatus::LocalProtection);
  return {FaultLayer::Rdmap, ddp::kLocalCatastrophic, 0x00, "RDMAP-7.1-01"};
}

bool Requester::conclude(uint32_t seq) {
  const SendSlot& slot = sends_.at(seq);
  const LocalWork work = slot.row->conclude;
  return work == nullptr || work(slot, memory_, counters_) == mem::AccessFault::None;
}

Fault Requester::deliver_read_response(const wire::DdpTaggedHeader& header, uint32_t payload,
                                       bool& finished) {
  const OutboundRequest* done = nullptr;
  const Fault fault = outbound_.deliver(header, payload, done);
  if (fault.failed() || done == nullptr) return fault;
  if (!done->rtr) {
    ++counters_.read_responses_in;
    if (!conclude(done->seq)) return refuse_sink(done->seq);
  }
  finish_request(*done);
  finished = true;
  return ddp::kNoFault;
}

Fault Requester::deliver_atomic_response(const UntaggedMessage& message) {
  const uint32_t msn = message.header.msn;
  const OutboundRequest* done = nullptr;
  const Fault fault = outbound_.deliver_atomic(msn, message.length, done);
  if (fault.failed()) return fault;
  ++counters_.atomic_responses_in;
  const uint64_t original =
      wire::parse_rdmap_atomic_response(outbound_.atomic_buffer(msn))->original;
  sends_.keep_original(done->seq, original);
  if (!conclude(done->seq)) return refuse_sink(done->seq);
  finish_request(*done);
  return ddp::kNoFault;
}

/// The oldest Read or atomic has its response.
void Requester::finish_request(const OutboundRequest& request) {
  if (!request.rtr) sends_.answer(request.seq);
  outbound_.pop();
  completions_.complete_sends();
}

std::optional<uint64_t> Requester::terminated(const wire::Terminate& terminate,
                                              const FaultCode& fault) {
  const auto quoted = quoted_work(sends_, terminate);
  if (!quoted) return std::nullopt;
  if (sends_.is_unreported(*quoted)) sends_.fail(*quoted, remote_status(fault));
  return sends_.at(*quoted).posted().id;
}

void Requester::lost() {
  if (!sends_.has_unreported()) return;
  const SendSlot& slot = sends_.at(sends_.report());
  if (slot.started && !slot.done()) sends_.fail(sends_.report(), CompletionStatus::Lost);
}

}  // namespace rnic::rdmap
