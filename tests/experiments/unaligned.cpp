#include "unaligned.hpp"

#include <algorithm>

namespace rnic::experiment {

void Unaligned::established(uint32_t emss, base::Now now) {
  emss_ = emss;
  room_.resize(emss);
  session_.established(emss, now);
}

void Unaligned::fill(uint32_t octets, base::Now now) {
  while (kept_begin_ + kept_.size() - sent_ < octets) {
    llp::Frame frame(room_.data(), emss_);
    const llp::Pulled pulled = session_.pull(emss_, kept_begin_ + kept_.size(), frame, now);
    if (pulled.length == 0) return;
    kept_.insert(kept_.end(), room_.begin(), room_.begin() + pulled.length);
    records_.push_back({pulled.tag, kept_begin_ + kept_.size()});
  }
}

llp::Pulled Unaligned::pull(uint32_t n, uint64_t, llp::Frame& out, base::Now now) {
  fill(n, now);
  auto length = static_cast<uint32_t>(std::min<uint64_t>(n, kept_begin_ + kept_.size() - sent_));
  if (length == 0) return {};
  if (length == n && phase_ != 0) length = std::min(length, phase_), phase_ = 0;
  const auto first = kept_.begin() + static_cast<long>(sent_ - kept_begin_);
  std::copy(first, first + length, out.append(length));
  sent_ += length;
  return {.length = length, .push = length < n, .atomic = false, .tag = {}};
}

bool Unaligned::rebuild(const llp::RecordTag&, uint64_t offset, uint32_t length, llp::Frame& out) {
  if (offset < kept_begin_ || offset + length > kept_begin_ + kept_.size()) return false;
  const auto first = kept_.begin() + static_cast<long>(offset - kept_begin_);
  std::copy(first, first + length, out.append(length));
  return true;
}

void Unaligned::released(const llp::RecordTag&, uint64_t end_offset) {
  kept_.erase(kept_.begin(), kept_.begin() + static_cast<long>(end_offset - kept_begin_));
  kept_begin_ = end_offset;
  while (!records_.empty() && records_.front().end <= end_offset) {
    const Record record = records_.front();
    records_.pop_front();
    session_.released(record.tag, record.end);
  }
}

}  // namespace rnic::experiment
