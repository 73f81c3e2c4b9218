#include "socket/unsent.hpp"

#include <algorithm>

namespace rnic::socket {

void Unsent::add_octets(uint32_t n, bool joined) {
  if (write_count_ == 0 || !joined) writes_[write_count_++] = {end_, end_};
  end_ += n;
  writes_[write_count_ - 1].end = end_;
}

uint32_t Unsent::writes(std::array<Write, kMaxWrites>& out) const {
  const auto last =
      std::copy(writes_.begin() + first_write_, writes_.begin() + write_count_, out.begin());
  out[0].begin = taken_;
  return static_cast<uint32_t>(last - out.begin());
}

void Unsent::taken(uint32_t n) {
  taken_ += n;
  with_system_ += n;
  while (first_write_ < write_count_ && writes_[first_write_].end <= taken_) ++first_write_;
  if (!empty()) return;
  taken_ = end_ = 0;
  write_count_ = first_write_ = 0;
}

const Unsent::Record* Unsent::release() {
  if (released_ == records_.size()) {
    records_.clear();
    released_ = 0;
    return nullptr;
  }
  return records_[released_].end <= with_system_ ? &records_[released_++] : nullptr;
}

}  // namespace rnic::socket
