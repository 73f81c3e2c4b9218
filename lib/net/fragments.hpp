/// \file
/// Decides which fragments belong together and which are accepted (RFC 791, RFC 8200 s.4.5, RFC
/// 5722, RFC 3168 s.5.3).
///
/// Exact duplicates are ignored. Any other overlap ends the whole datagram, and so does a fragment
/// past the end or one beyond Reassembler::kMaxFragments. An ended datagram stays known until its
/// time is over, so that its late fragments begin no new datagram. When the table is full the
/// oldest datagram is given up: a flood can cost others their reassembly, but not the host its
/// memory.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/time.hpp"
#include "net/config.hpp"
#include "net/counters.hpp"
#include "net/reassembler.hpp"
#include "rnic/address.hpp"

namespace rnic::net {

/// One fragment whose header was checked.
struct Fragment {
  IpAddress source;
  IpAddress destination;
  uint32_t id = 0;
  uint8_t protocol = 0;  ///< IPv6: the next header field of the fragment header
  uint8_t ecn = 0;
  uint32_t offset = 0;  ///< octets
  bool more = false;
  base::ByteView octets;
  base::ByteView packet;  ///< the packet from its IP header on, to be quoted
};

/// A datagram that was reassembled.
struct Reassembled {
  uint8_t protocol = 0;
  uint8_t ecn = 0;
  base::ByteView payload;  ///< valid until the next fragment
};

/// A datagram whose time is over. It is reported if its first fragment had come (RFC 1122 s.3.3.2,
/// RFC 8200 s.4.5).
struct ExpiredDatagram {
  IpAddress source;
  IpAddress destination;
  base::ByteView quote;  ///< the beginning of its first fragment; valid until the next call
};

/// A datagram that the policy did not keep and whose sender is to be told (RFC 5044 s.A.5.1).
struct RefusedDatagram {
  IpAddress source;
  IpAddress destination;
  uint32_t mtu = 0;      ///< octets of its first fragment: a size that passes in one piece
  base::ByteView quote;  ///< valid until the next call
};

class Fragments {
 public:
  /// \param reassembler outlives this; nullptr: all fragments are dropped
  Fragments(const Config& config, Reassembler* reassembler, Counters& counters);
  ~Fragments();
  Fragments(const Fragments&) = delete;
  Fragments& operator=(const Fragments&) = delete;

  std::optional<Reassembled> add(const Fragment& fragment, base::Now now);
  /// Takes the datagram that the latest add() did not keep; empty at the next call.
  std::optional<RefusedDatagram> take_refused() { return std::exchange(refused_, {}); }
  /// Ends one datagram whose time is over. To be called until there is none.
  /// \return one was ended; `expired` has an empty quote when nothing is to be reported
  bool expire_one(base::Now now, ExpiredDatagram& expired);
  [[nodiscard]] base::Now next_deadline() const { return next_deadline_; }
  /// Recounts the waiting octets of each datagram and of all.
  void validate() const;

 private:
  static constexpr uint32_t kQuote = 128;

  struct Range {
    uint32_t first = 0;
    uint32_t end = 0;
  };
  struct Datagram {
    bool taken = false;
    bool dead = false;
    bool unreported = false;  // refused before its first fragment came
    uint32_t number = 0;      // for the reassembler
    IpAddress source;
    IpAddress destination;
    uint32_t id = 0;
    uint8_t key_protocol = 0;  // IPv4: part of the key; 0 for IPv6
    uint8_t protocol = 0;      // protocol of the first fragment
    uint8_t ecn_seen = 0;      // a bit for each codepoint
    uint8_t ecn_first = 0;
    uint32_t count = 0;
    uint32_t octets = 0;
    uint32_t end = 0;  // 0: the last fragment has not come
    base::Now deadline = base::kNever;
    std::array<Range, Reassembler::kMaxFragments> ranges;
    uint32_t first_size = 0;  // octets of the first fragment with its header
    uint32_t quoted = 0;
    std::array<uint8_t, kQuote> quote;
  };

  enum class Verdict : uint8_t { Fits, Duplicate, Conflict };

  Datagram& find_or_make(const Fragment& fragment, base::Now now);
  [[nodiscard]] static Verdict judge(const Datagram& datagram, const Range& range, bool more);
  static void record(Datagram& datagram, const Fragment& fragment, const Range& range);
  std::optional<Reassembled> keep(Datagram& datagram, const Fragment& fragment, base::Now now);
  /// Gives up the octets of other datagrams until there is room. False: there is no room for this
  /// fragment.
  bool make_room(const Datagram& datagram, const Range& range, base::Now now);
  void refuse(Datagram& datagram, base::Now now);
  void report_refused(const IpAddress& source, const IpAddress& destination, uint32_t size,
                      base::ByteView quote);
  void kill(Datagram& datagram, base::Now now);
  void forget(Datagram& datagram, base::Now now);
  void release(Datagram& datagram);
  void update_deadline();

  base::Duration timeout_;
  bool reports_;              // senders are told of refused datagrams
  uint32_t datagram_octets_;  // the largest datagram
  uint64_t octets_max_;       // limit of octets_
  uint64_t octets_ = 0;       // octets of the datagrams that wait
  std::optional<RefusedDatagram> refused_;
  Reassembler* reassembler_;
  Counters& counters_;
  std::vector<Datagram> datagrams_;
  uint32_t next_number_ = 1;
  base::Now next_deadline_ = base::kNever;
};

/// The codepoint of a datagram whose fragments carried the codepoints in `seen` (a bit for each).
/// Empty: the datagram has to be dropped, since a mark would be lost or invented (RFC 3168 s.5.3).
[[nodiscard]] std::optional<uint8_t> join_ecn(uint8_t seen, uint8_t first);

}  // namespace rnic::net
