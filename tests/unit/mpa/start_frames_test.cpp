#include "mpa/start_frames.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "support/mpa_fakes.hpp"

namespace rnic::mpa {
namespace {

using test::MpaEnd;
using test::MpaPair;
using test::numbered_ulpdu;
using test::Octets;
using test::SlowEncoder;

Octets start_frame(const wire::MpaKey& key, uint8_t flags, uint8_t revision, uint16_t pd_length,
                   const Octets& private_data = {}) {
  Octets frame(key.begin(), key.end());
  frame.insert(frame.end(), {flags, revision, static_cast<uint8_t>(pd_length >> 8),
                             static_cast<uint8_t>(pd_length)});
  frame.insert(frame.end(), private_data.begin(), private_data.end());
  return frame;
}
Octets request(uint8_t flags, const Octets& data = {}) {
  return start_frame(wire::kMpaRequestKey, flags, 1, static_cast<uint16_t>(data.size()), data);
}
Octets reply(uint8_t flags, const Octets& data = {}) {
  return start_frame(wire::kMpaReplyKey, flags, 1, static_cast<uint16_t>(data.size()), data);
}

TEST(Startup, EachFailureHasItsWords) {
  std::set<std::string> words;
  constexpr auto kLast = static_cast<uint32_t>(framing::StartFailure::Unanswered);
  for (uint32_t i = 0; i <= kLast; ++i)
    words.insert(to_string(static_cast<framing::StartFailure>(i)));
  EXPECT_EQ(words.size(), kLast + 1) << "no two are alike";
  EXPECT_EQ(words.count("unknown"), 0u);
  EXPECT_STREQ(to_string(static_cast<framing::StartFailure>(kLast + 1)), "unknown");
  EXPECT_STREQ(to_string(framing::StartFailure::OutOfMemory),
               "this side has no memory for the start-up");
  EXPECT_STREQ(to_string(framing::StartFailure::Unreachable),
               "the peer is unreachable: the network tells that there is no way to it");
}

// However much of a frame has come, and whatever comes behind it: what of the next octets is the
// frame's.
TEST(Startup, WhatIsTheFramesIsKnown_MPA_7_1_2_17) {
  for (const size_t data : {0, 1, 100}) {
    Octets frame = reply(0x40, Octets(data, 7));
    const size_t size = frame.size();
    frame.insert(frame.end(), 50, 0xee);
    const base::ByteView octets(frame);
    for (size_t fed = 0; fed <= size; ++fed) {
      for (const size_t end : {fed + 1, size, size + 1, size + 50}) {
        if (end <= fed || end > frame.size()) continue;
        const Config config;
        StartFrameParser parser(framing::Role::Initiator, config, 1);
        ASSERT_EQ(parser.feed(octets.first(fed)), fed);
        EXPECT_EQ(parser.frame_part(octets.subspan(fed, end - fed)), std::min(end, size) - fed)
            << data << " " << fed << " " << end;
      }
    }
  }
}

// MPA-7.1.1-01 MPA-7.1.1-08 MPA-7.1.1-10 MPA-7.1.2-01 MPA-7.1-04
TEST(Startup, RequestOctets_MPA_7_1_1_02) {
  Config config;
  config.markers_receive = true;
  const Octets data{1, 2, 3};
  MpaEnd end(framing::Role::Initiator, config, data);
  end.establish();
  EXPECT_GT(end.stream.readies, 0);
  EXPECT_EQ(end.pull_all(), request(0xc0, data));
  EXPECT_FALSE(end.records[0].pulled.atomic);
  config.markers_receive = config.crc = false;
  MpaEnd plain(framing::Role::Initiator, config);
  plain.establish();
  EXPECT_EQ(plain.pull_all(), request(0));
}

// MPA-7.1.2-05: nothing is sent before the owner has answered.
// UNH-MPA-1-01
TEST(Startup, ReplyOctets_MPA_7_1_1_03_MPA_7_1_2_02) {
  MpaEnd end(framing::Role::Responder, {});
  end.establish();
  EXPECT_TRUE(end.pull_all().empty());
  end.receive(0, request(0x40, {9}));
  EXPECT_EQ(end.events.requests, (std::vector<Octets>{{9}}));
  EXPECT_TRUE(end.pull_all().empty());
  const Octets data{7, 8};
  end.session->accept(data, end.now);
  EXPECT_FALSE(end.session->full_operation());
  EXPECT_EQ(end.pull_all(), reply(0x40, data));
  EXPECT_TRUE(end.session->full_operation());
  EXPECT_EQ(end.events.starts.size(), 1u);
}

// MPA-7.1.2-17 MPA-7.1.1-13-a: private data of every length, both ways,
// in one piece. CM6581-6-03: the responder, whose own revision is 2, serves a Request of 1.
// UNH-MPA-1-06
TEST(Startup, PrivateDataOfEveryLength_MPA_7_1_1_14_MPA_7_1_4_01) {
  ASSERT_EQ(Config{}.revision, 2);
  for (size_t length = 0; length <= 512; ++length) {
    const Octets data = numbered_ulpdu(5, length);
    MpaEnd a(framing::Role::Initiator, {}, data);
    MpaEnd b(framing::Role::Responder, {});
    a.establish();
    b.establish();
    b.receive(0, a.pull_all());
    ASSERT_EQ(b.events.requests, std::vector<Octets>{data});
    b.session->accept(data, b.now);
    a.receive(0, b.pull_all());
    ASSERT_EQ(a.events.starts.size(), 1u);
    ASSERT_EQ(a.events.start_data, data);
    ASSERT_EQ(a.events.starts[0].revision, 1);  // MPA-7.1.1-12
    ASSERT_EQ(a.session->version(), 1);         // MPA-3-09
    ASSERT_EQ(a.user.may_sends, 1);
    ASSERT_EQ(b.user.may_sends, 0);
  }
}

// One octet per segment; and two octets the wrong way round.
TEST(Startup, FramesOneOctetAtATime_MPA_7_1_2_17) {
  const Octets data = numbered_ulpdu(5, 512);
  for (const bool swapped : {false, true}) {
    MpaEnd a(framing::Role::Initiator, {}, data);
    MpaEnd b(framing::Role::Responder, {});
    a.establish();
    b.establish();
    const auto trickle = [&](MpaEnd& to, const Octets& octets) {
      for (size_t i = 0; i < octets.size(); i += 2) {
        for (const size_t k : {i + (swapped ? 1 : 0), i + (swapped ? 0 : 1)}) {
          to.receive(k, {octets.data() + k, 1});
        }
      }
    };
    trickle(b, a.pull_all());
    ASSERT_EQ(b.events.requests, std::vector<Octets>{data});
    b.session->accept(data, b.now);
    trickle(a, b.pull_all());
    ASSERT_EQ(a.events.starts.size(), 1u);
    ASSERT_EQ(held_octets(*a.own_store), 0u);
  }
}

// Start frames are ordinary records: pulled in parts, rebuilt from the kept octets.
TEST(Startup, RequestInPartsAndAgain_MPA_7_1_5_03) {
  const Octets data = numbered_ulpdu(5, 300);
  MpaEnd a(framing::Role::Initiator, {}, data);
  a.establish();
  Octets all;
  while (auto record = a.pull(33)) {
    all.insert(all.end(), record->octets.begin(), record->octets.end());
    Octets again(record->octets.size());
    llp::Frame frame(again.data(), static_cast<uint32_t>(again.size()));
    ASSERT_TRUE(a.session->rebuild(record->pulled.tag, record->offset,
                                   static_cast<uint32_t>(again.size()), frame));
    ASSERT_EQ(again, record->octets);
  }
  EXPECT_EQ(all, request(0x40, data));
  a.session->released(a.records.back().pulled.tag, all.size());
  EXPECT_TRUE(a.user.sent.empty());
}

// MPA00-7.2-01: this provider does as its administrator says, whenever the peer agrees.
// MPA-4.4-01 MPA-4.4-02 MPA-4.4-03 MPA-4.4-04: both make a CRC exactly when one of
// them wants it, in what they repeat as well, and look at it from the first FPDU to the last.
// UNH-MPA-2-04
TEST(Startup, CrcTruthTable_MPA_7_1_1_07) {
  for (const bool a_wants : {false, true}) {
    for (const bool b_wants : {false, true}) {
      Config a, b;
      a.crc = a_wants;
      b.crc = b_wants;
      MpaPair pair(a, b);
      pair.start();
      const bool on = a_wants || b_wants;
      EXPECT_EQ(pair.a.session->negotiated().crc, on);
      EXPECT_EQ(pair.b.session->negotiated().crc, on);
      SlowEncoder encoder(20, false, on);
      size_t at = 0;
      const auto exchange = [&](uint32_t number) {
        const Octets ulpdu = numbered_ulpdu(number, 200 + number);
        at = encoder.stream.size();
        encoder.add(ulpdu);
        const Octets expected(encoder.stream.begin() + static_cast<long>(at), encoder.stream.end());
        const auto send = [&](MpaEnd& from, MpaEnd& to) {
          from.user.to_send = {ulpdu};
          const auto record = from.pull(1460);
          ASSERT_TRUE(record);
          EXPECT_EQ(record->octets, expected);
          Octets again(expected.size());
          llp::Frame frame(again.data(), static_cast<uint32_t>(again.size()));
          ASSERT_TRUE(from.session->rebuild(record->pulled.tag, record->offset,
                                            static_cast<uint32_t>(again.size()), frame));
          EXPECT_EQ(again, expected);
          EXPECT_TRUE(to.receive(record->offset, record->octets));
          ASSERT_EQ(to.user.delivered.size(), number + 1);
          EXPECT_EQ(to.user.delivered.back(), ulpdu);
        };
        send(pair.a, pair.b);
        send(pair.b, pair.a);
      };
      for (uint32_t i = 0; i < 40; ++i) exchange(i);
      // A wrong CRC is seen exactly when CRC is on.
      const Octets fpdu = {0, 2, 1, 2, 0xde, 0xad, 0xbe, 0xef};
      for (MpaEnd* end : {&pair.a, &pair.b}) {
        EXPECT_EQ(end->receive(20 + encoder.stream.size(), fpdu), !on);
        EXPECT_EQ(end->user.delivered.size(), on ? 40u : 41u);
      }
    }
  }
  EXPECT_TRUE(Config{}.crc);
}

// MPA-7.1.2-12: four combinations, four behaviours on the wire.
TEST(Startup, MarkerTruthTable_MPA_7_1_1_05_MPA_7_1_1_06) {
  for (const bool a_wants : {false, true}) {
    for (const bool b_wants : {false, true}) {
      Config a, b;
      a.markers_receive = a_wants;
      b.markers_receive = b_wants;
      MpaPair pair(a, b);
      pair.start();
      const Octets ulpdu = numbered_ulpdu(1, 600);
      SlowEncoder to_b(20, b_wants), to_a(20, a_wants);
      to_b.add(ulpdu);
      to_a.add(ulpdu);
      pair.a.user.to_send = {ulpdu};
      pair.b.user.to_send = {ulpdu};
      const Octets from_a = pair.a.pull_all();
      EXPECT_EQ(from_a, to_b.stream);
      pair.b.receive(20, from_a);
      const Octets from_b = pair.b.pull_all();
      EXPECT_EQ(from_b, to_a.stream);
      pair.a.receive(20, from_b);
      EXPECT_EQ(pair.a.user.delivered.size(), 1u);
      EXPECT_EQ(pair.b.user.delivered.size(), 1u);
    }
  }
}

// MPA-7.1.2-06: who may send when.
// UNH-MPA-1-11 UNH-MPA-1-12
TEST(Startup, ResponderSendsAfterItsFirstFpdu_MPA_7_1_2_09_BUG_17) {
  MpaPair pair;
  pair.a.establish();
  pair.b.establish();
  pair.a.user.to_send = {numbered_ulpdu(1, 100)};
  pair.b.user.to_send = {numbered_ulpdu(2, 100)};
  const Octets req = pair.a.pull_all();
  EXPECT_EQ(req.size(), 20u);  // nothing behind the Request
  pair.b.receive(0, req);
  pair.b.session->accept({}, pair.b.now);
  pair.b.session->ready();
  const Octets rep = pair.b.pull_all();
  EXPECT_EQ(rep.size(), 20u);  // nothing glued to the Reply
  pair.a.receive(0, rep);
  EXPECT_EQ(pair.a.user.may_sends, 1);
  const Octets fpdu = pair.a.pull_all();
  pair.b.receive(20, {fpdu.data(), 50});
  EXPECT_EQ(pair.b.user.may_sends, 0);
  EXPECT_TRUE(pair.b.pull_all().empty());
  pair.b.receive(70, {fpdu.data() + 50, fpdu.size() - 50});
  EXPECT_EQ(pair.b.user.may_sends, 1);
  EXPECT_FALSE(pair.b.pull_all().empty());
}

// Before an FPDU of the initiator proved right the responder sends nothing, not even
// a Terminate about the one that did not: it closes. The initiator, and a responder that has seen a
// right one, leave that to their user.
TEST(Startup, NotEvenATerminateBeforeTheFirstFpdu_MPA_7_1_2_09) {
  for (const bool seen : {false, true}) {
    for (const bool responder : {false, true}) {
      Config config;
      config.silent_drop = false;
      MpaPair pair(config, config);
      pair.start();
      MpaEnd& end = responder ? pair.b : pair.a;
      SlowEncoder encoder(20, false);
      if (seen) encoder.add(numbered_ulpdu(1, 60));
      end.receive(20, encoder.stream);
      EXPECT_EQ(end.user.delivered.size(), seen ? 1u : 0u);
      const Octets wrong = {0, 2, 1, 2, 0xde, 0xad, 0xbe, 0xef};
      end.receive(20 + encoder.stream.size(), wrong);
      EXPECT_EQ(end.user.errors, std::vector{llp::FramingError::Crc});
      end.user.to_send = {numbered_ulpdu(9, 60)};  // the Terminate
      end.session->ready();
      const bool silent = responder && !seen;
      EXPECT_EQ(end.pull_all().empty(), silent);
      EXPECT_EQ(end.stream.closes + end.stream.aborts != 0, silent);
    }
  }
}

framing::StartFailure failure_of(framing::Role role, const Octets& octets,
                                 const Config& config = {}) {
  MpaEnd end(role, config);
  end.establish();
  end.pull_all();
  end.receive(0, octets);
  EXPECT_EQ(end.events.failures.size(), 1u);
  EXPECT_TRUE(end.events.starts.empty());
  EXPECT_TRUE(end.events.requests.empty());
  EXPECT_GE(end.stream.closes, 1);  // MPA-8-06
  EXPECT_EQ(end.counters.start_failures, 1u);
  EXPECT_TRUE(end.pull_all().empty());
  EXPECT_EQ(end.session->next_deadline(), base::kNever);
  end.receive(octets.size(), {octets.data(), octets.size()});  // ignored
  EXPECT_EQ(end.events.failures.size(), 1u);
  return end.events.failures.empty() ? framing::StartFailure::TimedOut : end.events.failures[0];
}

// MPA-7.1.2-03 MPA-7.1.2-07
// UNH-MPA-1-02
TEST(Startup, WrongKeyAtEachOctet_MPA_7_1_1_04_MPA_7_1_2_10_MPA_8_06) {
  for (size_t i = 0; i < 16; ++i) {
    Octets req = request(0x40), rep = reply(0x40);
    req[i] ^= 0x20;
    rep[i] ^= 0x20;
    EXPECT_EQ(failure_of(framing::Role::Responder, {req.begin(), req.begin() + long(i) + 1}),
              framing::StartFailure::BadKey);
    EXPECT_EQ(failure_of(framing::Role::Initiator, {rep.begin(), rep.begin() + long(i) + 1}),
              framing::StartFailure::BadKey);
  }
  EXPECT_EQ(failure_of(framing::Role::Responder, reply(0x40)), framing::StartFailure::BadKey);
}

// MPAA-8-02
TEST(Startup, OtherProtocolsAreRefusedAtOnce_MPAA_8_05_MPAA_8_06_MPAA_8_07) {
  for (const std::string text : {"GET / HTTP/1.1\r\n", "220 mail ESMTP\r\n", "* OK IMAP4\r\n",
                                 "\x16\x03\x01", "MPA ID Reg"}) {
    const Octets octets(text.begin(), text.end());
    EXPECT_EQ(failure_of(framing::Role::Responder, octets), framing::StartFailure::BadKey);
    EXPECT_EQ(failure_of(framing::Role::Initiator, octets), framing::StartFailure::BadKey);
  }
  EXPECT_EQ(failure_of(framing::Role::Responder, Octets(8, 0)), framing::StartFailure::BadKey);
}

// MPAA-8-04: an echo server looks like a second initiator.
TEST(Startup, TwoInitiators_MPA_7_1_2_13) {
  EXPECT_EQ(failure_of(framing::Role::Initiator, request(0x40)),
            framing::StartFailure::BothInitiators);
  Octets key = request(0x40);
  key.resize(wire::kMpaKeySize);  // the key alone says it, and no octet less of it
  EXPECT_EQ(failure_of(framing::Role::Initiator, key), framing::StartFailure::BothInitiators);
  Octets almost = request(0x40);
  almost[14] = 'x';
  EXPECT_EQ(failure_of(framing::Role::Initiator, almost), framing::StartFailure::BadKey);
}

// UNH-MPA-1-03
TEST(Startup, OtherRevisions_MPA_7_1_1_11) {
  for (const uint8_t revision : {3, 4, 255}) {
    EXPECT_EQ(
        failure_of(framing::Role::Responder, start_frame(wire::kMpaRequestKey, 0x40, revision, 0)),
        framing::StartFailure::BadRevision);
    EXPECT_EQ(
        failure_of(framing::Role::Initiator, start_frame(wire::kMpaReplyKey, 0x40, revision, 0)),
        framing::StartFailure::BadRevision);
  }
}

// UNH-MPA-1-06
TEST(Startup, PrivateDataTooLong_MPA_7_1_1_13_b_MPA_7_1_2_15) {
  for (const uint16_t length : {513, 514, 65535}) {
    EXPECT_EQ(failure_of(framing::Role::Responder,
                         start_frame(wire::kMpaRequestKey, 0x40, 1, length, Octets(length, 1))),
              framing::StartFailure::BadLength);
    EXPECT_EQ(
        failure_of(framing::Role::Initiator, start_frame(wire::kMpaReplyKey, 0x40, 1, length)),
        framing::StartFailure::BadLength);
  }
}

// Reserved bits in both, R in the Request.
// UNH-MPA-1-04 UNH-MPA-1-05
TEST(Startup, ReservedBitsAndRInTheRequestAreIgnored_MPA_7_1_1_10_MPA_7_1_1_08_BUG_16) {
  MpaEnd b(framing::Role::Responder, {});
  b.establish();
  b.receive(0, request(0x7f));
  EXPECT_EQ(b.events.requests.size(), 1u);
  EXPECT_TRUE(b.events.failures.empty());
  MpaEnd a(framing::Role::Initiator, {});
  a.establish();
  a.pull_all();
  a.receive(0, reply(0x5f));
  EXPECT_EQ(a.events.starts.size(), 1u);
}

// With the Reply's private data.
// UNH-MPA-1-10 UNH-MPA-1-05
TEST(Startup, Rejection_MPA_7_1_1_09_MPA_7_1_2_04) {
  MpaEnd a(framing::Role::Initiator, {});
  MpaEnd b(framing::Role::Responder, {});
  a.establish();
  b.establish();
  b.receive(0, a.pull_all());
  const Octets why{'n', 'o'};
  b.session->reject(why, b.now);
  EXPECT_TRUE(b.events.failures.empty());
  const Octets rep = b.pull_all();
  EXPECT_EQ(rep, reply(0x60, why));
  EXPECT_EQ(b.events.failures, std::vector{framing::StartFailure::RejectedLocally});
  a.receive(0, rep);
  EXPECT_EQ(a.events.failures, std::vector{framing::StartFailure::RejectedByPeer});
  EXPECT_EQ(a.events.start_data, why);
  // MPA is left, TCP is open.
  EXPECT_EQ(a.stream.closes + b.stream.closes + a.stream.aborts + b.stream.aborts, 0);
  EXPECT_TRUE(a.session->left() && b.session->left());
  EXPECT_EQ(a.session->next_deadline(), base::kNever);
  EXPECT_EQ(a.user.may_sends, 0);
}

TEST(Startup, MarkersRefused_MPA_7_1_1_06) {
  Config config;
  config.markers_send_allowed = false;
  EXPECT_EQ(failure_of(framing::Role::Responder, request(0xc0), config),
            framing::StartFailure::MarkersRefused);
  EXPECT_EQ(failure_of(framing::Role::Initiator, reply(0xc0), config),
            framing::StartFailure::MarkersRefused);
}

// The user of full operation is bound when the frames have been exchanged, not before.
TEST(Startup, NobodyIsNeededBeforeFullOperation_MPA_7_1_05) {
  MpaEnd a(framing::Role::Initiator, {});
  MpaEnd b(framing::Role::Responder, {});
  a.session->unbind();
  b.session->unbind();
  a.establish();
  b.establish();
  ASSERT_TRUE(b.receive(0, a.pull_all()));
  ASSERT_EQ(b.events.requests.size(), 1u);
  b.session->bind(b.user);
  b.session->accept({}, b.now);
  a.session->bind(a.user);
  ASSERT_TRUE(a.receive(0, b.pull_all()));
  EXPECT_EQ(a.events.starts.size(), 1u);
  EXPECT_EQ(b.events.starts.size(), 1u);
}

// Fewer octets than PD_Length says, and then the end.
TEST(Startup, PrivateDataThatDoesNotCome_MPA_7_1_1_13_c) {
  for (const size_t had : {0u, 1u, 99u}) {
    MpaEnd b(framing::Role::Responder, {});
    b.establish();
    b.receive(0, start_frame(wire::kMpaRequestKey, 0x40, 1, 100, Octets(had, 7)));
    EXPECT_TRUE(b.events.requests.empty());
    EXPECT_TRUE(b.events.failures.empty());
    b.session->peer_finished(b.now);
    EXPECT_EQ(b.events.failures, std::vector{framing::StartFailure::StreamEnded});
    EXPECT_GE(b.stream.closes, 1);
  }
}

// MPA-7.1.1-13-c: in the Request's segment, behind it, behind
// accept() but before the Reply was sent.
// UNH-MPA-1-11 UNH-MPA-1-13
TEST(Startup, DataBeforeTheReply_MPA_7_1_2_18) {
  SlowEncoder fpdus(20, false);
  fpdus.add(numbered_ulpdu(1, 40));
  Octets glued = request(0x40);
  glued.insert(glued.end(), fpdus.stream.begin(), fpdus.stream.end());
  EXPECT_EQ(failure_of(framing::Role::Responder, glued), framing::StartFailure::UnexpectedData);
  for (const bool accepted : {false, true}) {
    MpaEnd b(framing::Role::Responder, {});
    b.establish();
    b.receive(0, request(0x40));
    if (accepted) b.session->accept({}, b.now);
    b.receive(20, fpdus.stream);
    EXPECT_EQ(b.events.failures, std::vector{framing::StartFailure::UnexpectedData});
    EXPECT_TRUE(b.user.placed.empty());
    EXPECT_TRUE(b.pull_all().empty());
  }
  MpaEnd early(framing::Role::Responder, {});  // the FPDU overtakes the Request
  early.establish();
  early.receive(20, fpdus.stream);
  early.receive(0, request(0x40));
  EXPECT_EQ(early.events.failures, std::vector{framing::StartFailure::UnexpectedData});
  EXPECT_EQ(held_octets(*early.own_store), 0u);
}

// FPDUs in the Reply's segment, and FPDUs that overtake the Reply.
// UNH-MPA-1-13
TEST(Startup, FpdusRightBehindTheReply_MPA_7_1_01) {
  SlowEncoder fpdus(20, true);
  for (uint32_t i = 0; i < 5; ++i) fpdus.add(numbered_ulpdu(i, 300));
  Octets all = reply(0x40);
  all.insert(all.end(), fpdus.stream.begin(), fpdus.stream.end());
  Config config;
  config.markers_receive = true;
  for (size_t cut = 1; cut < all.size(); cut += 7) {
    for (const bool swapped : {false, true}) {
      MpaEnd a(framing::Role::Initiator, config);
      a.establish();
      a.pull_all();
      const base::ByteView whole(all);
      if (swapped) a.receive(cut, whole.subspan(cut));
      a.receive(0, whole.first(cut));
      if (!swapped) a.receive(cut, whole.subspan(cut));
      ASSERT_EQ(a.events.starts.size(), 1u);
      ASSERT_EQ(a.user.delivered.size(), 5u) << cut << swapped;
      ASSERT_EQ(a.user.faults, 0);
      ASSERT_EQ(held_octets(*a.own_store), 0u);
    }
  }
}

// The time-out covers the whole exchange, trickle or not.
// UNH-MPA-1-14
TEST(Startup, TimeOut_MPA_7_1_2_14_MPA_7_1_2_16) {
  for (const framing::Role role : {framing::Role::Initiator, framing::Role::Responder}) {
    MpaEnd end(role, {});
    EXPECT_EQ(end.session->next_deadline(), base::kNever);
    end.establish();
    end.pull_all();
    const base::Now deadline = end.session->next_deadline();
    EXPECT_EQ(deadline, base::Now{} + std::chrono::seconds(60));
    const Octets frame = role == framing::Role::Initiator ? reply(0) : request(0);
    for (size_t i = 0; i < 19; ++i) {
      end.now += std::chrono::seconds(3);
      end.receive(i, {frame.data() + i, 1});
    }
    EXPECT_EQ(end.session->next_deadline(), deadline);
    end.session->on_timer(deadline - base::Duration(1));
    EXPECT_TRUE(end.events.failures.empty());
    end.session->on_timer(deadline);
    EXPECT_EQ(end.events.failures, std::vector{framing::StartFailure::TimedOut});
    EXPECT_EQ(end.stream.closes, 1);
    end.session->on_timer(deadline + base::Duration(1));
    EXPECT_EQ(end.events.failures.size(), 1u);
  }
  MpaPair pair;
  pair.start();
  EXPECT_EQ(pair.a.session->next_deadline(), base::kNever);
  EXPECT_EQ(pair.b.session->next_deadline(), base::kNever);
}

// MPA00-5.1-01: the stream ends in each phase; one failure, one ended().
TEST(Startup, StreamEnds_MPA_8_01) {
  MpaEnd idle(framing::Role::Initiator, {});
  idle.session->ended(StreamEnd::Refused, idle.now);
  EXPECT_EQ(idle.events.failures, std::vector{framing::StartFailure::Refused});
  EXPECT_EQ(framing::start_failure_of(StreamEnd::Unreachable, false),
            framing::StartFailure::Unreachable);
  EXPECT_EQ(framing::start_failure_of(StreamEnd::TimedOut, false),
            framing::StartFailure::Unanswered);
  EXPECT_EQ(framing::start_failure_of(StreamEnd::TimedOut, true),
            framing::StartFailure::StreamEnded);
  MpaEnd waiting(framing::Role::Responder, {});
  waiting.establish();
  waiting.receive(0, request(0));
  waiting.session->peer_finished(waiting.now);
  EXPECT_EQ(waiting.events.failures, std::vector{framing::StartFailure::StreamEnded});
  waiting.session->accept({}, waiting.now);  // too late: ignored
  EXPECT_TRUE(waiting.pull_all().empty());
  waiting.session->ended(StreamEnd::PeerReset, waiting.now);
  waiting.session->ended(StreamEnd::PeerReset, waiting.now);
  EXPECT_EQ(waiting.events.failures.size(), 1u);
  EXPECT_EQ(waiting.user.ends, std::vector{StreamEnd::PeerReset});
}

TEST(Startup, EveryFailureHasAText_MPA_7_1_1_04) {
  for (int i = 0; i <= static_cast<int>(framing::StartFailure::RtrMissing); ++i) {
    EXPECT_STRNE(to_string(static_cast<framing::StartFailure>(i)), "unknown");
  }
}

}  // namespace
}  // namespace rnic::mpa
