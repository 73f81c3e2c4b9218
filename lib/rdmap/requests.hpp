/// \file
/// Requests that have a response, RDMA Reads and atomics: those we answer (inbound, limited by IRD)
/// and those we wait for (outbound, limited by ORD). RFC 7306 s.5.2: atomics share the queue, the
/// order and the limits of the Reads.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/time.hpp"
#include "ddp/coverage.hpp"
#include "ddp/fault.hpp"
#include "ddp/segmenter.hpp"
#include "mem/stag_table.hpp"
#include "rdmap/ring_store.hpp"
#include "wire/ddp.hpp"
#include "wire/rdmap.hpp"

namespace rnic::rdmap {

/// RDMAP's code for a refused access to a Read's source or an atomic's target (RFC 5040 figure 9,
/// s.7.2).
[[nodiscard]] Fault protection_fault(mem::AccessFault fault);

/// A Read Request of the wrong size (RDMAP-4.4-04). RFC 5040 names no code of its own.
inline constexpr Fault kBadReadRequest{FaultLayer::Rdmap, 0x2, 0xff, "RDMAP-4.4-04"};

/// A request of the peer, kept until its response is acknowledged.
struct InboundRequest {
  std::array<uint8_t, wire::kRdmapAtomicRequestSize> raw{};  ///< the queue 1 buffer
  ddp::SegmentReport segment;                                ///< for a Terminate about it
  uint64_t original = 0;      ///< atomic, executed: what the target held before
  uint32_t response_msn = 0;  ///< atomic, executed: on queue 3
  bool atomic = false;
  bool executed = false;  ///< atomic: exactly once
  bool released = false;
  base::Now due{};  ///< not to be answered before

  [[nodiscard]] base::ByteView read_header() const {
    return {raw.data(), wire::kRdmapReadRequestSize};
  }
  [[nodiscard]] wire::RdmapReadRequest read() const { return *wire::parse_rdmap_read_request(raw); }
  [[nodiscard]] wire::RdmapAtomicRequest atomic_request() const {
    return *wire::parse_rdmap_atomic_request(raw);
  }
  /// Writes the Read Request for what is left after `done` octets (RDMAP-4.8-08, RDMAP-4.8-09).
  void remaining(uint32_t done, uint8_t* out) const;
};

/// Queue 1 with its `ird` buffers. Requests are answered in the order of their delivery. The buffer
/// of a request is free for the next one when its response was sent, since the peer may ask again
/// as soon as it has the response; the slot stays until the acknowledgement, for a retransmission.
/// The ring therefore has room for twice the IRD. It is taken when the first octets of a request
/// come, and given back when all requests that have begun were answered and acknowledged.
class InboundRequests {
 public:
  /// \param rings outlive this
  InboundRequests(uint32_t ird, RingStore<InboundRequest>& rings);
  /// Sets the depth, before any buffer is provided: at most `ird`, but 1 is always possible.
  void set_limit(uint32_t limit) { ird_ = std::min(limit, std::max(ird_, 1u)); }
  [[nodiscard]] uint32_t limit() const { return ird_; }

  /// The buffer of message `msn`, which was provided; the message has begun.
  [[nodiscard]] base::ByteSpan buffer(uint32_t msn) {
    begin(msn - 1);
    return slot(msn - 1).raw;
  }
  /// Precondition: the message has begun.
  [[nodiscard]] const InboundRequest& of_msn(uint32_t msn) const { return at(msn - 1); }
  /// What has come of the Read Request `msn`, zero where nothing has; empty: it has no buffer.
  [[nodiscard]] base::ByteView read_header(uint32_t msn) const;
  /// Precondition: the request has begun.
  [[nodiscard]] const InboundRequest& at(uint32_t seq) const { return ring_[seq]; }
  /// \return whether the request has a slot: it has a buffer, waits, or is kept for a
  /// retransmission
  [[nodiscard]] bool holds(uint32_t seq) const { return seq - free_ < provided_ - free_; }

  /// The whole of the next request was delivered: it may be answered, but not before `due`.
  /// \param now of the delivery
  void deliver(const ddp::SegmentReport& segment, bool atomic, base::Now due = {},
               base::Now now = {}) {
    begin(deliver_);
    InboundRequest& request = slot(deliver_++);
    request.segment = segment;
    request.atomic = atomic;
    request.due = due;
    allow(now);
  }
  /// Lets those be answered whose time has come, and which no other one is in front of.
  void allow(base::Now now) {
    while (allowed_ != deliver_ && at(allowed_).due <= now) ++allowed_;
  }
  /// The time at which allow() has something to do; kNever: no request waits for its time.
  [[nodiscard]] base::Now next_due() const {
    return allowed_ == deliver_ ? base::kNever : at(allowed_).due;
  }
  /// Behind the last request that may be answered.
  [[nodiscard]] uint32_t end_of_ready() const { return allowed_; }
  [[nodiscard]] bool has_ready() const { return serve_ != allowed_; }
  /// \return whether a request was delivered whose response was not pulled completely
  [[nodiscard]] bool has_unanswered() const { return serve_ != deliver_; }
  /// Requests delivered so far; wraps.
  [[nodiscard]] uint32_t delivered() const { return deliver_; }
  [[nodiscard]] uint32_t ready() const { return serve_; }
  /// The atomic was carried out, on a target that held `original`; once.
  void execute(uint32_t seq, uint64_t original, uint32_t response_msn) {
    InboundRequest& request = slot(seq);
    RNIC_CHECK(request.atomic && !request.executed);
    request.original = original;
    request.response_msn = response_msn;
    request.executed = true;
  }
  /// The response of ready() was pulled completely.
  void served() { ++serve_; }
  void release(uint32_t seq);

  /// How many buffers may be added to queue 1 now; they count as added.
  uint32_t provide();

  /// Checks the order of the marks, and that no slot is kept longer than needed, nor the ring.
  void validate() const;

 private:
  [[nodiscard]] InboundRequest& slot(uint32_t seq) { return ring_[seq]; }
  [[nodiscard]] bool has_begun(uint32_t seq) const { return seq - free_ < begun_ - free_; }
  /// Makes the slots up to that of `seq` those of requests of which nothing has come.
  void begin(uint32_t seq) {
    if (has_begun(seq)) return;
    RNIC_DCHECK(holds(seq));
    if (!ring_.is_taken()) ring_.take();
    while (!has_begun(seq)) slot(begun_++) = InboundRequest{};
  }

  uint32_t ird_;
  Ring<InboundRequest> ring_;  // Invariant: taken while free_ and begun_ differ, and not else
  uint32_t free_ = 0;          // oldest whose response is not acknowledged
  uint32_t serve_ = 0;         // next to answer
  uint32_t allowed_ = 0;       // first that may not be answered yet; deliver_ but for a stall
  uint32_t deliver_ = 0;       // next to be delivered
  uint32_t begun_ = 0;     // first that has no slot yet: nothing has come of it or of a later one
  uint32_t provided_ = 0;  // first without a buffer
};

/// A Read or atomic of ours that waits for its response.
struct OutboundRequest {
  uint32_t seq = 0;     ///< its slot in the send queue; an RTR has none
  bool rtr = false;     ///< a Read of nothing (RFC 6581 s.9.2)
  bool atomic = false;  ///< false: a Read, which the following fields describe
  uint32_t id = 0;      ///< atomic: Request Identifier
  uint32_t sink_stag = 0;
  uint64_t sink_to = 0;
  uint32_t length = 0;
  ddp::Coverage coverage;  ///< of the sink, by the segments delivered
};

/// A place for a request of ours, and one of the buffers of queue 3.
struct OutboundSlot {
  OutboundRequest request;
  std::array<uint8_t, wire::kRdmapAtomicResponseSize> response{};  ///< of an atomic
};

/// Reads and atomics of ours in the order of their responses. The ring is taken while there are
/// any.
class OutboundRequests {
 public:
  /// \param secret as ddp::Coverage's key \param rings outlive this
  OutboundRequests(uint32_t ord, uint64_t secret, RingStore<OutboundSlot>& rings);

  /// Sets the depth, at most `ord`.
  void set_limit(uint32_t limit) { limit_ = std::min(limit, limit_); }

  [[nodiscard]] bool has_room() const { return count_ < limit_; }
  [[nodiscard]] uint32_t limit() const { return limit_; }
  [[nodiscard]] uint32_t outstanding() const { return count_; }
  void push(const OutboundRequest& request);
  void clear() {
    if (count_ != 0) ring_.give();
    count_ = 0;
  }

  /// Checks whether this segment of a Read Response may be placed: all of it has to be inside the
  /// sink of one outstanding Read (BUG-01), since the region may be larger than that sink. `found`
  /// is set to that Read, unless there is no payload.
  [[nodiscard]] Fault find(const wire::DdpTaggedHeader& header, uint32_t payload,
                           const OutboundRequest*& found) const;
  /// The octets that have come of a Read that find() has found. nullptr: it is not the oldest, and
  /// none of its octets are delivered yet.
  [[nodiscard]] ddp::Coverage* coverage_of(const OutboundRequest& read) {
    OutboundRequest& oldest = ring_[head_].request;
    return &read == &oldest ? &oldest.coverage : nullptr;
  }
  /// A segment of a Read Response is delivered. `done` is set to the Read that it ends, if it does.
  [[nodiscard]] Fault deliver(const wire::DdpTaggedHeader& header, uint32_t payload,
                              const OutboundRequest*& done);
  /// An Atomic Response of `length` octets is delivered. `done` is set to its request.
  [[nodiscard]] Fault deliver_atomic(uint32_t msn, uint64_t length, const OutboundRequest*& done);
  /// The queue 3 buffer of a response. Precondition: an atomic is outstanding.
  [[nodiscard]] base::ByteSpan atomic_buffer(uint32_t msn) { return ring_[msn].response; }
  /// Removes the oldest request.
  void pop();

  /// Checks that no more requests wait than may, and that no more octets came than were asked for.
  void validate() const;

 private:
  [[nodiscard]] const OutboundRequest& nth(uint32_t i) const { return ring_[head_ + i].request; }

  uint32_t limit_;
  uint32_t capacity_;  // at least 1: a Read as RTR is not counted against the limit
  uint64_t secret_;
  Ring<OutboundSlot> ring_;  // Invariant: taken while count_ is not 0, and not else
  uint32_t head_ = 0;        // wraps
  uint32_t count_ = 0;       // Invariant: <= capacity_
};

/// The rings that the requests of a device's endpoints are in while they are under way: an endpoint
/// without any takes no memory for them.
struct RequestStore {
  RingStore<InboundRequest> inbound;
  RingStore<OutboundSlot> outbound;

  void validate() const {
    inbound.validate();
    outbound.validate();
  }
};

}  // namespace rnic::rdmap
