/// \file
/// What one connection finds out of its path's MTU: from routers (RFC 1191, RFC 8201, RFC 5927),
/// and by probes of its own (RFC 4821, RFC 8899).
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.hpp"
#include "rnic/address.hpp"
#include "tcp/config.hpp"
#include "tcp/prediction.hpp"
#include "tcp/tcb.hpp"
#include "tcp/tcp.hpp"

namespace rnic::tcp {

/// Sizes are octets of an IP packet.
class PathMtuDiscovery {
 public:
  /// All of them outlive this. \param prediction ends where a probe is in flight
  PathMtuDiscovery(const Tcb& tcb, Prediction& prediction) : tcb_(tcb), prediction_(prediction) {}

  /// What a packet-too-big is good for.
  enum class Verdict : uint8_t {
    Ignored,
    Unverified,  ///< kept until a segment times out, too (RFC 5927 s.7.2)
    Believed,
  };
  /// \param peer where the packet was going. \param packet a full segment of now.
  /// \param outstanding it quotes what is in flight. \param mtu set when it is believed
  [[nodiscard]] Verdict judge(const IcmpError& error, const IpAddress& peer, uint32_t packet,
                              bool outstanding, uint32_t& mtu);
  /// A segment has timed out. \return what an unverified message said, when it is believed now
  [[nodiscard]] std::optional<uint32_t> take_unverified(uint32_t packet);

  /// Larger packets are not known to pass; 0: the path's MTU holds.
  [[nodiscard]] uint32_t limit() const { return limit_; }
  /// Something is tried beyond limit().
  [[nodiscard]] bool searching() const { return searching_; }
  void start_search(uint32_t base);
  /// Packets of `size` octets vanish, and nobody says why (RFC 4821 s.7.7).
  /// \return a smaller size is tried from here on: limit() has changed
  bool suspect_black_hole(uint32_t size, const Endpoint& peer, base::Now now);
  /// \param most that may pass. \return what to try next; 0: the search is over
  [[nodiscard]] uint32_t next_size(uint32_t most) const;
  /// It is: the path may change (RFC 8899 s.5.1.1, PMTU_RAISE_TIMER).
  void rest(base::Now until);
  /// It is time for a probe, and none is in flight.
  [[nodiscard]] bool may_probe(base::Now now) const { return !probing() && now >= next_at_; }

  /// A probe is in flight.
  [[nodiscard]] bool probing() const { return probe_end_ != 0; }
  /// Its first octet.
  [[nodiscard]] uint64_t probe_begin() const { return probe_begin_; }
  [[nodiscard]] bool probe_arrived() const { return tcb_.snd_una >= probe_end_; }
  void probe_sent(uint32_t size, uint64_t begin);
  /// \param path_mtu what routers say
  void probe_confirmed(uint32_t path_mtu, base::Now now);
  /// \param next_at when another one may go
  void probe_lost(base::Now next_at);
  /// What is in flight goes in smaller packets.
  void lowered() { prediction_.end(); }

  /// The least a path has.
  [[nodiscard]] static uint32_t least_mtu(const IpAddress& address) {
    return address.is_v4() ? 68 : 1280;
  }
  /// RFC 4821 s.7.2: small enough for nearly every path.
  [[nodiscard]] static uint32_t base_mtu(const IpAddress& address) {
    return address.is_v4() ? 1024 : 1280;
  }
  void validate() const;

 private:
  static constexpr uint32_t kProbeFailures = 2;  // of one size; the first may be chance
  static constexpr uint32_t kSearchStep = 32;    // a search ends when less than this is left

  const Tcb& tcb_;
  Prediction& prediction_;
  uint32_t limit_ = 0;
  uint32_t high_ = UINT32_MAX;  // nothing above it is tried in this search
  uint32_t probed_ = 0;         // size of the probe in flight
  uint32_t failures_ = 0;       // of the size in question
  base::Now next_at_{};         // not before
  uint64_t probe_begin_ = 0;
  uint64_t probe_end_ = 0;   // 0: no probe in flight
  uint32_t unverified_ = 0;  // a packet-too-big's; 0: none
  bool searching_ = false;
  uint64_t unverified_una_ = 0;  // SND.UNA when it came
};

}  // namespace rnic::tcp
