/// \file
/// Work requests and completions, as the device hands them to and takes them from an RDMAP
/// endpoint.
#pragma once

#include <array>
#include <cstdint>

#include "mem/sge.hpp"

namespace rnic::rdmap {

inline constexpr uint32_t kMaxSge = 16;
inline constexpr uint32_t kAtomicSize = 8;  ///< octets that an atomic works on and returns

/// One piece of local memory; `address` is the TO inside the region that `stag` names.
using Sge = mem::Sge;

enum class WorkOpcode : uint8_t {
  Send,
  SendInvalidate,
  Write,
  Read,
  Receive,
  ReadInvalidate,   ///< Read whose sink's STag is invalidated before it completes
  FetchAdd,         ///< RFC 7306 s.5.1.1
  CompareSwap,      ///< RFC 7306 s.5.1.2
  Immediate,        ///< 8 octets for the peer's next receive (RFC 7306 s.6)
  LocalInvalidate,  ///< no message: revokes an STag of our own after everything before it completed
};

[[nodiscard]] constexpr bool is_read(WorkOpcode opcode) {
  return opcode == WorkOpcode::Read || opcode == WorkOpcode::ReadInvalidate;
}
[[nodiscard]] constexpr bool is_atomic(WorkOpcode opcode) {
  return opcode == WorkOpcode::FetchAdd || opcode == WorkOpcode::CompareSwap;
}
/// Completes with the peer's response and counts against the ORD.
[[nodiscard]] constexpr bool has_response(WorkOpcode opcode) {
  return is_read(opcode) || is_atomic(opcode);
}

[[nodiscard]] const char* to_string(WorkOpcode opcode);

/// What an atomic works with; host values.
struct AtomicOperands {
  uint64_t data = 0;  ///< FetchAdd: what to add; CompareSwap: what to swap in
  uint64_t mask =
      0;  ///< FetchAdd: highest bit of each field, 0: one field; CompareSwap: bits to swap
  uint64_t compare = 0;       ///< CompareSwap
  uint64_t compare_mask = 0;  ///< CompareSwap: bits to compare
};

struct SendWork {
  uint64_t id = 0;
  WorkOpcode opcode = WorkOpcode::Send;
  bool signaled = true;
  bool solicited = false;  ///< Send or Immediate with Solicited Event
  bool fence = false;      ///< wait for all earlier Reads and atomics
  uint32_t sge_count = 0;
  std::array<Sge, kMaxSge> sges;  ///< source; for Read the one sink (count 1); for an atomic none,
                                  ///< or 8 octets that take the original value in host order
  uint32_t remote_stag = 0;  ///< Write: sink, Read: source, atomic: target; the STag to invalidate
  uint64_t remote_to = 0;
  AtomicOperands atomic;
  std::array<uint8_t, 8> immediate{};

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
  bool has_immediate = false;  ///< Receive of Immediate Data: `immediate` holds it
  uint32_t length = 0;         ///< octets received (Receive) or moved
  uint32_t qp = 0;
  uint32_t invalidated_stag = 0;  ///< Receive of a Send with Invalidate; 0 otherwise
  uint64_t original = 0;          ///< atomic: what the target held before; host value
  std::array<uint8_t, 8> immediate{};
};

}  // namespace rnic::rdmap
