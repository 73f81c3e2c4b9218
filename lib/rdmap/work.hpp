/// \file
/// Work requests and completions, as the device hands them to and takes them from an RDMAP
/// endpoint.
#pragma once

#include <array>
#include <cstdint>

#include "mem/sge.hpp"

namespace rnic::rdmap {

inline constexpr uint32_t kMaxSge = 16;

/// One piece of local memory; `address` is the TO inside the region that `stag` names.
using Sge = mem::Sge;

enum class WorkOpcode : uint8_t {
  Send,
  SendInvalidate,
  Write,
  Read,
  Receive,
};

[[nodiscard]] const char* to_string(WorkOpcode opcode);

struct SendWork {
  uint64_t id = 0;
  WorkOpcode opcode = WorkOpcode::Send;
  bool signaled = true;
  bool solicited = false;  ///< Send with Solicited Event
  bool fence = false;      ///< wait for all earlier Reads
  uint32_t sge_count = 0;
  std::array<Sge, kMaxSge> sges;  ///< source; for Read the one sink (count 1)
  uint32_t remote_stag = 0;  ///< Write: sink, Read: source, SendInvalidate: the STag to invalidate
  uint64_t remote_to = 0;

  [[nodiscard]] uint64_t length() const {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < sge_count; ++i) sum += sges[i].length;
    return sum;
  }
};

struct ReceiveWork {
  uint64_t id = 0;
  uint32_t sge_count = 0;
  std::array<Sge, kMaxSge> sges;
};

enum class WorkStatus : uint8_t {
  Success,
  LocalProtection,   ///< a local SGE is not covered by a region of this PD with the right needed
  LocalLength,       ///< message too long
  RemoteTerminated,  ///< the peer's Terminate blames this operation's stream
  Flushed,           ///< not carried out: the QP went to error
};

[[nodiscard]] const char* to_string(WorkStatus status);

struct Completion {
  uint64_t id = 0;
  WorkOpcode opcode = WorkOpcode::Send;
  WorkStatus status = WorkStatus::Success;
  bool solicited = false;
  uint32_t length = 0;  ///< octets received (Receive) or moved
  uint32_t qp = 0;
  uint32_t invalidated_stag = 0;  ///< Receive of a Send with Invalidate; 0 otherwise
};

}  // namespace rnic::rdmap
