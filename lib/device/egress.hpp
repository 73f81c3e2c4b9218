/// \file
/// TCP's way out: tcp::Egress over a net::Interface.
#pragma once

#include "net/net.hpp"
#include "tcp/tcp.hpp"

namespace rnic::device {

class Egress final : public tcp::Egress {
 public:
  explicit Egress(net::Interface& interface) : interface_(interface) {}

  bool begin(const IpAddress& source, const IpAddress& destination, tcp::TxSlot& slot,
             base::Now now) override;
  void send(tcp::TxSlot& slot, uint32_t length, base::Now now) override;
  void cancel(tcp::TxSlot& slot) override;
  bool begin_run(const IpAddress& source, const IpAddress& destination, uint32_t most,
                 tcp::TxRun& run, base::Now now) override;
  void send_run(tcp::TxRun& run, uint32_t complete, base::Now now) override;
  void hand_over(base::Now now) override { interface_.hand_over(now); }
  [[nodiscard]] uint32_t path_mtu(IpAddress destination, base::Now now) const override;
  [[nodiscard]] uint32_t link_mtu(IpAddress destination) const override;
  void reduce_path_mtu(IpAddress destination, uint32_t mtu, base::Now now) override;
  void doubt_path(IpAddress destination, base::Now now) override;
  [[nodiscard]] bool lands_here(const Endpoint& local, const Endpoint& remote) const override;

 private:
  net::Interface& interface_;
  net::TxFrame frame_;  // the one segment being built
  net::TxRun run_;      // or the segments being built
  bool building_ = false;
};

}  // namespace rnic::device
