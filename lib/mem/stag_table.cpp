#include "mem/stag_table.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/log.hpp"
#include "base/quantities.hpp"

namespace rnic::mem {

using base::fail;

namespace {

uint64_t address_of(const uint8_t* memory) { return reinterpret_cast<uint64_t>(memory); }

/// Checks that memory with octets has an address, and ends within the address space.
Status check_memory(const uint8_t* address, uint64_t length) {
  if (length == 0) return {};
  if (address == nullptr) {
    return fail(ErrorCode::InvalidArgument,
                "a region with octets needs an address: give it, or no octets");
  }
  if (address_of(address) + (length - 1) < address_of(address)) {
    return fail(ErrorCode::InvalidArgument,
                "address plus length of the region passes the end of the address space: give the "
                "memory's own length");
  }
  return {};
}

/// Octets of all pieces. As pieces may overlap their sum may pass 2^64, and be more than an offset
/// can count.
Result<uint64_t> length_of(const RegionSpec& spec) {
  if (auto good = check_memory(spec.address, spec.length); !good) {
    return tl::unexpected(good.error());
  }
  uint64_t length = spec.length;
  for (const base::ByteSpan piece : spec.pieces) {
    if (auto good = check_memory(piece.data(), piece.size()); !good) {
      return tl::unexpected(good.error());
    }
    if (piece.size() > UINT64_MAX - length) {
      return fail(ErrorCode::InvalidArgument,
                  "the pieces of the region are longer than 2^64 - 1: register them apart");
    }
    length += piece.size();
  }
  return length;
}

Status check_rights(const RegionSpec& spec) {
  if (!AccessSet::all().contains(spec.rights)) {
    return fail(ErrorCode::InvalidArgument, "unknown rights among " +
                                                std::to_string(spec.rights.bits()) +
                                                ": combine those that have a name");
  }
  if (spec.rights.contains(Access::RemoteInvalidate) && !spec.stream) {
    return fail(ErrorCode::InvalidArgument,
                "Access::RemoteInvalidate is for a region of one queue pair, as a peer must not "
                "invalidate what others use: name the queue pair, or leave the right out");
  }
  return {};
}

/// TO of the first octet.
uint64_t base_of(const RegionSpec& spec) {
  return spec.offset.value_or(spec.pieces.empty() ? address_of(spec.address) : 0);
}

Status check(const RegionSpec& spec) {
  if (auto good = check_rights(spec); !good) return good;
  if (spec.address != nullptr && !spec.pieces.empty()) {
    return fail(ErrorCode::InvalidArgument,
                "a region has an address or pieces, not both: leave one out");
  }
  const auto length = length_of(spec);
  if (!length) return tl::unexpected(length.error());
  const uint64_t base = base_of(spec);
  if (*length != 0 && base + (*length - 1) < base) {
    return fail(ErrorCode::InvalidArgument,
                "offset plus length of the region passes 2^64: let its offsets begin lower");
  }
  return {};
}

}  // namespace

StagTable::StagTable(const TableLimits& limits, const base::Secret& secret)
    : names_(limits.stags, secret),
      entries_(size_t{names_.limit()} + 1),
      slots_(size_t{names_.limit()} + 1),
      holdings_(limits.max_pieces),
      watches_aliases_(limits.watch_aliases),
      lasting_(limits.lasting) {
  entries_[0].stag = Stag{1u << 8}.value;
}

uint64_t StagTable::octets_for(uint32_t limit) {
  const uint64_t slots = uint64_t{StagNames::slots_of(limit)} + 1;
  return base::ZeroArray<Entry>::octets_for(slots) + base::ZeroArray<Slot>::octets_for(slots) +
         StagNames::octets_for(limit);
}

const StagTable::Slot* StagTable::owned(Stag stag) const {
  const uint32_t slot = names_.slot_of(stag);
  if (slot >= slots_.size()) return nullptr;
  const Slot& found = slots_[slot];
  return found.kind != Kind::Free && found.name == stag ? &found : nullptr;
}

StagTable::Slot* StagTable::owned(Stag stag) {
  return const_cast<Slot*>(std::as_const(*this).owned(stag));
}

// --- regions ---

/// Makes the holding of a region; nullptr: it needs none, as its octets are contiguous.
Result<Holding*> StagTable::holding_for(const RegionSpec& spec) {
  const uint32_t pieces = spec.kept_pieces();
  if (pieces == 0) return nullptr;
  auto holding = holdings_.make(pieces, 0);
  if (!holding) return holding;
  for (const base::ByteSpan piece : spec.pieces) {
    if (!piece.empty()) (*holding)->add(piece.data(), piece.size());
  }
  return holding;
}

/// Sets up a region. \param spec checked \param holding made of it by holding_for()
void StagTable::set_region(Stag stag, const RegionSpec& spec, Holding* holding) {
  const uint32_t slot = names_.slot_of(stag);
  base::ByteSpan memory{spec.address, spec.length};
  for (const base::ByteSpan piece : spec.pieces) {
    if (!piece.empty()) memory = piece;
  }
  entries_[slot] = {.place = holding == nullptr ? address_of(memory.data()) : 0,
                    .base = base_of(spec),
                    .length = holding == nullptr ? memory.size() : holding->pieces().length(),
                    .pieces = holding == nullptr ? nullptr : &holding->pieces(),
                    .stream = spec.stream.value_or(kAnyStream),
                    .stag = stag.value,
                    .pd = spec.pd,
                    .rights = spec.rights | Access::LocalRead};
  slots_[slot] = {.dependents = {},
                  .holding = holding,
                  .name = stag,
                  .last = stag,
                  .pd = spec.pd,
                  .kind = Kind::Region};
  if (watches_aliases_) look_for_aliases(slot);
}

Result<Stag> StagTable::add(const RegionSpec& spec) {
  if (auto good = check(spec); !good) return tl::unexpected(good.error());
  if (names_.empty()) {
    return fail(ErrorCode::ResourceExhausted,
                "all " + std::to_string(names_.limit()) +
                    " regions of the device are in use: deregister some or raise "
                    "limits.max_regions");
  }
  const auto holding = holding_for(spec);
  if (!holding) return tl::unexpected(holding.error());
  const Stag stag = names_.take(spec.key);
  set_region(stag, spec, *holding);
  return stag;
}

Result<Stag> StagTable::change(Stag stag, const RegionSpec& spec) {
  const Slot* const slot = owned(stag);
  if (slot == nullptr || slot->kind != Kind::Region) {
    return fail(ErrorCode::NotFound,
                "no region has this STag: it was deregistered before, so register it anew");
  }
  if (auto good = check(spec); !good) return tl::unexpected(good.error());
  if (slot->dependents.count() != 0) {
    return fail(ErrorCode::WrongState,
                "the region has " + dependents_in_words(stag) + ": invalidate these first");
  }
  if (spec.key == slot->last.key()) {
    return fail(ErrorCode::InvalidArgument,
                "the region has that key already: give a new registration another one");
  }
  const auto holding = holding_for(spec);
  if (!holding) return tl::unexpected(holding.error());
  end(names_.slot_of(stag));
  if (slot->holding != nullptr) holdings_.drop(slot->holding);
  const Stag renamed = spec.key ? stag.with_key(*spec.key) : names_.with_new_key(stag);
  set_region(renamed, spec, *holding);
  return renamed;
}

Result<RegionSpec> StagTable::describe(Stag stag, std::vector<base::ByteSpan>& pieces) const {
  const Slot* const slot = owned(stag);
  if (slot == nullptr || slot->kind != Kind::Region) {
    return fail(ErrorCode::NotFound,
                "no region has this STag: it was deregistered before, so register it anew");
  }
  const Entry& entry = entries_[names_.slot_of(stag)];
  RegionSpec spec{.pd = entry.pd, .rights = entry.rights, .offset = entry.base};
  if (entry.stream != kAnyStream) spec.stream = entry.stream;
  pieces.clear();
  if (entry.pieces == nullptr) {
    spec.address = reinterpret_cast<uint8_t*>(entry.place);
    spec.length = entry.length;
  } else {
    entry.pieces->for_each([&](uint8_t* at, uint64_t n) { pieces.emplace_back(at, n); });
    spec.pieces = pieces;
  }
  return spec;
}

uint32_t StagTable::pd_of(Stag stag) const {
  const Slot* const slot = owned(stag);
  return slot != nullptr ? slot->pd : 0;
}

uint64_t StagTable::octets_of(Stag stag) const {
  const Slot* const slot = owned(stag);
  const bool region = slot != nullptr && slot->kind == Kind::Region;
  return region ? entries_[names_.slot_of(stag)].length : 0;
}

uint32_t StagTable::pieces_of(Stag stag) const {
  const Slot* const slot = owned(stag);
  return slot != nullptr && slot->holding != nullptr ? slot->holding->capacity() : 0;
}

uint32_t StagTable::dependents(Stag stag) const {
  const Slot* const slot = owned(stag);
  return slot != nullptr ? slot->dependents.count() : 0;
}

bool StagTable::is_window(Stag stag) const {
  const Slot* const slot = owned(stag);
  return slot != nullptr &&
         (slot->kind == Kind::WindowOfDomain || slot->kind == Kind::WindowOfQueuePair);
}

std::string StagTable::dependents_in_words(Stag stag) const {
  uint64_t windows = 0;
  uint64_t registrations = 0;
  if (const Slot* const slot = owned(stag); slot != nullptr) {
    slot->dependents.for_each_slot(
        [&](uint32_t tied) { ++(slots_[tied].kind == Kind::Allocated ? registrations : windows); });
  }
  return base::in_words({{windows, "window", "windows"},
                         {registrations, "fast registration", "fast registrations"}}) +
         " on it";
}

/// Ends a slot: no STag names it any more, and it stands on no region.
void StagTable::end(uint32_t slot) {
  ++ends_;
  entries_[slot].stag = kNobody;
  if (slots_[slot].kind != Kind::Region && slots_[slot].holding != nullptr) {
    slots_[slot].holding->clear();
  }
}

Status StagTable::remove(Stag stag) {
  Slot* const slot = owned(stag);
  if (slot == nullptr) {
    return fail(ErrorCode::NotFound,
                "no region has this STag: it was deregistered before or never existed");
  }
  end(names_.slot_of(stag));
  while (slot->dependents.count() != 0) end(slot->dependents.first_slot());
  if (slot->holding != nullptr) holdings_.drop(slot->holding);
  slot->kind = Kind::Free;
  names_.give_back(slot->last);
  return {};
}

// --- windows and fast registration ---

namespace {

/// The rights that a window or a fast registration may give to a region with the rights `region`.
AccessSet grantable(AccessSet region) {
  if (!region.contains(Access::Bind)) return {};
  AccessSet all = region | Access::RemoteRead | Access::RemoteInvalidate;
  if (region.contains(Access::LocalWrite)) all |= Access::RemoteWrite | Access::RemoteAtomic;
  return all.without(Access::Bind);
}

constexpr AccessSet kRemote =
    Access::RemoteRead | Access::RemoteWrite | Access::RemoteAtomic | Access::RemoteInvalidate;

const char* why(AccessFault fault) {
  switch (fault) {
    case AccessFault::None: break;
    case AccessFault::InvalidStag:
      return "there is no such region, or it was invalidated: register it anew";
    case AccessFault::NotAssociated:
      return "the region is another domain's, or a queue pair's: use one of this domain";
    case AccessFault::Rights:
      return "the region has no Access::Bind, or may itself not do what is to be given: register "
             "it with these rights";
    case AccessFault::Wrap: return "its offsets would pass 2^64: let them begin lower";
    case AccessFault::Bounds: return "the part is not inside the region: name octets that are";
  }
  return "";
}

}  // namespace

Result<Stag> StagTable::add_unbound(uint32_t pd, Kind kind, uint32_t max_pieces,
                                    uint32_t max_parts) {
  if (names_.empty()) {
    return fail(ErrorCode::ResourceExhausted,
                "all " + std::to_string(names_.limit()) +
                    " regions and windows of the device are in use: end some or raise "
                    "limits.max_regions");
  }
  auto holding = holdings_.make(max_pieces, max_parts);
  if (!holding) return tl::unexpected(holding.error());
  const Stag stag = names_.take({});
  entries_[names_.slot_of(stag)] = {};
  slots_[names_.slot_of(stag)] = {
      .dependents = {}, .holding = *holding, .name = stag, .last = stag, .pd = pd, .kind = kind};
  return stag;
}

Result<Stag> StagTable::add_window(uint32_t pd, WindowType type) {
  const bool domain = type == WindowType::Domain;
  return add_unbound(pd, domain ? Kind::WindowOfDomain : Kind::WindowOfQueuePair, 0, 1);
}

Result<Stag> StagTable::add_allocated(uint32_t pd, uint32_t max_pieces) {
  if (max_pieces == 0) {
    return fail(ErrorCode::InvalidArgument, "fast registration of no pieces: allow at least 1");
  }
  return add_unbound(pd, Kind::Allocated, max_pieces, kMaxSge);
}

/// Checks whether this part may be given as the binding says.
AccessFault StagTable::check_part(const Sge& part, const Binding& binding) const {
  const Entry* const region = find(Stag{part.stag});
  if (region == nullptr || slots_[names_.slot_of(Stag{part.stag})].kind != Kind::Region) {
    return AccessFault::InvalidStag;
  }
  if (region->pd != binding.pd) return AccessFault::NotAssociated;
  if (region->stream != kAnyStream && region->stream != binding.stream) {
    return AccessFault::NotAssociated;
  }
  if (!grantable(region->rights).contains(binding.rights | Access::LocalRead)) {
    return AccessFault::Rights;
  }
  // Unsigned: a TO below the base gives an offset past every length.
  const uint64_t offset = part.address - region->base;
  if (part.address < region->base || offset > region->length ||
      part.length > region->length - offset) {
    return AccessFault::Bounds;
  }
  return AccessFault::None;
}

AccessFault StagTable::check_parts(const Binding& binding, uint32_t max_pieces) const {
  uint64_t length = 0;
  uint64_t pieces = 0;
  for (const Sge& part : binding.parts) {
    const AccessFault fault = check_part(part, binding);
    if (fault != AccessFault::None) return fault;
    const Entry& region = *find(Stag{part.stag});
    for (uint64_t done = 0; done < part.length; ++pieces) {
      const uint64_t left = part.length - done;
      const uint64_t place = region.place + (part.address - region.base) + done;
      done += region.pieces != nullptr ? std::min(left, region.pieces->at(place).run) : left;
    }
    length += part.length;
  }
  if (pieces > max_pieces) return AccessFault::Bounds;
  if (length != 0 && binding.offset + (length - 1) < binding.offset) return AccessFault::Wrap;
  return AccessFault::None;
}

/// Binds a window. \param binding checked
void StagTable::set_part(uint32_t slot, const Binding& binding) {
  const Sge& part = binding.parts[0];
  const Stag stag{part.stag};
  const Entry& region = *find(stag);
  slots_[slot].holding->stand_on(slots_[names_.slot_of(stag)].dependents, slot);
  entries_[slot] = {.place = region.place + (part.address - region.base),
                    .base = binding.offset,
                    .length = part.length,
                    .pieces = region.pieces,
                    .stream = binding.stream.value_or(kAnyStream),
                    .stag = binding.stag.value,
                    .pd = binding.pd,
                    .rights = binding.rights};
  slots_[slot].last = binding.stag;
  if (watches_aliases_) look_for_aliases(slot);
}

/// Registers the parts of an allocated STag. \param binding checked
void StagTable::set_parts(uint32_t slot, const Binding& binding) {
  Holding& holding = *slots_[slot].holding;
  for (const Sge& part : binding.parts) {
    if (part.length == 0) continue;
    const Stag stag{part.stag};
    const Entry& region = *find(stag);
    holding.stand_on(slots_[names_.slot_of(stag)].dependents, slot);
    uint64_t place = region.place + (part.address - region.base);
    for (uint64_t left = part.length; left != 0;) {
      PieceList::Place piece{reinterpret_cast<uint8_t*>(place), left};
      if (region.pieces != nullptr) piece = region.pieces->at(place);
      const uint64_t run = std::min(left, piece.run);
      holding.add(piece.at, run);
      place += run;
      left -= run;
    }
  }
  const bool own = binding.rights.contains(Access::RemoteInvalidate);
  entries_[slot] = {.place = 0,
                    .base = binding.offset,
                    .length = holding.pieces().length(),
                    .pieces = &holding.pieces(),
                    .stream = own ? binding.stream.value_or(kAnyStream) : kAnyStream,
                    .stag = binding.stag.value,
                    .pd = binding.pd,
                    .rights = binding.rights | Access::LocalRead};
  if (holding.pieces().size() == 1) {
    entries_[slot].place = address_of(holding.pieces().at(0).at);
    entries_[slot].pieces = nullptr;
  }
  slots_[slot].last = binding.stag;
  if (watches_aliases_) look_for_aliases(slot);
}

AccessFault StagTable::bind(const Binding& binding) {
  const uint32_t number = names_.slot_of(binding.stag);
  if (number >= slots_.size()) return AccessFault::InvalidStag;
  const Slot& slot = slots_[number];
  const bool window = slot.kind == Kind::WindowOfQueuePair;
  if (!window && slot.kind != Kind::Allocated) return AccessFault::InvalidStag;
  if (slot.last.index() != binding.stag.index()) return AccessFault::InvalidStag;
  if (slot.pd != binding.pd) return AccessFault::NotAssociated;
  // A valid STag has to be invalidated first, and the last valid one must not become valid again at
  // once: a segment under way since then would find other memory under its STag.
  if (entries_[number].stag != kNobody || binding.stag == slot.last) return AccessFault::Rights;
  if (window && (binding.parts.size() != 1 || !kRemote.contains(binding.rights))) {
    return AccessFault::Rights;
  }
  const uint32_t most = window ? UINT32_MAX : slot.holding->capacity();
  const AccessFault fault = check_parts(binding, most);
  if (fault != AccessFault::None) return fault;
  window ? set_part(number, binding) : set_parts(number, binding);
  return AccessFault::None;
}

Result<Stag> StagTable::bind_for_domain(const Binding& binding) {
  Slot* const slot = owned(binding.stag);
  if (slot == nullptr || slot->kind != Kind::WindowOfDomain) {
    return fail(ErrorCode::NotFound,
                "no window of type 1 has this STag: bind one of type 2 by a work request");
  }
  if (binding.parts.size() != 1 ||
      !kRemote.without(Access::RemoteInvalidate).contains(binding.rights)) {
    return fail(ErrorCode::InvalidArgument,
                "a window of type 1 gives one part of a region, and of its rights: choose among "
                "RemoteRead, RemoteWrite and RemoteAtomic");
  }
  Binding wanted = binding;
  wanted.pd = slot->pd;
  wanted.stream = std::nullopt;
  wanted.stag = names_.with_new_key(slot->last);
  const AccessFault fault = check_parts(wanted, UINT32_MAX);
  if (fault != AccessFault::None) {
    return fail(
        fault == AccessFault::Rights ? ErrorCode::PermissionDenied : ErrorCode::InvalidArgument,
        std::string("the window cannot be bound: ") + why(fault));
  }
  const uint32_t number = names_.slot_of(binding.stag);
  end(number);
  set_part(number, wanted);
  slot->name = wanted.stag;
  return wanted.stag;
}

Status StagTable::unbind(Stag stag) {
  const Slot* const slot = owned(stag);
  if (slot == nullptr || slot->kind == Kind::Region) {
    return fail(ErrorCode::NotFound,
                "no window has this STag: it was destroyed before, so create another one");
  }
  end(names_.slot_of(stag));
  return {};
}

// --- aliases ---

namespace {

/// Calls `visit(first, last)` with the addresses of each run of octets that `entry` gives access
/// to.
template <typename Entry, typename F>
void for_each_run(const Entry& entry, F&& visit) {
  for (uint64_t done = 0; done < entry.length;) {
    PieceList::Place run{reinterpret_cast<uint8_t*>(entry.place), entry.length};
    if (entry.pieces != nullptr) run = entry.pieces->at(entry.place + done);
    const uint64_t octets = std::min(run.run, entry.length - done);
    visit(address_of(run.at), address_of(run.at) + (octets - 1));
    done += octets;
  }
}

template <typename Entry>
bool overlap(const Entry& one, const Entry& other) {
  bool found = false;
  for_each_run(one, [&](uint64_t first, uint64_t last) {
    for_each_run(other, [&](uint64_t begin, uint64_t end) {
      found = found || (first <= end && begin <= last);
    });
  });
  return found;
}

template <typename Entry>
bool peers_write(const Entry& entry) {
  return entry.rights.contains(Access::RemoteWrite) || entry.rights.contains(Access::RemoteAtomic);
}

}  // namespace

/// Peers of one domain trust each other, unless the two STags are bound to different streams.
bool StagTable::may_distrust(const Entry& one, const Entry& other) const {
  if (one.pd != other.pd) return true;
  return one.stream != kAnyStream && other.stream != kAnyStream && one.stream != other.stream;
}

void StagTable::look_for_aliases(uint32_t slot) {
  const Entry& one = entries_[slot];
  if (!peers_write(one)) return;
  for (uint32_t i = 1; i < entries_.size(); ++i) {
    const Entry& other = entries_[i];
    if (i == slot || other.stag == kNobody || !peers_write(other)) continue;
    if (!may_distrust(one, other) || !overlap(one, other)) continue;
    ++aliased_;
    base::log(base::LogLevel::Warning, "mem", [&] {
      return "the peers that STag " + std::to_string(one.stag) + " (domain " +
             std::to_string(one.pd) + ") lets write can change memory of those of STag " +
             std::to_string(other.stag) + " (domain " + std::to_string(other.pd) +
             "): give peers that do not trust each other buffers of their own (RFC 5042 s.6.3.6)";
    });
    return;
  }
}

// --- invalidation and access ---

const StagTable::Entry* StagTable::find(Stag stag) const {
  const uint32_t slot = names_.slot_of(stag);
  if (slot >= entries_.size()) return nullptr;
  const Entry& entry = entries_[slot];
  return entry.stag == stag.value ? &entry : nullptr;
}

/// Revokes a slot, unless windows or fast registrations stand on its region (Rights).
AccessFault StagTable::revoke(uint32_t slot) {
  if (slots_[slot].dependents.count() != 0) return AccessFault::Rights;
  end(slot);
  return AccessFault::None;
}

AccessFault StagTable::invalidate(Stag stag, uint32_t pd, uint64_t stream) {
  const Entry* const entry = find(stag);
  if (entry == nullptr) return AccessFault::InvalidStag;
  // RFC 5040 s.5.3: an STag of another stream is left alone, and by s.8.1.1 (7) so is a shared one.
  if (entry->pd != pd || entry->stream != stream) return AccessFault::NotAssociated;
  if (!entry->rights.contains(Access::RemoteInvalidate)) return AccessFault::Rights;
  return revoke(names_.slot_of(stag));
}

AccessFault StagTable::invalidate_local(Stag stag, uint32_t pd, uint64_t stream) {
  const Entry* const entry = find(stag);
  if (entry == nullptr) return AccessFault::InvalidStag;
  if (entry->pd != pd || (entry->stream != kAnyStream && entry->stream != stream)) {
    return AccessFault::NotAssociated;
  }
  return revoke(names_.slot_of(stag));
}

AccessGrant StagTable::access(const AccessRequest& request) const {
  // RFC 5041 s.7.1, steps 1 and 2: the STag is valid, for this stream, and allows the access.
  const Entry* entry = find(request.stag);
  if (entry == nullptr) return {.fault = AccessFault::InvalidStag};
  if (entry->pd != request.pd || (entry->stream != kAnyStream && entry->stream != request.stream)) {
    return {.fault = AccessFault::NotAssociated};
  }
  if (!entry->rights.contains(request.rights)) return {.fault = AccessFault::Rights};
  // Step 5 before 3 and 4: a wrapped sum means nothing to a bounds check, and would otherwise
  // always be reported as a bounds violation. The last octet decides: a region may end at 2^64.
  if (request.length != 0 && request.to + (request.length - 1) < request.to) {
    return {.fault = AccessFault::Wrap};
  }
  // Steps 3 and 4. Unsigned: a TO below the base gives an offset past every length.
  const uint64_t offset = request.to - entry->base;
  if (request.to < entry->base || offset > entry->length ||
      request.length > entry->length - offset) {
    return {.fault = AccessFault::Bounds};
  }
  uint64_t run = request.length;
  auto* at = reinterpret_cast<uint8_t*>(entry->place + offset);
  if (entry->pieces != nullptr && run != 0) [[unlikely]] {
    const PieceList::Place place = entry->pieces->at(entry->place + offset);
    at = place.at;
    run = std::min(run, place.run);
  }
  return {.at = at, .run = static_cast<uint32_t>(std::min<uint64_t>(run, UINT32_MAX))};
}

AccessRun StagTable::run_of(Stag stag) const {
  const Entry* entry = find(stag);
  if (entry == nullptr || entry->pieces != nullptr) return {};
  // A range cannot tell of an octet at 2^64 - 1, which is left to access().
  const uint64_t length = std::min(entry->length, UINT64_MAX - entry->base);
  return {reinterpret_cast<uint8_t*>(entry->place), {entry->base, entry->base + length}};
}

}  // namespace rnic::mem
