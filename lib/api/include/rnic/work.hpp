/// \file
/// Work requests, which an application posts, and completions, which report their outcome.
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
/// \return whether the operation completes with the peer's response and counts against the ORD
[[nodiscard]] constexpr bool has_response(Opcode opcode) {
  return is_read(opcode) || is_atomic(opcode);
}

/// The operands of an atomic, as numbers of this host (RFC 7306 s.5.1).
struct AtomicOperands {
  uint64_t data = 0;          ///< FetchAdd: what to add; CompareSwap: what to swap in
  uint64_t mask = 0;          ///< FetchAdd: highest bit of each field, 0: one field of 64 bits;
                              ///< CompareSwap: which bits to swap
  uint64_t compare = 0;       ///< CompareSwap: what must be there
  uint64_t compare_mask = 0;  ///< CompareSwap: which bits must be equal
};

/// The access that BindWindow and FastRegister give. The SGEs of the request name the memory: parts
/// of regions of the domain with Access::Bind. A grant takes effect in the order of the requests,
/// so that an application may post BindWindow and a Send that tells of the window in one go. See
/// docs/memory.md.
struct MemoryGrant {
  /// The STag of the window (MemoryWindow::stag()) or allocated region, with its next key:
  /// next_key(). It must not be valid: never granted yet, or invalidated since.
  uint32_t stag = 0;
  AccessSet access;     ///< for a window only remote rights
  uint64_t offset = 0;  ///< tagged offset of the first octet
};

/// The STag with the key that follows: the same STag must not be valid twice in a row.
[[nodiscard]] constexpr uint32_t next_key(uint32_t stag) {
  return (stag & ~0xffu) | ((stag + 1) & 0xffu);
}

using ImmediateData = std::array<uint8_t, 8>;

/// The pieces of local memory of one work request, up to kMaxSge, stored in the list itself. A
/// longer list remembers its size but not its elements, and is refused when it is posted.
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
  /// The elements stored: the whole list, unless it is too long.
  [[nodiscard]] std::span<const Sge> view() const { return {elements_, held()}; }
  /// Octets of all pieces.
  [[nodiscard]] uint64_t length() const {
    if (size_ == 1) return elements_[0].length;
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

/// A place in the peer's registered memory, as the peer's application has told it.
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
  /// Send, SendInvalidate, Write, WriteImmediate: the message itself, instead of `sges`, from any
  /// memory; at most kMaxInline octets. The memory belongs to the application again when the post
  /// returns.
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
  /// The request was carried out. What that says depends on the opcode, and for messages of this
  /// side on the port:
  ///  * Send, SendInvalidate, Write, Immediate, WriteImmediate: over a TCP of the device's own the
  ///    peer's TCP has acknowledged the last octet. Over sockets of the system (`port = "socket"`)
  ///    the system's TCP has taken it and goes on by itself; if the connection is lost behind it,
  ///    event::Disconnected tells, and no completion. In neither case it is known whether the
  ///    octets are placed, or whether the peer's application has learned of them (RFC 5040 s.5.5):
  ///    an answer of that application says so.
  ///  * Read, ReadInvalidate: the octets are in the sink. FetchAdd, CompareSwap: the peer has done
  ///    it, and the original value is here. On every port.
  ///  * LocalInvalidate, BindWindow, FastRegister: done at this side.
  ///  * Receive: the message is whole in its memory, and everything of the peer before it has been
  ///    delivered, its Writes too.
  Success,
  LocalProtection,  ///< a local SGE is not covered by a region of this domain with the right needed
  LocalLength,      ///< message too long
  // In the next three cases the peer ended the stream with a Terminate that blames this request.
  RemoteAccess,          ///< for an access to the peer's memory: STag, bounds, right
  RemoteInvalidRequest,  ///< for a message that it cannot take: no receive, too long, opcode
  RemoteOperation,       ///< because it could not carry out the operation
  Flushed,               ///< not carried out, or not known to be: something else ended the stream
  Lost,  ///< the oldest request under way when the connection was lost: it is not known how much of
         ///< it the peer has
};
[[nodiscard]] const char* to_string(CompletionStatus status);

/// The reason why a request was not carried out; describe() says it in words.
enum class CompletionCause : uint8_t {
  None,           ///< the status says it all
  NotConnected,   ///< it was posted before there was a connection
  Disconnected,   ///< it was posted after disconnect()
  NotAgreed,      ///< the start-up has left no room for Reads and atomics, or no such operation
  LocalError,     ///< an error of this side ended the stream: `fault`
  PeerFault,      ///< the peer broke a rule: `fault`
  PeerTerminate,  ///< the peer ended the stream with a Terminate: `fault`
  PeerClosed,     ///< the peer has closed its direction, and sends no response any more
  Closed,         ///< both directions were closed in order
  PeerReset,      ///< the peer reset the connection
  TimedOut,       ///< the peer did not answer any more
  Unreachable,    ///< the network said that there is no way to the peer
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
  /// Receive of Immediate Data: the octets of the peer's Writes since its last Send or Immediate
  /// Data, so those of the Write with Immediate if there was no other; UINT32_MAX: that many or
  /// more. 0 otherwise
  uint32_t written = 0;
  uint64_t original = 0;          ///< atomic: what the target held before, a number of this host
  ImmediateData immediate{};      ///< the 8 octets, when has_immediate
  /// With CompletionQueueOptions::timestamps: the time at which the completion was added, on the
  /// clock of Context::now(), with the resolution of one turn of the device. Otherwise 0.
  std::chrono::nanoseconds time{0};
};

/// Status and cause in words: "flushed: the peer ended the stream with a Terminate: layer DDP, ..."
[[nodiscard]] std::string describe(const Completion& completion);

}  // namespace rnic
