/// \file
/// Admitted: a place in an Admission, as its holder keeps it.
#pragma once

#include <cstdint>
#include <utility>

#include "base/check.hpp"
#include "base/slab.hpp"
#include "llp/admission.hpp"
#include "rnic/address.hpp"

namespace rnic::llp {

/// At most one place in one table at a time. The destructor does not give the place back: the
/// holder calls leave() before it is destroyed.
class Admitted {
 public:
  /// Takes a place in `table` and leaves the one held before. \param table outlives the place, and
  /// is not full
  void take(Admission& table, const IpAddress& address, base::Handle who) {
    leave();
    number_ = table.enter(address, who);
    table_ = &table;
  }
  void leave() {
    if (Admission* table = std::exchange(table_, nullptr)) table->leave(number_);
  }
  [[nodiscard]] bool is_taken() const { return table_ != nullptr; }
  /// Checks that the table of a taken place is not empty.
  void validate() const { RNIC_CHECK(table_ == nullptr || table_->size() != 0); }

 private:
  Admission* table_ = nullptr;  // nullptr: no place is taken
  uint32_t number_ = 0;         // seat in table_; meaningless without one
};

}  // namespace rnic::llp
