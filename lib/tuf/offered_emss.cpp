#include "tuf/offered_emss.hpp"

namespace rnic::tuf {

void OfferedEmss::report(uint32_t emss) {
  const bool grew = emss > emss_;
  const bool taken_back = before_growth_ != 0 && emss == before_growth_;
  const bool stands = taken_back && largest_since_ <= emss;
  offered_ = stands ? std::max(offered_, emss_) : (grew ? offered_ : 0);
  before_growth_ = grew ? emss_ : 0;
  if (grew) largest_since_ = 0;
  emss_ = emss;
  if (offered_ <= emss_) offered_ = 0;
  show();
}

void OfferedEmss::show() {
  const uint32_t visible = std::max(emss_, offered_);
  const uint32_t before = visible_.load(std::memory_order_relaxed);
  visible_.store(visible, std::memory_order_release);
  if (visible > before && before != 0) growth_untold_.store(true);
}

}  // namespace rnic::tuf
