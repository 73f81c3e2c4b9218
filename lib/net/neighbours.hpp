/// \file
/// The neighbours of one interface (RFC 826, RFC 1122 s.2.3.2, RFC 4861 s.7): bounded, aged, with
/// the frames that wait for an answer. One table for both families; `arp` and `nd` speak for it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/time.hpp"
#include "base/zero_array.hpp"
#include "net/config.hpp"
#include "net/counters.hpp"
#include "net/neighbour_state.hpp"
#include "net/rate_limit.hpp"
#include "port/port.hpp"
#include "rnic/address.hpp"

namespace rnic::net {

/// The table calls the interface through it.
class NeighbourUser {
 public:
  virtual ~NeighbourUser() = default;
  /// Asks for the link-layer address of `target`: of the neighbour itself at its last address, or
  /// of everybody when `known` is nullptr.
  virtual void solicit(const IpAddress& target, const port::MacAddress* known, base::Now now) = 0;
  /// A parked frame may go. The frame is handed over.
  virtual void unpark(port::Packet& frame, const port::MacAddress& to, base::Now now) = 0;
  /// A parked frame is given up. The frame is handed over.
  virtual void drop_parked(port::Packet& frame) = 0;
};

/// Entries are only made for addresses that we want to reach and for hosts that ask for us. A known
/// address changes only by the answer to a question of ours: a new one that somebody else claims
/// makes us ask (stricter than RFC 4861 s.7.2.3, which would believe and then ask).
class Neighbours {
 public:
  static constexpr uint32_t kParked = 16;  ///< frames that wait for one neighbour
  /// The same for all: answers to invented neighbours must not hold a port's buffers.
  static constexpr uint32_t kParkedInAll = 128;
  static constexpr uint32_t kAnswersPerSecond = 50;     ///< to one neighbour
  static constexpr uint32_t kRequestsPerSecond = 1000;  ///< over all neighbours; as many again to
                                                        ///< confirm those that are known

  Neighbours(const Config& config, NeighbourUser& user, Counters& counters, base::Now now);
  ~Neighbours();
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;

  /// The neighbour's address, or nullptr when it is not known. Valid while generation() stays.
  const port::MacAddress* find(const IpAddress& ip);
  /// Keeps the frame until the neighbour answers and asks for it. Call after find() found nothing.
  void park(const IpAddress& ip, port::Packet& frame, base::Now now);

  /// An answer to us: used only when a question is open. Without `mac` it confirms what is known;
  /// unless it `overrides`, it does not change what is known.
  void on_answer(const IpAddress& ip, const std::optional<port::MacAddress>& mac, bool overrides,
                 base::Now now);
  /// The neighbour has asked for us: we will soon talk to it.
  void on_request(const IpAddress& ip, const port::MacAddress& mac, base::Now now);
  /// A segment came from `mac` in the neighbour's name. While there are more neighbours than may be
  /// asked for, or than the table holds, answers to an unknown one go to that address: by no other
  /// way would a new neighbour be answered in a flood of others (decision 16). It makes no entry,
  /// and takes no place of one.
  void on_segment(const IpAddress& ip, const port::MacAddress& mac, base::Now now);
  /// An announcement that nobody has asked for says that the neighbour is at `mac`.
  void on_claim(const IpAddress& ip, const port::MacAddress& mac, base::Now now);

  /// The limit of answers to a neighbour that is known, and at `mac` when that is given: questions
  /// of others do not count against it. nullptr: the neighbour is not known.
  [[nodiscard]] RateLimit* share_of(const IpAddress& ip,
                                    const std::optional<port::MacAddress>& mac);

  /// What is sent to the neighbour draws no answers: it may be gone, or be elsewhere (RFC 1122
  /// s.2.3.2.1 (4), RFC 4861 s.7.3.1).
  void on_silence(const IpAddress& ip, base::Now now);

  void on_timers(base::Now now);
  [[nodiscard]] base::Now next_deadline() const { return next_deadline_; }

  /// Changes whenever a result of find() may no longer hold, and when a neighbour was not used for
  /// long.
  [[nodiscard]] uint64_t generation() const { return generation_; }
  /// Counts the entries and the parked frames anew: each neighbour is in the chain of its address,
  /// and frames wait only for one whose address is not known.
  void validate() const;
  /// The memory that a table asks the machine for.
  [[nodiscard]] static uint64_t octets_for(uint32_t neighbours);

 private:
  using State = NeighbourState;

  struct Entry {
    IpAddress ip;
    port::MacAddress mac{};
    State state = State::Free;  // set_state() changes it
    bool used = false;          // since it was last confirmed
    bool asked = false;         // Incomplete: a question has gone out
    uint32_t requests = 0;      // without an answer; 0 where none is open
    base::Now since{};          // made or confirmed
    base::Now deadline = base::kNever;
    uint32_t next = kNone;  // in its hash chain
    uint32_t parked_count = 0;
    uint32_t parked_first = 0;  // ring
    RateLimit answers{kAnswersPerSecond, {}};
    std::array<port::Packet, kParked> parked;
  };

  /// Where a segment came from.
  struct Sender {
    IpAddress ip;
    port::MacAddress mac{};
    base::Now at{};
  };

  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kSenders = 1024;  // a power of two
  static constexpr base::Duration kSenderLife = std::chrono::seconds(10);

  [[nodiscard]] static uint64_t hash(const IpAddress& ip) {
    return ((ip.high() ^ ip.low()) * 0x9e3779b97f4a7c15ull) >> 40;
  }
  [[nodiscard]] const port::MacAddress* sender_of(const IpAddress& ip, base::Now now) const;
  [[nodiscard]] std::span<Entry> made() { return {entries_.data(), made_}; }
  [[nodiscard]] uint32_t& chain(const IpAddress& ip);
  Entry* lookup(const IpAddress& ip);
  Entry* make(const IpAddress& ip, bool may_replace_used, base::Now now);
  Entry* take_place(bool may_replace_used);
  [[nodiscard]] static uint32_t worth(const Entry& entry, bool may_replace_used);
  static void set_state(Entry& entry, State next);
  void unqueue(Entry& entry);
  void remove(Entry& entry);
  void confirm(Entry& entry, const port::MacAddress& mac, base::Now now);
  void doubt(Entry& entry, base::Now now);
  void ask(Entry& entry, base::Now now);
  void expire(Entry& entry, base::Now now);
  void set_deadline(Entry& entry, base::Now deadline);

  Config config_;
  NeighbourUser& user_;
  Counters& counters_;
  RateLimit requests_;
  RateLimit confirmations_;
  base::ZeroArray<Entry> entries_;
  uint32_t made_ = 0;  // entries behind this one were never used: their memory is untouched
  std::vector<uint32_t> heads_;  // power of two
  std::vector<Sender> senders_;  // by hash; the latest one stays
  uint32_t size_ = 0;            // entries that are not Free
  uint32_t parked_ = 0;          // frames, of all entries
  uint64_t generation_ = 0;
  base::Now next_deadline_ = base::kNever;  // not later than any entry's
};

}  // namespace rnic::net
