#include "mem/stag_table.hpp"

#include <algorithm>

namespace rnic::mem {

namespace {

constexpr uint32_t kKeyBits = 8;
// Index 0 is never given out, so that an STag of 0 .. 255 names nothing.
constexpr uint32_t kIndexLimit = (1u << 24) - 1;

constexpr uint64_t kKeyPurpose = 0x5354616773;  // what the secret is used for here
constexpr uint64_t kOrderPurpose = 0x696e6465786573;

constexpr uint32_t index_of(Stag stag) { return stag.value >> kKeyBits; }
constexpr uint8_t key_of(Stag stag) { return static_cast<uint8_t>(stag.value); }

}  // namespace

StagTable::StagTable(uint32_t limit, const base::Secret& secret)
    : entries_(size_t{std::min(limit, kIndexLimit)} + 1),
      free_(std::min(limit, kIndexLimit)),
      keys_(secret, kKeyPurpose),
      order_(secret, kOrderPurpose, std::max(std::min(limit, kIndexLimit), 1u)) {}

uint64_t StagTable::octets_for(uint32_t limit) {
  const uint64_t indices = std::min(limit, kIndexLimit);
  return (indices + 1) * sizeof(Entry) + indices * sizeof(uint32_t);
}

// First in, first out: a slot rests as long as possible before its index is used again.
uint32_t StagTable::take_index() {
  if (fresh_ < free_.size()) {
    const uint32_t index = 1 + order_.at(fresh_++);
    entries_[index].key = static_cast<uint8_t>(keys_.next());
    return index;
  }
  const uint32_t index = free_[free_head_];
  free_head_ = (free_head_ + 1) % static_cast<uint32_t>(free_.size());
  return index;
}

Result<Stag> StagTable::add(const RegionSpec& spec) {
  if (spec.address == nullptr || spec.length == 0) {
    return base::fail(ErrorCode::InvalidArgument,
                      "a region needs an address and a length of at least 1 octet");
  }
  if (!AccessSet::all().contains(spec.rights)) {
    return base::fail(ErrorCode::InvalidArgument, "unknown rights among " +
                                                      std::to_string(spec.rights.bits()) +
                                                      ": combine those that have a name");
  }
  const auto address = reinterpret_cast<uint64_t>(spec.address);
  if (address + (spec.length - 1) < address) {
    return base::fail(ErrorCode::InvalidArgument,
                      "address plus length of the region passes the end of the address space");
  }
  if (live_ == free_.size()) {
    return base::fail(
        ErrorCode::ResourceExhausted,
        "all " + std::to_string(free_.size()) +
            " regions of the device are in use (limits.max_regions): deregister some, or "
            "raise it");
  }
  const uint32_t index = take_index();
  Entry& entry = entries_[index];
  // A step of 1..255 never gives the key that the slot had last.
  const auto key = static_cast<uint8_t>(entry.key + 1 + keys_.below(255));
  entry = Entry{.address = spec.address,
                .base = spec.zero_based ? 0 : address,
                .length = spec.length,
                .pd = spec.pd,
                .rights = spec.rights | Access::LocalRead,
                .stream = spec.stream.value_or(kAnyStream),
                .key = key,
                .valid = true,
                .used = true};
  ++live_;
  return Stag{index << kKeyBits | key};
}

bool StagTable::is_registered(Stag stag) const {
  const uint32_t index = index_of(stag);
  return index < entries_.size() && entries_[index].used && entries_[index].key == key_of(stag);
}

uint32_t StagTable::pd_of(Stag stag) const {
  return is_registered(stag) ? entries_[index_of(stag)].pd : 0;
}

Status StagTable::remove(Stag stag) {
  const uint32_t index = index_of(stag);
  if (!is_registered(stag)) {
    return base::fail(ErrorCode::NotFound,
                      "no region has this STag: it was deregistered before or never existed");
  }
  Entry& entry = entries_[index];
  entry.valid = false;
  entry.used = false;
  const auto size = static_cast<uint32_t>(free_.size());
  free_[(free_head_ + fresh_ - live_) % size] = index;
  --live_;
  return {};
}

const StagTable::Entry* StagTable::find(Stag stag) const {
  const uint32_t index = index_of(stag);
  if (index >= entries_.size()) return nullptr;
  const Entry& entry = entries_[index];
  if (!entry.valid) return nullptr;
  if (entry.key != key_of(stag)) return nullptr;
  return &entry;
}

AccessFault StagTable::revoke(Stag stag, uint32_t pd, uint32_t stream, AccessSet rights) {
  const Entry* entry = find(stag);
  if (entry == nullptr) return AccessFault::InvalidStag;
  // RFC 5040 s.5.3: an STag of another stream is not touched.
  if (entry->pd != pd || (entry->stream != kAnyStream && entry->stream != stream)) {
    return AccessFault::NotAssociated;
  }
  if (!entry->rights.contains(rights)) return AccessFault::Rights;
  entries_[index_of(stag)].valid = false;
  return AccessFault::None;
}

AccessFault StagTable::invalidate(Stag stag, uint32_t pd, uint32_t stream) {
  return revoke(stag, pd, stream, Access::RemoteInvalidate);
}

AccessFault StagTable::invalidate_local(Stag stag, uint32_t pd, uint32_t stream) {
  return revoke(stag, pd, stream, {});
}

AccessGrant StagTable::access(const AccessRequest& request) const {
  // RFC 5041 s.7.1, steps 1 and 2: the STag is valid, for this stream, and allows the access.
  const Entry* entry = find(request.stag);
  if (entry == nullptr) return {nullptr, AccessFault::InvalidStag};
  if (entry->pd != request.pd || (entry->stream != kAnyStream && entry->stream != request.stream)) {
    return {nullptr, AccessFault::NotAssociated};
  }
  if (!entry->rights.contains(request.rights)) return {nullptr, AccessFault::Rights};
  // Step 5 before 3 and 4: a wrapped sum means nothing to a bounds check, and would otherwise
  // always be reported as a bounds violation. The last octet decides: a region may end at 2^64.
  if (request.length != 0 && request.to + (request.length - 1) < request.to) {
    return {nullptr, AccessFault::Wrap};
  }
  // Steps 3 and 4. Unsigned: a TO below the base gives an offset past every length.
  const uint64_t offset = request.to - entry->base;
  if (request.to < entry->base || offset > entry->length ||
      request.length > entry->length - offset) {
    return {nullptr, AccessFault::Bounds};
  }
  return {entry->address + offset, AccessFault::None};
}

}  // namespace rnic::mem
