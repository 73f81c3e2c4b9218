/// \file
/// Work requests and completions: what an application posts, and what it learns of it.
#pragma once

#include <array>
#include <cstdint>

namespace rnic {

inline constexpr uint32_t kMaxSge = 16;     ///< scatter/gather elements of a work request
inline constexpr uint32_t kAtomicSize = 8;  ///< octets that an atomic works on and returns

/// One piece of registered local memory.
struct Sge {
  uint64_t address = 0;  ///< virtual address (or offset, for a zero-based region)
  uint32_t length = 0;   ///< octets
  uint32_t stag = 0;     ///< MemoryRegion::stag()
};

enum class Opcode : uint8_t {
  Send,
  SendInvalidate,
  Write,
  Read,
  Receive,
  ReadInvalidate,   ///< a Read whose sink's STag is invalidated before it completes
  FetchAdd,         ///< RFC 7306 s.5.1.1; see QueuePair::post_fetch_add()
  CompareSwap,      ///< RFC 7306 s.5.1.2; see QueuePair::post_compare_swap()
  Immediate,        ///< RFC 7306 s.6; see QueuePair::post_immediate()
  LocalInvalidate,  ///< revokes an STag of this side after everything before it has completed
};
[[nodiscard]] const char* to_string(Opcode opcode);

[[nodiscard]] constexpr bool is_read(Opcode opcode) {
  return opcode == Opcode::Read || opcode == Opcode::ReadInvalidate;
}
[[nodiscard]] constexpr bool is_atomic(Opcode opcode) {
  return opcode == Opcode::FetchAdd || opcode == Opcode::CompareSwap;
}
/// Completes with the peer's response and counts against the ORD.
[[nodiscard]] constexpr bool has_response(Opcode opcode) {
  return is_read(opcode) || is_atomic(opcode);
}

/// What an atomic works with, as numbers of this host (RFC 7306 s.5.1).
struct AtomicOperands {
  uint64_t data = 0;          ///< FetchAdd: what to add; CompareSwap: what to swap in
  uint64_t mask = 0;          ///< FetchAdd: highest bit of each field, 0: one field of 64 bits;
                              ///< CompareSwap: which bits to swap
  uint64_t compare = 0;       ///< CompareSwap: what must be there
  uint64_t compare_mask = 0;  ///< CompareSwap: which bits must be equal
};

using ImmediateData = std::array<uint8_t, 8>;

/// A request for the send queue. Its memory belongs to the device until the completion.
struct SendRequest {
  uint64_t id = 0;
  Opcode opcode = Opcode::Send;
  bool signaled = true;    ///< a completion is wanted on success (errors always complete)
  bool solicited = false;  ///< Send or Immediate with Solicited Event
  bool fence = false;      ///< wait for all earlier Reads and atomics of this queue pair
  uint32_t sge_count = 0;
  std::array<Sge, kMaxSge> sges{};  ///< source; for Read the sink, one element; for an atomic
                                    ///< nothing, or 8 octets that take the original value
  uint32_t remote_stag = 0;    ///< Write: sink; Read: source; atomic: target; SendInvalidate and
                               ///< LocalInvalidate: what to invalidate
  uint64_t remote_offset = 0;  ///< tagged offset in the remote region
  AtomicOperands atomic;       ///< FetchAdd, CompareSwap
  ImmediateData immediate{};   ///< Immediate

  /// Octets of all pieces.
  [[nodiscard]] uint64_t length() const {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < sge_count; ++i) sum += sges[i].length;
    return sum;
  }
};

/// A request for the receive queue. Its memory belongs to the device until the completion.
struct ReceiveRequest {
  uint64_t id = 0;
  uint32_t sge_count = 0;
  std::array<Sge, kMaxSge> sges{};
};

enum class CompletionStatus : uint8_t {
  Success,
  LocalProtection,  ///< a local SGE is not covered by a region of this domain with the right needed
  LocalLength,      ///< message too long
  RemoteTerminated,  ///< the peer refused this operation
  Flushed,           ///< not carried out: the queue pair is in error or closed
};
[[nodiscard]] const char* to_string(CompletionStatus status);

struct Completion {
  uint64_t id = 0;
  Opcode opcode = Opcode::Send;
  CompletionStatus status = CompletionStatus::Success;
  bool solicited = false;
  bool has_immediate = false;     ///< Receive of Immediate Data; the buffer's memory is untouched
  uint32_t length = 0;            ///< octets received (Receive) or moved
  uint32_t qp = 0;                ///< QueuePair::number()
  uint32_t invalidated_stag = 0;  ///< Receive of a Send with Invalidate; 0 otherwise
  uint64_t original = 0;          ///< atomic: what the target held before, a number of this host
  ImmediateData immediate{};      ///< the 8 octets, when has_immediate
};

}  // namespace rnic
