#include <algorithm>
#include <functional>
#include <utility>

#include "rnic-perf/second_core.hpp"
#include "rnic-perf/trial.hpp"

namespace rnic::perf {

namespace {

constexpr uint64_t kVerifyEvery = 64;  // messages
constexpr uint64_t kBatchOctets = 128u << 20;
constexpr size_t kMaxBatchSamples = 4u << 20;

class BatchTrial final : public Trial {
 public:
  static Result<std::unique_ptr<Trial>> create(const Options& options, Context& context);

  Status warm_up() override;
  Status round() override;
  [[nodiscard]] double best_goodput() const override { return 0; }
  [[nodiscard]] double mean_goodput() const override { return goodput_.back(); }
  void report(nlohmann::ordered_json& result) override;

 private:
  explicit BatchTrial(const Options& options) : options_(options) {}

  [[nodiscard]] std::unique_ptr<SecondCore> second_core();
  Status batch(workload::TransferResult& result);

  Options options_;
  workload::Pair pair_;
  std::unique_ptr<workload::Transfer> transfer_;
  uint64_t batch_ = kVerifyEvery;
  std::vector<double> goodput_;
  std::vector<double> rate_;
  std::vector<int64_t> latency_ns_;
};

Result<std::unique_ptr<Trial>> BatchTrial::create(const Options& options, Context& context) {
  std::unique_ptr<BatchTrial> trial(new BatchTrial(options));
  const std::vector<std::string> names = context.device_names();
  workload::PairOptions pair_options;
  pair_options.port = options.port.tcp;
  // A message may be two work requests.
  pair_options.depth = std::max<uint32_t>(2 * options.depth, 16);
  auto pair = workload::connect_pair(context, names[0], names[1], pair_options);
  if (!pair) return tl::unexpected(pair.error());
  trial->pair_ = std::move(*pair);
  workload::TransferOptions transfer;
  transfer.operation = options.operation;
  transfer.size = options.size;
  transfer.depth = options.depth;
  // A small message has a place of its own, so that every octet of each one is compared.
  transfer.slots = static_cast<uint32_t>(
      std::clamp<uint64_t>(options.region / options.size, 1, kVerifyEvery));
  // Long messages: fewer at once, so that a round stays a round.
  trial->batch_ = std::min(kVerifyEvery, std::max<uint64_t>(kBatchOctets / options.size, 1));
  std::function<void()> poll = [&context] { context.poll(); };
  if (options.cores == 2) {
    workload::End& initiator = *trial->pair_.initiator;
    poll = [&initiator] { initiator.device.poll(); };
  }
  auto made = workload::Transfer::create(context, trial->pair_, transfer, poll);
  if (!made) return tl::unexpected(made.error());
  trial->transfer_ = std::move(*made);
  return trial;
}

std::unique_ptr<SecondCore> BatchTrial::second_core() {
  std::unique_ptr<SecondCore> second;
  if (options_.cores == 2) {
    second = std::make_unique<SecondCore>(1, [this] { pair_.responder->device.poll(); });
  }
  return second;
}

Status BatchTrial::batch(workload::TransferResult& result) {
  if (options_.verify) transfer_->prepare();
  if (Status status = transfer_->run(batch_, result); !status) return status;
  if (!options_.verify) return {};
  if (const auto mismatch = transfer_->verify()) return tl::unexpected(not_verified(*mismatch));
  return {};
}

Status BatchTrial::warm_up() {
  if (options_.cores == 2) pin(0);
  const std::unique_ptr<SecondCore> second = second_core();
  workload::TransferResult result;
  for (int i = 0; i < 3; ++i) {
    if (Status status = batch(result); !status) return status;
  }
  return {};
}

Status BatchTrial::round() {
  const std::unique_ptr<SecondCore> second = second_core();
  workload::TransferResult result;
  while (static_cast<double>(result.elapsed_ns) < kRoundSeconds * 1e9) {
    if (Status status = batch(result); !status) return status;
  }
  const auto elapsed = static_cast<double>(result.elapsed_ns);
  goodput_.push_back(static_cast<double>(result.octets) * 8.0 / elapsed);
  rate_.push_back(static_cast<double>(result.messages) * 1e9 / elapsed);
  // The rest of a long run is left out.
  const size_t room = kMaxBatchSamples - latency_ns_.size();
  const size_t kept = std::min(room, result.latency_ns.size());
  latency_ns_.insert(latency_ns_.end(), result.latency_ns.begin(),
                     result.latency_ns.begin() + static_cast<ptrdiff_t>(kept));
  return {};
}

void BatchTrial::report(nlohmann::ordered_json& result) {
  result["goodput_gbps"] = median(goodput_);
  result["goodput_min"] = *std::min_element(goodput_.begin(), goodput_.end());
  result["goodput_max"] = *std::max_element(goodput_.begin(), goodput_.end());
  result["msgs_per_s"] = median(rate_);
  result["basis"] = "means of batches that begin and end with nothing on its way";
  result["p50_us"] = percentile_us(latency_ns_, 0.50);
  result["p99_us"] = percentile_us(latency_ns_, 0.99);
  result["verify"] = options_.verify ? "every " + std::to_string(batch_) + " messages" : "off";
}

}  // namespace

Result<std::unique_ptr<Trial>> make_batch_trial(const Options& options, Context& context) {
  return BatchTrial::create(options, context);
}

}  // namespace rnic::perf
