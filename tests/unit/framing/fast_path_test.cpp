// The receiver's fast path beside the general way: the same calls up in the same order, the same
// counters and traces; and each condition that keeps a segment off it.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "framing/framing.hpp"
#include "framing/receiver_steps.hpp"
#include "length_locator.hpp"
#include "support/damage.hpp"
#include "support/mpa_fakes.hpp"

namespace rnic::framing {

using test::FakeStream;
using test::Octets;

extern template class Receiver<LengthLocator>;

namespace {

RNIC_OPEN(Receiver<LengthLocator>, steady_at_)

/// Writes down each call with the octets that it gets, and answers as it was told.
class Log final : public llp::FramingUser {
 public:
  llp::PulledUlpdu pull_ulpdu(uint32_t, bool, llp::UlpduWriter&, base::Now) override { return {}; }
  bool rebuild_ulpdu(const llp::RecordTag&, llp::UlpduWriter&) override { return false; }
  void released_ulpdu(const llp::RecordTag&) override {}
  llp::PlaceVerdict place_ulpdu(const llp::UlpduView& ulpdu, bool in_order, base::Now) override {
    Octets octets(ulpdu.length);
    ulpdu.copy_prefix(octets.data(), ulpdu.length);
    calls.push_back((in_order ? "place " : "place early ") + text(octets));
    if (in_order && placed == wait_at) return llp::PlaceVerdict::Wait;
    if (in_order && placed == fault_at) {
      ++placed;
      return llp::PlaceVerdict::Fault;
    }
    ++placed;
    return llp::PlaceVerdict::Placed;
  }
  /// Delivers at once, among others, the PDUs that begin with a Q.
  llp::PlaceVerdict take_ulpdu(const llp::UlpduView& ulpdu, bool more, base::Now now) override {
    uint8_t first = 0;
    ulpdu.copy_prefix(&first, 1);
    return FramingUser::take_ulpdu(ulpdu, more && first != 'Q', now);
  }
  void deliver_ulpdu(base::ByteView header, uint32_t length, base::Now) override {
    calls.push_back("deliver " + std::to_string(length) + " " +
                    text({header.begin(), header.end()}));
    if (++delivered == discard_at) discard();
  }
  [[nodiscard]] bool may_wait(uint32_t) const override { return says_wait; }
  [[nodiscard]] bool may_wait(const llp::UlpduView&) const override { return says_wait; }
  void may_send() override {}
  void mulpdu_changed(uint32_t) override {}
  void framing_error(llp::FramingError, base::Now) override {}
  void peer_finished(bool, base::Now) override {}
  void ended(StreamEnd, base::Now) override {}

  std::vector<std::string> calls;
  std::function<void()> discard;
  uint32_t placed = 0;
  uint32_t delivered = 0;
  uint32_t wait_at = UINT32_MAX;     ///< the PDU placed behind so many others waits
  uint32_t fault_at = UINT32_MAX;    ///< this one is a fault
  uint32_t discard_at = UINT32_MAX;  ///< with this delivery the stream is discarded
  bool says_wait = false;

 private:
  static std::string text(const Octets& octets) { return {octets.begin(), octets.end()}; }
};

struct CallCounts {
  uint64_t pdus_in = 0, in_order = 0, early = 0, held = 0, refused = 0, discarded = 0;
  friend bool operator==(const CallCounts&, const CallCounts&) = default;
};

struct LoggedEnd : ReceiverOwner {
  explicit LoggedEnd(bool fast_path = true, uint64_t hold = 1u << 20)
      : store(hold),
        receiver(store,
                 {.hold = 1u << 16, .early = 64, .out_of_order = true, .fast_path = fast_path},
                 {counts.pdus_in, counts.in_order, counts.early, counts.held, counts.refused,
                  counts.discarded},
                 locator, *this) {
    receiver.attach(&stream);
    receiver.bind(&user);
    receiver.start(0);
    user.discard = [this] { receiver.discard(); };
    locator.marks = true;
  }
  void first_pdu(base::Now) override { user.calls.emplace_back("first"); }
  void broken(PduError error, base::Now) override {
    user.calls.push_back("broken " + std::to_string(static_cast<int>(error)));
  }

  /// As TCP does. \return the segment took the fast path
  bool arrive(uint64_t begin, base::ByteView octets) {
    const base::Range range{begin, begin + octets.size()};
    if (receiver.inspect(range, octets, {}) != llp::InspectVerdict::Accept) {
      user.calls.emplace_back("refused");
      return false;
    }
    bool fast = false;
    if (begin == ordered && committed.empty()) {
      ordered = range.end;
      fast = receiver.place_ordered(range, octets, {});
      if (!fast) receiver.ordered(ordered, {});
    } else {
      receiver.place(range, octets, {});
      committed.push_back(range);
      for (auto next = committed.begin();
           (next = std::ranges::find(committed, ordered, &base::Range::begin)) !=
           committed.end();) {
        ordered = next->end;
        committed.erase(next);
      }
      receiver.ordered(ordered, {});
    }
    receiver.validate();
    store.validate();
    return fast;
  }

  HoldStore store;
  CallCounts counts;
  FakeStream stream;
  Log user;
  LengthLocator locator{store};
  Receiver<LengthLocator> receiver;
  std::vector<base::Range> committed;
  uint64_t ordered = 0;
};

void expect_twins(const LoggedEnd& fast, const LoggedEnd& general) {
  EXPECT_EQ(fast.user.calls, general.user.calls);
  EXPECT_EQ(fast.counts, general.counts);
  EXPECT_EQ(fast.stream.traces, general.stream.traces);
  EXPECT_EQ(fast.stream.grew, general.stream.grew);
  EXPECT_EQ(fast.stream.aborts, general.stream.aborts);
  EXPECT_EQ(fast.locator.placed_count, general.locator.placed_count);
  EXPECT_EQ(fast.locator.passed_to, general.locator.passed_to);
  EXPECT_EQ(fast.receiver.held(), general.receiver.held());
  EXPECT_EQ(fast.receiver.arrived(), general.receiver.arrived());
  EXPECT_EQ(fast.receiver.waits(), general.receiver.waits());
  EXPECT_EQ(fast.receiver.is_broken(), general.receiver.is_broken());
  EXPECT_EQ(fast.receiver.at_boundary(), general.receiver.at_boundary());
  EXPECT_EQ(fast.receiver.stats().held, general.receiver.stats().held);
  EXPECT_EQ(fast.receiver.stats().placed_early, general.receiver.stats().placed_early);
}

/// The PDU that carries this text.
Octets pdu(const std::string& text) {
  Octets octets{static_cast<uint8_t>(text.size())};
  octets.insert(octets.end(), text.begin(), text.end());
  return octets;
}
Octets pdus(const std::vector<std::string>& texts) {
  Octets octets;
  for (const std::string& text : texts) {
    const Octets one = pdu(text);
    octets.insert(octets.end(), one.begin(), one.end());
  }
  return octets;
}

/// An LoggedEnd behind its first PDU, of four octets.
struct Begun : LoggedEnd {
  explicit Begun(bool fast_path = true) : LoggedEnd(fast_path) {
    EXPECT_FALSE(arrive(0, pdu("one"))) << "the first PDU of a stream, which begins more than it";
  }
};

// However a stream is cut, in whatever order it comes, and whatever the user answers.
TEST(FastPath, TwinsOnAnySegments) {
  uint64_t taken = 0;
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Octets stream;
    std::vector<uint64_t> ends;
    for (uint32_t i = 0; i < 40; ++i) {
      const auto letter = static_cast<char>(seed % 2 != 0 && i % 3 == 0 ? '#' : 'a' + i % 26);
      const Octets one = pdu(std::string(1 + random() % (i % 5 == 0 ? 120 : 20), letter));
      stream.insert(stream.end(), one.begin(), one.end());
      ends.push_back(stream.size());
    }
    if (seed % 7 == 0) stream[ends[20 + seed % 15]] = 0;  // no PDU begins there
    LoggedEnd fast(true);
    LoggedEnd general(false);
    for (LoggedEnd* end : {&fast, &general}) {
      if (seed % 5 == 1) end->user.wait_at = seed % 41;
      if (seed % 5 == 1) end->user.says_wait = seed % 2 == 0;
      if (seed % 5 == 2) end->user.fault_at = seed % 41;
      if (seed % 5 == 3) end->user.discard_at = 1 + seed % 41;
    }
    std::vector<base::Range> segments;
    for (uint64_t at = 0; at < stream.size();) {
      uint64_t end = at + 1 + random() % 90;
      if (random() % 4 != 0) {
        end = ends[std::min<size_t>(
            ends.size() - 1,
            static_cast<size_t>(std::ranges::upper_bound(ends, at) - ends.begin()) + random() % 3)];
      }
      end = std::min<uint64_t>(end, stream.size());
      segments.push_back({at, end});
      at = end;
    }
    if (seed % 3 == 0) {
      for (size_t i = 0; i + 1 < segments.size(); i += 1 + random() % 6) {
        std::swap(segments[i], segments[i + 1]);
      }
    }
    for (const base::Range& s : segments) {
      const auto octets = base::ByteView(stream).subspan(s.begin, s.size());
      taken += fast.arrive(s.begin, octets) ? 1 : 0;
      ASSERT_FALSE(general.arrive(s.begin, octets));
      if (fast.receiver.waits() && random() % 3 == 0) {
        for (LoggedEnd* end : {&fast, &general}) {
          end->user.wait_at = UINT32_MAX;
          end->receiver.resume({});
        }
      }
    }
    expect_twins(fast, general);
    if (HasFailure()) break;
  }
  EXPECT_GT(taken, 10'000u);
}

TEST(FastPath, TakesOnePduOrMany) {
  Begun end;
  EXPECT_TRUE(end.arrive(4, pdu("two")));
  EXPECT_TRUE(end.arrive(8, pdus({"three", "four", "five"})));
  EXPECT_EQ(end.user.calls,
            (std::vector<std::string>{"place one", "first", "deliver 3 one", "place two",
                                      "deliver 3 two", "place three", "place four", "place five",
                                      "deliver 5 three", "deliver 4 four", "deliver 4 five"}));
  EXPECT_EQ(end.counts.pdus_in, 5u);
  EXPECT_EQ(end.counts.in_order, end.ordered);
  EXPECT_EQ(end.stream.traces[TraceKind::InOrder], 3);
  EXPECT_EQ(end.stream.traces[TraceKind::Delivered], 3);
  EXPECT_TRUE(end.receiver.at_boundary());
}

// Those that the user delivers at once are delivered once, and none of them before others.
TEST(FastPath, LetsTheUserDeliverAmongOthers) {
  Begun end;
  EXPECT_TRUE(end.arrive(4, pdus({"Q1", "Q2", "three", "Q4", "Q5"})));
  EXPECT_EQ(end.user.calls,
            (std::vector<std::string>{"place one", "first", "deliver 3 one", "place Q1",
                                      "deliver 2 Q1", "place Q2", "deliver 2 Q2", "place three",
                                      "place Q4", "place Q5", "deliver 5 three", "deliver 2 Q4",
                                      "deliver 2 Q5"}));
  EXPECT_EQ(end.counts.pdus_in, 6u);
  EXPECT_EQ(end.stream.traces[TraceKind::InOrder], 2);
  EXPECT_EQ(end.stream.traces[TraceKind::Delivered], 2);
  EXPECT_TRUE(end.receiver.at_boundary());
}

// --- a steady stream ---

TEST(FastPath, ASteadyStreamLocatesNoSegmentOfOnePdu) {
  Begun end;
  EXPECT_TRUE(end.arrive(4, pdu("two")));
  EXPECT_EQ(end.locator.one_count, 0u) << "the first plain segment makes it steady";
  EXPECT_TRUE(end.arrive(8, pdu("six")));
  EXPECT_TRUE(end.arrive(12, pdus({"ten", "more"})));
  EXPECT_TRUE(end.arrive(21, pdu("last")));
  EXPECT_EQ(end.locator.one_count, 2u);
}

TEST(FastPath, AStreamThatIsNotSteadyIsNotTakenForOne) {
  Begun end;
  test::notices(end.receiver, "framing/receiver_steps.hpp: steady_at_ == kUnlocated ||",
                [&] { steady_at_(end.receiver) = 5; });
}

// Whatever comes between two plain segments, it is taken as ever, and the stream is not steady
// before the second of the plain ones behind it.
TEST(FastPath, ASteadyStreamEndsWithWhatIsNotPlain) {
  using Between = std::function<void(LoggedEnd&)>;
  const std::vector<Between> all = {
      [](LoggedEnd& end) {
        end.arrive(13, pdu("hole"));
        end.arrive(8, pdu("fill"));
      },
      [](LoggedEnd& end) {
        end.arrive(8, Octets{3, 'c'});
        end.arrive(10, Octets{'u', 't'});
      },
      [](LoggedEnd& end) {
        end.user.says_wait = true;
        end.arrive(8, pdu("may"));
        end.user.says_wait = false;
      },
      [](LoggedEnd& end) {
        end.user.wait_at = 2;
        end.arrive(8, pdu("waits"));
        end.user.wait_at = UINT32_MAX;
        end.receiver.resume({});
      },
      [](LoggedEnd& end) {
        end.user.fault_at = 2;
        end.arrive(8, pdu("fault"));
      },
      [](LoggedEnd& end) { end.receiver.attach(&end.stream); },
      [](LoggedEnd& end) { end.receiver.discard(); },
      [](LoggedEnd& end) { end.arrive(8, Octets{0}); },
  };
  for (size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    LoggedEnd fast(true);
    LoggedEnd general(false);
    for (LoggedEnd* end : {&fast, &general}) {
      end->arrive(0, pdu("one"));
      end->arrive(4, pdu("two"));
      all[i](*end);
      end->receiver.validate();
    }
    const uint32_t before = fast.locator.one_count;
    for (const char* const text : {"next", "then"}) {
      for (LoggedEnd* end : {&fast, &general}) end->arrive(end->ordered, pdu(text));
    }
    expect_twins(fast, general);
    const bool stays = i == 4;  // a user that refuses a PDU lets the others go on
    EXPECT_EQ(fast.locator.one_count - before, fast.receiver.is_broken() ? 0u : stays ? 2u : 1u);
  }
}

// --- each condition of the entry test ---

TEST(FastPath, NotWhereItIsOff) {
  Begun end(false);
  EXPECT_FALSE(end.arrive(4, pdu("two")));
}

// --- ahead of the order ---

TEST(EarlySegment, OfOnePduIsNotLocated) {
  Begun end;
  EXPECT_FALSE(end.arrive(9, pdu("#two")));
  EXPECT_FALSE(end.arrive(14, pdu("three")));  // behind a proven one
  EXPECT_EQ(end.locator.one_count, 2u);
  EXPECT_EQ(end.receiver.held(), 0u);
  EXPECT_EQ(end.counts.early, 11u);
  EXPECT_FALSE(end.arrive(4, pdu("hole")));
  EXPECT_EQ(end.user.calls,
            (std::vector<std::string>{"place one", "first", "deliver 3 one", "place early #two",
                                      "place early three", "place hole", "deliver 4 hole",
                                      "deliver 4 #two", "deliver 5 three"}));
}

TEST(EarlySegment, ContinuesWithWhatIsHeldBehindIt) {
  Begun end;
  EXPECT_FALSE(end.arrive(14, pdu("held")));
  EXPECT_EQ(end.receiver.held(), 5u);
  EXPECT_FALSE(end.arrive(9, pdu("#two")));
  EXPECT_EQ(end.receiver.held(), 0u);
  EXPECT_EQ(end.user.calls.back(), "place early held");
}

// All others are located, and judged.
TEST(EarlySegment, IsNoneWhere) {
  const std::vector<std::function<void(LoggedEnd&)>> all = {
      [](LoggedEnd& end) { end.arrive(9, pdu("unmarked")); },
      [](LoggedEnd& end) { end.arrive(9, pdus({"#two", "pdus"})); },
      [](LoggedEnd& end) { end.arrive(9, Octets{8, '#', 'c', 'u', 't'}); },
      [](LoggedEnd& end) { end.arrive(4, pdu("#order")); },
      [](LoggedEnd& end) {
        end.user.wait_at = 1;
        end.user.says_wait = true;
        end.arrive(4, pdu("wait"));
        end.arrive(9, pdu("#wait"));
      },
  };
  for (size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    Begun end;
    Begun general(false);
    all[i](end);
    all[i](general);
    EXPECT_EQ(end.locator.one_count, 0u);
    expect_twins(end, general);
  }
  Begun off(false);
  off.arrive(9, pdu("#two"));
  EXPECT_EQ(off.locator.one_count, 0u);
  EXPECT_EQ(off.counts.early, 5u);
}

TEST(EarlySegment, IsRefusedWithoutRoom) {
  LoggedEnd end(true, 2048);
  EXPECT_FALSE(end.arrive(0, pdu("one")));
  EXPECT_FALSE(end.arrive(100, pdu("#fits")));
  EXPECT_FALSE(end.arrive(200, pdu("held")));  // takes the only page
  EXPECT_FALSE(end.arrive(9000, pdu("#none")));
  EXPECT_EQ(end.user.calls.back(), "refused");
  EXPECT_EQ(end.counts.refused, 1u);
}

TEST(FastPath, NotAheadOfTheOrder) {
  Begun end;
  const Octets later = pdu("later");
  const base::Range range{9, 9 + later.size()};
  ASSERT_EQ(end.receiver.inspect(range, later, {}), llp::InspectVerdict::Accept);
  EXPECT_FALSE(end.receiver.place_ordered(range, later, {}));
  EXPECT_EQ(end.receiver.held(), later.size());
}

TEST(FastPath, NotOverWhatIsHeldOrPlacedAhead) {
  Begun held;
  EXPECT_FALSE(held.arrive(9, pdu("held")));
  EXPECT_EQ(held.receiver.held(), 5u);
  EXPECT_FALSE(held.arrive(4, pdu("gap!")));  // fills the hole
  EXPECT_EQ(held.receiver.held(), 0u);
  EXPECT_TRUE(held.arrive(14, pdu("plain")));

  // A segment in order of which a transport would not say that nothing beyond it has come.
  Begun placed;
  const Octets next = pdu("next");
  const Octets cut(next.begin(), next.begin() + 2);
  EXPECT_FALSE(placed.arrive(9, pdu("behind")));
  const base::Range range{4, 6};
  ASSERT_EQ(placed.receiver.inspect(range, cut, {}), llp::InspectVerdict::Accept);
  EXPECT_FALSE(placed.receiver.place_ordered(range, cut, {}));
}

TEST(FastPath, NotBehindAStartedPduNorWithOne) {
  Begun end;
  const Octets two = pdu("two more");
  const base::ByteView octets(two);
  EXPECT_FALSE(end.arrive(4, octets.first(5))) << "the PDU runs past the segment";
  EXPECT_FALSE(end.arrive(9, octets.subspan(5))) << "the segment begins inside a PDU";
  EXPECT_TRUE(end.arrive(13, pdu("three")));
  EXPECT_EQ(end.user.calls.back(), "deliver 5 three");
}

TEST(FastPath, NotWithABadPdu) {
  Begun end;
  Octets octets = pdus({"two", "three"});
  octets.push_back(0);
  EXPECT_FALSE(end.arrive(4, octets));
  EXPECT_EQ(end.user.calls.back(), "broken " + std::to_string(static_cast<int>(kBadLength)));
  EXPECT_FALSE(end.arrive(4 + octets.size(), pdu("behind")));
}

TEST(FastPath, NotWhereAPduMayHaveToWait) {
  Begun end;
  end.user.says_wait = true;
  EXPECT_FALSE(end.arrive(4, pdu("two")));
  EXPECT_EQ(end.user.calls.back(), "deliver 3 two");
  end.user.says_wait = false;
  EXPECT_TRUE(end.arrive(8, pdu("two")));
}

TEST(FastPath, NotWhileAPduWaits) {
  Begun end;
  end.user.says_wait = true;
  end.user.wait_at = 1;
  EXPECT_FALSE(end.arrive(4, pdu("two")));
  ASSERT_TRUE(end.receiver.waits());
  EXPECT_FALSE(end.arrive(8, pdu("ahead")));
  EXPECT_EQ(end.user.calls.back(), "place early ahead");
  end.user.wait_at = UINT32_MAX;
  end.user.says_wait = false;
  end.receiver.resume({});
  EXPECT_EQ(end.user.calls.back(), "deliver 5 ahead");
  EXPECT_TRUE(end.arrive(14, pdu("plain")));
}

// room_grew() is due with the next ordered().
TEST(FastPath, NotWhereRoomIsToBeTold) {
  Begun end;
  end.user.wait_at = 1;
  end.user.says_wait = true;
  EXPECT_FALSE(end.arrive(4, pdu("two")));
  end.user.wait_at = UINT32_MAX;
  EXPECT_FALSE(end.receiver.resume({}));
  EXPECT_EQ(end.stream.grew, 1);
}

// --- between inspect() and place_ordered() ---

TEST(FastPath, NotWhenDiscardedMeanwhile) {
  Begun end;
  const Octets two = pdu("two");
  const base::Range range{4, 8};
  ASSERT_EQ(end.receiver.inspect(range, two, {}), llp::InspectVerdict::Accept);
  end.receiver.discard();
  EXPECT_FALSE(end.receiver.place_ordered(range, two, {}));
  EXPECT_EQ(end.counts.discarded, 4u);
  EXPECT_EQ(end.user.calls.back(), "deliver 3 one");
}

TEST(FastPath, NotWithWhatAnotherSegmentWasFoundToBe) {
  Begun end;
  const Octets whole = pdus({"two", "three"});
  const base::ByteView octets(whole);
  ASSERT_EQ(end.receiver.inspect({4, 14}, octets, {}), llp::InspectVerdict::Accept);
  EXPECT_FALSE(end.receiver.place_ordered({4, 8}, octets.first(4), {}));
  end.receiver.ordered(8, {});
  EXPECT_EQ(end.user.calls.back(), "deliver 3 two");
}

TEST(FastPath, NotWithWhatASegmentOfAnotherSessionWasFoundToBe) {
  Begun end;
  LoggedEnd other;
  LengthLocator locator{end.store};
  Receiver<LengthLocator> neighbour(
      end.store, {.hold = 1u << 16, .early = 64, .out_of_order = true},
      {other.counts.pdus_in, other.counts.in_order, other.counts.early, other.counts.held,
       other.counts.refused, other.counts.discarded},
      locator, other);
  neighbour.attach(&other.stream);
  neighbour.bind(&other.user);
  neighbour.start(0);
  const Octets two = pdu("two");
  ASSERT_EQ(end.receiver.inspect({4, 8}, two, {}), llp::InspectVerdict::Accept);
  EXPECT_FALSE(neighbour.place_ordered({4, 8}, two, {}));
  EXPECT_EQ(other.user.calls, std::vector<std::string>{}) << "out of its order";
}

TEST(FastPath, NotWhereTheTransportCannotDrop) {
  Begun end;
  end.stream.traits_value.can_drop = false;
  end.receiver.attach(&end.stream);
  EXPECT_FALSE(end.arrive(4, pdu("two")));
}

// --- the exit ---

// A user that has said otherwise lets a PDU wait: those before it are delivered, and nothing else.
TEST(FastPath, IsLeftWhereAPduWaitsAfterAll) {
  for (const uint32_t waiting : {0u, 1u, 2u}) {
    SCOPED_TRACE(waiting);
    LoggedEnd fast(true);
    LoggedEnd general(false);
    for (LoggedEnd* end : {&fast, &general}) {
      end->arrive(0, pdu("one"));
      end->user.wait_at = 1 + waiting;
      EXPECT_FALSE(end->arrive(4, pdus({"two", "three", "four"})));
      EXPECT_TRUE(end->receiver.waits());
      EXPECT_EQ(end->user.delivered, 1 + waiting);
      EXPECT_FALSE(end->arrive(19, pdu("behind")));
    }
    expect_twins(fast, general);
    for (LoggedEnd* end : {&fast, &general}) {
      end->user.wait_at = UINT32_MAX;
      EXPECT_FALSE(end->receiver.resume({}));
      EXPECT_EQ(end->user.calls.back(), "deliver 6 behind");
    }
    expect_twins(fast, general);
  }
}

// What was delivered among others is not delivered again.
TEST(FastPath, IsLeftBehindThoseThatAreDelivered) {
  Begun end;
  end.user.wait_at = 3;
  EXPECT_FALSE(end.arrive(4, pdus({"Q1", "two", "three"})));
  EXPECT_EQ(end.user.calls,
            (std::vector<std::string>{"place one", "first", "deliver 3 one", "place Q1",
                                      "deliver 2 Q1", "place two", "place three",
                                      "deliver 3 two"}));
  EXPECT_TRUE(end.receiver.waits());
  end.user.wait_at = UINT32_MAX;
  EXPECT_FALSE(end.receiver.resume({}));
  EXPECT_EQ(end.user.calls.back(), "deliver 5 three");
  EXPECT_EQ(end.counts.pdus_in, 4u);
}

// The only PDU of a segment has a way of its own.
TEST(FastPath, IsLeftWhereTheOnlyPduWaitsAfterAll) {
  LoggedEnd fast(true);
  LoggedEnd general(false);
  for (LoggedEnd* end : {&fast, &general}) {
    end->arrive(0, pdu("one"));
    end->user.wait_at = 1;
    EXPECT_FALSE(end->arrive(4, pdu("two")));
    EXPECT_EQ(end->receiver.held(), 4u);
  }
  expect_twins(fast, general);
}

// A delivery ends the stream: what lies behind it in the segment is not delivered.
TEST(FastPath, StopsWithTheDeliveryThatDiscards) {
  for (const uint32_t at : {2u, 3u, 4u}) {
    LoggedEnd fast(true);
    LoggedEnd general(false);
    for (LoggedEnd* end : {&fast, &general}) {
      end->arrive(0, pdu("one"));
      end->user.discard_at = at;
      end->arrive(4, at == 4 ? pdus({"two", "three", "four"}) : pdus({"two", "three"}));
      EXPECT_TRUE(end->receiver.is_broken());
      EXPECT_EQ(end->user.delivered, at);
    }
    expect_twins(fast, general);
  }
}

}  // namespace
}  // namespace rnic::framing
