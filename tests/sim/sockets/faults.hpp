/// \file
/// What goes wrong at the calls of a simulated system, and how often.
#pragma once

#include <cstdint>

#include "base/time.hpp"

namespace rnic::simulation {

/// Each number is the chance of one call, unless it says otherwise.
struct SystemFaults {
  // What a caller gets over.
  double interrupted = 0;  ///< EINTR
  double again = 0;        ///< EAGAIN although there is something; the event follows
  double partial = 0;      ///< recv(), sendmmsg(): less is moved than could be; an event follows
  double no_memory = 0;    ///< ENOBUFS or ENOMEM of sendmmsg(), and no event follows
  double unasked = 0;      ///< epoll_wait(): an event of nothing
  double late = 0;         ///< an event is told late
  base::Duration late_max{0};
  double options = 0;  ///< setsockopt(), getsockopt(), getsockname() fail

  // What fails the thing that is being set up; it can be tried again.
  double setup = 0;    ///< socket(), bind(), listen(), connect(), epoll_ctl(), accept4()
  double refusal = 0;  ///< the handshake of an active open fails

  // What ends a connection.
  double fatal = 0;          ///< recv(), sendmmsg(): an error of the network's
  double mute = 0;           ///< sendmmsg(): it can write no more, and its peer says nothing
  uint32_t most_broken = 0;  ///< connections that the four above may break, in all
};

/// One machine's TCP.
struct SystemPlan {
  uint32_t descriptors = 256;  ///< at once
  uint32_t send_buffer = 256u << 10;
  uint32_t receive_buffer = 256u << 10;
  uint32_t longest_piece = 64u << 10;  ///< octets that arrive at once, at most
  base::Duration delay{20'000};        ///< to the other machine
  /// A listener's program installs its receiver late, at most so long behind the first octets that
  /// it sends: what arrives before is kept, and told of when the next octets come (Linux siw).
  base::Duration late_receiver{0};
  uint32_t mss = 1448;
  double new_mss = 0;  ///< chance that the MSS is another one when it is asked for
  bool has_ipv6 = true;
  SystemFaults faults;
};

}  // namespace rnic::simulation
