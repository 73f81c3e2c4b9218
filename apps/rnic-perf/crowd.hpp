/// \file
/// Many queue pairs between two devices of one context, all of them connected.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "workload/workload.hpp"

namespace rnic::perf {

/// One device with its queue pairs, which share a protection domain and two completion queues.
struct Side {
  explicit Side(Device d) : device(std::move(d)) {}
  Device device;
  ProtectionDomain pd;
  CompletionQueue send_cq;
  CompletionQueue receive_cq;
  std::vector<QueuePair> qps;
};

struct CrowdOptions {
  uint16_t port = 7471;
  uint32_t count = 1;      ///< queue pairs of each side
  uint32_t depth = 16;     ///< of each send queue; receive queues have twice as much
  uint32_t attempts = 5;   ///< to connect each: a hostile wire may corrupt a start-up frame
};

/// Queue pair i of `initiator` has connected to queue pair i of `responder`; where that is in
/// another process, there is none.
struct Crowd {
  std::unique_ptr<Side> initiator;
  std::unique_ptr<Side> responder;
};

/// Gives a configuration room for `count` connections of this depth, where it has less.
void make_room(Config& config, uint32_t count, uint32_t depth);

Result<Crowd> connect_crowd(Context& context, const std::string& from, const std::string& to,
                            const CrowdOptions& options);

/// One queue pair, connected to that of another process. \return also what it offers
Result<std::pair<Crowd, workload::Offer>> connect_afar(Context& context, const std::string& from,
                                                       const Endpoint& to,
                                                       const CrowdOptions& options);

}  // namespace rnic::perf
