// rnic-perf loopback: both ends in this process, our rounds and the floor's in turn.

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <iostream>
#include <thread>

#include "dpdk/path_floor.hpp"
#include "rnic-perf/perf.hpp"
#include "workload/captures.hpp"

namespace rnic::perf {

namespace {

constexpr double kRoundSeconds = 0.1;  // of ours and of the floor each
constexpr uint64_t kVerifyEvery = 64;  // messages
constexpr uint64_t kBatchOctets = 128u << 20;
constexpr size_t kMaxLatencySamples = 4u << 20;
constexpr uint64_t kSlotOctets = 1u << 20;  // small messages spread over this much memory

void pin(uint32_t core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

/// Polls the responder's device on a core of its own.
class SecondCore {
 public:
  SecondCore(Device device, uint32_t core)
      : thread_([this, device, core]() mutable {
          pin(core);
          while (!stop_.load(std::memory_order_relaxed)) device.poll();
        }) {}
  ~SecondCore() {
    stop_.store(true);
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

class Loopback {
 public:
  explicit Loopback(const Options& options) : options_(options) {}

  int run() {
    if (auto status = set_up(); !status) return complain(status.error());
    if (auto status = measure(); !status) return complain_of_run(status.error());
    report();
    transfer_.reset();
    pair_ = {};
    return workload::with_captures("rnic-perf", *context_, verified_ ? kOk : kNotVerified);
  }

 private:
  Status set_up();
  Status measure();
  Status round();
  Status slice(workload::TransferResult& result);
  void report();

  Options options_;
  std::unique_ptr<Context> context_;
  workload::Pair pair_;
  std::unique_ptr<dpdk::PathFloor> floor_;
  std::unique_ptr<workload::Transfer> transfer_;
  std::unique_ptr<SecondCore> second_core_;
  uint64_t batch_ = kVerifyEvery;
  bool verified_ = true;
  std::string mismatch_;
  std::vector<double> goodput_;
  std::vector<double> floor_goodput_;
  std::vector<double> ratio_;
  std::vector<double> rate_;
  std::vector<int64_t> latency_ns_;
};

Status Loopback::set_up() {
  auto config = configuration(options_);
  if (!config) return tl::unexpected(config.error());
  const std::string mtu = std::to_string(options_.mtu);
  const bool on_wire = options_.config_file.empty() && options_.port.device.empty();
  if (on_wire) config->set("wire.loop.mtu=" + mtu);
  config->set("device.*.mtu=" + mtu);
  config->set(std::string("mpa.crc=") + (options_.crc ? "true" : "false"));
  config->set(std::string("mpa.markers=") + (options_.markers ? "true" : "false"));
  auto context = Context::open(*config);
  if (!context) return tl::unexpected(context.error());
  context_ = std::make_unique<Context>(std::move(*context));
  if (context_->threaded()) {
    return tl::unexpected(
        Error{ErrorCode::InvalidArgument,
              "loopback drives the devices itself: set worker.mode = \"inline\""});
  }
  const std::vector<std::string> names = context_->device_names();
  if (names.size() != 2) {
    return tl::unexpected(
        Error{ErrorCode::InvalidArgument, "loopback needs a configuration with two devices"});
  }
  // The floor is that of frames in memory, and needs DPDK.
  if (context_->device(names[0])->checksum_mode() == "system") options_.floor = false;
  workload::PairOptions pair_options;
  pair_options.port = options_.port.tcp;
  // A message may be two work requests.
  pair_options.depth = std::max<uint32_t>(2 * options_.depth, 16);
  auto pair = workload::connect_pair(*context_, names[0], names[1], pair_options);
  if (!pair) return tl::unexpected(pair.error());
  pair_ = std::move(*pair);
  std::cerr << context_->environment() << "\n";

  workload::TransferOptions transfer;
  transfer.operation = options_.operation;
  transfer.size = options_.size;
  transfer.depth = options_.depth;
  // A small message has a place of its own, so that every octet of each one is compared.
  transfer.slots =
      static_cast<uint32_t>(std::clamp<uint64_t>(kSlotOctets / options_.size, 1, kVerifyEvery));
  // Long messages: fewer at once, so that a round stays a round.
  batch_ = std::min(kVerifyEvery, std::max<uint64_t>(kBatchOctets / options_.size, 1));
  Context& all = *context_;
  workload::End& initiator = *pair_.initiator;
  std::function<void()> poll = [&all] { all.poll(); };
  if (options_.cores == 2) poll = [&initiator] { initiator.device.poll(); };
  auto made = workload::Transfer::create(*context_, pair_, transfer, poll);
  if (!made) return tl::unexpected(made.error());
  transfer_ = std::move(*made);
  if (options_.cores == 2) {
    // From here on the responder's device belongs to the second thread.
    pin(0);
    second_core_ = std::make_unique<SecondCore>(pair_.responder->device, 1);
  }
  if (!options_.floor) return {};
  dpdk::PathFloor::Options floor;
  floor.mtu = options_.mtu;
  floor.two_threads = options_.cores == 2;
  floor.sender_core = 1;
  auto rig = dpdk::PathFloor::create(floor);
  if (!rig) {
    return tl::unexpected(Error{ErrorCode::ResourceExhausted, rig.error().message});
  }
  floor_ = std::move(*rig);
  return {};
}

Status Loopback::slice(workload::TransferResult& result) {
  if (options_.verify) transfer_->prepare();
  if (auto status = transfer_->run(batch_, result); !status) return status;
  if (!options_.verify) return {};
  if (auto mismatch = transfer_->verify()) {
    verified_ = false;
    mismatch_ = workload::describe(*mismatch);
    return tl::unexpected(Error{ErrorCode::Protocol, "verification failed: " + mismatch_});
  }
  return {};
}

Status Loopback::round() {
  double floor = 0;
  const auto floor_slice = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(kRoundSeconds));
  if (floor_ != nullptr) floor = floor_->run(floor_slice);
  workload::TransferResult result;
  while (static_cast<double>(result.elapsed_ns) < kRoundSeconds * 1e9) {
    if (auto status = slice(result); !status) return status;
  }
  const double goodput =
      static_cast<double>(result.octets) * 8.0 / static_cast<double>(result.elapsed_ns);
  goodput_.push_back(goodput);
  rate_.push_back(static_cast<double>(result.messages) * 1e9 /
                  static_cast<double>(result.elapsed_ns));
  // The rest of a long run is left out.
  const size_t room = kMaxLatencySamples - latency_ns_.size();
  const size_t kept = std::min(room, result.latency_ns.size());
  latency_ns_.insert(latency_ns_.end(), result.latency_ns.begin(),
                     result.latency_ns.begin() + static_cast<ptrdiff_t>(kept));
  if (floor_ == nullptr) return {};
  floor_goodput_.push_back(floor);
  ratio_.push_back(goodput / floor);
  if (floor_->verified()) return {};
  return tl::unexpected(Error{ErrorCode::Protocol, "the floor's own verification failed"});
}

Status Loopback::measure() {
  workload::TransferResult warm_up;
  for (int i = 0; i < 3; ++i) {
    if (auto status = slice(warm_up); !status) return status;
  }
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  while (goodput_.empty() || elapsed() < options_.seconds) {
    if (auto status = round(); !status) return status;
  }
  second_core_.reset();
  return {};
}

void Loopback::report() {
  nlohmann::ordered_json result;
  const auto [low, high] = std::minmax_element(ratio_.begin(), ratio_.end());
  result["op"] = workload::to_string(options_.operation);
  result["size"] = options_.size;
  result["mtu"] = options_.mtu;
  result["cores"] = options_.cores;
  result["checksum"] = pair_.initiator->device.checksum_mode();
  result["crc"] = options_.crc;
  result["markers"] = options_.markers;
  result["goodput_gbps"] = median(goodput_);
  if (floor_ != nullptr) {
    result["floor_gbps"] = median(floor_goodput_);
    result["ratio_to_floor"] = median(ratio_);
    result["ratio_min"] = *low;
    result["ratio_max"] = *high;
  }
  result["rounds"] = goodput_.size();
  result["msgs_per_s"] = median(rate_);
  result["p50_us"] = percentile_us(latency_ns_, 0.50);
  result["p99_us"] = percentile_us(latency_ns_, 0.99);
  result["verified"] = options_.verify && verified_;
  result["verify"] = options_.verify ? "every " + std::to_string(batch_) + " messages" : "off";
  result["depth"] = options_.depth;
  result["goodput_min"] = *std::min_element(goodput_.begin(), goodput_.end());
  result["goodput_max"] = *std::max_element(goodput_.begin(), goodput_.end());
  if (floor_ != nullptr) result["floor_kernels"] = floor_->kernels();
  result["environment"] = context_->environment();
  result["machine"] = workload::machine();
  if (options_.json) {
    std::cout << result.dump() << "\n";
  } else {
    print_table(result);
  }
}

}  // namespace

int run_loopback(const Options& options) { return Loopback(options).run(); }

}  // namespace rnic::perf
