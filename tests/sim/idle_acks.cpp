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

bool IdleAcks::idle(SaidBySegment says, bool pure, bool whole) {
  if (!spoken_ || says.ack != said_.ack) {
    asked_by_news_ = 0;
    if (whole) asked_ = 0;
  }
  const bool repeats = spoken_ && says == said_;
  said_ = std::move(says);
  spoken_ = true;
  if (!repeats || !pure) return false;
  if (asked_ == 0 && asked_by_news_ == 0) return true;
  --(asked_ != 0 ? asked_ : asked_by_news_);
  return false;
}

}  // namespace rnic::simulation
