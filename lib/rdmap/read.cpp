#include "rdmap/read.hpp"

#include <bit>

#include "base/check.hpp"
#include "rdmap/opcodes.hpp"

namespace rnic::rdmap {

namespace {

// RFC 5040 s.5.2.2: a Response that nobody asked for.
constexpr ddp::Fault kUnsolicitedResponse{ddp::kLayerUpper, 0x2, 0x06, "RDMAP-5.2.2-04"};
constexpr ddp::Fault kResponseStag{ddp::kLayerDdp, ddp::kTaggedBuffer, 0x00, "RDMAP-5.2.2-04"};
constexpr ddp::Fault kResponseBounds{ddp::kLayerDdp, ddp::kTaggedBuffer, 0x01, "BUG-01"};

bool inside(const OutboundRead& read, uint64_t to, uint32_t payload) {
  const uint64_t offset = to - read.sink_to;
  return offset <= read.length && payload <= read.length - offset;
}

}  // namespace

ddp::Fault read_source_fault(mem::AccessFault fault) {
  constexpr uint8_t kProtection = 0x1;
  switch (fault) {
    case mem::AccessFault::None: return ddp::kNoFault;
    case mem::AccessFault::InvalidStag:
      return {ddp::kLayerUpper, kProtection, 0x00, "RDMAP-7.2-03"};
    case mem::AccessFault::Bounds: return {ddp::kLayerUpper, kProtection, 0x01, "RDMAP-7.2-03"};
    case mem::AccessFault::Rights: return {ddp::kLayerUpper, kProtection, 0x02, "RDMAP-7.2-03"};
    case mem::AccessFault::NotAssociated:
      return {ddp::kLayerUpper, kProtection, 0x03, "RDMAP-7.2-03"};
    case mem::AccessFault::Wrap: return {ddp::kLayerUpper, kProtection, 0x04, "RDMAP-7.2-03"};
  }
  return {ddp::kLayerUpper, kProtection, 0xff, "RDMAP-7.2-03"};
}

void InboundRead::remaining(uint32_t done, uint8_t* out) const {
  wire::rdmap::ReadRequest left = request;
  left.sink_to += done;
  left.source_to += done;
  left.size -= done;
  wire::rdmap::emit(left, out);
}

InboundReads::InboundReads(uint32_t ird)
    : ird_(ird),
      mask_(std::bit_ceil(ird < 1 ? 1u : 2 * ird) - 1),
      slots_(std::make_unique<InboundRead[]>(size_t{mask_} + 1)) {}

void InboundReads::release(uint32_t seq) {
  if (!holds(seq)) return;
  at(seq).released = true;
  while (free_ != serve_ && at(free_).released) ++free_;
}

uint32_t InboundReads::provide() {
  uint32_t added = 0;
  while (provided_ - serve_ < ird_ && provided_ - free_ <= mask_) {
    at(provided_) = InboundRead{};
    ++provided_;
    ++added;
  }
  return added;
}

OutboundReads::OutboundReads(uint32_t ord)
    : ord_(ord), ring_(std::make_unique<OutboundRead[]>(ord < 1 ? 1 : ord)) {}

const OutboundRead& OutboundReads::nth(uint32_t i) const {
  const uint32_t at = head_ + i;
  return ring_[at < ord_ ? at : at - ord_];
}

void OutboundReads::push(const OutboundRead& read) {
  RNIC_CHECK(has_room());
  const uint32_t at = head_ + count_;
  ring_[at < ord_ ? at : at - ord_] = read;
  ++count_;
}

void OutboundReads::pop() {
  RNIC_CHECK(count_ != 0);
  head_ = head_ + 1 < ord_ ? head_ + 1 : 0;
  --count_;
}

ddp::Fault OutboundReads::check(const wire::ddp::TaggedHeader& header, uint32_t payload) const {
  if (count_ == 0) return kUnsolicitedResponse;
  if (payload == 0) return ddp::kNoFault;  // DDP-5.2-07
  bool known = false;
  for (uint32_t i = 0; i < count_; ++i) {
    const OutboundRead& read = nth(i);
    if (read.sink_stag != header.stag) continue;
    if (inside(read, header.to, payload)) return ddp::kNoFault;
    known = true;
  }
  return known ? kResponseBounds : kResponseStag;
}

ddp::Fault OutboundReads::deliver(const wire::ddp::TaggedHeader& header, uint32_t payload,
                                  const OutboundRead*& done) {
  if (count_ == 0) return kUnsolicitedResponse;
  // RFC 5040 s.5.5(20): Responses come in the order of their Requests, so this one is the oldest's.
  OutboundRead& read = ring_[head_];
  if (payload != 0) {
    if (read.sink_stag != header.stag) return kResponseStag;
    if (!inside(read, header.to, payload)) return kResponseBounds;
    // Cumulative, also while L is 0: segments inside the sink can still be too many.
    if (payload > read.length - read.delivered) return kResponseBounds;
    read.delivered += payload;
  }
  if (!header.last) return ddp::kNoFault;
  if (read.delivered != read.length) return kResponseBounds;
  done = &read;
  return ddp::kNoFault;
}

}  // namespace rnic::rdmap
