/// \file
/// Two llp::Framing ends joined without a transport: ULPDUs pulled at one end arrive at the other,
/// in any order of placement, and are acknowledged when the test says so.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "llp/framing.hpp"

namespace rnic::test {

/// Collects one ULPDU and checks that its announced length is kept.
class CollectingWriter final : public llp::UlpduWriter {
 public:
  void write(uint32_t ulpdu_length, base::ByteView header,
             std::span<const base::ByteSpan> payload) override {
    announced_ = ulpdu_length;
    octets_.assign(header.begin(), header.end());
    for (const base::ByteSpan piece : payload) {
      octets_.insert(octets_.end(), piece.begin(), piece.end());
    }
  }
  [[nodiscard]] std::vector<uint8_t> take() {
    EXPECT_EQ(announced_, octets_.size());
    return std::move(octets_);
  }

 private:
  uint32_t announced_ = 0;
  std::vector<uint8_t> octets_;
};

/// Hands a ULPDU up cut into pieces of `piece` octets.
class CutView {
 public:
  explicit CutView(base::ByteView octets, size_t piece = SIZE_MAX)
      : length_(static_cast<uint32_t>(octets.size())) {
    while (!octets.empty()) {
      const size_t n = std::min(piece, octets.size());
      pieces_.push_back(octets.first(n));
      octets = octets.subspan(n);
    }
  }
  [[nodiscard]] llp::UlpduView view() const { return {pieces_, length_}; }

 private:
  std::vector<base::ByteView> pieces_;
  uint32_t length_;
};

struct SentUlpdu {
  std::vector<uint8_t> octets;
  llp::RecordTag tag;
  bool last = false;
};

/// One end. What it pulls goes into `sent`; arrive() takes what the other end sent.
class FramingEnd final : public llp::Framing {
 public:
  explicit FramingEnd(uint32_t mulpdu) : mulpdu_(mulpdu) {}
  void attach(llp::FramingUser& user) { user_ = &user; }
  [[nodiscard]] llp::FramingUser& user() { return *user_; }

  // llp::Framing
  [[nodiscard]] uint32_t mulpdu() const override { return mulpdu_; }
  [[nodiscard]] uint8_t version() const override { return version_; }
  void ready() override { ++ready_calls; }
  void discard_received() override { discarding = true; }
  void close() override { ++close_calls; }
  void abort() override { aborted = true; }

  /// Pulls one ULPDU; false when there is none. Each is rebuilt at once and must come out the same.
  bool pull(bool whole_only = false, uint32_t max = 0) {
    CollectingWriter writer;
    const llp::PulledUlpdu pulled =
        user_->pull_ulpdu(max != 0 ? max : mulpdu_, whole_only, writer, {});
    if (pulled.length == 0) return false;
    told_more = pulled.more;
    sent.push_back({writer.take(), pulled.tag, pulled.last});
    EXPECT_EQ(sent.back().octets.size(), pulled.length);
    EXPECT_LE(pulled.length, mulpdu_);
    if (check_rebuild) {
      EXPECT_EQ(rebuild(sent.size() - 1), sent.back().octets);
    }
    return true;
  }
  /// The octets of a rebuilt ULPDU; empty when its memory is gone.
  std::vector<uint8_t> rebuild(size_t i) {
    CollectingWriter writer;
    if (!user_->rebuild_ulpdu(sent[i].tag, writer)) return {};
    return writer.take();
  }
  void pull_all() {
    while (pull()) {
    }
  }
  /// Acknowledges what was sent up to (not including) `i`.
  void release_up_to(size_t i) {
    for (; released_ < i && released_ < sent.size(); ++released_) {
      user_->released_ulpdu(sent[released_].tag);
    }
  }
  void release_all() { release_up_to(sent.size()); }
  /// Acknowledges by one ACK everything that was sent.
  void release_run() {
    std::vector<llp::SentRecord> records;
    for (; released_ < sent.size(); ++released_) records.push_back({.tag = sent[released_].tag});
    if (records.empty()) return;
    user_->released_ulpdus(
        {records[0], static_cast<uint32_t>(records.size()), sizeof(llp::SentRecord)});
  }

  /// The i-th ULPDU of the peer arrives; once each. Places, and delivers as far as the order goes.
  void arrive(const FramingEnd& peer, size_t i, base::Now now = {}) {
    if (discarding) return;
    arrivals_.resize(std::max(arrivals_.size(), i + 1));
    const bool in_order = i == next_;
    arrivals_[i].octets = peer.sent[i].octets;
    place(arrivals_[i], in_order, now);
    while (!discarding && next_ < arrivals_.size() && arrivals_[next_].here) {
      Arrival& a = arrivals_[next_];
      if (a.held) place(a, true, now);
      const size_t head = std::min<size_t>(a.octets.size(), llp::kUlpduHeaderMax);
      ++next_;
      const std::vector<uint8_t> octets = a.octets;
      user_->deliver_ulpdu(base::ByteView(octets).first(head), static_cast<uint32_t>(octets.size()),
                           now);
    }
  }
  /// Everything of the peer that did not arrive yet, in order. \return whether the order went on.
  bool arrive_rest(const FramingEnd& peer) {
    const size_t before = next_;
    for (size_t i = next_; i < peer.sent.size(); ++i) {
      if (i >= arrivals_.size() || !arrivals_[i].here) arrive(peer, i);
    }
    return next_ != before;
  }

  std::vector<SentUlpdu> sent;
  std::vector<llp::PlaceVerdict> verdicts;
  uint32_t ready_calls = 0;
  uint32_t close_calls = 0;
  bool discarding = false;
  bool aborted = false;
  bool told_more = true;  ///< PulledUlpdu::more of the last ULPDU
  bool check_rebuild = true;
  size_t piece = SIZE_MAX;  ///< arriving ULPDUs are handed up in pieces of this size
  uint8_t version_ = 1;

 private:
  struct Arrival {
    std::vector<uint8_t> octets;
    bool here = false;
    bool held = false;
  };
  void place(Arrival& a, bool in_order, base::Now now) {
    const CutView cut(a.octets, piece);
    const llp::PlaceVerdict verdict = user_->place_ulpdu(cut.view(), in_order, now);
    verdicts.push_back(verdict);
    a.here = true;
    a.held = verdict == llp::PlaceVerdict::Hold;
    EXPECT_FALSE(in_order && a.held) << "in order there is nothing to wait for";
  }

  llp::FramingUser* user_ = nullptr;
  uint32_t mulpdu_;
  std::vector<Arrival> arrivals_;
  size_t next_ = 0;
  size_t released_ = 0;
};

/// Two ends; pump() runs both until nothing moves.
struct FramingPair {
  explicit FramingPair(uint32_t mulpdu) : a(mulpdu), b(mulpdu) {}

  void pump(bool acknowledge = true) {
    for (bool moved = true; moved;) {
      moved = a.pull();
      moved = b.pull() || moved;
      moved = b.arrive_rest(a) || moved;
      moved = a.arrive_rest(b) || moved;
      if (acknowledge) {
        a.release_all();
        b.release_all();
      }
    }
  }

  FramingEnd a;
  FramingEnd b;
};

}  // namespace rnic::test
