/// \file
/// The floor under every goodput figure: the data path of a software iWARP sender and receiver with
/// everything but the per-octet and per-packet minimum left out. It allocates an mbuf, writes
/// fixed-size headers, copies payload into the mbuf with CRC32C, passes a ring, reads the header,
/// checks the CRC32C, places the payload, and frees the mbuf. It has no protocol state, timers or
/// acknowledgements: a stack that does the same work cannot be faster.
///
/// It uses the fastest CRC and copy kernels that this CPU can run, whatever the stack uses.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "base/fail.hpp"
#include "base/time.hpp"

namespace rnic::dpdk {

class PathFloor {
 public:
  struct Options {
    uint32_t mtu = 1500;         ///< octets; a frame carries (mtu - 72) & ~3 octets of payload
    uint64_t region = 1u << 20;  ///< octets of source and of target
    bool two_threads = false;    ///< sender and receiver on a core each
    uint32_t sender_core = 0;    ///< only with two_threads
  };

  /// Needs Eal::init(). Chooses the kernels by a short measurement.
  static Result<std::unique_ptr<PathFloor>> create(const Options& options);
  ~PathFloor();

  /// Frames of a burst: a burst of many large ones does not fit into the caches, one of few pays
  /// more often for what a burst costs. Which is best depends on the CPU.
  static constexpr std::array<uint32_t, 3> kBursts{4, 8, 32};

  /// Moves payload for `duration`, a share of it by each of kBursts.
  /// \return Gb/s of payload octets checked and placed, in the best window (BestWindow)
  double run(base::Duration duration);

  /// \return whether every frame so far had a good CRC, and the target equals the source
  [[nodiscard]] bool verified() const;
  /// The kernels as a text: "update avx2, copy avx2".
  [[nodiscard]] std::string kernels() const;

 private:
  PathFloor();
  class Rig;
  std::unique_ptr<Rig> rig_;
};

}  // namespace rnic::dpdk
