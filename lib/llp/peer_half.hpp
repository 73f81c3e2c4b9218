/// \file
/// The peer's half of a stream, for the application side of a user with two threads.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/check.hpp"
#include "base/transitions.hpp"

namespace rnic::llp {

enum class PeerHalf : uint8_t {
  Awaited,   ///< the connection is not established yet
  Open,      ///< the connection is established, and octets may come
  Finished,  ///< the peer has closed its direction: no more octets come
};

/// The state does not change when a stream ends early: its user keeps the end apart.
inline constexpr base::Transitions<PeerHalf, PeerHalf::Finished> kPeerHalfTransitions{
    {PeerHalf::Awaited, {PeerHalf::Open}},
    {PeerHalf::Open, {PeerHalf::Finished}},
};

/// The owner's thread writes the state, and any thread reads it. A thread that sees a state also
/// sees everything that the owner wrote before setting it.
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
