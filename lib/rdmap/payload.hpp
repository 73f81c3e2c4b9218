/// \file
/// Payload: the memory that the payload of a segment is read from.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "ddp/segmenter.hpp"
#include "rdmap/stream_memory.hpp"
#include "wire/rdmap.hpp"

namespace rnic::rdmap {

/// The payload of one segment: pieces of registered memory, or octets that are generated because
/// the message is a request or the response to an atomic. It lives as long as the call that writes
/// the segment.
class Payload {
 public:
  Payload() = default;
  Payload(const Payload&) = delete;  // the pieces point into it
  Payload& operator=(const Payload&) = delete;

  [[nodiscard]] std::span<const base::ByteSpan> view() const { return pieces_.view(); }
  /// \return whether the segment has more pieces than fit here. The pieces here hold its first
  /// octets(), and it has to be cut there.
  [[nodiscard]] bool is_cut() const { return pieces_.is_cut(); }
  [[nodiscard]] uint32_t octets() const { return pieces_.octets(); }

  /// Takes octets of the memory that `sges` name, as ddp::locate() finds them.
  [[nodiscard]] mem::AccessFault gather(const StreamMemory& memory, std::span<const Sge> sges,
                                        const ddp::Cut& cut, AccessSet rights) {
    return memory.locate(sges, cut.offset, cut.length, rights, pieces_);
  }
  /// Takes octets of a message whose memory is known. \return false: it has to be looked up
  [[nodiscard]] bool take(const StreamMemory& memory, const SourceRun& run, const ddp::Cut& cut) {
    uint8_t* const at = memory.find(run, cut);
    if (at == nullptr) return false;
    pieces_.clear();
    pieces_.add(at, cut.length);
    return true;
  }
  /// Takes octets that are kept with the request.
  void take(std::span<const std::byte> kept) {
    pieces_.clear();
    if (kept.empty()) return;
    // A segment that is written only reads its pieces.
    auto* const at = reinterpret_cast<uint8_t*>(const_cast<std::byte*>(kept.data()));
    pieces_.add(at, kept.size());
  }
  /// Takes a part of a message that `write` makes as a whole, at most kRdmapAtomicRequestSize
  /// octets.
  template <typename Write>
  void make(const ddp::Cut& cut, const Write& write) {
    write(made_.data());
    pieces_.clear();
    pieces_.add(made_.data() + cut.offset, cut.length);
  }

 private:
  ddp::Pieces pieces_;
  std::array<uint8_t, wire::kRdmapAtomicRequestSize> made_;
};

}  // namespace rnic::rdmap
