/// \file
/// struct tcp_info in Linux's layout, from a ConnectionInfo.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "packetdrill/sockets.hpp"
#include "tcp/connection_info.hpp"

namespace rnic::packetdrill {

/// What the stack does not know itself, and the socket does.
struct SocketView {
  const SocketStream* stream = nullptr;
  Holdups holdups;
  base::Now now{};
  uint32_t advertised_mss = 0;
};

/// Writes `length` octets: the structure, cut or followed by zeros.
void fill_linux_tcp_info(const tcp::ConnectionInfo& info, const SocketView& view, void* out,
                         size_t length);

}  // namespace rnic::packetdrill
