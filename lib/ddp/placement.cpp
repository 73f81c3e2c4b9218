#include "ddp/placement.hpp"

#include <algorithm>
#include <cstring>

#include "llp/spaced_copy.hpp"

namespace rnic::ddp {

uint32_t Pieces::octets() const {
  uint32_t sum = 0;
  for (const base::ByteSpan piece : view()) sum += static_cast<uint32_t>(piece.size());
  return sum;
}

void add_rest(const mem::StagTable& memory, mem::AccessRequest rest, mem::AccessGrant grant,
              Pieces& out) {
  while (grant.run != rest.length && !out.is_cut()) {
    rest.to += grant.run;
    rest.length -= grant.run;
    grant = memory.access(rest);
    out.add(grant.at, grant.run);
  }
}

mem::AccessFault locate(const mem::StagTable& memory, const Identity& who,
                        std::span<const Sge> sges, uint64_t offset, uint32_t length,
                        AccessSet rights, Pieces& out) {
  out.clear();
  for (const Sge& sge : sges) {
    if (length == 0) break;
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    const auto take = std::min<uint32_t>(length, sge.length - static_cast<uint32_t>(offset));
    // An address so high that the piece begins past 2^64 cannot be inside a region.
    if (sge.address + offset < sge.address) return mem::AccessFault::Wrap;
    const mem::AccessFault fault = add_access(memory,
                                              {.stag = mem::Stag{sge.stag},
                                               .to = sge.address + offset,
                                               .length = take,
                                               .rights = rights,
                                               .pd = who.pd,
                                               .stream = who.stream},
                                              out);
    if (fault != mem::AccessFault::None) return fault;
    length -= take;
    offset = 0;
  }
  return length == 0 ? mem::AccessFault::None : mem::AccessFault::Bounds;
}

[[gnu::noinline]] void gather_run(const llp::UlpduView& ulpdu, uint32_t skip,
                                  base::ByteSpan target) {
  if (ulpdu.gap != 0 && target.size() >= llp::Spacing::kMany && skip < ulpdu.pieces[0].size()) {
    const auto first = static_cast<uint32_t>(ulpdu.pieces[0].size()) - skip;
    llp::spaced_kernel().gather(target.data(), ulpdu.pieces[0].data() + skip, target.size(),
                                {first, ulpdu.between, ulpdu.gap});
    return;
  }
  uint8_t* to = target.data();
  uint8_t* const end = to + target.size();
  for (const base::ByteView piece : ulpdu.pieces) {
    const uint8_t* from = piece.data();
    size_t size = piece.size();
    if (skip != 0) [[unlikely]] {
      const auto before = static_cast<uint32_t>(std::min<size_t>(skip, size));
      from += before;
      size -= before;
      skip -= before;
    }
    size = std::min(size, static_cast<size_t>(end - to));
    std::memcpy(to, from, size);
    to += size;
  }
}

void place_pieces(const llp::UlpduView& ulpdu, uint32_t skip,
                  std::span<const base::ByteSpan> target) {
  size_t t = 0;
  size_t filled = 0;
  for (base::ByteView piece : ulpdu.pieces) {
    if (skip >= piece.size()) {
      skip -= static_cast<uint32_t>(piece.size());
      continue;
    }
    piece = piece.subspan(skip);
    skip = 0;
    while (!piece.empty() && t < target.size()) {
      const size_t take = std::min(piece.size(), target[t].size() - filled);
      std::memcpy(target[t].data() + filled, piece.data(), take);
      piece = piece.subspan(take);
      filled += take;
      if (filled == target[t].size()) {
        ++t;
        filled = 0;
      }
    }
  }
}

}  // namespace rnic::ddp
