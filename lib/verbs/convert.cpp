#include "verbs/convert.hpp"

#include <algorithm>

namespace rnic {

const char* to_string(Opcode opcode) {
  return rdmap::to_string(static_cast<rdmap::WorkOpcode>(opcode));
}

const char* to_string(CompletionStatus status) {
  return rdmap::to_string(static_cast<rdmap::WorkStatus>(status));
}

const char* to_string(EventKind kind) { return nic::to_string(static_cast<nic::EventKind>(kind)); }

const char* to_string(TraceKind kind) {
  switch (kind) {
    case TraceKind::Sent: return "sent";
    case TraceKind::Retransmitted: return "retransmitted";
    case TraceKind::InOrder: return "in order";
    case TraceKind::PlacedEarly: return "placed out of order";
    case TraceKind::Held: return "held";
    case TraceKind::CrcDropped: return "dropped by CRC";
    case TraceKind::Delivered: return "delivered";
    case TraceKind::Suspected: return "dropped on suspicion";
  }
  return "unknown";
}

namespace verbs {

// The enumerations of the public API have the same members in the same order.
static_assert(static_cast<int>(Opcode::LocalInvalidate) ==
              static_cast<int>(rdmap::WorkOpcode::LocalInvalidate));
static_assert(static_cast<uint32_t>(kRemoteAtomic) == mem::kRemoteAtomic);
static_assert(static_cast<int>(CompletionStatus::Flushed) ==
              static_cast<int>(rdmap::WorkStatus::Flushed));
static_assert(static_cast<int>(EventKind::CompletionOverrun) ==
              static_cast<int>(nic::EventKind::CompletionOverrun));
static_assert(static_cast<int>(TraceKind::Suspected) ==
              static_cast<int>(base::TraceKind::Suspected));
static_assert(static_cast<int>(Framing::Tuf) == static_cast<int>(nic::FramingKind::Tuf));
static_assert(kMaxSge == rdmap::kMaxSge);
static_assert(kReadsByApplication == mpa::kReadsByUlp);

namespace {

template <typename Work, typename Request>
void copy_sges(Work& work, const Request& request) {
  work.id = request.id;
  work.sge_count = request.sge_count;
  const uint32_t n = std::min(request.sge_count, kMaxSge);
  for (uint32_t i = 0; i < n; ++i) {
    work.sges[i] = {request.sges[i].address, request.sges[i].length, request.sges[i].stag};
  }
}

}  // namespace

Result<llp::Endpoint> to_local(const std::string& address, uint16_t port) {
  if (address.empty()) return llp::Endpoint{{}, port};
  const auto ip = llp::parse_ip(address);
  if (!ip) return tl::unexpected(ip.error());
  return llp::Endpoint{*ip, port};
}

rdmap::SendWork to_work(const SendRequest& request) {
  rdmap::SendWork work;
  copy_sges(work, request);
  work.opcode = static_cast<rdmap::WorkOpcode>(request.opcode);
  work.signaled = request.signaled;
  work.solicited = request.solicited;
  work.fence = request.fence;
  work.remote_stag = request.remote_stag;
  work.remote_to = request.remote_offset;
  work.atomic = {request.atomic.data, request.atomic.mask, request.atomic.compare,
                 request.atomic.compare_mask};
  work.immediate = request.immediate;
  return work;
}

rdmap::ReceiveWork to_work(const ReceiveRequest& request) {
  rdmap::ReceiveWork work;
  copy_sges(work, request);
  return work;
}

Completion from_work(const rdmap::Completion& completion) {
  Completion out;
  out.id = completion.id;
  out.opcode = static_cast<Opcode>(completion.opcode);
  out.status = static_cast<CompletionStatus>(completion.status);
  out.solicited = completion.solicited;
  out.length = completion.length;
  out.qp = completion.qp;
  out.invalidated_stag = completion.invalidated_stag;
  out.has_immediate = completion.has_immediate;
  out.original = completion.original;
  out.immediate = completion.immediate;
  return out;
}

std::optional<nic::FramingKind> to_framing(std::optional<Framing> framing) {
  if (!framing) return std::nullopt;
  return static_cast<nic::FramingKind>(*framing);
}

nic::ConnectOptions to_options(const ConnectOptions& options) {
  return {.revision = options.revision,
          .exchange_reads = options.exchange_reads,
          .peer_to_peer = options.peer_to_peer,
          .ird = options.ird,
          .ord = options.ord,
          .framing = to_framing(options.framing),
          .packing = options.packing,
          .nagle = options.nagle,
          .ord_required = options.ord_required};
}

namespace {

ConnectionFacts facts_of(const mpa::Negotiated& agreed) {
  ConnectionFacts facts;
  facts.revision = agreed.revision;
  facts.crc = agreed.crc;
  facts.markers_out = agreed.markers_send;
  facts.markers_in = agreed.markers_receive;
  facts.peer_to_peer = agreed.peer_to_peer;
  if (agreed.ird) facts.ird = *agreed.ird;
  if (agreed.ord) facts.ord = *agreed.ord;
  if (!agreed.peer.has_reads()) return facts;
  facts.peer_ird = agreed.peer.ird;
  facts.peer_ord = agreed.peer.ord;
  return facts;
}

}  // namespace

Event from_event(nic::Event& event) {
  Event out;
  out.remote = llp::to_string(event.remote);
  if (event.detail.empty() && event.kind == nic::EventKind::Disconnected) {
    event.detail = llp::to_string(event.end);
  }
  out.kind = static_cast<EventKind>(event.kind);
  out.qp = event.qp;
  out.request = {event.connection.index, event.connection.generation};
  out.private_data = std::move(event.private_data);
  out.fault = {static_cast<uint8_t>(event.fault.layer), event.fault.type, event.fault.code};
  out.facts = facts_of(event.agreed);
  out.detail = std::move(event.detail);
  return out;
}

TraceKind from_trace(base::TraceKind kind) { return static_cast<TraceKind>(kind); }

}  // namespace verbs
}  // namespace rnic
