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

void IdleAcks::asked(Question question, bool sack, uint32_t end) {
  switch (question) {
    case Question::News:
      ++news_;
      // What came behind the hole was owed the old number: the ACK that moves says more than that.
      if (!sack) behind_hole_.clear();
      break;
    case Question::BehindHole:
      behind_hole_.push_back(end);
      hole_seen_ |= sack;
      break;
    case Question::Refused: ++refused_; break;
  }
}

bool IdleAcks::idle(SaidBySegment says, bool pure, bool sack) {
  if (!spoken_ || says.ack != said_.ack) {
    news_ = 0;
    repeatable_ = spoken_ && hole_seen_ ? 2 : 0;
    if (!sack) {
      refused_ = 0;
      // Of what it covers a further one tells nothing. What lies beyond is owed its own, even if
      // both came in one burst: the peer has to learn of the next hole (RFC 5681 s.4.2).
      std::erase_if(behind_hole_,
                    [&](uint32_t end) { return static_cast<int32_t>(end - says.ack) <= 0; });
    }
  }
  const bool repeats = spoken_ && says == said_;
  said_ = std::move(says);
  spoken_ = true;
  if (!repeats || !pure) return false;
  if (!behind_hole_.empty()) {
    behind_hole_.pop_front();
    return false;
  }
  for (uint32_t* open : {&refused_, &news_, &repeatable_}) {
    if (*open == 0) continue;
    --*open;
    return false;
  }
  return true;
}

}  // namespace rnic::simulation
