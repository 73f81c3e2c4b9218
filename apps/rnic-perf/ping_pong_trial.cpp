#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "rnic-perf/core_floor.hpp"
#include "rnic-perf/processor_time.hpp"
#include "rnic-perf/round_trips.hpp"
#include "rnic-perf/second_core.hpp"
#include "rnic-perf/trial.hpp"

namespace rnic::perf {

namespace {

constexpr uint32_t kTrips = 10'000;       // of a round
constexpr uint32_t kFloorTrips = 5'000;   // the same, of a line and of a message
constexpr uint32_t kEnough = 100'000;     // round trips under percentiles
constexpr size_t kFewestSpans = 1'000;    // of messages as long as a round trip, under the same
constexpr double kSlowFloor = 1.25;       // a round whose floor is so much above the least one
constexpr double kSharedCore = 1.25;      // work that takes so much longer beside the other thread

/// What the machine takes at one moment.
struct Moment {
  double line_ns = 0;     // median
  double message_ns = 0;  // median
  std::vector<int64_t> messages;  // what each took, in ns
  bool one_core = false;  // both threads are threads of one core
};

/// One round: what the machine took before and behind it, and what we took.
struct TripRound {
  Moment before;
  Moment behind;
  std::vector<int64_t> times;

  [[nodiscard]] double message_ns() const { return (before.message_ns + behind.message_ns) / 2; }
  [[nodiscard]] double slower_ns() const { return std::max(before.message_ns, behind.message_ns); }
  [[nodiscard]] bool one_core() const { return before.one_core || behind.one_core; }
};

double median_of(std::vector<int64_t> times) { return percentile_us(times, 0.5) * 1000.0; }

/// Pairs of nanoseconds, rounded to three digits, and how many round trips took so long: what
/// several runs have told makes percentiles of all of them.
nlohmann::ordered_json spectrum(const std::vector<int64_t>& times) {
  std::map<int64_t, uint64_t> counts;
  for (const int64_t time : times) {
    int64_t step = 1;
    while (time >= 1000 * step) step *= 10;
    ++counts[time / step * step];
  }
  auto pairs = nlohmann::ordered_json::array();
  for (const auto& [time, count] : counts) pairs.push_back({time, count});
  return pairs;
}

/// Round trips by how many thousandths of the median of their round they took: rounds whose cores
/// lie elsewhere make no tail of the others.
std::vector<int64_t> shares_of_median(const std::vector<int64_t>& times) {
  const double half = median_of(times);
  std::vector<int64_t> shares;
  shares.reserve(times.size());
  for (const int64_t time : times) {
    shares.push_back(static_cast<int64_t>(static_cast<double>(time) * 1000.0 / half));
  }
  return shares;
}

/// Round trips of the floor's messages that take as long as one of ours.
size_t messages_as_long(const TripRound& round) {
  const double share = median_of(round.times) / round.message_ns();
  return static_cast<size_t>(std::max(1L, std::lround(share)));
}

/// Sums of `count` neighbours.
std::vector<int64_t> sums_of(const std::vector<int64_t>& times, size_t count) {
  std::vector<int64_t> sums;
  sums.reserve(times.size() / count);
  for (auto at = times.begin(); static_cast<size_t>(times.end() - at) >= count;) {
    const auto end = at + static_cast<ptrdiff_t>(count);
    sums.push_back(std::accumulate(at, end, int64_t{0}));
    at = end;
  }
  return sums;
}

class PingPongTrial final : public Trial {
 public:
  static Result<std::unique_ptr<Trial>> create(const Options& options, Context& context);

  Status warm_up() override;
  Status round() override;
  [[nodiscard]] double best_goodput() const override { return 0; }
  [[nodiscard]] double mean_goodput() const override { return 0; }
  [[nodiscard]] bool has_enough() const override;
  void report(nlohmann::ordered_json& result) override;

 private:
  explicit PingPongTrial(const Options& options) : options_(options) {}

  Status trips(uint32_t count, std::vector<int64_t>& times);
  Status measure_floor(Moment& moment);
  [[nodiscard]] double slowest_floor() const;
  [[nodiscard]] static bool is_disturbed(const TripRound& round, double slowest) {
    return round.one_core() || round.slower_ns() > slowest;
  }
  [[nodiscard]] std::vector<const TripRound*> undisturbed() const;
  static void report_floor(nlohmann::ordered_json& result,
                           const std::vector<const TripRound*>& rounds);

  Options options_;
  Crowd crowd_;
  std::unique_ptr<RoundTrips> trips_;
  CoreFloor floor_;
  std::vector<TripRound> rounds_;
  int64_t elapsed_ns_ = 0;  // of all round trips
  int64_t cpu_ns_ = 0;      // meanwhile, of both threads
};

Result<std::unique_ptr<Trial>> PingPongTrial::create(const Options& options, Context& context) {
  std::unique_ptr<PingPongTrial> trial(new PingPongTrial(options));
  const std::vector<std::string> names = context.device_names();
  CrowdOptions crowd_options;
  crowd_options.port = options.port.tcp;
  crowd_options.depth = RoundTrips::kDepth;
  auto crowd = connect_crowd(context, names[0], names[1], crowd_options);
  if (!crowd) return tl::unexpected(crowd.error());
  trial->crowd_ = std::move(*crowd);
  auto trips = RoundTrips::create(context, trial->crowd_, options.operation, options.size);
  if (!trips) return tl::unexpected(trips.error());
  trial->trips_ = std::move(*trips);
  return trial;
}

Status PingPongTrial::trips(uint32_t count, std::vector<int64_t>& times) {
  std::unique_ptr<SecondCore> second;
  const bool apart = options_.cores == 2;
  if (apart) second = std::make_unique<SecondCore>(1, [this] { trips_->responder_turn(); });
  // A slice is as short as a tick of the system, so each thread is asked by itself.
  const auto spent_ns = [&second] {
    return processor_time_ns(pthread_self()) + (second ? second->processor_time_ns() : 0);
  };
  const int64_t spent = spent_ns();
  const size_t before = times.size();
  Status status = trips_->run(count, apart, times);
  cpu_ns_ += spent_ns() - spent;
  elapsed_ns_ += std::accumulate(times.begin() + static_cast<ptrdiff_t>(before), times.end(),
                                 int64_t{0});
  return status;
}

Status PingPongTrial::measure_floor(Moment& moment) {
  const auto alone = static_cast<double>(CoreFloor::work_ns());
  const SecondCore second(1, [this] { floor_.answer_turn(); });
  moment.line_ns = median_of(floor_.line_trips(kFloorTrips));
  moment.messages = floor_.message_trips(kFloorTrips);
  moment.message_ns = median_of(moment.messages);
  moment.one_core = static_cast<double>(CoreFloor::work_ns()) > alone * kSharedCore;
  if (moment.message_ns > 0) return {};
  return tl::unexpected(Error{ErrorCode::Protocol, "the floor's own verification failed"});
}

Status PingPongTrial::warm_up() {
  if (options_.cores == 2) pin(0);
  std::vector<int64_t> times;
  return trips(kTrips / 10, times);
}

Status PingPongTrial::round() {
  TripRound round;
  const bool floor = options_.cores == 2 && options_.floor;
  if (Status status = floor ? measure_floor(round.before) : Status{}; !status) return status;
  round.times.reserve(kTrips);
  if (Status status = trips(kTrips, round.times); !status) return status;
  if (Status status = floor ? measure_floor(round.behind) : Status{}; !status) return status;
  rounds_.push_back(std::move(round));
  return {};
}

/// \return the floor of which a round is disturbed that has a slower one, in ns
double PingPongTrial::slowest_floor() const {
  double least = std::numeric_limits<double>::max();
  for (const TripRound& round : rounds_) {
    if (!round.one_core()) least = std::min(least, round.slower_ns());
  }
  return least * kSlowFloor;
}

std::vector<const TripRound*> PingPongTrial::undisturbed() const {
  const double slowest = slowest_floor();
  std::vector<const TripRound*> found;
  for (const TripRound& round : rounds_) {
    if (!is_disturbed(round, slowest)) found.push_back(&round);
  }
  return found;
}

bool PingPongTrial::has_enough() const { return undisturbed().size() * kTrips >= kEnough; }

/// Where no round is undisturbed the times are those of all, and none of them is judged.
void PingPongTrial::report(nlohmann::ordered_json& result) {
  std::vector<const TripRound*> rounds = undisturbed();
  result["disturbed_rounds"] = rounds_.size() - rounds.size();
  result["one_core_rounds"] = std::count_if(rounds_.begin(), rounds_.end(),
                                            [](const TripRound& r) { return r.one_core(); });
  result["enough"] = has_enough();
  if (rounds.empty()) {
    for (const TripRound& round : rounds_) rounds.push_back(&round);
  }
  std::vector<int64_t> times;
  std::vector<int64_t> shares;
  std::vector<double> p50s;
  for (const TripRound* round : rounds) {
    times.insert(times.end(), round->times.begin(), round->times.end());
    const std::vector<int64_t> of_round = shares_of_median(round->times);
    shares.insert(shares.end(), of_round.begin(), of_round.end());
    p50s.push_back(median_of(round->times) / 1000.0);
  }
  result["p50_us"] = percentile_us(times, 0.50);
  result["p90_us"] = percentile_us(times, 0.90);
  result["p99_us"] = percentile_us(times, 0.99);
  result["p999_us"] = percentile_us(times, 0.999);
  result["max_us"] = percentile_us(times, 1.0);
  result["p99_of_p50"] = percentile_us(shares, 0.99);  // of thousandths
  result["p50_min_us"] = *std::min_element(p50s.begin(), p50s.end());
  result["p50_max_us"] = *std::max_element(p50s.begin(), p50s.end());
  result["round_trips"] = times.size();
  if (options_.json) {
    result["spectrum_ns"] = spectrum(times);
    result["spectrum_of_p50"] = spectrum(shares);
  }
  result["measured_s"] = static_cast<double>(elapsed_ns_) / 1e9;
  result["cpu_s"] = static_cast<double>(cpu_ns_) / 1e9;
  if (options_.cores == 2 && options_.floor) report_floor(result, rounds);
}

void PingPongTrial::report_floor(nlohmann::ordered_json& result,
                                 const std::vector<const TripRound*>& rounds) {
  std::vector<double> lines;
  std::vector<double> messages;
  std::vector<double> ratios;
  std::vector<int64_t> shares;
  std::vector<int64_t> shares_as_long;
  for (const TripRound* round : rounds) {
    for (const Moment* moment : {&round->before, &round->behind}) {
      const std::vector<int64_t> each = shares_of_median(moment->messages);
      const std::vector<int64_t> together =
          shares_of_median(sums_of(moment->messages, messages_as_long(*round)));
      shares.insert(shares.end(), each.begin(), each.end());
      shares_as_long.insert(shares_as_long.end(), together.begin(), together.end());
    }
    lines.push_back((round->before.line_ns + round->behind.line_ns) / 2);
    messages.push_back(round->message_ns());
    ratios.push_back(median_of(round->times) / round->message_ns());
  }
  result["line_ns"] = median(lines);
  result["message_floor_ns"] = median(messages);
  result["message_floor_p99_of_p50"] = percentile_us(shares, 0.99);  // of thousandths
  // A machine that takes its CPUs away does so within more of the longer round trips: these are as
  // many messages, one after the other, as take as long as one of ours.
  if (shares_as_long.size() >= kFewestSpans) {
    result["messages_as_long_p99_of_p50"] = percentile_us(shares_as_long, 0.99);
  }
  result["ratio_to_floor"] = median(ratios);
  result["ratio_min"] = *std::min_element(ratios.begin(), ratios.end());
  result["ratio_max"] = *std::max_element(ratios.begin(), ratios.end());
}

}  // namespace

Result<std::unique_ptr<Trial>> make_ping_pong_trial(const Options& options, Context& context) {
  return PingPongTrial::create(options, context);
}

}  // namespace rnic::perf
