/// \file
/// One connection from its first octet to its end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rnic-stream/content.hpp"
#include "rnic/stream.hpp"

namespace rnic::stream {

/// What one end of a connection does. Both ends finish their sending, then it is over.
struct Plan {
  bool sends = false;         ///< `octets` of the content, then the half close
  bool echoes = false;        ///< sends back what comes
  bool replies = false;       ///< after the peer's end: one line with count, hash and verdict
  bool expects_line = false;  ///< what comes is such a line
  bool verifies = true;       ///< what comes is compared with the content, and hashed
  bool hashes = false;
  bool ping_pong = false;               ///< the next message is sent when the last one is back
  uint64_t octets = 0;                  ///< to send; UINT64_MAX: until stop()
  uint32_t message = 65536;             ///< octets of one send()
  std::optional<uint64_t> reset_after;  ///< abort when so many octets are sent and received
  Way out = Way::Up;                    ///< the content that this end sends
};

/// What became of it.
struct Outcome {
  uint64_t sent = 0;
  uint64_t received = 0;
  uint32_t hash_sent = 0;
  uint32_t hash_received = 0;
  bool over = false;
  bool verified = false;  ///< everything that had to come came, and was right
  std::string error;      ///< one line
  std::string end;        ///< "open" or how TCP ended
};

class Conversation {
 public:
  Conversation(Stream stream, const Plan& plan);

  /// Moves what can be moved. \return octets moved
  uint64_t step();
  [[nodiscard]] bool is_over() const { return outcome_.over; }
  [[nodiscard]] bool is_open() const { return stream_.state() == StreamState::Open; }
  [[nodiscard]] const Outcome& outcome() const { return outcome_; }
  /// Round-trip times of the messages of a ping-pong, nanoseconds, need the time.
  std::vector<int64_t>& round_trips() { return round_trips_; }
  void set_clock(int64_t now_ns) { now_ns_ = now_ns; }
  /// Sends nothing more but the end.
  void stop();
  /// For the command line that is interrupted.
  void abort(const std::string& why);

 private:
  void begin();
  uint64_t receive();
  uint64_t take(std::span<const uint8_t> octets);
  uint64_t send();
  uint64_t send_echo();
  void reply();
  void finish_if_done();
  void check_line();
  void end(std::string error);

  Stream stream_;
  Plan plan_;
  Outcome outcome_;
  std::optional<Content> content_out_;  // known with the ports
  std::optional<Content> content_in_;
  RunningHash hash_out_;
  RunningHash hash_in_;
  std::vector<uint8_t> pending_;  // echo: not yet sent back; or the reply
  size_t pending_from_ = 0;
  std::string line_;
  bool stopped_ = false;
  bool finished_ = false;
  bool replied_ = false;
  std::optional<uint64_t> difference_;
  int64_t now_ns_ = 0;
  int64_t message_at_ns_ = 0;
  std::vector<int64_t> round_trips_;
};

}  // namespace rnic::stream
