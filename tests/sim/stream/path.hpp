/// \file
/// One direction of a hostile path, in virtual time: a middlebox that cuts and joins segments, then
/// loss, damage and copies, then a bottleneck with a queue, then delay.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "base/prng.hpp"
#include "stream/datagram.hpp"
#include "stream/plan.hpp"

namespace rnic::simulation {

class Path {
 public:
  using Deliver = std::function<void(Datagram&&, base::Now)>;
  /// A router could not pass a packet on: `mtu` is what would fit.
  using TooBig = std::function<void(const Datagram&, uint32_t mtu, base::Now)>;

  struct Counters {
    uint64_t packets = 0;
    uint64_t dropped = 0;
    uint64_t reordered = 0;
    uint64_t duplicated = 0;
    uint64_t corrupted = 0;
    uint64_t cut = 0;
    uint64_t joined = 0;
    uint64_t marked = 0;
    uint64_t too_big = 0;
  };

  Path(const PathPlan& plan, uint64_t seed, Deliver deliver)
      : plan_(plan), prng_(seed), deliver_(std::move(deliver)) {}

  void send(Datagram&& d, base::Now now);
  /// Hands over what has arrived.
  void run(base::Now now);
  [[nodiscard]] base::Now next_deadline() const;
  [[nodiscard]] bool empty() const { return flights_.empty() && !held_; }

  /// From now on; `tell` is asked about what does not fit (empty: a black hole).
  void set_mtu(uint32_t mtu, TooBig tell) {
    mtu_ = mtu;
    too_big_ = std::move(tell);
  }
  [[nodiscard]] const Counters& counters() const { return counters_; }

 private:
  bool join(const Datagram& d);
  void release_held(base::Now now);
  void cut(Datagram&& d, base::Now now);
  void weather(Datagram&& d, base::Now now);
  void damage(Datagram& d);
  bool opens_window(const Datagram& d);
  void queue(Datagram&& d, base::Now now);

  PathPlan plan_;
  base::Prng prng_;
  Deliver deliver_;
  TooBig too_big_;
  uint32_t mtu_ = 65'535;
  Counters counters_;
  std::optional<Datagram> held_;  // by the middlebox
  base::Now held_until_{};
  std::multimap<base::Now, Datagram> flights_;
  std::map<uint32_t, bool> closed_;  // by both ports: the last window was zero
  bool in_burst_ = false;
  base::Now burst_ends_{};
  base::Now wire_free_{};
  base::Now last_arrival_{};
};

}  // namespace rnic::simulation
