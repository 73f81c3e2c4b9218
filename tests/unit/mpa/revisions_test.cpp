// Start-ups of revisions 0, 1 and 2 between two sessions, and against frames written down octet by
// octet; leaving MPA with TCP open; starting it behind streaming octets.
#include <gtest/gtest.h>

#include <functional>

#include "mpa/session.hpp"
#include "start_frames.hpp"

namespace rnic::mpa {
namespace {

using llp::FramingError;
using test::MpaEnd;
using test::numbered_ulpdu;
using test::Octets;
using test::SlowEncoder;

Config revision(uint8_t value, bool permissive = false) {
  Config config;
  config.revision = value;
  config.permissive = permissive;
  return config;
}

const framing::StartOptions kReads{.exchange_reads = true, .ird = 4, .ord = 4};

MpaEnd initiator(const Config& config = {}, const framing::StartOptions& start_options = kReads,
                 const Octets& data = {}) {
  return {framing::Role::Initiator, config, data, 512u << 10, nullptr, start_options};
}

/// What an initiator's Request looks like, and how it takes a Reply.
void reply_to(MpaEnd& end, const Octets& reply) {
  end.establish();
  end.pull_all();
  end.receive(0, reply);
}

// CM6581-9-01 CM6581-6-04: octet by octet, as siw's captures have them.
TEST(Enhanced, RequestAndReplyOctets_CM6581_6_01_CM6581_9_2_01_CM6581_9_2_02) {
  Config no_crc;
  no_crc.crc = false;
  MpaEnd a = initiator(no_crc, kReads, {'h', 'i'});
  a.establish();
  EXPECT_EQ(a.pull_all(), request_frame(0x10, 2, {0, 4, 0, 4, 'h', 'i'}));
  MpaEnd p = initiator(no_crc, {.exchange_reads = true, .peer_to_peer = true, .ird = 4, .ord = 4});
  p.establish();
  EXPECT_EQ(p.pull_all(), request_frame(0x10, 2, {0xc0, 4, 0xc0, 4}));
  MpaEnd b(framing::Role::Responder, no_crc);
  b.establish();
  b.receive(0, request_frame(0x10, 2, {0x80, 4, 0xc0, 7, 'h', 'i'}));
  ASSERT_EQ(b.events.requests, (std::vector<Octets>{{'h', 'i'}}));
  EXPECT_EQ(b.events.offers[0].ird, 4u);  // CM6581-9.1-02
  EXPECT_EQ(b.events.offers[0].ord, 7u);
  EXPECT_EQ(b.session->private_data_max(), 508u);
  b.session->accept(Octets{'o'}, b.now, {.ird = 16, .ord = 16});
  EXPECT_EQ(b.pull_all(), reply_frame(0x10, 2, {0x80, 16, 0xc0, 4, 'o'}));
  EXPECT_EQ(*b.session->negotiated().ord, 4);
}

// CM6581-10-03: nothing enhanced wanted: a frame of RFC 5044.
// UNH-MPA-1-16
TEST(Enhanced, PlainFramesAreThoseOfRfc5044_CM6581_6_02) {
  MpaEnd a = initiator({}, {});
  a.establish();
  EXPECT_EQ(a.pull_all(), request_frame(0x40, 1));
  MpaEnd b(framing::Role::Responder, {});
  b.establish();
  b.receive(0, request_frame(0x40, 2, {1, 2, 3, 4, 5}));
  EXPECT_EQ(b.events.requests, (std::vector<Octets>{{1, 2, 3, 4, 5}}));
  b.session->accept({}, b.now);
  EXPECT_EQ(b.pull_all(), reply_frame(0x40, 2));
  // S is a reserved bit in revision 1.
  MpaEnd c(framing::Role::Responder, {});
  c.establish();
  c.receive(0, request_frame(0x50, 1, {1, 2, 3, 4, 5}));
  EXPECT_EQ(c.events.requests, (std::vector<Octets>{{1, 2, 3, 4, 5}}));
}

// S without room for its data.
// UNH-MPA-1-21
TEST(Enhanced, TooShortForItsData_CM6581_6_05) {
  for (size_t length = 0; length <= 4; ++length) {
    MpaEnd b(framing::Role::Responder, {});
    b.establish();
    b.receive(0, request_frame(0x50, 2, Octets(length)));
    MpaEnd a = initiator();
    reply_to(a, reply_frame(0x50, 2, Octets(length)));
    if (length == 4) {
      EXPECT_TRUE(b.events.failures.empty() && a.events.failures.empty());
      continue;
    }
    EXPECT_EQ(b.events.failures, std::vector{framing::StartFailure::BadLength});
    EXPECT_EQ(a.events.failures, std::vector{framing::StartFailure::BadLength});
    EXPECT_EQ(b.stream.closes, 1);
  }
}

// 508 octets of the ULP, whole, both ways; the 509th has no room.
TEST(Enhanced, LongestPrivateData_CM6581_6_04) {
  for (size_t length = 0; length <= 508; length += 4) {
    const Octets data = numbered_ulpdu(3, length);
    MpaEnd a = initiator({}, kReads, data);
    MpaEnd b(framing::Role::Responder, {});
    a.establish();
    b.establish();
    const Octets request = a.pull_all();
    ASSERT_EQ(request.size(), 24 + length);
    ASSERT_EQ(request[18] << 8 | request[19], 4 + static_cast<int>(length));
    b.receive(0, request);
    ASSERT_EQ(b.events.requests, std::vector<Octets>{data});
    b.session->accept(data, b.now, kReads);
    a.receive(0, b.pull_all());
    ASSERT_EQ(a.events.start_data, data);
    ASSERT_EQ(a.session->version(), 1);
  }
}

// Without RFC 6581 an enhanced Request ends the connection.
TEST(Enhanced, AResponderOfRevision1Closes_CM6581_10_02) {
  MpaEnd b(framing::Role::Responder, revision(1));
  b.establish();
  b.receive(0, request_frame(0x50, 2, {0, 4, 0, 4}));
  EXPECT_EQ(b.events.failures, std::vector{framing::StartFailure::BadRevision});
  EXPECT_EQ(b.stream.closes, 1);
  EXPECT_TRUE(b.pull_all().empty());
}

// CM6581-10-02: what makes an initiator dial again is told apart from other ends.
TEST(Enhanced, WhatASecondAttemptIsFor_BUG_18) {
  MpaEnd plain = initiator();
  reply_to(plain, reply_frame(0x40, 1));
  EXPECT_EQ(plain.events.failures, std::vector{framing::StartFailure::NotEnhanced});
  EXPECT_EQ(plain.stream.closes, 1);
  MpaEnd closed = initiator();
  reply_to(closed, {});
  closed.session->peer_finished(closed.now);
  EXPECT_EQ(closed.events.failures, std::vector{framing::StartFailure::NoReply});
  MpaEnd reset = initiator();
  reply_to(reset, {});
  reset.session->ended(StreamEnd::PeerReset, reset.now);
  EXPECT_EQ(reset.events.failures, std::vector{framing::StartFailure::ResetBeforeReply});
  MpaEnd lost = initiator();
  reply_to(lost, {});
  lost.session->ended(StreamEnd::TimedOut, lost.now);
  EXPECT_EQ(lost.events.failures, std::vector{framing::StartFailure::StreamEnded});
  MpaEnd begun = initiator();
  reply_to(begun, {'M', 'P'});
  begun.session->peer_finished(begun.now);
  EXPECT_EQ(begun.events.failures, std::vector{framing::StartFailure::StreamEnded});
}

// The flags of the Request echoed, reserved bits and R of the Request included.
// UNH-MPA-1-04 UNH-MPA-1-05
TEST(Enhanced, AReplyIsReadByItsOwnRules_BUG_16) {
  for (uint32_t reserved = 0; reserved < 16; ++reserved) {
    MpaEnd a = initiator();
    reply_to(a, reply_frame(static_cast<uint8_t>(0x50 | reserved), 2, {0, 4, 0, 4}));
    EXPECT_EQ(a.events.starts.size(), 1u);
    MpaEnd b(framing::Role::Responder, {});
    b.establish();
    b.receive(0, request_frame(static_cast<uint8_t>(0x70 | reserved), 2, {0, 4, 0, 4}));
    EXPECT_EQ(b.events.requests.size(), 1u);
    b.session->accept({}, b.now, kReads);
    EXPECT_EQ(b.pull_all()[16], 0x50);  // none of it comes back
  }
}

// A reject carries IRD and ORD for the ULP, too; here siw's of its captures.
TEST(Enhanced, ARejectTellsReads_CM6581_9_1_02_CM6581_9_1_05) {
  MpaEnd a = initiator();
  reply_to(a, reply_frame(0x30, 2, {0, 5, 0, 6, 'g', 'o'}));
  EXPECT_EQ(a.events.failures, std::vector{framing::StartFailure::RejectedByPeer});
  EXPECT_EQ(a.events.start_data, (Octets{'g', 'o'}));
  EXPECT_EQ(a.session->negotiated().peer_ird, 5u);
  EXPECT_EQ(a.session->negotiated().peer_ord, 6u);
  MpaEnd b(framing::Role::Responder, {});
  b.establish();
  b.receive(0, request_frame(0x50, 2, {0, 2, 0, 2}));
  b.session->accept({}, b.now, {.ird = 9, .ord = 9, .ord_required = 3});
  EXPECT_EQ(b.pull_all(), reply_frame(0x70, 2, {0, 9, 0, 3}));
  EXPECT_EQ(b.events.failures, std::vector{framing::StartFailure::InsufficientReads});
  EXPECT_TRUE(b.events.starts.empty());
}

// CM6581-8-01: the endpoint is told what to terminate
// with.
// UNH-MPA-1-18 UNH-MPA-1-19
TEST(Enhanced, RepliesThatEndInATerminate_CM6581_9_1_06_CM6581_9_2_05_CM6581_9_3_01) {
  struct Case {
    Octets reply;
    bool peer_to_peer;
    FramingError error;
    framing::StartFailure failure;
  };
  Config no_markers;
  no_markers.markers_send_allowed = false;
  for (const Case& c : std::vector<Case>{
           {reply_frame(0x50, 2, {0, 4, 0, 5}), false, FramingError::InsufficientIrd,
            framing::StartFailure::InsufficientReads},
           {reply_frame(0x50, 2, {0, 4, 1, 0xf4}), false, FramingError::InsufficientIrd,
            framing::StartFailure::InsufficientReads},  // siw's raw-reply-ord-too-big
           {reply_frame(0x50, 2, {0x80, 4, 0, 4}), true, FramingError::NoMatchingRtr,
            framing::StartFailure::NoMatchingRtr},
           {reply_frame(0x50, 2, {0, 4, 0, 4}), true, FramingError::NoMatchingRtr,
            framing::StartFailure::NoMatchingRtr},
           {reply_frame(0xd0, 2, {0, 4, 0, 4}), false, FramingError::LocalCatastrophic,
            framing::StartFailure::LocalError}}) {
    framing::StartOptions start_options = kReads;
    start_options.peer_to_peer = c.peer_to_peer;
    MpaEnd a = initiator(no_markers, start_options);
    a.user.to_send = {numbered_ulpdu(1, 40)};  // stands for the Terminate
    bool open = false;
    a.events.on_failure = [&](framing::StartFailure) { open = a.session->full_operation(); };
    reply_to(a, c.reply);
    EXPECT_EQ(a.events.failures, std::vector{c.failure});
    EXPECT_TRUE(open);
    EXPECT_TRUE(a.events.starts.empty());
    EXPECT_EQ(a.user.errors, std::vector{c.error});
    EXPECT_EQ(a.stream.closes + a.stream.aborts, 0);  // the endpoint closes
    EXPECT_FALSE(a.pull_all().empty());
    EXPECT_EQ(a.counters.start_terminates, 1u);
    SlowEncoder behind(c.reply.size(), false);
    behind.add(numbered_ulpdu(1, 60));
    a.receive(c.reply.size(), behind.stream);
    EXPECT_TRUE(a.user.placed.empty());
  }
}

// A Reply may wait before it leaves, for a congestion window or for the address of a neighbour. The
// time for the RTR begins when it leaves.
TEST(Enhanced, TheTimeForTheRtrBeginsWhenTheReplyLeaves_CM6581_5_01) {
  MpaEnd b(framing::Role::Responder, {});
  b.establish();
  b.receive(0, request_frame(0x50, 2, {0xc0, 4, 0xc0, 4}));
  b.session->accept({}, b.now, kReads);
  b.now += std::chrono::seconds(3);
  b.pull_all();
  const base::Now due = base::Now{} + std::chrono::seconds(3) + Config{}.rtr_timeout;
  EXPECT_EQ(b.session->next_deadline(), due);
  b.session->on_timer(due - base::Duration(1));
  EXPECT_TRUE(b.events.failures.empty());
  b.session->on_timer(due);
  EXPECT_EQ(b.events.failures, std::vector{framing::StartFailure::RtrMissing});
}

// Peer to peer at the responder: complete with the first FPDU, given up without one.
TEST(Enhanced, TheResponderWaitsForTheRtr_CM6581_5_01) {
  for (const bool comes : {true, false}) {
    MpaEnd b(framing::Role::Responder, {});
    b.establish();
    b.receive(0, request_frame(0x50, 2, {0xc0, 4, 0xc0, 4}));
    b.session->accept({}, b.now, kReads);
    EXPECT_EQ(b.session->next_deadline(), base::Now{} + Config{}.start_timeout);
    b.pull_all();
    EXPECT_EQ(b.events.starts.size(), 1u);
    EXPECT_EQ(b.events.rtrs, 0);
    EXPECT_EQ(b.session->next_deadline(), base::Now{} + Config{}.rtr_timeout);
    SlowEncoder rtr(24, false);
    rtr.add(Octets{0xc1, 0x40, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0});
    if (comes) {
      b.receive(24, rtr.stream);
      EXPECT_EQ(b.events.rtrs, 1);
      EXPECT_EQ(b.session->next_deadline(), base::kNever);
      EXPECT_EQ(b.user.may_sends, 1);
      continue;
    }
    b.now += Config{}.rtr_timeout;
    b.session->on_timer(b.now);
    EXPECT_EQ(b.events.failures, std::vector{framing::StartFailure::RtrMissing});
    EXPECT_EQ(b.stream.aborts, 1);
    EXPECT_EQ(b.counters.rtr_missing, 1u);
    b.receive(24, rtr.stream);
    EXPECT_TRUE(b.user.placed.empty());
    EXPECT_EQ(b.session->next_deadline(), base::kNever);
  }
}

// A responder that waits for the RTR gets an FPDU with a wrong CRC, and the peer stays: the outcome
// is told by its cause, and not as a time that ran out.
TEST(Enhanced, ABrokenRtrIsNoMissingRtr_CM6581_5_01) {
  Config config;
  config.silent_drop = false;  // TCP does not ask for the octets again
  MpaEnd b(framing::Role::Responder, config);
  b.establish();
  b.receive(0, request_frame(0x50, 2, {0xc0, 4, 0xc0, 4}));
  b.session->accept({}, b.now, kReads);
  b.pull_all();
  SlowEncoder rtr(24, false);
  rtr.add(Octets{0xc1, 0x40, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0});
  rtr.stream.back() ^= 1;
  b.receive(24, rtr.stream);
  EXPECT_EQ(b.events.rtrs, 0);
  EXPECT_EQ(b.counters.crc_errors, 1u);
  EXPECT_TRUE(b.events.failures.empty());
  b.now = b.session->next_deadline();
  b.session->on_timer(b.now);
  EXPECT_EQ(b.events.failures, std::vector{framing::StartFailure::RtrBroken});
  EXPECT_EQ(b.counters.rtr_missing, 0u);
  EXPECT_EQ(b.stream.aborts, 1);
  EXPECT_EQ(b.session->next_deadline(), base::kNever);
}

// BUG-14-a: nothing leaves before the time, and everything may afterwards.
TEST(Enhanced, TheFirstFpduIsHeldBack_BUG_14) {
  EXPECT_EQ(Config{}.first_fpdu_delay, base::Duration{});
  Config config;
  config.first_fpdu_delay = std::chrono::milliseconds(500);
  MpaEnd a = initiator(config);
  a.user.to_send = {numbered_ulpdu(1, 40)};
  reply_to(a, reply_frame(0x50, 2, {0, 4, 0, 4}));
  EXPECT_EQ(a.events.starts.size(), 1u);
  a.session->ready();
  EXPECT_TRUE(a.pull_all().empty());
  EXPECT_EQ(a.session->next_deadline(), base::Now{} + config.first_fpdu_delay);
  a.session->on_timer(base::Now{} + config.first_fpdu_delay - base::Duration(1));
  EXPECT_TRUE(a.pull_all().empty());
  a.session->on_timer(base::Now{} + config.first_fpdu_delay);
  EXPECT_EQ(a.user.may_sends, 1);
  EXPECT_FALSE(a.pull_all().empty());
  EXPECT_EQ(a.counters.first_fpdus_delayed, 1u);
}

// BUG-14-b: behind the delay a peer that has sent nothing is told of once, and one that has never.
TEST(Enhanced, TheSilenceOfThePeerIsTold_BUG_14) {
  for (const bool answers : {false, true}) {
    Config config;
    config.first_fpdu_delay = std::chrono::milliseconds(10);
    MpaEnd a = initiator(config);
    a.user.to_send = {numbered_ulpdu(1, 40)};
    reply_to(a, reply_frame(0x50, 2, {0, 4, 0, 4}));
    a.session->on_timer(base::Now{} + config.first_fpdu_delay);
    EXPECT_FALSE(a.pull_all().empty());
    const base::Now told = base::Now{} + config.first_fpdu_delay + std::chrono::milliseconds(200);
    EXPECT_EQ(a.session->next_deadline(), told);
    a.session->on_timer(told - base::Duration(1));
    EXPECT_EQ(a.user.silences, 0);
    if (answers) {
      SlowEncoder encoder(24, false);
      encoder.add(numbered_ulpdu(9, 30));
      ASSERT_TRUE(a.receive(24, encoder.stream));
      EXPECT_EQ(a.session->next_deadline(), base::kNever);
    }
    a.session->on_timer(told);
    EXPECT_EQ(a.user.silences, answers ? 0 : 1);
    a.session->on_timer(told + std::chrono::hours(1));
    EXPECT_EQ(a.user.silences, answers ? 0 : 1);
    EXPECT_EQ(a.session->next_deadline(), base::kNever);
    EXPECT_TRUE(a.events.failures.empty());
  }
}

// Whatever a session waits for, behind the end of its stream nothing is due any more.
TEST(Enhanced, NothingIsDueBehindTheEnd) {
  Config config;
  config.first_fpdu_delay = std::chrono::milliseconds(10);
  for (const bool delayed : {true, false}) {
    MpaEnd a = initiator(config);
    a.user.to_send = {numbered_ulpdu(1, 40)};
    reply_to(a, reply_frame(0x50, 2, {0, 4, 0, 4}));
    if (!delayed) a.session->on_timer(base::Now{} + config.first_fpdu_delay);
    EXPECT_NE(a.session->next_deadline(), base::kNever);
    a.session->ended(StreamEnd::PeerReset, a.now);
    EXPECT_EQ(a.session->next_deadline(), base::kNever);
    a.session->on_timer(base::Now{} + std::chrono::hours(1));
    EXPECT_EQ(a.user.silences, 0);
  }
  MpaEnd b(framing::Role::Responder, {});
  b.establish();
  b.receive(0, request_frame(0x50, 2, {0xc0, 4, 0xc0, 4}));
  b.session->accept({}, b.now, kReads);
  b.pull_all();
  EXPECT_NE(b.session->next_deadline(), base::kNever) << "the RTR is awaited";
  b.session->ended(StreamEnd::PeerReset, b.now);
  EXPECT_EQ(b.session->next_deadline(), base::kNever);
}

// BUG-14-a: a peer that sends has its receiver: the wait is over, and never comes again.
TEST(Enhanced, TheFirstFpduOfThePeerEndsTheWait_BUG_14) {
  Config config;
  config.first_fpdu_delay = std::chrono::milliseconds(10);
  MpaEnd a = initiator(config);
  a.user.to_send = {numbered_ulpdu(1, 40)};
  reply_to(a, reply_frame(0x50, 2, {0, 4, 0, 4}));
  a.session->ready();
  EXPECT_TRUE(a.pull_all().empty());
  SlowEncoder encoder(24, false);
  encoder.add(numbered_ulpdu(9, 30));
  ASSERT_TRUE(a.receive(24, encoder.stream));
  EXPECT_EQ(a.user.may_sends, 1);
  EXPECT_FALSE(a.pull_all().empty());
  EXPECT_EQ(a.session->next_deadline(), base::kNever);
}

// --- revision 0: draft-ietf-rddp-mpa-00, RFC 5044 appendix C ---

// MPA-C-02 MPA-3-09: two ends of the draft's profile, of which each says
// whether it wants markers and CRC (draft s.8.1.1); DDP is told the version.
TEST(Draft, TwoEndsOfTheDraft_MPA00_8_1_01_MPA00_8_1_07) {
  for (uint8_t flags = 0; flags < 16; ++flags) {
    Config left = revision(0), right = revision(0);
    left.markers_receive = (flags & 1) != 0;
    left.crc = (flags & 2) != 0;
    right.markers_receive = (flags & 4) != 0;
    right.crc = (flags & 8) != 0;
    const auto bits = [](const Config& config) {
      return static_cast<uint8_t>((config.markers_receive ? 0x80 : 0) | (config.crc ? 0x40 : 0));
    };
    MpaEnd a = initiator(left), b(framing::Role::Responder, right);
    a.establish();
    b.establish();
    const Octets request = a.pull_all();
    EXPECT_EQ(request, request_frame(bits(left), 0));
    b.receive(0, request);
    b.session->accept({}, b.now);
    const Octets reply = b.pull_all();
    EXPECT_EQ(reply, reply_frame(bits(right), 0));
    a.receive(0, reply);
    for (MpaEnd* end : {&a, &b}) {
      const Config& own = end == &a ? left : right;
      const Config& other = end == &a ? right : left;
      EXPECT_EQ(end->session->version(), 0);
      EXPECT_EQ(end->session->negotiated().crc, own.crc || other.crc);
      EXPECT_EQ(end->session->negotiated().markers_send, other.markers_receive);
      EXPECT_EQ(end->session->negotiated().markers_receive, own.markers_receive);
      EXPECT_EQ(end->counters.starts_revision_0, 1u);
    }
  }
}

// Every other revision ends it.
TEST(Draft, EveryOtherRevisionIsRefused_MPA00_8_1_01) {
  for (int other = 1; other < 256; ++other) {
    MpaEnd b(framing::Role::Responder, revision(0));
    b.establish();
    b.receive(0, request_frame(0xc0, static_cast<uint8_t>(other)));
    ASSERT_EQ(b.events.failures, std::vector{framing::StartFailure::BadRevision});
    ASSERT_EQ(b.stream.closes, 1);
    MpaEnd a = initiator(revision(0));
    reply_to(a, reply_frame(0xc0, static_cast<uint8_t>(other)));
    ASSERT_EQ(a.events.failures, std::vector{framing::StartFailure::BadRevision});
  }
}

// The third bit is reserved. In revision 1 it rejects.
TEST(Draft, NoRejectBit_MPA00_8_1_02) {
  MpaEnd a = initiator(revision(0));
  reply_to(a, reply_frame(0xff, 0));
  EXPECT_EQ(a.events.starts.size(), 1u);
  EXPECT_TRUE(a.events.failures.empty());
  MpaEnd one = initiator(revision(1));
  reply_to(one, reply_frame(0xff, 1));
  EXPECT_EQ(one.events.failures, std::vector{framing::StartFailure::RejectedByPeer});
}

// Up to 65535 octets, over many segments, both ways.
TEST(Draft, LongPrivateData_MPA00_8_1_03) {
  for (const size_t length : {0, 1, 512, 513, 1460, 65534, 65535}) {
    const Octets data = numbered_ulpdu(7, length);
    MpaEnd a = initiator(revision(0), {}, data);
    MpaEnd b(framing::Role::Responder, revision(0));
    a.establish();
    b.establish();
    const auto send = [](MpaEnd& from, MpaEnd& to) {
      while (auto record = from.pull(1460)) {
        ASSERT_TRUE(to.receive(record->offset, record->octets));
      }
    };
    send(a, b);
    ASSERT_EQ(b.events.requests, std::vector<Octets>{data}) << length;
    ASSERT_EQ(b.session->private_data_max(), 65535u);
    b.session->accept(data, b.now);
    send(b, a);
    ASSERT_EQ(a.events.start_data, data);
    ASSERT_EQ(a.events.starts.size(), 1u);
  }
  // Revision 1 keeps to 512.
  MpaEnd c(framing::Role::Responder, revision(1, true));
  c.establish();
  c.receive(0, start_frame(wire::kMpaRequestKey, 0x40, 1, 513));
  EXPECT_EQ(c.events.failures, std::vector{framing::StartFailure::BadLength});
}

// A Reply or a close, whatever the owner answers.
TEST(Draft, ARejectionIsAReplyAndAClose_MPA00_8_1_04_MPA00_8_1_05) {
  MpaEnd b(framing::Role::Responder, revision(0));
  b.establish();
  b.receive(0, request_frame(0xc0, 0));
  b.session->reject(Octets{'n', 'o'}, b.now);
  EXPECT_EQ(b.stream.closes, 1);
  EXPECT_EQ(b.pull_all(), reply_frame(0x40, 0, {'n', 'o'}));
  EXPECT_EQ(b.events.failures, std::vector{framing::StartFailure::RejectedLocally});
  EXPECT_FALSE(b.session->left());
  MpaEnd silent(framing::Role::Responder, revision(0));  // MPA00-8.1-06: a time-out in either role
  silent.establish();
  EXPECT_EQ(silent.session->next_deadline(), base::Now{} + Config{}.start_timeout);
  silent.session->on_timer(silent.session->next_deadline());
  EXPECT_EQ(silent.events.failures, std::vector{framing::StartFailure::TimedOut});
  EXPECT_EQ(silent.stream.closes, 1);
  MpaEnd asking = initiator(revision(0));
  asking.establish();
  asking.pull_all();
  asking.session->on_timer(asking.session->next_deadline());
  EXPECT_EQ(asking.events.failures, std::vector{framing::StartFailure::TimedOut});
}

// A non-permissive end and a peer of revision 0.
TEST(Draft, NonPermissive_MPA_C_01) {
  for (const uint8_t own : {1, 2}) {
    MpaEnd b(framing::Role::Responder, revision(own));
    b.establish();
    b.receive(0, request_frame(0xc0, 0));
    EXPECT_EQ(b.stream.closes, 1);
    EXPECT_EQ(b.pull_all(), reply_frame(0x60, 1));
    EXPECT_EQ(b.events.failures, std::vector{framing::StartFailure::BadRevision});
    EXPECT_EQ(b.stream.aborts, 0);
    MpaEnd a = initiator(revision(own));
    reply_to(a, reply_frame(0xc0, 0));
    EXPECT_EQ(a.events.failures, std::vector{framing::StartFailure::BadRevision});
    EXPECT_EQ(a.stream.closes, 1);
    EXPECT_EQ(a.stream.aborts, 0);
  }
}

// The initiator asks with revision 1 and follows the peer down.
TEST(Draft, Permissive_MPA_C_02) {
  MpaEnd a = initiator(revision(1, true), {});
  a.establish();
  EXPECT_EQ(a.pull_all(), request_frame(0x40, 1));
  a.receive(0, reply_frame(0xc0, 0));
  ASSERT_EQ(a.events.starts.size(), 1u);
  EXPECT_EQ(a.events.starts[0].revision, 0);
  EXPECT_EQ(a.session->version(), 0);
  MpaEnd b(framing::Role::Responder, revision(1, true));
  b.establish();
  b.receive(0, request_frame(0xc0, 0));
  EXPECT_EQ(b.events.offers[0].revision, 0);
  b.session->accept({}, b.now);
  EXPECT_EQ(b.pull_all(), reply_frame(0xc0, 0));
  EXPECT_EQ(b.session->version(), 0);
}

// The kinds of RFC 5044 figure 14.
enum class Kind { Rdmac, NonPermissive, Permissive };

/// "close", or the version and the markers of both receive directions.
std::string outcome(Kind a_kind, bool a_markers, Kind b_kind, bool b_markers) {
  const auto config = [](Kind kind, bool markers) {
    Config c = revision(kind == Kind::Rdmac ? 0 : 1, kind == Kind::Permissive);
    c.markers_receive = markers;
    return c;
  };
  MpaEnd a = initiator(config(a_kind, a_markers), {});
  MpaEnd b(framing::Role::Responder, config(b_kind, b_markers));
  a.establish();
  b.establish();
  b.receive(0, a.pull_all());
  b.session->accept({}, b.now);
  a.receive(0, b.pull_all());
  if (!a.session->full_operation() || !b.session->full_operation()) return "close";
  EXPECT_EQ(a.session->version(), b.session->version());  // MPA-C-03
  const framing::Negotiated& x = a.session->negotiated();
  const framing::Negotiated& y = b.session->negotiated();
  EXPECT_EQ(x.markers_receive, y.markers_send);
  EXPECT_EQ(x.markers_send, y.markers_receive);
  EXPECT_EQ(x.crc, y.crc);
  return "V=" + std::to_string(a.session->version()) + " M=" + std::to_string(x.markers_receive) +
         "/" + std::to_string(y.markers_receive);
}

/// A responder of the figure's kind that is an upgraded RDMAC RNIC answers any Request with its own
/// revision; ours of the draft's profile closes instead (draft-ietf-rddp-mpa-00 s.8.1.1).
std::string rdmac_answers(Kind kind, bool markers) {
  Config config = revision(1, kind == Kind::Permissive);
  config.markers_receive = markers;
  MpaEnd a = initiator(config, {});
  reply_to(a, reply_frame(0xc0, 0));
  if (!a.session->full_operation()) return "close";
  const framing::Negotiated& x = a.session->negotiated();
  return "V=" + std::to_string(a.session->version()) + " M=" + std::to_string(x.markers_receive) +
         "/" + std::to_string(x.markers_send);
}

// MPA-C-03
TEST(Draft, Figure15_MPA_C_04) {
  constexpr Kind kR = Kind::Rdmac, kN = Kind::NonPermissive;
  EXPECT_EQ(outcome(kR, true, kR, true), "V=0 M=1/1");
  EXPECT_EQ(outcome(kR, true, kN, false), "close");
  EXPECT_EQ(outcome(kR, true, kN, true), "close");
  EXPECT_EQ(rdmac_answers(kN, false), "close");
  EXPECT_EQ(outcome(kN, false, kN, false), "V=1 M=0/0");
  EXPECT_EQ(outcome(kN, false, kN, true), "V=1 M=0/1");
  EXPECT_EQ(rdmac_answers(kN, true), "close");
  EXPECT_EQ(outcome(kN, true, kN, false), "V=1 M=1/0");
  EXPECT_EQ(outcome(kN, true, kN, true), "V=1 M=1/1");
}

TEST(Draft, Figure16_MPA_C_04_MPA_C_03) {
  constexpr Kind kR = Kind::Rdmac, kP = Kind::Permissive;
  EXPECT_EQ(outcome(kR, true, kR, true), "V=0 M=1/1");
  // "Never return an MPA Reply Frame with the M bit set to zero" to a peer of revision 0.
  EXPECT_EQ(outcome(kR, true, kP, false), "V=0 M=1/1");
  EXPECT_EQ(outcome(kR, true, kP, true), "V=0 M=1/1");
  EXPECT_EQ(rdmac_answers(kP, false), "V=0 M=1/1");
  EXPECT_EQ(outcome(kP, false, kP, false), "V=1 M=0/0");
  EXPECT_EQ(outcome(kP, false, kP, true), "V=1 M=0/1");
  EXPECT_EQ(rdmac_answers(kP, true), "V=0 M=1/1");
  EXPECT_EQ(outcome(kP, true, kP, false), "V=1 M=1/0");
  EXPECT_EQ(outcome(kP, true, kP, true), "V=1 M=1/1");
}

TEST(Draft, Figure17_MPA_C_04_MPA_C_03) {
  for (const Kind a : {Kind::NonPermissive, Kind::Permissive}) {
    for (const Kind b : {Kind::NonPermissive, Kind::Permissive}) {
      for (const bool am : {false, true}) {
        for (const bool bm : {false, true}) {
          EXPECT_EQ(outcome(a, am, b, bm),
                    "V=1 M=" + std::to_string(am) + "/" + std::to_string(bm));
        }
      }
    }
  }
}

// draft-ietf-rddp-mpa-00 s.8.1.1: who asks for revision 0 speaks the draft's own profile, whatever
// else it serves: each end chooses markers and CRC.
TEST(Draft, AWishForRevision0ChoosesMarkersAndCrc_MPA00_8_1_07) {
  Config config;
  config.crc = false;
  MpaEnd a = initiator(config, {.revision = 0});
  a.establish();
  EXPECT_EQ(a.pull_all(), request_frame(0, 0));
  a.receive(0, reply_frame(0, 0));
  ASSERT_EQ(a.events.starts.size(), 1u);
  EXPECT_FALSE(a.events.starts[0].crc || a.events.starts[0].markers_receive);
}

}  // namespace
}  // namespace rnic::mpa
