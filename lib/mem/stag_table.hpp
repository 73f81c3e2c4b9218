/// \file
/// The table of STags and the single access check.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
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

/// Why an access is refused; each has its own Terminate code in DDP or RDMAP.
enum class AccessFault : uint8_t {
  None,
  InvalidStag,    ///< no such STag, or revoked
  NotAssociated,  ///< STag of another protection domain or stream
  Rights,
  Wrap,  ///< TO + length passes 2^64
  Bounds,
};

/// A request to touch memory: by whom it is made, where, and how.
struct AccessRequest {
  Stag stag;
  uint64_t to = 0;      ///< tagged offset
  uint64_t length = 0;  ///< octets; the caller does not ask for 0
  AccessSet rights;     ///< all of these are needed
  uint32_t pd = 0;
  uint64_t stream = 0;  ///< StagTable::new_stream()
};

/// An access to all that was asked for is allowed, or refused.
struct AccessGrant {
  uint8_t* at = nullptr;  ///< first octet; nullptr when refused
  /// Octets that follow each other from there, of those asked for: all, but where a piece of the
  /// region ends before. Then the rest has to be asked for as well.
  uint32_t run = 0;
  AccessFault fault = AccessFault::None;
};

/// What the owner wants to register.
struct RegionSpec {
  uint8_t* address = nullptr;
  uint64_t length = 0;  ///< octets; 0: a region that no access fits
  uint32_t pd = 0;
  AccessSet rights;
  /// TO of the first octet. Nothing: its address; 0 where there are pieces.
  std::optional<uint64_t> offset{};
  std::optional<uint64_t> stream{};  ///< usable on this stream only
  std::optional<uint8_t> key{};      ///< nothing: one that nobody can guess
  /// In place of address and length: memory that is one range of offsets. Copied.
  std::span<const base::ByteSpan> pieces{};
};

/// Parts of regions that another STag gives access to: a window to one part of a region (RFC 5042
/// s.6.3.4), a fast registration to several parts as one range of offsets.
struct Binding {
  Stag stag;                       ///< the window or allocated region, with the key that it gets
  std::span<const Sge> parts;      ///< of a window exactly one
  uint64_t offset = 0;             ///< TO of the first octet
  AccessSet rights;                ///< of a window remote ones alone
  uint32_t pd = 0;                 ///< of who binds
  std::optional<uint64_t> stream;  ///< of who binds; nothing: he is no queue pair
};

/// What a table may hold.
struct TableLimits {
  uint32_t stags = 0;                ///< regions and windows at once, StagNames::kMaxSlots at most
  uint64_t max_pieces = UINT64_MAX;  ///< of all regions of several pieces together
  /// Look for memory that peers write to who may not trust each other: see aliased(). It costs a
  /// walk over the table for each STag that lets a peer write.
  bool watch_aliases = false;
};

class StagTable {
 public:
  /// \param secret keys and indices come from it, so that nobody can guess an STag from those that
  /// he knows.
  StagTable(const TableLimits& limits, const base::Secret& secret);
  StagTable(uint32_t limit, const base::Secret& secret)
      : StagTable(TableLimits{.stags = limit}, secret) {}

  // --- Regions ---

  /// RemoteInvalidate is for regions of one stream (RFC 5040 s.8.1.1 (7)).
  Result<Stag> add(const RegionSpec& spec);
  /// Registers the region of that STag anew: the index stays, the key is another one. NotFound,
  /// WrongState while windows are bound to it; then, and in each other error, nothing has changed.
  Result<Stag> change(Stag stag, const RegionSpec& spec);
  /// What a region was registered with. \param pieces takes those of the result
  [[nodiscard]] Result<RegionSpec> describe(Stag stag, std::vector<base::ByteSpan>& pieces) const;
  /// Revokes, and everything that stands on the region as well. After it has returned no access()
  /// with this STag succeeds, nor with one of a window that was bound to it.
  Status remove(Stag stag);
  /// How many windows and fast registrations stand on a region.
  [[nodiscard]] uint32_t dependents(Stag stag) const;

  // --- Windows and fast registration ---
  //
  // They stand on regions of their domain that have Access::Bind, and end with them. What they give
  // is what the region gives, or what its own side may do there: RemoteRead always, RemoteWrite and
  // RemoteAtomic with LocalWrite.

  /// A window that is not bound yet. remove() ends it.
  Result<Stag> add_window(uint32_t pd, WindowType type);
  /// An STag for fast registrations of at most so many pieces, which none is yet. remove() ends it.
  Result<Stag> add_allocated(uint32_t pd, uint32_t max_pieces);
  /// Binds a window of type 2 to its part on behalf of a queue pair, whose alone it is then, or
  /// registers the parts of an allocated STag, which is that queue pair's alone if it may be
  /// invalidated by the peer, else the domain's. It must not be valid, and gets another key.
  /// Anything but None: nothing has changed.
  AccessFault bind(const Binding& binding);
  /// Binds a window of type 1, wherever it is bound now, for all queue pairs of the domain. Its key
  /// is drawn anew. In an error nothing has changed.
  Result<Stag> bind_for_domain(const Binding& binding);
  /// Ends the access by a window or an allocated STag, if there is one.
  Status unbind(Stag stag);

  // --- Invalidation ---

  /// Send with Invalidate (RFC 5040 s.5.3): checks that the STag belongs to pd and stream, is no
  /// other stream's as well, and may be invalidated remotely, then revokes it. The slot stays with
  /// the owner until remove().
  AccessFault invalidate(Stag stag, uint32_t pd, uint64_t stream);
  /// The same on behalf of the region's own side, which needs no right for it.
  AccessFault invalidate_local(Stag stag, uint32_t pd, uint64_t stream);

  // --- Access ---

  /// The one check of identity, rights, wrap and bounds, in the order of RFC 5041 s.7.1 (wrap
  /// before bounds, so that it can be told apart).
  [[nodiscard]] AccessGrant access(const AccessRequest& request) const;

  // --- Facts ---

  /// A number for a stream that no other has had: a region of one stream is never another one's.
  [[nodiscard]] uint64_t new_stream() { return ++streams_; }
  /// StagNames::nobodys()
  [[nodiscard]] Stag draw_nobodys() { return names_.nobodys(); }
  /// The protection domain of a region that is registered, revoked or not; 0: there is none.
  [[nodiscard]] uint32_t pd_of(Stag stag) const;
  [[nodiscard]] uint32_t live() const { return names_.live(); }
  /// STags that came about with write access for a peer to memory that another STag lets another
  /// peer write to: one of another domain, or of another queue pair where both are for one alone
  /// (RFC 5042 s.6.3.6). Each has a line in the log. Only with TableLimits::watch_aliases.
  [[nodiscard]] uint64_t aliased() const { return aliased_; }
  /// Pieces that count against TableLimits::max_pieces.
  [[nodiscard]] uint64_t pieces() const { return holdings_.pieces(); }
  /// The slot of an STag that was given out here: one of 1 .. limit.
  [[nodiscard]] uint32_t slot_of(Stag stag) const { return names_.slot_of(stag); }
  /// What a table asks the machine for.
  [[nodiscard]] static uint64_t octets_for(uint32_t limit);

 private:
  static constexpr uint64_t kAnyStream = UINT64_MAX;
  /// The value of an entry that no STag names. Entry 0 has another one, of slot 1.
  static constexpr uint32_t kNobody = 0;

  /// What access() reads: one cache line. Octets that are zero are an entry of nobody.
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

  /// What the owner of an STag has, valid or not.
  struct Slot {
    Dependents dependents;
    Holding* holding;
    Stag name;  // what its owner calls it
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
  base::ZeroArray<Entry> entries_;  // by slot; of slot 0 nobody's
  base::ZeroArray<Slot> slots_;
  Holdings holdings_;
  const bool watches_aliases_;
  uint64_t streams_ = 0;
  uint64_t aliased_ = 0;
};

}  // namespace rnic::mem
