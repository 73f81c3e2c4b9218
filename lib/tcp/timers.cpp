#include "tcp/timers.hpp"

#include <algorithm>

namespace rnic::tcp {

base::Now Timers::earliest() const { return *std::min_element(at_.begin(), at_.end()); }

void Timers::wait() {
  const base::Now first = earliest();
  if (first != base::kNever) wake_by(first);
}

void Timers::stop() {
  at_.fill(base::kNever);
  wheel_.cancel(node_);
}

void Timers::validate() const {
  const base::Now first = earliest();
  RNIC_CHECK(first == base::kNever || (node_.armed() && node_.deadline <= first));
}

}  // namespace rnic::tcp
