/// \file
/// Connections, and the work that is posted to them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "rnic-spin/arrivals.hpp"
#include "rnic-spin/posting.hpp"
#include "rnic-spin/world.hpp"

namespace rnic::spin {

/// What a peer is told of a queue pair when it is connected.
[[nodiscard]] std::array<uint8_t, 4> token_of(const Pair& pair);

/// Starts, answers and ends connections.
class Connecting {
 public:
  Connecting(World& world, Arrivals& arrivals) : world_(world), arrivals_(arrivals) {}

  void connect(Side& side);
  /// Connects from a port that is reserved.
  void connect_reserved(Side& side);
  void answer(Side& side);
  void close(Side& side);
  void reset(Side& side);
  void to_idle(Side& side);
  void ask(Side& side);
  void abort(Side& side);
  void choose_tcp(Side& side);

 private:
  /// What a peer listens on, or rarely what nobody does.
  [[nodiscard]] Endpoint any_remote(const Side& side);
  /// A queue pair of the listener's owner; rarely another's.
  [[nodiscard]] std::shared_ptr<Pair> any_answering(const Side& side, const Asked& asked);
  /// \return whether the request has found its answer
  [[nodiscard]] bool accept(Pair& pair, const Asked& asked);

  World& world_;
  Arrivals& arrivals_;
};

/// Posts requests: mostly such that can be carried out, and some of each kind that cannot.
class Working {
 public:
  Working(World& world, Arrivals& arrivals, Posting& posting)
      : world_(world), arrivals_(arrivals), posting_(posting) {}

  void send(Side& side);
  void write(Side& side);
  /// Several Writes with one doorbell; some lists have one that is refused.
  void write_list(Side& side);
  void read(Side& side);
  void atomic(Side& side);
  void local(Side& side);
  void bad(Side& side);
  void refused(Side& side);
  void receive(Side& side);
  /// Posts the receives that messages wait for; they have to come.
  void relieve(Side& side);
  void receive_shared(Side& side);

 private:
  void receive(Side& side, Pair& pair);
  /// \return whether there is a receive for each message that is on its way
  bool relieve(Side& side, Pair& pair);

  World& world_;
  Arrivals& arrivals_;
  Posting& posting_;
};

}  // namespace rnic::spin
