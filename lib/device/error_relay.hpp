/// \file
/// From the network layer's ICMP errors to the TCP they are about.
#pragma once

#include "net/net.hpp"
#include "tcp/tcp.hpp"

namespace rnic::device {

class ErrorRelay final : public net::IcmpErrorUser {
 public:
  explicit ErrorRelay(tcp::Stack& stack) : stack_(stack) {}

  void icmp_error(const net::IcmpErrorIn& error, base::Now now) override {
    stack_.icmp_error({.kind = kind_of(error.kind),
                       .mtu = error.mtu,
                       .quoted_length = error.quoted_length,
                       .source = error.source,
                       .destination = error.destination,
                       .tcp = error.l4},
                      now);
  }

 private:
  static tcp::IcmpError::Kind kind_of(net::IcmpErrorKind kind) {
    using From = net::IcmpErrorKind;
    using To = tcp::IcmpError::Kind;
    switch (kind) {
      case From::PacketTooBig: return To::PacketTooBig;
      case From::Hard: return To::Hard;
      case From::SourceQuench: return To::SourceQuench;
      case From::Soft: break;
    }
    return To::Soft;
  }

  tcp::Stack& stack_;
};

}  // namespace rnic::device
