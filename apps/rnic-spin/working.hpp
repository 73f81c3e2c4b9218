/// \file
/// Connections, and the work that is posted to them.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "rnic-spin/arrivals.hpp"
#include "rnic-spin/world.hpp"

namespace rnic::spin {

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
  explicit Working(World& world) : world_(world) {}

  void send(Side& side);
  void write(Side& side);
  void read(Side& side);
  void atomic(Side& side);
  void local(Side& side);
  void bad(Side& side);
  void refused(Side& side);
  void receive(Side& side);
  void receive_shared(Side& side);

 private:
  /// Memory of a peer.
  struct Reach {
    RemoteAddress begin;
    size_t from = 0;  ///< of the part, as Region
    size_t length = 0;
  };

  void post(Pair& pair, SendRequest request, Posted posted);
  /// Pieces of local memory for octets of a part; nothing where no region has them.
  [[nodiscard]] std::optional<SgeList> pieces(const Side& side, const Domain& domain, Place place,
                                              size_t from, size_t length);
  [[nodiscard]] std::optional<Reach> reach(const Side& side, const Pair& pair, Place place,
                                           AccessSet access);
  [[nodiscard]] bool peer_receives(const Side& side, const Pair& pair) const;

  World& world_;
};

}  // namespace rnic::spin
