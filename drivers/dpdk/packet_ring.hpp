/// \file
/// The transmit ring of a packet socket that net_af_packet has opened; private to the driver.
#pragma once

#include <linux/if_packet.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/time.hpp"

namespace rnic::dpdk {

/// Geometry of the ring, as it was told to net_af_packet.
struct PacketRingShape {
  uint32_t block = 0;   ///< octets of a block
  uint32_t frame = 0;   ///< octets of a frame with its header; divides a block
  uint32_t frames = 0;  ///< of each direction
};

/// If the interface below refuses a frame (for example a veth whose other end has a smaller MTU),
/// the kernel gives it back as not yet sent, and begins with it each time it is asked to send: no
/// frame behind it ever leaves (tpacket_snd() of Linux up to 6.18 at least). It does the same with
/// a frame that has become longer than the interface's MTU. DPDK does not report it. This class
/// maps the ring a second time, and turns such a frame into a short one of no protocol, which
/// nobody takes: it is lost, as it would be in a network.
class PacketRing {
 public:
  /// The ring of the one packet socket that was not there `before` the device was plugged
  /// (PortDescriptors::list()). nullptr: there is not exactly one, or it cannot be mapped; then
  /// nothing is watched.
  [[nodiscard]] static std::unique_ptr<PacketRing> find(const std::vector<int>& before,
                                                        const PacketRingShape& shape);
  ~PacketRing();
  PacketRing(const PacketRing&) = delete;
  PacketRing& operator=(const PacketRing&) = delete;

  struct Look {
    bool left = false;     ///< frames have left the ring
    bool waiting = false;  ///< the ring has frames that the interface refuses
    uint32_t dropped = 0;  ///< frames that this call has made short
    uint32_t longest = 0;  ///< octets of the longest of the dropped frames
    bool down = false;     ///< the link is down: the kernel swallows frames, or keeps them
  };
  /// Looks at the ring after a burst of which the device took `taken` frames. Frames that a link
  /// keeps because it is down stay: they leave when it is up.
  Look look(uint32_t taken, base::Now now);
  /// For port::Port::arm(): the socket itself, which is readable while the receive ring has frames.
  [[nodiscard]] int arm() const;

 private:
  PacketRing(int socket, const PacketRingShape& shape, uint8_t* memory);

  [[nodiscard]] tpacket2_hdr& frame(uint32_t index);
  /// \return whether the oldest frame has left, or is on its way
  [[nodiscard]] bool oldest_left();
  /// \return whether the frame before the oldest one is on its way
  [[nodiscard]] bool in_flight();
  bool advance();
  void kick() const;
  /// Makes the oldest frame a short one.
  void drop_oldest(Look& seen);
  void ask_for_link(base::Now now);

  int socket_;  // net_af_packet's own
  PacketRingShape shape_;
  uint8_t* memory_;       // both rings, the receive ring first
  uint32_t oldest_ = 0;   // index of the oldest frame that has not been seen to leave
  uint32_t pending_ = 0;  // frames from there on
  bool down_ = false;     // the kernel's answer about the link at asked_
  base::Now asked_{};
};

}  // namespace rnic::dpdk
