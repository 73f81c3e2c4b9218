/// \file
/// The neighbours of one interface (RFC 826, RFC 1122 s.2.3.2, RFC 4861 s.7): a bounded table whose
/// entries age, with the frames that wait for an answer. The table serves both families; Arp and Nd
/// exchange its messages.
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

/// The calls of the table to its interface.
class NeighbourUser {
 public:
  virtual ~NeighbourUser() = default;
  /// Asks for the link-layer address of `target`. \param known the last known address, which is
  /// asked; nullptr: everybody is asked
  virtual void solicit(const IpAddress& target, const port::MacAddress* known, base::Now now) = 0;
  /// A parked frame may be sent. Its ownership passes to the user.
  virtual void unpark(port::Packet& frame, const port::MacAddress& to, base::Now now) = 0;
  /// A parked frame is given up. Its ownership passes to the user.
  virtual void drop_parked(port::Packet& frame) = 0;
};

/// Entries are only made for addresses that we want to reach and for hosts that ask for us. A known
/// address changes only by the answer to a question of ours: a message that claims a new address
/// makes us ask (this is stricter than RFC 4861 s.7.2.3, which believes the message and then asks).
class Neighbours {
 public:
  static constexpr uint32_t kParked = 16;  ///< frames that wait for one neighbour
  /// Frames that wait for all neighbours: frames to invented neighbours must not hold all buffers
  /// of a port.
  static constexpr uint32_t kParkedInAll = 128;
  static constexpr uint32_t kAnswersPerSecond = 50;  ///< to one neighbour
  /// Requests over all neighbours; the same number again confirms known ones.
  static constexpr uint32_t kRequestsPerSecond = 1000;

  Neighbours(const Config& config, NeighbourUser& user, Counters& counters, base::Now now);
  ~Neighbours();
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;

  /// The neighbour's address, or nullptr when it is not known. The pointer is valid until
  /// generation() changes.
  const port::MacAddress* find(const IpAddress& ip);
  /// Keeps the frame until the neighbour answers, and asks for the neighbour. Called when find()
  /// has returned nullptr.
  void park(const IpAddress& ip, port::Packet& frame, base::Now now);

  /// The neighbour has answered us, which is used only while a question is open. Without `mac` the
  /// answer confirms the known address; it changes the known address only if it `overrides`.
  void on_answer(const IpAddress& ip, const std::optional<port::MacAddress>& mac, bool overrides,
                 base::Now now);
  /// The neighbour has asked for us, so we will soon talk to it.
  void on_request(const IpAddress& ip, const port::MacAddress& mac, base::Now now);
  /// A segment came from `mac` in the neighbour's name. While there are more neighbours than may be
  /// asked for, or than the table holds, answers to an unknown one go to that address: otherwise a
  /// new neighbour would get no answer in a flood of others (decision 16). This makes no entry and
  /// takes the place of none.
  void on_segment(const IpAddress& ip, const port::MacAddress& mac, base::Now now);
  /// An unsolicited announcement tells that the neighbour is at `mac`.
  void on_claim(const IpAddress& ip, const port::MacAddress& mac, base::Now now);

  /// The limit of answers to a known neighbour, whose address must be `mac` if that is given.
  /// Questions of others do not count against this limit. nullptr: the neighbour is not known.
  [[nodiscard]] RateLimit* share_of(const IpAddress& ip,
                                    const std::optional<port::MacAddress>& mac);

  /// Packets to the neighbour stay unanswered: it may be gone, or have another address (RFC 1122
  /// s.2.3.2.1 (4), RFC 4861 s.7.3.1).
  void on_silence(const IpAddress& ip, base::Now now);

  void on_timers(base::Now now);
  [[nodiscard]] base::Now next_deadline() const { return next_deadline_; }

  /// A number that changes whenever a result of find() may have become invalid, and when a
  /// neighbour was not used for long.
  [[nodiscard]] uint64_t generation() const { return generation_; }
  /// Recounts the entries and the parked frames. Each neighbour must be in the chain of its
  /// address, and frames wait only for neighbours whose address is not known.
  void validate() const;
  /// The memory that a table of this size takes.
  [[nodiscard]] static uint64_t octets_for(uint32_t neighbours);

 private:
  using State = NeighbourState;

  struct Entry {
    IpAddress ip;
    port::MacAddress mac{};
    State state = State::Free;  // changed by set_state() only
    bool used = false;          // used since it was last confirmed
    bool asked = false;         // Incomplete: a question has gone out
    uint32_t requests = 0;      // requests without an answer; 0: no question is open
    base::Now since{};          // when it was made or last confirmed
    base::Now deadline = base::kNever;
    uint32_t next = kNone;  // in its hash chain
    uint32_t parked_count = 0;
    uint32_t parked_first = 0;  // ring
    RateLimit answers{kAnswersPerSecond, {}};
    std::array<port::Packet, kParked> parked;
  };

  /// The link-layer address from which a segment came.
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
  uint32_t made_ = 0;  // entries from here on were never used, and their memory is untouched
  std::vector<uint32_t> heads_;  // power of two
  std::vector<Sender> senders_;  // by hash of the address; the latest sender of a place stays
  uint32_t size_ = 0;            // entries that are not Free
  uint32_t parked_ = 0;          // parked frames of all entries
  uint64_t generation_ = 0;
  base::Now next_deadline_ = base::kNever;  // not later than the deadline of any entry
};

}  // namespace rnic::net
