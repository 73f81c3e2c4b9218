#include "dpdk/path_floor.hpp"

#include <pthread.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>
#include <rte_ring.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <thread>

#include "dpdk/best_window.hpp"
#include "dpdk/eal.hpp"
#include "dpdk/floor_frames.hpp"
#include "dpdk/hand_over.hpp"
#include "dpdk/mbuf_pool.hpp"
#include "dpdk/tsc_clock.hpp"

namespace rnic::dpdk {

namespace {

constexpr unsigned kBurst = 32;  // at most
constexpr uint64_t kFewest = 4;  // frames of a window
constexpr unsigned kRingSize = 512;

void pin_this_thread(uint32_t core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

}  // namespace

/// The whole arrangement; sender and receiver touch disjoint members.
class PathFloor::Rig {
 public:
  Rig(const Options& options, rte_mempool* pool, rte_ring* ring, TscClock clock)
      : options_(options),
        pool_(pool),
        ring_(ring),
        clock_(clock),
        frames_(options.mtu, options.region) {}

  ~Rig() {
    drain();
    rte_ring_free(ring_);
    rte_mempool_free(pool_);
  }

  [[nodiscard]] bool has_memory() const { return frames_.has_memory(); }

  double run(base::Duration duration) {
    BestWindow best(kFewest);
    for (const uint32_t burst : kBursts) {
      burst_ = burst;
      run_of_one_burst(duration / kBursts.size(), best);
    }
    return best.per_second() * frames_.payload() * 8.0 / 1e9;
  }

  [[nodiscard]] bool verified() const { return frames_.verified(); }
  [[nodiscard]] std::string kernels() const { return frames_.kernels(); }

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
      frames_.make(frame);
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
      rte_prefetch0(rte_pktmbuf_mtod(burst[i], uint8_t*) + FloorFrames::kLowerHeaders);
    }
    for (unsigned i = 0; i < n; ++i) frames_.place(burst[i]);
    if (n != 0) free_mbufs(burst, n);
    return n;
  }

  void drain() {
    while (receive() != 0) {
    }
  }

  Options options_;
  rte_mempool* pool_;
  rte_ring* ring_;
  TscClock clock_;
  FloorFrames frames_;
  std::atomic<bool> stop_{false};
  uint32_t burst_ = kBurst;
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
