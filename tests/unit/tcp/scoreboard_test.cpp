// The scoreboard alone: what each step of RFC 6675 leaves of pipe and of the sums.

#include "tcp/scoreboard.hpp"

#include <gtest/gtest.h>

namespace rnic::tcp {
namespace {

constexpr uint32_t kMss = 1000;

/// A sender that has sent `segments` of two records each.
struct Sent {
  explicit Sent(uint32_t segments) {
    for (uint32_t i = 0; i < 2 * segments; ++i) {
      Record r;
      r.length = kMss / 2;
      r.flags = i % 2 == 0 ? record_flag::kSegmentStart : uint16_t{0};
      board.push(r);
      tcb.snd_nxt += r.length;
    }
    board.validate();
  }
  ~Sent() { board.validate(); }
  /// \return octets that arrived with it
  uint64_t sack(uint64_t begin, uint64_t end) {
    uint64_t sum = 0;
    board.sack({begin, end}, [&](const Record&, uint64_t live) { sum += live; });
    board.validate();
    return sum;
  }
  void ack(uint64_t offset) {
    while (!board.empty() && board.front().end() <= offset) board.pop_front();
    board.advance(offset);
    tcb.snd_una = offset;
    board.validate();
  }

  RecordPool pool{256, 4, 128};
  RangePool ranges{4};
  Tcb tcb;
  Prediction prediction;
  Scoreboard board{tcb, pool, ranges, prediction};
};

TEST(Scoreboard, PipeIsWhatIsNeitherSackedNorLostAndWhatWasSentAgain) {
  Sent s(4);
  EXPECT_EQ(s.board.pipe(), 4 * kMss);
  EXPECT_TRUE(s.board.clean());
  EXPECT_EQ(s.sack(kMss, 3 * kMss), 2 * kMss);
  EXPECT_EQ(s.board.pipe(), 2 * kMss);
  EXPECT_EQ(s.board.fack(), 3 * kMss);
  EXPECT_FALSE(s.board.clean());
  s.board.lose_first_segment();
  EXPECT_EQ(s.board.lost_octets(), kMss);
  EXPECT_EQ(s.board.pipe(), kMss);
  EXPECT_EQ(s.board.next_lost(), 0u);
  s.board.resent(0, base::Now{});
  EXPECT_EQ(s.board.next_lost(), 1u) << "the other record of the segment";
  s.board.resent(1, base::Now{});
  EXPECT_EQ(s.board.pipe(), 2 * kMss);
  EXPECT_FALSE(s.board.owes_retransmission());
  s.ack(3 * kMss);
  EXPECT_EQ(s.board.pipe(), kMss);
  EXPECT_EQ(s.board.sacked_segments(), 0u);
  EXPECT_TRUE(s.board.clean()) << "what was sent again is gone";
}

TEST(Scoreboard, WhatWasSackedBeforeIsNotTakenTwice) {
  Sent s(4);
  EXPECT_EQ(s.sack(kMss, 2 * kMss), kMss);
  EXPECT_EQ(s.sack(kMss, 2 * kMss), 0u);
  EXPECT_EQ(s.sack(kMss / 2, 2 * kMss), kMss / 2);
  EXPECT_EQ(s.sack(2 * kMss, 2 * kMss + 200), 0u) << "no whole record";
  EXPECT_EQ(s.sack(2 * kMss + 100, 3 * kMss), kMss) << "with what was known of its first";
}

TEST(Scoreboard, ALostRetransmissionIsOwedAgain) {
  Sent s(2);
  s.board.lose(0);
  s.board.resent(0, base::Now{});
  s.board.lose(0);
  EXPECT_EQ(s.board.lost_octets(), kMss / 2);
  EXPECT_EQ(s.board.retransmitted_octets(), 0u);
  EXPECT_EQ(s.board.next_lost(), 0u);
}

TEST(Scoreboard, APartOfARecordIsAcknowledged) {
  Sent s(1);
  s.board.lose(0);
  s.ack(200);
  EXPECT_EQ(s.board.lost_octets(), kMss / 2 - 200);
  EXPECT_EQ(s.board.live(s.board.front()), kMss / 2 - 200);
}

TEST(Scoreboard, ATimeOutForgetsWhatWasSackedAndIsUndone) {
  Sent s(3);
  s.sack(2 * kMss, 3 * kMss);
  s.board.lose_all();
  EXPECT_EQ(s.board.pipe(), 0u);
  EXPECT_EQ(s.board.lost_octets(), 3 * kMss);
  EXPECT_TRUE(s.board.sacked().empty());
  s.board.undo_losses();
  EXPECT_EQ(s.board.pipe(), 3 * kMss);
  EXPECT_FALSE(s.board.clean()) << "no round trip is measured on what was in flight";
}

TEST(Scoreboard, DuplicatesStandForTheSegmentsBehindTheHole) {
  Sent s(3);
  EXPECT_EQ(s.board.reno_duplicate(true, kMss), kMss);
  EXPECT_EQ(s.board.reno_duplicate(true, kMss), kMss);
  EXPECT_EQ(s.board.reno_duplicate(true, kMss), 0u) << "there is nothing more in flight";
  EXPECT_EQ(s.board.pipe(), kMss);
  EXPECT_EQ(s.board.reno_duplicate(false, kMss), 0u);
  EXPECT_EQ(s.board.duplicate_acks(), 4u);
  s.ack(kMss);
  EXPECT_EQ(s.board.reno_acked(kMss, true, kMss), 0u) << "the hole alone";
  EXPECT_EQ(s.board.reno_sacked(), 2 * kMss);
  EXPECT_EQ(s.board.duplicate_acks(), 0u);
  s.board.forget_duplicates();
}

TEST(Scoreboard, WhatMakesItOddEndsThePrediction) {
  const auto ends = [](auto&& change) {
    Sent s(2);
    s.prediction.begin(1, 2, base::Seq32(3), 20, 1000, 0);
    change(s.board);
    return !s.prediction.on();
  };
  Record text;
  text.length = 1;
  Record fin = text;
  fin.flags = record_flag::kFin;
  EXPECT_FALSE(ends([&](Scoreboard& b) { b.push(text); }));
  EXPECT_TRUE(ends([&](Scoreboard& b) { b.push(fin); }));
  EXPECT_TRUE(ends([](Scoreboard& b) { b.lose(0); }));
  EXPECT_TRUE(ends([](Scoreboard& b) { b.lose_all(); }));
  EXPECT_TRUE(ends([](Scoreboard& b) { b.resent(0, base::Now{}); }));
  EXPECT_TRUE(ends([](Scoreboard& b) { b.keep(0, 7); }));
  EXPECT_TRUE(ends([](Scoreboard& b) { b.reno_duplicate(true, kMss); }));
  EXPECT_TRUE(ends([](Scoreboard& b) { b.sack({1000, 2000}, [](const Record&, uint64_t) {}); }));
}

}  // namespace
}  // namespace rnic::tcp
