// rnic-perf: the command line.

#include <CLI/CLI.hpp>
#include <iostream>

#include "program/program.hpp"
#include "rnic-perf/perf.hpp"
#include "workload/command_line.hpp"

namespace rnic::perf {

namespace {

constexpr uint64_t kUsualSize = 1u << 20;
constexpr uint64_t kLongest = 1u << 30;  // of a message

void add_workload(CLI::App& command, Options& options) {
  command
      .add_option("--size", options.size_text,
                  "octets of a message; K, M mean 2^10, 2^20 (default: 1M; imm and atomics: 8)")
      ->check(workload::not_empty());
  command.add_option("--seconds", options.seconds, "how long to measure")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 3600.0))
      ->check(workload::a_number());
  command.add_option("--depth", options.depth, "messages outstanding")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  command.add_flag("!--no-verify", options.verify,
                   "do not compare the octets at the far end (the result says so)");
  command.add_flag("--json", options.json, "print the result as one JSON object, as the last line");
}

void add_configuration(CLI::App& command, Options& options) {
  command
      .add_option("--config", options.config_file, "TOML file, see config/ and docs/settings.md")
      ->check(workload::not_empty());
  command
      .add_option("--set", options.overrides,
                  "override one key of the configuration: tcp.sack=false")
      ->allow_extra_args(false);
}

void add_loopback(CLI::App& command, Options& options) {
  command.add_option("--mtu", options.mtu, "octets of an IP packet")
      ->capture_default_str()
      ->check(CLI::Range(576, 9216));
  command.add_option("--cores", options.cores, "1: one thread polls both ends; 2: a thread each")
      ->capture_default_str()
      ->check(CLI::Range(1, 2));
  command
      .add_option("--processes", options.processes,
                  "2: a process for each end, on a core each, over memory that both share "
                  "(net_memif; write)")
      ->capture_default_str()
      ->check(CLI::Range(1, 2));
  command
      .add_option("--qps", options.qps,
                  "queue pairs, --depth messages of each outstanding (write, read, send)")
      ->capture_default_str()
      ->check(CLI::Range(1, 65535));
  command
      .add_option("--region", options.region_text,
                  "octets that the messages and the floor cycle through (default: 1M)")
      ->check(workload::not_empty());
  command.add_flag("!--no-lists", options.lists, "post every request by itself");
  command.add_flag("--ping-pong", options.ping_pong,
                   "one message to and fro (write, send; --size 64 unless said otherwise), beside "
                   "the floor of a round trip between two cores");
  command.add_flag("!--no-crc", options.crc, "MPA CRC off (the result says so)");
  command.add_flag("--markers", options.markers, "MPA markers in both directions");
  command.add_flag("!--no-floor", options.floor, "do not measure the floor");
  workload::add_port_option(command, options.port);
}

constexpr uint64_t kTripSize = 64;           // octets
constexpr uint64_t kLongestTrip = 1u << 16;  // octets

/// What is wrong with the options of loopback taken together; empty: nothing.
std::string judge_loopback(Options& options) {
  using workload::Operation;
  if (!options.region_text.empty()) {
    const auto region = workload::parse_octets(options.region_text, kLongest);
    if (!region || *region < (1u << 16)) {
      return "--region " + options.region_text + ": give octets from 64K to 1024M";
    }
    options.region = *region;
  }
  const bool flood = options.operation == Operation::Write ||
                     options.operation == Operation::Read || options.operation == Operation::Send;
  if (options.qps != 1 && (!flood || options.ping_pong)) {
    return "--qps: only write, read and send, and no --ping-pong";
  }
  if (options.processes == 2) {
    if (options.operation != Operation::Write || options.ping_pong || options.qps != 1) {
      return "--processes 2: only write, one queue pair, and no --ping-pong";
    }
    if (!options.config_file.empty() || !options.port.device.empty()) {
      return "--processes 2 has a configuration of its own: leave --config and --port " +
             std::string("socket out");
    }
    options.cores = 2;
  }
  if (!options.ping_pong) return {};
  if (options.operation != Operation::Write && options.operation != Operation::Send) {
    return "--op: --ping-pong takes write and send";
  }
  if (options.size_text.empty()) options.size = kTripSize;
  if (options.size % 8 != 0 || options.size > kLongestTrip) {
    return "--size " + options.size_text +
           ": a message of --ping-pong has a multiple of 8 octets, 64K at most";
  }
  return {};
}

bool parse_size(Options& options) {
  const bool word = workload::is_of_word(options.operation);
  if (options.size_text.empty()) {
    options.size = word ? workload::kWordOctets : kUsualSize;
    return true;
  }
  const auto size = workload::parse_octets(options.size_text, kLongest);
  options.size = size.value_or(0);
  return word ? options.size == workload::kWordOctets : options.size != 0;
}

int run(int argc, char** argv) {
  Options options;
  std::string operation = "write";
  CLI::App app{
      "Measures a software RNIC: goodput, message rate and latency of RDMA Write, RDMA Read, "
      "Send,\n"
      "Immediate Data and atomics, with every octet and every value verified, beside the floor of\n"
      "this machine. Examples:\n"
      "  rnic-perf loopback --op write --size 1M --mtu 9000 --seconds 3 --json\n"
      "  rnic-perf loopback --op fetch-add --port socket\n"
      "  rnic-perf server                      over the system's own TCP; needs no rights\n"
      "  rnic-perf client 192.168.1.2          on another machine; 192.168.1.2 is the server's\n"
      "  rnic-perf server --config config/nic.toml --address 192.168.1.102/24       over a NIC\n"
      "  rnic-perf client 192.168.1.102 --config config/nic.toml --address 192.168.1.103/24"};
  app.require_subcommand(1);
  const auto add_operation = [&](CLI::App& command) {
    command.add_option("--op", operation, workload::kOperationHelp)
        ->capture_default_str()
        ->check(CLI::IsMember(workload::operation_words()));
  };

  CLI::App& loopback = *app.add_subcommand("loopback", "both ends in this process");
  add_operation(loopback);
  add_workload(loopback, options);
  add_configuration(loopback, options);
  add_loopback(loopback, options);

  CLI::App& server = *app.add_subcommand("server", "answers rnic-perf clients until interrupted");
  add_configuration(server, options);
  server.add_option("--device", options.device, "device of the configuration (default: the first)")
      ->check(workload::not_empty());
  workload::add_port_option(server, options.port);
  workload::add_server_options(server, options.server);
  workload::add_address_option(server, options.own_address);

  CLI::App& client = *app.add_subcommand("client", "measures against an rnic-perf server");
  client
      .add_option("address", options.address, "IP address of the server, with its port or without")
      ->required();
  add_operation(client);
  add_workload(client, options);
  add_configuration(client, options);
  client.add_option("--device", options.device, "device of the configuration (default: the first)")
      ->check(workload::not_empty());
  workload::add_port_option(client, options.port);
  workload::add_address_option(client, options.own_address);

  if (auto status = workload::parse_command_line(app, "rnic-perf", argc, argv)) return *status;
  options.operation = *workload::parse_operation(operation);
  if (!parse_size(options)) {
    const bool word = workload::is_of_word(options.operation);
    return complain("--size " + options.size_text +
                        (word ? ": " + operation + " moves 8 octets: leave --size out"
                              : ": give octets from 1 to 1024M, as in 64, 4K, 1M"),
                    kUsage);
  }
  options.both_ends = loopback.parsed();
  if (options.both_ends) {
    const std::string wrong = judge_loopback(options);
    return wrong.empty() ? run_loopback(options) : complain(wrong, kUsage);
  }
  if (server.parsed()) return run_server(options);
  return run_client(options);
}

}  // namespace

int complain(const Error& error) { return complain(error.message, kUsage); }

int complain_of_run(const Error& error) {
  return complain(error.message, workload::is_of_environment(error) ? kUsage : kNotVerified);
}

int complain(const std::string& message, int status) {
  std::cerr << "rnic-perf: " << message << "\n";
  return status;
}

}  // namespace rnic::perf

int main(int argc, char** argv) {
  return rnic::program::run("rnic-perf", [&] { return rnic::perf::run(argc, argv); });
}
