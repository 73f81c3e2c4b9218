/// \file
/// One TCP in virtual time: the stack, its clock, and IP packets in and out.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "device/error_relay.hpp"
#include "net/routes.hpp"
#include "packetdrill/setup.hpp"
#include "tcp/tcp.hpp"

namespace rnic::packetdrill {

/// An IP packet that the stack sent.
struct SentPacket {
  base::Now at{};
  std::vector<uint8_t> octets;
};

/// A received IP packet; views into it.
struct IpPacket {
  IpAddress source;
  IpAddress destination;
  uint8_t protocol = 0;
  uint8_t traffic_class = 0;
  base::ByteView payload;
};

/// Time moves only by advance() and next_event(). Single-threaded.
class Host final : public tcp::Egress {
 public:
  explicit Host(const Setup& setup);

  [[nodiscard]] base::Now now() const { return now_; }
  [[nodiscard]] tcp::Stack& stack() { return stack_; }
  [[nodiscard]] std::deque<SentPacket>& sent() { return sent_; }

  /// One IP packet for the stack. False: no packet that it takes.
  bool receive(base::ByteView packet);
  /// Lets the stack send what it can, now.
  void settle();
  /// Fires every timer up to `until`; afterwards it is `until`.
  void advance(base::Now until);
  /// Moves to the next timer, but not beyond `limit`. False: there is none.
  bool next_event(base::Now limit);

  /// Called before the clock leaves [from, to), and after anything may have changed.
  std::function<void(base::Now from, base::Now to)> on_elapse;
  std::function<void()> on_settled;
  /// The sockets' own timers.
  std::function<base::Now()> user_deadline;
  std::function<void()> on_user_timer;

  uint32_t mtu;
  uint8_t tos = 0;  ///< of what is sent from now on, without the ECN bits

  // tcp::Egress
  bool begin(const IpAddress& source, const IpAddress& destination, tcp::TxSlot& slot,
             base::Now now) override;
  void send(tcp::TxSlot& slot, uint32_t length, base::Now now) override;
  void cancel(tcp::TxSlot&) override {}
  [[nodiscard]] uint32_t path_mtu(IpAddress destination, base::Now now) const override;
  [[nodiscard]] uint32_t link_mtu(IpAddress) const override { return mtu; }
  void reduce_path_mtu(IpAddress destination, uint32_t to, base::Now now) override;

 private:
  void elapse(base::Now to);
  void mark_push(uint8_t* segment, uint32_t length);
  void put_ipv4(uint32_t length, uint8_t traffic_class, uint8_t hops);
  void put_ipv6(uint32_t length, uint8_t traffic_class, uint8_t hops);
  bool receive_icmp(const IpPacket& ip);

  base::Now now_ = base::from_nanos(1'000'000'000'000);
  std::vector<uint8_t> frame_;
  IpAddress source_;
  IpAddress destination_;
  uint16_t next_id_ = 1;
  std::map<IpAddress, uint32_t> path_mtu_;  // where it is smaller than ours
  const std::set<uint32_t> push_at_;
  std::map<uint32_t, uint32_t> first_sequence_;  // by the two ports
  std::deque<SentPacket> sent_;
  const net::Routes routes_;  // which ICMP errors can be about something of ours
  tcp::Stack stack_;
  device::ErrorRelay relay_{stack_};
};

}  // namespace rnic::packetdrill
