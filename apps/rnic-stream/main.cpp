// rnic-stream: the command line.

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>

#include "program/program.hpp"
#include "rnic-stream/session.hpp"
#include "workload/command_line.hpp"
#include "workload/port_choice.hpp"

namespace rnic::stream {

namespace {

const std::map<std::string, Job> kJobs{{"send", Job::Send},
                                       {"receive", Job::Receive},
                                       {"duplex", Job::Duplex},
                                       {"echo", Job::Echo},
                                       {"check", Job::Check}};

constexpr uint64_t kMostOctets = uint64_t{1} << 40;
constexpr uint64_t kLongest = 1u << 30;  // of a message

void add_work(CLI::App& command, Options& options, std::string& job) {
  command
      .add_option("--job", job,
                  "send, receive, duplex (both at once), echo (message by message) or check (the "
                  "server answers with count and hash); the same at both ends")
      ->capture_default_str()
      ->check(CLI::IsMember({"send", "receive", "duplex", "echo", "check"}));
  command
      .add_option("--octets", options.octets_text,
                  "of each connection, each way; K, M, G mean 2^10, 2^20, 2^30")
      ->capture_default_str();
  command.add_option("--message", options.message_text, "octets handed over at a time")
      ->capture_default_str();
  command
      .add_option("--reset-after", options.reset_text,
                  "abort a connection that has moved so many octets")
      ->check(workload::not_empty());
  command.add_flag("!--no-verify", options.verify, "neither compare nor hash what comes");
  command.add_flag("!--no-hash", options.hash, "compare, but do not hash");
  command.add_flag("--json", options.json, "print the result as one JSON object, as the last line");
  command
      .add_option("--config", options.config_file, "TOML file, see config/ and docs/settings.md")
      ->check(workload::not_empty());
  command
      .add_option("--set", options.overrides,
                  "override one key of the configuration: tcp.sack=false")
      ->allow_extra_args(false);
  command.add_option("--port", options.port, "TCP port")
      ->capture_default_str()
      ->check(CLI::Range(1, 65535));
}

void add_client(CLI::App& command, Options& options) {
  command.add_option("--connections", options.connections, "at once")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  command.add_option("--seconds", options.seconds, "send for so long, instead of --octets")
      ->check(CLI::Range(0.1, 3600.0))
      ->check(workload::a_number());
  command
      .add_option("--timeout", options.timeout, "give up after so many seconds without an octet")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 3600.0))
      ->check(workload::a_number());
}

std::optional<int> parse_sizes(Options& options) {
  const auto octets = workload::parse_octets(options.octets_text, kMostOctets);
  if (!octets) return complain("--octets " + options.octets_text + ": give 0 to 1024G", kUsage);
  const auto message = workload::parse_octets(options.message_text, kLongest);
  if (!message || *message == 0) {
    return complain("--message " + options.message_text + ": give 1 to 1024M", kUsage);
  }
  options.octets = *octets;
  options.message = static_cast<uint32_t>(*message);
  if (options.reset_text.empty()) return std::nullopt;
  options.reset_after = workload::parse_octets(options.reset_text, kMostOctets);
  if (options.reset_after) return std::nullopt;
  return complain("--reset-after " + options.reset_text + ": give 0 to 1024G", kUsage);
}

int run(int argc, char** argv) {
  Options options;
  std::string job = "check";
  CLI::App app{
      "Plain TCP streams over the software RNIC's own stack: moves a known content between two\n"
      "processes, or between this one and a kernel socket, and verifies every octet.\n"
      "Examples:\n"
      "  rnic-stream loopback --octets 1G --mtu 9000\n"
      "  rnic-stream server --config config/nic.toml --address 192.168.1.102/24\n"
      "  rnic-stream client 192.168.1.102 --config config/nic.toml --address 192.168.1.103/24"};
  app.require_subcommand(1);
  CLI::App& loopback = *app.add_subcommand("loopback", "both ends in this process, on one core");
  add_work(loopback, options, job);
  add_client(loopback, options);
  loopback.add_option("--mtu", options.mtu, "octets of an IP packet")
      ->capture_default_str()
      ->check(CLI::Range(576, 9216));
  CLI::App& server = *app.add_subcommand("server", "answers until interrupted");
  add_work(server, options, job);
  server.add_option("--exit-after", options.exit_after, "end when so many connections are over");
  server.add_option("--backlog", options.backlog, "connections that may wait")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  server.add_option("--device", options.device, "device of the configuration (default: the first)")
      ->check(workload::not_empty());
  workload::add_address_option(server, options.own_address);
  CLI::App& client = *app.add_subcommand("client", "connects to a server");
  client
      .add_option("address", options.address, "IP address of the server, with its port or without")
      ->required();
  add_work(client, options, job);
  add_client(client, options);
  client.add_option("--device", options.device, "device of the configuration (default: the first)")
      ->check(workload::not_empty());
  workload::add_address_option(client, options.own_address);

  if (auto status = workload::parse_command_line(app, "rnic-stream", argc, argv)) return *status;
  options.job = kJobs.at(job);
  if (auto status = parse_sizes(options)) return *status;
  if (loopback.parsed()) return run_loopback(options);
  if (server.parsed()) return run_server(options);
  return run_client(options);
}

}  // namespace
}  // namespace rnic::stream

int main(int argc, char** argv) {
  return rnic::program::run("rnic-stream", [&] { return rnic::stream::run(argc, argv); });
}
