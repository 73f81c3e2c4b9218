#include "tuf/batch.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace rnic::tuf {

uint32_t aligned_max(uint32_t emss) {
  return emss < wire::kTufHeaderSize ? 0 : std::min(emss - wire::kTufHeaderSize, wire::kTufPduMax);
}

Batch BatchWriter::batch(uint64_t at, uint32_t count, uint64_t offset) const {
  Batch b{.at = at, .past = at, .count = count, .mode = ring_.at(at).mode};
  for (uint32_t i = 0; i < count; ++i) {
    const Submission submission = ring_.at(b.past);
    b.body += submission.length;
    b.past = submission.end();
  }
  b.size = b.body;
  if (b.mode == FramedSendMode::Align) b.size += wire::kTufHeaderSize;
  if (b.mode == FramedSendMode::Markers) {
    b.size = static_cast<uint32_t>(layout_.grid.end_of(offset, b.body) - offset);
  }
  return b;
}

Batch BatchWriter::packed(uint64_t at, uint32_t n, uint64_t offset) const {
  Batch b = batch(at, 1, offset);
  if (b.mode != FramedSendMode::Align || !layout_.format.tells_length()) return b;
  const uint64_t written = ring_.written();
  while (b.past != written) {
    const Submission next = ring_.at(b.past);
    if (next.mode != FramedSendMode::Align || b.body + next.length > aligned_max(n)) break;
    b.past = next.end();
    b.body += next.length;
    b.size += next.length;
    ++b.count;
  }
  return b;
}

void BatchWriter::write_body(const Batch& b, uint32_t from, uint32_t n, uint8_t* dst) const {
  uint64_t at = b.at;
  while (n != 0) {
    const Submission submission = ring_.at(at);
    if (from < submission.length) {
      const uint32_t run = std::min(n, submission.length - from);
      ring_.read(submission, from, {dst, run});
      dst += run;
      n -= run;
      from = 0;
    } else {
      from -= submission.length;
    }
    at = submission.end();
  }
}

/// Writes the PDU with its markers (s.6). A marker in front of its first octet is 0, and each one
/// inside the PDU tells the distance to the next PDU.
void BatchWriter::write_marked(const Batch& b, uint64_t begin, uint32_t from, uint32_t n,
                               uint8_t* dst) const {
  const uint64_t end = begin + b.size;
  uint64_t at = begin;
  uint32_t done = 0;  // octets of the PDU in front of `at`
  const auto put = [&](uint64_t begins, uint32_t length, auto&& give) {
    const uint64_t low = std::max(begins, begin + from);
    const uint64_t high = std::min(begins + length, begin + from + n);
    if (low < high)
      give(low - begins, static_cast<uint32_t>(high - low), dst + (low - begin - from));
  };
  while (at < end && at < begin + from + n) {
    if (layout_.grid.at(at)) {
      std::array<uint8_t, wire::kTufMarkerSize> marker;
      const bool inside = done != 0;
      wire::store_tuf_marker(marker.data(), inside ? next_pdu_offset(layout_.grid, at, end) : 0);
      put(at, wire::kTufMarkerSize, [&](uint64_t skip, uint32_t length, uint8_t* to) {
        std::memcpy(to, marker.data() + skip, length);
      });
      at += wire::kTufMarkerSize;
    }
    const auto run = static_cast<uint32_t>(std::min(layout_.grid.next(at), end) - at);
    put(at, run, [&](uint64_t skip, uint32_t length, uint8_t* to) {
      write_body(b, done + static_cast<uint32_t>(skip), length, to);
    });
    done += run;
    at += run;
  }
}

void BatchWriter::write(const Batch& b, uint64_t begin, uint32_t from, uint32_t n,
                        uint8_t* dst) const {
  if (b.mode == FramedSendMode::Markers) return write_marked(b, begin, from, n, dst);
  if (b.mode != FramedSendMode::Align) return write_body(b, from, n, dst);
  if (from < wire::kTufHeaderSize) {
    std::array<uint8_t, wire::kTufHeaderSize> header;
    wire::store_tuf_header(header.data(), {static_cast<uint16_t>(b.body), *layout_.key});
    const uint32_t run = std::min(n, wire::kTufHeaderSize - from);
    std::memcpy(dst, header.data() + from, run);
    dst += run;
    from += run;
    n -= run;
  }
  write_body(b, from - wire::kTufHeaderSize, n, dst);
}

}  // namespace rnic::tuf
