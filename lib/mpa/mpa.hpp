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
#include "llp/llp.hpp"
#include "mpa/counters.hpp"
#include "mpa/negotiation.hpp"

namespace rnic::mpa {

enum class Role : uint8_t { Initiator, Responder };

/// Per-connection policy; every one a run-time option.
struct Config {
  bool crc = true;                   ///< ask for CRC (C bit); off only when both sides say so
  bool markers_receive = false;      ///< ask the peer to put markers into what it sends us (M bit)
  bool markers_send_allowed = true;  ///< false: refuse a peer that asks us for markers
  bool check_all_markers = true;     ///< each marker of an FPDU; false, with CRC: where one begins
  bool silent_drop = true;   ///< a bad CRC drops the segment before commit; false: Terminate
  uint32_t drop_limit = 8;   ///< silent drops of one range before the error is reported
  bool out_of_order = true;  ///< place out-of-order FPDUs that a marker locates
  base::Duration start_timeout = std::chrono::seconds(60);  ///< whole start-up exchange
  uint8_t revision = 2;        ///< highest one; 0: the draft's profile, which knows no other
  bool permissive = false;     ///< serve peers of revision 0 as well (RFC 5044 app. C)
  bool exchange_reads = true;  ///< initiator: agree on IRD and ORD (RFC 6581), when nobody says
  bool peer_to_peer = false;   ///< initiator: send an RTR (RFC 6581), when nobody says
  bool redial = true;          ///< initiator: once more with revision 1 (BUG-18)
  bool reject_closes = false;  ///< a reject ends TCP, too (RFC 5044 s.7.1.4.2); else s.7.1.2
  bool rtr_send = true;        ///< zero-length Send as RTR (RFC 6581 s.9.2)
  bool rtr_write = true;       ///< zero-length Write as RTR
  bool rtr_read = true;        ///< zero-length Read as RTR
  base::Duration rtr_timeout = std::chrono::seconds(10);  ///< responder: from its Reply to the RTR
  base::Duration first_fpdu_delay{};   ///< initiator: from the Reply to the first FPDU (BUG-14)
  uint32_t reads_limit = 128;          ///< highest IRD and ORD told to the peer (BUG-19)
  bool reads_in_private_data = false;  ///< revision 1 as Chelsio has it: IRD, ORD first (BUG-12)
  uint32_t receive_window = 4u << 20;  ///< octets offered past the delivery point
  uint32_t hold_limit = 1u << 20;      ///< octets of held data, per connection
  uint32_t early_limit = 4096;         ///< FPDUs placed ahead of the order, per connection
};

/// Memory for octets that were committed but cannot be placed yet; one per device, all taken at
/// start.
class HoldStore;
struct HoldStoreDeleter {
  void operator()(HoldStore* store) const;
};
using HoldStorePtr = std::unique_ptr<HoldStore, HoldStoreDeleter>;
/// \param octets total hold space; one maximal FPDU more is kept back for the delivery point.
[[nodiscard]] HoldStorePtr make_hold_store(uint64_t octets);
/// What such a store asks the machine for.
[[nodiscard]] uint64_t hold_store_octets(uint64_t octets);
[[nodiscard]] uint64_t held_octets(const HoldStore& store);
/// Most of it at any one time.
[[nodiscard]] uint64_t held_octets_peak(const HoldStore& store);
/// Memory that the held octets occupy: whole pages.
[[nodiscard]] uint64_t held_memory(const HoldStore& store);

/// Why a start-up failed.
enum class StartFailure : uint8_t {
  BadKey,
  BothInitiators,
  BadRevision,
  BadLength,
  MarkersRefused,
  UnexpectedData,
  TimedOut,
  StreamEnded,
  RejectedByPeer,
  RejectedLocally,    ///< responder: the owner called reject(), and the Reply was handed to the
                      ///< stream
  NoReply,            ///< initiator: the peer closed instead of replying
  ResetBeforeReply,   ///< initiator: the peer reset the connection instead of replying
  NotEnhanced,        ///< initiator: the Reply to an enhanced Request is not enhanced
  InsufficientReads,  ///< RFC 6581 s.9.1: Terminate 2/0/6, or a reject by the responder
  NoMatchingRtr,      ///< RFC 6581 s.9.2: Terminate 2/0/7
  LocalError,         ///< RFC 6581 s.9.3: Terminate 2/0/5
  RtrMissing,         ///< responder: no RTR in time
  NotTuf,             ///< the peer's start frame is not one of ULP framing (layer `tuf`)
  NoCommonMode,       ///< ULP framing: no mode that both ends have
  OutOfMemory,        ///< this side has no memory for a start frame
  // Initiator: there was never a TCP connection.
  Refused,
  Unreachable,
  Unanswered,
};
[[nodiscard]] const char* to_string(StartFailure failure);
/// What a start-up fails of when its stream ends; `opened`: there was a TCP connection.
[[nodiscard]] StartFailure start_failure_of(StreamEnd how, bool opened);

/// Who owns the session's start-up (the device's connection management). Called on the worker.
class StartEvents {
 public:
  virtual ~StartEvents() = default;
  /// Responder: a valid Request came. Answer with Session::accept() or reject(), now or later.
  virtual void request_received(const StartOffer& peer, base::ByteView private_data,
                                base::Now now) = 0;
  /// Full operation: initiator has the accepting Reply (with its private data); responder has sent
  /// it.
  virtual void started(const Negotiated& agreed, base::ByteView private_data, base::Now now) = 0;
  /// No full operation. RejectedByPeer carries the Reply's private data. Exactly one of started()
  /// and start_failed() is called for a session that was begun (both only with RtrMissing). The
  /// session closes the stream, except
  ///  * while Session::left(): MPA is left and TCP is open (RFC 5044 s.7.1.2): the owner closes it
  ///    or calls Session::hand_over();
  ///  * while Session::full_operation(): the endpoint is told the error behind this call, has to be
  ///    ready to send a Terminate, and closes.
  virtual void start_failed(StartFailure why, base::ByteView private_data, base::Now now) = 0;
  /// Responder of a peer-to-peer connection: the RTR came (RFC 6581 s.9.2).
  virtual void rtr_received(base::Now now) { static_cast<void>(now); }
  /// While Session::left(), before hand_over(): the peer has closed its half. Told once, also when
  /// it did so before MPA was left.
  virtual void peer_left(base::Now now) { static_cast<void>(now); }
  /// The very last call of all, after everything else of Session::ended(): the stream is gone and
  /// the session will not be called by it again; the owner may destroy the session after this call
  /// returned.
  virtual void stream_ended(StreamEnd how, base::Now now) {
    static_cast<void>(how);
    static_cast<void>(now);
  }
};

/// A framing protocol's session as a device sees it: between a Stream and a FramingUser, with a
/// start-up that its owner answers. MPA's Session, and tuf's.
class StartSession : public llp::StreamUser, public llp::Framing {
 public:
  /// The stream this session runs on; before established().
  virtual void attach(llp::Stream& stream) = 0;
  /// The DDP endpoint; before accept() / before the Reply (RFC 5044 s.7.1 rule: none is needed
  /// earlier).
  virtual void bind(llp::FramingUser& user) = 0;
  /// Takes the endpoint away again: it will not be told of the end. Not in full operation.
  virtual void unbind() = 0;

  /// Responder: answer the Request. At most private_data_max() octets.
  virtual void accept(base::ByteView private_data, base::Now now, const StartWish& wish = {}) = 0;
  virtual void reject(base::ByteView private_data, base::Now now, const StartWish& wish = {}) = 0;
  /// Responder: how much private data an answer may have; valid from request_received() on.
  [[nodiscard]] virtual size_t private_data_max() const = 0;

  /// The framing was left by a reject and TCP is open.
  [[nodiscard]] virtual bool left() const = 0;

  /// Start-up time-outs and the delay of the first FPDU; kNever when none is pending. The owner
  /// calls on_timer() when it has come.
  [[nodiscard]] virtual base::Now next_deadline() const = 0;
  virtual void on_timer(base::Now now) = 0;

  [[nodiscard]] virtual const Negotiated& negotiated() const = 0;
  [[nodiscard]] virtual bool full_operation() const = 0;
  /// Octets in hold space now: received, and not placed yet.
  [[nodiscard]] virtual uint64_t held() const = 0;
  /// Stream offset behind the octets of the peer that have come in order.
  [[nodiscard]] virtual uint64_t arrived() const = 0;
};

class Session final : public StartSession {
 public:
  /// Begins when the stream is established. `private_data` goes into the Request;
  /// private_data_max(plan_request(config, wish)) says how much may.
  Session(const Config& config, Role role, HoldStore& hold, Counters& counters, StartEvents& events,
          base::ByteView private_data, const StartWish& wish = {});
  ~Session() override;

  /// Instead of established(): the stream has carried streaming octets (RFC 5044 s.7.1.3). The
  /// peer's start frame begins at `received`; ours follows what was sent, and `last_message`, when
  /// there is one, goes out before it (s.7.1.5).
  void take_over(uint32_t emss, uint64_t received, base::ByteView last_message, base::Now now);
  /// Stream offsets behind what was taken of the peer's start frame, and behind ours once it was
  /// handed to the stream.
  [[nodiscard]] uint64_t received() const;
  [[nodiscard]] uint64_t sent() const;
  /// While left(): `next` uses the stream from here on. It is given what the peer has sent behind
  /// its start frame. It outlives the stream.
  void hand_over(llp::StreamUser& next, base::Now now);

  // StartSession
  void attach(llp::Stream& stream) override;
  void bind(llp::FramingUser& user) override;
  void unbind() override;
  void accept(base::ByteView private_data, base::Now now, const StartWish& wish = {}) override;
  void reject(base::ByteView private_data, base::Now now, const StartWish& wish = {}) override;
  [[nodiscard]] size_t private_data_max() const override;
  [[nodiscard]] bool left() const override;
  [[nodiscard]] base::Now next_deadline() const override;
  void on_timer(base::Now now) override;
  [[nodiscard]] const Negotiated& negotiated() const override;
  [[nodiscard]] bool full_operation() const override;
  [[nodiscard]] uint64_t held() const override;
  [[nodiscard]] uint64_t arrived() const override;

  // llp::StreamUser
  void established(uint32_t emss, base::Now now) override;
  llp::Pulled pull(uint32_t n, uint64_t offset, llp::Frame& out) override;
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
