/// \file
/// Layer `framing`: what MPA and ULP framing have in common. Hold space for octets that the
/// transport has committed and nobody can place yet, the list of PDUs that are placed ahead of the
/// order, the four steps of a receiver, the base of a session, and the start-up as the device sees
/// it. Each framing protocol adds what differs: the form of a start frame, the bounds of a PDU, and
/// the proof of a PDU.
#pragma once

#include <cstdint>
#include <memory>

#include "framing/start.hpp"

namespace rnic::framing {

/// Memory for octets that were committed but cannot be placed yet. A device has one store, whose
/// memory is all taken at the start.
class HoldStore;
struct HoldStoreDeleter {
  void operator()(HoldStore* store) const;
};
using HoldStorePtr = std::unique_ptr<HoldStore, HoldStoreDeleter>;
/// Makes a store. \param octets total hold space, beside which room for one maximal PDU is reserved
/// for the delivery point.
[[nodiscard]] HoldStorePtr make_hold_store(uint64_t octets);
/// The memory that a store of this size takes.
[[nodiscard]] uint64_t hold_store_octets(uint64_t octets);
[[nodiscard]] uint64_t held_octets(const HoldStore& store);
/// The most octets that were held at any one time.
[[nodiscard]] uint64_t held_octets_peak(const HoldStore& store);
/// Memory in octets that the held octets occupy: whole pages.
[[nodiscard]] uint64_t held_memory(const HoldStore& store);
/// Checks the invariants of the store.
void validate(const HoldStore& store);

}  // namespace rnic::framing
