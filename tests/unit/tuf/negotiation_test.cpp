// s.4: how two ends agree, and that nobody frames too early; s.5: keys.
#include <array>
#include <new>
#include <set>

#include "session_pair.hpp"
#include "tuf/key_source.hpp"

namespace rnic::tuf {
namespace {

/// Configurations by what the receiver wants: alignment, markers, both.
Config wants(bool align, bool markers) {
  Config config;
  config.align_receive = align;
  config.markers_receive = markers;
  return config;
}

// Everything that s.4 lists is in the frames, at its place.
TEST(Negotiation, WhatTheFramesSay_TUF_4_04) {
  Config config = wants(true, true);
  config.packing = false;
  config.marker_interval = 0x0abc;
  config.max_pdu = 0x1234;
  SessionEnd a(framing::Role::Initiator, config, 0x0102'0304'0506, Octets{9, 8, 7});
  a.establish();
  const Octets expected{'T', 'U', 'F',  ' ',  'R',  'e',  'q', ' ', 1, 0x00, 0x03, 0x03,
                        0,   0,   0x0a, 0xbc, 0x12, 0x34, 1,   2,   3, 4,    5,    6,
                        0,   3,   0,    0,    0,    0,    0,   0,   9, 8,    7};
  EXPECT_EQ(a.pull_all(), expected);
  const wire::TufStart back = *wire::parse_tuf_start(expected);
  EXPECT_EQ(back.receive_modes, 3);
  EXPECT_EQ(back.send_modes, 3);
  EXPECT_EQ(back.marker_interval, 0x0abc);
  EXPECT_EQ(back.max_pdu, 0x1234);
  EXPECT_EQ(back.key, 0x0102'0304'0506u);
  EXPECT_FALSE(back.packing);
  EXPECT_EQ(back.private_data, 3);
}

// Alignment mode wherever its receiver asks and its sender can; each
// direction by itself; a direction without a mode is no connection.
TEST(Negotiation, EveryCombination_TUF_4_03_TUF_2_02_TUF_4_01) {
  for (int bits = 0; bits < 64; ++bits) {
    const auto bit = [&](int i) { return (bits >> i & 1) != 0; };
    SessionPair p(wants(bit(0), bit(1)), wants(bit(2), bit(3)));
    p.a.stream.traits_value.atomic_records = bit(4);
    p.b.stream.traits_value.atomic_records = bit(5);
    p.a.establish();
    p.b.establish();
    const bool to_b = (bit(2) && bit(4)) || bit(3);
    const bool to_a = (bit(0) && bit(5)) || bit(1);
    p.b.in.receive(0, p.a.pull_all());
    if (!to_a || !to_b) {
      EXPECT_EQ(p.b.events.failures, std::vector{framing::StartFailure::NoCommonMode}) << bits;
      EXPECT_EQ(p.b.stream.closes, 1);
      EXPECT_EQ(p.b.counters.start_failures, 1u);
      continue;
    }
    p.b.session->accept({}, p.b.in.now);
    p.a.in.receive(0, p.b.pull_all());
    p.b.in.receive(32, p.a.pull_all());
    ASSERT_TRUE(p.a.session->full_operation() && p.b.session->full_operation()) << bits;
    const bool align_b = bit(2) && bit(4);
    const bool align_a = bit(0) && bit(5);
    EXPECT_EQ(p.a.session->agreed().send,
              align_b ? FramedSendMode::Align : FramedSendMode::Markers);
    EXPECT_EQ(p.b.session->agreed().receive,
              align_b ? FramedReceiveMode::Align : FramedReceiveMode::Markers);
    EXPECT_EQ(p.b.session->agreed().send,
              align_a ? FramedSendMode::Align : FramedSendMode::Markers);
    EXPECT_EQ(p.a.session->agreed().receive,
              align_a ? FramedReceiveMode::Align : FramedReceiveMode::Markers);
    // And so they speak.
    for (auto [from, to] : {std::pair{&p.a, &p.b}, std::pair{&p.b, &p.a}}) {
      const uint64_t at = from->sent;
      from->user.to_send.push_back(numbered_ulpdu(1, 900));
      to->in.receive(at, from->pull_all());
      EXPECT_EQ(to->user.delivered.size(), 1u) << bits;
    }
  }
}

// An end that sees no segments asks for markers only, whatever the peer could send, and suspects
// no middlebox, however its reads cut the stream. An end that sees them asks for alignment mode.
TEST(Negotiation, AReceiverWithoutSegments_TUF_2_02_TUF_4_03) {
  for (const bool sees : {false, true}) {
    SessionPair p;
    p.b.stream.traits_value.shows_segments = sees;
    p.b.stream.traits_value.can_drop = sees;
    p.start();
    EXPECT_EQ(p.b.session->agreed().receive,
              sees ? FramedReceiveMode::Align : FramedReceiveMode::Markers);
    EXPECT_EQ(p.a.session->agreed().send, sees ? FramedSendMode::Align : FramedSendMode::Markers);
    EXPECT_EQ(p.b.session->agreed().send, FramedSendMode::Align)
        << "the other direction is as it was";
    uint64_t at = p.a.sent;
    for (uint32_t i = 0; i < 400; ++i) p.a.user.to_send.push_back(numbered_ulpdu(i, 900));
    const Octets all = p.a.pull_all();
    for (size_t done = 0; done < all.size();) {
      const size_t n = std::min<size_t>(70 + done % 4000, all.size() - done);
      p.b.in.receive(at, base::ByteView(all).subspan(done, n));
      at += n;
      done += n;
    }
    EXPECT_EQ(p.b.user.delivered.size(), 400u);
    EXPECT_EQ(p.b.counters.middlebox_suspected, sees ? 1u : 0u);
    EXPECT_EQ(p.b.counters.unaligned_segments_in != 0, sees);
  }
  SessionPair blind(wants(true, true), wants(true, false));
  blind.b.stream.traits_value.shows_segments = false;
  blind.a.establish();
  blind.b.establish();
  blind.b.in.receive(0, blind.a.pull_all());
  EXPECT_EQ(blind.b.events.failures, std::vector{framing::StartFailure::NoCommonMode});
}

// Nothing framed leaves before the peer's frame that says its receive framing is on.
TEST(Negotiation, NobodyFramesTooEarly_TUF_4_02) {
  SessionPair p;
  p.a.establish();
  p.b.establish();
  for (SessionEnd* end : {&p.a, &p.b}) end->user.to_send.push_back(numbered_ulpdu(1, 50));
  const Octets request = p.a.pull_all();
  EXPECT_EQ(request.size(), 32u);  // and nothing behind it
  EXPECT_EQ(p.b.pull_all().size(), 0u);
  p.b.in.receive(0, request);
  EXPECT_EQ(p.b.pull_all().size(), 0u);
  EXPECT_EQ(p.b.user.may_sends, 0);
  p.b.session->accept({}, p.b.in.now);
  const Octets reply = p.b.pull_all();
  EXPECT_EQ(reply.size(), 32u);
  EXPECT_EQ(p.b.user.may_sends, 0);            // the initiator has not said Go
  for (size_t i = 0; i < reply.size(); ++i) {  // octet by octet
    EXPECT_EQ(p.a.pull_all().size(), 0u);
    EXPECT_EQ(p.a.user.may_sends, 0);
    p.a.in.receive(i, base::ByteView(reply).subspan(i, 1));
  }
  const Octets go = p.a.pull_all();
  ASSERT_GT(go.size(), 8u);  // Go, and framing PDUs behind it
  EXPECT_EQ(p.a.user.may_sends, 1);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(p.b.pull_all().size(), 0u);
    p.b.in.receive(32 + i, base::ByteView(go).subspan(i, 1));
  }
  EXPECT_EQ(p.b.user.may_sends, 1);
  EXPECT_GT(p.b.pull_all().size(), 0u);
  p.b.in.receive(40, base::ByteView(go).subspan(8));
  EXPECT_EQ(p.b.user.delivered.size(), 1u);
}

// Framed octets that come before the Reply are an error, not data.
TEST(Negotiation, EarlyOctetsAreRefused_TUF_4_02) {
  SessionPair p;
  p.a.establish();
  p.b.establish();
  Octets request = p.a.pull_all();
  request.insert(request.end(), 60, 0x55);
  p.b.in.receive(0, request);
  EXPECT_TRUE(p.b.events.requests.size() <= 1);
  EXPECT_EQ(p.b.events.failures, std::vector{framing::StartFailure::UnexpectedData});
  EXPECT_TRUE(p.b.user.placed.empty());
}

// A responder that could send aligned and chose markers is not believed.
TEST(Negotiation, AWrongChoiceIsRefused_TUF_4_03) {
  for (const size_t octet : {12u, 13u}) {
    for (const uint8_t value : {0, 2, 3, 255}) {
      SessionPair p;
      p.a.establish();
      p.b.establish();
      p.b.in.receive(0, p.a.pull_all());
      p.b.session->accept({}, p.b.in.now);
      Octets reply = p.b.pull_all();
      ASSERT_EQ(reply[octet], 1);
      reply[octet] = value;
      p.a.in.receive(0, reply);
      EXPECT_EQ(p.a.events.failures, std::vector{framing::StartFailure::NoCommonMode});
      EXPECT_FALSE(p.a.session->full_operation());
    }
  }
}

// The receiver's wish counts: either side can say no to packing.
TEST(Negotiation, PackingNeedsBoth_TUF_5_05) {
  for (int bits = 0; bits < 4; ++bits) {
    Config a, b;
    a.packing = (bits & 1) != 0;
    b.packing = (bits & 2) != 0;
    SessionPair p(a, b);
    p.start();
    const std::vector<Octets> sent(10, numbered_ulpdu(1, 30));
    const auto records = p.send(sent);
    EXPECT_EQ(records.size(), bits == 3 ? 1u : 10u);
    for (const auto& r : records) p.b.in.receive(r.offset, r.octets);
    EXPECT_EQ(p.b.user.delivered, sent);
  }
}

// The exchange cut at every octet, and out of order.
TEST(Negotiation, CutAnywhere) {
  for (size_t cut = 1; cut < 34; ++cut) {
    for (const bool swapped : {false, true}) {
      SessionEnd a(framing::Role::Initiator, {}, 1, Octets{1, 2});
      SessionEnd b(framing::Role::Responder, {}, 2);
      a.establish();
      b.establish();
      const auto feed = [&](SessionEnd& to, uint64_t at, const Octets& octets) {
        const base::ByteView view(octets);
        const size_t here = std::min(cut, octets.size());
        if (swapped) to.in.receive(at + here, view.subspan(here));
        to.in.receive(at, view.first(here));
        if (!swapped) to.in.receive(at + here, view.subspan(here));
      };
      feed(b, 0, a.pull_all());
      ASSERT_EQ(b.events.requests, (std::vector<Octets>{{1, 2}})) << cut << swapped;
      b.session->accept(Octets{3}, b.in.now);
      feed(a, 0, b.pull_all());
      a.user.to_send.push_back(numbered_ulpdu(1, 100));
      feed(b, 34, a.pull_all());
      EXPECT_EQ(a.events.starts.size(), 1u);
      EXPECT_EQ(a.events.start_data, Octets{3});
      EXPECT_EQ(b.user.delivered.size(), 1u) << cut << swapped;
    }
  }
}

TEST(Negotiation, Rejected) {
  SessionPair p;
  p.a.establish();
  p.b.establish();
  p.b.in.receive(0, p.a.pull_all());
  p.b.session->reject(Octets{'n', 'o'}, p.b.in.now);
  p.a.in.receive(0, p.b.pull_all());
  EXPECT_EQ(p.a.events.failures, std::vector{framing::StartFailure::RejectedByPeer});
  EXPECT_EQ(p.a.events.start_data, (Octets{'n', 'o'}));
  EXPECT_EQ(p.b.events.failures, std::vector{framing::StartFailure::RejectedLocally});
  EXPECT_EQ(p.a.stream.closes, 1);
  EXPECT_EQ(p.b.stream.closes, 2);
}

TEST(Negotiation, TimeOutAndEnd) {
  for (const bool initiator : {true, false}) {
    SessionEnd e(initiator ? framing::Role::Initiator : framing::Role::Responder, {}, 1);
    e.establish();
    e.pull_all();
    EXPECT_EQ(e.session->next_deadline(), e.in.now + std::chrono::seconds(60));
    e.session->on_timer(e.in.now + std::chrono::seconds(59));
    EXPECT_TRUE(e.events.failures.empty());
    e.session->on_timer(e.in.now + std::chrono::seconds(60));
    EXPECT_EQ(e.events.failures, std::vector{framing::StartFailure::TimedOut});
    EXPECT_EQ(e.session->next_deadline(), base::kNever);
    e.session->ended(StreamEnd::Closed, e.in.now);
    SessionEnd f(initiator ? framing::Role::Initiator : framing::Role::Responder, {}, 1);
    f.establish();
    f.session->peer_finished(f.in.now);
    EXPECT_EQ(f.events.failures, std::vector{framing::StartFailure::StreamEnded});
  }
}

// Each octet of each frame, each with another value: refused with a name, or of no consequence.
TEST(Negotiation, HostileFrames) {
  SessionPair p;
  p.a.establish();
  const Octets request = p.a.pull_all();
  for (size_t i = 0; i < 32; ++i) {
    for (int value = 0; value < 256; ++value) {
      SessionEnd b(framing::Role::Responder, {}, 2);
      b.establish();
      Octets bad = request;
      bad[i] = static_cast<uint8_t>(value);
      b.in.receive(0, bad);
      if (i < 9 && bad != request) {
        ASSERT_EQ(b.events.failures, std::vector{framing::StartFailure::ForeignFrame}) << i;
      }
      ASSERT_LE(b.events.failures.size() + b.events.requests.size(), 1u);
    }
  }
  // MPA speaks to it.
  SessionEnd b(framing::Role::Responder, {}, 2);
  b.establish();
  b.in.receive(0, Octets{'M'});
  EXPECT_EQ(b.events.failures, std::vector{framing::StartFailure::ForeignFrame});
}

// Keys differ, no bit of them leans, and nothing but the secret tells the next one.
TEST(Keys, AreRandom_TUF_5_03) {
  std::set<wire::TufKey> seen;
  std::array<int, 48> ones{};
  constexpr int kKeys = 20000;
  KeySource source({0x1234, 0x5678});
  wire::TufKey before = 0;
  int changed = 0;
  for (int i = 0; i < kKeys; ++i) {
    const wire::TufKey key = source.next();
    EXPECT_EQ(key >> 48, 0u);
    seen.insert(key);
    for (size_t bit = 0; bit < 48; ++bit) ones[bit] += static_cast<int>(key >> bit & 1);
    changed += __builtin_popcountll(key ^ before);
    before = key;
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(kKeys));
  for (const int n : ones) EXPECT_NEAR(n, kKeys / 2, 450);  // six standard deviations
  EXPECT_NEAR(changed, kKeys * 24, 4200);
  // Another secret, by one bit: another sequence.
  KeySource other({0x1235, 0x5678});
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(seen.count(other.next()), 0u);
  // The twin: a generator that leans would be seen.
  int leaning = 0;
  for (int i = 0; i < kKeys; ++i) leaning += (i & 7) != 0;
  EXPECT_GT(std::abs(leaning - kKeys / 2), 450);
}

// A user that was removed before the stream was framed is not told of the stream's end.
TEST(Negotiation, AUserThatWasTakenAwayHearsNothing) {
  for (const bool taken : {false, true}) {
    SessionPair p;
    p.a.establish();
    p.b.establish();
    p.b.in.receive(0, p.a.pull_all());
    if (taken) p.b.session->unbind();
    p.b.session->ended(StreamEnd::PeerReset, p.b.in.now);
    EXPECT_EQ(p.b.events.failures, std::vector{framing::StartFailure::StreamEnded});
    EXPECT_EQ(p.b.user.ends.size(), taken ? 0u : 1u);
  }
}

// Between the Request and its answer the initiator has nothing to say; and what comes
// behind a failure is counted and thrown away.
TEST(Negotiation, OctetsBeforeTheAnswerAreRefused_TUF_4_02) {
  SessionPair p;
  p.a.establish();
  p.b.establish();
  const Octets request = p.a.pull_all();
  p.b.in.receive(0, request);
  ASSERT_EQ(p.b.events.requests.size(), 1u);
  p.b.in.receive(request.size(), Octets(10, 0x55));
  EXPECT_EQ(p.b.events.failures, std::vector{framing::StartFailure::UnexpectedData});
  EXPECT_EQ(p.b.counters.discarded_octets, 0u);
  p.b.in.receive(request.size() + 10, Octets(7, 0x55));
  EXPECT_EQ(p.b.counters.discarded_octets, 7u);
  EXPECT_EQ(p.b.events.failures.size(), 1u);
  p.b.session->accept({}, p.b.in.now);
  EXPECT_TRUE(p.b.pull_all().empty()) << "it is too late for an answer";
}

// A transport that asks first is told to take the frame, and no octet of what is behind it.
TEST(Negotiation, OnlyTheFrameIsTakenOfTheStream) {
  SessionEnd a(framing::Role::Initiator, {}, 1, Octets{1, 2, 3});
  a.establish();
  const Octets request = a.pull_all();
  SessionEnd b(framing::Role::Responder, {}, 2);
  b.establish();
  const Octets more(100, 7);
  EXPECT_EQ(b.session->takes({0, 20}, base::ByteView(more).first(20)), 20u);
  EXPECT_EQ(b.session->takes({0, 100}, more), wire::kTufStartSize);
  b.in.receive(0, base::ByteView(request).first(wire::kTufStartSize));
  EXPECT_EQ(b.session->takes({32, 132}, more), 3u);
  b.in.receive(wire::kTufStartSize, Octets{1, 2, 3, 4});
  ASSERT_EQ(b.events.failures, std::vector{framing::StartFailure::UnexpectedData});
  EXPECT_EQ(b.session->takes({36, 136}, more), 100u) << "nobody needs them";
}

/// An owner that finds no memory for the Request.
struct Starved final : framing::StartEvents {
  void request_received(const framing::StartOffer&, base::ByteView, base::Now) override {
    throw std::bad_alloc();
  }
  void started(const framing::Negotiated&, base::ByteView, base::Now) override { ADD_FAILURE(); }
  void start_failed(framing::StartFailure why, base::ByteView, base::Now) override {
    failures.push_back(why);
  }
  std::vector<framing::StartFailure> failures;
};

/// A session by itself, with what SessionEnd cannot give it.
struct Lone {
  Lone(framing::Role role, framing::StartEvents& events,
       const framing::StartOptions& start_options = {})
      : session({}, role, 1, *hold, *pack, counters, events, {}, nullptr, start_options) {
    session.attach(stream);
    session.bind(user);
    session.established(1460, {});
  }
  void receive(const Octets& octets) {
    session.place({at, at + octets.size()}, octets, true, {});
    at += octets.size();
    session.ordered(at, {});
  }

  framing::HoldStorePtr hold = framing::make_hold_store(64u << 10);
  PackStorePtr pack = make_pack_store(64);
  Counters counters;
  test::FakeStream stream;
  test::FakeFramingUser user;
  uint64_t at = 0;
  Session session;
};

TEST(Negotiation, ARequestThatFindsNoMemoryFails) {
  SessionEnd a(framing::Role::Initiator, {}, 1);
  a.establish();
  Starved events;
  Lone b(framing::Role::Responder, events);
  b.receive(a.pull_all());
  EXPECT_EQ(events.failures, std::vector{framing::StartFailure::OutOfMemory});
  EXPECT_EQ(b.counters.start_failures, 1u);
  EXPECT_EQ(b.stream.closes, 1);
  EXPECT_FALSE(b.session.full_operation());
}

// RFC 6581 s.9.1's rule holds here as well: a Reply that asks for more Reads at once than this side
// has room for is no agreement.
TEST(Negotiation, AReplyThatWantsTooManyReadsIsRefused) {
  for (const uint16_t ord : {4, 5}) {
    test::FakeStartEvents events;
    Lone a(framing::Role::Initiator, events, {.exchange_reads = true, .ird = 4, .ord = 4});
    Octets room(1460);
    llp::Frame frame(room.data(), 1460);
    const uint32_t length = a.session.pull(1460, 0, frame, {}).length;
    room.resize(length);
    SessionEnd b(framing::Role::Responder, {}, 2);
    b.establish();
    b.in.receive(0, room);
    b.session->accept({}, b.in.now, {.ird = 4, .ord = 4});
    Octets reply = b.pull_all();
    wire::TufStart start = *wire::parse_tuf_start(reply);
    ASSERT_TRUE(start.has_reads);
    EXPECT_EQ(start.ord, 4);
    start.ord = ord;
    wire::write_tuf_start(reply.data(), wire::kTufReplyMagic, start);
    a.receive(reply);
    const std::vector<framing::StartFailure> refused{framing::StartFailure::InsufficientReads};
    EXPECT_EQ(events.failures, ord == 4 ? std::vector<framing::StartFailure>{} : refused);
    EXPECT_EQ(a.stream.closes, ord == 4 ? 0 : 1);
  }
}

}  // namespace
}  // namespace rnic::tuf
