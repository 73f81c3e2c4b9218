/// \file
/// Fragments kept by librte_ip_frag.
#pragma once

#include <cstdint>
#include <memory>

#include "base/fail.hpp"
#include "net/reassembler.hpp"

namespace rnic::dpdk {

struct ReassemblerOptions {
  uint32_t datagrams = 64;  ///< kept at once, 1 to 1024
  uint32_t mtu = 1500;      ///< octets of the largest fragment with its IP header
  base::Duration timeout = std::chrono::seconds(60);
};

/// Makes a reassembler for one thread. It copies fragments into buffers of its own, so that a flood
/// of them cannot empty a port's pool. Needs Eal::init().
[[nodiscard]] Result<std::unique_ptr<net::Reassembler>> make_reassembler(
    const ReassemblerOptions& options);

}  // namespace rnic::dpdk
