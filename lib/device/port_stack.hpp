/// \file
/// TCP/IP of our own over a port, with the streaming sockets and framed streams that stand on it. A
/// device has it, or stands on another llp::Transport.
#pragma once

#include "device/config.hpp"
#include "device/counters.hpp"
#include "device/egress.hpp"
#include "device/error_relay.hpp"
#include "device/framed_socket.hpp"
#include "device/stream_socket.hpp"
#include "tcp/tcp.hpp"

namespace rnic::device {

struct PortStack {
  /// \param port, reassembler, counters outlive it
  PortStack(const DeviceConfig& config, port::Port& carrier, net::Reassembler* reassembler,
            DeviceCounters& counters, base::Now now)
      : port(carrier),
        interface(config.net, carrier, now, reassembler),
        egress(interface),
        stack(config.tcp, egress, config.secret, config.seed, now),
        error_relay(stack),
        streams(config.limits, stack, counters),
        framed(config.limits, stack, counters) {
    interface.set_error_user(&error_relay);
  }

  port::Port& port;
  net::Interface interface;
  Egress egress;
  tcp::Stack stack;
  ErrorRelay error_relay;
  StreamTable streams;
  FramedTable framed;
};

}  // namespace rnic::device
