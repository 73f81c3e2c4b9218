#include "tcp/syn_terms.hpp"

#include <algorithm>

#include "tcp/mss.hpp"

namespace rnic::tcp {

uint32_t write_syn_options(uint8_t* out, const SynOptions& options) {
  wire::TcpOptionWriter writer(out);
  writer.mss(options.mss);
  if (options.sack != options.timestamps.has_value()) {
    writer.nop();
    writer.nop();
  }
  if (options.sack) writer.sack_permitted();
  if (options.timestamps) writer.timestamps(*options.timestamps);
  if (options.window_scale) writer.window_scale(*options.window_scale);
  return writer.finish();
}

uint8_t SynTerms::window_shift() const {
  uint8_t shift = 0;
  while (shift < kMaxShift && receive_window_ >> shift > 0xffff) ++shift;
  return shift;
}

uint16_t SynTerms::window(const llp::Acceptor* acceptor, const llp::StreamUser* user,
                          const Endpoint& remote) const {
  uint32_t window = std::min<uint32_t>(receive_window_, 0xffff);
  if (user != nullptr) {
    window = std::min(window, user->receive_room());
  } else if (acceptor != nullptr) {
    window = std::min(window, acceptor->first_room(remote));
  }
  return static_cast<uint16_t>(window);
}

uint16_t SynTerms::mss(const IpAddress& peer, const ConnectionOptions& options) const {
  // RFC 6691: options are not deducted. RFC 1191 s.3.1: the path MTU towards the peer says nothing
  // about the path from the peer, so the MTU of the link counts.
  const uint32_t mss = mss_of_path(egress_.link_mtu(peer), peer);
  const uint32_t limit = options.max_segment != 0 ? options.max_segment : 0xffffu;
  return static_cast<uint16_t>(std::min({mss, limit, 0xffffu}));
}

}  // namespace rnic::tcp
