/// \file
/// Terminate (RFC 5040 sections 4.8 and 7.1). The only place that turns a fault into a message and
/// a message into a fault.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.hpp"
#include "ddp/fault.hpp"
#include "ddp/placement.hpp"
#include "rdmap/rdmap.hpp"
#include "wire/terminate.hpp"

namespace rnic::rdmap {

/// The Terminate header for `fault`, with the headers of RFC 5040 figure 10. `rdma_header`: 28
/// octets of the Read Request at fault, or empty.
[[nodiscard]] wire::Terminate terminate_for(const Fault& fault, const ddp::SegmentReport& segment,
                                            base::ByteView rdma_header);

/// The Terminate of this side, as octets: kept for its retransmission.
class SentTerminate {
 public:
  void set(const wire::Terminate& terminate) {
    size_ = wire::write_terminate(octets_.data(), terminate);
  }
  /// Adds its octets to the payload of the message, which only reads them.
  void add_to(ddp::Pieces& out) { out.add(octets_.data(), size_); }
  /// Octets of the Terminate; 0: there is none.
  [[nodiscard]] uint32_t size() const { return size_; }

 private:
  std::array<uint8_t, wire::kTerminateSizeMax> octets_{};
  uint32_t size_ = 0;  // Invariant: <= octets_.size()
};

/// The content of a received Terminate.
struct ReceivedTerminate {
  wire::Terminate header;
  wire::TerminateBitOrder order = wire::TerminateBitOrder::Rfc;
  Fault fault;
  std::string detail;  ///< both readings when they differ
};

/// Reads a Terminate header as RFC 5040 says, and in Linux siw's order of bits where the first
/// reading is impossible or does not fit the attached headers (BUG-13). Nothing when neither
/// reading is possible.
[[nodiscard]] std::optional<ReceivedTerminate> read_terminate(base::ByteView octets);

/// The octets as a text: "41 43 00 ...".
[[nodiscard]] std::string hex(base::ByteView octets);

}  // namespace rnic::rdmap
