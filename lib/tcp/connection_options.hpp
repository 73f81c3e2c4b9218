/// \file
/// The settings of a single connection; config.hpp has those of the stack.
#pragma once

#include <cstdint>

#include "base/fail.hpp"
#include "base/time.hpp"
#include "rnic/tcp_options.hpp"
#include "tcp/config.hpp"

namespace rnic::tcp {

/// Settings of one connection: given to connect(), to listen() for the connections accepted there,
/// or to Stack::set_options() while the connection lives. The defaults come from the Config.
struct ConnectionOptions {
  CongestionControl congestion_control = CongestionControl::Cubic;
  Ecn ecn = Ecn::Accept;  ///< RFC 3168; takes effect at the handshake
  bool pacing = false;    ///< spread a window over the round trip
  /// Hold back a segment that is not full while a smaller one is unacknowledged (RFC 9293 s.3.7.4,
  /// with the change of its appendix A.3). This applies to plain octets; records of a framing layer
  /// are never held back.
  bool nagle = false;
  /// Several small records may share a segment. Off: each record begins a segment of its own.
  bool pack_records = true;
  /// close() with received octets unread, and octets that arrive after close(), answer RST (RFC
  /// 9293 s.3.6.1, MAY-1). Otherwise they are received, acknowledged and handed up until the peer's
  /// FIN.
  bool half_duplex_close = false;
  /// close() ends our direction only: the peer may go on sending for as long as it answers. False:
  /// the user reads no more, and the peer's FIN has to come within Config::close_timeout.
  bool half_close = false;
  bool keep_alive = false;  ///< RFC 9293 s.3.8.4
  uint8_t dscp = 0;         ///< 0..63 (RFC 2474)
  uint8_t hop_limit = 0;    ///< TTL; 0: the interface's default
  /// Largest payload of a segment in octets; 0: the limit of the path and the peer.
  uint16_t max_segment = 0;
  uint32_t keep_alive_count = 9;  ///< probes without an answer before the end
  base::Duration keep_alive_idle{std::chrono::hours(2)};         ///< silence before the first probe
  base::Duration keep_alive_interval{std::chrono::seconds(75)};  ///< between probes
  base::Duration user_timeout{
      std::chrono::seconds(100)};  ///< R2: the longest time without progress

  ConnectionOptions() = default;
  explicit ConnectionOptions(const Config& config)
      : congestion_control(config.congestion_control),
        ecn(config.ecn),
        pacing(config.pacing),
        nagle(config.nagle),
        pack_records(config.pack_records),
        keep_alive(config.keep_alive),
        keep_alive_count(config.keep_alive_count),
        keep_alive_idle(config.keep_alive_idle),
        keep_alive_interval(config.keep_alive_interval),
        user_timeout(config.user_timeout) {}

  friend bool operator==(const ConnectionOptions&, const ConnectionOptions&) = default;
};

/// Options with those that `given` sets replaced. InvalidArgument names a time out of its range.
[[nodiscard]] Result<ConnectionOptions> merged(ConnectionOptions out, const TcpOptions& given);

/// InvalidArgument names the value that is out of range. \param call the name of the call that got
/// the options
[[nodiscard]] Status check(const ConnectionOptions& options, const char* call);

}  // namespace rnic::tcp
