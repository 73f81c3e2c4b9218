/// \file
/// A port decorator with a machine on the path that makes the window smaller which a device offers:
/// what the peer of a small or slow receiver sees, one that takes its window back as well.
#pragma once

#include <cstdint>
#include <map>

#include "base/prng.hpp"
#include "port/port.hpp"

namespace rnic::simulation {

/// How windows are made smaller.
struct Squeeze {
  uint32_t least = 0;  ///< octets that are offered, at least; never 0 where more was offered
  uint32_t most = 0;   ///< octets that are offered, at most; 0: nothing is made smaller
  double change = 0;   ///< chance that a segment has another limit than the one before
  uint32_t after = 0;  ///< segments of a connection that pass as they are
};

class SqueezingPort final : public port::Port {
 public:
  /// \param scaling both ends offer window scaling
  SqueezingPort(port::Port& inner, const Squeeze& squeeze, bool scaling, uint64_t seed)
      : inner_(inner), squeeze_(squeeze), scaling_(scaling), prng_(seed) {}

  [[nodiscard]] const port::PortInfo& info() const override { return inner_.info(); }
  [[nodiscard]] const port::PortCounters& counters() const override { return inner_.counters(); }
  uint32_t rx_burst(std::span<port::Packet> out, base::Now now) override {
    return inner_.rx_burst(out, now);
  }
  bool alloc(std::span<port::Packet> out) override { return inner_.alloc(out); }
  uint32_t tx_burst(std::span<port::Packet> packets, base::Now now) override;
  void free(std::span<const port::Packet> packets) override { inner_.free(packets); }
  [[nodiscard]] base::Now next_deadline() const override { return inner_.next_deadline(); }

 private:
  struct Sender {
    uint32_t shift = 0;
    uint32_t segments = 0;
    uint32_t limit = 0;
  };

  void squeeze(port::Packet& packet);

  port::Port& inner_;
  const Squeeze squeeze_;
  const bool scaling_;
  base::Prng prng_;
  std::map<uint32_t, Sender> senders_;  // by both ports
};

}  // namespace rnic::simulation
