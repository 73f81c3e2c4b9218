/// \file
/// The peer's half of a stream, for the application side of a user with two threads.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/check.hpp"
#include "base/transitions.hpp"

namespace rnic::llp {

enum class PeerHalf : uint8_t {
  Awaited,   ///< the connection does not stand yet
  Open,      ///< it stands, and octets may come
  Finished,  ///< nothing comes behind what has come
};

/// A stream that ends early keeps what it was: the end is a fact of its own.
inline constexpr base::Transitions<PeerHalf, PeerHalf::Finished> kPeerHalfTransitions{
    {PeerHalf::Awaited, {PeerHalf::Open}},
    {PeerHalf::Open, {PeerHalf::Finished}},
};

/// The owner's thread writes it, any thread reads it. Who sees a state sees what the owner wrote
/// before.
class PeerHalfWord {
 public:
  void set(PeerHalf next) {
    RNIC_CHECK(kPeerHalfTransitions.allows(state_.load(std::memory_order_relaxed), next));
    state_.store(next, std::memory_order_release);
  }
  [[nodiscard]] PeerHalf state() const { return state_.load(std::memory_order_acquire); }
  [[nodiscard]] bool is_established() const { return state() != PeerHalf::Awaited; }
  [[nodiscard]] bool has_finished() const { return state() == PeerHalf::Finished; }

 private:
  std::atomic<PeerHalf> state_{PeerHalf::Awaited};
};

}  // namespace rnic::llp
