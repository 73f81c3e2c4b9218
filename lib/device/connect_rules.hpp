/// \file
/// ConnectRules: checks what the application asks of a connection, and combines its options, the
/// configuration and the queue pair into the options of the start-up.
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
  [[nodiscard]] Status check_listen(const ListenOptions& options) const;
  /// Checks a connect. \param options name a framing
  [[nodiscard]] Status check_connect(const QueuePair& qp, const ConnectOptions& options) const;
  /// Checks the options of an accept.
  [[nodiscard]] Status check_answer(const QueuePair& qp, const ConnectOptions& options) const;
  /// Checks the length of the private data that a Request would carry.
  [[nodiscard]] static Status check_request(base::ByteView private_data, const mpa::Config& config,
                                            const framing::StartOptions& start_options);
  [[nodiscard]] static Status check_private_data(base::ByteView private_data, size_t most,
                                                 uint8_t revision);
  [[nodiscard]] framing::StartOptions make_start_options(const ConnectOptions& options,
                                                         const QueuePairSpec& spec) const;
  // These give the device's configuration of a session, changed by what the policy sets.
  [[nodiscard]] mpa::Config mpa_config(const StartPolicy& policy) const;
  [[nodiscard]] tuf::Config tuf_config(const StartPolicy& policy) const;

  /// Checks that the values are in their ranges, and that the device's transport has such options.
  /// \param what begins the text of the error
  [[nodiscard]] Status check_tcp(const TcpOptions& options, const char* what) const;

 private:
  /// Checks the options that a connect and an accept have in common.
  [[nodiscard]] Status check_options(const QueuePair& qp, const ConnectOptions& options) const;
  [[nodiscard]] static Status check_policy(const StartPolicy& policy, Framing framing);
  const DeviceConfig& config_;
  bool own_stack_ = false;
};

}  // namespace rnic::device
