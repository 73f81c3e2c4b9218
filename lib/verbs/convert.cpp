#include "verbs/convert.hpp"

#include <algorithm>

namespace rnic {

const char* to_string(EventKind kind) {
  return device::to_string(static_cast<device::EventKind>(kind));
}

namespace verbs {

// The enumerations of the public API have the same members in the same order.
static_assert(static_cast<int>(EventKind::CompletionOverrun) ==
              static_cast<int>(device::EventKind::CompletionOverrun));
static_assert(kReadsByApplication == mpa::kReadsByUlp);

Result<Endpoint> to_local(const std::string& address, uint16_t port) {
  if (address.empty()) return Endpoint{{}, port};
  const auto ip = parse_ip(address);
  if (!ip) return tl::unexpected(ip.error());
  return Endpoint{*ip, port};
}

device::ConnectOptions to_options(const ConnectOptions& options) {
  return {.revision = options.revision,
          .exchange_reads = options.exchange_reads,
          .peer_to_peer = options.peer_to_peer,
          .ird = options.ird,
          .ord = options.ord,
          .framing = options.framing,
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

Event from_event(device::Event& event) {
  Event out;
  out.remote = to_string(event.remote);
  if (event.detail.empty() && event.kind == device::EventKind::Disconnected) {
    event.detail = to_string(event.end);
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

}  // namespace verbs
}  // namespace rnic
