/// \file
/// A host with one of our stacks: its port to the path, its applications, and its habits of
/// looking late, sleeping, and having no room.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "stream/application.hpp"
#include "stream/datagram.hpp"
#include "stream/plan.hpp"
#include "tcp/tcp.hpp"
#include "verdict.hpp"

namespace rnic::simulation {

struct HostPlan {
  llp::IpAddress address;
  uint32_t mtu = 1500;
  tcp::Config tcp;
  double port_full = 0;
  base::Duration poll_gap{0};
  double pause = 0;
  base::Duration pause_max{0};
  uint64_t seed = 0;
};

class Host final : public tcp::Egress, public llp::Acceptor {
 public:
  using Send = std::function<void(Datagram&&, base::Now)>;
  using Delivered = std::function<void(const Datagram&, base::Now)>;

  /// `send` gets what the stack sends; `delivered` is told of each packet right before the stack
  /// gets it.
  Host(const HostPlan& plan, Verdict& verdict, base::Now now, Send send, Delivered delivered);

  void receive(Datagram&& d);
  /// Everything that is due: packets, timers, applications, output. \return whether anything was
  /// done
  bool run(base::Now now);
  [[nodiscard]] base::Now next_deadline(base::Now now) const;
  void icmp(const tcp::IcmpError& error, base::Now now) { stack_.icmp_error(error, now); }
  /// A packet that does not come over the path, at once.
  void inject(const Datagram& d, base::Now now);

  void expect(uint16_t remote_port, Application& application) {
    expected_[remote_port] = &application;
  }
  void connect(const llp::Endpoint& local, const llp::Endpoint& remote, Application& application,
               base::Now now);
  void add(Application& application) { applications_.push_back(&application); }
  void listen(uint16_t port);

  [[nodiscard]] tcp::Stack& stack() { return stack_; }
  [[nodiscard]] const tcp::Stack& stack() const { return stack_; }
  [[nodiscard]] bool idle() const { return inbox_.empty(); }
  void set_mtu(uint32_t mtu) { mtu_ = mtu; }
  [[nodiscard]] uint32_t mtu() const { return mtu_; }

  // tcp::Egress
  bool begin(llp::IpAddress source, llp::IpAddress destination, tcp::TxSlot& slot) override;
  void send(tcp::TxSlot& slot, uint32_t length, base::Now now) override;
  void cancel(tcp::TxSlot& slot) override;
  [[nodiscard]] uint32_t path_mtu(llp::IpAddress) const override { return mtu_; }
  void reduce_path_mtu(llp::IpAddress, uint32_t mtu, base::Now) override {
    mtu_ = std::min(mtu_, mtu);
  }

  // llp::Acceptor
  llp::StreamUser* accept(llp::Stream& stream, const llp::Endpoint& local,
                          const llp::Endpoint& remote, base::Now now) override;

 private:
  void sleep_maybe(base::Now now);

  const HostPlan plan_;
  Verdict& verdict_;
  Send send_;
  Delivered delivered_;
  base::Prng prng_;
  uint32_t mtu_;
  std::vector<uint8_t> frame_;
  bool frame_open_ = false;
  llp::IpAddress destination_;
  std::deque<Datagram> inbox_;
  base::Now next_poll_{};
  base::Now asleep_until_{};
  base::Now next_nap_{};
  bool refused_ = false;
  std::map<uint16_t, Application*> expected_;  // by the peer's port
  std::vector<Application*> applications_;
  tcp::Stack stack_;
};

}  // namespace rnic::simulation
