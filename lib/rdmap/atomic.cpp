#include "rdmap/atomic.hpp"

#include <atomic>

#include "base/check.hpp"

namespace rnic::rdmap {

uint64_t execute(const wire::RdmapAtomicRequest& request, uint8_t* target) {
  RNIC_CHECK(is_known(request) && is_aligned(target));
  static_assert(std::atomic_ref<uint64_t>::is_always_lock_free);
  std::atomic_ref<uint64_t> word(*reinterpret_cast<uint64_t*>(target));
  const bool add = request.code == static_cast<uint8_t>(wire::RdmapAtomicCode::FetchAdd);
  if (add && request.mask == 0) return word.fetch_add(request.data);
  uint64_t original = word.load();
  for (;;) {
    const uint64_t result = add ? fetch_add_result(original, request.data, request.mask)
                                : compare_swap_result(original, request);
    // The exchange takes place even if the value does not change: only so was the value returned in
    // memory at one point of the single order that all threads see.
    if (word.compare_exchange_weak(original, result)) return original;
  }
}

}  // namespace rnic::rdmap
