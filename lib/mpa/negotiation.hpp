/// \file
/// What the two start frames agree on, as functions of values: markers, CRC, revision (RFC 5044
/// s.7.1, app. C; draft-ietf-rddp-mpa-00 s.8.1), depth of the Read queues and the kind of RTR
/// (RFC 6581 s.9).
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "llp/framing.hpp"
#include "rnic/connection.hpp"
#include "wire/mpa.hpp"

namespace rnic::mpa {

struct Config;

/// What a ULP wants of one connection.
struct StartWish {
  std::optional<uint8_t> revision;  ///< initiator: instead of the configured one
  bool exchange_reads = false;      ///< initiator: tell ird and ord (RFC 6581)
  bool peer_to_peer = false;        ///< initiator: an explicit RTR (RFC 6581)
  uint16_t ird = 0;                 ///< inbound Reads this side can take; kReadsByApplication
  uint16_t ord = 0;                 ///< outbound Reads it would like; kReadsByApplication
  uint16_t ord_required = 0;  ///< responder: outbound Reads without which it rejects the request
};

/// What the peer's start frame says.
struct StartOffer {
  uint8_t revision = 1;
  bool markers = false;
  bool crc = false;
  bool enhanced = false;       ///< ird, ord and the rest were in it
  bool reads_in_data = false;  ///< ird and ord stood in the private data of revision 1 (BUG-12)
  bool peer_to_peer = false;
  uint8_t rtr = 0;  ///< wire::kMpaRtr*
  uint32_t ird = 0;
  uint32_t ord = 0;

  [[nodiscard]] bool has_reads() const { return enhanced || reads_in_data; }
};

/// What was agreed in the start-up.
struct Negotiated : ConnectionFacts {
  uint8_t rtr_kinds = 0;  ///< wire::kMpaRtr*; initiator: the one to send; responder: its Reply's
};

/// Keeps what the peer's frame says of its Read queues.
void note_reads(const StartOffer& peer, ConnectionFacts& facts);

/// A Request, or a Reply, and where its private data has to begin with what.
struct StartPlan {
  wire::MpaStartHeader header;  ///< pd_length is left to the sender
  wire::MpaEnhancedData data;   ///< sent when header.enhanced
  bool reads_in_data = false;   ///< ird and ord as 32 bits each come first (BUG-12)
  Negotiated agreed;            ///< Reply
  bool reads_suffice = true;    ///< Reply: false: only a reject is possible
};

/// Octets in front of the ULP's own private data.
[[nodiscard]] size_t prefix_size(const StartPlan& plan);
/// The longest private data of the ULP that fits behind them.
[[nodiscard]] size_t private_data_max(const StartPlan& plan);
/// Writes prefix_size() octets.
void emit_prefix(const StartPlan& plan, uint8_t* dst);

/// The revision that an initiator's Request has: RFC 6581 s.10, enhanced only when wanted.
[[nodiscard]] StartPlan plan_request(const Config& config, const StartWish& wish);
/// Responder: what an accepting Reply says, and what then holds.
[[nodiscard]] StartPlan plan_reply(const Config& config, const StartWish& wish,
                                   const StartOffer& request);
/// The same frame as a reject. `plan.reads_suffice` false: the ORD it would have needed is in it.
void make_reject(StartPlan& plan, const StartWish& wish);

/// What a frame says; `data` is all of its private data. `prefix` becomes the number of octets that
/// are not the ULP's.
[[nodiscard]] StartOffer read_offer(const Config& config, const StartPlan* request,
                                    const wire::MpaStartHeader& header, base::ByteView data,
                                    size_t& prefix);

/// Initiator: what an accepting Reply to `request` means.
struct ReplyVerdict {
  Negotiated agreed;
  bool enhanced_missing = false;                      ///< the peer does not speak RFC 6581
  llp::FramingError error = llp::FramingError::None;  ///< to be told by Terminate (s.9.1 to 9.3)
};
[[nodiscard]] ReplyVerdict judge_reply(const Config& config, const StartWish& wish,
                                       const StartPlan& request, const StartOffer& reply);

/// A frame of that revision is understood. `most`: of an initiator the Request's own revision.
[[nodiscard]] bool revision_fits(const Config& config, uint8_t most, uint8_t revision);

}  // namespace rnic::mpa
