/// \file
/// RDMA Reads: those we answer (inbound, limited by IRD) and those we wait for (outbound, limited
/// by ORD).
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "base/bytes.hpp"
#include "ddp/fault.hpp"
#include "ddp/segmenter.hpp"
#include "mem/stag_table.hpp"
#include "wire/ddp.hpp"
#include "wire/rdmap.hpp"

namespace rnic::rdmap {

/// RDMAP's code for a refused access to a Read's source (RFC 5040 figure 9, s.7.2).
[[nodiscard]] ddp::Fault read_source_fault(mem::AccessFault fault);

/// A Read Request of the wrong size (RDMAP-4.4-04). RFC 5040 names no code of its own.
inline constexpr ddp::Fault kBadReadRequest{ddp::kLayerUpper, 0x2, 0xff, "RDMAP-4.4-04"};

/// A Read Request that came in, kept until its Response was acknowledged.
struct InboundRead {
  std::array<uint8_t, wire::rdmap::kReadRequestSize> raw{};  ///< the queue 1 buffer
  wire::rdmap::ReadRequest request;
  ddp::SegmentReport segment;  ///< for a Terminate about it
  bool released = false;
  bool early = false;  ///< answered at placement: only ever true with a planted defect

  /// The Read Request of what is left after `done` octets (RDMAP-4.8-08, RDMAP-4.8-09).
  void remaining(uint32_t done, uint8_t* out) const;
};

/// Queue 1: `ird` buffers. Read Requests are answered in the order of their delivery. The buffer of
/// a Read is free for the next one when its Response was sent, since the peer may ask again as soon
/// as it has it; the slot stays until the acknowledgement. The ring therefore has room for twice
/// the IRD.
class InboundReads {
 public:
  explicit InboundReads(uint32_t ird);

  [[nodiscard]] InboundRead& of_msn(uint32_t msn) { return at(msn - 1); }
  [[nodiscard]] bool has_msn(uint32_t msn) const { return holds(msn - 1); }
  [[nodiscard]] InboundRead& at(uint32_t seq) { return slots_[seq & mask_]; }
  /// Delivered or in use for a retransmission.
  [[nodiscard]] bool holds(uint32_t seq) const { return seq - free_ < provided_ - free_; }

  /// The next Read was delivered: it may be answered.
  void deliver() { ++deliver_; }
  [[nodiscard]] uint32_t next_delivery() const { return deliver_; }
  [[nodiscard]] bool has_ready() const { return serve_ != deliver_; }
  [[nodiscard]] uint32_t ready() const { return serve_; }
  /// The Response of ready() was pulled completely.
  void served() { ++serve_; }
  void release(uint32_t seq);

  /// How many buffers may be added to queue 1 now; they count as added.
  uint32_t provide();

 private:
  uint32_t ird_;
  uint32_t mask_;
  std::unique_ptr<InboundRead[]> slots_;
  uint32_t free_ = 0;      // oldest whose Response is not acknowledged
  uint32_t serve_ = 0;     // next to answer
  uint32_t deliver_ = 0;   // next to be delivered
  uint32_t provided_ = 0;  // first without a buffer
};

/// A Read of ours that waits for its Response.
struct OutboundRead {
  uint32_t seq = 0;  ///< its slot in the send queue
  uint32_t sink_stag = 0;
  uint64_t sink_to = 0;
  uint32_t length = 0;
  uint32_t delivered = 0;  ///< octets of the Response that the order has reached
};

class OutboundReads {
 public:
  explicit OutboundReads(uint32_t ord);

  [[nodiscard]] bool has_room() const { return count_ < ord_; }
  [[nodiscard]] uint32_t limit() const { return ord_; }
  [[nodiscard]] uint32_t outstanding() const { return count_; }
  void push(const OutboundRead& read);
  void clear() { count_ = 0; }

  /// May this segment be placed? Inside the sink of one outstanding Read, whole (BUG-01): the
  /// region may be larger than what was asked for.
  [[nodiscard]] ddp::Fault check(const wire::ddp::TaggedHeader& header, uint32_t payload) const;
  /// The order has reached a segment. `done` is set to the Read that it ends.
  [[nodiscard]] ddp::Fault deliver(const wire::ddp::TaggedHeader& header, uint32_t payload,
                                   const OutboundRead*& done);
  /// Forget the oldest.
  void pop();

 private:
  [[nodiscard]] const OutboundRead& nth(uint32_t i) const;

  uint32_t ord_;
  std::unique_ptr<OutboundRead[]> ring_;
  uint32_t head_ = 0;
  uint32_t count_ = 0;  // Invariant: <= ord_
};

}  // namespace rnic::rdmap
