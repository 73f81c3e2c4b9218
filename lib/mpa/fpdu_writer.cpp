#include "mpa/fpdu_writer.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.hpp"
#include "base/endian.hpp"
#include "crc/crc.hpp"
#include "framing/mulpdu.hpp"
#include "llp/spaced_copy.hpp"

namespace rnic::mpa {
namespace {

// A piece of so many octets is copied and summed in one pass. For a shorter one a second call of
// the CRC's kernel would cost more than the second look at its octets.
constexpr uint32_t kFused = 256;

/// Copies a header. Two copies of a known size, which may overlap, are a few instructions, and a
/// call is more.
void copy_header(uint8_t* at, base::ByteView header) {
  const uint8_t* const from = header.data();
  const size_t n = header.size();
  if (n > 16 && n <= 32) {
    std::memcpy(at, from, 16);
    std::memcpy(at + n - 16, from + n - 16, 16);
  } else if (n >= 8 && n <= 16) {
    std::memcpy(at, from, 8);
    std::memcpy(at + n - 8, from + n - 8, 8);
  } else {
    std::memcpy(at, from, n);
  }
}

/// The first octets of the FPDUs of a series: what is the same in all of them, and the count. They
/// are stored in the pieces in which the CRC reads them next: a read that spans two stores waits
/// for both.
class SeriesFront {
 public:
  /// \return the count begins with a word: behind 8 octets in a tagged segment, 16 in another one
  [[nodiscard]] static bool fits(const llp::UlpduSeries& series) {
    const uint32_t same = wire::kMpaLengthSize + series.header_size() - series.count_octets();
    return same == (series.count_octets() == kWord ? kWord : 2 * kWord);
  }

  /// Precondition: fits(series).
  SeriesFront(uint32_t ulpdu_length, llp::UlpduSeries& series)
      : tagged_(series.count_octets() == kWord) {
    std::array<uint8_t, wire::kMpaLengthSize + llp::UlpduSeries::kHeaderMost> front{};
    base::store_be16(front.data(), static_cast<uint16_t>(ulpdu_length));
    copy_header(front.data() + wire::kMpaLengthSize, series.header());
    std::memcpy(&first_, front.data(), kWord);
    std::memcpy(&second_, front.data() + kWord, kWord);
  }

  void write(uint8_t* at, uint64_t count) const {
    std::memcpy(at, &first_, kWord);
    if (tagged_) return base::store_be64(at + kWord, count);
    std::memcpy(at + kWord, &second_, kWord);
    base::store_be32(at + 2 * kWord, static_cast<uint32_t>(count));
  }

 private:
  static constexpr uint32_t kWord = 8;

  const bool tagged_;
  uint64_t first_ = 0;
  uint64_t second_ = 0;  // where the count is behind it
};

}  // namespace

/// The longest ULPDU that fits the segment behind the FPDU; 0: none.
[[gnu::always_inline]] inline uint32_t FpduWriter::room_behind() const {
  const uint32_t room = ulpdu_room(grid_, offset_ + size_, out_.room_left());
  return room < framing::kUsefulRoom ? 0 : std::min(mulpdu_, room);
}

/// The longest ULPDU of an empty segment behind the FPDU.
[[gnu::always_inline]] inline uint32_t FpduWriter::room_of_next() const {
  if (!grid_.on()) [[likely]] return first_max_;
  return std::min(mulpdu_, ulpdu_room(grid_, offset_ + size_, out_.room()));
}

llp::UlpduRoom FpduWriter::next(const llp::PulledUlpdu& written) {
  RNIC_DCHECK(complete());
  const uint64_t behind = offset_ + size_;
  const bool packs = out_.packs();
  const uint32_t max = packs ? room_behind() : room_of_next();
  if (max == 0) return {};
  if (!out_.next(packs, {size_, written.last, true, written.more, written.tag})) return {};
  offset_ = behind;
  size_ = 0;
  max_ = max;
  return {.max = max, .whole_only = packs, .lasts = !packs && !grid_.on()};
}

/// Octets of an FPDU without markers, written one behind the other.
struct FpduWriter::Sum {
  uint8_t* at;            // place of the next octet
  const uint8_t* summed;  // octets before this point are in `crc`
  uint32_t crc = crc::kInit;
};

/// The next ULPDU has a place: in what is left of the frame, or in the next one. False: it does not
/// fit, and nothing has happened.
[[gnu::always_inline]] inline bool FpduWriter::make_place(const llp::PulledUlpdu& before,
                                                          size_t length) {
  if (!complete()) return length <= max_;
  const bool packs = out_.packs();
  const uint32_t max = packs ? room_behind() : room_of_next();
  if (length > max) return false;
  if (!out_.next(packs, {size_, before.last, true, before.more, before.tag})) return false;
  offset_ += size_;
  size_ = 0;
  max_ = max;
  return true;
}

bool FpduWriter::append(const llp::PulledUlpdu& before, base::ByteView header,
                        base::ByteSpan payload) {
  const size_t length = header.size() + payload.size();
  if (!make_place(before, length)) return false;
  const auto ulpdu_length = static_cast<uint32_t>(length);
  if (grid_.on()) [[unlikely]] {
    write(ulpdu_length, header, {&payload, 1});
    return true;
  }
  Sum sum = open(ulpdu_length, header);
  put(payload, sum);
  close(ulpdu_length, sum);
  return true;
}

uint32_t FpduWriter::append_series(llp::PulledUlpdu& before, llp::UlpduSeries& series,
                                   uint32_t most) {
  if (grid_.on() || !SeriesFront::fits(series)) [[unlikely]] {
    return UlpduWriter::append_series(before, series, most);
  }
  const auto length = static_cast<uint32_t>(series.header_size() + series.payload().size());
  const SeriesFront front(length, series);
  uint32_t count = 0;
  for (; count < most && make_place(before, length); ++count) {
    uint8_t* const begin = open(length);
    front.write(begin, series.count());
    Sum sum{begin + wire::kMpaLengthSize + series.header_size(), begin};
    put(series.payload(), sum);
    close(length, sum);
    series.tell(before);
    series.advance();
  }
  return count;
}

void FpduWriter::write(uint32_t ulpdu_length, base::ByteView header,
                       std::span<const base::ByteSpan> payload) {
  RNIC_CHECK(!complete() && ulpdu_length <= max_ && header.size() <= ulpdu_length);
  if (grid_.on()) [[unlikely]] return write_between_markers(ulpdu_length, header, payload);
  Sum sum = open(ulpdu_length, header);
  const size_t left = ulpdu_length - header.size();
  if (payload.size() == 1 && payload[0].size() == left) [[likely]] {
    put(payload[0], sum);
  } else {
    put(payload, left, sum);
  }
  close(ulpdu_length, sum);
}

/// Begins an FPDU without markers. \return its first octet
[[gnu::always_inline]] inline uint8_t* FpduWriter::open(uint32_t ulpdu_length) {
  ++fpdus_;
  const uint32_t size = wire::mpa_fpdu_size(ulpdu_length);
  RNIC_CHECK(size <= out_.room_left());
  size_ = size;
  return out_.append(size);
}

/// Begins an FPDU without markers: its length and the first octets of the ULPDU.
[[gnu::always_inline]] inline FpduWriter::Sum FpduWriter::open(uint32_t ulpdu_length,
                                                               base::ByteView header) {
  uint8_t* const begin = open(ulpdu_length);
  base::store_be16(begin, static_cast<uint16_t>(ulpdu_length));
  copy_header(begin + wire::kMpaLengthSize, header);
  return {begin + wire::kMpaLengthSize + header.size(), begin};
}

/// Ends it behind the ULPDU.
[[gnu::always_inline]] inline void FpduWriter::close(uint32_t ulpdu_length, Sum& sum) const {
  const uint32_t pad = wire::mpa_pad(ulpdu_length);
  if (pad != 0) {
    std::memset(sum.at, 0, pad);
    sum.at += pad;
  }
  finish(sum);
}

[[gnu::always_inline]] inline void FpduWriter::put(base::ByteSpan piece, Sum& sum) const {
  if (piece.size() >= kFused && crc_on_) {
    sum.crc = crc::update(sum.crc, sum.summed, static_cast<size_t>(sum.at - sum.summed));
    sum.crc = crc::copy(sum.crc, sum.at, piece.data(), piece.size());
    sum.summed = sum.at + piece.size();
  } else {
    std::memcpy(sum.at, piece.data(), piece.size());
  }
  sum.at += piece.size();
}

[[gnu::noinline]] void FpduWriter::put(std::span<const base::ByteSpan> payload, size_t left,
                                       Sum& sum) const {
  for (const base::ByteSpan piece : payload) {
    RNIC_CHECK(piece.size() <= left);
    left -= piece.size();
    put(piece, sum);
  }
  RNIC_CHECK(left == 0);
}

/// Writes the CRC.
[[gnu::always_inline]] inline void FpduWriter::finish(Sum& sum) const {
  uint32_t value = 0;
  if (crc_on_) {
    if (sum.at != sum.summed) {
      sum.crc = crc::update(sum.crc, sum.summed, static_cast<size_t>(sum.at - sum.summed));
    }
    value = crc::finish(sum.crc);
  }
  base::store_le32(sum.at, value);
}

namespace {

/// Writes octets of an FPDU with a marker wherever one is due. It only copies, as the runs between
/// markers are short: all of them are summed together at the end.
class MarkedOctets {
 public:
  /// \param at the place of the FPDU's first octet \param to_marker octets until a marker is due
  MarkedOctets(uint8_t* at, uint32_t to_marker)
      : at_(at), header_(to_marker == 0 ? at + wire::kMpaMarkerSize : at), to_marker_(to_marker) {}

  void put(const uint8_t* src, uint32_t n) {
    while (n > to_marker_) {
      const uint32_t run = to_marker_;
      copy(src, run);
      src += run;
      n -= run;
      write_marker();
    }
    copy(src, n);
  }
  /// Does the same for many octets.
  void put_run(const uint8_t* src, uint32_t n) {
    const llp::Spacing spacing{to_marker_, kBetween, wire::kMpaMarkerSize};
    llp::spaced_kernel().spread(at_, src, n, spacing);
    uint8_t* const begin = at_;
    const uint32_t markers = spacing.gaps(n);
    for (uint32_t i = 0; i < markers; ++i) {
      at_ = begin + spacing.first + i * wire::kMpaMarkerInterval;
      write_marker();
    }
    at_ = begin + n + markers * wire::kMpaMarkerSize;
    to_marker_ = spacing.first + markers * kBetween - n;
  }
  void write_due_marker() {
    if (to_marker_ == 0) write_marker();
  }
  [[nodiscard]] uint8_t* at() const { return at_; }
  [[nodiscard]] uint32_t markers() const { return markers_; }

 private:
  static constexpr uint32_t kBetween = wire::kMpaMarkerInterval - wire::kMpaMarkerSize;

  void copy(const uint8_t* src, uint32_t n) {
    if (n != 0) std::memcpy(at_, src, n);  // no octets may come from nowhere
    at_ += n;
    to_marker_ -= n;
  }
  void write_marker() {
    // RFC 5044 s.4.2: FPDUPTR counts the octets from ULPDU_Length to the marker; it is 0 for a
    // marker between FPDUs.
    const uint32_t fpduptr = at_ < header_ ? 0 : static_cast<uint32_t>(at_ - header_);
    wire::store_mpa_marker(at_, fpduptr);
    at_ += wire::kMpaMarkerSize;
    to_marker_ = kBetween;
    ++markers_;
  }

  uint8_t* at_;
  const uint8_t* header_;  // ULPDU_Length
  uint32_t to_marker_;     // content octets until a marker is due
  uint32_t markers_ = 0;
};

}  // namespace

void FpduWriter::write_between_markers(uint32_t ulpdu_length, base::ByteView header,
                                       std::span<const base::ByteSpan> payload) {
  ++fpdus_;
  const uint32_t size = fpdu_span(grid_, offset_, ulpdu_length).size();
  RNIC_CHECK(size <= out_.room_left());
  size_ = size;
  uint8_t* const begin = out_.append(size);
  MarkedOctets octets(begin, grid_.distance(offset_));
  std::array<uint8_t, wire::kMpaLengthSize> length;
  base::store_be16(length.data(), static_cast<uint16_t>(ulpdu_length));
  octets.put(length.data(), length.size());
  octets.put(header.data(), static_cast<uint32_t>(header.size()));
  size_t left = ulpdu_length - header.size();
  for (const base::ByteSpan piece : payload) {
    RNIC_CHECK(piece.size() <= left);
    left -= piece.size();
    const auto n = static_cast<uint32_t>(piece.size());
    if (n < llp::Spacing::kMany) {
      octets.put(piece.data(), n);
    } else {
      octets.put_run(piece.data(), n);
    }
  }
  RNIC_CHECK(left == 0);
  constexpr std::array<uint8_t, 4> kZeros{};
  octets.put(kZeros.data(), wire::mpa_pad(ulpdu_length));
  octets.write_due_marker();  // between pad and CRC: covered by this CRC (RFC 5044 s.4.4, rule 1)
  markers_ += octets.markers();
  Sum sum{octets.at(), begin};
  finish(sum);
}

}  // namespace rnic::mpa
