/// \file
/// The sending side of a TAP interface that net_tap has opened; private to the driver.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/bytes.hpp"

namespace rnic::dpdk {

/// net_tap receives jumbo frames, but it refuses to send more than 1522 octets and to be told a
/// larger MTU (DPDK 22.11). The interface itself takes such frames, so this class writes them to
/// its queue.
class TapQueue {
 public:
  /// The first of the device's open queues; nullptr: none was found.
  [[nodiscard]] static std::unique_ptr<TapQueue> find(const std::string& interface);

  /// Sends one whole frame, with complete checksums. \return false: the kernel does not take it now
  [[nodiscard]] bool send(base::ByteView frame) const;
  /// The descriptor for poll(): readable while frames wait to be received. net_tap reads them.
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  explicit TapQueue(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;  // net_tap's own
};

}  // namespace rnic::dpdk
