/// \file
/// Path MTU discovery of one connection: by messages of routers (RFC 1191, RFC 8201, RFC 5927) and
/// by probes of its own (RFC 4821, RFC 8899).
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.hpp"
#include "rnic/address.hpp"
#include "tcp/config.hpp"
#include "tcp/path_search_state.hpp"
#include "tcp/prediction.hpp"
#include "tcp/tcb.hpp"
#include "tcp/tcp.hpp"

namespace rnic::tcp {

/// Sizes are octets of an IP packet.
class PathMtuDiscovery {
 public:
  /// Both parameters outlive this. \param prediction is ended when a probe is sent or the size is
  /// lowered
  PathMtuDiscovery(const Tcb& tcb, Prediction& prediction) : tcb_(tcb), prediction_(prediction) {}

  /// The verdict on a packet-too-big message.
  enum class Verdict : uint8_t {
    Ignored,
    Unverified,  ///< believed only when a segment times out, too (RFC 5927 s.7.2)
    Believed,
  };
  /// \param peer the destination of the packet. \param packet the size of a full segment now.
  /// \param outstanding the message quotes data in flight. \param mtu set when it is believed
  [[nodiscard]] Verdict judge(const llp::IcmpError& error, const IpAddress& peer, uint32_t packet,
                              bool outstanding, uint32_t& mtu);
  /// A segment has timed out. \return the MTU of an unverified message that is believed now
  [[nodiscard]] std::optional<uint32_t> take_unverified(uint32_t packet);

  /// The largest packet that is known to pass; 0: the path MTU applies.
  [[nodiscard]] uint32_t limit() const { return limit_; }
  [[nodiscard]] PathSearchState state() const { return state_; }
  /// Sizes beyond limit() are probed, now or later.
  [[nodiscard]] bool enabled() const { return state_ != PathSearchState::Disabled; }
  void start_search(uint32_t base);
  /// Packets of `size` octets are lost without an ICMP message (RFC 4821 s.7.7). \return limit()
  /// has been lowered
  bool suspect_black_hole(uint32_t size, const Endpoint& peer, base::Now now);
  /// \param most the largest size that may pass. \return the next size to probe; 0: the search is
  /// over
  [[nodiscard]] uint32_t next_size(uint32_t most) const;
  /// The search is over until this time, since the path may change (RFC 8899 s.5.1.1,
  /// PMTU_RAISE_TIMER).
  void rest(base::Now until);
  /// A probe is due, and none is in flight.
  [[nodiscard]] bool may_probe(base::Now now) const { return !probing() && now >= next_at_; }

  /// A probe is in flight.
  [[nodiscard]] bool probing() const { return state_ == PathSearchState::Probing; }
  /// Stream offset of the first octet of the probe in flight.
  [[nodiscard]] uint64_t probe_begin() const { return probe_begin_; }
  [[nodiscard]] bool probe_arrived() const { return tcb_.snd_una >= probe_end_; }
  void probe_sent(uint32_t size, uint64_t begin);
  /// The probe has arrived. \param path_mtu the MTU known from messages of routers
  void probe_confirmed(uint32_t path_mtu, base::Now now);
  /// The probe was lost. \param next_at when another one may be sent
  void probe_lost(base::Now next_at);
  /// The packet size was lowered: data in flight is retransmitted in smaller packets.
  void lowered() { prediction_.end(); }

  /// The smallest MTU that a path may have.
  [[nodiscard]] static uint32_t least_mtu(const IpAddress& address) {
    return address.is_v4() ? 68 : 1280;
  }
  /// The size from which a search starts: nearly every path carries it (RFC 4821 s.7.2).
  [[nodiscard]] static uint32_t base_mtu(const IpAddress& address) {
    return address.is_v4() ? 1024 : 1280;
  }
  void validate() const;

 private:
  /// No larger size is tried, unless PMTU_RAISE_TIMER is over.
  [[nodiscard]] bool at_rest() const {
    return !enabled() || state_ == PathSearchState::SearchComplete;
  }
  void set_state(PathSearchState next);

  // A size does not pass when this many probes of it were lost; a single loss may be chance.
  static constexpr uint32_t kProbeFailures = 2;
  static constexpr uint32_t kSearchStep = 32;  // a search ends when less than this is left

  const Tcb& tcb_;
  Prediction& prediction_;
  uint32_t limit_ = 0;  // 0 in Disabled, and only there
  // No larger size is tried in this search. It is UINT32_MAX until a size has failed, hence in
  // Disabled and SearchComplete.
  uint32_t high_ = UINT32_MAX;
  uint32_t probed_ = 0;    // size of the probe in flight, not 0 in Probing
  uint32_t failures_ = 0;  // lost probes of the size in question; 0 in Disabled and SearchComplete
  base::Now next_at_{};    // no probe before this time; {} in Disabled
  // The probe in flight, of which octets were sent. Both are valid in Probing.
  uint64_t probe_begin_ = 0;
  uint64_t probe_end_ = 0;
  uint32_t unverified_ = 0;  // MTU of an unverified packet-too-big; 0: none
  PathSearchState state_ = PathSearchState::Disabled;
  uint64_t unverified_una_ = 0;  // SND.UNA when that message came
};

}  // namespace rnic::tcp
