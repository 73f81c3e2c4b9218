/// \file
/// Registered memory as the messages of one stream may use it.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "ddp/placement.hpp"
#include "mem/stag_table.hpp"
#include "rdmap/readable_run.hpp"
#include "rdmap/source_run.hpp"
#include "rnic/work.hpp"

namespace rnic::rdmap {

/// Access to memory by the STags that one stream of a protection domain may use (RFC 5040 s.8.1).
/// Each access is checked when it takes place, as a region may be gone by then.
class StreamMemory {
 public:
  /// \param table outlives this \param who the stream and its protection domain
  StreamMemory(mem::StagTable& table, const ddp::Identity& who) : table_(table), who_(who) {}

  [[nodiscard]] mem::AccessGrant access(uint32_t stag, uint64_t to, uint32_t length,
                                        AccessSet rights) const {
    return table_.access({.stag = mem::Stag{stag},
                          .to = to,
                          .length = length,
                          .rights = rights,
                          .pd = who_.pd,
                          .stream = who_.stream});
  }
  /// Draws an STag that never names anything in the table and is hard to guess.
  [[nodiscard]] uint32_t draw_list_stag() { return table_.draw_nobodys().value; }
  /// Copies `octets`, at most ddp::Pieces::kMax of them, to the memory of `sink`, which is as long.
  /// Where that is refused nothing is written.
  [[nodiscard]] mem::AccessFault store(const Sge& sink, base::ByteView octets) const;
  /// Finds the memory of an SGE list, as ddp::locate() does.
  [[nodiscard]] mem::AccessFault locate(std::span<const Sge> sges, uint64_t offset, uint32_t length,
                                        AccessSet rights, ddp::Pieces& out) const {
    return ddp::locate(table_, who_, sges, offset, length, rights, out);
  }
  /// Checks the access to all of each piece.
  [[nodiscard]] mem::AccessFault check(std::span<const Sge> sges, AccessSet rights) const {
    for (const Sge& sge : sges) {
      if (sge.length == 0) continue;
      const auto grant = access(sge.stag, sge.address, sge.length, rights);
      if (grant.fault != mem::AccessFault::None) return grant.fault;
    }
    return mem::AccessFault::None;
  }
  /// Checks the access to all of a piece. \param out knows its memory then, if its octets follow
  /// each other
  [[nodiscard]] mem::AccessFault open(const Sge& sge, AccessSet rights, SourceRun& out) const {
    if (sge.length == 0) return mem::AccessFault::None;
    const auto grant = access(sge.stag, sge.address, sge.length, rights);
    if (grant.run == sge.length) out = SourceRun(grant, table_.ends());
    return grant.fault;
  }
  /// The memory of a segment whose message `run` knows; nullptr: it has to be looked up.
  [[nodiscard]] uint8_t* find(const SourceRun& run, const ddp::Cut& cut) const {
    return run.find(cut, table_);
  }
  /// The memory of `piece`, all of which may be read; nullptr: that is not known for sure.
  /// \param run what is known, and then what is known of that piece's STag
  [[nodiscard]] uint8_t* find(ReadableRun& run, const Sge& piece) const {
    uint8_t* const at = run.find(piece, table_);
    return at != nullptr ? at : look_up(run, piece);
  }
  /// Invalidates on behalf of the peer, who has sent a Send with Invalidate.
  [[nodiscard]] mem::AccessFault invalidate(uint32_t stag) {
    return table_.invalidate(mem::Stag{stag}, who_.pd, who_.stream);
  }
  /// Invalidates on behalf of this side.
  [[nodiscard]] mem::AccessFault invalidate_local(uint32_t stag) {
    return table_.invalidate_local(mem::Stag{stag}, who_.pd, who_.stream);
  }
  /// Binds a window or registers an allocated STag, for this stream (mem::StagTable::bind()).
  [[nodiscard]] mem::AccessFault bind(const MemoryGrant& grant, std::span<const Sge> parts) {
    return table_.bind({.stag = mem::Stag{grant.stag},
                        .parts = parts,
                        .offset = grant.offset,
                        .rights = grant.access,
                        .pd = who_.pd,
                        .stream = who_.stream});
  }

 private:
  [[nodiscard]] uint8_t* look_up(ReadableRun& run, const Sge& piece) const;

  mem::StagTable& table_;
  const ddp::Identity who_;
};

[[gnu::noinline]] inline uint8_t* StreamMemory::look_up(ReadableRun& run, const Sge& piece) const {
  if (piece.length == 0) return nullptr;  // no access, so none was allowed
  const auto grant = access(piece.stag, piece.address, piece.length, Access::LocalRead);
  if (grant.fault != mem::AccessFault::None) return nullptr;
  run = ReadableRun(piece.stag, table_);
  return run.find(piece, table_);
}

inline mem::AccessFault StreamMemory::store(const Sge& sink, base::ByteView octets) const {
  ddp::Pieces pieces;
  const mem::AccessFault fault = locate({&sink, 1}, 0, sink.length, Access::LocalWrite, pieces);
  if (fault != mem::AccessFault::None) return fault;
  for (const base::ByteSpan piece : pieces.view()) {
    std::memcpy(piece.data(), octets.data(), piece.size());
    octets = octets.subspan(piece.size());
  }
  return fault;
}

}  // namespace rnic::rdmap
