// rnic-perf loopback: both ends on this machine, our rounds and the floor's in turn.

#include <algorithm>
#include <chrono>
#include <iostream>

#include "dpdk/path_floor.hpp"
#include "rnic-perf/core_floor.hpp"
#include "rnic-perf/crowd.hpp"
#include "rnic-perf/neighbour.hpp"
#include "rnic-perf/perf.hpp"
#include "rnic-perf/second_core.hpp"
#include "rnic-perf/trial.hpp"
#include "workload/captures.hpp"

namespace rnic::perf {

namespace {

constexpr double kDisturbed = 0.8;  // a round whose floor is so much of the best one, or less
constexpr uint32_t kLineTrips = 2000;
constexpr double kOvertime = 4;  // times --seconds, where rounds are disturbed or few

bool floods(workload::Operation operation) {
  return operation == workload::Operation::Write || operation == workload::Operation::Read ||
         operation == workload::Operation::Send;
}

class Loopback {
 public:
  explicit Loopback(const Options& options) : options_(options) {}

  int run() {
    if (auto status = set_up(); !status) return complain(status.error());
    if (auto status = measure(); !status) return complain_of_run(status.error());
    report();
    trial_.reset();
    neighbour_.reset();
    return workload::with_captures("rnic-perf", *context_, kOk);
  }

 private:
  Status set_up();
  Result<Config> loop_configuration();
  [[nodiscard]] Result<std::unique_ptr<Trial>> make_trial();
  Status set_up_floor();
  Status measure();
  Status round();
  void measure_line();
  Result<double> run_floor();
  [[nodiscard]] bool has_floor() const { return options_.floor && !options_.ping_pong; }
  void report();
  void report_floor(nlohmann::ordered_json& result);

  Options options_;
  std::unique_ptr<Neighbour> neighbour_;  // with --processes 2
  std::unique_ptr<Context> context_;
  std::unique_ptr<Trial> trial_;
  std::unique_ptr<dpdk::PathFloor> floor_;
  CoreFloor core_floor_;
  std::string checksum_;
  uint64_t rounds_ = 0;
  std::vector<double> floor_goodput_;
  std::vector<double> best_goodput_;
  std::vector<double> mean_goodput_;
  std::vector<double> line_ns_;
};

Result<Config> Loopback::loop_configuration() {
  if (neighbour_ != nullptr) return neighbour_->configuration();
  auto config = configuration(options_);
  if (!config) return config;
  const std::string mtu = std::to_string(options_.mtu);
  const bool on_wire = options_.config_file.empty() && options_.port.device.empty();
  if (on_wire) config->set("wire.loop.mtu=" + mtu);
  config->set("device.*.mtu=" + mtu);
  config->set(std::string("mpa.crc=") + (options_.crc ? "true" : "false"));
  config->set(std::string("mpa.markers=") + (options_.markers ? "true" : "false"));
  make_room(*config, options_.qps, options_.depth);
  return config;
}

Status Loopback::set_up() {
  if (options_.processes == 2) {
    auto neighbour = Neighbour::start(options_);
    if (!neighbour) return tl::unexpected(neighbour.error());
    neighbour_ = std::move(*neighbour);
  }
  auto config = loop_configuration();
  if (!config) return tl::unexpected(config.error());
  auto context = Context::open(*config);
  if (!context) return tl::unexpected(context.error());
  context_ = std::make_unique<Context>(std::move(*context));
  if (context_->threaded()) {
    return tl::unexpected(
        Error{ErrorCode::InvalidArgument,
              "loopback drives the devices itself: set worker.mode = \"inline\""});
  }
  const std::vector<std::string> names = context_->device_names();
  if (names.size() != (neighbour_ != nullptr ? 1 : 2)) {
    return tl::unexpected(
        Error{ErrorCode::InvalidArgument, "loopback needs a configuration with two devices"});
  }
  checksum_ = context_->device(names[0])->checksum_mode();
  // The floor is that of frames in memory, and needs DPDK.
  if (checksum_ == "system") options_.floor = false;
  std::cerr << context_->environment() << "\n";
  // First, as two processes have met then.
  if (Status status = has_floor() ? set_up_floor() : Status{}; !status) return status;
  auto trial = make_trial();
  if (!trial) return tl::unexpected(trial.error());
  trial_ = std::move(*trial);
  return {};
}

Result<std::unique_ptr<Trial>> Loopback::make_trial() {
  if (options_.ping_pong) return make_ping_pong_trial(options_, *context_);
  if (!floods(options_.operation)) return make_batch_trial(options_, *context_);
  return make_flood_trial(options_, *context_, neighbour_.get());
}

Status Loopback::set_up_floor() {
  if (neighbour_ != nullptr) return neighbour_->open_floor();
  dpdk::PathFloor::Options floor;
  floor.mtu = options_.mtu;
  floor.region = options_.region;
  floor.two_threads = options_.cores == 2;
  floor.sender_core = 1;
  auto rig = dpdk::PathFloor::create(floor);
  if (!rig) {
    return tl::unexpected(Error{ErrorCode::ResourceExhausted, rig.error().message});
  }
  floor_ = std::move(*rig);
  return {};
}

void Loopback::measure_line() {
  if (neighbour_ != nullptr) return line_ns_.push_back(neighbour_->line_ns(kLineTrips));
  const SecondCore second(1, [this] { core_floor_.answer_turn(); });
  auto times = core_floor_.line_trips(kLineTrips);
  line_ns_.push_back(percentile_us(times, 0.5) * 1000.0);
}

Result<double> Loopback::run_floor() {
  const auto duration = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(kRoundSeconds));
  if (neighbour_ != nullptr) return neighbour_->floor(duration);
  const double goodput = floor_->run(duration);
  if (floor_->verified()) return goodput;
  return workload::fail(ErrorCode::Protocol, "the floor's own verification failed");
}

Status Loopback::round() {
  if (options_.cores == 2 && !options_.ping_pong) measure_line();
  Result<double> floor = 0.0;
  if (has_floor()) floor = run_floor();
  if (!floor) return tl::unexpected(floor.error());
  if (auto status = trial_->round(); !status) return status;
  ++rounds_;
  if (!has_floor()) return {};
  floor_goodput_.push_back(*floor);
  best_goodput_.push_back(trial_->best_goodput());
  mean_goodput_.push_back(trial_->mean_goodput());
  return {};
}

Status Loopback::measure() {
  if (auto status = trial_->warm_up(); !status) return status;
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  while (rounds_ == 0 || elapsed() < options_.seconds ||
         (!trial_->has_enough() && elapsed() < kOvertime * options_.seconds)) {
    if (auto status = round(); !status) return status;
  }
  return {};
}

/// Rounds in which the floor itself was slow, or either of us had no window, say more about the
/// neighbours than about us. What never has a window is judged by its means.
void Loopback::report_floor(nlohmann::ordered_json& result) {
  const double best = *std::max_element(floor_goodput_.begin(), floor_goodput_.end());
  const bool any = std::any_of(best_goodput_.begin(), best_goodput_.end(),
                               [](double goodput) { return goodput > 0; });
  const std::vector<double>& ours = any ? best_goodput_ : mean_goodput_;
  std::vector<double> kept;
  for (size_t i = 0; i < ours.size(); ++i) {
    if (ours[i] > 0 && floor_goodput_[i] > best * kDisturbed) {
      kept.push_back(ours[i] / floor_goodput_[i]);
    }
  }
  result["floor_gbps"] = median(floor_goodput_);
  result["floor_best_gbps"] = best;
  if (!kept.empty()) {
    const auto [low, high] = std::minmax_element(kept.begin(), kept.end());
    result["ratio_to_floor"] = median(kept);
    result["ratio_min"] = *low;
    result["ratio_max"] = *high;
  }
  result["disturbed_rounds"] = ours.size() - kept.size();
  result["floor_kernels"] =
      neighbour_ != nullptr ? neighbour_->floor_kernels() : floor_->kernels();
}

void Loopback::report() {
  nlohmann::ordered_json result;
  result["op"] = workload::to_string(options_.operation);
  result["size"] = options_.size;
  result["mtu"] = options_.mtu;
  result["cores"] = options_.cores;
  if (neighbour_ != nullptr) result["processes"] = options_.processes;
  result["depth"] = options_.depth;
  result["checksum"] = checksum_;
  result["crc"] = options_.crc;
  result["markers"] = options_.markers;
  trial_->report(result);
  if (!line_ns_.empty()) result["line_ns"] = median(line_ns_);
  if (has_floor()) report_floor(result);
  result["rounds"] = rounds_;
  result["verified"] = options_.verify;  // a run that was compared and failed has no report
  result["environment"] = context_->environment();
  result["machine"] = workload::machine();
  if (options_.json) {
    std::cout << result.dump() << "\n";
  } else {
    print_table(result);
  }
}

}  // namespace

Error not_verified(const workload::Mismatch& mismatch) {
  return {ErrorCode::Protocol, "verification failed: " + workload::describe(mismatch)};
}

int run_loopback(const Options& options) { return Loopback(options).run(); }

}  // namespace rnic::perf
