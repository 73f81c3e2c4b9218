#include "rnic-spin/life.hpp"

#include <algorithm>

namespace rnic::spin {

std::optional<Posted> Outstanding::complete(const Completion& done, std::string& wrong) {
  while (!queue_.empty()) {
    const Posted first = queue_.front();
    queue_.pop_front();
    if (first.id == done.id) {
      if (first.opcode != done.opcode) {
        wrong = std::string("it was posted as ") + to_string(first.opcode);
      } else if (!first.signaled && done.status == CompletionStatus::Success) {
        wrong = "it was not to be signalled";
      }
      return first;
    }
    if (first.signaled) {
      wrong = "request " + std::to_string(first.id) + " was before it and has not completed";
      return std::nullopt;
    }
  }
  wrong = "it was never posted, or has completed before";
  return std::nullopt;
}

size_t Outstanding::awaited() const {
  return static_cast<size_t>(
      std::count_if(queue_.begin(), queue_.end(), [](const Posted& one) { return one.signaled; }));
}

}  // namespace rnic::spin
