#include "rnic-run/held_ends.hpp"

#include <algorithm>

namespace rnic::run {

namespace {

constexpr std::chrono::microseconds kLookEach{500};

}  // namespace

bool HeldEnds::hold(uint32_t id, const Unread& unread) {
  if (!timer_.is_there()) return false;
  held_.push_back({id, unread, Clock::now() + kLongest});
  if (held_.size() == 1) timer_.start(kLookEach, kLookEach);
  return true;
}

void HeldEnds::release(const std::function<bool(uint32_t, const Unread&)>& was_read,
                       const std::function<void(uint32_t)>& told) {
  const auto now = Clock::now();
  const auto waits = [&](const Held& each) {
    return now < each.until && !was_read(each.id, each.unread);
  };
  const auto behind = std::stable_partition(held_.begin(), held_.end(), waits);
  for (auto each = behind; each != held_.end(); ++each) told(each->id);
  held_.erase(behind, held_.end());
  if (held_.empty()) timer_.stop();
}

}  // namespace rnic::run
