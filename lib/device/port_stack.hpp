/// \file
/// PortStack: our own TCP/IP over a port, with the streaming sockets and framed streams on it. A
/// device has a PortStack, or stands on another llp::Transport.
#pragma once

#include <array>
#include <string>
#include <type_traits>

#include "device/burst_order.hpp"
#include "device/config.hpp"
#include "device/counters.hpp"
#include "device/egress.hpp"
#include "device/error_relay.hpp"
#include "device/framed_socket.hpp"
#include "device/kept_frames.hpp"
#include "device/link_watch.hpp"
#include "device/stream_socket.hpp"
#include "tcp/tcp.hpp"

namespace rnic::device {

// Doorbells of a device are numbered in this order: queue pairs, streaming sockets, framed streams,
// shared receive queues.
[[nodiscard]] inline uint32_t first_socket_doorbell(const Limits& limits) {
  return limits.max_qps + 1;
}
[[nodiscard]] inline uint32_t first_srq_doorbell(const Limits& limits) {
  return first_socket_doorbell(limits) + limits.max_streams + limits.max_framed_streams;
}
[[nodiscard]] inline uint32_t doorbells_of(const Limits& limits) {
  return first_srq_doorbell(limits) + limits.max_srqs + 1;  // their numbers begin at 1
}

/// The endpoint that a listener is filed under: `::` stands for an unspecified address of either
/// family.
[[nodiscard]] inline Endpoint listened_on(const Endpoint& local) {
  return local.address.is_unspecified() ? Endpoint{{}, local.port} : local;
}

struct PortStack {
  /// \param port, reassembler, counters outlive it
  PortStack(const DeviceConfig& config, port::Port& carrier, net::Reassembler* reassembler,
            DeviceCounters& counters, base::Now now)
      : name(config.name),
        port(carrier),
        interface(config.net, carrier, now, reassembler),
        egress(interface),
        stack(config.tcp, egress, config.secret, config.seed, now),
        error_relay(stack),
        streams(config.limits, first_socket_doorbell(config.limits), stack, counters),
        framed(config.limits, first_socket_doorbell(config.limits) + config.limits.max_streams,
               stack, counters),
        link(name, carrier, counters, now),
        order(config.order_bursts, counters),
        kept(carrier) {
    interface.set_error_user(&error_relay);
    stack.set_bursts(config.shortcuts);
  }
  ~PortStack() { port.free(std::span(burst).first(order.held())); }
  PortStack(const PortStack&) = delete;
  PortStack& operator=(const PortStack&) = delete;

  /// Our end of a connection with `remote`: the route to the peer decides which of our addresses
  /// speaks to it (RFC 9293 MUST-44).
  /// \param source the parts of our end that the application has chosen, in the peer's family
  [[nodiscard]] Result<Endpoint> local_towards(const Endpoint& remote,
                                               const Endpoint& source = {}) const;
  /// InvalidArgument: `local` is not an address of this device, and nobody could connect to it.
  /// \param call begins the text of the error
  [[nodiscard]] Status check_listen(const char* call, const Endpoint& local) const;
  template <class Kind>
  [[nodiscard]] SocketTable<Kind>& table() {
    if constexpr (std::is_same_v<Kind, StreamKind>) {
      return streams;
    } else {
      return framed;
    }
  }
  /// \return whether there is such a socket
  bool serve_doorbell(uint32_t number, base::Now now) {
    return streams.serve_doorbell(number, now) || framed.serve_doorbell(number, now);
  }
  /// Takes away sockets that nobody needs any more.
  void reap_sockets() {
    streams.reap();
    framed.reap();
  }
  void abort_sockets() {
    streams.abort_all();
    framed.abort_all();
  }
  void validate() {
    interface.validate();
    stack.validate();
    streams.validate();
    framed.validate();
    link.validate();
    order.validate();
  }
  [[nodiscard]] uint32_t live_sockets() const { return streams.live() + framed.live(); }

  const std::string name;  // the device's
  port::Port& port;
  net::Interface interface;
  Egress egress;
  tcp::Stack stack;
  ErrorRelay error_relay;
  StreamTable streams;
  FramedTable framed;
  LinkWatch link;
  BurstOrder order;
  /// Room for the frames of one burst, and before them those that wait, which alone it owns in
  /// between. To make it anew would cost a turn that receives nothing a quarter of its
  /// instructions.
  std::array<port::Packet, BurstOrder::kMost> burst;
  KeptFrames kept;
};

}  // namespace rnic::device
