/// \file
/// A StreamUser for tests: sends records of given sizes whose octets are a function of their stream
/// offset, and checks every promise of the edge on what it receives.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include "base/check.hpp"
#include "llp/stream.hpp"
#include "llp/transport.hpp"

namespace rnic::testing {

/// The octet at a stream offset; differs between the directions by `key`.
[[nodiscard]] inline uint8_t octet_at(uint64_t offset, uint64_t key) {
  uint64_t x = (offset >> 3) * 0x9e3779b97f4a7c15ull + key;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9ull;
  return static_cast<uint8_t>((x ^ x >> 32) >> ((offset & 7) * 4));
}

class RecordUser : public llp::StreamUser {
 public:
  explicit RecordUser(uint64_t send_key, uint64_t receive_key)
      : send_key_(send_key), receive_key_(receive_key) {}

  /// Queues a record of `length` octets (cut to EMSS when pulled into smaller room: see pull()).
  void queue(uint32_t length) {
    to_send.push_back(length);
    if (stream != nullptr) stream->ready();
  }

  void established(uint32_t emss, base::Now) override {
    RNIC_CHECK(!is_established && !how_ended);
    is_established = true;
    established_emss = emss;
    if (!to_send.empty()) stream->ready();
    if (on_established) on_established();
  }
  llp::Pulled pull(uint32_t n, uint64_t offset, llp::Frame& out, base::Now) override {
    llp::Pulled record = pull_one(n, offset, out);
    for (uint32_t i = 1; i < row && follows_in(out, record); ++i) {
      if (!out.next(out.packs(), record)) break;
      ++passed;
      record = pull_one(out.room(), pulled, out);
      RNIC_CHECK(record.length != 0);
    }
    return record;
  }
  bool rebuild(const llp::RecordTag& tag, uint64_t offset, uint32_t length,
               llp::Frame& out) override {
    RNIC_CHECK(tag.a == offset && tag.b == length);
    RNIC_CHECK(offset >= released_to);
    ++rebuilds;
    if (revoked) return false;
    write(offset, length, out);
    return true;
  }
  void released(const llp::RecordTag& tag, uint64_t end_offset) override {
    RNIC_CHECK(tag.a == released_to && tag.a + tag.b == end_offset);
    released_to = end_offset;
  }
  llp::InspectVerdict inspect(base::Range range, base::ByteView octets, base::Now) override {
    RNIC_CHECK(range.size() == octets.size() && !range.empty());
    return verdict ? verdict(range) : llp::InspectVerdict::Accept;
  }
  void place(base::Range range, base::ByteView octets, bool in_order, base::Now) override {
    RNIC_CHECK(!how_ended);
    RNIC_CHECK(range.size() == octets.size() && in_order == (range.begin == ordered_to));
    if (got.size() < range.end) got.resize(range.end);
    for (uint64_t i = range.begin; i < range.end; ++i) {
      if (got[i]) ++placed_twice;
      got[i] = true;
      if (octets[i - range.begin] != octet_at(i, receive_key_)) ++wrong_octets;
    }
    places.push_back(range);
    if (on_place) on_place(range);
  }
  void ordered(uint64_t offset, base::Now) override {
    RNIC_CHECK(offset > ordered_to);
    for (uint64_t i = ordered_to; i < offset; ++i) {
      if (i >= got.size() || !got[i]) ++ordered_unplaced;
    }
    ordered_to = offset;
  }
  void emss_changed(uint32_t emss) override { changed_emss = emss; }
  [[nodiscard]] uint32_t receive_room() const override { return room; }
  [[nodiscard]] bool all_fits(uint32_t octets) const override {
    return std::accumulate(to_send.begin(), to_send.end(), uint64_t{0}) <= octets;
  }
  void peer_finished(base::Now) override {
    RNIC_CHECK(!peer_has_finished);
    peer_has_finished = true;
    if (on_peer_finished) on_peer_finished();
  }
  void ended(StreamEnd how, base::Now) override {
    RNIC_CHECK(!how_ended);
    how_ended = how;
    stream = nullptr;
    if (on_ended) on_ended();
  }

  /// Nothing of what was received was wrong in content, twice, or announced before it was there.
  [[nodiscard]] bool clean() const {
    return placed_twice == 0 && wrong_octets == 0 && ordered_unplaced == 0;
  }

  llp::Stream* stream = nullptr;
  std::deque<uint32_t> to_send;
  std::vector<base::Range> records;  ///< as pulled
  std::vector<base::Range> places;
  std::vector<bool> got;
  uint64_t pulled = 0;
  uint64_t released_to = 0;
  uint64_t ordered_to = 0;
  uint64_t pulls = 0;
  uint64_t rebuilds = 0;
  uint64_t placed_twice = 0;
  uint64_t wrong_octets = 0;
  uint64_t ordered_unplaced = 0;
  uint64_t passed = 0;  ///< records that another one of the same call followed
  uint32_t row = 1;     ///< records that pull() gives at most
  uint32_t room = 4u << 20;
  uint32_t established_emss = 0;
  uint32_t changed_emss = 0;
  bool is_established = false;
  bool peer_has_finished = false;
  bool revoked = false;     ///< rebuild() says no
  bool tells_last = false;  ///< pull() tells when nothing follows
  std::optional<StreamEnd> how_ended;
  std::function<llp::InspectVerdict(base::Range)> verdict;
  std::function<void()> on_established;
  std::function<void(base::Range)> on_place;
  std::function<void()> on_peer_finished;
  std::function<void()> on_ended;

 private:
  llp::Pulled pull_one(uint32_t n, uint64_t offset, llp::Frame& out) {
    RNIC_CHECK(!how_ended);
    RNIC_CHECK(offset == pulled);
    ++pulls;
    if (to_send.empty()) return {};
    uint32_t length = std::min(to_send.front(), stream->emss());
    if (length > n) return {};
    write(offset, length, out);
    if (length == to_send.front()) {
      to_send.pop_front();
    } else {
      to_send.front() -= length;
    }
    pulled += length;
    records.push_back({offset, length});
    return {.length = length,
            .push = to_send.empty(),
            .atomic = true,
            .more = !tells_last || !to_send.empty(),
            .tag = {offset, length}};
  }
  /// There is a record behind this one, and room for it.
  [[nodiscard]] bool follows_in(const llp::Frame& out, const llp::Pulled& record) const {
    if (record.length == 0 || to_send.empty()) return false;
    const uint32_t room_of_next = out.packs() ? out.room_left() : out.room();
    return std::min(to_send.front(), stream->emss()) <= room_of_next;
  }
  void write(uint64_t offset, uint32_t length, llp::Frame& out) {
    uint8_t* at = out.append(length);
    for (uint32_t i = 0; i < length; ++i) at[i] = octet_at(offset + i, send_key_);
  }

  uint64_t send_key_;
  uint64_t receive_key_;
};

/// Hands out prepared users, in turn; refuses when there is none left.
class UserAcceptor final : public llp::Acceptor {
 public:
  llp::StreamUser* accept(llp::Stream& stream, const Endpoint&, const Endpoint&,
                          base::Now) override {
    ++accepted;
    if (next.empty()) return nullptr;
    RecordUser* user = next.front();
    next.pop_front();
    user->stream = &stream;
    return user;
  }
  [[nodiscard]] uint32_t first_room(const Endpoint&) const override { return room; }
  std::deque<RecordUser*> next;
  uint32_t accepted = 0;
  uint32_t room = UINT32_MAX;  // of whoever is accepted
};

}  // namespace rnic::testing
