/// \file
/// Layer `mpa`: Marker PDU Aligned Framing (RFC 5044), revisions 0 (draft-ietf-rddp-mpa-00), 1 and
/// 2 (RFC 6581).
///
/// A Session sits between an llp::Stream and an llp::FramingUser (ddp). It begins with the start-up
/// frames (RFC 5044 s.7.1), at once or behind octets of streaming mode, and then carries FPDUs:
/// markers by arithmetic on stream offsets, CRC32C, silent drop before commit, placement of
/// out-of-order FPDUs that a marker locates, bounded hold of the rest.
///
/// No octet goes up before the CRC of its FPDU was verified (when CRC is on).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/time.hpp"
#include "framing/config.hpp"
#include "framing/framing.hpp"
#include "llp/llp.hpp"
#include "llp/stream_switch.hpp"
#include "mpa/counters.hpp"
#include "mpa/negotiation.hpp"

namespace rnic::mpa {

/// What one connection does; each field is a run-time option.
struct Config : framing::Config {
  bool crc = true;                   ///< ask for CRC (C bit); off only when both sides say so
  bool markers_receive = false;      ///< ask the peer to put markers into what it sends us (M bit)
  bool markers_send_allowed = true;  ///< false: refuse a peer that asks us for markers
  bool check_all_markers = true;     ///< of an FPDU; false, with CRC: only those that locate one
  bool silent_drop = true;     ///< a bad CRC drops the segment before commit; false: Terminate
  uint32_t drop_limit = 8;     ///< silent drops of one range before the error is reported
  uint8_t revision = 2;        ///< the highest; 0: the draft's profile, which knows no other
  bool permissive = false;     ///< serve peers of revision 0 as well (RFC 5044 app. C)
  bool exchange_reads = true;  ///< initiator: agree on IRD and ORD (RFC 6581), when nobody says
  bool peer_to_peer = false;   ///< initiator: send an RTR (RFC 6581), when nobody says
  bool redial = true;          ///< initiator: once more with revision 1 (BUG-18)
  bool reject_closes = false;  ///< a reject ends TCP, too (RFC 5044 s.7.1.4.2); false: s.7.1.2
  bool rtr_send = true;        ///< zero-length Send as RTR (RFC 6581 s.9.2)
  bool rtr_write = true;       ///< zero-length Write as RTR
  bool rtr_read = true;        ///< zero-length Read as RTR
  base::Duration rtr_timeout = std::chrono::seconds(10);  ///< responder: from its Reply to the RTR
  base::Duration first_fpdu_delay{};  ///< initiator: from the Reply to the first FPDU (BUG-14)
  uint32_t reads_limit = framing::kReadsLimit;  ///< highest IRD and ORD told to the peer (BUG-19)
  bool reads_in_private_data = false;  ///< revision 1 as Chelsio has it: IRD, ORD first (BUG-12)
};

class Session final : public framing::StartSession {
 public:
  /// The start-up begins when the stream is established. `private_data` goes into the Request;
  /// private_data_max(plan_request(config, wish)) says how much may.
  Session(const Config& config, framing::Role role, framing::HoldStore& hold, Counters& counters,
          framing::StartEvents& events, base::ByteView private_data,
          const framing::StartWish& wish = {});
  ~Session() override;

  /// Instead of established(): the stream has carried streaming octets (RFC 5044 s.7.1.3). The
  /// peer's start frame begins at `received`; ours follows what was sent, and `last_message`, when
  /// there is one, goes out before it (s.7.1.5).
  void take_over(uint32_t emss, uint64_t received, base::ByteView last_message, base::Now now);
  /// Stream offsets behind what was taken of the peer's start frame, and behind ours once it was
  /// handed to the stream.
  [[nodiscard]] uint64_t received() const;
  [[nodiscard]] uint64_t sent() const;
  /// While left(), once the stream has another user: gives that user the octets that came ahead of
  /// the peer's start frame.
  void hand_over_kept(llp::StreamSwitch& to, base::Now now);

  // StartSession
  void attach(llp::Stream& stream) override;
  void bind(llp::FramingUser& user) override;
  void unbind() override;
  void accept(base::ByteView private_data, base::Now now,
              const framing::StartWish& wish = {}) override;
  void reject(base::ByteView private_data, base::Now now,
              const framing::StartWish& wish = {}) override;
  [[nodiscard]] size_t private_data_max() const override;
  [[nodiscard]] bool left() const override;
  [[nodiscard]] base::Now next_deadline() const override;
  void on_timer(base::Now now) override;
  [[nodiscard]] const framing::Negotiated& negotiated() const override;
  [[nodiscard]] bool full_operation() const override;
  [[nodiscard]] uint64_t held() const override;
  [[nodiscard]] uint64_t arrived() const override;

  // llp::StreamUser
  void established(uint32_t emss, base::Now now) override;
  llp::Pulled pull(uint32_t n, uint64_t offset, llp::Frame& out, base::Now now) override;
  bool rebuild(const llp::RecordTag& tag, uint64_t offset, uint32_t length,
               llp::Frame& out) override;
  void released(const llp::RecordTag& tag, uint64_t end_offset) override;
  void clipped(base::Range range) override;
  llp::InspectVerdict inspect(base::Range range, base::ByteView octets, base::Now now) override;
  [[nodiscard]] uint32_t sure_room() const override;
  [[nodiscard]] uint32_t takes(base::Range range, base::ByteView octets) override;
  void place(base::Range range, base::ByteView octets, bool in_order, base::Now now) override;
  void ordered(uint64_t offset, base::Now now) override;
  void emss_changed(uint32_t emss) override;
  [[nodiscard]] uint32_t receive_room() const override;
  [[nodiscard]] bool fills_segment(uint32_t octets) const override;
  [[nodiscard]] bool all_fits(uint32_t octets) const override;
  void peer_finished(base::Now now) override;
  void ended(StreamEnd how, base::Now now) override;

  // llp::Framing
  [[nodiscard]] uint32_t mulpdu() const override;
  [[nodiscard]] uint8_t version() const override;
  void ready() override;
  void discard_received() override;
  void close() override;
  void abort() override;
  [[nodiscard]] bool may_send() const override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rnic::mpa
