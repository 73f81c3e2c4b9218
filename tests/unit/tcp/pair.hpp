/// \file
/// One connection between the two stacks of a TcpLink, with a RecordUser at either end.
#pragma once

#include <gtest/gtest.h>

#include "support/record_user.hpp"
#include "support/tcp_link.hpp"

namespace rnic::testing {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

inline constexpr uint16_t kPort = 4420;

class Pair {
 public:
  explicit Pair(const tcp::Config& config_a = {}, const tcp::Config& config_b = {})
      : link(config_a, config_b) {
    acceptor.next.push_back(&b);
    RNIC_CHECK(link.b.listen({kAddressB, kPort}, acceptor).has_value());
  }

  void connect() {
    auto result = link.a.connect({kAddressA, 0}, {kAddressB, kPort}, a, link.now);
    RNIC_CHECK(result.has_value());
    a.stream = *result;
  }
  /// connect() and the handshake.
  bool open() {
    connect();
    return link.run_until([this] { return a.is_established && b.is_established; }, seconds(60));
  }
  /// Everything queued is released at both ends.
  bool drain(base::Duration time = seconds(60)) {
    return link.run_until(
        [this] {
          return a.to_send.empty() && b.to_send.empty() && a.released_to == a.pulled &&
                 b.released_to == b.pulled && a.ordered_to == b.pulled && b.ordered_to == a.pulled;
        },
        time);
  }
  /// Both close; waits until both have ended and TIME-WAIT is over.
  bool close(base::Duration time = seconds(60)) {
    if (a.stream != nullptr) a.stream->close();
    if (b.stream != nullptr) b.stream->close();
    return link.run_until(
        [this] {
          return a.how_ended && b.how_ended && link.a.live_connections() == 0 &&
                 link.b.live_connections() == 0;
        },
        time);
  }
  [[nodiscard]] bool everything_returned() const {
    return link.a.quiescent() && link.b.quiescent() && link.a.live_connections() == 0 &&
           link.b.live_connections() == 0;
  }

  TcpLink link;
  RecordUser a{11, 22};
  RecordUser b{22, 11};
  UserAcceptor acceptor;
};

}  // namespace rnic::testing
