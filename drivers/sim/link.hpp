/// \file
/// A link with two ends in virtual time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "port/port.hpp"

namespace rnic::sim {

/// One direction of the wire.
struct Direction {
  base::Duration delay{0};  ///< from the last octet sent to its arrival
  uint64_t bits_per_second =
      0;  ///< 0: no limit. A frame occupies its octets plus 24 (FCS, gap, preamble)
  uint32_t queue_limit = 1024;  ///< frames waiting for the wire, the one being sent included
  bool drop_when_full =
      false;  ///< a router's queue: loses what is too much. Else: refuses, as a NIC
};

struct LinkConfig {
  Direction a_to_b;
  Direction b_to_a;
  uint32_t mtu = 1500;
  uint32_t slots = 4096;  ///< buffers of each end
  port::ChecksumMode checksum = port::ChecksumMode::Software;
  std::string name_a = "sim_a";
  std::string name_b = "sim_b";
  port::MacAddress mac_a{0x02, 0, 0, 0, 0, 0x0a};
  port::MacAddress mac_b{0x02, 0, 0, 0, 0, 0x0b};
};

class Link;
class SimPort;

/// A buffer of a pool.
struct Slot {
  SimPort* owner = nullptr;
  uint8_t* octets = nullptr;
  bool used = false;
};

/// One end. Frames cross by reference: a received buffer belongs to the other end's pool and
/// returns there when it is freed.
class SimPort final : public port::Port {
 public:
  [[nodiscard]] const port::PortInfo& info() const override { return info_; }
  [[nodiscard]] const port::PortCounters& counters() const override { return counters_; }
  uint32_t rx_burst(std::span<port::Packet> out, base::Now now) override;
  bool alloc(std::span<port::Packet> out) override;
  uint32_t tx_burst(std::span<port::Packet> packets, base::Now now) override;
  void free(std::span<const port::Packet> packets) override;
  std::optional<port::LinkState> link() override { return link_; }

  /// What the end says of its link from now on; at first it cannot tell. Frames cross as before.
  void set_link(port::LinkState state) { link_ = state; }

  /// The arrival of the earliest frame under way to this end.
  [[nodiscard]] base::Now next_deadline() const override;

  /// Buffers of this end's pool that are not in the pool: held by a user of either end, or
  /// underway.
  [[nodiscard]] uint32_t outstanding() const;
  /// Frames lost because this end's transmit queue was full (drop_when_full).
  [[nodiscard]] uint64_t queue_drops() const { return queue_drops_; }

 private:
  friend class Link;

  /// A frame on the wire.
  struct Flight {
    port::Packet packet;
    base::Now departure;
    base::Now arrival;
  };

  SimPort() = default;
  void set_up(const LinkConfig& config, bool is_a, SimPort* peer);
  void deliver_into(port::Packet& out, const Flight& flight);
  void send(const port::Packet& packet, base::Now now);
  [[nodiscard]] uint64_t waiting(base::Now now);
  [[nodiscard]] Flight& flight(uint64_t index) { return flights_[index % flights_.size()]; }
  [[nodiscard]] const Flight& flight(uint64_t index) const {
    return flights_[index % flights_.size()];
  }

  port::PortInfo info_;
  port::PortCounters counters_;
  SimPort* peer_ = nullptr;
  std::vector<uint8_t> memory_;
  std::vector<Slot> slots_;
  std::vector<Slot*> unused_;  // the pool: a stack, all of capacity slots
  Direction out_;              // towards the peer
  uint64_t queue_drops_ = 0;
  std::optional<port::LinkState> link_;

  // Frames sent by this end: a ring. Invariant: first_ <= departed_ <= end_, and arrivals do not
  // decrease.
  std::vector<Flight> flights_;
  uint64_t first_ = 0;     // the oldest that has not been received
  uint64_t departed_ = 0;  // the first that was still waiting for the wire when last looked
  uint64_t end_ = 0;
  base::Now wire_free_{};
  base::Now last_arrival_{};
};

/// The two ends and the wire between them.
class Link {
 public:
  explicit Link(const LinkConfig& config);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  [[nodiscard]] SimPort& a() { return a_; }
  [[nodiscard]] SimPort& b() { return b_; }

  /// Changes a direction from now on; frames under way arrive as planned, and no later frame
  /// overtakes them.
  void set_a_to_b(const Direction& direction) { a_.out_ = direction; }
  void set_b_to_a(const Direction& direction) { b_.out_ = direction; }

  /// Frames underway in both directions.
  [[nodiscard]] uint64_t in_flight() const;
  /// Buffers of both pools that users hold: 0 when everything was returned.
  [[nodiscard]] uint64_t held() const;

 private:
  SimPort a_;
  SimPort b_;
};

}  // namespace rnic::sim
