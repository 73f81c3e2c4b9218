/// \file
/// QpNumbers: the numbers of a process's queue pairs under the RoCE face.
#pragma once

#include <bitset>
#include <cstdint>
#include <vector>

#include "rnic-run/peer_address.hpp"
#include "rnic/verbs.hpp"

namespace rnic::run {

/// The device listens on one port for each 256 queue pairs, from the first one that needs it until
/// the process ends: a peer may come for a number that has just been given back, and is refused.
///
/// The owner guards it by a lock of its own.
class QpNumbers {
 public:
  /// \return a number that no queue pair of the process has, and which none had lately
  Result<uint32_t> take(Device& device);
  void give_back(uint32_t qpn);

 private:
  struct Port {
    uint16_t number = 0;
    std::bitset<kQueuePairsOfPort> taken;
    uint32_t next = 0;  // where the search for a free one begins
  };

  std::vector<Port> ports_;
};

}  // namespace rnic::run
