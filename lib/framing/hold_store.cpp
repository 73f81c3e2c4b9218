#include "framing/hold_store.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.hpp"
#include "framing/framing.hpp"

namespace rnic::framing {
namespace {

constexpr uint64_t kPage = HoldStore::kPageSize;

uint32_t pages_for(uint64_t octets) {
  return static_cast<uint32_t>(std::min<uint64_t>((octets + kPage - 1) / kPage, 1u << 26));
}

/// The number of descriptors of placed PDUs: one for each 256 octets of hold space, within limits.
uint32_t placed_for(uint64_t octets) {
  return static_cast<uint32_t>(std::clamp<uint64_t>(octets / 256, 4096, 65536)) +
         HoldStore::kReserveNodes;
}

/// Calls f(window, offset in window, octets before this piece, octets) for each page that `range`
/// touches.
template <typename F>
void for_each_page(base::Range range, F&& f) {
  uint64_t at = range.begin;
  while (at < range.end) {
    const uint64_t window = at / kPage;
    const uint64_t end = std::min(range.end, (window + 1) * kPage);
    f(window, static_cast<size_t>(at % kPage), static_cast<size_t>(at - range.begin),
      static_cast<size_t>(end - at));
    at = end;
  }
}

/// Keeps the location of a PDU when two ranges merge: if no PDU is located in the left part, the
/// one located in the right part is the first.
void inherit(HeldRange& left, uint64_t next_pdu) {
  if (left.next_pdu >= kNotLocatable && next_pdu != kUnlocated) left.next_pdu = next_pdu;
}

}  // namespace

HoldStorePtr make_hold_store(uint64_t octets) { return HoldStorePtr(new HoldStore(octets)); }
uint64_t hold_store_octets(uint64_t octets) { return HoldStore::octets_for(octets); }
uint64_t held_octets(const HoldStore& store) { return store.octets(); }
uint64_t held_octets_peak(const HoldStore& store) { return store.octets_peak(); }
uint64_t held_memory(const HoldStore& store) { return store.memory_octets(); }
void validate(const HoldStore& store) { store.validate(); }
void HoldStoreDeleter::operator()(HoldStore* store) const { delete store; }

HoldStore::HoldStore(uint64_t octets)
    : general_pages_(pages_for(octets)),
      bucket_mask_(std::bit_ceil(general_pages_ + kReservePages) - 1),
      pages_(general_pages_ + kReservePages),
      buckets_(size_t{bucket_mask_} + 1),
      memory_(pages_.size() * kPage),
      ranges_(general_pages_ + kReservePages + 4 * kReserveNodes),
      placed_(placed_for(octets)),
      scratch_(std::make_unique<uint8_t[]>(kPduSizeMax)) {}

uint64_t HoldStore::octets_for(uint64_t octets) {
  const uint64_t pages = uint64_t{pages_for(octets)} + kReservePages;
  return sizeof(HoldStore) + kPduSizeMax + pages * (sizeof(Page) + kPage) +
         std::bit_ceil(pages) * sizeof(uint32_t) +
         Pool<HeldRange>::octets_for(pages + 4 * kReserveNodes) +
         Pool<PlacedPdu>::octets_for(placed_for(octets));
}

// The windows of a session come one after the other, so their buckets do, too: they share lines of
// the cache, which are far apart in a store for many sessions.
uint32_t HoldStore::bucket(uint32_t session, uint64_t window) const {
  const uint64_t first = (session * 0x9e3779b97f4a7c15ull) >> 32;
  return static_cast<uint32_t>(first + window) & bucket_mask_;
}

uint32_t HoldStore::index_of(uint32_t session, uint64_t window) const {
  for (uint32_t link = buckets_[bucket(session, window)]; link != 0; link = pages_[link - 1].next) {
    const Page& page = pages_[link - 1];
    if (page.window == window && page.session == session) return link - 1;
  }
  return kNone;
}

uint8_t* HoldStore::find(uint32_t session, uint64_t window) {
  const uint32_t i = index_of(session, window);
  return i == kNone ? nullptr : memory_.data() + i * kPage;
}

uint8_t* HoldStore::take(uint32_t session, uint64_t window, bool general, bool reserve) {
  if (uint8_t* page = find(session, window)) return page;
  const bool from_general = general && general_free() != 0;
  if (!from_general && (!reserve || reserve_free(session) == 0)) return nullptr;
  RNIC_CHECK(free_ != 0 || fresh_ != pages_.size());
  const uint32_t i = free_ != 0 ? free_ - 1 : fresh_++;
  if (free_ != 0) free_ = pages_[i].next;
  if (from_general) {
    ++general_used_;
  } else {
    ++reserve_used_;
    reserve_session_ = session;
  }
  uint32_t& head = buckets_[bucket(session, window)];
  pages_[i] = {window, session, head, 0, !from_general};
  head = i + 1;
  return memory_.data() + i * kPage;
}

void HoldStore::add_use(uint32_t session, uint64_t window, int32_t octets) {
  const uint32_t i = index_of(session, window);
  RNIC_CHECK(i != kNone);
  pages_[i].used += static_cast<uint32_t>(octets);
  octets_ += static_cast<uint64_t>(static_cast<int64_t>(octets));
  octets_peak_ = std::max(octets_peak_, octets_);
  if (pages_[i].used == 0) free_page(i);
}

uint32_t HoldStore::use(uint32_t session, uint64_t window) const {
  const uint32_t i = index_of(session, window);
  return i == kNone ? 0 : pages_[i].used;
}

void HoldStore::free_page(uint32_t index) {
  Page& page = pages_[index];
  uint32_t* link = &buckets_[bucket(page.session, page.window)];
  while (*link != index + 1) link = &pages_[*link - 1].next;
  *link = page.next;
  --(page.reserve ? reserve_used_ : general_used_);
  page.next = 0;
  (free_ == 0 ? free_ : pages_[free_last_ - 1].next) = index + 1;
  free_last_ = index + 1;
}

void HoldStore::validate() const {
  ranges_.validate();
  placed_.validate();
  uint32_t general = 0;
  uint32_t reserve = 0;
  uint64_t octets = 0;
  for (uint32_t i = 0; i < fresh_; ++i) {
    const Page& page = pages_[i];
    if (page.used == 0) continue;
    RNIC_CHECK(page.used <= kPage && index_of(page.session, page.window) == i);
    RNIC_CHECK(!page.reserve || page.session == reserve_session_);
    ++(page.reserve ? reserve : general);
    octets += page.used;
  }
  RNIC_CHECK(general == general_used_ && general <= general_pages_);
  RNIC_CHECK(reserve == reserve_used_ && reserve <= kReservePages);
  RNIC_CHECK(octets == octets_ && octets <= octets_peak_);
}

void HeldOctets::set_share(HoldSharePtr share) {
  if (share_ != nullptr) share_->give_back(octets_);
  share_ = std::move(share);
  if (share_ != nullptr) share_->add(octets_);
}

void HeldOctets::count(uint64_t octets) {
  octets_ += octets;
  if (share_ != nullptr) share_->add(octets);
}

void HeldOctets::uncount(uint64_t octets) {
  octets_ -= octets;
  if (share_ != nullptr) share_->give_back(octets);
}

[[gnu::noinline]] bool HeldOctets::has_pages(base::Range range, bool at_delivery_point,
                                             uint32_t parts) const {
  uint32_t need = 0;
  for_each_page(range, [&](uint64_t window, size_t, size_t, size_t) {
    if (store_.find(id_, window) == nullptr) ++need;
  });
  if (is_within_limits(range, parts) && need <= store_.general_free()) return true;
  if (!at_delivery_point || store_.ranges().free() < 2) return false;
  const bool within_limit = range.size() <= left();
  return need <= store_.reserve_free(id_) + (within_limit ? store_.general_free() : 0);
}

uint32_t HeldOctets::room_in(base::Range range, bool at_delivery_point) const {
  uint64_t fits = 0;
  uint64_t most = range.size();
  while (fits < most) {  // room for some octets is room for fewer
    const uint64_t n = fits + (most - fits + 1) / 2;
    if (has_room({range.begin, range.begin + n}, at_delivery_point)) {
      fits = n;
    } else {
      most = n - 1;
    }
  }
  return static_cast<uint32_t>(fits);
}

uint32_t HeldOctets::sure_room() const {
  if (store_.ranges().free() < 2) return 0;
  // The range may begin with the last octet of a page, so one page is not counted.
  const auto in_pages = [](uint64_t pages) { return pages == 0 ? 0 : (pages - 1) * kPage; };
  const uint64_t reserve = store_.reserve_free(id_);
  const uint64_t room = std::max(std::min(left(), in_pages(reserve + store_.general_free())),
                                 in_pages(reserve));
  return static_cast<uint32_t>(std::min<uint64_t>(room, UINT32_MAX));
}

uint32_t HeldOctets::add(base::Range range, base::ByteView octets, bool at_delivery_point,
                         uint64_t next_pdu) {
  RNIC_CHECK(!range.empty() && octets.size() == range.size());
  if (store_.ranges().free() == 0) return kNone;
  const uint32_t before = last_at_or_before(range.begin);
  // The transport never hands the same octets up twice.
  RNIC_CHECK(before == kNone || node(before).range.end <= range.begin);
  const uint32_t after = before == kNone ? head_ : node(before).next;
  RNIC_CHECK(after == kNone || node(after).range.begin >= range.end);
  if (!write(range, octets.data(), at_delivery_point)) return kNone;

  uint32_t at = before;
  if (before != kNone && node(before).range.end == range.begin) {
    HeldRange& left = node(before);
    left.range.end = range.end;
    inherit(left, next_pdu);
  } else {
    at = link(range, next_pdu, before);
  }
  if (after != kNone && node(after).range.begin == range.end) {
    HeldRange& merged = node(at);
    merged.range.end = node(after).range.end;
    inherit(merged, node(after).next_pdu);
    unlink(after);
  }
  return at;
}

uint32_t HeldOctets::erase(uint32_t index, base::Range range, uint64_t next_pdu) {
  HeldRange& held = node(index);
  RNIC_CHECK(held.range.begin <= range.begin && range.end <= held.range.end);
  release(range);
  const base::Range behind{range.end, held.range.end};
  const bool keeps_front = held.range.begin < range.begin;
  if (keeps_front) {
    held.range.end = range.begin;
    held.next_pdu = kUnlocated;
    return behind.empty() ? kNone : link(behind, next_pdu, index);
  }
  if (behind.empty()) {
    unlink(index);
    return kNone;
  }
  held.range = behind;
  held.next_pdu = next_pdu;
  return index;
}

void HeldOctets::clear() {
  while (head_ != kNone) erase(head_, node(head_).range, kUnlocated);
}

uint32_t HeldOctets::last_at_or_before(uint64_t offset) const {
  uint32_t i = tail_;
  while (i != kNone && node(i).range.begin > offset) i = node(i).prev;
  return i;
}

uint32_t HeldOctets::containing(uint64_t offset) const {
  const uint32_t i = last_at_or_before(offset);
  return i != kNone && offset < node(i).range.end ? i : kNone;
}

uint32_t HeldOctets::ending_at(uint64_t offset) const {
  const uint32_t i = last_at_or_before(offset);
  return i != kNone && node(i).range.end == offset ? i : kNone;
}

uint32_t HeldOctets::beginning_at(uint64_t offset) const {
  const uint32_t i = last_at_or_before(offset);
  return i != kNone && node(i).range.begin == offset ? i : kNone;
}

uint8_t HeldOctets::octet(uint64_t offset) const {
  const uint8_t* page = store_.find(id_, offset / kPage);
  RNIC_CHECK(page != nullptr);
  return page[offset % kPage];
}

void HeldOctets::copy(base::Range range, uint8_t* dst) const {
  for_each_page(range, [&](uint64_t window, size_t in_page, size_t done, size_t n) {
    const uint8_t* page = store_.find(id_, window);
    RNIC_CHECK(page != nullptr);
    std::memcpy(dst + done, page + in_page, n);
  });
}

const uint8_t* HeldOctets::contiguous(base::Range range) {
  const uint64_t first = range.begin / kPage;
  const uint64_t behind = (range.end - 1) / kPage + 1;
  const uint8_t* pages = store_.find(id_, first);
  uint64_t window = first + 1;
  while (window < behind && store_.find(id_, window) == pages + (window - first) * kPage) ++window;
  if (window == behind) return pages + range.begin % kPage;
  RNIC_CHECK(range.size() <= kPduSizeMax);
  copy(range, store_.scratch());
  return store_.scratch();
}

uint32_t HeldOctets::link(base::Range range, uint64_t next_pdu, uint32_t after) {
  const uint32_t i = store_.ranges().take();
  RNIC_CHECK(i != kNone);
  const uint32_t behind = after == kNone ? head_ : node(after).next;
  node(i) = {range, next_pdu, after, behind};
  (after == kNone ? head_ : node(after).next) = i;
  (behind == kNone ? tail_ : node(behind).prev) = i;
  ++count_;
  return i;
}

void HeldOctets::unlink(uint32_t index) {
  const HeldRange& gone = node(index);
  (gone.prev == kNone ? head_ : node(gone.prev).next) = gone.next;
  (gone.next == kNone ? tail_ : node(gone.next).prev) = gone.prev;
  store_.ranges().give(index);
  --count_;
}

bool HeldOctets::write(base::Range range, const uint8_t* src, bool at_delivery_point) {
  const bool general = range.size() <= left();
  bool complete = true;
  uint64_t written = 0;
  for_each_page(range, [&](uint64_t window, size_t in_page, size_t done, size_t n) {
    if (!complete) return;
    uint8_t* page = store_.take(id_, window, general, at_delivery_point);
    if (page == nullptr) {
      complete = false;
      return;
    }
    std::memcpy(page + in_page, src + done, n);
    store_.add_use(id_, window, static_cast<int32_t>(n));
    written += n;
  });
  count(written);
  if (!complete) release({range.begin, range.begin + written});
  return complete;
}

void HeldOctets::release(base::Range range) {
  for_each_page(range, [&](uint64_t window, size_t, size_t, size_t n) {
    store_.add_use(id_, window, -static_cast<int32_t>(n));
  });
  uncount(range.size());
}

void HeldOctets::validate() const {
  uint64_t octets = 0;
  uint32_t count = 0;
  uint32_t before = kNone;
  uint64_t window = UINT64_MAX;  // window of the page that is being counted
  uint32_t in_window = 0;
  const auto page_counted = [&] {
    RNIC_CHECK(window == UINT64_MAX || store_.use(id_, window) == in_window);
  };
  for (uint32_t i = head_; i != kNone; before = i, i = node(i).next) {
    const base::Range range = node(i).range;
    RNIC_CHECK(!range.empty() && node(i).prev == before);
    RNIC_CHECK(before == kNone || node(before).range.end < range.begin);
    for_each_page(range, [&](uint64_t at, size_t, size_t, size_t n) {
      if (at != window) {
        page_counted();
        window = at;
        in_window = 0;
      }
      in_window += static_cast<uint32_t>(n);
    });
    octets += range.size();
    ++count;
  }
  page_counted();
  RNIC_CHECK(before == tail_);
  RNIC_CHECK(octets == octets_ && count == count_);
}

}  // namespace rnic::framing
