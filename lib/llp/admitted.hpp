/// \file
/// Admitted: somebody's place in an Admission.
#pragma once

#include <cstdint>
#include <utility>

#include "base/check.hpp"
#include "base/slab.hpp"
#include "llp/admission.hpp"
#include "rnic/address.hpp"

namespace rnic::llp {

/// At most one place in one table at a time. It does not leave by itself: who has it does, before
/// he is gone.
class Admitted {
 public:
  /// Leaves the place that there was. \param table outlives the seat in it, and is not full
  void take(Admission& table, const IpAddress& address, base::Handle who) {
    leave();
    number_ = table.enter(address, who);
    table_ = &table;
  }
  void leave() {
    if (Admission* table = std::exchange(table_, nullptr)) table->leave(number_);
  }
  [[nodiscard]] bool is_taken() const { return table_ != nullptr; }
  /// Checks that its table has somebody.
  void validate() const { RNIC_CHECK(table_ == nullptr || table_->size() != 0); }

 private:
  Admission* table_ = nullptr;  // nullptr: there is none
  uint32_t number_ = 0;         // in the table; of no meaning without one
};

}  // namespace rnic::llp
