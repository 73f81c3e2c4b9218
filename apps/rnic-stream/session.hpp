/// \file
/// What the command line asks for, and the runs of server, client and loopback.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rnic-stream/conversation.hpp"
#include "workload/workload.hpp"

namespace rnic::stream {

inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;

/// What the client does with a connection; the server does the counterpart.
enum class Job : uint8_t {
  Send,     ///< sends; the server is a sink
  Receive,  ///< the server is a source
  Duplex,   ///< both send at once
  Echo,     ///< sends a message, awaits it, sends the next
  Check,    ///< sends; the server answers with count, hash and verdict
};

struct Options {
  Job job = Job::Check;
  std::string octets_text = "64M";
  std::string message_text = "64K";
  uint64_t octets = 64u << 20;   ///< of one connection and direction
  uint32_t message = 64u << 10;  ///< octets of one send()
  uint32_t connections = 1;      ///< at once
  double seconds = 0;            ///< loopback and client: instead of octets
  std::string reset_text;
  std::optional<uint64_t> reset_after;
  bool verify = true;
  bool hash = true;
  bool json = false;
  uint32_t mtu = 1500;      ///< loopback
  uint32_t exit_after = 0;  ///< server: ends when so many connections are over; 0: never
  double timeout = 60;      ///< client: seconds without an octet
  uint32_t backlog = 256;   ///< server
  std::string config_file;
  std::vector<std::string> overrides;
  std::string own_address;  // instead of the configuration's
  std::string device;
  std::string address;
  uint16_t port = 7473;
};

[[nodiscard]] Plan client_plan(const Options& options);
[[nodiscard]] Plan server_plan(const Options& options);

/// Sums of the connections of one end.
class Tally {
 public:
  void add(Conversation& conversation);
  [[nodiscard]] uint32_t over() const { return over_; }
  [[nodiscard]] uint32_t failed() const { return over_ - verified_; }
  [[nodiscard]] uint64_t received() const { return received_; }
  [[nodiscard]] uint64_t sent() const { return sent_; }
  [[nodiscard]] nlohmann::ordered_json json() const;
  void add_latencies(nlohmann::ordered_json& out);

 private:
  uint32_t over_ = 0;
  uint32_t verified_ = 0;
  uint64_t sent_ = 0;
  uint64_t received_ = 0;
  std::vector<std::string> errors_;  // the first few
  nlohmann::ordered_json ends_ = nlohmann::ordered_json::object();
  std::vector<std::string> hashes_sent_;
  std::vector<std::string> hashes_received_;
  std::vector<int64_t> round_trips_;
};

int run_server(const Options& options);
int run_client(const Options& options);
int run_loopback(const Options& options);

/// Prints one line to stderr and returns the exit status for it.
int complain(const std::string& message, int status);

}  // namespace rnic::stream
