/// \file
/// A host with one of our stacks: its port to the path, its applications, and its habits of
/// looking late, sleeping, and having no room.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/prng.hpp"
#include "device/egress.hpp"
#include "device/error_relay.hpp"
#include "net/net.hpp"
#include "stream/application.hpp"
#include "stream/datagram.hpp"
#include "stream/plan.hpp"
#include "stream/wire_port.hpp"
#include "tcp/tcp.hpp"
#include "verdict.hpp"

namespace rnic::simulation {

struct HostPlan {
  IpAddress address;
  IpAddress peer;
  uint32_t mtu = 1500;
  tcp::Config tcp;
  double port_full = 0;
  base::Duration poll_gap{0};
  double pause = 0;
  base::Duration pause_max{0};
  bool network = false;  ///< packets go through lib/net, frames and all
  uint64_t seed = 0;
};

class Host final : public tcp::Egress, public llp::Acceptor {
 public:
  using Send = std::function<void(Datagram&&, base::Now)>;
  /// A segment is about to be given to the stack.
  using Arriving = std::function<void(const Datagram&, base::Now)>;
  /// It has been.
  using Delivered = std::function<void(const Datagram&, Fate, base::Now)>;

  /// `send` gets what the stack sends; the others are told of a packet before and after the stack
  /// gets it.
  Host(const HostPlan& plan, Verdict& verdict, base::Now now, Send send, Arriving arriving,
       Delivered delivered);

  void receive(Datagram&& d);
  /// Everything that is due: packets, timers, applications, output. \return whether anything was
  /// done
  bool run(base::Now now);
  [[nodiscard]] base::Now next_deadline(base::Now now) const;
  /// An ICMP message; through lib/net as the packet that a router would send.
  void icmp(const llp::IcmpError& error, base::Now now);
  /// A packet that does not come over the path, at once.
  void inject(const Datagram& d, base::Now now);

  void expect(uint16_t remote_port, Application& application) {
    expected_[remote_port] = &application;
  }
  void connect(const Endpoint& local, const Endpoint& remote, Application& application,
               base::Now now);
  void add(Application& application) { applications_.push_back(&application); }
  void listen(uint16_t port);

  [[nodiscard]] tcp::Stack& stack() { return stack_; }
  /// Counts the invariants of the whole stack and of its users anew. run() asks for it after each
  /// segment, after the timers, after what was sent, and after the applications; whoever else gives
  /// the host something does it behind that. Each time it is done, unless the stack has more than
  /// kRecordsAnEvent records: then so much more seldom that an event costs no more.
  void validate() {
    if (++unrecounted_ < recount_after_) return;
    unrecounted_ = 0;
    recount_after_ = 1 + stack_.validate() / kRecordsAnEvent;
    if (network_ != nullptr) network_->interface.validate();
    for (const Application* application : applications_) application->validate();
  }
  [[nodiscard]] const tcp::Stack& stack() const { return stack_; }
  [[nodiscard]] bool idle() const {
    return inbox_.empty() && (network_ == nullptr || !network_->port.waiting());
  }
  /// Octets of a packet to the peer, as the stack is told.
  [[nodiscard]] uint32_t mtu(base::Now now) const { return path_mtu(peer_, now); }

  // tcp::Egress
  bool begin(const IpAddress& source, const IpAddress& destination, tcp::TxSlot& slot,
             base::Now now) override;
  void send(tcp::TxSlot& slot, uint32_t length, base::Now now) override;
  void cancel(tcp::TxSlot& slot) override;
  [[nodiscard]] uint32_t path_mtu(IpAddress to, base::Now now) const override {
    return network_ != nullptr ? network_->egress.path_mtu(to, now) : mtu_;
  }
  [[nodiscard]] uint32_t link_mtu(IpAddress to) const override {
    // Without lib/net the host knows one MTU only.
    return network_ != nullptr ? network_->egress.link_mtu(to) : mtu_;
  }
  void reduce_path_mtu(IpAddress to, uint32_t mtu, base::Now now) override {
    if (network_ != nullptr) return network_->egress.reduce_path_mtu(to, mtu, now);
    mtu_ = std::min(mtu_, mtu);
  }

  // llp::Acceptor
  llp::StreamUser* accept(llp::Stream& stream, const Endpoint& local, const Endpoint& remote,
                          base::Now now) override;
  [[nodiscard]] uint32_t first_room(const Endpoint& remote) const override;

 private:
  static constexpr uint64_t kRecordsAnEvent = 256;

  /// What is between the stack and the path when packets are frames.
  struct Network {
    Network(const HostPlan& plan, Verdict& verdict, const Send& send, base::Now now);
    WirePort port;
    net::Interface interface;
    device::Egress egress;
  };

  /// What became of segments. What is larger than the host's MTU never comes to the stack.
  struct Fates {
    uint64_t came = 0;
    uint64_t dropped = 0;
    uint64_t refused = 0;
  };
  [[nodiscard]] Fates fates() const;
  /// Gives a segment to the stack. \return what became of it
  [[nodiscard]] Fate offer(const Datagram& d, base::Now now);
  void sleep_maybe(base::Now now);
  void take_frames(base::Now now);

  const HostPlan plan_;
  Verdict& verdict_;
  Send send_;
  Arriving arriving_;
  Delivered delivered_;
  base::Prng prng_;
  uint32_t mtu_;
  std::vector<uint8_t> frame_;
  bool frame_open_ = false;
  IpAddress destination_;
  std::deque<Datagram> inbox_;
  base::Now next_poll_{};
  base::Now asleep_until_{};
  base::Now next_nap_{};
  bool refused_ = false;
  uint64_t unrecounted_ = 0;    // events since the last recount
  uint64_t recount_after_ = 1;  // events
  std::map<uint16_t, Application*> expected_;  // by the peer's port
  std::vector<Application*> applications_;
  std::unique_ptr<Network> network_;
  IpAddress peer_;
  tcp::Stack stack_;
  device::ErrorRelay relay_;
};

}  // namespace rnic::simulation
