/// \file
/// How one connection is set up, and what its start-up has agreed on.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "rnic/address.hpp"
#include "rnic/tcp_options.hpp"
#include "rnic/transport.hpp"

namespace rnic {

inline constexpr uint32_t kMaxPrivateData = 508;  ///< octets that every revision but 0 carries
/// As an IRD or ORD: the applications agree on it, and not the start-up (RFC 6581 s.9.1).
inline constexpr uint16_t kReadsByApplication = 0x3fff;

/// The kinds of RTR (RFC 6581 s.9.2): the initiator's first message, of length zero.
enum class Rtr : uint8_t { None, Send, Write, Read };

/// Which kinds of RTR this side sends and takes (RFC 6581 s.9.2); at least one.
struct RtrKinds {
  bool send = true;   ///< a Send of length zero
  bool write = true;  ///< a Write of length zero
  bool read = true;   ///< a Read of length zero
};

/// How one side conducts the start-up of one connection, or of a listener's connections
/// (docs/connections.md). The device's setting, whose key stands beside each field, decides what is
/// not set here. ULP framing knows only `timeout` and refuses the other fields, which are MPA's.
struct StartPolicy {
  /// mpa.revision, 0 to 2. Connect: the MPA revision of the Request. Listen: the highest revision
  /// that is served; 0: the draft's profile, which knows no other revision.
  std::optional<uint8_t> revision;
  std::optional<bool> permissive;       ///< mpa.permissive: listen: also serve revision 0
  std::optional<bool> crc;              ///< mpa.crc: ask for CRCs; one side's wish is enough
  std::optional<bool> markers_receive;  ///< mpa.markers: the peer puts markers in
  std::optional<bool> markers_send;     ///< mpa.markers_send_allowed; false: a peer that asks us to
                                        ///< put markers in is refused
  std::optional<RtrKinds> rtr;          ///< mpa.rtr_send, mpa.rtr_write, mpa.rtr_read
  /// mpa.first_fpdu_delay: connect: the time from the Reply to the first FPDU, 0 to a minute.
  std::optional<std::chrono::nanoseconds> first_fpdu_delay;
  /// framing.start_timeout: the limit of the whole start-up, 10 ms to an hour. For a connect it
  /// includes TCP's handshake.
  std::optional<std::chrono::nanoseconds> timeout;
  /// mpa.rtr_timeout: listen: the time from the Reply to the RTR, and the time before
  /// event::FirstFpduOverdue; 1 ms to an hour.
  std::optional<std::chrono::nanoseconds> rtr_timeout;
  std::optional<bool> silent_drop;            ///< mpa.silent_drop: drop on a bad CRC before commit
  std::optional<bool> reads_in_private_data;  ///< mpa.reads_in_private_data, for revision 1
  /// Connect: try once more, with revision 1, if the peer does not answer an enhanced Request
  /// (RFC 6581 s.10). true: also for a peer-to-peer connect; since revision 1 has no RTR the
  /// initiator has to send first then. false: never. Nothing: as mpa.redial says, and never for a
  /// peer-to-peer connect. ConnectionFacts::fell_back tells whether it happened.
  std::optional<bool> fall_back;
};

/// How one connection is set up. The configuration (`framing`, `mpa.*`) and the queue pair decide
/// what is not set here.
struct ConnectOptions {
  StartPolicy start{};  ///< connect; accepted ones follow their listener's
  /// connect: agree on IRD and ORD (revision 2, or ULP framing, which does by default)
  std::optional<bool> exchange_reads;
  /// connect: either side may send first (revision 2; with ULP framing it always may)
  std::optional<bool> peer_to_peer;
  std::optional<uint32_t> ird;     ///< inbound Reads at once; not above the queue pair's
  std::optional<uint32_t> ord;     ///< outbound Reads at once; not above the queue pair's
  std::optional<bool> packing;     ///< put several FPDUs into one segment; default:
                                   ///< tcp.pack_records
  uint32_t ord_required = 0;       ///< accept: reject a peer that serves fewer Reads; to 0x3ffe
  std::optional<Framing> framing;  ///< connect: the framing that the peer listens with
  TcpOptions tcp{};                ///< from the handshake on; accept: from the answer on
  /// connect: this side's endpoint. An unspecified address: the route chooses it; port 0: any free
  /// port. AlreadyExists: the port is reserved (Device::reserve()). A fall-back
  /// (StartPolicy::fall_back) keeps the address and takes any free port.
  Endpoint source{};
};

/// How a listener accepts connections. The configuration decides what is not set here.
struct ListenOptions {
  std::optional<Framing> framing;  ///< of all connections accepted there
  StartPolicy start{};             ///< of all connections accepted there
  TcpOptions tcp{};                ///< of all connections accepted there, from the handshake on
  /// Requests of this listener that wait for the application's answer, at least 1; more are reset
  /// (counter `requests_beyond_backlog`). Nothing: only limits.max_pending_requests limits them.
  std::optional<uint32_t> backlog;
  /// The application's own pointer: events of requests that come there carry it. The library never
  /// dereferences it.
  void* context = nullptr;
};

/// What a start-up has agreed on.
struct ConnectionFacts {
  uint8_t revision = 1;          ///< of MPA, the lower one of both; with 0 DDP and RDMAP have
                                 ///< version 0, too
  bool crc = true;               ///< CRCs are sent and checked
  bool markers_send = false;     ///< this side puts markers into its stream
  bool markers_receive = false;  ///< the peer puts markers into its stream
  bool peer_to_peer = false;     ///< an RTR comes first
  bool fell_back = false;        ///< initiator: the second attempt, with revision 1 (RFC 6581 s.10)
  Rtr rtr = Rtr::None;           ///< initiator: the kind that it sends
  // These are empty if the start-up has not exchanged them.
  std::optional<uint32_t> ird;       ///< inbound Reads in force
  std::optional<uint32_t> ord;       ///< outbound Reads in force
  std::optional<uint32_t> peer_ird;  ///< as the peer told it; may be kReadsByApplication
  std::optional<uint32_t> peer_ord;  ///< as the peer told it; may be kReadsByApplication
};

/// Names a connection request until it is answered, at the device that its event came from; another
/// device answers InvalidArgument. The fields are the library's own.
struct RequestHandle {
  uint32_t index = UINT32_MAX;
  uint32_t generation = 0;
  uint32_t device = 0;  ///< a number that no other device of the process has; 0: none
  friend bool operator==(const RequestHandle&, const RequestHandle&) = default;
};

}  // namespace rnic
