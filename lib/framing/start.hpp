/// \file
/// The start-up of a framing protocol as its owner sees it: the options of a connection, the peer's
/// offer, the result, the reason of a failure, and the session that carries it out.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "base/time.hpp"
#include "framing/hold_share.hpp"
#include "framing/receiver_stats.hpp"
#include "llp/llp.hpp"
#include "rnic/connection.hpp"

namespace rnic::framing {

enum class Role : uint8_t { Initiator, Responder };

/// The options that a ULP asks for on one connection.
struct StartOptions {
  std::optional<uint8_t> revision;  ///< initiator: takes the place of the configured revision
  bool exchange_reads = false;      ///< initiator: tell ird and ord (RFC 6581)
  bool peer_to_peer = false;        ///< initiator: an explicit RTR (RFC 6581)
  uint16_t ird = 0;           ///< inbound Reads that this side can take, or kReadsByApplication
  uint16_t ord = 0;           ///< outbound Reads that it would like, or kReadsByApplication
  uint16_t ord_required = 0;  ///< responder: outbound Reads without which it rejects the request
};

/// The contents of the peer's start frame.
struct StartOffer {
  uint8_t revision = 1;
  bool markers = false;
  bool crc = false;
  bool enhanced = false;       ///< the frame had enhanced data: ird, ord, peer_to_peer and rtr
  bool reads_in_data = false;  ///< ird and ord stood in the private data of revision 1 (BUG-12)
  bool peer_to_peer = false;
  uint8_t rtr = 0;  ///< wire::kMpaRtr*
  uint32_t ird = 0;
  uint32_t ord = 0;

  [[nodiscard]] bool has_reads() const { return enhanced || reads_in_data; }
};

/// The parameters on which both ends have agreed in the start-up.
struct Negotiated : ConnectionFacts {
  /// wire::kMpaRtr*; initiator: the kind to send; responder: the kinds of its Reply.
  uint8_t rtr_kinds = 0;
};

/// Copies the peer's IRD and ORD from its start frame to `facts`.
void note_reads(const StartOffer& peer, ConnectionFacts& facts);

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
  RejectedLocally,    ///< responder: reject() was called and the Reply handed to the stream
  NoReply,            ///< initiator: the peer closed instead of replying
  ResetBeforeReply,   ///< initiator: the peer reset the connection instead of replying
  NotEnhanced,        ///< initiator: the Reply to an enhanced Request is not enhanced
  InsufficientReads,  ///< RFC 6581 s.9.1: Terminate 2/0/6, or a reject by the responder
  NoMatchingRtr,      ///< RFC 6581 s.9.2: Terminate 2/0/7
  LocalError,         ///< RFC 6581 s.9.3: Terminate 2/0/5
  RtrMissing,         ///< responder: no RTR in time
  RtrBroken,          ///< responder: the octets in the place of the RTR are no FPDU
  ForeignFrame,       ///< ULP framing: the peer's start frame is another protocol's
  NoCommonMode,       ///< ULP framing: no mode that both ends have
  OutOfMemory,        ///< this side has no memory for a start frame
  // Initiator: there was never a TCP connection.
  Refused,
  Unreachable,
  Unanswered,
};
[[nodiscard]] const char* to_string(StartFailure failure);
/// The reason of the failure of a start-up whose stream has ended. \param opened there was a TCP
/// connection
[[nodiscard]] StartFailure start_failure_of(StreamEnd how, bool opened);

/// The calls to the owner of a session's start-up (the device's connection management), made on the
/// worker.
class StartEvents {
 public:
  virtual ~StartEvents() = default;
  /// Responder: a valid Request came. The owner answers with StartSession::accept() or reject(),
  /// now or later.
  virtual void request_received(const StartOffer& peer, base::ByteView private_data,
                                base::Now now) = 0;
  /// Full operation begins: the initiator has received the accepting Reply (with its private data),
  /// or the responder has sent it.
  virtual void started(const Negotiated& agreed, base::ByteView private_data, base::Now now) = 0;
  /// There is no full operation. With RejectedByPeer the private data is the Reply's. Exactly one
  /// of started() and start_failed() is called for a session that was begun (both only with
  /// RtrMissing and RtrBroken). The session closes the stream, except
  ///  * while Session::left(): MPA is left and TCP is open (RFC 5044 s.7.1.2): the owner closes it
  ///    or hands it to another user;
  ///  * while Session::full_operation(): the endpoint is told the error behind this call, has to be
  ///    ready to send a Terminate, and closes.
  virtual void start_failed(StartFailure why, base::ByteView private_data, base::Now now) = 0;
  /// Responder of a peer-to-peer connection: the RTR came (RFC 6581 s.9.2).
  virtual void rtr_received(base::Now now) { static_cast<void>(now); }
  /// While StartSession::left(): the peer has closed its half. Called once, also when
  /// it did so before MPA was left.
  virtual void peer_left(base::Now now) { static_cast<void>(now); }
  /// The last call, after everything else of the session's ended(): the stream is gone and will not
  /// call the session again. The owner may destroy the session after this call has returned.
  virtual void stream_ended(StreamEnd how, base::Now now) {
    static_cast<void>(how);
    static_cast<void>(now);
  }
};

/// A framing protocol's session as a device sees it, between a Stream and a FramingUser, with a
/// start-up that its owner answers. mpa::Session and tuf::Session implement it.
class StartSession : public llp::StreamUser, public llp::Framing {
 public:
  /// Sets the stream that the session runs on; called before established().
  virtual void attach(llp::Stream& stream) = 0;
  /// Sets the DDP endpoint: called by a responder before accept(), by an initiator before the Reply
  /// comes (RFC 5044 s.7.1 needs none earlier).
  virtual void bind(llp::FramingUser& user) = 0;
  /// Removes the endpoint, which will not be told of the end. Must not be called in full operation.
  virtual void unbind() = 0;

  /// Responder: answers the Request with at most private_data_max() octets.
  virtual void accept(base::ByteView private_data, base::Now now,
                      const StartOptions& start_options = {}) = 0;
  virtual void reject(base::ByteView private_data, base::Now now,
                      const StartOptions& start_options = {}) = 0;
  /// Responder: the most octets of private data that an answer may have; valid from
  /// request_received() on.
  [[nodiscard]] virtual size_t private_data_max() const = 0;

  /// The framing was left by a reject and TCP is open.
  [[nodiscard]] virtual bool left() const = 0;

  /// The time at which the start-up times out, or a delayed first FPDU may be sent; kNever when
  /// neither is pending. The owner calls on_timer() at this time.
  [[nodiscard]] virtual base::Now next_deadline() const = 0;
  virtual void on_timer(base::Now now) = 0;

  [[nodiscard]] virtual const Negotiated& negotiated() const = 0;
  [[nodiscard]] virtual bool full_operation() const = 0;
  /// Octets in hold space now: those that were received and not placed yet.
  [[nodiscard]] virtual uint64_t held() const = 0;
  /// Its hold space is from now on part of `share`. \param share nullptr: of none
  virtual void share_hold(HoldSharePtr share) = 0;
  /// Stream offset behind the octets of the peer that have come in order.
  [[nodiscard]] virtual uint64_t arrived() const = 0;
  [[nodiscard]] virtual const ReceiverStats& receiver_stats() const = 0;

  /// Checks the invariants of its parts, which hold between calls.
  virtual void validate() const = 0;
};

}  // namespace rnic::framing
