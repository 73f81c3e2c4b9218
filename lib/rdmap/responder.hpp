/// \file
/// Responder: the peer's Reads and atomics. They are checked when they are delivered, carried out
/// at their turn, and kept until their response is acknowledged.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "ddp/fault.hpp"
#include "ddp/segmenter.hpp"
#include "rdmap/counters.hpp"
#include "rdmap/deliveries.hpp"
#include "rdmap/payload.hpp"
#include "rdmap/planned_faults.hpp"
#include "rdmap/rdmap.hpp"
#include "rdmap/requests.hpp"
#include "rdmap/stream_memory.hpp"

namespace rnic::rdmap {

/// The Responder of RFC 7306, and the Data Source of a Read in RFC 5040.
class Responder {
 public:
  /// All parameters outlive this.
  Responder(const EndpointConfig& config, const StreamMemory& memory, Counters& counters,
            RequestStore& requests);

  /// \param ird as agreed in the start-up; see InboundRequests::set_limit()
  void set_limit(uint32_t ird) { inbound_.set_limit(ird); }
  [[nodiscard]] uint32_t limit() const { return inbound_.limit(); }

  // --- Requests ---

  /// How many buffers may be added to queue 1 now; they count as added.
  uint32_t provide() { return inbound_.provide(); }
  /// The buffer of a message of queue 1.
  [[nodiscard]] base::ByteSpan buffer(uint32_t msn) { return inbound_.buffer(msn); }
  /// The Read Request with that MSN, for a Terminate about it; empty: it is not here.
  [[nodiscard]] base::ByteView read_request(uint32_t msn) const {
    return inbound_.read_header(msn);
  }
  [[nodiscard]] Fault deliver_read_request(const UntaggedMessage& message);
  [[nodiscard]] Fault deliver_atomic_request(const UntaggedMessage& message);

  // --- Stalls (rnic/planned_fault.hpp) ---

  /// \param stalls outlive this
  void plan(std::span<const Stall> stalls) { stalls_ = stalls; }
  /// One more, for requests that come from now on; it replaces the one of an earlier call.
  void stall(const Stall& stall) { late_stall_ = stall; }
  /// Requests of the peer delivered so far; wraps.
  [[nodiscard]] uint32_t delivered() const { return inbound_.delivered(); }
  /// Lets those be answered whose time has come.
  void allow(base::Now now) { inbound_.allow(now); }
  /// The time at which allow() has something to do; kNever: no request waits for its time.
  [[nodiscard]] base::Now next_due() const { return inbound_.next_due(); }
  /// \return whether a response was not handed down as a whole, one that waits for its time, too
  [[nodiscard]] bool has_unanswered() const { return inbound_.has_unanswered(); }

  // --- Responses ---

  [[nodiscard]] bool has_ready() const { return inbound_.has_ready(); }
  /// The request that is answered next. Precondition: has_ready().
  [[nodiscard]] uint32_t ready() const { return inbound_.ready(); }
  /// Carries out an atomic, at the first call for it. A fault becomes a Terminate.
  [[nodiscard]] Fault carry_out(uint32_t seq);
  [[nodiscard]] ddp::OutboundMessage message(uint32_t seq, uint8_t version) const;
  /// Finds the payload of a part of a response.
  [[nodiscard]] mem::AccessFault locate(uint32_t seq, const ddp::Cut& cut, Payload& out) const;
  /// Looks up the memory of a Read Response of several segments. \param out stays as it is where
  /// the peer may not read all of it: locate() then tells the segment at fault
  void open(uint32_t seq, SourceRun& out) const;
  /// The last segment that the request came in.
  [[nodiscard]] const ddp::SegmentReport& segment(uint32_t seq) const {
    return inbound_.at(seq).segment;
  }
  /// The Read Request for what is left of that Read after `done` octets.
  [[nodiscard]] std::array<uint8_t, wire::kRdmapReadRequestSize> rest(uint32_t seq,
                                                                      uint32_t done) const;
  /// The response to ready() was handed down as a whole.
  void served() { inbound_.served(); }
  /// The peer's TCP has all of that response.
  void release(uint32_t seq) { inbound_.release(seq); }
  /// \return whether the request is kept, as for a retransmission of its response
  [[nodiscard]] bool holds(uint32_t seq) const { return inbound_.holds(seq); }
  /// Octets of the FPDUs that wait, with `overhead` for each; counted up to more than `most`.
  /// \param begun ready() is not one of them, as it was begun
  [[nodiscard]] uint64_t octets_waiting(uint64_t most, uint32_t overhead, bool begun) const;

  void validate() const { inbound_.validate(); }

 private:
  Fault locate_target(const wire::RdmapAtomicRequest& request, uint8_t*& out) const;
  void execute_now(uint32_t seq, uint8_t* target);
  void deliver(const UntaggedMessage& message, bool atomic);

  StreamMemory memory_;
  Counters& counters_;
  InboundRequests inbound_;
  uint32_t next_response_msn_ = 1;  // of queue 3 (RFC 5041 s.4.3)
  std::span<const Stall> stalls_;
  Stall late_stall_;
};

}  // namespace rnic::rdmap
