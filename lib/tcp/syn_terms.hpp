/// \file
/// The MSS, window and window scale that a SYN or SYN-ACK of a stack offers.
#pragma once

#include <cstdint>
#include <optional>

#include "llp/stream.hpp"
#include "llp/transport.hpp"
#include "rnic/address.hpp"
#include "tcp/config.hpp"
#include "tcp/connection_options.hpp"
#include "tcp/tcp.hpp"
#include "wire/tcp_options.hpp"

namespace rnic::tcp {

inline constexpr uint8_t kMaxShift = 14;  // RFC 7323 s.2.3

/// The options of our SYN or SYN-ACK.
struct SynOptions {
  uint16_t mss = 0;
  bool sack = false;
  std::optional<wire::TcpTimestamps> timestamps;
  std::optional<uint8_t> window_scale;
};
/// \return the length of the options
uint32_t write_syn_options(uint8_t* out, const SynOptions& options);

class SynTerms {
 public:
  /// \param egress outlives this
  SynTerms(const Config& config, const Egress& egress)
      : receive_window_(config.receive_window), egress_(egress) {}

  [[nodiscard]] uint8_t window_shift() const;
  /// The window, which is never scaled in a SYN (RFC 7323 s.2.2). \param acceptor the one of a
  /// passive open, or nullptr. \param user nullptr: no user has accepted the connection yet
  [[nodiscard]] uint16_t window(const llp::Acceptor* acceptor, const llp::StreamUser* user,
                                const Endpoint& remote) const;
  [[nodiscard]] uint16_t mss(const IpAddress& peer, const ConnectionOptions& options) const;

 private:
  const uint32_t receive_window_;
  const Egress& egress_;
};

}  // namespace rnic::tcp
