/// \file
/// The table of STags and the single access check.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/fail.hpp"
#include "base/siphash.hpp"
#include "base/zero_array.hpp"
#include "mem/dependents.hpp"
#include "mem/holdings.hpp"
#include "mem/stag_names.hpp"
#include "rnic/access.hpp"
#include "rnic/work.hpp"

namespace rnic::mem {

/// The reason why an access is refused. Each has its own Terminate code in DDP or RDMAP.
enum class AccessFault : uint8_t {
  None,
  InvalidStag,    ///< no such STag, or revoked
  NotAssociated,  ///< STag of another protection domain or stream
  Rights,
  Wrap,  ///< TO + length passes 2^64
  Bounds,
};

/// A request to access memory: on whose behalf, where, and with which rights.
struct AccessRequest {
  Stag stag;
  uint64_t to = 0;      ///< tagged offset
  uint64_t length = 0;  ///< octets; the caller does not ask for 0
  AccessSet rights;     ///< all of these are needed
  uint32_t pd = 0;
  uint64_t stream = 0;  ///< StagTable::new_stream()
};

/// The answer to an AccessRequest: the access to all of it is allowed, or refused.
struct AccessGrant {
  uint8_t* at = nullptr;  ///< first octet; nullptr when refused
  /// Contiguous octets from `at` on: all that were asked for, unless a piece of the region ends
  /// before. In that case a further request has to ask for the rest.
  uint32_t run = 0;
  AccessFault fault = AccessFault::None;
};

/// Octets of an STag that follow each other in memory.
struct AccessRun {
  uint8_t* at = nullptr;  ///< first octet
  base::Range offsets;    ///< TOs of all of them; empty: there is no such run
};

/// The description of a region to be registered.
struct RegionSpec {
  uint8_t* address = nullptr;
  uint64_t length = 0;  ///< octets; 0: a region that no access fits
  uint32_t pd = 0;
  AccessSet rights;
  /// TO of the first octet. Nothing: its address, or 0 if there are pieces.
  std::optional<uint64_t> offset{};
  std::optional<uint64_t> stream{};  ///< usable on this stream only
  std::optional<uint8_t> key{};      ///< nothing: a key that nobody can guess
  /// Instead of address and length: pieces of memory that form one range of offsets. They are
  /// copied.
  std::span<const base::ByteSpan> pieces{};

  /// Octets of all its memory, modulo 2^64.
  [[nodiscard]] uint64_t octets() const {
    uint64_t sum = length;
    for (const base::ByteSpan piece : pieces) sum += piece.size();
    return sum;
  }
  /// The pieces that the region has to keep: none if its octets follow each other.
  [[nodiscard]] uint32_t kept_pieces() const {
    const auto with_octets =
        std::count_if(pieces.begin(), pieces.end(), [](auto piece) { return !piece.empty(); });
    return with_octets > 1 ? static_cast<uint32_t>(with_octets) : 0;
  }
};

/// Parts of regions that another STag gives access to: a window to one part of a region (RFC 5042
/// s.6.3.4), a fast registration to several parts as one range of offsets.
struct Binding {
  Stag stag;                       ///< the window or allocated region, with the key that it gets
  std::span<const Sge> parts;      ///< for a window exactly one
  uint64_t offset = 0;             ///< TO of the first octet
  AccessSet rights;                ///< for a window only remote rights
  uint32_t pd = 0;                 ///< of the binding side
  std::optional<uint64_t> stream;  ///< of the binding queue pair; nothing: none binds
};

/// The limits of a table.
struct TableLimits {
  uint32_t stags = 0;                ///< regions and windows at once, StagNames::kMaxSlots at most
  uint64_t max_pieces = UINT64_MAX;  ///< of all regions of several pieces together
  /// Look for memory to which peers may write that may not trust each other: see aliased(). It
  /// costs a walk over the table for each STag that lets a peer write.
  bool watch_aliases = false;
  /// False, for tests: what access() has allowed is to be asked again each time, see holds_since().
  bool lasting = true;
};

class StagTable {
 public:
  /// \param secret the source of keys and indices, so that known STags do not help to guess others
  StagTable(const TableLimits& limits, const base::Secret& secret);
  StagTable(uint32_t limit, const base::Secret& secret)
      : StagTable(TableLimits{.stags = limit}, secret) {}

  // --- Regions ---

  /// Registers a region. The right RemoteInvalidate requires RegionSpec::stream (RFC 5040 s.8.1.1
  /// (7)).
  Result<Stag> add(const RegionSpec& spec);
  /// Registers the region of that STag anew: the index stays, the key changes. NotFound. WrongState
  /// while windows are bound to the region. After any error nothing has changed.
  Result<Stag> change(Stag stag, const RegionSpec& spec);
  /// The description that a region was registered with. \param pieces holds the pieces of the
  /// result
  [[nodiscard]] Result<RegionSpec> describe(Stag stag, std::vector<base::ByteSpan>& pieces) const;
  /// Revokes the STag and everything that stands on its region. After the call no access() succeeds
  /// with this STag, nor with that of a window that was bound to the region.
  Status remove(Stag stag);
  /// How many windows and fast registrations stand on a region.
  [[nodiscard]] uint32_t dependents(Stag stag) const;
  /// \return these by kind, for errors: "1 window and 2 fast registrations on it"
  [[nodiscard]] std::string dependents_in_words(Stag stag) const;

  // --- Windows and fast registration ---
  //
  // Windows and fast registrations stand on regions of their domain that have Access::Bind, and end
  // with them. They may give the rights that the region gives, or that its own side has there:
  // RemoteRead always, RemoteWrite and RemoteAtomic with LocalWrite.

  /// Makes a window that is not bound yet. remove() ends it.
  Result<Stag> add_window(uint32_t pd, WindowType type);
  /// Makes an STag for fast registrations of at most `max_pieces` pieces, which gives no access
  /// yet. remove() ends it.
  Result<Stag> add_allocated(uint32_t pd, uint32_t max_pieces);
  /// Binds a window of type 2 to its part on behalf of a queue pair, or registers the parts of an
  /// allocated STag. The window then belongs to that queue pair alone; so does the allocated STag
  /// if the peer may invalidate it, otherwise it belongs to the domain. The STag must not be valid,
  /// and gets the key of `binding`. After a fault nothing has changed.
  AccessFault bind(const Binding& binding);
  /// Binds a window of type 1 for all queue pairs of the domain, and replaces an earlier binding.
  /// Its key is drawn anew. After an error nothing has changed.
  Result<Stag> bind_for_domain(const Binding& binding);
  /// Ends the access that a window or an allocated STag gives, if it gives any.
  Status unbind(Stag stag);

  // --- Invalidation ---

  /// Send with Invalidate (RFC 5040 s.5.3): checks that the STag belongs to `pd` and to `stream`
  /// alone, and may be invalidated remotely, then revokes it. The owner keeps the slot until
  /// remove().
  AccessFault invalidate(Stag stag, uint32_t pd, uint64_t stream);
  /// Invalidates on behalf of the region's own side, which needs no right for it.
  AccessFault invalidate_local(Stag stag, uint32_t pd, uint64_t stream);

  // --- Access ---

  /// The one check of identity, rights, wrap and bounds, in the order of RFC 5041 s.7.1 (but wrap
  /// before bounds, so that the two can be told apart).
  [[nodiscard]] AccessGrant access(const AccessRequest& request) const;
  /// The octets of an STag to which access() has allowed an access: it allows each access inside of
  /// them that is on behalf of the same stream and needs the same rights, as long as holds_since()
  /// says so. Empty where a region has several pieces.
  [[nodiscard]] AccessRun run_of(Stag stag) const;
  /// Counts STags that have ended.
  [[nodiscard]] uint64_t ends() const { return ends_; }
  /// What access() has allowed when ends() was `then`, it would allow again, with the same memory:
  /// no STag has ended since. False: it has to be asked again.
  [[nodiscard]] bool holds_since(uint64_t then) const { return then == ends_ && lasting_; }

  // --- Facts ---

  /// A number for a stream that no other stream has had, so that a region bound to one stream never
  /// becomes that of another one.
  [[nodiscard]] uint64_t new_stream() { return ++streams_; }
  /// As StagNames::nobodys().
  [[nodiscard]] Stag draw_nobodys() { return names_.nobodys(); }
  /// The protection domain of a region that is registered, revoked or not; 0: there is none.
  [[nodiscard]] uint32_t pd_of(Stag stag) const;
  /// \return whether add_window() made the STag
  [[nodiscard]] bool is_window(Stag stag) const;
  /// Octets of a region that is registered, revoked or not; 0 for everything that stands on
  /// regions.
  [[nodiscard]] uint64_t octets_of(Stag stag) const;
  /// The part of pieces() that an STag has, whether it gives access or not.
  [[nodiscard]] uint32_t pieces_of(Stag stag) const;
  [[nodiscard]] uint32_t live() const { return names_.live(); }
  /// Counts STags that were made with write access for a peer to memory to which another STag lets
  /// another peer write: a peer of another domain, or of another queue pair if both STags are bound
  /// to one queue pair (RFC 5042 s.6.3.6). Each is logged. Only with TableLimits::watch_aliases.
  [[nodiscard]] uint64_t aliased() const { return aliased_; }
  /// Pieces that count against TableLimits::max_pieces.
  [[nodiscard]] uint64_t pieces() const { return holdings_.pieces(); }
  /// The slot of an STag that was given out here, 1 .. limit.
  [[nodiscard]] uint32_t slot_of(Stag stag) const { return names_.slot_of(stag); }
  /// Octets of memory that a table takes.
  [[nodiscard]] static uint64_t octets_for(uint32_t limit);

 private:
  static constexpr uint64_t kAnyStream = UINT64_MAX;
  /// Entry::stag of an entry that no STag names. Entry 0 has another value, one of slot 1.
  static constexpr uint32_t kNobody = 0;

  /// The part of an STag that access() reads, in one cache line. An entry of zero octets is named
  /// by no STag.
  struct alignas(64) Entry {
    uint64_t place;           // address of the first octet; with pieces its offset among them
    uint64_t base;            // TO of the first octet. Invariant: base + length <= 2^64
    uint64_t length;          // octets
    const PieceList* pieces;  // nullptr: all octets follow each other
    uint64_t stream;
    uint32_t stag;  // the one value that names it now
    uint32_t pd;
    AccessSet rights;
  };
  static_assert(sizeof(Entry) == 64);

  enum class Kind : uint8_t { Free, Region, WindowOfDomain, WindowOfQueuePair, Allocated };

  /// The part of an STag that its owner keeps, whether the STag is valid or not.
  struct Slot {
    Dependents dependents;
    Holding* holding;
    Stag name;  // the STag that its owner knows
    Stag last;  // the value that it had last
    uint32_t pd;
    Kind kind;
  };

  [[nodiscard]] const Entry* find(Stag stag) const;
  [[nodiscard]] Slot* owned(Stag stag);
  [[nodiscard]] const Slot* owned(Stag stag) const;
  Result<Holding*> holding_for(const RegionSpec& spec);
  void set_region(Stag stag, const RegionSpec& spec, Holding* holding);
  void end(uint32_t slot);
  AccessFault revoke(uint32_t slot);
  Result<Stag> add_unbound(uint32_t pd, Kind kind, uint32_t max_pieces, uint32_t max_parts);
  [[nodiscard]] AccessFault check_part(const Sge& part, const Binding& binding) const;
  [[nodiscard]] AccessFault check_parts(const Binding& binding, uint32_t max_pieces) const;
  void set_part(uint32_t slot, const Binding& binding);
  void set_parts(uint32_t slot, const Binding& binding);
  [[nodiscard]] bool may_distrust(const Entry& one, const Entry& other) const;
  void look_for_aliases(uint32_t slot);

  StagNames names_;
  base::ZeroArray<Entry> entries_;  // by slot; slot 0 has no STag
  base::ZeroArray<Slot> slots_;
  Holdings holdings_;
  const bool watches_aliases_;
  const bool lasting_;
  uint64_t streams_ = 0;
  uint64_t ends_ = 0;
  uint64_t aliased_ = 0;
};

}  // namespace rnic::mem
