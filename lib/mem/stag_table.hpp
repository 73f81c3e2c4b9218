/// \file
/// The table of STags and the single access check.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/fail.hpp"
#include "base/secret_permutation.hpp"
#include "base/siphash.hpp"
#include "base/zero_array.hpp"
#include "rnic/access.hpp"

namespace rnic::mem {

/// Steering tag: 24 bits of index, 8 bits of key (the low octet) that changes with every
/// registration.
struct Stag {
  uint32_t value = 0;
  friend constexpr bool operator==(Stag, Stag) = default;
};

/// Why an access is refused; each has its own Terminate code in DDP or RDMAP.
enum class AccessFault : uint8_t {
  None,
  InvalidStag,    ///< no such STag, or revoked
  NotAssociated,  ///< STag of another protection domain or stream
  Rights,
  Wrap,  ///< TO + length passes 2^64
  Bounds,
};

/// Who wants to touch the memory, and how.
struct AccessRequest {
  Stag stag;
  uint64_t to = 0;  ///< tagged offset: an address for VA-based regions, from 0 for zero-based ones
  uint64_t length = 0;  ///< octets; the caller does not ask for 0
  AccessSet rights;     ///< all of these are needed
  uint32_t pd = 0;
  uint32_t stream = 0;  ///< QP number
};

struct AccessGrant {
  uint8_t* at = nullptr;  ///< first octet; nullptr when refused
  AccessFault fault = AccessFault::None;
};

/// What the owner wants to register.
struct RegionSpec {
  uint8_t* address = nullptr;
  uint64_t length = 0;  ///< octets, > 0
  uint32_t pd = 0;
  AccessSet rights;
  bool zero_based = false;         ///< TO runs from 0 instead of from `address`
  std::optional<uint32_t> stream;  ///< usable on this stream only
};

class StagTable {
 public:
  /// \param limit regions at once. \param secret keys and indices come from it, so that nobody can
  /// guess an STag from those that he knows.
  StagTable(uint32_t limit, const base::Secret& secret);

  Result<Stag> add(const RegionSpec& spec);
  /// Revokes. After it has returned no access() with this STag succeeds.
  Status remove(Stag stag);
  /// Send with Invalidate (RFC 5040 s.5.3): checks that the STag belongs to pd and stream and may
  /// be invalidated remotely, then revokes it. The slot stays with the owner until remove().
  AccessFault invalidate(Stag stag, uint32_t pd, uint32_t stream);
  /// The same on behalf of the region's own side, which needs no right for it.
  AccessFault invalidate_local(Stag stag, uint32_t pd, uint32_t stream);

  /// The one check of identity, rights, wrap and bounds, in the order of RFC 5041 s.7.1 (wrap
  /// before bounds, so that it can be told apart).
  [[nodiscard]] AccessGrant access(const AccessRequest& request) const;

  /// The protection domain of a region that is registered, revoked or not; 0: there is none.
  [[nodiscard]] uint32_t pd_of(Stag stag) const;

  [[nodiscard]] uint32_t live() const { return live_; }
  /// What a table asks the machine for.
  [[nodiscard]] static uint64_t octets_for(uint32_t limit);

 private:
  struct Entry {
    uint8_t* address = nullptr;
    uint64_t base = 0;  // TO of the first octet
    uint64_t length = 0;
    uint32_t pd = 0;
    AccessSet rights;
    uint32_t stream = kAnyStream;
    uint8_t key = 0;     // compared with the STag's low octet; changes with every registration
    bool valid = false;  // false after invalidation or removal
    bool used = false;   // slot taken
  };
  static constexpr uint32_t kAnyStream = UINT32_MAX;

  [[nodiscard]] const Entry* find(Stag stag) const;
  [[nodiscard]] bool is_registered(Stag stag) const;
  AccessFault revoke(Stag stag, uint32_t pd, uint32_t stream, AccessSet rights);

  [[nodiscard]] uint32_t take_index();

  base::ZeroArray<Entry> entries_;  // by index; entry 0 is never used
  base::ZeroArray<uint32_t> free_;  // ring of indices given back, oldest at free_head_; size: limit
  uint32_t free_head_ = 0;
  uint32_t fresh_ = 0;  // indices given out for the first time
  uint32_t live_ = 0;   // Invariant: the ring holds fresh_ - live_ indices
  base::SecretSource keys_;
  base::SecretPermutation order_;
};

}  // namespace rnic::mem
