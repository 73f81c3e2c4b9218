/// \file
/// Which STags stand on the memory of a region.
#pragma once

#include <cstdint>

namespace rnic::mem {

class Dependents;

/// Ties one STag to a region whose memory it stands on. Its owner keeps it in place; Dependents
/// alone writes it.
struct Tie {
  uint32_t slot = 0;
  Dependents* region = nullptr;  // nullptr: not tied
  Tie** before = nullptr;        // what points here
  Tie* next = nullptr;
};

/// The ties of one region; octets that are zero are a region without any. It stays in its place
/// while it has some.
class Dependents {
 public:
  [[nodiscard]] uint32_t count() const { return count_; }
  /// The slot of one of them; only when count() is not 0.
  [[nodiscard]] uint32_t first_slot() const { return first_->slot; }

  /// \param tie not tied \param slot of the STag that stands on the region
  void add(Tie& tie, uint32_t slot) {
    tie = {.slot = slot, .region = this, .before = &first_, .next = first_};
    if (first_ != nullptr) first_->before = &tie.next;
    first_ = &tie;
    ++count_;
  }
  /// From whatever region it is tied to, if there is one.
  static void remove(Tie& tie) {
    if (tie.region == nullptr) return;
    *tie.before = tie.next;
    if (tie.next != nullptr) tie.next->before = tie.before;
    --tie.region->count_;
    tie = {};
  }

 private:
  Tie* first_ = nullptr;
  uint32_t count_ = 0;
};

}  // namespace rnic::mem
