/// \file
/// PlacementRun: where the segments go whose header differs from the last one's in its offset only.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/bytes.hpp"
#include "base/endian.hpp"
#include "base/prefetch.hpp"
#include "ddp/tagged.hpp"
#include "mem/stag_table.hpp"
#include "wire/ddp.hpp"

namespace rnic::ddp {

/// The part of a run with these offsets.
[[nodiscard]] inline mem::AccessRun part_of(const mem::AccessRun& run, const base::Range& offsets) {
  const base::Range part{std::max(run.offsets.begin, offsets.begin),
                         std::min(run.offsets.end, offsets.end)};
  if (part.empty()) return {};
  return {run.at + (part.begin - run.offsets.begin), part};
}

/// The checks of one segment - version, opcode, STag or buffer, rights - hold for the segments
/// behind it that have the same header but for L and the offset (TO or MO), as long as no STag of
/// the table ends. What is left to be checked of each is that it lies inside the run: offsets of
/// its target whose octets follow each other in memory.
class PlacementRun {
 public:
  /// Nothing is known.
  void end() { control_ = kNone; }
  /// \param header of a tagged segment that has passed its checks \param run by TO; none if it is
  /// empty \param target the user's answer
  void begin_tagged(const uint8_t* header, const mem::AccessRun& run, const TaggedTarget& target,
                    const mem::StagTable& table) {
    begin(tagged_control(header), run, table);
    quiet_ = target.quiet;
    messages_ = target.messages;
    coverage_ = run.offsets == target.same ? target.coverage : nullptr;
  }
  /// \param header of an untagged segment of the message that is delivered next, which has passed
  /// its checks \param run by MO; none if it is empty
  void begin_untagged(const uint8_t* header, const mem::AccessRun& run,
                      const mem::StagTable& table) {
    begin(untagged_control(header), run, table);
    queue_ = word(header + wire::kDdpQnAt);
    quiet_ = false;
    coverage_ = nullptr;
  }
  /// A message is delivered to its end: what was known of its segments may not hold any more.
  void end_message() {
    if (!quiet_) end();
  }
  /// Precondition: a segment was found.
  [[nodiscard]] bool is_quiet() const { return quiet_; }
  /// Delivers a tagged segment that was found, all before which is delivered. \return it is done;
  /// false: the user has to be told. \param key as for Coverage
  [[nodiscard]] bool deliver(const uint8_t* header, uint32_t payload, uint64_t key) {
    if (wire::is_ddp_last(header[wire::kDdpControlAt])) {
      if (!quiet_ || messages_ == nullptr) return false;
      ++*messages_;
    }
    if (quiet_) {
      add_quiet(payload);
      return true;
    }
    if (coverage_ == nullptr || payload > length_ - coverage_->octets()) return false;
    coverage_->add(base::load_be64(header + wire::kDdpToAt) - first_, payload, key);
    return true;
  }

  /// A segment of the run, though it may have been placed by itself, whose delivery only counts, as
  /// its target is quiet and it has no L. \param header at least kDdpTaggedSize octets
  [[nodiscard]] bool is_quiet_part(const uint8_t* header) const {
    return tagged_control(header) == control_ && quiet_ &&
           !wire::is_ddp_last(header[wire::kDdpControlAt]);
  }
  /// A quiet segment without L was delivered, of which the user is not told.
  void add_quiet(uint32_t payload) { quiet_octets_ += payload; }
  /// \return the octets of those since the last call
  [[nodiscard]] uint64_t take_quiet() { return std::exchange(quiet_octets_, 0); }

  /// The place of the octets of a segment, or nullptr: all its checks have to be made, or it is
  /// untagged. \param header at least kDdpTaggedSize octets
  [[nodiscard]] uint8_t* find_tagged(const uint8_t* header, uint32_t payload,
                                     const mem::StagTable& table) const {
    if (tagged_control(header) != control_) return nullptr;
    return inside(base::load_be64(header + wire::kDdpToAt), payload, table);
  }
  /// A tagged segment was found to go to `to`. Those behind it mostly go behind it: where the run
  /// is so large that its memory is hardly in the caches, the place of the second next one comes to
  /// this core meanwhile, so that copying does not wait for it. The next one's is on its way.
  void fetch_behind(const uint8_t* to, uint32_t payload) const {
    if (payload - kLeastFetching < fetching_) [[unlikely]]
      fetch(static_cast<uint64_t>(to - at_) + 2 * uint64_t{payload}, payload);
  }
  /// Does the same for an untagged segment; nullptr also if it is tagged. \param header at least
  /// kDdpUntaggedSize octets
  [[nodiscard]] uint8_t* find_untagged(const uint8_t* header, uint32_t payload,
                                       const mem::StagTable& table) const {
    const bool same =
        untagged_control(header) == control_ && word(header + wire::kDdpQnAt) == queue_;
    return same ? inside(base::load_be32(header + wire::kDdpMoAt), payload, table) : nullptr;
  }

 private:
  using Octets = std::array<uint8_t, 8>;
  static constexpr uint64_t kNone = UINT64_MAX;
  // A second cache of 1 MB keeps the places of a smaller run; then hints would only cost.
  static constexpr uint64_t kLargeRun = 2u << 20;
  // Of smaller segments many are on one line, and larger ones the processor fetches well by itself.
  static constexpr uint32_t kLeastFetching = 1024;  // octets of payload
  static constexpr uint32_t kMostFetching = 2048;

  [[nodiscard]] static uint64_t word(const uint8_t* p) {
    uint64_t value;
    std::memcpy(&value, p, sizeof value);
    return value;
  }
  /// Control field, RsvdULP and STag. L is left out, which keeps it apart from the one below.
  [[nodiscard]] static uint64_t tagged_control(const uint8_t* header) {
    constexpr Octets kMask{0xff & ~wire::kDdpLastBit, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0};
    return word(header) & std::bit_cast<uint64_t>(kMask);
  }
  /// Control field, with L set, RsvdULP, and a part of QN.
  [[nodiscard]] static uint64_t untagged_control(const uint8_t* header) {
    constexpr Octets kLast{wire::kDdpLastBit};
    return word(header) | std::bit_cast<uint64_t>(kLast);
  }
  void begin(uint64_t control, const mem::AccessRun& run, const mem::StagTable& table) {
    ends_ = table.ends();
    control_ = !run.offsets.empty() && table.holds_since(ends_) ? control : kNone;
    first_ = run.offsets.begin;
    length_ = run.offsets.size();
    at_ = run.at;
    fetching_ = length_ < kLargeRun ? 0 : kMostFetching - kLeastFetching;
  }
  [[nodiscard]] uint8_t* inside(uint64_t offset, uint32_t payload,
                                const mem::StagTable& table) const {
    // Unsigned: an offset below the first one is past every length.
    const uint64_t from = offset - first_;
    const bool good = from <= length_ && payload <= length_ - from && table.holds_since(ends_);
    return good ? at_ + from : nullptr;
  }

  /// Has the place of `octets` at `from` of the run fetched, as far as it is inside. This is a
  /// function of its own, so that runs for which it does nothing do not pay for its registers.
  [[gnu::noinline, gnu::cold]] void fetch(uint64_t from, uint64_t octets) const {
    constexpr uint64_t kCacheLine = 64;
    const uint64_t end = std::min(from + octets, length_);
    for (; from < end; from += kCacheLine) base::prefetch_for_write(at_ + from);
  }

  uint64_t control_ = kNone;  // see tagged_control() and untagged_control()
  uint64_t queue_ = 0;  // untagged: QN and MSN
  uint64_t first_ = 0;  // offset of the first octet of the run
  uint64_t length_ = 0;
  uint8_t* at_ = nullptr;
  uint64_t ends_ = 0;  // StagTable::ends() when the run began
  uint64_t quiet_octets_ = 0;
  bool quiet_ = false;
  uint32_t fetching_ = 0;  // fetch_behind() acts for so many sizes from kLeastFetching on
  // See TaggedTarget.
  uint64_t* messages_ = nullptr;
  Coverage* coverage_ = nullptr;
};

}  // namespace rnic::ddp
