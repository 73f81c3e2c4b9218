/// \file
/// Layer `framing`: what MPA and ULP framing have in common. Hold space for octets that the
/// transport has committed and nobody can place yet, the list of PDUs that are placed ahead of the
/// order, the four steps of a receiver, the base of a session, and the start-up as the device sees
/// it. What differs (how a start frame looks; where a PDU begins and ends, and what proves it) a
/// framing protocol brings along.
#pragma once

#include <cstdint>
#include <memory>

#include "framing/start.hpp"

namespace rnic::framing {

/// Memory for octets that were committed but cannot be placed yet; one per device, all taken at
/// start.
class HoldStore;
struct HoldStoreDeleter {
  void operator()(HoldStore* store) const;
};
using HoldStorePtr = std::unique_ptr<HoldStore, HoldStoreDeleter>;
/// \param octets total hold space; one maximal PDU more is kept back for the delivery point.
[[nodiscard]] HoldStorePtr make_hold_store(uint64_t octets);
/// The memory that such a store asks the machine for.
[[nodiscard]] uint64_t hold_store_octets(uint64_t octets);
[[nodiscard]] uint64_t held_octets(const HoldStore& store);
/// Most of it at any one time.
[[nodiscard]] uint64_t held_octets_peak(const HoldStore& store);
/// Memory that the held octets occupy: whole pages.
[[nodiscard]] uint64_t held_memory(const HoldStore& store);
/// Checks its invariants.
void validate(const HoldStore& store);

}  // namespace rnic::framing
