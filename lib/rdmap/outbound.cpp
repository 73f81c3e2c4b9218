#include "rdmap/outbound.hpp"

#include "base/check.hpp"
#include "rdmap/opcodes.hpp"

namespace rnic::rdmap {

namespace {

// RecordTag: what a record is, so that it can be written again octet by octet.
//   a = kind 8 | last 8 | zero 8 | part 8 | slot sequence number 32
//   b = offset 32 | payload length 32
constexpr int kKindShift = 56;
constexpr int kLastShift = 48;
constexpr int kPartShift = 32;
constexpr int kOffsetShift = 32;  // in b

llp::RecordTag make_tag(uint8_t kind, uint32_t seq, const ddp::Cut& cut, uint8_t part = 0) {
  return {.a = uint64_t{kind} << kKindShift | uint64_t{cut.last} << kLastShift |
               uint64_t{part} << kPartShift | seq,
          .b = uint64_t{cut.offset} << kOffsetShift | cut.length};
}
uint8_t kind_of(const llp::RecordTag& tag) { return static_cast<uint8_t>(tag.a >> kKindShift); }
uint32_t seq_of(const llp::RecordTag& tag) { return static_cast<uint32_t>(tag.a); }
uint8_t part_of(const llp::RecordTag& tag) { return static_cast<uint8_t>(tag.a >> kPartShift); }
ddp::Cut cut_of(const llp::RecordTag& tag) {
  return {.offset = static_cast<uint32_t>(tag.b >> kOffsetShift),
          .length = static_cast<uint32_t>(tag.b),
          .last = (tag.a >> kLastShift & 1) != 0};
}

// RFC 5040 s.7.1(1): an error while creating a message; a Terminate goes in its place.
constexpr Fault kRefusedWork{FaultLayer::Rdmap, ddp::kLocalCatastrophic, 0x00, "RDMAP-7.1-02"};

}  // namespace

Outbound::Outbound(const Links& links)
    : life_(links.life),
      sends_(links.sends),
      requester_(links.requester),
      responder_(links.responder),
      completions_(links.completions),
      stream_(links.stream),
      memory_(links.memory),
      counters_(links.counters),
      owner_(links.owner) {}

void Outbound::begin(Rtr rtr) {
  rtr_.agree(rtr);
  provide_requests();
}

void Outbound::validate() const {
  if (current_.kind == Kind::Send) RNIC_CHECK(life_.running() && sends_.next() == current_.seq);
  if (current_.kind != Kind::Response) return;
  RNIC_CHECK(life_.running() && responder_.ready() == current_.seq);
}

void Outbound::accept_posted() {
  bool accepted = false;
  while (life_.running() && requester_.has_posted()) {
    if (requester_.accept(life_.state() == EndpointState::Connected, life_.version())) {
      accepted = true;
    } else {
      completions_.complete_sends();
    }
  }
  if (accepted) life_.call_ready();
}

/// A place among the inbound requests is free once its response is acknowledged.
void Outbound::provide_requests() {
  stream_.provide(wire::kRdmapReadRequestQn, responder_.provide());
}

bool Outbound::choose_send(base::Now now) {
  switch (requester_.choose(stream_.peer_has_finished())) {
    case Requester::Next::Nothing: return false;
    case Requester::Next::Message: break;
    case Requester::Next::Refused: owner_.raise(kRefusedWork, {}, {}, now); return false;
    case Requester::Next::Unanswerable: owner_.unanswerable(); return false;
  }
  const uint32_t seq = sends_.next();
  const SendSlot& slot = sends_.at(seq);
  begin_message(Kind::Send, seq, slot.part, !slot.row->awaits_response());
  current_.message = requester_.message(seq, slot.part, life_.version());
  return true;
}

void Outbound::begin_message(Kind kind, uint32_t seq, uint8_t part, bool counted) {
  current_.kind = kind;
  current_.part = part;
  current_.counted = counted;
  current_.seq = seq;
  current_.offset = 0;
  current_.source = SourceRun();
}

/// Begins the next response. \return false: a Terminate was raised instead
bool Outbound::choose_response(base::Now now) {
  const uint32_t seq = responder_.ready();
  const Fault fault = responder_.carry_out(seq);
  if (fault.failed()) {
    ++counters_.faults;
    owner_.raise(fault, responder_.segment(seq), {}, now);
    return false;
  }
  begin_message(Kind::Response, seq, 0, false);
  current_.message = responder_.message(seq, life_.version());
  current_.counted = current_.message.tagged;
  return true;
}

bool Outbound::choose(base::Now now) {
  if (responses_turn_ && responder_.has_ready()) return choose_response(now);
  if (choose_send(now)) return true;
  if (!life_.running() || !responder_.has_ready()) return false;
  return choose_response(now);
}

/// Looks up the memory of the whole message with its first segment.
mem::AccessFault Outbound::open_source(const ddp::Cut& cut) {
  if (current_.kind == Kind::Response) {
    if (!cut.last) responder_.open(current_.seq, current_.source);
    return mem::AccessFault::None;
  }
  return requester_.check_source(current_.seq, current_.part, cut.last, current_.source);
}

/// Finds the payload of a part of a message, when the part is first built and when it is rebuilt.
mem::AccessFault Outbound::locate(Kind kind, uint32_t seq, uint8_t part, const ddp::Cut& cut,
                                  Payload& out) const {
  if (kind == Kind::Response) return responder_.locate(seq, cut, out);
  return requester_.locate(seq, part, cut, out);
}

void Outbound::refuse_payload(const ddp::Cut& cut, mem::AccessFault fault, base::Now now) {
  if (current_.kind == Kind::Response) {
    const auto left = responder_.rest(current_.seq, cut.offset);
    ++counters_.faults;
    owner_.raise(protection_fault(fault), responder_.segment(current_.seq), left, now);
    return;
  }
  requester_.refuse(current_.seq);
  owner_.raise(kRefusedWork, {}, {}, now);
}

void Outbound::finish_message() {
  count_message();
  if (current_.kind == Kind::Response) {
    responder_.served();
    provide_requests();
    responses_turn_ = false;
  } else {
    if (requester_.finish()) stream_.provide(wire::kRdmapAtomicResponseQn, 1);
    responses_turn_ = true;
  }
  current_.kind = Kind::None;
}

llp::PulledUlpdu Outbound::pull(uint32_t max, bool whole_only, llp::UlpduWriter& out,
                                base::Now now) {
  llp::UlpduRoom room{max, whole_only};
  llp::PulledUlpdu pulled;  // the only one, so that the caller has it without a copy
  for (;;) {
    if (has_special()) [[unlikely]] {
      pulled = pull_special(room.max, room.whole_only, out, now);
      return pulled;
    }
    if (goes_direct(room)) {
      pull_direct(room, out, pulled);
      if (pulled.length != 0 || room.max == 0) return pulled;
    }
    pulled = pull_message(room.max, room.whole_only, out, now);
    if (!pulled.last || !has_unsent() || has_special()) return pulled;
    room = out.next(pulled);
    if (room.max == 0) return pulled;
  }
}

/// The one test at the entry of pull_direct(): the next message is the send queue's, nothing of it
/// was pulled, and nothing may have to go between it and the one behind it, or in its place, or
/// follows from its end. None of this changes while messages are direct.
inline bool Outbound::goes_direct(const llp::UlpduRoom& room) const {
  const bool begins = current_.kind == Kind::None || (current_.kind == Kind::Send &&
                                                      current_.offset == 0);
  const SendSlot* const next = begins ? requester_.next_direct() : nullptr;
  return next != nullptr && next->length() < room.max && !responder_.has_ready() &&
         life_.state() == EndpointState::Connected && !terminate_at_.has_value();
}

/// Pulls messages of the send queue one behind the other, as long as each is direct, goes into one
/// segment, and its memory is known. What choose(), pull_segments() and finish_message() do to each
/// is left out where it is known to be nothing. \param room set to that for the next message,
/// or to none: the call is over \param pulled set to the last ULPDU, or to none: one was followed
/// by another
[[gnu::noinline]] void Outbound::pull_direct(llp::UlpduRoom& room, llp::UlpduWriter& out,
                                             llp::PulledUlpdu& pulled) {
  pulled = {};
  uint32_t messages = 0;
  uint64_t octets = 0;
  const SendSlot* slot = requester_.next_direct();
  do {
    const Sge& piece = slot->work->piece();
    uint8_t* const at = memory_.find(readable_, piece);
    if (at == nullptr) break;
    const ddp::OutboundMessage message = requester_.direct_message(*slot, life_.version());
    if (!ddp::append(message, {at, piece.length}, pulled, out)) break;
    pulled.length = message.header_size() + piece.length;
    pulled.last = true;
    pulled.tag = make_tag(static_cast<uint8_t>(Kind::Send), sends_.next(),
                          {.length = piece.length, .last = true});
    requester_.pass_direct(*slot);
    ++messages;
    octets += piece.length;
    slot = requester_.next_direct();
  } while (slot != nullptr);
  if (messages == 0) return;
  count_direct(messages, octets);
  current_.kind = Kind::None;
  responses_turn_ = true;
  pulled.more = sends_.has_next();
  if (!pulled.more) return;
  room = out.next(pulled);
  if (room.max == 0) return;
  if (slot != nullptr && room.whole_only) begin_direct(*slot, room);
  pulled = {};
}

/// Begins a message that does not fit the room, and so goes into the next segment. It is chosen
/// now, as it would be by pull_message(): a Response that may be sent by then comes behind it.
inline void Outbound::begin_direct(const SendSlot& slot, llp::UlpduRoom& room) {
  const ddp::OutboundMessage message = requester_.direct_message(slot, life_.version());
  if (uint64_t{message.length} + message.header_size() <= room.max) return;
  requester_.number_direct(slot);
  begin_message(Kind::Send, sends_.next(), 0, true);
  current_.message = message;
  room = {};
}

/// Pulls what goes before the next message, if it is the time for that.
llp::PulledUlpdu Outbound::pull_special(uint32_t max, bool whole_only, llp::UlpduWriter& out,
                                        base::Now now) {
  if (life_.state() == EndpointState::Terminating) return pull_terminate(max, out);
  if (!life_.running()) return {};
  const bool nudges = nudge_pending_ && current_.kind == Kind::None;
  if ((rtr_.is_pending() || nudges) && is_replaced()) return pull_planned(max, out, now);
  if (rtr_.is_pending()) return pull_rtr(max, out, now);
  if (is_cut_off()) return pull_planned(max, out, now);
  if (nudges) return pull_nudge(max, out);
  return pull_message(max, whole_only, out, now);
}

/// Pulls the next segment of the message that was begun, or the first one of the next.
llp::PulledUlpdu Outbound::pull_message(uint32_t max, bool whole_only, llp::UlpduWriter& out,
                                        base::Now now) {
  if (current_.kind == Kind::None && !choose(now)) {
    if (life_.state() == EndpointState::Terminating) return pull_terminate(max, out);
    close_if_finished();
    return {};
  }
  if (current_.offset == 0 && is_replaced()) [[unlikely]]
    return pull_planned(max, out, now);
  return pull_segments(max, whole_only, out, now);
}

/// Pulls the next segment of a message, and those behind it as long as there is room, if the memory
/// of all is known.
llp::PulledUlpdu Outbound::pull_segments(uint32_t max, bool whole_only, llp::UlpduWriter& out,
                                         base::Now now) {
  for (;;) {
    const ddp::Cut cut = ddp::cut(current_.message, current_.offset, max, whole_only);
    if (!cut.possible) return {};
    if (cut.offset == 0) {
      const mem::AccessFault fault = open_source(cut);
      if (fault != mem::AccessFault::None) [[unlikely]] {
        refuse_payload(cut, fault, now);
        return pull_terminate(max, out);
      }
      if (!cut.last) sends_.prefetch_behind();
    }
    uint8_t* const at = memory_.find(current_.source, cut);
    if (at == nullptr) return pull_found(cut, max, whole_only, out, now);
    const base::ByteSpan piece{at, cut.length};
    llp::PulledUlpdu pulled = put(cut, {&piece, 1}, out);
    if (cut.last) return pulled;
    const llp::UlpduRoom room = out.next(pulled);
    if (room.max == 0) return pulled;
    if (room.lasts && pull_full(room, at + cut.length, pulled, out)) return pulled;
    max = room.max;
    whole_only = room.whole_only;
  }
}

/// Pulls further segments of a message whose memory is known, each of which fills its room: they
/// have the same header but for TO or MO. The last one is not of them, since it has L. \param room
/// that of each of them \param at the octets of the next one \param pulled the ULPDU before; set to
/// the last one \return there is no room behind it: the call is over; false: the next segment, the
/// last one of the message perhaps, has the same room
bool Outbound::pull_full(const llp::UlpduRoom& room, uint8_t* at, llp::PulledUlpdu& pulled,
                         llp::UlpduWriter& out) {
  const ddp::Cut first{.offset = current_.offset,
                       .length = room.max - current_.message.header_size()};
  const llp::RecordTag tag =
      make_tag(static_cast<uint8_t>(current_.kind), current_.seq, first, current_.part);
  llp::UlpduSeries series =
      ddp::series_of(current_.message, first, at, tag, uint64_t{first.length} << kOffsetShift);
  RNIC_CHECK(first.length != 0);  // the segment before had the same room, and payload
  const uint32_t left = current_.message.length - current_.offset;
  const uint32_t count = out.append_series(pulled, series, (left - 1) / first.length);
  if (count == 0) return false;
  const uint32_t octets = count * first.length;
  current_.offset += octets;
  counters_.segments_out += count;
  if (current_.counted) counters_.octets_out += octets;
  return out.next(pulled).max == 0;
}

/// Pulls a segment whose payload has to be found first.
llp::PulledUlpdu Outbound::pull_found(const ddp::Cut& found, uint32_t max, bool whole_only,
                                      llp::UlpduWriter& out, base::Now now) {
  ddp::Cut cut = found;
  Payload payload;
  const mem::AccessFault fault = locate(current_.kind, current_.seq, current_.part, cut, payload);
  if (fault != mem::AccessFault::None) {
    refuse_payload(cut, fault, now);
    return pull_terminate(max, out);
  }
  if (payload.is_cut()) [[unlikely]] {
    const uint32_t room = current_.message.header_size() + payload.octets();
    cut = ddp::cut(current_.message, current_.offset, room, whole_only);
    if (!cut.possible) return {};
  }
  return put(cut, payload.view(), out);
}

/// Writes the next segment of the message.
[[gnu::always_inline]] inline llp::PulledUlpdu Outbound::put(
    const ddp::Cut& cut, std::span<const base::ByteSpan> payload, llp::UlpduWriter& out) {
  if (cut.offset == 0 && current_.kind == Kind::Send) requester_.started();
  if (current_.counted) counters_.octets_out += cut.length;
  ddp::write(current_.message, cut, payload, out);
  ++counters_.segments_out;
  llp::PulledUlpdu pulled{
      .length = current_.message.header_size() + cut.length,
      .last = cut.last,
      .tag = make_tag(static_cast<uint8_t>(current_.kind), current_.seq, cut, current_.part)};
  current_.offset += cut.length;
  if (cut.last) {
    finish_message();
    close_if_finished();
    pulled.more = has_more();
  }
  return pulled;
}

bool Outbound::rebuild(const llp::RecordTag& tag, llp::UlpduWriter& out) {
  const uint32_t seq = seq_of(tag);
  const ddp::Cut cut = cut_of(tag);
  const auto kind = static_cast<Kind>(kind_of(tag));
  if (kind == Kind::None) return false;
  if (kind == Kind::Terminate) {
    write_terminate(out);
    return true;
  }
  if (kind == Kind::Rtr) {
    rtr_.write(life_.version(), out);
    return true;
  }
  if (kind == Kind::Nudge) {
    write_empty_write(life_.version(), out);
    return true;
  }
  const bool response = kind == Kind::Response;
  if (response ? !responder_.holds(seq) : !sends_.holds(seq)) return false;
  Payload payload;
  const uint8_t part = part_of(tag);
  // The pieces are the same as before, as an STag names no other memory while it is valid.
  if (locate(kind, seq, part, cut, payload) != mem::AccessFault::None) return false;
  if (payload.is_cut()) return false;
  ddp::write(response ? responder_.message(seq, life_.version())
                      : requester_.message(seq, part, life_.version()),
             cut, payload.view(), out);
  return true;
}

void Outbound::released(const llp::RecordTag& tag) {
  if (release(tag)) complete_released();
}

void Outbound::released_run(llp::RecordRun run) {
  bool sends = false;
  for (uint32_t i = 0; i < run.size(); ++i) {
    if (release(run[i].tag)) sends = true;
  }
  if (sends) complete_released();
}

/// The peer's TCP has all of that record. \return it ended a message of the send queue
bool Outbound::release(const llp::RecordTag& tag) {
  constexpr uint64_t kLastOfSend = uint64_t{static_cast<uint8_t>(Kind::Send)} << 8 | 1;
  const uint32_t seq = seq_of(tag);
  if (tag.a >> kLastShift != kLastOfSend) [[unlikely]] {
    if (cut_of(tag).last && kind_of(tag) == static_cast<uint8_t>(Kind::Response)) {
      release_response(seq);
    }
    return false;
  }
  if (!sends_.holds(seq)) return false;
  requester_.release(seq, part_of(tag));
  return true;
}

void Outbound::release_response(uint32_t seq) {
  responder_.release(seq);
  provide_requests();
}

/// Reports what has completed by releases.
void Outbound::complete_released() {
  // After a flush the requests have completed already, and only their slots were left to be freed.
  if (!life_.running()) return;
  completions_.complete_sends();
  if (requester_.local_work_is_due()) life_.call_ready();
}

bool Outbound::fills_segment(uint32_t octets, uint32_t overhead) const {
  // A Response, an RTR, a nudge and a Terminate go at once and gather nothing; neither does work
  // without a message, nor an empty queue.
  const bool sends = current_.kind == Kind::None || current_.kind == Kind::Send;
  const bool own = rtr_.is_pending() || nudge_pending_ || is_cut_off();
  if (!life_.running() || own || responder_.has_ready() || !sends) return true;
  return requester_.fills(octets, overhead, current_.kind == Kind::Send ? current_.offset : 0);
}

bool Outbound::all_fits(uint32_t octets, uint32_t overhead) const {
  // The count of a long queue ends early, as each ULPDU that waits costs a header at least.
  uint64_t waiting = 0;
  const auto add = [&](uint64_t header_and_payload) { waiting += header_and_payload + overhead; };
  if (life_.state() == EndpointState::Terminating) add(wire::kDdpUntaggedSize + terminate_.size());
  if (rtr_.is_pending()) add(wire::kDdpUntaggedSize + wire::kRdmapReadRequestSize);
  if (nudge_pending_) add(wire::kDdpTaggedSize);
  if (current_.kind != Kind::None) {
    add(current_.message.header_size() + current_.message.length - current_.offset);
  }
  if (!life_.running()) return waiting <= octets;
  waiting += responder_.octets_waiting(octets, overhead, current_.kind == Kind::Response);
  waiting += requester_.octets_waiting(octets, overhead, current_.kind == Kind::Send);
  return waiting <= octets;
}

void Outbound::write_terminate(llp::UlpduWriter& out) {
  const ddp::OutboundMessage message{
      .version = life_.version(),
      .rsvd_ulp = wire::rdmap_control(WireOpcode::Terminate, life_.version()),
      .qn = wire::kRdmapTerminateQn,
      .msn = 1,
      .length = terminate_.size()};
  ddp::Pieces payload;
  terminate_.add_to(payload);
  ddp::write(message, {.length = terminate_.size(), .last = true}, payload.view(), out);
}

llp::PulledUlpdu Outbound::pull_terminate(uint32_t max, llp::UlpduWriter& out) {
  const uint32_t length = wire::kDdpUntaggedSize + terminate_.size();
  if (life_.state() != EndpointState::Terminating || length > max) return {};
  write_terminate(out);
  ++counters_.terminates_out;
  ++counters_.segments_out;
  count_message();
  owner_.terminate_sent();
  return {.length = length,
          .last = true,
          .tag = make_tag(static_cast<uint8_t>(Kind::Terminate), 0,
                          {.length = terminate_.size(), .last = true})};
}

/// A planned Terminate, in the place of what would have been sent (RFC 5040 s.7.1(1)).
llp::PulledUlpdu Outbound::pull_planned(uint32_t max, llp::UlpduWriter& out, base::Now now) {
  terminate_at_ = {};
  ++counters_.terminates_planned;
  owner_.raise(kPlannedTerminate, {}, {}, now);
  return pull_terminate(max, out);
}

llp::PulledUlpdu Outbound::pull_rtr(uint32_t max, llp::UlpduWriter& out, base::Now now) {
  const uint32_t payload = rtr_.payload_size();
  const uint32_t length = rtr_.header_size() + payload;
  if (length > max) return {};
  rtr_.write(life_.version(), out);
  rtr_.set_sent();
  ++counters_.segments_out;
  count_message();
  ++counters_.rtrs_out;
  requester_.rtr_sent(rtr_.kind());
  owner_.rtr_sent(now);
  if (sends_.has_next() || is_cut_off()) life_.call_ready();
  return {.length = length,
          .last = true,
          .tag = make_tag(static_cast<uint8_t>(Kind::Rtr), 0, {.length = payload, .last = true})};
}

/// The peer may have our octets and not know of them, because the receiver of Linux siw was not
/// installed yet when they came. The octets of another FPDU wake it (decision 10).
void Outbound::peer_silent() {
  const bool spoke = sends_.next() != 0 || rtr_.was_sent();
  if (!life_.running() || !spoke) return;
  nudge_pending_ = true;
  life_.call_ready();
}

llp::PulledUlpdu Outbound::pull_nudge(uint32_t max, llp::UlpduWriter& out) {
  constexpr uint32_t kOctets = wire::kDdpTaggedSize;
  if (kOctets > max) return {};
  write_empty_write(life_.version(), out);
  nudge_pending_ = false;
  ++counters_.segments_out;
  count_message();
  ++counters_.nudges_out;
  if (sends_.has_next() || responder_.has_ready()) life_.call_ready();
  return {.length = kOctets,
          .last = true,
          .tag = make_tag(static_cast<uint8_t>(Kind::Nudge), 0, {.length = 0, .last = true})};
}

void Outbound::may_send() const {
  if (rtr_.is_pending() || sends_.has_next() || responder_.has_ready() || is_cut_off() ||
      life_.state() == EndpointState::Terminating) {
    life_.call_ready();
  }
}

/// A fence or the ORD may have held back the work behind the request whose response is here now,
/// and a graceful close may have waited for that response (BUG-07).
void Outbound::response_finished() {
  close_if_finished();
  if (sends_.has_next()) life_.call_ready();
}

void Outbound::close_if_all_done() const {
  // The peer may close as soon as it sees our FIN, so everything that we still wait for comes
  // first.
  if (rtr_.is_pending() || current_.kind != Kind::None || sends_.has_next() ||
      requester_.outstanding() != 0 || responder_.has_unanswered()) {
    return;
  }
  owner_.all_done();
}

}  // namespace rnic::rdmap
