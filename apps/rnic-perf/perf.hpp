/// \file
/// rnic-perf: goodput, message rate and latency, verified, beside the floor of the machine.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "workload/port_choice.hpp"
#include "workload/server.hpp"
#include "workload/workload.hpp"

namespace rnic::perf {

/// Exit statuses of the program.
inline constexpr int kOk = 0;
inline constexpr int kNotVerified = 1;
inline constexpr int kUsage = 2;

/// What is measured, from the command line.
struct Options {
  workload::Operation operation = workload::Operation::Write;
  std::string size_text;     ///< as given
  uint64_t size = 1u << 20;  ///< octets of a message
  uint32_t mtu = 1500;       ///< octets of an IP packet
  uint32_t cores = 1;        ///< 1: both devices polled in turn; 2: a core each
  uint32_t processes = 1;    ///< loopback: 2: one for each end, over net_memif, on a core each
  double seconds = 3;        ///< measured time, ours and the floor's together
  uint32_t depth = 16;       ///< messages outstanding, of each queue pair
  uint32_t qps = 1;          ///< loopback: queue pairs, all of them at work
  std::string region_text;   ///< as given
  uint64_t region = 1u << 20;  ///< loopback: octets that the messages and the floor cycle through
  bool lists = true;         ///< loopback: requests are posted by the list
  bool ping_pong = false;    ///< loopback: one message to and fro
  bool crc = true;
  bool markers = false;
  bool verify = true;
  bool floor = true;  ///< measure the floor beside it
  bool json = false;
  std::string config_file;  ///< empty: the embedded loopback configuration
  std::vector<std::string> overrides;
  std::string device;       ///< server and client: which device of the configuration
  std::string address;      ///< client: whom to connect to
  std::string own_address;  ///< server and client: instead of the configuration's
  workload::PortChoice port{7471, {}};
  bool both_ends = false;  ///< loopback
  workload::ServerOptions server{.clients = 64};
};

/// Both ends in this process.
int run_loopback(const Options& options);
/// One end; the peer is another rnic-perf.
int run_server(const Options& options);
int run_client(const Options& options);

/// Prints one line to stderr and returns the exit status for it.
int complain(const Error& error);
/// As complain(), of an error while it was measured: the status is kNotVerified, unless the machine
/// lacks something.
int complain_of_run(const Error& error);
int complain(const std::string& message, int status);

/// The configuration that the options ask for.
Result<Config> configuration(const Options& options);

/// Median of a copy; 0 for nothing.
double median(std::vector<double> values);
/// The value that a share `p` of the values does not exceed, microseconds.
double percentile_us(std::vector<int64_t>& nanoseconds, double p);

/// For people, to stdout.
void print_table(const nlohmann::ordered_json& result);

}  // namespace rnic::perf
