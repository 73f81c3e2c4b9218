/// \file
/// Dependents: the STags (windows and fast registrations) that stand on the memory of a region.
#pragma once

#include <cstdint>

namespace rnic::mem {

class Dependents;

/// Ties one STag to a region whose memory it stands on. Its owner must not move it; only Dependents
/// writes it.
struct Tie {
  uint32_t slot = 0;
  Dependents* region = nullptr;  // nullptr: not tied
  Tie** before = nullptr;        // the pointer to this tie
  Tie* next = nullptr;
};

/// The ties of one region. An object of zero octets is a region without ties. It must not move
/// while it has some.
class Dependents {
 public:
  [[nodiscard]] uint32_t count() const { return count_; }
  /// The slot of one of the STags. Precondition: count() is not 0.
  [[nodiscard]] uint32_t first_slot() const { return first_->slot; }

  /// Calls `f(slot)` for each of the STags.
  template <typename F>
  void for_each_slot(F&& f) const {
    for (const Tie* tie = first_; tie != nullptr; tie = tie->next) f(tie->slot);
  }

  /// Ties an STag to the region. \param tie not tied yet \param slot of the STag
  void add(Tie& tie, uint32_t slot) {
    tie = {.slot = slot, .region = this, .before = &first_, .next = first_};
    if (first_ != nullptr) first_->before = &tie.next;
    first_ = &tie;
    ++count_;
  }
  /// Removes a tie from its region, if it is tied to one.
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
