/// \file
/// SYN cookies (RFC 4987 s.3.6): the sequence number and the timestamp of the SYN-ACK hold the
/// state of a half-open connection, which takes no memory until the peer has answered.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/check.hpp"
#include "base/seq32.hpp"
#include "base/time.hpp"
#include "llp/transport.hpp"
#include "rnic/address.hpp"
#include "tcp/config.hpp"
#include "tcp/connection_options.hpp"
#include "tcp/isn.hpp"
#include "tcp/reply_queue.hpp"
#include "tcp/segment.hpp"
#include "tcp/syn_terms.hpp"

namespace rnic::tcp {

/// The options of the peer's SYN beside the MSS. They come back in the echoed timestamp.
struct CookieOptions {
  std::optional<uint8_t> window_scale;  ///< 0..14
  bool sack = false;
  bool ecn = false;
  friend bool operator==(const CookieOptions&, const CookieOptions&) = default;
};

/// A cookie is 29 bits of a keyed hash over the 4-tuple, the peer's ISN and a key that changes each
/// period, and 3 bits that name an MSS. It is valid in the period in which it was made and in the
/// next one.
class SynCookies {
 public:
  static constexpr base::Duration kPeriod = std::chrono::seconds(64);

  /// \param secret the key of the cookies and of the timestamp offsets. \param terms outlives this
  SynCookies(const Config& config, const Secret& secret, const SynTerms& terms)
      : secret_(secret),
        timestamps_(config.timestamps),
        sack_(config.sack),
        window_scaling_(config.window_scaling),
        terms_(terms) {}

  /// Makes the SYN-ACK for a SYN, with a cookie. \param acceptor, options those of the
  /// listener
  void answer(const Segment& syn, const llp::Acceptor& acceptor, const ConnectionOptions& options,
              base::Now now, Reply& reply);
  /// Restores the SYN that our SYN-ACK answered, as far as the cookie holds it. \param ack a
  /// segment that acknowledges the SYN-ACK. \return nullopt: its ACK field is no valid cookie
  [[nodiscard]] std::optional<Segment> syn_before(const Segment& ack, base::Now now);

  /// Makes a cookie: our ISN for a SYN. \param mss the peer's MSS, which is rounded down to one of
  /// eight
  [[nodiscard]] base::Seq32 make(const Endpoint& local, const Endpoint& remote, base::Seq32 irs,
                                 uint16_t mss, base::Now now);
  /// The MSS that the cookie names; nullopt: `iss` is no cookie for this SYN, or too old.
  [[nodiscard]] std::optional<uint16_t> check(const Endpoint& local, const Endpoint& remote,
                                              base::Seq32 irs, base::Seq32 iss, base::Now now);

  /// The latest timestamp not after `clock` whose low bits are the options.
  [[nodiscard]] static uint32_t stamp(uint32_t clock, const CookieOptions& options);
  [[nodiscard]] static CookieOptions options_of(uint32_t echo);
  /// Checks that each key is for an even or odd period, as its place says.
  void validate() const {
    for (int64_t i = 0; i < 2; ++i) RNIC_CHECK(periods_[i] == -1 || periods_[i] % 2 == i);
  }

 private:
  [[nodiscard]] const Secret& key_of(int64_t period);
  [[nodiscard]] uint64_t hash(int64_t period, const Endpoint& local, const Endpoint& remote,
                              base::Seq32 irs);

  const Secret secret_;
  const bool timestamps_;
  const bool sack_;
  const bool window_scaling_;
  const SynTerms& terms_;
  std::array<Secret, 2> keys_{};  // for an even and an odd period
  std::array<int64_t, 2> periods_{-1, -1};
};

}  // namespace rnic::tcp
