/// \file
/// ConnectRules: what may be asked of a connection, and the options of its start-up, which the
/// application's options, the configuration and the queue pair make together.
#pragma once

#include "device/config.hpp"
#include "device/queue_pair.hpp"
#include "framing/start.hpp"
#include "rnic/connection.hpp"

namespace rnic::device {

/// Every refusal is one sentence that says what to do.
class ConnectRules {
 public:
  /// \param config outlives it
  explicit ConnectRules(const DeviceConfig& config) : config_(config) {}
  /// Says whether the device has a stack of its own. Called once, before any check.
  void set_own_stack(bool own) { own_stack_ = own; }

  [[nodiscard]] Status check_framing(Framing framing) const;
  [[nodiscard]] Status check_options(const QueuePair& qp, const ConnectOptions& options) const;
  /// Checks the length of the private data that a Request would carry.
  [[nodiscard]] Status check_request(base::ByteView private_data,
                                     const framing::StartOptions& start_options) const;
  [[nodiscard]] static Status check_private_data(base::ByteView private_data, size_t most,
                                                 uint8_t revision);
  [[nodiscard]] framing::StartOptions make_start_options(const ConnectOptions& options,
                                                         const QueuePairSpec& spec) const;

 private:
  const DeviceConfig& config_;
  bool own_stack_ = false;
};

}  // namespace rnic::device
