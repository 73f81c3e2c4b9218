#include "framing/read_depths.hpp"

#include <algorithm>

namespace rnic::framing {
namespace {

/// The depth of a queue as the peer is told of it: within the limit (BUG-19).
uint16_t told(uint16_t reads, uint32_t limit) {
  if (reads == kReadsByApplication) return reads;
  return static_cast<uint16_t>(std::min<uint32_t>(reads, limit));
}

/// The number to tell a peer that asks for one: the limit if this side's application gave none.
uint16_t number_of(uint16_t told, uint32_t limit) {
  return told == kReadsByApplication ? static_cast<uint16_t>(limit) : told;
}

}  // namespace

ReadDepths depths_of_request(const StartOptions& start_options, uint32_t limit) {
  if (!start_options.exchange_reads) return {};
  return {told(start_options.ird, limit), told(start_options.ord, limit)};
}

AnsweredReads answer_reads(const StartOptions& start_options, const StartOffer& request,
                           uint32_t limit, uint16_t least_ird) {
  AnsweredReads answer;
  if (request.ord != kReadsByApplication) {
    answer.told.ird = std::max(number_of(told(start_options.ird, limit), limit), least_ird);
    if (start_options.ird != kReadsByApplication) answer.agreed.ird = answer.told.ird;
  }
  if (request.ird != kReadsByApplication) {
    const uint16_t wanted = number_of(told(start_options.ord, limit), limit);
    answer.told.ord = static_cast<uint16_t>(std::min<uint32_t>(wanted, request.ird));
    if (start_options.ord != kReadsByApplication) answer.agreed.ord = answer.told.ord;
    answer.suffice = request.ird >= start_options.ord_required;
  }
  if (!answer.suffice) answer.told.ord = start_options.ord_required;
  return answer;
}

TakenReads take_reads(const StartOptions& start_options, const StartOffer& reply, uint32_t limit) {
  TakenReads taken;
  if (reply.ird != kReadsByApplication && start_options.ord != kReadsByApplication) {
    taken.agreed.ord = std::min<uint32_t>(told(start_options.ord, limit), reply.ird);
  }
  if (reply.ord != kReadsByApplication && start_options.ird != kReadsByApplication) {
    taken.agreed.ird = start_options.ird;
    if (reply.ord > start_options.ird) taken.error = llp::FramingError::InsufficientIrd;
  }
  return taken;
}

}  // namespace rnic::framing
