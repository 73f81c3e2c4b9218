/// \file
/// Scatter and gather: the pieces of registered memory behind a part of a message.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/bytes.hpp"
#include "llp/framing.hpp"
#include "mem/stag_table.hpp"
#include "rnic/work.hpp"

namespace rnic::ddp {

/// On whose behalf memory is touched.
struct Identity {
  uint32_t pd = 0;
  uint32_t stream = 0;
};

/// Checked pieces of memory, in order; valid until the next call that may change registrations.
class Pieces {
 public:
  static constexpr uint32_t kMax = 16;

  void clear() { count_ = 0; }
  void add(uint8_t* at, uint64_t length) { pieces_[count_++] = {at, static_cast<size_t>(length)}; }
  [[nodiscard]] std::span<const base::ByteSpan> view() const { return {pieces_.data(), count_}; }

 private:
  std::array<base::ByteSpan, kMax> pieces_;
  uint32_t count_ = 0;  // Invariant: <= kMax
};

/// Finds octets [offset, offset + length) of the list `sges` (at most Pieces::kMax entries,
/// covering at least that much) and checks the access to each piece that is touched. On failure
/// `out` is worthless.
[[nodiscard]] mem::AccessFault locate(const mem::StagTable& memory, const Identity& who,
                                      std::span<const Sge> sges, uint64_t offset, uint32_t length,
                                      AccessSet rights, Pieces& out);

/// Copies the octets of `ulpdu` after the first `skip` into `target`, whose sizes add up to exactly
/// that.
void place(const llp::UlpduView& ulpdu, uint32_t skip, std::span<const base::ByteSpan> target);

}  // namespace rnic::ddp
