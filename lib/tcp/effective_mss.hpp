/// \file
/// EMSS, the effective send MSS (Eff.snd.MSS, RFC 9293 s.3.7.1): payload octets of a full segment.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/check.hpp"
#include "tcp/connection_core.hpp"
#include "tcp/mss.hpp"
#include "wire/tcp.hpp"

namespace rnic::tcp {

/// EMSS follows from the path MTU, the MSS option of the peer, the options on every segment, and
/// the limit that the user sets.
class EffectiveMss {
 public:
  /// \param core outlives this
  explicit EffectiveMss(const ConnectionCore& core) : core_(core) {}

  [[nodiscard]] uint32_t octets() const { return emss_; }
  /// SendMSS: the peer's MSS option, or the default without one (MUST-15).
  void set_peer_mss(uint16_t mss) { peer_mss_ = mss; }
  /// The largest IP packet that the peer accepts.
  [[nodiscard]] uint32_t packet_limit_of_peer() const {
    return peer_mss_ + fixed_headers(core_.binding().remote.address);
  }
  /// Octets of the IP packet that carries a full segment.
  [[nodiscard]] uint32_t packet_octets() const {
    return emss_ + core_.tcb.header_length() - wire::kTcpHeaderMin +
           fixed_headers(core_.binding().remote.address);
  }
  /// Computes EMSS anew. \param limit packet size that the search of the path allows; 0: none.
  /// \return EMSS has changed
  bool follow(uint32_t limit, base::Now now) {
    const IpAddress& peer = core_.binding().remote.address;
    uint32_t mtu = core_.shared.out.path_mtu(peer, now);
    if (mtu == 0) return false;  // the route is gone for now: keep what we had
    if (limit != 0) mtu = std::min(mtu, limit);
    const uint32_t send_mss = std::min<uint32_t>(peer_mss_, mss_of_path(mtu, peer));
    uint32_t emss = send_mss - (core_.tcb.ts_ok ? wire::kTcpTimestampsPadded : 0);
    const uint16_t most = core_.binding().options.max_segment;
    if (most != 0) emss = std::min<uint32_t>(emss, most);
    if (emss == emss_) return false;
    emss_ = emss;
    return true;
  }
  /// Sets EMSS for one record (TUF draft s.5.1). \return the old value
  uint32_t replace(uint32_t emss) { return std::exchange(emss_, emss); }
  /// Checks that EMSS is positive and at most the peer's MSS, or at most the default, which EMSS
  /// keeps while there is no route.
  void validate() const {
    RNIC_CHECK(emss_ != 0 && emss_ <= std::max<uint32_t>(peer_mss_, kDefault));
  }

 private:
  static constexpr uint16_t kDefault = 536;

  const ConnectionCore& core_;
  uint32_t emss_ = kDefault;
  uint16_t peer_mss_ = kDefault;
};

}  // namespace rnic::tcp
