#include "rnic-spin/life.hpp"

#include <algorithm>

namespace rnic::spin {

void Incoming::placed(uint64_t count) {
  while (!pending_.empty() && pending_.front().number <= count) pending_.pop_front();
}

bool Incoming::may_change(const Stretch& where) const {
  return std::ranges::any_of(pending_, [&](const Write& one) { return one.where.meets(where); });
}

std::optional<Message> Messages::receive(const Completion& done, std::string& wrong) {
  if (coming_.empty()) {
    wrong = "a message that nobody has sent";
    return std::nullopt;
  }
  const Message next = coming_.front();
  coming_.pop_front();
  if (done.has_immediate != next.immediate.has_value()) {
    wrong = next.immediate ? "Immediate Data was sent, and no message" : "a message was sent";
  } else if (next.immediate && done.immediate != *next.immediate) {
    wrong = "other Immediate Data was sent";
  } else if (!next.immediate && done.length != next.length) {
    wrong = std::to_string(next.length) + " octets were sent, and not " +
            std::to_string(done.length);
  } else if (done.invalidated_stag != next.invalidates) {
    wrong = "it was sent to invalidate " + std::to_string(next.invalidates) + ", and not " +
            std::to_string(done.invalidated_stag);
  } else if (done.solicited != next.solicited) {
    wrong = next.solicited ? "it was solicited" : "it was not solicited";
  }
  return next;
}

bool Outstanding::may_fetch(const Stretch& where) const {
  return std::ranges::any_of(queue_, [&](const Posted& one) {
    return is_read(one.opcode) && Stretch{one.place, one.length}.meets(where);
  });
}

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
