/// \file
/// Judges one connection from outside: every segment that one of our stacks sends is held against
/// what the specifications let it send, given the segments that have reached it. It shares no code
/// with the stack but the parsing of headers.
///
/// - Addresses, ports, checksum, header, options on the right segments only.
/// - Sequence: no gap before new octets, the same octets each time, nothing behind the FIN.
/// - Windows: nothing beyond the furthest right edge that the peer has offered; the own right edge
///   never moves left; the first flight is no more than the initial window.
/// - Sizes: payload and options within the peer's MSS, the packet within the path MTU known.
/// - Acknowledgments: never of an octet that did not arrive, never backwards, never of one beyond
///   the window that the own headers have offered; SACK blocks only of what arrived, and never of
///   what the stack cannot have (RFC 2018, RFC 2883). No ACK says again what the segment before it
///   has said, unless something came that has to be answered: to the peer it would be a duplicate
///   (RFC 5681 s.2).
/// - Refusals: a stack drops a segment and answers it only where PAWS, the window, RFC 5961 s.4.2
///   (a SYN) or s.5.2 (the ACK field) want that. What is refused has not arrived.
/// - Promptness: a few octets, all that the user has given, go out as soon as the peer's window has
///   room for them, while no window of congestion control can hold them back: no timer is waited
///   for (RFC 9293 s.3.8.6.2.1 (2)).
/// - Timestamps: on every segment once agreed, never backwards, echoing one that was received.
/// - ECN: ECT on new data of connections that agreed on it only, on SYNs that have all reached the
///   other end and were all of one mind; ECN-Echo by who has asked or agreed, for marks that came
///   (RFC 3168 s.6.1.1).
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "heard_acks.hpp"
#include "idle_acks.hpp"
#include "stream/datagram.hpp"
#include "verdict.hpp"
#include "wire/tcp_options.hpp"

namespace rnic::simulation {

/// What a judge knows of one side.
struct JudgedSide {
  Endpoint end;
  bool ours = true;     ///< to be judged; else only observed
  uint64_t key = 0;     ///< content of what this side sends
  uint64_t octets = 0;  ///< length of its stream
  uint32_t initial_segments = 10;
  std::function<bool()> gone;  ///< its user has been told of the end
  /// SYN cookies: who answers a SYN by one does not know what it answered before.
  bool forgets_syns = false;
  bool ecn_on_syn = false;      ///< DCTCP (RFC 8257 s.3.1)
  bool ecn_on_control = false;  ///< ECT on everything is configured (RFC 8257 s.4.1)
  /// What fits is to go out at once: no pacing, and records enough for small ones.
  bool prompt = false;
  /// \return whether an offset is the end of a record; empty: every offset is
  std::function<bool(uint64_t)> is_boundary;
};

class Judge {
 public:
  Judge(std::string name, std::array<JudgedSide, 2> sides, Verdict& verdict);

  /// Side `side` put this on the wire; `path_mtu` is what its stack knows of the path.
  void sent(uint32_t side, const Datagram& d, uint32_t path_mtu, base::Now now);
  /// Something is about to reach side `side`.
  void arriving(uint32_t side) { halves_[side].gone_before = is_gone(side); }
  /// This has reached side `side`, whole or damaged.
  void delivered(uint32_t side, const Datagram& d, Fate fate, base::Now now);
  /// Side `side` has done what it had to. \param given octets that its user has for the stream
  void turned(uint32_t side, uint64_t given, base::Now now);
  /// Somebody else sent this to side `side` in its peer's name: it may have to be answered.
  void forged(uint32_t side, const Datagram& d);

  /// The sequence number that side `side` expects next, as far as the wire tells, and the number it
  /// will send next: for attacks that must miss, or hit, them.
  struct Numbers {
    uint32_t rcv_nxt = 0;
    uint32_t window = 0;
    uint32_t snd_una = 0;
    uint32_t snd_nxt = 0;
    uint32_t peer_window = 0;
  };
  [[nodiscard]] std::optional<Numbers> numbers(uint32_t side) const;
  [[nodiscard]] const Endpoint& end(uint32_t side) const { return sides_[side].end; }
  [[nodiscard]] bool matches(uint32_t from, const Datagram& d) const;
  [[nodiscard]] std::string describe() const;

 private:
  struct Segment {
    uint32_t seq = 0;
    uint32_t ack = 0;
    uint8_t flags = 0;
    uint32_t window = 0;
    base::ByteView payload;
    uint32_t options_length = 0;
    wire::TcpOptions options;
    [[nodiscard]] bool has(uint8_t f) const { return (flags & f) != 0; }
  };
  /// One side: what it has said, and what has reached it.
  struct Half {
    bool gone_before = false;  // it was, when what reaches it came
    std::optional<uint32_t> iss;
    wire::TcpOptions syn;  // its own SYN's
    // A listener that forgets SYNs puts the MSS of each into its number.
    std::optional<uint16_t> answered_mss;  // of the SYN that its SYN-ACK answers
    std::optional<uint32_t> former_iss;    // the cookie before; its peer may take either
    bool has_acked = false;                // it has acknowledged its peer's SYN
    uint64_t sent_end = 0;
    std::optional<uint64_t> fin;
    std::optional<uint32_t> last_tsval;
    uint64_t acked = 0;    // by its ACK fields, in the opposite stream
    uint64_t offered = 0;  // its right edge, in the opposite stream
    IdleAcks idle_acks;
    // What has reached it.
    std::optional<uint32_t> newest_tsval;
    HeardAcks heard_acks;
    std::optional<wire::TcpOptions> peer_syn;
    std::optional<uint16_t> heard_mss;  // of the SYN that has reached it last
    uint64_t edge = 0;                  // furthest right edge offered to it
    uint64_t una = 0;                   // highest ACK that reached it
    bool answered = false;              // an ACK reached it after its first data
    std::vector<bool> got;              // octets of the opposite stream
    uint64_t got_next = 0;
    std::optional<uint64_t> got_fin;
    std::set<uint32_t> tsvals;
    // Promptness.
    bool open = false;          // an ACK of its SYN has reached it
    uint64_t window_end = 0;    // right edge that it was told last
    uint64_t window_from = 0;   // the peer's octet that the news came with
    bool reduced = false;       // loss or a mark: its congestion window may be a segment
    bool echoed = false;        // the newest ACK to it carries ECN-Echo
    uint64_t resent_below = 0;  // what it has sent again ends here
    base::Now waits_since = base::kNever;
    // RFC 3168 s.6.1.1: SYNs and SYN-ACKs with and without the flags that ask and agree.
    bool sent_setup = false;
    bool sent_plain = false;
    bool got_setup = false;
    bool got_plain = false;
    bool marked = false;    // a packet with CE has reached it
    bool sent_ect = false;  // what was sent so may be marked, and CWR be owed for it
    // Of what a late SYN has made of its listener, when the connection was gone.
    std::optional<uint32_t> late_iss;
  };

  [[nodiscard]] std::optional<Segment> parse(const Datagram& d, uint32_t side, bool loud);
  void fail(uint32_t side, const std::string& what);
  /// An ECN-setup SYN or SYN-ACK.
  [[nodiscard]] static bool asks_for_ecn(const Segment& s);
  void observe_syn(uint32_t side, const Segment& s);
  /// Side `side` acknowledges one of its peer's cookies: that one is the peer's number.
  void choose_cookie(uint32_t side, const Segment& s);
  [[nodiscard]] bool is_gone(uint32_t side) const {
    return sides_[side].gone && sides_[side].gone();
  }
  [[nodiscard]] bool answers_late_syn(uint32_t side, const Segment& s);
  void check_form(uint32_t side, const Datagram& d, const Segment& s, uint32_t path_mtu);
  void check_options(uint32_t side, const Segment& s);
  void check_data(uint32_t side, const Segment& s);
  void check_ack(uint32_t side, const Segment& s);
  void check_sack(uint32_t side, const Segment& s);
  void check_news(uint32_t side, const Segment& s);
  /// \return whether its timestamp is older than another that has come
  [[nodiscard]] bool note_timestamp(uint32_t side, const Segment& s);
  void check_refusal(uint32_t side, const Segment& s, bool late);
  void check_ecn(uint32_t side, const Datagram& d, const Segment& s, bool new_data);
  void take_ack(uint32_t side, const Segment& s);
  void take_data(uint32_t side, const Segment& s);
  void take(uint32_t side, const Segment& s);
  [[nodiscard]] bool could_send(uint32_t side, uint64_t given) const;
  [[nodiscard]] bool agreed_timestamps() const;
  [[nodiscard]] bool agreed_sack() const;
  [[nodiscard]] uint32_t shift_of(uint32_t side) const;
  [[nodiscard]] uint64_t offset_in(uint32_t sender, uint64_t near, uint32_t sequence,
                                   bool& before_start) const;

  std::string name_;
  std::array<JudgedSide, 2> sides_;
  std::array<Half, 2> halves_;
  Verdict& verdict_;
};

}  // namespace rnic::simulation
