/// \file
/// The state of explicit congestion notification of one connection (RFC 3168, RFC 8257).
#pragma once

#include <array>
#include <cstdint>

#include "base/seq32.hpp"
#include "tcp/ecn_phases.hpp"
#include "tcp/prediction.hpp"

namespace rnic::tcp {

/// The two ECN bits of the traffic class (RFC 3168 s.5).
namespace ecn_codepoint {
inline constexpr uint8_t kNotEct = 0;
inline constexpr uint8_t kEct1 = 1;
inline constexpr uint8_t kEct0 = 2;
inline constexpr uint8_t kCe = 3;
}  // namespace ecn_codepoint

/// EcnState does not read the Tcb: the caller passes SND.UNA, SND.NXT and the ACK field.
class EcnState {
 public:
  /// The SYNs have agreed on ECN.
  [[nodiscard]] bool on() const { return agreement_ >= EcnAgreement::Agreed; }
  /// New data may be sent as ECN-capable.
  [[nodiscard]] bool sends_ect() const { return agreement_ == EcnAgreement::Agreed; }
  [[nodiscard]] EcnAgreement agreement() const { return agreement_; }

  // --- The handshake (RFC 3168 s.6.1.1) ---

  /// Our SYN asks for ECN.
  void offer() {
    if (agreement_ != EcnAgreement::Offered) set_agreement(EcnAgreement::Offered);
  }
  /// The next SYN does not ask for ECN, since a middlebox may drop SYNs that do. \return our SYNs
  /// asked until now
  bool fall_back();
  /// Takes the peer's SYN or SYN-ACK. \param setup it asks for ECN or agrees to it. \param answer
  /// it answers our SYN. \param willing we agree when the peer asks first
  void take_syn(bool setup, bool answer, bool willing);
  /// Takes a SYN that arrives after the handshake was completed by another one. A host that has
  /// received a SYN that does not ask should not set ECT; the agreement to echo marks stays.
  void take_late_syn(bool setup) {
    if (!setup && sends_ect()) set_agreement(EcnAgreement::EchoOnly);
  }

  // --- Receiving: ECN-Echo ---

  /// Our segments carry ECN-Echo; under DCTCP this is DCTCP.CE.
  [[nodiscard]] bool echoes() const { return echo_; }
  /// Data inside the window has arrived (RFC 3168 s.6.1.3). \param prediction is ended when a mark
  /// is to be echoed. \return the sender has to be told at once
  [[nodiscard]] bool arrived(bool ce, bool cwr, Prediction& prediction);
  enum class Change : uint8_t { None, Changed, Merged };
  /// Data inside the window has arrived under DCTCP (RFC 8257 s.3.2). \param unacknowledged earlier
  /// segments, up to `ack`, are still to be reported by their own mark. \return Merged: there is no
  /// room for another ACK
  [[nodiscard]] Change arrived_dctcp(bool ce, bool unacknowledged, base::Seq32 ack,
                                     Prediction& prediction);
  /// An ACK that is owed for the segments before a change of CE.
  struct Owed {
    base::Seq32 ack;
    bool ece = false;
  };
  [[nodiscard]] bool owes_acks() const { return owed_count_ != 0; }
  /// Removes the oldest one. owes_acks() must be true.
  [[nodiscard]] Owed take_owed();

  // --- Sending: CWR ---

  /// Called for a segment of new data. \return it carries CWR
  [[nodiscard]] bool take_cwr();
  /// The window was reduced, for a loss or a mark: marks on the data in flight need no further
  /// reduction.
  void note_reduction(uint64_t snd_nxt);
  /// The window was reduced for an ECN-Echo: CWR follows even where we send no ECT, as agreed by
  /// RFC 3168 s.6.1.1.
  void commit_cwr() { set_cwr(CwrState::Owed); }
  /// The reduction was spurious.
  void undo() { set_cwr(CwrState::None); }
  [[nodiscard]] CwrState cwr() const { return cwr_; }
  /// Data that was in flight at the last reduction is still unacknowledged.
  [[nodiscard]] bool reduced_beyond(uint64_t snd_una) const {
    return cwr_ != CwrState::None && snd_una < reduced_until_;
  }
  /// The mark that this ACK echoes may have been answered by the last reduction.
  [[nodiscard]] bool answered(uint64_t snd_una) const {
    return cwr_ != CwrState::None && snd_una <= reduced_until_;
  }
  /// A mark met a window of one segment. \return how many marks in a row did so before
  uint32_t hold();
  void end_holds() { holds_ = 0; }

  void validate() const;

 private:
  static constexpr uint32_t kMaxOwed = 4;
  static constexpr uint8_t kMaxHolds = 6;

  /// The one place that sets the agreement.
  void set_agreement(EcnAgreement next);
  /// The one place that sets the state of CWR, if it is another one.
  void set_cwr(CwrState next);
  void set_echo(bool echo, Prediction& prediction);

  EcnAgreement agreement_ = EcnAgreement::None;
  CwrState cwr_ = CwrState::None;
  bool echo_ = false;
  uint8_t holds_ = 0;  // consecutive marks that met a window of one segment
  uint8_t owed_count_ = 0;
  // SND.NXT at the moment of the last reduction; valid while that reduction stands. Marks below it
  // are answered.
  uint64_t reduced_until_ = 0;
  // DCTCP: ACKs owed for the segments before each change of CE, oldest first. Their marks
  // alternate: the newest one reports the opposite of echo_.
  std::array<base::Seq32, kMaxOwed> owed_{};
};

}  // namespace rnic::tcp
