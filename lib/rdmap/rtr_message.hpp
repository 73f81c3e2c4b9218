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
  /// What the start-up agreed on. \param kind None: the stream has no such message
  void agree(Rtr kind) {
    kind_ = kind;
    pending_ = kind != Rtr::None;
  }
  /// It goes out before every other message.
  [[nodiscard]] bool is_pending() const { return pending_; }
  /// It was handed down.
  [[nodiscard]] bool was_sent() const { return kind_ != Rtr::None && !pending_; }
  void set_sent() { pending_ = false; }

  [[nodiscard]] Rtr kind() const { return kind_; }
  [[nodiscard]] uint32_t header_size() const {
    return kind_ == Rtr::Write ? wire::kDdpTaggedSize : wire::kDdpUntaggedSize;
  }
  /// A Read Request is the payload of its message.
  [[nodiscard]] uint32_t payload_size() const {
    return kind_ == Rtr::Read ? wire::kRdmapReadRequestSize : 0;
  }
  /// \param version RV and DV of the stream
  void write(uint8_t version, llp::UlpduWriter& out) const;

 private:
  Rtr kind_ = Rtr::None;
  bool pending_ = false;  // Invariant: false when kind_ is None
};

/// An RDMA Write of no octets (RFC 5040 s.5.1, RFC 5041 s.5.2): whoever wants to may send it, and
/// no STag is looked at.
void write_empty_write(uint8_t version, llp::UlpduWriter& out);

}  // namespace rnic::rdmap
