/// \file
/// ErrorRelay: hands the network layer's ICMP errors to the TCP that they are about.
#pragma once

#include "net/net.hpp"
#include "tcp/tcp.hpp"

namespace rnic::device {

class ErrorRelay final : public net::IcmpErrorUser {
 public:
  explicit ErrorRelay(tcp::Stack& stack) : stack_(stack) {}

  void icmp_error(const llp::IcmpError& error, base::Now now) override {
    stack_.icmp_error(error, now);
  }

 private:
  tcp::Stack& stack_;
};

}  // namespace rnic::device
