/// \file
/// Scatter and gather: the pieces of registered memory behind a part of a message.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "base/bytes.hpp"
#include "llp/framing.hpp"
#include "mem/stag_table.hpp"
#include "rnic/work.hpp"

namespace rnic::ddp {

/// The stream and protection domain on whose behalf memory is accessed.
struct Identity {
  uint32_t pd = 0;
  uint64_t stream = 0;
};

/// Checked pieces of memory, in order; valid until the next call that may change registrations.
/// An access may touch more pieces than a list takes; the list then has the first ones.
class Pieces {
 public:
  static constexpr uint32_t kMax = 16;

  Pieces() {}  // NOLINT(modernize-use-equals-default): the elements stay as they are
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;
  ~Pieces() = default;

  void clear() {
    count_ = 0;
    cut_ = false;
  }
  void add(uint8_t* at, uint64_t length) {
    if (count_ == kMax) [[unlikely]] {
      cut_ = true;
      return;
    }
    pieces_[count_++] = {at, static_cast<size_t>(length)};
  }
  [[nodiscard]] std::span<const base::ByteSpan> view() const { return {pieces_, count_}; }
  /// \return whether there are more pieces than the list has taken
  [[nodiscard]] bool is_cut() const { return cut_; }
  /// Octets of the pieces in the list.
  [[nodiscard]] uint32_t octets() const;

 private:
  // A union, so that a list of one does not pay for clearing sixteen.
  union {
    base::ByteSpan pieces_[kMax];
  };
  uint32_t count_ = 0;  // Invariant: <= kMax
  bool cut_ = false;
};

/// The access `rest` is allowed, and `grant` has its first piece, which `out` has, too. Adds the
/// others; pieces without a place in the list are not looked up.
void add_rest(const mem::StagTable& memory, mem::AccessRequest rest, mem::AccessGrant grant,
              Pieces& out);

/// Checks an access and adds the pieces of memory that it goes to.
[[nodiscard]] inline mem::AccessFault add_access(const mem::StagTable& memory,
                                                 const mem::AccessRequest& request, Pieces& out) {
  const mem::AccessGrant grant = memory.access(request);
  if (grant.fault != mem::AccessFault::None) return grant.fault;
  out.add(grant.at, grant.run);
  if (grant.run != request.length) [[unlikely]]
    add_rest(memory, request, grant, out);
  return mem::AccessFault::None;
}

/// Finds octets [offset, offset + length) of the list `sges` (covering at least that much) and
/// checks the access to each piece that is touched, also to those that `out` has no place for.
/// After a failure the contents of `out` are meaningless.
[[nodiscard]] mem::AccessFault locate(const mem::StagTable& memory, const Identity& who,
                                      std::span<const Sge> sges, uint64_t offset, uint32_t length,
                                      AccessSet rights, Pieces& out);

/// Copies the octets of `ulpdu` after the first `skip` into `target`, whose sizes add up to at most
/// as many octets.
void place_pieces(const llp::UlpduView& ulpdu, uint32_t skip,
                  std::span<const base::ByteSpan> target);
/// Does the same for a target of one piece, which takes all of these octets.
void gather_run(const llp::UlpduView& ulpdu, uint32_t skip, base::ByteSpan target);
inline void place_run(const llp::UlpduView& ulpdu, uint32_t skip, base::ByteSpan target) {
  if (ulpdu.pieces.size() == 1) [[likely]] {
    std::memcpy(target.data(), ulpdu.pieces[0].data() + skip, target.size());
  } else {
    gather_run(ulpdu, skip, target);
  }
}
/// Does the same for any target, with less ado for one piece that goes to one piece.
inline void place(const llp::UlpduView& ulpdu, uint32_t skip,
                  std::span<const base::ByteSpan> target) {
  if (target.size() == 1 && target[0].size() == ulpdu.length - skip) [[likely]] {
    place_run(ulpdu, skip, target[0]);
  } else {
    place_pieces(ulpdu, skip, target);
  }
}

}  // namespace rnic::ddp
