#include "tuf/submission_ring.hpp"

#include <array>

#include "base/check.hpp"

namespace rnic::tuf {

void SubmissionRing::submit(FramedSendMode mode, base::ByteView octets) {
  const uint64_t position = written_.load(std::memory_order_relaxed);
  std::array<uint8_t, Submission::kHead> head{};
  base::store_be16(head.data(), static_cast<uint16_t>(octets.size()));
  head[2] = static_cast<uint8_t>(mode);
  ring_.write(position, head);
  ring_.write(position + Submission::kHead, octets);
  written_.store(position + Submission::kHead + octets.size(), std::memory_order_release);
}

Submission SubmissionRing::at(uint64_t position) const {
  std::array<uint8_t, Submission::kHead> head;
  ring_.read(position, head);
  return {position, base::load_be16(head.data()), static_cast<FramedSendMode>(head[2])};
}

void SubmissionRing::validate() const {
  const uint64_t end = written();
  RNIC_CHECK(freed() <= end && end - freed() <= ring_.size());
  uint64_t position = freed();
  while (position < end) position = at(position).end();
  RNIC_CHECK(position == end);
}

}  // namespace rnic::tuf
