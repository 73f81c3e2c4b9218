#include "dpdk/floor_frames.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include "dpdk/tsc_clock.hpp"

namespace rnic::dpdk {

namespace {

constexpr size_t kHuge = 2u << 20;

size_t whole_pages(size_t octets) { return (octets + kHuge - 1) / kHuge * kHuge; }

template <typename F>
uint64_t cheapest_of_runs(F&& call) {
  uint64_t best = UINT64_MAX;
  for (int run = 0; run < 64; ++run) {
    const uint64_t start = cycles_now();
    for (int i = 0; i < 8; ++i) call();
    best = std::min(best, cycles_now() - start);
  }
  return best;
}

}  // namespace

FloorRegion::FloorRegion(size_t octets)
    : octets_(octets),
      memory_(static_cast<uint8_t*>(std::aligned_alloc(kHuge, whole_pages(octets)))) {
  if (memory_ == nullptr) return;
  madvise(memory_.get(), whole_pages(octets), MADV_HUGEPAGE);
  std::memset(memory_.get(), 0, octets);
}

FloorFrames::FloorFrames(uint32_t mtu, uint64_t region)
    : payload_((mtu - 72) & ~3u), region_(region), source_(region), target_(region) {
  choose_kernels();
  if (!has_memory()) return;
  for (size_t i = 0; i < source_.octets().size(); ++i) {
    source_.octets()[i] = static_cast<uint8_t>(i * 131 >> 3);
  }
}

void FloorFrames::choose_kernels() {
  std::vector<uint8_t> source(payload_ + 64, 0x5a);
  std::vector<uint8_t> target(payload_ + 64);
  uint64_t best_update = UINT64_MAX;
  uint64_t best_copy = UINT64_MAX;
  uint32_t sink = 0;
  for (const crc::Kernel& kernel : crc::available_kernels()) {
    const uint64_t update =
        cheapest_of_runs([&] { sink ^= kernel.update(crc::kInit, source.data() + 16, payload_); });
    const uint64_t copy = cheapest_of_runs(
        [&] { sink ^= kernel.copy(crc::kInit, target.data(), source.data() + 16, payload_); });
    if (update < best_update) best_update = update, update_ = &kernel;
    if (copy < best_copy) best_copy = copy, copy_ = &kernel;
  }
  asm volatile("" : : "r"(sink));
}

bool FloorFrames::verified() const {
  const size_t whole = region_ / payload_ * payload_;
  const auto sent = source_.octets().first(whole);
  return bad_ == 0 &&
         (placed_ < whole || std::equal(sent.begin(), sent.end(), target_.octets().begin()));
}

std::string FloorFrames::kernels() const {
  return "update " + std::string(update_->name) + ", copy " + std::string(copy_->name);
}

}  // namespace rnic::dpdk
