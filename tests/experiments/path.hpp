/// \file
/// Two TCP stacks joined by a link in virtual time: rate, delay, loss, a queue, and a middlebox
/// that cuts segments. The same seed gives the same run to the octet.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <vector>

#include "base/prng.hpp"
#include "tcp/tcp.hpp"
#include "wire/tcp.hpp"

namespace rnic::experiment {

inline constexpr uint32_t kInitiator = 0;
inline constexpr uint32_t kResponder = 1;

/// What a TCP segment costs on Ethernet besides itself: IPv4 header 20, Ethernet header 14, FCS 4,
/// preamble 8, gap 12.
inline constexpr uint32_t kFrameOverhead = 58;

struct PathConfig {
  uint32_t mtu = 1500;
  base::Duration delay = std::chrono::microseconds(500);  ///< one way
  uint64_t bits_per_second = 10'000'000'000;              ///< each direction
  uint32_t queue_frames = 256;  ///< waiting for the wire: a NIC's ring, which makes TCP wait
  uint32_t router_frames = 0;   ///< a router's queue behind it loses what is too much; 0: none
  double loss = 0;              ///< of the frames from the initiator that carry data
  double split = 0;             ///< of the same: cut in two by a middlebox, anywhere
  uint64_t seed = 1;
  tcp::Config tcp;  ///< of both ends
};

/// What went one way over the wire.
struct Tally {
  uint64_t frames = 0;
  uint64_t data_frames = 0;
  uint64_t acks = 0;         ///< frames without data
  uint64_t payload = 0;      ///< TCP payload octets
  uint64_t wire_octets = 0;  ///< everything, as long as the wire is busy with it
  uint64_t lost = 0;
  uint64_t queue_lost = 0;  ///< of these: the router's queue was full
  uint64_t split = 0;
};

/// A frame underway.
struct Frame {
  std::vector<uint8_t> tcp;
  base::Now arrival{};

  [[nodiscard]] uint32_t header() const { return (tcp[wire::kTcpDataOffsetAt] >> 4) * 4u; }
  [[nodiscard]] uint32_t payload() const { return static_cast<uint32_t>(tcp.size()) - header(); }
  [[nodiscard]] uint16_t source_port() const {
    return base::load_be16(&tcp[wire::kTcpSourcePortAt]);
  }
};

class Path {
 public:
  explicit Path(const PathConfig& config);
  ~Path();
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;

  [[nodiscard]] tcp::Stack& stack(uint32_t end) { return ends_[end]->stack; }
  [[nodiscard]] IpAddress address(uint32_t end) const { return IpAddress::v4(0x0a000001u + end); }
  /// Counts what `end` has sent.
  [[nodiscard]] const Tally& tally(uint32_t end) const { return ends_[end]->tally; }
  [[nodiscard]] base::Now now() const { return now_; }

  /// Lets time pass until `done`, or `limit` is over, or nothing will happen. \return done()
  bool run_until(const std::function<bool()>& done, base::Duration limit);
  void run_for(base::Duration span) {
    run_until([] { return false; }, span);
  }

  /// Called behind each data frame that the responder has taken.
  std::function<void(const Frame&)> received;
  /// The fate of a data frame from the initiator, before the seeded ones. True: it is lost.
  std::function<bool(const Frame&)> loses;
  /// The second half of what was cut is lost.
  std::function<bool()> loses_half;
  /// Where the middlebox cuts a data frame from the initiator, payload octets; 0: as seeded.
  std::function<uint32_t(const Frame&)> cuts;

 private:
  class Egress;
  struct End {
    End(Path& path, uint32_t index);
    ~End();
    std::unique_ptr<Egress> egress;
    tcp::Stack stack;
    Tally tally;
    std::deque<Frame> in_flight;    // what it has sent, in order
    std::deque<base::Now> waiting;  // departures of what waits for the wire
    base::Now wire_free{};
  };

  void carry(uint32_t from, std::vector<uint8_t> tcp);
  void put_on_wire(uint32_t from, std::vector<uint8_t> tcp);
  [[nodiscard]] bool has_room(uint32_t from);
  bool deliver();
  [[nodiscard]] base::Now next_event() const;
  std::vector<uint8_t> take_buffer();

  PathConfig config_;
  base::Prng prng_;
  base::Now now_ = base::from_nanos(1'000'000'000);
  std::array<std::unique_ptr<End>, 2> ends_;
  std::vector<std::vector<uint8_t>> buffers_;  // used again
};

}  // namespace rnic::experiment
