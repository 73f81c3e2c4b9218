// Header prediction changes nothing, and neither do bursts: the same events go through a stack with
// them and through one without, and every segment sent, every counter, every state and every call
// up is compared.

#include <cstring>
#include <string>

#include "base/prng.hpp"
#include "pair.hpp"
#include "raw_peer.hpp"
#include "support/long_form.hpp"
#include "unit/tcp/inside.hpp"

namespace rnic::testing {
namespace {

/// Everything that can be seen of a stack, but how its segments were taken.
std::string counters_of(const tcp::Stack& stack) {
  std::string text;
  stack.counters().for_each([&](const base::CounterRow& row) {
    if (std::string_view(row.name) == "predicted_in") return;
    if (row.value != 0) text += std::string(row.name) + "=" + std::to_string(row.value) + " ";
  });
  return text;
}

/// Without EMSS: the user is told of a change before the next pull, and the latter shows it; while
/// segments are predicted and nothing is sent, nobody looks.
std::string text_of(const RecordUser& u) {
  const auto n = [](uint64_t x) { return std::to_string(x) + " "; };
  return n(u.pulled) + n(u.pulls) + n(u.rebuilds) + n(u.released_to) + n(u.ordered_to) +
         n(u.places.size()) + n(u.peer_has_finished ? 1 : 0) +
         n(u.placed_twice + u.wrong_octets + u.ordered_unplaced) +
         n(u.how_ended ? static_cast<uint64_t>(*u.how_ended) + 1 : 0);
}

/// The choices of a seed for one connection.
tcp::Config random_config(base::Prng& r) {
  tcp::Config c;
  c.sack = r.below(4) != 0;
  c.timestamps = r.below(3) != 0;
  c.window_scaling = r.below(3) != 0;
  c.ecn = r.below(3) == 0 ? Ecn::Offer : Ecn::Accept;
  c.congestion_control = static_cast<CongestionControl>(r.below(3));
  c.pacing = r.below(8) == 0;
  c.nagle = r.below(4) == 0;
  c.keep_alive = r.below(4) == 0;
  c.keep_alive_idle = milliseconds(50);
  c.keep_alive_interval = milliseconds(20);
  c.tail_loss_probe = r.below(5) != 0;
  c.frto = r.below(5) != 0;
  c.initial_window_segments = 1 + r.below(10);
  c.mtu_probe_from_base = r.below(6) == 0;
  c.mtu_probe_interval = milliseconds(30);
  c.receive_window = r.below(3) == 0 ? 20'000 : 1u << 20;
  return c;
}

// --- two stacks over a bad link ------------------------------------------------------------------

/// What happened in a world, a line an event; and how much of it went the short way.
struct Story {
  std::vector<std::string> lines;
  uint64_t segments = 0;
  uint64_t predicted = 0;
  uint64_t passed = 0;  ///< records that came with another one
};

/// Notes what a connection tells. Segments leave together that are told of one by one, so it has
/// lines of its own.
struct Trace final : base::TraceSink {
  void record(TraceKind kind, base::Range range, base::Now now) override {
    lines.push_back("trace " + std::to_string(static_cast<int>(kind)) + " " +
                    std::to_string(range.begin) + " " + std::to_string(range.end) + " " +
                    std::to_string(base::nanos(now)));
  }
  std::vector<std::string> lines;
};

struct LinkWeather {
  uint32_t loss = 0;  ///< of 1000
  uint32_t copies = 0;
  uint32_t reorder = 0;
  uint32_t marks = 0;
  uint32_t drops = 0;  ///< verdicts of inspect()
};

class LinkWorld {
 public:
  LinkWorld(uint64_t seed, bool prediction)
      : random_(seed),
        fates_(seed + 1),
        weather_(choose_weather()),
        pair_(random_config(random_), random_config(random_)) {
    pair_.link.a.set_prediction(prediction);
    pair_.link.b.set_prediction(prediction);
    pair_.link.seen = [this](const LinkFrame& f) { note_frame(f); };
    pair_.link.hook = [this](const LinkFrame&) { return fate(); };
    pair_.a.verdict = pair_.b.verdict = [this](base::Range) {
      return fates_.below(1000) < weather_.drops ? llp::InspectVerdict::Drop
                                                 : llp::InspectVerdict::Accept;
    };
  }

  Story run() {
    pair_.connect();
    if (traced_) pair_.a.stream->set_trace(&trace_);
    for (uint32_t turn = 0; turn < 120 && !over(); ++turn) {
      act();
      run_turn();
      note_state();
    }
    for (RecordUser* u : {&pair_.a, &pair_.b}) {
      if (u->stream != nullptr) u->stream->close();
    }
    pair_.link.run(seconds(20));
    note_state();
    for (const tcp::Stack* s : {&pair_.link.a, &pair_.link.b}) {
      story_.segments += s->counters().segments_in;
      story_.predicted += s->counters().predicted_in;
    }
    story_.passed = pair_.a.passed + pair_.b.passed;
    story_.lines.insert(story_.lines.end(), trace_.lines.begin(), trace_.lines.end());
    return std::move(story_);
  }

  /// Each segment is chosen and noted by itself.
  void send_one_by_one() {
    pair_.link.a.set_bursts(false);
    pair_.link.b.set_bursts(false);
  }
  /// The users give up to eight records a call, and there is room for several segments at once.
  void send_in_rows() {
    pair_.a.row = pair_.b.row = 8;
    pair_.link.egress_a.room = pair_.link.egress_b.room = LinkEgress::kMostRoom;
  }
  /// Many records fill a segment. By the seed, checksums are made in software and segments traced,
  /// as random_config() chooses ECN: what is asked of each segment by itself.
  void send_long_messages() {
    long_messages_ = true;
    traced_ = random_.below(4) == 0;
    pair_.link.egress_a.checksum_open = random_.below(4) != 0;
    pair_.link.egress_b.checksum_open = random_.below(4) != 0;
  }
  /// From now on prediction goes on and off every few microseconds: while it is off nobody predicts
  /// anew behind a segment, and what was predicted before ends by its mutators or not at all.
  void switch_often() { switches_ = true; }

 private:
  void run_turn() {
    const uint32_t parts = switches_ ? 60 : 1;
    const auto part = microseconds(100 * (1 + random_.below(30))) / parts;
    for (uint32_t i = 0; i < parts; ++i) {
      if (switches_) {
        pair_.link.a.set_prediction(random_.below(2) == 0);
        pair_.link.b.set_prediction(random_.below(2) == 0);
      }
      pair_.link.run(part);
      pair_.link.a.validate();
      pair_.link.b.validate();
    }
  }
  LinkWeather choose_weather() {
    LinkWeather w;
    if (random_.below(3) == 0) return w;  // fair
    w.loss = random_.below(60);
    w.copies = random_.below(40);
    w.reorder = random_.below(60);
    w.marks = random_.below(60);
    w.drops = random_.below(3) == 0 ? 20 : 0;
    return w;
  }
  Fate fate() {
    Fate f;
    f.drop = fates_.below(1000) < weather_.loss;
    f.copies = fates_.below(1000) < weather_.copies ? 2 : 1;
    f.mark_ce = fates_.below(1000) < weather_.marks;
    if (fates_.below(1000) < weather_.reorder) f.extra = microseconds(fates_.below(2000));
    return f;
  }
  [[nodiscard]] bool over() const { return pair_.a.how_ended && pair_.b.how_ended; }

  void act() {
    RecordUser& u = random_.below(3) == 0 ? pair_.b : pair_.a;
    if (u.stream == nullptr) return;
    const uint32_t choice = random_.below(100);
    if (choice < 60) {
      const uint32_t records = 1 + random_.below(40);
      for (uint32_t i = 0; i < records; ++i)
        u.queue(1 + random_.below(random_.below(2) ? 1448 : 200));
      if (long_messages_) u.queue(random_.below(60'000));
    } else if (choice < 70) {
      u.room = random_.below(2) ? 4u << 20 : random_.below(20'000);
      u.stream->room_grew();
    } else if (choice < 74) {
      tcp::Stack& stack = &u == &pair_.a ? pair_.link.a : pair_.link.b;
      tcp::ConnectionOptions options = stack.options(*u.stream);
      options.congestion_control = static_cast<CongestionControl>(random_.below(3));
      options.max_segment = static_cast<uint16_t>(random_.below(2) ? 0 : 300 + random_.below(900));
      options.nagle = random_.below(2) != 0;
      EXPECT_TRUE(stack.set_options(*u.stream, options, pair_.link.now).has_value());
    } else if (choice < 76) {
      pair_.link.egress_a.mtu = 700 + random_.below(800);
    } else if (choice == 76) {
      u.stream->close();
    } else if (choice == 77 && random_.below(4) == 0) {
      u.stream->abort();
    } else if (choice < 80) {
      pair_.link.run(milliseconds(random_.below(400)));
    }
  }

  void note_frame(const LinkFrame& f) {
    std::string line = std::to_string(base::nanos(pair_.link.now)) + (f.from_a ? " a " : " b ");
    static constexpr char kDigits[] = "0123456789abcdef";
    const size_t header = f.tcp.size() - f.payload();
    for (size_t i = 0; i < header; ++i) {
      line += kDigits[f.tcp[i] >> 4];
      line += kDigits[f.tcp[i] & 15];
    }
    line += " +" + std::to_string(f.payload()) + " ecn " + std::to_string(f.ecn);
    story_.lines.push_back(line);
  }
  void note_state() {
    story_.lines.push_back("a " + text_of(pair_.a) + counters_of(pair_.link.a));
    story_.lines.push_back("b " + text_of(pair_.b) + counters_of(pair_.link.b));
    story_.lines.push_back(std::to_string(base::nanos(pair_.link.a.next_deadline())) + " " +
                           std::to_string(base::nanos(pair_.link.b.next_deadline())));
  }

  base::Prng random_;
  base::Prng fates_;
  LinkWeather weather_;
  Pair pair_;
  Story story_;
  Trace trace_;
  bool switches_ = false;
  bool long_messages_ = false;
  bool traced_ = false;
};

uint64_t seeds(uint64_t usual) { return test::by_form(usual, 10 * usual); }

void compare(const Story& with, const Story& without, uint64_t seed) {
  const size_t n = std::min(with.lines.size(), without.lines.size());
  for (size_t i = 0; i < n; ++i) {
    ASSERT_EQ(with.lines[i], without.lines[i]) << "seed " << seed << ", line " << i;
  }
  ASSERT_EQ(with.lines.size(), without.lines.size()) << "seed " << seed;
}

TEST(Prediction, TwoStacksOverABadLinkSayAndDoTheSame) {
  uint64_t segments = 0;
  uint64_t predicted = 0;
  for (uint64_t seed = 1; seed <= seeds(15); ++seed) {
    const Story with = LinkWorld(seed, true).run();
    const Story without = LinkWorld(seed, false).run();
    compare(with, without, seed);
    if (HasFatalFailure()) return;
    EXPECT_EQ(without.predicted, 0u);
    segments += with.segments;
    predicted += with.predicted;
  }
  // It was put to the test: a good part went the short way, and another part did not.
  EXPECT_GT(predicted, segments / 5);
  EXPECT_LT(predicted, segments * 9 / 10);
}

// With Nagle's rule, pacing, MTU probes, idle times, small windows, losses and closes, each of
// which lets no burst begin or ends one.
TEST(Bursts, TwoStacksOverABadLinkSayAndDoTheSame) {
  for (uint64_t seed = 1; seed <= seeds(25); ++seed) {
    const Story with = LinkWorld(seed, true).run();
    LinkWorld one_by_one(seed, true);
    one_by_one.send_one_by_one();
    compare(with, one_by_one.run(), seed);
    if (HasFatalFailure()) return;
  }
}

// Segments of a message that are alike are completed together, unless something is asked of each of
// them: ECN, a checksum in software, a trace.
TEST(Bursts, RowsOfRecordsGoOutAsOneByOne_TCP_9293_3_1_01_a_TCP_3168_6_1_2_01) {
  uint64_t passed = 0;
  for (uint64_t seed = 1; seed <= seeds(40); ++seed) {
    LinkWorld rows(seed, true);
    rows.send_long_messages();
    rows.send_in_rows();
    const Story with = rows.run();
    LinkWorld one_by_one(seed, true);
    one_by_one.send_long_messages();
    one_by_one.send_one_by_one();
    compare(with, one_by_one.run(), seed);
    if (HasFatalFailure()) return;
    passed += with.passed;
  }
  EXPECT_GT(passed, 200 * seeds(40));
}

/// Sends `records` full records over a connection without a loss. \return the frames of the sender
std::vector<LinkFrame> bulk(uint32_t records, bool bursts, bool timestamps) {
  tcp::Config config;
  config.timestamps = timestamps;
  Pair pair(config, config);
  pair.link.a.set_bursts(bursts);
  std::vector<LinkFrame> frames;
  pair.link.seen = [&](const LinkFrame& f) {
    if (f.from_a) frames.push_back(f);
  };
  EXPECT_TRUE(pair.open());
  for (uint32_t i = 0; i < records; ++i) pair.a.queue(pair.a.stream->emss());
  EXPECT_TRUE(pair.drain());
  return frames;
}

// The headers and the octets of a long transfer, checksums included.
TEST(Bursts, FramesAreTheSame) {
  for (const bool timestamps : {true, false}) {
    const std::vector<LinkFrame> with = bulk(400, true, timestamps);
    const std::vector<LinkFrame> without = bulk(400, false, timestamps);
    ASSERT_GT(with.size(), 400u);
    ASSERT_EQ(with.size(), without.size());
    for (size_t i = 0; i < with.size(); ++i) ASSERT_EQ(with[i].tcp, without[i].tcp) << i;
  }
}

// A user that tells when nothing follows is not asked in vain.
TEST(Bursts, NobodyIsAskedForWhatIsNotThere) {
  Pair pair;
  pair.a.tells_last = true;
  ASSERT_TRUE(pair.open());
  for (uint32_t i = 1; i <= 20; ++i) {
    pair.a.queue(100 + i);
    ASSERT_TRUE(pair.drain());
    EXPECT_EQ(pair.a.pulls, i);
  }
  for (uint32_t i = 0; i < 50; ++i) pair.a.queue(1448);
  ASSERT_TRUE(pair.drain());
  EXPECT_EQ(pair.a.pulls, 70u);
  EXPECT_TRUE(pair.close());
  EXPECT_TRUE(pair.everything_returned());
}

// 128 KB at least, in runs of 16; a segment that goes first, behind an idle time, counts as well.
TEST(Bursts, ATurnSendsWholeRuns) {
  for (const bool idle : {false, true}) {
    for (const auto& [mss, most] : {std::pair{1460, 96}, {536, 256}}) {
      tcp::Config config = RawPeer::bare();
      config.window_scaling = true;
      config.initial_window_segments = 600;
      config.idle_restart = false;
      RawPeer p(config);
      p.accept(option_mss(static_cast<uint16_t>(mss)) + std::vector<uint8_t>{1, 3, 3, 6});
      if (idle) p.wait(std::chrono::seconds(5));
      for (int i = 0; i < 600; ++i) p.user.queue(static_cast<uint32_t>(mss));
      for (int turn = 1; turn <= 2; ++turn) {
        p.stack.output(p.now);
        EXPECT_EQ(p.egress.sent.size(), static_cast<size_t>(turn * most)) << mss;
      }
    }
  }
}

// The FIN of a user that has nothing left does not wait for a window that holds a full segment.
TEST(Bursts, FinWaitsForNoWindowWhereNothingElseWaits) {
  Pair pair;
  pair.a.tells_last = true;
  ASSERT_TRUE(pair.open());
  const uint64_t before = pair.link.frames_from_b;
  const uint32_t cwnd = pair.link.a.info(*pair.a.stream, pair.link.now)->cwnd;
  for (uint32_t left = cwnd; left != 0;) {
    const uint32_t record = std::min(left, pair.a.stream->emss());
    pair.a.queue(record);
    left -= record;
  }
  pair.link.step();
  ASSERT_EQ(pair.a.pulled, cwnd) << "cwnd is full";
  bool fin = false;
  pair.link.seen = [&](const LinkFrame& f) { fin = fin || (f.from_a && f.has(flag::kFin)); };
  pair.a.stream->close();
  pair.link.step();
  EXPECT_TRUE(fin);
  EXPECT_EQ(pair.link.frames_from_b, before) << "no ACK has come meanwhile";
}

TEST(Prediction, WhoeverMakesASegmentUnpredictableEndsIt) {
  uint64_t predicted = 0;
  for (uint64_t seed = 1; seed <= seeds(4); ++seed) {
    SCOPED_TRACE(seed);
    LinkWorld world(seed, true);
    world.switch_often();
    predicted += world.run().predicted;
  }
  EXPECT_GT(predicted, 25 * seeds(4));
}

// --- one stack against segments of any kind ------------------------------------------------------

/// A stack and its hand-written peer; two of them are driven alike.
class MixWorld {
 public:
  MixWorld(const tcp::Config& config, bool prediction) : peer(config) {
    peer.stack.set_prediction(prediction);
    peer.user.verdict = [this](base::Range range) {
      return drop_below > range.begin % 1000 ? llp::InspectVerdict::Drop
                                             : llp::InspectVerdict::Accept;
    };
    std::vector<uint8_t> options = option_mss(1460);
    if (config.sack) options = options + option_sack_permitted();
    if (config.timestamps) options = options + option_timestamps(1000, 0);
    peer.acceptor.next.push_back(&peer.user);
    const uint8_t ecn = config.ecn == Ecn::Offer ? flag::kEce | flag::kCwr : 0;
    peer.inject({.seq = kIrs, .flags = static_cast<uint8_t>(flag::kSyn | ecn), .options = options});
    peer.inject(
        {.seq = kIrs + 1,
         .ack = kIss + 1,
         .flags = flag::kAck,
         .options = config.timestamps
                        ? option_timestamps(1001, peer.egress.sent.front().parsed.timestamps->value)
                        : std::vector<uint8_t>{}});
  }
  [[nodiscard]] tcp::ConnectionInfo info() {
    return peer.user.stream != nullptr ? *peer.stack.info(*peer.user.stream, peer.now)
                                       : tcp::ConnectionInfo{};
  }

  RawPeer peer;
  uint32_t drop_below = 0;
};

/// Mostly what a peer sends next, and sometimes anything near it.
class SegmentMix {
 public:
  SegmentMix(uint64_t seed, const tcp::Config& config) : random_(seed), config_(config) {}

  /// Two segments in three come around holes.
  void leave_holes() { holes_ = true; }
  Segment next(const tcp::ConnectionInfo& info, uint32_t stamp_now) {
    Segment s;
    s.seq = kIrs + 1 + static_cast<uint32_t>(info.rcv_nxt);
    const uint32_t una = kIss + 1 + static_cast<uint32_t>(info.snd_una);
    const auto flight = static_cast<uint32_t>(info.snd_nxt - info.snd_una);
    s.ack = una + (flight != 0 ? random_.below(2) ? flight : random_.below(flight + 1) : 0);
    s.flags = flag::kAck;
    if (random_.below(3) != 0) s.payload = random_.below(2) ? 1448 : random_.below(1448);
    if (random_.below(6) == 0) s.flags |= flag::kPsh;
    s.window = random_.below(10) == 0 ? static_cast<uint16_t>(random_.below(65536)) : 65535;
    if (config_.timestamps) {
      stamp_ += random_.below(3);
      s.options = option_timestamps(stamp_, stamp_now - random_.below(3));
    }
    if (holes_ && random_.below(3) != 0) {
      s.seq += 724 * random_.below(16);
      s.payload = 724 * (1 + random_.below(2));
      if (random_.below(4) != 0) s.ack = una;
    }
    if (random_.below(5) == 0) disturb(s, una, flight);
    return s;
  }

 private:
  void disturb(Segment& s, uint32_t una, uint32_t flight) {
    switch (random_.below(14)) {
      case 0: s.seq += 1 + random_.below(4000); break;
      case 1: s.seq -= 1 + random_.below(4000); break;
      case 2: s.ack += random_.below(3000); break;
      case 3: s.ack -= random_.below(70'000); break;
      case 4: s.window = 0; break;
      case 5: s.ecn = static_cast<uint8_t>(random_.below(4)); break;
      case 6: s.flags |= static_cast<uint8_t>(1u << (5 + random_.below(3))); break;  // URG ECE CWR
      case 7: s.options.clear(); break;
      case 8: s.options = option_timestamps(stamp_ - random_.below(5000), 0); break;
      case 9: s.options = {1, 1, 1, 0}; break;
      case 10: s.options = {8, 10, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1}; break;
      case 11:
        if (!config_.sack || flight < 3) break;
        s.ack = una;
        s.payload = 0;
        s.options = s.options + option_sack({{una + 1 + random_.below(flight - 1), una + flight}});
        break;
      case 12:
        if (random_.below(20) == 0) s.flags = flag::kRst | flag::kAck;
        break;
      default:
        if (random_.below(20) == 0) s.flags |= random_.below(2) ? flag::kFin : flag::kSyn;
        break;
    }
  }

  base::Prng random_;
  tcp::Config config_;
  uint32_t stamp_ = 1001;
  bool holes_ = false;
};

void expect_same(MixWorld& a, MixWorld& b) {
  ASSERT_EQ(a.peer.egress.sent.size(), b.peer.egress.sent.size());
  while (!a.peer.egress.sent.empty()) {
    a.peer.expect(all_of(b.peer.next()));
    ASSERT_FALSE(::testing::Test::HasFailure()) << "segments differ";
  }
  ASSERT_EQ(counters_of(a.peer.stack), counters_of(b.peer.stack));
  ASSERT_EQ(text_of(a.peer.user), text_of(b.peer.user));
  ASSERT_TRUE(a.info() == b.info());
  ASSERT_EQ(a.peer.stack.next_deadline(), b.peer.stack.next_deadline());
}

void run_mix(uint64_t seed, bool holes, uint64_t& predicted, uint64_t& segments) {
  base::Prng random(seed);
  tcp::Config config = random_config(random);
  config.window_scaling = false;
  MixWorld with(config, true);
  MixWorld without(config, false);
  SegmentMix mix(seed, config);
  if (holes) mix.leave_holes();
  for (uint32_t i = 0; i < 400 && with.peer.user.stream != nullptr; ++i) {
    const bool hold = random.below(4) == 0;
    const uint32_t records = random.below(3) == 0 ? random.below(12) : 0;
    const base::Duration pause =
        random.below(10) == 0 ? milliseconds(random.below(60)) : microseconds(random.below(300));
    const uint32_t length = 1 + random.below(1448);
    const uint32_t drop = random.below(20) == 0 ? 300 : 0;
    const uint32_t stamp_now = static_cast<uint32_t>(base::nanos(with.peer.now) / 1'000'000);
    const Segment s = mix.next(with.info(), stamp_now);
    for (MixWorld* w : {&with, &without}) {
      for (uint32_t k = 0; k < records; ++k) w->peer.user.queue(length);
      w->drop_below = drop;
      w->peer.hold_output = hold;
      w->peer.inject(s);
      w->peer.stack.validate();
      w->peer.wait(pause);
    }
    expect_same(with, without);
    if (::testing::Test::HasFatalFailure()) {
      ADD_FAILURE() << "seed " << seed << ", segment " << i;
      return;
    }
  }
  predicted += with.peer.stack.counters().predicted_in;
  segments += with.peer.stack.counters().segments_in;
  EXPECT_EQ(without.peer.stack.counters().predicted_in, 0u);
}

TEST(Prediction, SegmentsOfAnyKindHaveTheSameEffect) {
  uint64_t predicted = 0;
  uint64_t segments = 0;
  for (uint64_t seed = 1; seed <= seeds(20); ++seed) {
    run_mix(seed, false, predicted, segments);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(predicted, segments / 5);
  EXPECT_LT(predicted, segments * 9 / 10);
}

TEST(Prediction, SegmentsAroundHolesHaveTheSameEffect) {
  uint64_t predicted = 0;
  uint64_t segments = 0;
  for (uint64_t seed = 1; seed <= seeds(20); ++seed) {
    run_mix(seed, true, predicted, segments);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(segments, 20 * 100u);
}

// --- text beside the next segment ---------------------------------------------------------------

/// A stack that has agreed on timestamps and expects the octet 1 of its peer.
struct BesideTest : ::testing::Test {
  BesideTest() {
    peer.accept(option_mss(1460) + option_timestamps(1000, 0), option_timestamps(1001, stamp()));
  }
  static tcp::Config config() {
    tcp::Config c = RawPeer::bare();
    c.timestamps = true;
    return c;
  }
  [[nodiscard]] uint32_t stamp() const {
    return static_cast<uint32_t>(base::nanos(peer.now) / 1'000'000);
  }
  /// Text of 1000 octets that 1000 others go before.
  [[nodiscard]] Segment good() const {
    Segment s{.seq = kIrs + 1001, .ack = kIss + 1, .flags = flag::kAck};
    s.window = 65535;
    s.payload = 1000;
    s.options = option_timestamps(1001, stamp());
    return s;
  }
  /// \return the segment was taken
  bool take(const Segment& s, bool verified = true) {
    std::vector<uint8_t> t(20 + s.options.size() + s.payload);
    wire::write_tcp(t.data(), {.source_port = RawPeer::kPeerPort,
                               .destination_port = RawPeer::kOurPort,
                               .sequence = base::Seq32(s.seq),
                               .acknowledgment = base::Seq32(s.ack),
                               .flags = s.flags,
                               .window = s.window,
                               .header_length = static_cast<uint32_t>(20 + s.options.size())});
    std::copy(s.options.begin(), s.options.end(), t.begin() + 20);
    auto& connection = static_cast<tcp::Connection&>(*peer.user.stream);
    return connection.take_text_beside({.source = RawPeer::kPeer,
                                        .destination = RawPeer::kUs,
                                        .tcp = t,
                                        .checksum_verified = verified,
                                        .ecn = s.ecn},
                                       peer.now);
  }

  RawPeer peer{config()};
};

TEST_F(BesideTest, IsTakenAheadOfTheOrderAndInIt) {
  Segment s = good();
  EXPECT_TRUE(take(s));
  s.seq += 500;  // a part of it is new
  s.flags |= flag::kPsh;
  EXPECT_TRUE(take(s));
  s.seq = kIrs + 1;
  EXPECT_TRUE(take(s)) << "fills the hole";
  EXPECT_EQ(tcp::Inside(*peer.user.stream).tcb.rcv_nxt, 2500u);
  peer.stack.validate();
  s.seq = kIrs + 5001;
  peer.user.verdict = [](base::Range) { return llp::InspectVerdict::Drop; };
  EXPECT_TRUE(take(s)) << "and dropped by the user";
  EXPECT_EQ(peer.stack.counters().inspect_drops, 1u);
}

TEST_F(BesideTest, WhateverElseIsUnexpectedTakesTheSlowPath) {
  const auto refused = [this](const char* what, auto&& change) {
    Segment s = good();
    change(s);
    EXPECT_FALSE(take(s)) << what;
  };
  refused("a FIN", [](Segment& s) { s.flags |= flag::kFin; });
  refused("urgent", [](Segment& s) { s.flags |= flag::kUrg; });
  refused("no ACK", [](Segment& s) { s.flags = flag::kPsh; });
  refused("no text", [](Segment& s) { s.payload = 0; });
  refused("too long", [](Segment& s) { s.payload = 65536 - 31; });
  refused("no timestamps", [](Segment& s) { s.options.clear(); });
  refused("other options", [](Segment& s) { s.options = std::vector<uint8_t>(12, 1); });
  refused("more options", [](Segment& s) { s.options.resize(16, 1); });
  refused("an old timestamp", [](Segment& s) { s.options = option_timestamps(999, 0); });
  refused("an old ACK", [](Segment& s) { --s.ack; });
  refused("a new ACK", [](Segment& s) { ++s.ack; });
  refused("a closed window", [](Segment& s) { s.window = 0; });
  refused("a begin before RCV.NXT", [](Segment& s) { s.seq = kIrs; });
  const auto window = static_cast<uint32_t>(tcp::Inside(*peer.user.stream).tcb.rcv_wnd());
  refused("an end behind the window", [&](Segment& s) { s.seq = kIrs + 1 + window - 999; });
  EXPECT_FALSE(take(good(), false)) << "a checksum that is wrong";
  EXPECT_EQ(tcp::Inside(*peer.user.stream).committed.ranges().size(), 0u);
  EXPECT_TRUE(take(good()));
}

/// One more, beside that of the test.
struct AnotherBeside final : BesideTest {
  void TestBody() override {}
};

TEST_F(BesideTest, NotWhileSomethingElseGoesOn) {
  EXPECT_TRUE(take(good()));
  Segment fin = good();
  fin.seq += 4000;
  fin.flags |= flag::kFin;
  peer.inject(fin);
  Segment s = good();
  s.seq += 1000;
  EXPECT_FALSE(take(s)) << "the peer's FIN was seen";
  AnotherBeside other;
  other.peer.user.stream->close();
  EXPECT_FALSE(other.take(good())) << "the user has closed";
  AnotherBeside unpredicted;
  unpredicted.peer.wait(milliseconds(1));
  unpredicted.peer.user.queue(1000);
  unpredicted.peer.user.queue(1000);
  unpredicted.peer.stack.output(unpredicted.peer.now);
  unpredicted.peer.wait(seconds(2));  // the records are sent again
  EXPECT_FALSE(unpredicted.take(good())) << "a recovery";
}

// --- what is predicted at all --------------------------------------------------------------------

TEST(Prediction, ABulkTransferWithoutLossGoesTheShortWay) {
  Pair p;
  ASSERT_TRUE(p.open());
  for (int i = 0; i < 2000; ++i) p.a.queue(1448);
  ASSERT_TRUE(p.drain());
  const auto sum = [&](uint64_t tcp::Counters::*counter) {
    return p.link.a.counters().*counter + p.link.b.counters().*counter;
  };
  EXPECT_GT(sum(&tcp::Counters::predicted_in) * 100, sum(&tcp::Counters::segments_in) * 98);
}

// Without SACK a partial ACK has one segment sent again later than what a recovery let out beside
// it: the plain ACK of that is of something that was sent before the latest that arrived.
TEST(Prediction, AnAckOfWhatWasSentBeforeALaterRetransmission) {
  tcp::Config config = RawPeer::bare();
  config.congestion_control = CongestionControl::NewReno;
  config.pack_records = false;
  RawPeer with(config);
  RawPeer without(config);
  without.stack.set_prediction(false);
  for (RawPeer* p : {&with, &without}) {
    p->acceptor.next.push_back(&p->user);
    p->inject({.seq = kIrs, .flags = flag::kSyn, .options = option_mss(1000)});
    p->wait(milliseconds(40));
    p->inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck});
    const auto ack = [p](uint32_t segments) {
      p->wait(milliseconds(10));
      p->inject({.seq = kIrs + 1, .ack = kIss + 1 + segments * 1000, .flags = flag::kAck});
    };
    for (int i = 0; i < 14; ++i) p->user.queue(1000);
    p->stack.output(p->now);  // ten: the first and the sixth are lost
    for (int i = 0; i < 9; ++i) ack(0);
    const tcp::Inside c(*p->user.stream);
    ASSERT_EQ(c.recovery.phase(), tcp::RecoveryPhase::Recovery);
    ASSERT_GT(c.tcb.snd_nxt, 12000u) << "new ones went out beside the first retransmission";
    ack(5);  // the sixth is sent again, the latest of all
    const base::Now latest = p->now;
    p->wait(milliseconds(30));
    const uint64_t sent_to = c.recovery.point();
    ack(static_cast<uint32_t>(sent_to / 1000));
    ASSERT_EQ(c.recovery.phase(), tcp::RecoveryPhase::Open);
    ASSERT_EQ(c.rack.xmit_at(), latest);
    ASSERT_LT(sent_to, c.tcb.snd_nxt);
    const uint64_t predicted = p->stack.counters().predicted_in;
    ack(static_cast<uint32_t>(sent_to / 1000) + 1);
    EXPECT_EQ(p->stack.counters().predicted_in, predicted + (p == &with ? 1 : 0));
    EXPECT_EQ(c.rack.xmit_at(), latest) << "it does not go back";
    EXPECT_EQ(c.tcb.snd_una, sent_to + 1000);
    EXPECT_EQ(p->user.released_to, sent_to + 1000);
    p->stack.validate();
  }
  EXPECT_EQ(counters_of(with.stack), counters_of(without.stack));
  EXPECT_EQ(text_of(with.user), text_of(without.user));
  EXPECT_TRUE(*with.stack.info(*with.user.stream, with.now) ==
              *without.stack.info(*without.user.stream, without.now));
  EXPECT_EQ(with.stack.next_deadline(), without.stack.next_deadline());
}

// A timer that moves later leaves its node in the wheel where it was. When that fires, nothing has
// happened that a prediction would have to end for; when the timer itself is due, it ends.
TEST(Prediction, OutlivesANodeThatFiresBeforeItsTimer) {
  tcp::Config config = RawPeer::bare();
  RawPeer p(config);
  p.accept();
  const auto send = [&p] {
    p.user.queue(1000);
    p.stack.output(p.now);
  };
  uint32_t acked = 0;
  const auto ack = [&p, &acked] {
    p.inject({.seq = kIrs + 1, .ack = kIss + 1 + (acked += 1000), .flags = flag::kAck});
  };
  const tcp::Inside c(*p.user.stream);
  const auto predicted = [&p] { return p.stack.counters().predicted_in; };
  send();
  ack();
  send();
  ack();
  const uint64_t before = predicted();
  ASSERT_NE(before, 0u);
  send();
  const base::Now first = c.timers.earliest();
  p.wait((first - p.now) / 2);
  ack();
  send();
  ASSERT_GT(c.timers.earliest(), first + milliseconds(1)) << "what runs now began later";
  p.wait(first - p.now + milliseconds(1));
  EXPECT_GT(p.stack.next_deadline(), first) << "the node waits for the timer itself";
  ack();
  EXPECT_EQ(predicted(), before + 2);
  send();
  p.wait(c.timers.earliest() - p.now + milliseconds(1));
  ack();
  EXPECT_EQ(predicted(), before + 2) << "the timer itself was due";
  p.stack.validate();
}

// The descriptors of a connection lie in rows that follow each other in its queue, not in memory:
// a row that came back is used again first. An ACK that ends just behind the first record of the
// next row releases the records of both, and none of what lies behind the row in memory.
TEST(Prediction, AnAckReachesIntoTheNextRowOfRecords) {
  constexpr uint32_t kOctets = 100;
  tcp::Config config = RawPeer::bare();
  config.pack_records = false;
  RawPeer p(config);
  p.accept();
  const auto send = [&p](uint32_t records) {
    for (uint32_t i = 0; i < records; ++i) p.user.queue(kOctets);
    p.stack.output(p.now);
    p.now += milliseconds(1);
  };
  const auto ack = [&p](uint32_t records) {
    p.inject({.seq = kIrs + 1, .ack = kIss + 1 + records * kOctets, .flags = flag::kAck});
    EXPECT_EQ(p.user.released_to, records * kOctets);
    p.stack.validate();
  };
  send(40);  // rows A, and B from record 32 on
  ack(40);   // A came back first, then B
  send(61);  // B up to record 63, A up to 95, and a row that is new, which lies behind B
  ack(63);
  const uint64_t predicted = p.stack.counters().predicted_in;
  ack(65);  // the last record of B and the first of A
  ack(101);
  EXPECT_EQ(p.stack.counters().predicted_in, predicted + 2) << "both went the short way";
}

TEST(PredictedHeader, IsTheOneOfTheNextSegment) {
  tcp::Prediction prediction;
  const auto validate = [&](uint32_t sequence, uint32_t header, uint32_t window) {
    prediction.validate(1, 2, base::Seq32(sequence), header, window, 7);
  };
  validate(100, 32, 5 << 7);
  prediction.begin(1, 2, base::Seq32(100), 32, 5 << 7, 7);
  validate(100, 32, 5 << 7);
  EXPECT_DEATH(validate(101, 32, 5 << 7), "compare");
  EXPECT_DEATH(validate(100, 20, 5 << 7), "compare");
  EXPECT_DEATH(validate(100, 32, 6 << 7), "window");
  prediction.begin(1, 2, base::Seq32(100), 32, 5, 7);  // a window that no field gives
  validate(100, 32, 5);
  prediction.expect(base::Seq32(101));
  validate(101, 32, 5);
  prediction.end();
  prediction.expect(base::Seq32(102));
  validate(102, 32, 5);
}

}  // namespace
}  // namespace rnic::testing
