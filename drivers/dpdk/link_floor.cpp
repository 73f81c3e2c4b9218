#include "dpdk/link_floor.hpp"

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "dpdk/best_window.hpp"
#include "dpdk/burst_gate.hpp"
#include "dpdk/ethdev.hpp"
#include "dpdk/floor_frames.hpp"
#include "dpdk/hand_over.hpp"
#include "dpdk/mbuf_pool.hpp"
#include "dpdk/path_floor.hpp"
#include "dpdk/tsc_clock.hpp"

namespace rnic::dpdk {

class LinkFloor::Rig {
 public:
  static constexpr uint32_t kPool = 2048;  // frames; net_memif copies what it takes

  Rig(const Options& options, MbufPool pool, std::unique_ptr<port::Port> port, uint16_t id,
      TscClock clock, Progress& progress)
      : pool_(std::move(pool)),
        port_(std::move(port)),
        id_(id),
        clock_(clock),
        progress_(progress),
        frames_(options.mtu, options.region) {}

  [[nodiscard]] const FloorFrames& frames() const { return frames_; }

  [[nodiscard]] bool is_up() const {
    rte_eth_link link{};
    return rte_eth_link_get_nowait(id_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
  }

  Result<double> send(base::Duration duration) {
    BestWindow best(kFewest);
    const base::Duration share = duration / (PathFloor::kBursts.size() * kFlying.size());
    for (const uint32_t burst : PathFloor::kBursts) {
      for (const uint32_t flying : kFlying) {
        if (Status status = send_bursts(burst, flying * burst, share, best); !status) {
          return tl::unexpected(status.error());
        }
      }
    }
    return best.per_second() * frames_.payload() * 8.0 / 1e9;
  }

  void receive() {
    rte_mbuf* burst[kBurst];
    const uint16_t n = receive_burst(burst);
    if (n == 0) return;
    for (uint16_t i = 0; i < n; ++i) {
      take_over(burst[i]);
      rte_prefetch0(rte_pktmbuf_mtod(burst[i], uint8_t*) + FloorFrames::kLowerHeaders);
    }
    for (uint16_t i = 0; i < n; ++i) frames_.place(burst[i]);
    free_mbufs(burst, n);
    received_ += n;
    progress_.received.store(received_, std::memory_order_release);
  }

 private:
  static constexpr uint32_t kBurst = 32;   // frames at most
  // Bursts on their way at most: few stay in the caches, many keep a slow way busy.
  static constexpr std::array<uint32_t, 2> kFlying{4, 16};
  static constexpr uint64_t kFewest = 4;   // frames of a window
  static constexpr uint32_t kTries = 1u << 20;  // to send a burst: a dead peer takes none
  static constexpr base::Duration kPatience = std::chrono::seconds(5);

  [[nodiscard]] uint64_t received() const {
    return progress_.received.load(std::memory_order_acquire);
  }

  /// Nothing is on its way at its begin and at its end. \param most frames on their way
  Status send_bursts(uint32_t burst, uint32_t most, base::Duration duration, BestWindow& best) {
    best.begin_run();
    const base::Now deadline = clock_.now() + duration;
    for (base::Now now{}; now < deadline;) {
      if (sent_ - received() + burst <= most) send_burst(burst);
      now = clock_.now();
      best.sample(now, sent_, received());
    }
    while (received() != sent_) {
      if (clock_.now() < deadline + kPatience) continue;
      return base::fail(ErrorCode::TimedOut, std::to_string(sent_ - received()) +
                                                 " frames of the floor did not arrive");
    }
    return {};
  }

  void send_burst(uint32_t count) {
    rte_mbuf* burst[kBurst];
    if (!allocate_mbufs(pool_.get(), burst, count)) return;
    for (rte_mbuf* frame : std::span(burst).first(count)) {
      frames_.make(frame);
      hand_over(frame);
    }
    uint32_t taken = 0;
    for (uint32_t tries = 0; taken < count && tries < kTries; ++tries) {
      taken += transmit_burst(burst + taken, count - taken);
    }
    sent_ += taken;
    if (taken != count) free_mbufs(burst + taken, count - taken);
  }

  uint16_t receive_burst(rte_mbuf** burst) {
    const BurstGate::Pass pass(&gate_);
    return rte_eth_rx_burst(id_, 0, burst, kBurst);
  }
  uint16_t transmit_burst(rte_mbuf** burst, uint32_t count) {
    const BurstGate::Pass pass(&gate_);
    return rte_eth_tx_burst(id_, 0, burst, static_cast<uint16_t>(count));
  }

  MbufPool pool_;
  std::unique_ptr<port::Port> port_;  // it has the device open; the frames do not go through it
  uint16_t id_;
  BurstGate gate_;
  TscClock clock_;
  Progress& progress_;
  FloorFrames frames_;
  uint64_t sent_ = 0;      // frames, of the sender
  uint64_t received_ = 0;  // frames, of the receiver
};

LinkFloor::LinkFloor() = default;
LinkFloor::~LinkFloor() = default;

Result<std::unique_ptr<LinkFloor>> LinkFloor::create(const Options& options, Progress& progress) {
  auto clock = TscClock::create();
  if (!clock) return tl::unexpected(clock.error());
  auto pool = make_pool(Rig::kPool, options.mtu + port::kLinkHeader);
  if (!pool) return tl::unexpected(pool.error());
  PortOptions port_options;
  port_options.mtu = options.mtu;
  auto port = open_port(options.port, port_options);
  if (!port) return tl::unexpected(port.error());
  uint16_t id = 0;
  const std::string name = options.port.substr(0, options.port.find(','));
  if (rte_eth_dev_get_port_by_name(name.c_str(), &id) != 0) {
    return base::fail(ErrorCode::Environment, name + " is gone");
  }
  std::unique_ptr<LinkFloor> floor(new LinkFloor);
  floor->rig_ = std::make_unique<Rig>(options, std::move(*pool), std::move(*port), id, *clock,
                                      progress);
  if (!floor->rig_->frames().has_memory()) {
    return base::fail(ErrorCode::ResourceExhausted, "no memory for the floor's regions");
  }
  return floor;
}

bool LinkFloor::is_up() const { return rig_->is_up(); }
Result<double> LinkFloor::send(base::Duration duration) { return rig_->send(duration); }
void LinkFloor::receive() { rig_->receive(); }
bool LinkFloor::verified() const { return rig_->frames().verified(); }
std::string LinkFloor::kernels() const { return rig_->frames().kernels(); }

}  // namespace rnic::dpdk
