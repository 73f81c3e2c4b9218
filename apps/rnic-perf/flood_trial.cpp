#include <algorithm>
#include <utility>

#include "rnic-perf/flood.hpp"
#include "rnic-perf/second_core.hpp"
#include "rnic-perf/trial.hpp"

namespace rnic::perf {

namespace {

constexpr uint64_t kRunOctets = 128u << 20;
constexpr uint64_t kRunMessages = 16384;
constexpr uint64_t kRampShare = 8;  // a run is at least so many times what is on its way
constexpr uint64_t kCrowdShare = 4;  // the same of many queue pairs, however long a run gets
constexpr uint64_t kFewest = 4;     // messages of a window

class FloodTrial final : public Trial {
 public:
  static Result<std::unique_ptr<Trial>> create(const Options& options, Context& context,
                                               Neighbour* neighbour);

  Status warm_up() override;
  Status round() override;
  [[nodiscard]] double best_goodput() const override { return in_gbps(best_.back()); }
  [[nodiscard]] double mean_goodput() const override { return in_gbps(mean_.back()); }
  void report(nlohmann::ordered_json& result) override;

 private:
  FloodTrial(const Options& options, Neighbour* neighbour)
      : options_(options), neighbour_(neighbour) {}

  Status connect(Context& context, FloodOptions& flood);
  [[nodiscard]] std::unique_ptr<SecondCore> second_core();
  Status run(FloodResult& result, dpdk::BestWindow& window);
  Status run_of_two(FloodResult& result, dpdk::BestWindow& window);
  [[nodiscard]] double in_gbps(double rate) const {
    return rate * static_cast<double>(options_.size) * 8.0 / 1e9;
  }

  Options options_;
  Neighbour* neighbour_;
  Crowd crowd_;
  std::unique_ptr<Flood> flood_;
  uint64_t run_messages_ = 0;
  FloodResult total_;
  uint64_t windows_ = 0;
  // Messages a second, by round; of the best windows 0 where a round had none.
  std::vector<double> best_;
  std::vector<double> mean_;
};

Status FloodTrial::connect(Context& context, FloodOptions& flood) {
  const std::vector<std::string> names = context.device_names();
  CrowdOptions options;
  options.port = options_.port.tcp;
  options.count = options_.qps;
  options.depth = options_.depth;
  if (neighbour_ != nullptr) {
    neighbour_->take_messages();
    auto afar = connect_afar(context, names[0], neighbour_->endpoint(), options);
    if (!afar) return tl::unexpected(afar.error());
    neighbour_->remove_folder();
    crowd_ = std::move(afar->first);
    flood.afar = afar->second;
    return {};
  }
  auto crowd = connect_crowd(context, names[0], names[1], options);
  if (!crowd) return tl::unexpected(crowd.error());
  crowd_ = std::move(*crowd);
  return {};
}

Result<std::unique_ptr<Trial>> FloodTrial::create(const Options& options, Context& context,
                                                  Neighbour* neighbour) {
  std::unique_ptr<FloodTrial> trial(new FloodTrial(options, neighbour));
  FloodOptions flood_options;
  if (Status status = trial->connect(context, flood_options); !status) {
    return tl::unexpected(status.error());
  }
  flood_options.operation = options.operation;
  flood_options.size = options.size;
  flood_options.depth = options.depth;
  flood_options.region = options.region;
  flood_options.lists = options.lists;
  auto flood = Flood::create(context, trial->crowd_, flood_options);
  if (!flood) return tl::unexpected(flood.error());
  trial->flood_ = std::move(*flood);
  const uint64_t ramp = kRampShare * options.qps * options.depth;
  const uint64_t usual = std::min(std::max<uint64_t>(kRunOctets / options.size, 1), kRunMessages);
  // Long messages: fewer in a run, so that a round stays a round.
  const uint64_t crowd = options.qps > 1 ? kCrowdShare * options.qps * options.depth : 0;
  trial->run_messages_ = std::max({usual, trial->flood_->slots(), crowd,
                                   options.size * ramp <= 2 * kRunOctets ? ramp : usual});
  return trial;
}

/// The second thread is there only while ours runs: beside the floor it would slow the floor.
std::unique_ptr<SecondCore> FloodTrial::second_core() {
  std::unique_ptr<SecondCore> second;
  if (options_.cores == 2 && neighbour_ == nullptr) {
    second = std::make_unique<SecondCore>(1, [this] { flood_->responder_turn(); });
  }
  return second;
}

/// The other process prepares and judges its own memory, and its processor time counts as ours.
Status FloodTrial::run_of_two(FloodResult& result, dpdk::BestWindow& window) {
  if (options_.verify) {
    flood_->prepare();
    neighbour_->prepare(flood_->content());
  }
  neighbour_->take_messages();
  const int64_t spent = neighbour_->processor_time_ns();
  if (Status status = flood_->run(run_messages_, true, result, window); !status) return status;
  result.cpu_ns += neighbour_->processor_time_ns() - spent;
  if (options_.verify) neighbour_->verify();
  return {};
}

Status FloodTrial::run(FloodResult& result, dpdk::BestWindow& window) {
  if (neighbour_ != nullptr) return run_of_two(result, window);
  if (options_.verify) flood_->prepare();
  const bool apart = options_.cores == 2;
  if (Status status = flood_->run(run_messages_, apart, result, window); !status) return status;
  if (!options_.verify) return {};
  if (const auto mismatch = flood_->verify()) return tl::unexpected(not_verified(*mismatch));
  return {};
}

Status FloodTrial::warm_up() {
  if (options_.cores == 2) pin(0);
  const std::unique_ptr<SecondCore> second = second_core();
  FloodResult result;
  dpdk::BestWindow window;
  while (static_cast<double>(result.elapsed_ns) < kRoundSeconds * 1e9 / 2) {
    if (Status status = run(result, window); !status) return status;
  }
  return {};
}

Status FloodTrial::round() {
  const std::unique_ptr<SecondCore> second = second_core();
  FloodResult result;
  dpdk::BestWindow window(kFewest);
  while (static_cast<double>(result.elapsed_ns) < kRoundSeconds * 1e9) {
    if (Status status = run(result, window); !status) return status;
  }
  total_.messages += result.messages;
  total_.octets += result.octets;
  total_.elapsed_ns += result.elapsed_ns;
  total_.cpu_ns += result.cpu_ns;
  total_.latency_ns.insert(total_.latency_ns.end(), result.latency_ns.begin(),
                           result.latency_ns.end());
  windows_ += window.windows();
  mean_.push_back(static_cast<double>(result.messages) * 1e9 /
                  static_cast<double>(result.elapsed_ns));
  best_.push_back(window.per_second());
  return {};
}

void FloodTrial::report(nlohmann::ordered_json& result) {
  const auto octets = static_cast<double>(total_.octets);
  std::vector<double> rates = windows_ != 0 ? best_ : mean_;
  std::erase(rates, 0.0);
  const auto [low, high] = std::minmax_element(rates.begin(), rates.end());
  result["qps"] = options_.qps;
  result["region"] = flood_->slots() * ((options_.size + 63) / 64 * 64);
  result["lists"] = options_.lists;
  result["goodput_gbps"] = in_gbps(median(rates));
  result["goodput_min"] = in_gbps(*low);
  result["goodput_max"] = in_gbps(*high);
  result["msgs_per_s"] = median(rates);
  result["basis"] = windows_ != 0 ? "best windows of 0.3 to 1 ms" : "means of rounds";
  result["windows"] = windows_;
  result["mean_gbps"] = octets * 8.0 / static_cast<double>(total_.elapsed_ns);
  result["measured_s"] = static_cast<double>(total_.elapsed_ns) / 1e9;
  result["cpu_s"] = static_cast<double>(total_.cpu_ns) / 1e9;
  result["gb_per_cpu_s"] = octets * 8.0 / static_cast<double>(std::max<int64_t>(total_.cpu_ns, 1));
  result["msgs_per_cpu_s"] = static_cast<double>(total_.messages) * 1e9 /
                             static_cast<double>(std::max<int64_t>(total_.cpu_ns, 1));
  result["p50_us"] = percentile_us(total_.latency_ns, 0.50);
  result["p99_us"] = percentile_us(total_.latency_ns, 0.99);
  result["verify"] =
      options_.verify ? "every " + std::to_string(run_messages_) + " messages" : "off";
}

}  // namespace

Result<std::unique_ptr<Trial>> make_flood_trial(const Options& options, Context& context,
                                                Neighbour* neighbour) {
  return FloodTrial::create(options, context, neighbour);
}

}  // namespace rnic::perf
