/// \file
/// Connections in TIME-WAIT (RFC 9293 s.3.6.1), in 64 octets each: once both FINs are acknowledged
/// a connection needs no more than its 4-tuple, two sequence numbers and the peer's last timestamp.
#pragma once

#include <array>
#include <cstdint>

#include "base/seq32.hpp"
#include "base/time.hpp"
#include "base/zero_array.hpp"
#include "rnic/address.hpp"
#include "tcp/isn.hpp"

namespace rnic::tcp {

/// One connection in TIME-WAIT.
class TimeWaitEntry {
 public:
  [[nodiscard]] bool is(const Endpoint& local, const Endpoint& remote) const {
    return local_port_ == local.port && remote_port_ == remote.port &&
           addresses_ == packed(local.address, remote.address);
  }
  [[nodiscard]] Endpoint local() const { return {address(0), local_port_}; }
  [[nodiscard]] Endpoint remote() const { return {address(4), remote_port_}; }

  base::Seq32 snd_nxt;     ///< behind our FIN
  base::Seq32 rcv_nxt;     ///< behind the peer's FIN
  uint32_t ts_recent = 0;  ///< the peer's last timestamp
  uint16_t window = 0;     ///< as last advertised, scaled
  uint8_t traffic_class = 0;
  uint8_t ts_ok : 1 = 0;
  uint8_t wind_shift : 7 = 0;  ///< of `window`

 private:
  friend class TimeWaitTable;

  using Addresses = std::array<uint32_t, 8>;  // 4-octet units: no padding behind the entry

  static Addresses packed(const IpAddress& a, const IpAddress& b) {
    const auto word = [](uint64_t v, int shift) { return static_cast<uint32_t>(v >> shift); };
    return {word(a.high(), 32), word(a.high(), 0), word(a.low(), 32), word(a.low(), 0),
            word(b.high(), 32), word(b.high(), 0), word(b.low(), 32), word(b.low(), 0)};
  }
  [[nodiscard]] IpAddress address(size_t at) const {
    return {uint64_t{addresses_[at]} << 32 | addresses_[at + 1],
            uint64_t{addresses_[at + 2]} << 32 | addresses_[at + 3]};
  }
  void name(const Endpoint& local, const Endpoint& remote) {
    addresses_ = packed(local.address, remote.address);
    local_port_ = local.port;
    remote_port_ = remote.port;
  }
  [[nodiscard]] bool gone() const { return remote_port_ == 0; }

  Addresses addresses_{};
  uint16_t local_port_ = 0;
  uint16_t remote_port_ = 0;  // 0: erased, and the place is reused when the ring comes to it
  uint32_t expires_ms_ = 0;
  uint32_t next_ = 0;  // bit 31: the time was restarted; other bits: link of the bucket's chain
};

/// A bounded table, in which a new entry displaces the oldest. Entries stand in a ring in the order
/// in which their time began, so that one timer serves all of them.
class TimeWaitTable {
 public:
  /// \param time 2 MSL.
  TimeWaitTable(uint32_t capacity, base::Duration time, const Secret& secret);

  /// \return true when the oldest entry was displaced.
  bool add(const Endpoint& local, const Endpoint& remote, const TimeWaitEntry& entry,
           base::Now now);
  /// nullptr: there is no such entry. The pointer is valid until the next add(), erase() or
  /// expire().
  [[nodiscard]] TimeWaitEntry* find(const Endpoint& local, const Endpoint& remote);
  /// The peer has retransmitted its FIN: 2 MSL start anew.
  void restart(TimeWaitEntry& entry, base::Now now);
  void erase(TimeWaitEntry& entry);
  void expire(base::Now now);

  /// The time at which expire() has something to do; kNever when the table is empty.
  [[nodiscard]] base::Now next_deadline(base::Now now) const;
  /// Our timestamp clock has ticked since the entry's time began, which is when the last segment of
  /// the old incarnation may have been sent.
  [[nodiscard]] bool clock_ticked(const TimeWaitEntry& entry, base::Now now) const {
    return static_cast<int32_t>(milliseconds_of(now) - (entry.expires_ms_ - time_ms_)) > 0;
  }

  [[nodiscard]] uint32_t live() const { return live_; }
  void validate() const;
  [[nodiscard]] uint32_t capacity() const { return static_cast<uint32_t>(entries_.size()); }
  /// Octets of the whole table.
  [[nodiscard]] size_t octets() const {
    return entries_.size() * sizeof(TimeWaitEntry) + buckets_.size() * sizeof(uint32_t);
  }
  /// The memory that a table of this capacity takes.
  [[nodiscard]] static uint64_t octets_for(uint32_t capacity) {
    return uint64_t{capacity} * (sizeof(TimeWaitEntry) + sizeof(uint32_t));
  }

 private:
  static constexpr uint32_t kRestarted = 0x80000000;

  static uint32_t milliseconds_of(base::Now now) {
    return static_cast<uint32_t>(base::nanos(now) / 1'000'000);
  }
  [[nodiscard]] uint32_t& head(const Endpoint& local, const Endpoint& remote);
  [[nodiscard]] size_t bucket(const Endpoint& local, const Endpoint& remote) const;
  void link(uint32_t index);
  void unlink(uint32_t index);
  void pop();

  // A link is an index plus 1; 0 ends the chain.
  base::ZeroArray<TimeWaitEntry> entries_;
  base::ZeroArray<uint32_t> buckets_;
  Secret secret_;
  uint32_t time_ms_;
  uint32_t first_ = 0;  // oldest
  uint32_t used_ = 0;   // places of the ring in use, erased ones included
  uint32_t live_ = 0;   // Invariant: the places in use that are not erased.
};

}  // namespace rnic::tcp
