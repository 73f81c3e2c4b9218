#include "framing/read_depths.hpp"

#include <algorithm>

namespace rnic::framing {
namespace {

/// BUG-19: what is told of a queue's depth stays within the limit.
uint16_t told(uint16_t reads, uint32_t limit) {
  if (reads == kReadsByApplication) return reads;
  return static_cast<uint16_t>(std::min<uint32_t>(reads, limit));
}

/// The peer asks for a number; where this side's application gave none it is the limit.
uint16_t number_of(uint16_t told, uint32_t limit) {
  return told == kReadsByApplication ? static_cast<uint16_t>(limit) : told;
}

}  // namespace

ReadDepths depths_of_request(const StartWish& wish, uint32_t limit) {
  if (!wish.exchange_reads) return {};
  return {told(wish.ird, limit), told(wish.ord, limit)};
}

AnsweredReads answer_reads(const StartWish& wish, const StartOffer& request, uint32_t limit,
                           uint16_t least_ird) {
  AnsweredReads answer;
  if (request.ord != kReadsByApplication) {
    answer.told.ird = std::max(number_of(told(wish.ird, limit), limit), least_ird);
    if (wish.ird != kReadsByApplication) answer.agreed.ird = answer.told.ird;
  }
  if (request.ird != kReadsByApplication) {
    const uint16_t wanted = number_of(told(wish.ord, limit), limit);
    answer.told.ord = static_cast<uint16_t>(std::min<uint32_t>(wanted, request.ird));
    if (wish.ord != kReadsByApplication) answer.agreed.ord = answer.told.ord;
    answer.suffice = request.ird >= wish.ord_required;
  }
  if (!answer.suffice) answer.told.ord = wish.ord_required;
  return answer;
}

TakenReads take_reads(const StartWish& wish, const StartOffer& reply, uint32_t limit) {
  TakenReads taken;
  if (reply.ird != kReadsByApplication && wish.ord != kReadsByApplication) {
    taken.agreed.ord = std::min<uint32_t>(told(wish.ord, limit), reply.ird);
  }
  if (reply.ord != kReadsByApplication && wish.ird != kReadsByApplication) {
    taken.agreed.ird = wish.ird;
    if (reply.ord > wish.ird) taken.error = llp::FramingError::InsufficientIrd;
  }
  return taken;
}

}  // namespace rnic::framing
