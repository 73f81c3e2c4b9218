#include "mpa/negotiation.hpp"

#include <algorithm>

#include "base/endian.hpp"
#include "mpa/config.hpp"

namespace rnic::mpa {
namespace {

constexpr size_t kReadsInDataSize = 8;

uint8_t supported_rtr(const Config& config) {
  return static_cast<uint8_t>((config.rtr_send ? wire::kMpaRtrSend : 0) |
                              (config.rtr_write ? wire::kMpaRtrWrite : 0) |
                              (config.rtr_read ? wire::kMpaRtrRead : 0));
}

/// RFC 5044 appendix C: beside revision 1, revision 0 always has markers and CRC (figure 14). In
/// the draft's own profile each end chooses (draft-ietf-rddp-mpa-00 s.8.1.1).
wire::MpaStartHeader own_header(const Config& config, uint8_t revision) {
  const bool fixed = revision == 0 && config.revision != 0;
  wire::MpaStartHeader header;
  header.markers = config.markers_receive || fixed;
  header.crc = config.crc || fixed;
  header.revision = revision;
  return header;
}

framing::Negotiated agree(const wire::MpaStartHeader& own, const framing::StartOffer& peer) {
  framing::Negotiated agreed;
  agreed.crc = own.crc || peer.crc;  // RFC 5044 s.7.1.1: one side's C is enough
  agreed.markers_send = peer.markers;
  agreed.markers_receive = own.markers;
  agreed.revision = std::min(own.revision, peer.revision);
  framing::note_reads(peer, agreed);
  return agreed;
}

/// RFC 6581 s.9.2, the flags of a Reply. A zero-length Send takes a message number of the ULP's
/// queue, so it is offered only if no other kind is common. The Reply then names the kind that the
/// initiator is going to choose.
uint8_t answered_rtr(uint8_t asked, uint8_t supported) {
  const uint8_t common = asked & supported;
  const uint8_t kinds = common != 0 ? common : supported;
  const uint8_t tagged = kinds & (wire::kMpaRtrWrite | wire::kMpaRtrRead);
  return tagged != 0 ? tagged : kinds;
}

/// RFC 6581 s.9.1. A zero-length Read as RTR needs a place in the queue (CM6581-9.1-04).
void answer_reads(const Config& config, const framing::StartOptions& start_options,
                  const framing::StartOffer& request, StartPlan& plan) {
  const uint16_t least = (plan.data.rtr & wire::kMpaRtrRead) != 0 ? 1 : 0;
  const auto answer = framing::answer_reads(start_options, request, config.reads_limit, least);
  plan.data.ird = answer.told.ird;
  plan.data.ord = answer.told.ord;
  plan.agreed.ird = answer.agreed.ird;
  plan.agreed.ord = answer.agreed.ord;
  plan.reads_suffice = answer.suffice;
}

/// Chooses a kind of RTR in the Reply that this side can send (RFC 6581 s.9.2, CM6581-9.2-04); 0
/// when there is none.
uint8_t chosen_rtr(const Config& config, const framing::StartOffer& reply) {
  const uint8_t common = reply.rtr & supported_rtr(config);
  if ((common & wire::kMpaRtrWrite) != 0) return wire::kMpaRtrWrite;
  if ((common & wire::kMpaRtrRead) != 0 && reply.ird != 0) return wire::kMpaRtrRead;
  return common & wire::kMpaRtrSend;
}

}  // namespace

size_t prefix_size(const StartPlan& plan) {
  if (plan.header.enhanced) return wire::kMpaEnhancedSize;
  return plan.reads_in_data ? kReadsInDataSize : 0;
}

size_t private_data_max(const StartPlan& plan) {
  const size_t all =
      plan.header.revision == 0 ? wire::kMpaDraftPrivateDataMax : wire::kMpaPrivateDataMax;
  return all - prefix_size(plan);
}

void emit_prefix(const StartPlan& plan, uint8_t* dst) {
  if (plan.header.enhanced) {
    wire::write_mpa_enhanced(dst, plan.data);
  } else if (plan.reads_in_data) {
    base::store_be32(dst, plan.data.ird);
    base::store_be32(dst + 4, plan.data.ord);
  }
}

StartPlan plan_request(const Config& config, const framing::StartOptions& start_options) {
  const bool wanted = start_options.exchange_reads || start_options.peer_to_peer;
  // RFC 6581 s.6: a frame of revision 2 without S is the same as one of revision 1, and MAY have
  // this revision.
  const uint8_t lowest = wanted ? config.revision : std::min<uint8_t>(config.revision, 1);
  StartPlan plan;
  plan.header = own_header(config, start_options.revision.value_or(lowest));
  plan.header.enhanced = plan.header.revision == 2 && wanted;
  plan.reads_in_data =
      plan.header.revision == 1 && start_options.exchange_reads && config.reads_in_private_data;
  const framing::ReadDepths depths = framing::depths_of_request(start_options, config.reads_limit);
  plan.data.ird = depths.ird;
  plan.data.ord = depths.ord;
  plan.data.peer_to_peer = start_options.peer_to_peer;
  plan.data.rtr = supported_rtr(config);
  return plan;
}

StartPlan plan_reply(const Config& config, const framing::StartOptions& start_options,
                     const framing::StartOffer& request) {
  StartPlan plan;
  plan.header = own_header(config, request.revision);
  plan.header.enhanced = request.enhanced;  // RFC 6581 s.10
  // RFC 5044 s.7.1.1: the C bit of either side is enough, but Linux siw expects its own C bit in
  // the Reply, too. In the draft's profile each end sends only its own wish (draft-ietf-rddp-mpa-00
  // s.8.1.1).
  if (request.revision != 0) plan.header.crc = plan.header.crc || request.crc;
  plan.reads_in_data = request.reads_in_data;
  plan.agreed = agree(plan.header, request);
  if (request.enhanced && request.peer_to_peer) {
    plan.data.peer_to_peer = plan.agreed.peer_to_peer = true;
    plan.data.rtr = plan.agreed.rtr_kinds = answered_rtr(request.rtr, supported_rtr(config));
  }
  if (request.has_reads()) answer_reads(config, start_options, request, plan);
  if (request.reads_in_data) {
    plan.agreed.peer_to_peer = true;
    plan.agreed.rtr_kinds = wire::kMpaRtrRead;
  }
  return plan;
}

void make_reject(StartPlan& plan) { plan.header.reject = plan.header.revision != 0; }

framing::StartOffer read_offer(const Config& config, const StartPlan* request,
                               const wire::MpaStartHeader& header, base::ByteView data,
                               size_t& prefix) {
  framing::StartOffer offer;
  offer.revision = header.revision;
  offer.markers = header.markers;
  offer.crc = header.crc;
  prefix = 0;
  if (const auto enhanced = header.enhanced ? wire::parse_mpa_enhanced(data) : std::nullopt) {
    offer.enhanced = true;
    offer.peer_to_peer = enhanced->peer_to_peer;
    offer.rtr = enhanced->rtr;
    offer.ird = enhanced->ird;
    offer.ord = enhanced->ord;
    prefix = wire::kMpaEnhancedSize;
  }
  const bool in_data = request != nullptr ? request->reads_in_data : config.reads_in_private_data;
  if (in_data && header.revision == 1 && data.size() >= kReadsInDataSize) {
    offer.reads_in_data = true;
    offer.ird = base::load_be32(data.data());
    offer.ord = base::load_be32(data.data() + 4);
    prefix = kReadsInDataSize;
  }
  return offer;
}

ReplyVerdict judge_reply(const Config& config, const framing::StartOptions& start_options,
                         const StartPlan& request, const framing::StartOffer& reply) {
  ReplyVerdict verdict{.agreed = agree(request.header, reply)};
  // RFC 5044 s.C.2.5: a peer of revision 0 has markers and CRC on, whatever the Request said.
  if (reply.revision == 0 && config.revision != 0) {
    verdict.agreed.markers_receive = verdict.agreed.crc = true;
  }
  verdict.enhanced_missing = request.header.enhanced && !reply.enhanced;
  if (verdict.enhanced_missing || !reply.has_reads()) return verdict;
  if (start_options.exchange_reads) {
    const auto taken = framing::take_reads(start_options, reply, config.reads_limit);
    verdict.error = taken.error;
    verdict.agreed.ird = taken.agreed.ird;
    verdict.agreed.ord = taken.agreed.ord;
  }
  if (reply.reads_in_data) {
    verdict.agreed.peer_to_peer = true;
    verdict.agreed.rtr_kinds = wire::kMpaRtrRead;
    return verdict;
  }
  verdict.agreed.peer_to_peer = reply.peer_to_peer;
  if (reply.peer_to_peer) verdict.agreed.rtr_kinds = chosen_rtr(config, reply);
  // RFC 6581 s.9.2 includes connection models that differ: "a mutually compatible connection model
  // or RTR option".
  const bool matched =
      reply.peer_to_peer ? verdict.agreed.rtr_kinds != 0 : !start_options.peer_to_peer;
  if (verdict.error == llp::FramingError::None && !matched) {
    verdict.error = llp::FramingError::NoMatchingRtr;
  }
  return verdict;
}

bool revision_fits(const Config& config, uint8_t most, uint8_t revision) {
  if (config.revision == 0) return revision == 0;  // draft-ietf-rddp-mpa-00 s.8.1.1
  if (revision == 0) return config.permissive;     // RFC 5044 app. C
  return revision <= most;
}

}  // namespace rnic::mpa
