/// \file
/// The agreement of the two start frames, as functions of values: markers, CRC, revision (RFC 5044
/// s.7.1, app. C; draft-ietf-rddp-mpa-00 s.8.1), depth of the Read queues and the kind of RTR
/// (RFC 6581 s.9).
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "framing/read_depths.hpp"
#include "llp/framing.hpp"
#include "rnic/connection.hpp"
#include "wire/mpa.hpp"

namespace rnic::mpa {

struct Config;

/// A Request or a Reply, without the ULP's private data.
struct StartPlan {
  wire::MpaStartHeader header;  ///< pd_length is left to the sender
  wire::MpaEnhancedData data;   ///< sent when header.enhanced
  bool reads_in_data = false;   ///< ird and ord as 32 bits each come first (BUG-12)
  framing::Negotiated agreed;   ///< Reply
  /// Reply. False: only a reject is possible, which tells the ORD that would have been needed.
  bool reads_suffice = true;
};

/// Octets in front of the ULP's own private data.
[[nodiscard]] size_t prefix_size(const StartPlan& plan);
/// The longest private data of the ULP that fits behind the prefix.
[[nodiscard]] size_t private_data_max(const StartPlan& plan);
/// Writes prefix_size() octets.
void emit_prefix(const StartPlan& plan, uint8_t* dst);

/// Initiator: the Request that asks for these options, enhanced only when one of them needs it
/// (RFC 6581 s.10).
[[nodiscard]] StartPlan plan_request(const Config& config,
                                     const framing::StartOptions& start_options);
/// Responder: makes an accepting Reply, and what is agreed by it.
[[nodiscard]] StartPlan plan_reply(const Config& config, const framing::StartOptions& start_options,
                                   const framing::StartOffer& request);
/// Makes the frame a reject.
void make_reject(StartPlan& plan);

/// Reads a frame; `data` is all of its private data. `prefix` becomes the number of octets that
/// are not the ULP's.
[[nodiscard]] framing::StartOffer read_offer(const Config& config, const StartPlan* request,
                                             const wire::MpaStartHeader& header,
                                             base::ByteView data, size_t& prefix);

/// Initiator: the result of an accepting Reply.
struct ReplyVerdict {
  framing::Negotiated agreed;
  bool enhanced_missing = false;                      ///< the peer does not speak RFC 6581
  llp::FramingError error = llp::FramingError::None;  ///< to be told by Terminate (s.9.1 to 9.3)
};
[[nodiscard]] ReplyVerdict judge_reply(const Config& config,
                                       const framing::StartOptions& start_options,
                                       const StartPlan& request, const framing::StartOffer& reply);

/// A frame of this revision is understood. \param most the highest revision that is understood; for
/// an initiator the revision of its Request
[[nodiscard]] bool revision_fits(const Config& config, uint8_t most, uint8_t revision);

}  // namespace rnic::mpa
