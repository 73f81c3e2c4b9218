/// \file
/// The RTR of a peer-to-peer connection (RFC 6581 section 9), as its initiator sends it.
#pragma once

#include <cstdint>

#include "ddp/segmenter.hpp"
#include "llp/framing.hpp"
#include "rnic/connection.hpp"
#include "wire/ddp.hpp"
#include "wire/rdmap.hpp"

namespace rnic::rdmap {

/// The first message of the stream, of no octets: a Send, a Write or a Read. It takes no place in
/// the send queue and completes nothing.
class RtrMessage {
 public:
  /// Sets the kind that the start-up agreed on. \param kind None: the stream has no RTR
  void agree(Rtr kind) {
    kind_ = kind;
    pending_ = kind != Rtr::None;
  }
  /// \return whether the RTR is still to be sent, before every other message
  [[nodiscard]] bool is_pending() const { return pending_; }
  /// \return whether the RTR was handed down
  [[nodiscard]] bool was_sent() const { return kind_ != Rtr::None && !pending_; }
  void set_sent() { pending_ = false; }

  [[nodiscard]] Rtr kind() const { return kind_; }
  [[nodiscard]] uint32_t header_size() const {
    return kind_ == Rtr::Write ? wire::kDdpTaggedSize : wire::kDdpUntaggedSize;
  }
  /// Octets of payload: those of the Read Request if the RTR is a Read, otherwise 0.
  [[nodiscard]] uint32_t payload_size() const {
    return kind_ == Rtr::Read ? wire::kRdmapReadRequestSize : 0;
  }
  /// \param version RV and DV of the stream
  void write(uint8_t version, llp::UlpduWriter& out) const;

 private:
  Rtr kind_ = Rtr::None;
  bool pending_ = false;  // Invariant: false when kind_ is None
};

/// Writes an RDMA Write of no octets (RFC 5040 s.5.1, RFC 5041 s.5.2). It may be sent at any time,
/// and the peer checks no STag for it.
void write_empty_write(uint8_t version, llp::UlpduWriter& out);

}  // namespace rnic::rdmap
