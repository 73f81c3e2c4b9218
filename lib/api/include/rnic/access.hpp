/// \file
/// Rights of registered memory.
#pragma once

#include <cstdint>

namespace rnic {

/// One right of a memory region; combine with |.
enum class Access : uint32_t {
  LocalRead = 1u << 0,         ///< always granted
  LocalWrite = 1u << 1,        ///< receive buffers and Read sinks
  RemoteWrite = 1u << 2,       ///< the peer may RDMA Write
  RemoteRead = 1u << 3,        ///< the peer may RDMA Read
  RemoteInvalidate = 1u << 4,  ///< the peer may invalidate it; needs binding to one queue pair
  RemoteAtomic = 1u << 5,      ///< the peer may FetchAdd and CompareSwap
  Bind = 1u << 6,              ///< windows and fast registrations may give access to parts of it
};

/// The two kinds of memory windows, by their numbers in the RDMA verbs.
enum class WindowType : uint8_t {
  Domain = 1,     ///< type 1: bound by a call, for all queue pairs of its domain
  QueuePair = 2,  ///< type 2: bound by a work request of one queue pair, for that one alone
};

/// A set of rights, which may be empty.
class AccessSet {
 public:
  constexpr AccessSet() = default;
  constexpr AccessSet(Access right)  // NOLINT(google-explicit-constructor): one right is a set
      : bits_(static_cast<uint32_t>(right)) {}
  /// The set of all rights.
  [[nodiscard]] static constexpr AccessSet all();

  [[nodiscard]] constexpr bool contains(AccessSet other) const {
    return (bits_ & other.bits_) == other.bits_;
  }
  [[nodiscard]] constexpr AccessSet without(AccessSet other) const {
    AccessSet rest;
    rest.bits_ = bits_ & ~other.bits_;
    return rest;
  }
  [[nodiscard]] constexpr uint32_t bits() const { return bits_; }

  constexpr AccessSet& operator|=(AccessSet other) {
    bits_ |= other.bits_;
    return *this;
  }
  friend constexpr AccessSet operator|(AccessSet a, AccessSet b) { return a |= b; }
  friend constexpr bool operator==(AccessSet, AccessSet) = default;

 private:
  uint32_t bits_ = 0;
};

[[nodiscard]] constexpr AccessSet operator|(Access a, Access b) {
  return AccessSet(a) | AccessSet(b);
}

constexpr AccessSet AccessSet::all() {
  return Access::LocalRead | Access::LocalWrite | Access::RemoteWrite | Access::RemoteRead |
         Access::RemoteInvalidate | Access::RemoteAtomic | Access::Bind;
}

}  // namespace rnic
