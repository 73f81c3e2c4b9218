#include "rnic-stream/session.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <memory>

#include "workload/captures.hpp"
#include "workload/port_choice.hpp"

namespace rnic::stream {

namespace {

constexpr size_t kErrorsKept = 5;
constexpr size_t kHashesKept = 16;
constexpr uint32_t kPollsPerStep = 4;

Result<Context> open_context(const Options& options, bool loopback) {
  Config config = loopback ? Config::loopback() : Config::from_text("[[device]]\n", "--set");
  const bool port_set =
      std::any_of(options.overrides.begin(), options.overrides.end(),
                  [](const std::string& key) { return key.find(".port=") != key.npos; });
  if (!loopback && options.config_file.empty() && !port_set) {
    return tl::unexpected(
        Error{ErrorCode::InvalidArgument,
              "streams between two processes need a port of softrnic's own at both: give --config, "
              "such as config/nic.toml (docs/run-on-a-nic.md)"});
  }
  if (!options.config_file.empty()) {
    auto file = Config::from_file(options.config_file);
    if (!file) return tl::unexpected(file.error());
    config = std::move(*file);
  }
  workload::apply_address(options.own_address, options.device, config);
  for (const std::string& assignment : options.overrides) config.set(assignment);
  if (Status status = config.check(); !status) return tl::unexpected(status.error());
  if (loopback && options.mtu != 1500) config.set("wire.loop.mtu=" + std::to_string(options.mtu));
  return Context::open(config);
}

using Conversations = std::vector<std::unique_ptr<Conversation>>;

/// Steps each one; what is over goes to the tally. \return octets moved
uint64_t step_all(Conversations& conversations, Tally& tally, int64_t now_ns) {
  uint64_t moved = 0;
  for (auto& conversation : conversations) {
    conversation->set_clock(now_ns);
    moved += conversation->step();
    if (conversation->is_over()) tally.add(*conversation);
  }
  std::erase_if(conversations, [](const auto& c) { return c->is_over(); });
  return moved;
}

nlohmann::ordered_json counters_of(const Device& device) {
  nlohmann::ordered_json out;
  for (const Counter& counter : device.counters()) {
    if (counter.value != 0) out[counter.layer][counter.name] = counter.value;
  }
  return out;
}

void print(const Options& options, const nlohmann::ordered_json& result) {
  if (options.json) {
    std::cout << result.dump() << std::endl;
    return;
  }
  for (const auto& [key, value] : result.items()) {
    if (key == "counters") continue;
    std::cout << "  " << key << std::string(key.size() < 18 ? 18 - key.size() : 1, ' ')
              << (value.is_string() ? value.get<std::string>() : value.dump()) << "\n";
  }
  std::cout << std::flush;
}

/// Lets the stack finish what the streams left to it.
void drain(Context& context, const Device& device) {
  context.wait_until([&] { return workload::interrupted() || device.quiescent(); },
                     std::chrono::seconds(3));
}

/// The client's end: opens connections, runs them, keeps the time.
class Client {
 public:
  Client(Context& context, Device device, const Options& options)
      : context_(context), device_(std::move(device)), options_(options) {}

  Status open(const Endpoint& server) {
    for (uint32_t i = 0; i < options_.connections; ++i) {
      auto stream = device_.connect_stream(server);
      if (!stream) return tl::unexpected(stream.error());
      conversations_.push_back(
          std::make_unique<Conversation>(std::move(*stream), client_plan(options_)));
    }
    started_ns_ = moved_ns_ = context_.now().count();
    return {};
  }

  /// \return false when it is over
  bool step() {
    const int64_t now = context_.now().count();
    const uint64_t before = tally_.over();
    const uint64_t moved = step_all(conversations_, tally_, now);
    if (moved != 0 || tally_.over() != before) moved_ns_ = now;
    if (options_.seconds > 0 && now - started_ns_ > static_cast<int64_t>(options_.seconds * 1e9)) {
      for (auto& conversation : conversations_) conversation->stop();
    }
    const bool late = now - moved_ns_ > static_cast<int64_t>(options_.timeout * 1e9);
    if (late || workload::interrupted()) {
      for (auto& conversation : conversations_) {
        conversation->abort(late ? "nothing moved for too long (--timeout)" : "interrupted");
        tally_.add(*conversation);
      }
      conversations_.clear();
    }
    if (conversations_.empty() && ended_ns_ == 0) ended_ns_ = context_.now().count();
    return !conversations_.empty();
  }

  nlohmann::ordered_json report() {
    const double seconds = static_cast<double>(ended_ns_ - started_ns_) / 1e9;
    const auto octets = static_cast<double>(tally_.sent() + tally_.received());
    nlohmann::ordered_json out = tally_.json();
    out["seconds"] = seconds;
    out["goodput_gbps"] = seconds > 0 ? octets * 8 / seconds / 1e9 : 0;
    tally_.add_latencies(out);
    out["mtu"] = device_.mtu();
    out["checksum"] = device_.checksum_mode();
    return out;
  }

  [[nodiscard]] bool good() const { return tally_.failed() == 0; }
  Device& device() { return device_; }

 private:
  Context& context_;
  Device device_;
  const Options& options_;
  Conversations conversations_;
  Tally tally_;
  int64_t started_ns_ = 0;
  int64_t moved_ns_ = 0;
  int64_t ended_ns_ = 0;
};

/// The server's end.
class Server {
 public:
  Server(Device device, const Options& options) : device_(std::move(device)), options_(options) {}

  Status open() {
    auto listener = device_.listen_stream(options_.port, {.backlog = options_.backlog});
    if (!listener) return tl::unexpected(listener.error());
    listener_ = std::move(*listener);
    return {};
  }

  void step(int64_t now_ns) {
    while (auto stream = listener_.accept()) {
      conversations_.push_back(
          std::make_unique<Conversation>(std::move(*stream), server_plan(options_)));
    }
    step_all(conversations_, tally_, now_ns);
  }

  [[nodiscard]] bool done() const {
    return options_.exit_after != 0 && tally_.over() >= options_.exit_after;
  }
  [[nodiscard]] bool idle() const { return conversations_.empty(); }
  Tally& tally() { return tally_; }
  Device& device() { return device_; }

 private:
  Device device_;
  const Options& options_;
  StreamListener listener_;
  Conversations conversations_;
  Tally tally_;
};

int fail(const Error& error) {
  return complain(error.message, workload::is_of_environment(error) ? kUsage : kFailed);
}

bool hashes(const Options& options) {
  if (options.job == Job::Check) return true;
  return options.verify && options.hash && options.job != Job::Echo;
}

}  // namespace

Plan client_plan(const Options& options) {
  Plan plan;
  plan.sends = options.job != Job::Receive;
  plan.ping_pong = options.job == Job::Echo;
  plan.expects_line = options.job == Job::Check;
  plan.verifies = options.verify;
  plan.hashes = hashes(options);
  plan.octets = options.seconds > 0 ? UINT64_MAX : options.octets;
  plan.message = options.message;
  plan.reset_after = options.reset_after;
  plan.out = Way::Up;
  return plan;
}

Plan server_plan(const Options& options) {
  Plan plan;
  plan.sends = options.job == Job::Receive || options.job == Job::Duplex;
  plan.echoes = options.job == Job::Echo;
  plan.replies = options.job == Job::Check;
  plan.verifies = options.verify;
  plan.hashes = hashes(options);
  plan.octets = options.octets;
  plan.message = options.message;
  plan.reset_after = options.reset_after;
  plan.out = Way::Down;
  return plan;
}

void Tally::add(Conversation& conversation) {
  const Outcome& outcome = conversation.outcome();
  ++over_;
  verified_ += outcome.verified ? 1 : 0;
  sent_ += outcome.sent;
  received_ += outcome.received;
  if (!outcome.error.empty() && errors_.size() < kErrorsKept) errors_.push_back(outcome.error);
  ends_[outcome.end] = ends_.value(outcome.end, 0) + 1;
  if (hashes_sent_.size() < kHashesKept) {
    hashes_sent_.push_back(hex(outcome.hash_sent));
    hashes_received_.push_back(hex(outcome.hash_received));
  }
  auto& times = conversation.round_trips();
  round_trips_.insert(round_trips_.end(), times.begin(), times.end());
}

nlohmann::ordered_json Tally::json() const {
  nlohmann::ordered_json out;
  out["connections"] = over_;
  out["verified"] = verified_;
  out["octets_sent"] = sent_;
  out["octets_received"] = received_;
  out["hashes_sent"] = hashes_sent_;
  out["hashes_received"] = hashes_received_;
  out["ends"] = ends_;
  out["errors"] = errors_;
  return out;
}

void Tally::add_latencies(nlohmann::ordered_json& out) {
  if (round_trips_.empty()) return;
  std::sort(round_trips_.begin(), round_trips_.end());
  const auto at = [&](double share) {
    const auto i = static_cast<size_t>(share * static_cast<double>(round_trips_.size() - 1));
    return static_cast<double>(round_trips_[i]) / 1000;
  };
  out["messages"] = round_trips_.size();
  out["min_us"] = at(0);
  out["p50_us"] = at(0.5);
  out["p99_us"] = at(0.99);
}

int run_server(const Options& options) {
  auto context = open_context(options, false);
  if (!context) return complain(context.error().message, kUsage);
  auto device = workload::choose_reachable_device(*context, options.device);
  if (!device) return complain(device.error().message, kUsage);
  Server server(*device, options);
  if (Status status = server.open(); !status) return complain(status.error().message, kUsage);
  std::cerr << "listening on " << to_string(Endpoint{device->address(), options.port}) << std::endl;
  context->wait_until(
      [&] {
        for (uint32_t i = 1; i < kPollsPerStep; ++i) context->poll();
        server.step(context->now().count());
        return workload::interrupted() || server.done();
      },
      kForever);
  drain(*context, *device);
  nlohmann::ordered_json result = server.tally().json();
  result["counters"] = counters_of(*device);
  print(options, result);
  return workload::with_captures("rnic-stream", *context,
                                 server.tally().failed() == 0 ? kOk : kFailed);
}

int run_client(const Options& options) {
  auto context = open_context(options, false);
  if (!context) return complain(context.error().message, kUsage);
  auto device = workload::choose_reachable_device(*context, options.device);
  if (!device) return complain(device.error().message, kUsage);
  const auto server = parse_endpoint(options.address, options.port);
  if (!server) return fail(server.error());
  Client client(*context, *device, options);
  if (Status status = client.open(*server); !status) return fail(status.error());
  context->wait_until(
      [&] {
        for (uint32_t i = 1; i < kPollsPerStep; ++i) context->poll();
        return !client.step();
      },
      kForever);
  nlohmann::ordered_json result = client.report();
  drain(*context, *device);
  result["counters"] = counters_of(*device);
  print(options, result);
  return workload::with_captures("rnic-stream", *context, client.good() ? kOk : kFailed);
}

int run_loopback(const Options& options) {
  auto context = open_context(options, true);
  if (!context) return complain(context.error().message, kUsage);
  const std::vector<std::string> names = context->device_names();
  if (names.size() != 2) return complain("loopback needs two devices in the configuration", kUsage);
  Server server(*context->device(names[1]), options);
  if (Status status = server.open(); !status) return complain(status.error().message, kUsage);
  Client client(*context, *context->device(names[0]), options);
  const Endpoint there{server.device().address(), options.port};
  if (Status status = client.open(there); !status) return fail(status.error());
  context->wait_until(
      [&] {
        for (uint32_t i = 1; i < kPollsPerStep; ++i) context->poll();
        server.step(context->now().count());
        const bool going = client.step();
        return !going && (server.idle() || !client.good() || options.reset_after);
      },
      kForever);
  nlohmann::ordered_json result = client.report();
  result["server"] = server.tally().json();
  drain(*context, client.device());
  result["counters"] = counters_of(client.device());
  print(options, result);
  const bool good = client.good() && (server.tally().failed() == 0 || options.reset_after);
  return workload::with_captures("rnic-stream", *context, good ? kOk : kFailed);
}

int complain(const std::string& message, int status) {
  std::cerr << "rnic-stream: " << message << "\n";
  return status;
}

}  // namespace rnic::stream
