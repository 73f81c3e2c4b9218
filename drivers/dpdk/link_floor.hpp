/// \file
/// The floor under the goodput between two processes: the frames of the path floor, over a device
/// whose other end is another process, without a protocol.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/fail.hpp"
#include "base/time.hpp"

namespace rnic::dpdk {

/// One end. Its process is either the sender or the receiver.
class LinkFloor {
 public:
  struct Options {
    std::string port;            ///< as for open_port()
    uint32_t mtu = 1500;         ///< octets, the same at both ends
    uint64_t region = 1u << 20;  ///< octets of source and of target, the same at both ends
  };

  /// Frames that have reached the receiver, in memory that both processes have.
  struct Progress {
    alignas(128) std::atomic<uint64_t> received{0};
  };

  /// Needs Eal::init(). \param progress outlives it
  static Result<std::unique_ptr<LinkFloor>> create(const Options& options, Progress& progress);
  ~LinkFloor();

  /// \return whether the other end is there
  [[nodiscard]] bool is_up() const;
  /// The sender: moves payload for `duration`, a share of it by each of PathFloor::kBursts and with
  /// fewer and more of them on their way, while the receiver calls receive(). \return Gb/s of
  /// payload octets checked and placed, in the best window (BestWindow); TimedOut: frames were lost
  Result<double> send(base::Duration duration);
  /// The receiver: checks and places what has come.
  void receive();

  /// The receiver. \return whether every frame so far was right, and the target equals the source
  [[nodiscard]] bool verified() const;
  /// "update avx2, copy avx2"
  [[nodiscard]] std::string kernels() const;

 private:
  LinkFloor();
  class Rig;
  std::unique_ptr<Rig> rig_;
};

}  // namespace rnic::dpdk
