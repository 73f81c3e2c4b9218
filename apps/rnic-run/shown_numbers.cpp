#include "rnic-run/shown_numbers.hpp"

#include <mutex>
#include <utility>

namespace rnic::run {

void ShownNumbers::add(uint32_t device_number, std::shared_ptr<ShownPair> pair) {
  const std::unique_lock lock(mutex_);
  pairs_.insert_or_assign(device_number, std::move(pair));
}

void ShownNumbers::remove(uint32_t device_number) {
  const std::unique_lock lock(mutex_);
  pairs_.erase(device_number);
}

std::shared_ptr<ShownPair> ShownNumbers::find(uint32_t device_number) const {
  const std::shared_lock lock(mutex_);
  const auto found = pairs_.find(device_number);
  return found == pairs_.end() ? nullptr : found->second;
}

}  // namespace rnic::run
