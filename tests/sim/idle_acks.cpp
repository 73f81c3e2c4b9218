#include "idle_acks.hpp"

#include <utility>

#include "wire/tcp.hpp"

namespace rnic::simulation {

SaidBySegment::SaidBySegment(uint32_t ack_field, uint16_t window_field, uint8_t flags,
                             const wire::TcpOptions& options)
    : ack(ack_field), window(window_field), ece((flags & wire::tcp_flag::kEce) != 0) {
  for (uint32_t i = 0; i < options.sack_count; ++i) {
    sack.push_back(uint64_t{options.sack[i].left.value} << 32 | options.sack[i].right.value);
  }
}

void IdleAcks::asked(Question question, bool sack) {
  switch (question) {
    case Question::News:
      ++news_;
      // What came behind the hole was owed the old number: the ACK that moves says more than that.
      if (!sack) behind_hole_ = 0;
      break;
    case Question::BehindHole: ++behind_hole_; break;
    case Question::Refused: ++refused_; break;
  }
}

bool IdleAcks::idle(SaidBySegment says, bool pure, bool whole, bool sack) {
  if (!spoken_ || says.ack != said_.ack) {
    news_ = 0;
    if (!sack) refused_ = 0;
    if (!sack && whole) behind_hole_ = 0;
  }
  const bool repeats = spoken_ && says == said_;
  said_ = std::move(says);
  spoken_ = true;
  if (!repeats || !pure) return false;
  for (uint32_t* open : {&behind_hole_, &refused_, &news_}) {
    if (*open == 0) continue;
    --*open;
    return false;
  }
  return true;
}

}  // namespace rnic::simulation
