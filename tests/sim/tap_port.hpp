/// \file
/// A port decorator that shows a listener every frame on its way in and out.
#pragma once

#include <cstdint>
#include <vector>

#include "port/port.hpp"

namespace rnic::simulation {

class FrameListener {
 public:
  virtual ~FrameListener() = default;
  /// The device has sent this frame (before the wire does anything to it).
  virtual void frame_sent(uint32_t side, base::ByteView frame, base::Now now) = 0;
  /// The device is given this frame (after all that the wire did to it).
  virtual void frame_received(uint32_t side, const port::Packet& frame, base::Now now) = 0;
};

class TapPort final : public port::Port {
 public:
  TapPort(port::Port& inner, uint32_t side, FrameListener& listener)
      : inner_(inner), side_(side), listener_(listener) {}

  [[nodiscard]] const port::PortInfo& info() const override { return inner_.info(); }
  [[nodiscard]] const port::PortCounters& counters() const override { return inner_.counters(); }
  uint32_t rx_burst(std::span<port::Packet> out, base::Now now) override {
    const uint32_t n = inner_.rx_burst(out, now);
    for (const port::Packet& packet : out.first(n)) listener_.frame_received(side_, packet, now);
    return n;
  }
  bool alloc(std::span<port::Packet> out) override { return inner_.alloc(out); }
  uint32_t tx_burst(std::span<port::Packet> packets, base::Now now) override {
    // A taken frame is no longer ours to read: look at a copy, one frame at a time.
    for (uint32_t i = 0; i < packets.size(); ++i) {
      const base::ByteView view = packets[i].view();
      copy_.assign(view.begin(), view.end());
      if (inner_.tx_burst(packets.subspan(i, 1), now) == 0) return i;
      listener_.frame_sent(side_, copy_, now);
    }
    return static_cast<uint32_t>(packets.size());
  }
  void free(std::span<const port::Packet> packets) override { inner_.free(packets); }
  [[nodiscard]] base::Now next_deadline() const override { return inner_.next_deadline(); }

 private:
  port::Port& inner_;
  uint32_t side_;
  FrameListener& listener_;
  std::vector<uint8_t> copy_;
};

}  // namespace rnic::simulation
