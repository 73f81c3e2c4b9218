/// \file
/// The network between simulated systems: connections, what of them is on its way, and the time.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/prng.hpp"
#include "base/time.hpp"
#include "rnic/address.hpp"
#include "sockets/faults.hpp"

namespace rnic::simulation {

class Kernel;

/// One end of a TCP connection, as its system has it.
struct TcpEnd {
  Kernel* kernel = nullptr;
  int descriptor = -1;  ///< -1: not accepted yet, or closed
  Endpoint local;
  uint32_t mss = 0;
  bool established = false;
  bool closed = false;    ///< by its owner
  bool dead = false;      ///< reset, or failed
  bool mute = false;      ///< its writes fail and nothing else happens
  bool finished = false;  ///< its owner sends no more
  bool peer_finished = false;
  bool starved = false;  ///< a write was cut: an event follows when there is room
  int error = 0;         ///< to be told once
  int first_told = 0;    ///< the first error that ended something here; 0: none
  bool linger_reset = false;

  std::deque<uint8_t> unsent;   ///< written, not yet arrived
  std::deque<uint8_t> arrived;  ///< from the peer, not yet read
  uint64_t arrived_in_all = 0;
  bool moving = false;        ///< octets of `unsent` are on their way
  base::Now receives_from{};  ///< when its owner installs its receiver
  bool untold = false;        ///< octets have arrived before that, and none since
};

/// The connector is end 0.
struct TcpLink {
  std::array<TcpEnd, 2> ends;
  uint32_t side_of_connector = 0;  ///< of the world
  bool broken = false;             ///< a fault has hit it: nobody expects it to work
  uint32_t attempts = 0;           ///< SYNs
};

class Network {
 public:
  /// Octets that came to an end's system, in order. \param to 0: the connector
  using Arrival = std::function<void(const TcpLink&, uint32_t to, uint64_t offset, base::ByteView)>;

  explicit Network(uint64_t seed) : prng_(seed) {}

  void attach(Kernel& kernel) { kernels_.push_back(&kernel); }
  void set_arrival(Arrival arrival) { arrival_ = std::move(arrival); }
  /// Lets everything happen that happens up to `now`.
  void advance(base::Now now);
  [[nodiscard]] base::Now now() const { return now_; }
  [[nodiscard]] base::Now next_event() const {
    return events_.empty() ? base::kNever : events_.begin()->first;
  }
  [[nodiscard]] base::Prng& prng() { return prng_; }

  void after(base::Duration delay, std::function<void()> what) {
    events_.emplace(now_ + delay, std::move(what));
  }

  // --- For kernels ---

  [[nodiscard]] Kernel* kernel_of(const IpAddress& address) const;
  /// Sends a SYN.
  void open(const std::shared_ptr<TcpLink>& link, const Endpoint& remote);
  /// Something is to be moved from this end: octets, or its FIN.
  void push(const std::shared_ptr<TcpLink>& link, uint32_t from);
  /// The end is gone, without a FIN: the other one is told.
  void reset(const std::shared_ptr<TcpLink>& link, uint32_t from);
  /// A fault has ended the connection. \param at where `error` is seen first
  void break_link(const std::shared_ptr<TcpLink>& link, uint32_t at, int error);
  void mark_broken(TcpLink& link);

  // --- For the world ---

  [[nodiscard]] bool may_break() const { return broken_ < most_broken_; }
  void set_most_broken(uint32_t most) { most_broken_ = most; }
  [[nodiscard]] uint32_t broken() const { return broken_; }
  /// The connection of this port of the connector.
  [[nodiscard]] std::shared_ptr<TcpLink> find(uint16_t connector_port) const;

 private:
  void arrive_syn(const std::shared_ptr<TcpLink>& link, const Endpoint& remote);
  void fail_open(const std::shared_ptr<TcpLink>& link, int error);
  void move(const std::shared_ptr<TcpLink>& link, uint32_t from);
  void arrive(TcpLink& link, uint32_t to, const std::vector<uint8_t>& octets);

  base::Prng prng_;
  base::Now now_{};
  std::multimap<base::Now, std::function<void()>> events_;
  std::vector<Kernel*> kernels_;
  std::map<uint16_t, std::shared_ptr<TcpLink>> links_;  // by the connector's port
  Arrival arrival_;
  uint32_t broken_ = 0;
  uint32_t most_broken_ = 0;
};

}  // namespace rnic::simulation
