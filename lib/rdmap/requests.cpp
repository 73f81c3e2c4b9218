#include "rdmap/requests.hpp"

#include <array>
#include <bit>

#include "base/check.hpp"
#include "rdmap/opcodes.hpp"

namespace rnic::rdmap {

namespace {

// RFC 5040 s.5.2.2: a Response that nobody asked for.
constexpr Fault kUnsolicitedResponse{FaultLayer::Rdmap, 0x2, 0x06, "RDMAP-5.2.2-04"};
constexpr Fault kResponseStag{FaultLayer::Ddp, ddp::kTaggedBuffer, 0x00, "RDMAP-5.2.2-04"};
constexpr Fault kResponseBounds{FaultLayer::Ddp, ddp::kTaggedBuffer, 0x01, "BUG-01"};
// RFC 7306 s.5.2.2(7): an error is surfaced; the text names no code.
constexpr Fault kUnsolicitedAtomic{FaultLayer::Rdmap, 0x2, 0x06, "R7306-5-13"};
constexpr Fault kBadAtomicResponse{FaultLayer::Rdmap, 0x2, 0xff, "R7306-5-13"};

bool inside(const OutboundRequest& read, uint64_t to, uint32_t payload) {
  const uint64_t offset = to - read.sink_to;
  return offset <= read.length && payload <= read.length - offset;
}

}  // namespace

Fault protection_fault(mem::AccessFault fault) {
  constexpr uint8_t kProtection = 0x1;
  switch (fault) {
    case mem::AccessFault::None: return ddp::kNoFault;
    case mem::AccessFault::InvalidStag:
      return {FaultLayer::Rdmap, kProtection, 0x00, "RDMAP-7.2-03"};
    case mem::AccessFault::Bounds: return {FaultLayer::Rdmap, kProtection, 0x01, "RDMAP-7.2-03"};
    case mem::AccessFault::Rights: return {FaultLayer::Rdmap, kProtection, 0x02, "RDMAP-7.2-03"};
    case mem::AccessFault::NotAssociated:
      return {FaultLayer::Rdmap, kProtection, 0x03, "RDMAP-7.2-03"};
    case mem::AccessFault::Wrap: return {FaultLayer::Rdmap, kProtection, 0x04, "RDMAP-7.2-03"};
  }
  return {FaultLayer::Rdmap, kProtection, 0xff, "RDMAP-7.2-03"};
}

void InboundRequest::remaining(uint32_t done, uint8_t* out) const {
  wire::RdmapReadRequest left = read();
  left.sink_to += done;
  left.source_to += done;
  left.size -= done;
  wire::write_rdmap(out, left);
}

InboundRequests::InboundRequests(uint32_t ird, RingStore<InboundRequest>& rings)
    : ird_(ird), ring_(rings.promise(std::bit_ceil(ird < 1 ? 2u : 2 * ird))) {}

base::ByteView InboundRequests::read_header(uint32_t msn) const {
  static constexpr std::array<uint8_t, wire::kRdmapReadRequestSize> kNothing{};
  if (!holds(msn - 1)) return {};
  return has_begun(msn - 1) ? of_msn(msn).read_header() : base::ByteView(kNothing);
}

void InboundRequests::release(uint32_t seq) {
  if (!holds(seq)) return;
  slot(seq).released = true;
  while (free_ != serve_ && at(free_).released) ++free_;
  if (free_ == begun_) ring_.give();
}

uint32_t InboundRequests::provide() {
  uint32_t added = 0;
  while (provided_ - serve_ < ird_ && provided_ - free_ < ring_.size()) {
    ++provided_;
    ++added;
  }
  return added;
}

void InboundRequests::validate() const {
  const uint32_t slots = provided_ - free_;
  RNIC_CHECK(slots <= ring_.size() && provided_ - serve_ <= ird_);
  RNIC_CHECK(serve_ - free_ <= deliver_ - free_ && deliver_ - free_ <= begun_ - free_);
  RNIC_CHECK(begun_ - free_ <= slots);
  RNIC_CHECK(allowed_ - serve_ <= deliver_ - serve_);
  RNIC_CHECK(ring_.is_taken() == (free_ != begun_));
  RNIC_CHECK(free_ == serve_ || !at(free_).released);
}

OutboundRequests::OutboundRequests(uint32_t ord, uint64_t secret, RingStore<OutboundSlot>& rings)
    : limit_(ord),
      capacity_(ord < 1 ? 1 : ord),
      secret_(secret),
      ring_(rings.promise(std::bit_ceil(capacity_))) {}

void OutboundRequests::push(const OutboundRequest& request) {
  RNIC_CHECK(count_ < capacity_);
  if (count_ == 0) ring_.take();
  ring_[head_ + count_].request = request;
  ++count_;
}

void OutboundRequests::pop() {
  RNIC_CHECK(count_ != 0);
  ++head_;
  --count_;
  if (count_ == 0) ring_.give();
}

Fault OutboundRequests::find(const wire::DdpTaggedHeader& header, uint32_t payload,
                             const OutboundRequest*& found) const {
  if (count_ == 0) return kUnsolicitedResponse;
  if (payload == 0) return ddp::kNoFault;  // DDP-5.2-07
  bool read = false;
  bool known = false;
  for (uint32_t i = 0; i < count_; ++i) {
    const OutboundRequest& request = nth(i);
    if (request.atomic) continue;
    read = true;
    if (request.sink_stag != header.stag) continue;
    if (inside(request, header.to, payload)) {
      found = &request;
      return ddp::kNoFault;
    }
    known = true;
  }
  if (!read) return kUnsolicitedResponse;
  return known ? kResponseBounds : kResponseStag;
}

Fault OutboundRequests::deliver(const wire::DdpTaggedHeader& header, uint32_t payload,
                                const OutboundRequest*& done) {
  // RFC 5040 s.5.5(20): responses come in the order of their requests, so this is the oldest's.
  if (count_ == 0 || ring_[head_].request.atomic) return kUnsolicitedResponse;
  OutboundRequest& read = ring_[head_].request;
  if (payload != 0) {
    if (read.sink_stag != header.stag) return kResponseStag;
    if (!inside(read, header.to, payload)) return kResponseBounds;
    // The check is cumulative, also while L is 0: segments inside the sink can still be too many.
    if (payload > read.length - read.coverage.octets()) return kResponseBounds;
    read.coverage.add(header.to - read.sink_to, payload, secret_);
  }
  if (!header.last) return ddp::kNoFault;
  // Each octet of the sink has to have come, not only as many octets as were asked for.
  if (!read.coverage.exactly(read.length, secret_)) return kResponseBounds;
  done = &read;
  return ddp::kNoFault;
}

Fault OutboundRequests::deliver_atomic(uint32_t msn, uint64_t length,
                                       const OutboundRequest*& done) {
  if (count_ == 0 || !ring_[head_].request.atomic) return kUnsolicitedAtomic;
  const OutboundRequest& request = ring_[head_].request;
  if (length != wire::kRdmapAtomicResponseSize) return kBadAtomicResponse;
  const auto response = wire::parse_rdmap_atomic_response(atomic_buffer(msn));
  if (response->id != request.id) return kBadAtomicResponse;
  done = &request;
  return ddp::kNoFault;
}

void OutboundRequests::validate() const {
  RNIC_CHECK(count_ <= capacity_);
  RNIC_CHECK(ring_.is_taken() == (count_ != 0));
  for (uint32_t i = 0; i < count_; ++i) {
    const OutboundRequest& request = nth(i);
    RNIC_CHECK(request.coverage.octets() <= request.length);
    // Responses come in the order of their requests: the oldest is the only one that has begun.
    RNIC_CHECK(i == 0 || request.coverage.octets() == 0);
  }
}

}  // namespace rnic::rdmap
