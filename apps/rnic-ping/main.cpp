// rnic-ping: connect, exchange, verify, round-trip time.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "program/program.hpp"
#include "rnic-ping/echo.hpp"
#include "workload/captures.hpp"
#include "workload/command_line.hpp"
#include "workload/port_choice.hpp"
#include "workload/workload.hpp"

namespace rnic::ping {

namespace {

constexpr int kOk = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int64_t kTimeoutMs = 10000;
constexpr int64_t kSpeakAgainNs = 500'000'000;

struct Options {
  std::string mode = "loopback";
  uint32_t count = 10;
  std::string operation_word = "send";
  workload::Operation operation = workload::Operation::Send;
  uint32_t size = 64;  ///< octets
  workload::PortChoice port{7472, {}};
  std::string config_file;
  std::vector<std::string> overrides;
  std::string device;
  std::string address;
  bool json = false;
  workload::ServerOptions server;
};

int complain(const std::string& message, int status) {
  std::cerr << "rnic-ping: " << message << "\n";
  return status;
}

/// Sends and awaits the echo, or has an atomic carried out; compares.
class Pinger {
 public:
  Pinger(Context& context, const Options& options) : context_(context), options_(options) {}

  Status open(Device device, const Endpoint& server) {
    if (Status status = station_.open(std::move(device), options_.size); !status) return status;
    workload::End& end = station_.end();
    auto reply = workload::connect_end(context_, {end.device, end.qp}, server, kTimeoutMs);
    if (!reply) return tl::unexpected(reply.error());
    const auto offer = workload::decode_offer(*reply);
    if (!offer) {
      return tl::unexpected(Error{ErrorCode::Protocol, "the peer is not an rnic-ping server"});
    }
    word_at_ = {offer->stag, offer->address};
    std::cerr << "connected to " << to_string(server) << "\n";
    return {};
  }

  Status run() {
    for (uint32_t i = 0; i < options_.count; ++i) {
      if (Status status = once(i); !status) return status;
    }
    return {};
  }

  void report() {
    std::vector<int64_t> sorted = rtt_ns_;
    std::sort(sorted.begin(), sorted.end());
    nlohmann::ordered_json result;
    result["op"] = options_.operation_word;
    result["count"] = sorted.size();
    result["size"] = options_.size;
    result["min_us"] = static_cast<double>(sorted.front()) / 1000;
    result["p50_us"] = static_cast<double>(sorted[sorted.size() / 2]) / 1000;
    result["max_us"] = static_cast<double>(sorted.back()) / 1000;
    result["verified"] = true;
    if (options_.json) {
      std::cout << result.dump() << "\n";
    } else {
      std::cout << sorted.size() << " exchanges of " << options_.size
                << " octets, all verified; round trip min/median/max " << result["min_us"] << "/"
                << result["p50_us"] << "/" << result["max_us"] << " us\n";
    }
    static_cast<void>(station_.end().qp.disconnect());
    context_.wait_until([] { return false; }, std::chrono::milliseconds(20));
  }

 private:
  Status once(uint32_t index) {
    const workload::Pattern pattern{index + 1, options_.size};
    const bool atomic = workload::is_atomic(options_.operation);
    Status done = atomic ? work_on_word(index) : echo(index, pattern);
    if (!done) return done;
    const int64_t rtt = rtt_ns_.back();
    if (!options_.json && options_.count <= 20) {
      std::cout << options_.operation_word << ", " << options_.size << " octets, sequence " << index
                << ", " << static_cast<double>(rtt) / 1000 << " us\n";
    }
    return {};
  }

  /// The server's application hears nothing of atomics, and who says nothing is let go, or gives
  /// way: one octet there and back, which is not counted.
  Status speak() {
    if (context_.now().count() - spoke_ns_ < kSpeakAgainNs) return {};
    spoke_ns_ = context_.now().count();
    if (Status status = station_.post_receive(); !status) return status;
    if (Status status = station_.post_send(0, 1); !status) return status;
    auto came = workload::await(context_, station_.end().receive_cq, kTimeoutMs);
    if (!came) return tl::unexpected(came.error());
    auto sent = workload::await(context_, station_.end().send_cq, kTimeoutMs);
    return sent ? Status{} : tl::unexpected(sent.error());
  }

  Status echo(uint32_t index, const workload::Pattern& pattern) {
    const bool immediate = options_.operation == workload::Operation::Immediate;
    const ImmediateData octets = workload::immediate_of(pattern, index);
    workload::fill(station_.out(), pattern);
    workload::poison(station_.in());
    if (Status status = station_.post_receive(); !status) return status;
    const int64_t start = context_.now().count();
    Status posted = immediate ? station_.end().qp.post_immediate(index, octets)
                              : station_.post_send(0, options_.size);
    if (!posted) return posted;
    auto came = workload::await(context_, station_.end().receive_cq, kTimeoutMs);
    if (!came) return tl::unexpected(came.error());
    rtt_ns_.push_back(context_.now().count() - start);
    auto sent = workload::await(context_, station_.end().send_cq, kTimeoutMs);
    if (!sent) return tl::unexpected(sent.error());
    if (came->has_immediate != immediate || came->length != options_.size) {
      return differs("another kind or length");
    }
    if (immediate) return came->immediate == octets ? Status{} : differs("other Immediate Data");
    const auto mismatch = workload::compare(station_.in(), pattern);
    return mismatch ? differs(workload::describe(*mismatch)) : Status{};
  }

  /// The word's values are known from the first one on: nobody else works on it.
  Status work_on_word(uint32_t index) {
    if (Status status = speak(); !status) return status;
    if (index == 0) workload::fill({reinterpret_cast<uint8_t*>(&word_), 8}, kWordPattern);
    const workload::AtomicStep step =
        workload::step_atomic(options_.operation, kWordPattern, index, word_);
    SendRequest request;
    request.opcode = workload::opcode_of(options_.operation);
    request.remote = {word_at_.stag, word_at_.offset};
    request.atomic = step.operands;
    const int64_t start = context_.now().count();
    if (Status status = station_.end().qp.post_send(request); !status) return status;
    auto done = workload::await(context_, station_.end().send_cq, kTimeoutMs);
    if (!done) return tl::unexpected(done.error());
    rtt_ns_.push_back(context_.now().count() - start);
    if (done->original == step.original) return {};
    return tl::unexpected(Error{ErrorCode::Protocol, options_.operation_word + " " +
                                                         std::to_string(index) + " found " +
                                                         std::to_string(done->original) +
                                                         " in the server's word, expected " +
                                                         std::to_string(step.original)});
  }

  static Status differs(const std::string& how) {
    return tl::unexpected(Error{ErrorCode::Protocol, "the echo differs: " + how});
  }

  Context& context_;
  const Options& options_;
  Station station_;
  RemoteAddress word_at_;
  uint64_t word_ = 0;  // what the server's holds
  int64_t spoke_ns_ = 0;
  std::vector<int64_t> rtt_ns_;
};

Result<Context> open_context(const Options& options) {
  Config config = workload::default_configuration(options.port, options.mode == "loopback");
  if (!options.config_file.empty()) {
    auto file = Config::from_file(options.config_file);
    if (!file) return tl::unexpected(file.error());
    config = std::move(*file);
    workload::apply(options.port, config);
  }
  workload::apply_address(options.address, options.device, config);
  for (const std::string& assignment : options.overrides) config.set(assignment);
  return Context::open(config);
}

workload::Server make_server(Context& context, const Device& device, const Options& options) {
  return {context, device, "rnic-ping", options.server, Echo::welcome};
}

int run_server(Context& context, const Options& options) {
  auto device = workload::choose_device(context, options.device);
  if (!device) return complain(device.error().message, kUsage);
  if (const auto status = device->listen(options.port.tcp); !status) {
    return complain(status.error().message, kUsage);
  }
  std::cerr << "listening on " << to_string(Endpoint{device->address(), options.port.tcp}) << "\n";
  workload::Server server = make_server(context, *device, options);
  context.wait_until(
      [&] {
        server.step();
        return workload::interrupted();
      },
      kForever);
  return kOk;
}

Status talk(Context& context, const Options& options, const Endpoint& server) {
  auto device = workload::choose_device(context, options.device);
  if (!device) return tl::unexpected(device.error());
  Pinger pinger(context, options);
  if (Status status = pinger.open(*device, server); !status) return status;
  if (Status status = pinger.run(); !status) return status;
  pinger.report();
  return {};
}

int verdict(const Status& status) {
  if (status) return kOk;
  const Error& error = status.error();
  const bool usage = workload::is_of_environment(error) || error.code == ErrorCode::NotFound;
  return complain(error.message, usage ? kUsage : kFailed);
}

Status run_client(Context& context, const Options& options) {
  const auto server = parse_endpoint(options.mode, options.port.tcp);
  if (!server) return tl::unexpected(server.error());
  return talk(context, options, *server);
}

/// The other end, on a thread of its own. When that cannot go on it lets its clients go and ends
/// the waiting of the program.
class EchoThread {
 public:
  EchoThread(Context& context, const Device& device, const Options& options)
      : thread_([this, &context, &device, &options] {
          failure_ = program::caught([&] { serve(make_server(context, device, options)); });
          if (failure_) workload::interrupt();
        }) {}
  ~EchoThread() { join(); }
  EchoThread(const EchoThread&) = delete;
  EchoThread& operator=(const EchoThread&) = delete;

  /// \return why it could not go on
  const program::Thrown& join() {
    stop_.store(true);
    if (thread_.joinable()) thread_.join();
    return failure_;
  }

 private:
  void serve(workload::Server server) {
    while (!stop_.load()) {
      server.step();
      std::this_thread::yield();
    }
  }

  std::atomic<bool> stop_{false};
  program::Thrown failure_;
  std::thread thread_;
};

/// Both ends in this process.
int run_loopback(const Options& options) {
  if (!options.device.empty()) {
    return complain("loopback uses both devices of the configuration: leave --device out", kUsage);
  }
  Options threaded = options;
  threaded.overrides.push_back("worker.mode=threaded");
  auto context = open_context(threaded);
  if (!context) return complain(context.error().message, kUsage);
  const std::vector<std::string> names = context->device_names();
  if (names.size() != 2) return complain("loopback needs two devices in the configuration", kUsage);
  auto responder = context->device(names[1]);
  if (const auto status = responder->listen(options.port.tcp); !status) {
    return complain(status.error().message, kUsage);
  }
  EchoThread echo(*context, *responder, options);
  Options client = options;
  client.device = names[0];
  const Status status = talk(*context, client, {responder->address(), options.port.tcp});
  if (const auto& failure = echo.join()) return complain(failure.what(), kUsage);
  // Our own peer refuses only for what the machine does not give it.
  if (!status && status.error().code == ErrorCode::Unreachable) {
    return complain(status.error().message, kUsage);
  }
  return workload::with_captures("rnic-ping", *context, verdict(status));
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Connects to a peer, exchanges Sends or Immediate Data that the peer echoes, or has atomics\n"
      "carried out on a word of the peer; verifies every octet and value and prints the "
      "round-trip\n"
      "time. Examples:\n"
      "  rnic-ping loopback\n"
      "  rnic-ping loopback --op fetch-add\n"
      "  rnic-ping server                          over the system's own TCP; needs no rights\n"
      "  rnic-ping 192.168.1.2 --count 1000        on another machine; 192.168.1.2 is the "
      "server's\n"
      "  rnic-ping server --config config/nic.toml --address 192.168.1.102/24       over a NIC\n"
      "  rnic-ping 192.168.1.102 --config config/nic.toml --address 192.168.1.103/24"};
  app.add_option("mode", options.mode,
                 "loopback, server, or the IP address of a server, with its port or without")
      ->capture_default_str();
  app.add_option("--count", options.count, "exchanges")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000000));
  app.add_option("--op", options.operation_word,
                 "send; imm (Immediate Data); fetch-add, masked-add, cmp-swap, masked-swap "
                 "(atomics of RFC 7306)")
      ->capture_default_str()
      ->check(CLI::IsMember({"send", "imm", "fetch-add", "masked-add", "cmp-swap", "masked-swap"}));
  app.add_option("--size", options.size, "octets of a Send; all else moves 8")
      ->capture_default_str()
      ->check(CLI::Range(1u, kMaxSize));
  workload::add_port_option(app, options.port);
  app.add_option("--config", options.config_file, "TOML file, see config/ and docs/settings.md")
      ->check(workload::not_empty());
  app.add_option("--set", options.overrides, "override one key of the configuration")
      ->allow_extra_args(false);
  app.add_option("--device", options.device, "device of the configuration (default: the first)")
      ->check(workload::not_empty());
  workload::add_server_options(app, options.server);
  workload::add_address_option(app, options.address);
  app.add_flag("--json", options.json, "print the result as one JSON object, as the last line");
  if (auto status = workload::parse_command_line(app, "rnic-ping", argc, argv)) return *status;
  options.operation = *workload::parse_operation(options.operation_word);
  if (workload::is_of_word(options.operation)) options.size = workload::kWordOctets;
  if (options.mode == "loopback") return run_loopback(options);
  auto context = open_context(options);
  if (!context) return complain(context.error().message, kUsage);
  auto device = workload::choose_reachable_device(*context, options.device);
  if (!device) return complain(device.error().message, kUsage);
  const int status = options.mode == "server" ? run_server(*context, options)
                                              : verdict(run_client(*context, options));
  return workload::with_captures("rnic-ping", *context, status);
}

}  // namespace
}  // namespace rnic::ping

int main(int argc, char** argv) {
  return rnic::program::run("rnic-ping", [&] { return rnic::ping::run(argc, argv); });
}
