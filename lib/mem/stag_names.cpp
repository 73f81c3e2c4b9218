#include "mem/stag_names.hpp"

#include <algorithm>
#include <bit>

namespace rnic::mem {

namespace {

constexpr uint32_t kKeyBits = 8;
constexpr uint32_t kIndexBits = 24;
constexpr uint64_t kKeyPurpose = 0x5354616773;  // tells this use of the secret from others
constexpr uint64_t kNobodysPurpose = 0x6e6f626f6479;
constexpr uint64_t kOrderPurpose = 0x696e6465786573;

}  // namespace

uint32_t StagNames::slots_of(uint32_t limit) { return std::min(limit, kMaxSlots); }

uint64_t StagNames::octets_for(uint32_t limit) {
  return base::ZeroArray<uint32_t>::octets_for(slots_of(limit));
}

StagNames::StagNames(uint32_t limit, const base::Secret& secret)
    : slot_bits_(std::max(static_cast<uint32_t>(std::bit_width(slots_of(limit))), 1u)),
      slot_mask_((1u << slot_bits_) - 1),
      back_(slots_of(limit)),
      source_(secret, kKeyPurpose),
      nobodys_(secret, kNobodysPurpose),
      order_(secret, kOrderPurpose, std::max(slots_of(limit), 1u)) {}

// First in, first out: a slot rests as long as possible before it is used again.
Stag StagNames::take(std::optional<uint8_t> key) {
  ++live_;
  if (fresh_ < back_.size()) {
    const Stag stag = fresh_name();
    return key ? stag.with_key(*key) : stag;
  }
  const Stag last{back_[head_]};
  head_ = (head_ + 1) % limit();
  return renamed(last, key);
}

Stag StagNames::fresh_name() {
  const uint32_t slot = 1 + order_.at(fresh_++);
  const auto drawn = static_cast<uint32_t>(source_.below(1u << (kIndexBits - slot_bits_)));
  const auto key = static_cast<uint32_t>(source_.below(1u << kKeyBits));
  return Stag{(drawn << slot_bits_ | slot) << kKeyBits | key};
}

Stag StagNames::nobodys() {
  const uint32_t values = 1u << (kIndexBits - slot_bits_);
  const auto above = 1 + static_cast<uint32_t>(nobodys_.below(values - 1));
  const auto key = static_cast<uint32_t>(nobodys_.below(1u << kKeyBits));
  return Stag{above << slot_bits_ << kKeyBits | key};
}

/// A new value for the slot: the bits above the slot's number differ from the last ones, and so
/// does a key that is drawn.
Stag StagNames::renamed(Stag last, std::optional<uint8_t> key) {
  const uint32_t values = 1u << (kIndexBits - slot_bits_);
  const uint32_t step = 1 + static_cast<uint32_t>(source_.below(values - 1));
  const uint32_t above = ((last.index() >> slot_bits_) + step) & (values - 1);
  const Stag stag = Stag{(above << slot_bits_ | slot_of(last)) << kKeyBits | last.key()};
  return key ? stag.with_key(*key) : with_new_key(stag);
}

void StagNames::give_back(Stag last) {
  back_[(head_ + fresh_ - live_) % limit()] = last.value;
  --live_;
}

}  // namespace rnic::mem
