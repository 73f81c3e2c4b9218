// What the parts of one connection have in core, for tests of one of them without a stack.
#pragma once

#include "shared_parts.hpp"
#include "tcp/connection.hpp"
#include "tcp/connection_core.hpp"

namespace rnic::testing {

/// Between the two ends of a RawPeer, with its sequence numbers.
struct CoreParts : SharedParts {
  explicit CoreParts(const tcp::Config& of = {}) : SharedParts(of) {
    binding.local = {RawPeer::kUs, RawPeer::kOurPort};
    binding.remote = {RawPeer::kPeer, RawPeer::kPeerPort};
    binding.user = &user;
    binding.options = tcp::ConnectionOptions(config);
    core.tcb.iss = base::Seq32(kIss);
    core.tcb.irs = base::Seq32(kIrs);
  }
  void establish() {
    core.life.open(tcp::State::SynReceived, now + seconds(60));
    core.life.establish();
  }
  /// Header prediction expects something.
  void predict() {
    core.prediction.begin(RawPeer::kPeerPort, RawPeer::kOurPort, core.tcb.ack_seq(),
                          core.tcb.header_length(), core.tcb.snd_wnd, core.tcb.snd_wind_shift);
  }

  base::Now now = base::from_nanos(1'000'000'000);
  RecordUser user{11, 22};
  tcp::Connection connection{shared};  // what a place in a list and a timer belong to; idle
  // As in a connection, which may write the binding and has the timers to give.
  struct Core : tcp::ConnectionCore {
    using ConnectionCore::binding_;
    using ConnectionCore::ConnectionCore;
    using ConnectionCore::timers_;
  };
  Core core{connection, shared};
  tcp::Binding& binding = core.binding_;
};

}  // namespace rnic::testing
