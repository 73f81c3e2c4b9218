/// \file
/// All that a world shows to the outside, as one number: two runs of a world are the same to the
/// octet, the nanosecond and the counter where their fingerprints are equal, and for all practical
/// purposes nowhere else.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.hpp"
#include "base/counters.hpp"
#include "base/time.hpp"
#include "device/device.hpp"
#include "rnic/event.hpp"
#include "rnic/work.hpp"

namespace rnic::simulation {

/// A CRC-64 over what happens, in its order. It finds changes, and defends nothing.
class Fingerprint {
 public:
  /// Octets that `side` hands to the wire, or to its system.
  void sent(uint32_t side, base::ByteView octets, base::Now now);
  void event(uint32_t side, const Event& event, base::Now now);
  void completion(uint32_t side, const Completion& completion, base::Now now);
  /// How an application's stream ended, and other numbers of a world.
  void number(uint64_t value);
  void counter(std::string_view layer, const base::CounterRow& row);
  void counters(const device::Device& device);

  [[nodiscard]] uint64_t value() const { return crc_; }

 private:
  void add(const void* octets, size_t size);
  template <typename Kind>
  void add_event(const Kind& event);
  void add_fault(const std::optional<Fault>& fault);
  void add_facts(const ConnectionFacts& facts);
  void text(std::string_view text);

  uint64_t crc_ = 0;
};

}  // namespace rnic::simulation
