/// \file
/// How requests are posted, and the memory that they may name.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "rnic-spin/world.hpp"

namespace rnic::spin {

/// Memory of a peer.
struct Reach {
  RemoteAddress begin;
  size_t from = 0;  ///< of the part, as Region
  size_t length = 0;
};

/// A Write that is about to be posted.
struct Drafted {
  SendRequest request;
  Posted posted;
  Stretch target;  ///< of the peer, at the most
};

/// Posts requests to send queues, and notes what comes of them here and at the peer.
class Posting {
 public:
  explicit Posting(World& world) : world_(world) {}

  /// \param signaled in so many of 100 cases
  /// \return whether it was taken
  bool post(Pair& pair, SendRequest request, Posted posted, uint32_t signaled = 80);
  /// \param message but for what the other arguments tell
  void post_message(const Side& side, Pair& pair, const SendRequest& request, const Posted& posted,
                    Message message);
  /// \param target of the peer, at the most
  bool post_write(const Side& side, Pair& pair, const SendRequest& request, const Posted& posted,
                  const Stretch& target);
  /// As a list. Those of more than kMaxSge pieces are refused, and what comes behind one.
  void post_writes(const Side& side, Pair& pair, std::span<Drafted> list);
  bool post_read(const Side& side, Pair& pair, const SendRequest& request, Posted posted,
                 uint32_t signaled = 80);
  /// Posts a Read of no octets behind everything, whose completion says that all is placed.
  void read_nothing(Side& side, Pair& pair);

  [[nodiscard]] ImmediateData any_immediate();
  /// Pieces of local memory for octets of a part; nothing where no region has them.
  [[nodiscard]] std::optional<SgeList> pieces(const Side& side, const Domain& domain, Place place,
                                              size_t from, size_t length);
  [[nodiscard]] std::optional<Reach> reach(const Side& side, const Pair& pair, Place place,
                                           AccessSet access);
  [[nodiscard]] bool peer_receives(const Side& side, const Pair& pair) const;

 private:
  [[nodiscard]] std::shared_ptr<Grant> any_local(const Side& side, const Domain& domain,
                                                 Place place, const Stretch& what);

  World& world_;
};

}  // namespace rnic::spin
