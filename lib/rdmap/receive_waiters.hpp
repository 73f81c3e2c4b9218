/// \file
/// The streams that wait for a receive of one shared receive queue.
#pragma once

#include <cstdint>

#include "base/check.hpp"

namespace rnic::rdmap {

/// A stream's place among those that wait. It is in one list at most.
class ReceiveWaiter {
 public:
  ReceiveWaiter() = default;
  ReceiveWaiter(const ReceiveWaiter&) = delete;
  ReceiveWaiter& operator=(const ReceiveWaiter&) = delete;
  ~ReceiveWaiter() { RNIC_CHECK(!listed_); }

  [[nodiscard]] bool is_listed() const { return listed_; }
  /// The stream whose place this is. Precondition: it is listed.
  [[nodiscard]] uint32_t stream() const { return stream_; }
  [[nodiscard]] const ReceiveWaiter* next() const { return next_; }

  /// The links that ReceiveWaiters sets.
  struct Neighbours {
    ReceiveWaiter* previous = nullptr;
    ReceiveWaiter* next = nullptr;
  };
  void enter(uint32_t stream, ReceiveWaiter* previous) {
    listed_ = true;
    stream_ = stream;
    previous_ = previous;
    next_ = nullptr;
    if (previous_ != nullptr) previous_->next_ = this;
  }
  Neighbours leave() {
    const Neighbours were{previous_, next_};
    if (previous_ != nullptr) previous_->next_ = next_;
    if (next_ != nullptr) next_->previous_ = previous_;
    listed_ = false;
    previous_ = next_ = nullptr;
    return were;
  }
  void validate() const { RNIC_CHECK(next_ == nullptr || next_->previous_ == this); }

 private:
  ReceiveWaiter* previous_ = nullptr;
  ReceiveWaiter* next_ = nullptr;
  uint32_t stream_ = 0;
  bool listed_ = false;
};

/// The waiting streams in the order in which they began to wait. The list needs no memory of its
/// own. Belongs to the worker.
class ReceiveWaiters {
 public:
  [[nodiscard]] bool empty() const { return first_ == nullptr; }
  /// The stream that has waited longest; nullptr: none waits.
  [[nodiscard]] const ReceiveWaiter* first() const { return first_; }
  /// Adds a place at the end. \param who not listed; outlives this, or is removed before
  void add(ReceiveWaiter& who, uint32_t stream) {
    RNIC_CHECK(!who.is_listed());
    who.enter(stream, last_);
    if (last_ == nullptr) first_ = &who;
    last_ = &who;
  }
  /// Removes a place. Does nothing if it is not listed.
  void remove(ReceiveWaiter& who) {
    if (!who.is_listed()) return;
    const ReceiveWaiter::Neighbours were = who.leave();
    if (first_ == &who) first_ = were.next;
    if (last_ == &who) last_ = were.previous;
  }
  /// Checks that all places are marked as listed, and linked both ways.
  void validate() const {
    const ReceiveWaiter* last = nullptr;
    for (const ReceiveWaiter* at = first_; at != nullptr; at = at->next()) {
      RNIC_CHECK(at->is_listed());
      at->validate();
      last = at;
    }
    RNIC_CHECK(last == last_);
  }

 private:
  ReceiveWaiter* first_ = nullptr;
  ReceiveWaiter* last_ = nullptr;
};

}  // namespace rnic::rdmap
