/// \file
/// Work requests and completions: what an application posts, and what it learns of it.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "rnic/access.hpp"
#include "rnic/fault.hpp"

namespace rnic {

inline constexpr uint32_t kMaxSge = 16;      ///< scatter/gather elements of a work request
inline constexpr uint32_t kAtomicSize = 8;   ///< octets that an atomic works on and returns
inline constexpr uint32_t kMaxInline = 256;  ///< octets of SendRequest::inline_data

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
  WriteImmediate,   ///< a Write, and Immediate Data behind it (RFC 7306 s.6), as one request
  BindWindow,       ///< gives a window of type 2 a part of a region; see MemoryGrant
  FastRegister,     ///< gives an allocated STag parts of regions; see MemoryGrant
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

/// What BindWindow and FastRegister let others reach, and how: the SGEs of the request name the
/// memory, parts of regions of the domain with Access::Bind. It is in force for every request
/// behind it, and in its place in the order: who posts BindWindow and a Send that tells of the
/// window may do so at once. docs/memory.md
struct MemoryGrant {
  /// The window (MemoryWindow::stag()) or allocated region, with its next key: next_key(). It must
  /// not be valid, as before the first time and once it was invalidated.
  uint32_t stag = 0;
  AccessSet access;     ///< of a window: of the remote rights
  uint64_t offset = 0;  ///< tagged offset of the first octet
};

/// The STag with the key that follows: one that was valid must not be the next that is.
[[nodiscard]] constexpr uint32_t next_key(uint32_t stag) {
  return (stag & ~0xffu) | ((stag + 1) & 0xffu);
}

using ImmediateData = std::array<uint8_t, 8>;

/// The pieces of local memory of one work request: up to kMaxSge of them, held in the list itself.
/// A longer list keeps its size and not its elements, and is refused when it is posted.
class SgeList {
 public:
  SgeList() {}  // NOLINT(modernize-use-equals-default): the elements stay as they are
  SgeList(std::initializer_list<Sge> sges) : SgeList(std::span(sges.begin(), sges.size())) {}
  explicit SgeList(std::span<const Sge> sges) {
    for (const Sge& sge : sges) push_back(sge);
  }
  SgeList(const SgeList& other) : SgeList(other.view()) { size_ = other.size_; }
  SgeList& operator=(const SgeList& other) {
    size_ = other.size_;
    std::copy_n(other.elements_, other.held(), elements_);
    return *this;
  }
  ~SgeList() = default;

  void push_back(const Sge& sge) {
    if (size_ < kMaxSge) elements_[size_] = sge;
    if (size_ != UINT32_MAX) ++size_;
  }
  [[nodiscard]] uint32_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] bool too_long() const { return size_ > kMaxSge; }
  [[nodiscard]] Sge& operator[](uint32_t i) { return elements_[i]; }
  [[nodiscard]] const Sge& operator[](uint32_t i) const { return elements_[i]; }
  /// What is held: the whole list, unless it is too long.
  [[nodiscard]] std::span<const Sge> view() const { return {elements_, held()}; }
  /// Octets of all pieces.
  [[nodiscard]] uint64_t length() const {
    uint64_t sum = 0;
    for (const Sge& sge : view()) sum += sge.length;
    return sum;
  }

 private:
  [[nodiscard]] uint32_t held() const { return std::min(size_, kMaxSge); }

  uint32_t size_ = 0;
  // A union, so that a list of one does not pay for clearing sixteen.
  union {
    Sge elements_[kMaxSge];
  };
};

/// A place in the peer's registered memory; the peer's application says where.
struct RemoteAddress {
  uint32_t stag = 0;
  uint64_t offset = 0;  ///< tagged offset
};

/// A request for the send queue. It is copied when it is posted, with its inline data; the memory
/// that its pieces name belongs to the device until the completion.
struct SendRequest {
  uint64_t id = 0;
  Opcode opcode = Opcode::Send;
  bool signaled = true;    ///< a completion is wanted on success (errors always complete)
  bool solicited = false;  ///< Send, Immediate or WriteImmediate with Solicited Event
  bool fence = false;      ///< wait for all earlier Reads and atomics of this queue pair
  SgeList sges{};          ///< source; for Read the sink; for ReadInvalidate one element of it; for
                           ///< an atomic nothing, or 8 octets that take the original value
  RemoteAddress remote{};  ///< Write, WriteImmediate: sink; Read: source; atomic: target
  uint32_t invalidate_stag = 0;  ///< SendInvalidate: of the peer; LocalInvalidate: of this side
  AtomicOperands atomic{};       ///< FetchAdd, CompareSwap
  ImmediateData immediate{};     ///< Immediate, WriteImmediate
  /// Send, SendInvalidate, Write, WriteImmediate: the message itself, in the place of `sges`, from
  /// any memory; at most kMaxInline octets. The memory is the application's when post returns.
  std::span<const std::byte> inline_data{};
  MemoryGrant grant{};           ///< BindWindow, FastRegister
};

/// A request for the receive queue. It is copied when it is posted; the memory that its pieces name
/// belongs to the device until the completion.
struct ReceiveRequest {
  uint64_t id = 0;
  SgeList sges{};
};

enum class CompletionStatus : uint8_t {
  Success,
  LocalProtection,  ///< a local SGE is not covered by a region of this domain with the right needed
  LocalLength,      ///< message too long
  // The peer ended the stream with a Terminate that blames this request.
  RemoteAccess,          ///< for memory of the peer: STag, bounds, right
  RemoteInvalidRequest,  ///< as a message that it cannot take: no receive, too long, opcode
  RemoteOperation,       ///< for what it could not carry out
  Flushed,               ///< not carried out, or not known to be: something else ended the stream
  Lost,  ///< it was the oldest under way when the connection was lost: what the peer has of it is
         ///< not known
};
[[nodiscard]] const char* to_string(CompletionStatus status);

/// What kept a request from being carried out; describe() says it in words.
enum class CompletionCause : uint8_t {
  None,           ///< the status says it all
  NotConnected,   ///< it was posted before there was a connection
  Disconnected,   ///< it was posted behind disconnect()
  NotAgreed,      ///< the start-up has left no room for Reads and atomics, or no such operation
  LocalError,     ///< an error of this side ended the stream: `fault`
  PeerFault,      ///< the peer broke a rule: `fault`
  PeerTerminate,  ///< the peer ended the stream with a Terminate: `fault`
  PeerClosed,     ///< the peer has closed its direction, and sends no response any more
  Closed,         ///< both directions were closed in order
  PeerReset,      ///< the peer reset the connection
  TimedOut,       ///< the peer did not answer any more
  Unreachable,    ///< the network told that there is no way to the peer
  Aborted,        ///< this side aborted the connection
};

struct Completion {
  uint64_t id = 0;
  Opcode opcode = Opcode::Send;
  CompletionStatus status = CompletionStatus::Success;
  CompletionCause cause = CompletionCause::None;
  FaultCode fault{};  ///< where the cause has one
  bool solicited = false;
  bool has_immediate = false;     ///< Receive of Immediate Data; the buffer's memory is untouched
  uint32_t length = 0;            ///< octets received (Receive) or moved
  uint32_t qp = 0;                ///< QueuePair::number()
  uint32_t invalidated_stag = 0;  ///< Receive of a Send with Invalidate; 0 otherwise
  uint64_t original = 0;          ///< atomic: what the target held before, a number of this host
  ImmediateData immediate{};      ///< the 8 octets, when has_immediate
  /// CompletionQueueOptions::timestamps: when it was added, on the context's time line
  /// (Context::now()), to the turn of the device in which that was. Else 0.
  std::chrono::nanoseconds time{0};
};

/// Status and cause in words: "flushed: the peer ended the stream with a Terminate: layer DDP, ..."
[[nodiscard]] std::string describe(const Completion& completion);

}  // namespace rnic
