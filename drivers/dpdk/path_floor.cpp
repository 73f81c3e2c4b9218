#include "dpdk/path_floor.hpp"

#include <pthread.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>
#include <rte_ring.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "base/endian.hpp"
#include "crc/crc.hpp"
#include "dpdk/best_window.hpp"
#include "dpdk/eal.hpp"
#include "dpdk/hand_over.hpp"
#include "dpdk/mbuf_pool.hpp"
#include "dpdk/tsc_clock.hpp"

namespace rnic::dpdk {

namespace {

constexpr unsigned kBurst = 32;  // at most
constexpr uint64_t kFewest = 4;  // frames of a window
constexpr unsigned kRingSize = 512;
constexpr uint32_t kLowerHeaders = 14 + 20 + 32;  // Ethernet, IPv4, TCP with timestamps
constexpr uint32_t kFpduHeader = 2 + 14;          // MPA length, DDP/RDMAP tagged header

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

void pin_this_thread(uint32_t core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

}  // namespace

/// Memory of source or target, on huge pages where the system has them, as registered memory of an
/// application is.
class PathFloor::Region {
 public:
  explicit Region(size_t octets) : octets_(octets), memory_(allocate(octets)) {
    if (memory_ == nullptr) return;
    madvise(memory_.get(), rounded(octets), MADV_HUGEPAGE);
    std::memset(memory_.get(), 0, octets);
  }

  [[nodiscard]] explicit operator bool() const { return memory_ != nullptr; }
  [[nodiscard]] std::span<uint8_t> octets() const { return {memory_.get(), octets_}; }

 private:
  static constexpr size_t kHuge = 2u << 20;
  struct Free {
    void operator()(uint8_t* memory) const { std::free(memory); }
  };

  [[nodiscard]] static size_t rounded(size_t octets) {
    return (octets + kHuge - 1) / kHuge * kHuge;
  }
  [[nodiscard]] static uint8_t* allocate(size_t octets) {
    return static_cast<uint8_t*>(std::aligned_alloc(kHuge, rounded(octets)));
  }

  size_t octets_;
  std::unique_ptr<uint8_t, Free> memory_;
};

/// The two kernels of the floor.
struct PathFloor::Kernels {
  static Kernels fastest(uint32_t payload);

  const crc::Kernel* update = nullptr;
  const crc::Kernel* copy = nullptr;
};

PathFloor::Kernels PathFloor::Kernels::fastest(uint32_t payload) {
  std::vector<uint8_t> source(payload + 64, 0x5a);
  std::vector<uint8_t> target(payload + 64);
  Kernels fastest;
  uint64_t best_update = UINT64_MAX;
  uint64_t best_copy = UINT64_MAX;
  uint32_t sink = 0;
  for (const crc::Kernel& kernel : crc::available_kernels()) {
    const uint64_t update =
        cheapest_of_runs([&] { sink ^= kernel.update(crc::kInit, source.data() + 16, payload); });
    const uint64_t copy = cheapest_of_runs(
        [&] { sink ^= kernel.copy(crc::kInit, target.data(), source.data() + 16, payload); });
    if (update < best_update) best_update = update, fastest.update = &kernel;
    if (copy < best_copy) best_copy = copy, fastest.copy = &kernel;
  }
  asm volatile("" : : "r"(sink));
  return fastest;
}

/// The whole arrangement; sender and receiver touch disjoint members.
class PathFloor::Rig {
 public:
  Rig(const Options& options, rte_mempool* pool, rte_ring* ring, TscClock clock)
      : options_(options),
        payload_((options.mtu - 72) & ~3u),
        pool_(pool),
        ring_(ring),
        clock_(clock),
        kernels_(Kernels::fastest(payload_)),
        source_(options.region),
        target_(options.region) {
    if (!has_memory()) return;
    for (size_t i = 0; i < source_.octets().size(); ++i) {
      source_.octets()[i] = static_cast<uint8_t>(i * 131 >> 3);
    }
  }

  ~Rig() {
    drain();
    rte_ring_free(ring_);
    rte_mempool_free(pool_);
  }

  [[nodiscard]] bool has_memory() const { return source_ && target_; }

  double run(base::Duration duration) {
    BestWindow best(kFewest);
    for (const uint32_t burst : kBursts) {
      burst_ = burst;
      run_of_one_burst(duration / kBursts.size(), best);
    }
    return best.per_second() * payload_ * 8.0 / 1e9;
  }

  [[nodiscard]] bool verified() const {
    const size_t whole = options_.region / payload_ * payload_;
    const auto sent = source_.octets().first(whole);
    return bad_ == 0 && (placed_ < whole ||
                         std::equal(sent.begin(), sent.end(), target_.octets().begin()));
  }

  [[nodiscard]] std::string kernels() const {
    return "update " + std::string(kernels_.update->name) + ", copy " +
           std::string(kernels_.copy->name);
  }

 private:
  void run_of_one_burst(base::Duration duration, BestWindow& best) {
    stop_.store(false);
    std::thread sender;
    if (options_.two_threads) {
      sender = std::thread([this] {
        pin_this_thread(options_.sender_core);
        const bool registered = Eal::register_thread().has_value();
        while (!stop_.load(std::memory_order_relaxed)) send();
        if (registered) Eal::unregister_thread();
      });
    }
    best.begin_run();
    uint64_t frames = 0;
    const base::Now deadline = clock_.now() + duration;
    for (base::Now now{}; now < deadline;) {
      for (uint32_t turn = 0; turn < kBurst / burst_; ++turn) {
        if (!options_.two_threads) send();
        frames += receive();
      }
      now = clock_.now();
      best.sample(now, frames + rte_ring_count(ring_), frames);
    }
    stop_.store(true);
    if (sender.joinable()) sender.join();
    drain();
  }

  void send() {
    rte_mbuf* frames[kBurst];
    if (rte_ring_free_count(ring_) < burst_) return;
    if (!allocate_mbufs(pool_, frames, burst_)) return;
    for (rte_mbuf* frame : std::span(frames).first(burst_)) {
      auto* start = rte_pktmbuf_mtod(frame, uint8_t*);
      std::memset(start, 0x11, kLowerHeaders + kFpduHeader);
      uint8_t* fpdu = start + kLowerHeaders;
      base::store_be64(fpdu + 8, send_offset_);
      uint32_t crc = kernels_.update->update(crc::kInit, fpdu, kFpduHeader);
      crc = kernels_.copy->copy(crc, fpdu + kFpduHeader,
                                source_.octets().subspan(send_offset_).data(), payload_);
      base::store_le32(fpdu + kFpduHeader + payload_, crc::finish(crc));
      send_offset_ = next(send_offset_);
      frame->data_len = static_cast<uint16_t>(kLowerHeaders + kFpduHeader + payload_ + 4);
      frame->pkt_len = frame->data_len;
      hand_over(frame);
    }
    rte_ring_sp_enqueue_bulk(ring_, reinterpret_cast<void**>(frames), burst_, nullptr);
  }

  uint32_t receive() {
    rte_mbuf* burst[kBurst];
    const unsigned n =
        rte_ring_sc_dequeue_burst(ring_, reinterpret_cast<void**>(burst), burst_, nullptr);
    for (unsigned i = 0; i < n; ++i) {
      take_over(burst[i]);
      rte_prefetch0(rte_pktmbuf_mtod(burst[i], uint8_t*) + kLowerHeaders);
    }
    for (unsigned i = 0; i < n; ++i) {
      const uint8_t* fpdu = rte_pktmbuf_mtod(burst[i], uint8_t*) + kLowerHeaders;
      const uint64_t offset = base::load_be64(fpdu + 8);
      const uint32_t crc =
          crc::finish(kernels_.update->update(crc::kInit, fpdu, kFpduHeader + payload_));
      if (crc != base::load_le32(fpdu + kFpduHeader + payload_) ||
          offset + payload_ > options_.region) {
        ++bad_;
        continue;
      }
      std::memcpy(target_.octets().data() + offset, fpdu + kFpduHeader, payload_);
      placed_ += payload_;
    }
    for (unsigned i = 0; i < n; ++i) hand_over(burst[i]);
    if (n != 0) rte_pktmbuf_free_bulk(burst, n);
    return n;
  }

  void drain() {
    while (receive() != 0) {
    }
  }

  [[nodiscard]] uint64_t next(uint64_t offset) const {
    offset += payload_;
    return offset + payload_ > options_.region ? 0 : offset;
  }

  Options options_;
  uint32_t payload_;
  rte_mempool* pool_;
  rte_ring* ring_;
  TscClock clock_;
  Kernels kernels_;
  Region source_;
  Region target_;
  std::atomic<bool> stop_{false};
  uint32_t burst_ = kBurst;
  alignas(64) uint64_t send_offset_ = 0;
  alignas(64) uint64_t bad_ = 0;
  uint64_t placed_ = 0;
};

PathFloor::PathFloor() = default;
PathFloor::~PathFloor() = default;

Result<std::unique_ptr<PathFloor>> PathFloor::create(const Options& options) {
  static std::atomic<uint32_t> counter{0};
  const std::string suffix = std::to_string(counter++);
  auto clock = TscClock::create();
  if (!clock) return tl::unexpected(clock.error());
  const auto room = static_cast<uint16_t>(options.mtu + 64 + RTE_PKTMBUF_HEADROOM + 64);
  rte_mempool* pool = rte_pktmbuf_pool_create(("rnic_floor_pool" + suffix).c_str(),
                                              1023 + kRingSize, 128, 0, room, SOCKET_ID_ANY);
  rte_ring* ring = rte_ring_create(("rnic_floor_ring" + suffix).c_str(), kRingSize, SOCKET_ID_ANY,
                                   RING_F_SP_ENQ | RING_F_SC_DEQ);
  if (pool == nullptr || ring == nullptr) {
    rte_ring_free(ring);
    rte_mempool_free(pool);
    return base::fail(ErrorCode::ResourceExhausted,
                      "no memory for the floor's buffers: raise eal.memory_mb");
  }
  std::unique_ptr<PathFloor> floor(new PathFloor);
  floor->rig_ = std::make_unique<Rig>(options, pool, ring, *clock);
  if (!floor->rig_->has_memory()) {
    return base::fail(ErrorCode::ResourceExhausted, "no memory for the floor's regions");
  }
  return floor;
}

double PathFloor::run(base::Duration duration) { return rig_->run(duration); }
bool PathFloor::verified() const { return rig_->verified(); }
std::string PathFloor::kernels() const { return rig_->kernels(); }

}  // namespace rnic::dpdk
