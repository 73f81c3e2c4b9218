/// \file
/// What a connection remembers of explicit congestion notification (RFC 3168, RFC 8257).
#pragma once

#include <array>
#include <cstdint>

#include "base/seq32.hpp"

namespace rnic::tcp {

/// The two ECN bits of the traffic class (RFC 3168 s.5).
namespace ecn_codepoint {
inline constexpr uint8_t kNotEct = 0;
inline constexpr uint8_t kEct1 = 1;
inline constexpr uint8_t kEct0 = 2;
inline constexpr uint8_t kCe = 3;
}  // namespace ecn_codepoint

/// Stream offsets and sequence numbers come in with the calls: SND.UNA and SND.NXT where a
/// reduction is in question, the ACK field where one is owed.
class EcnState {
 public:
  /// Agreed on the SYNs.
  [[nodiscard]] bool on() const { return on_; }
  /// New data may be sent as ECN-capable.
  [[nodiscard]] bool sends_ect() const { return on_ && !fell_back_; }

  // --- The handshake (RFC 3168 s.6.1.1) ---

  /// Our SYN asks.
  void offer() { offered_ = true; }
  /// It asks no more: a middlebox may swallow such. \return it did until now
  bool fall_back();
  /// The peer's SYN or SYN-ACK. \param setup it asks or agrees. \param answer it answers ours.
  /// \param willing else: we would agree
  void take_syn(bool setup, bool answer, bool willing) {
    on_ = setup && (answer ? offered_ : willing);
  }
  /// One that comes behind the handshake that another has made. Who has received one that does not
  /// ask should not set ECT; what was agreed to, to answer marks, stays.
  void take_late_syn(bool setup) {
    if (!setup) fell_back_ = true;
  }

  // --- Receiving: ECN-Echo ---

  /// ECN-Echo goes on what we send; under DCTCP this is DCTCP.CE.
  [[nodiscard]] bool echoes() const { return echo_; }
  /// In-window data (RFC 3168 s.6.1.3). \return the sender is to learn of it at once
  [[nodiscard]] bool arrived(bool ce, bool cwr);
  enum class Change : uint8_t { None, Changed, Merged };
  /// The same under DCTCP (RFC 8257 s.3.2). \param unacknowledged something came before that is to
  /// be reported as it was marked: up to `ack`. \return Merged: there is no room for another ACK
  [[nodiscard]] Change arrived_dctcp(bool ce, bool unacknowledged, base::Seq32 ack);
  /// An ACK that is owed for what came before a change of CE.
  struct Owed {
    base::Seq32 ack;
    bool ece = false;
  };
  [[nodiscard]] bool owes_acks() const { return owed_count_ != 0; }
  /// The oldest. owes_acks() must be true.
  [[nodiscard]] Owed take_owed();

  // --- Sending: CWR ---

  /// CWR goes on the next new data, which is asked here. \return it does
  [[nodiscard]] bool take_cwr();
  /// For whatever reason the window was reduced: marks on what is in flight are answered with it.
  void note_reduction(uint64_t snd_nxt);
  /// A mark was obeyed: the commitment of s.6.1.1, whoever marked what.
  void commit_cwr() { cwr_due_ = true; }
  /// The reduction was for nothing.
  void undo() { cwr_due_ = reduced_ = false; }
  /// Some octet that was in flight at the last reduction is in flight still.
  [[nodiscard]] bool reduced_beyond(uint64_t snd_una) const {
    return reduced_ && snd_una < reduced_until_;
  }
  /// An ACK up to there may echo a mark that was answered.
  [[nodiscard]] bool answered(uint64_t snd_una) const {
    return reduced_ && snd_una <= reduced_until_;
  }
  /// A mark met a window of one segment. \return how many did before, in a row
  uint32_t hold();
  void end_holds() { holds_ = 0; }

  void validate() const;

 private:
  static constexpr uint32_t kMaxOwed = 4;
  static constexpr uint8_t kMaxHolds = 6;

  bool offered_ = false;
  bool fell_back_ = false;  // a SYN of either side did not ask: no ECT any more
  bool on_ = false;
  bool echo_ = false;
  bool cwr_due_ = false;
  bool reduced_ = false;  // reduced_until_ is one
  uint8_t holds_ = 0;     // consecutive marks that met a window of one segment
  uint8_t owed_count_ = 0;
  uint64_t reduced_until_ = 0;  // SND.NXT at the last reduction: marks below it are answered
  // DCTCP: ACKs owed for what came before a change of CE, oldest first. They alternate: the newest
  // reports the opposite of echo_.
  std::array<base::Seq32, kMaxOwed> owed_{};
};

}  // namespace rnic::tcp
