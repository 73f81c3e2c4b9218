// Start-ups of MPA, frame by frame: what no single test of a rule shows.

#include <gtest/gtest.h>

#include <array>

#include "support/mpa_fakes.hpp"
#include "unit/mpa/start_frames.hpp"

namespace rnic::mpa {
namespace {

using test::MpaEnd;
using test::MpaPair;
using test::numbered_ulpdu;
using test::Octets;
using test::SlowEncoder;

const framing::StartOptions kReads{.exchange_reads = true, .ird = 4, .ord = 4};

Config of_revision(uint8_t revision, bool permissive = false) {
  Config config;
  config.revision = revision;
  config.permissive = permissive;
  return config;
}

// The key as it should be, beside each octet of it wrong.
TEST(StartRows, OnlyTheRightKey_UNH_MPA_1_02) {
  for (size_t wrong = 0; wrong <= 16; ++wrong) {
    Octets request = request_frame(0x40, 1), reply = reply_frame(0x40, 1);
    if (wrong < 16) request[wrong] ^= 1, reply[wrong] ^= 1;
    MpaEnd b(framing::Role::Responder, {});
    b.establish();
    b.receive(0, request);
    EXPECT_EQ(b.events.requests.size(), wrong == 16 ? 1u : 0u);
    EXPECT_EQ(b.stream.closes, wrong == 16 ? 0 : 1);
    b.session->accept({}, b.now);
    EXPECT_EQ(b.pull_all().size(), wrong == 16 ? 20u : 0u);
    MpaEnd a(framing::Role::Initiator, {});
    a.establish();
    a.pull_all();
    a.user.to_send = {numbered_ulpdu(1, 40)};
    a.receive(0, reply);
    EXPECT_EQ(a.events.starts.size(), wrong == 16 ? 1u : 0u);
    EXPECT_EQ(a.stream.closes, wrong == 16 ? 0 : 1);
    EXPECT_EQ(a.pull_all().empty(), wrong != 16);
  }
}

TEST(StartRows, EveryRevision_UNH_MPA_1_03) {
  struct Case {
    uint8_t own;
    bool permissive;
    std::array<bool, 4> served;  // Requests of revision 0 to 3
  };
  for (const Case& c :
       {Case{0, false, {true, false, false, false}}, Case{1, false, {false, true, false, false}},
        Case{1, true, {true, true, false, false}}, Case{2, false, {false, true, true, false}},
        Case{2, true, {true, true, true, false}}}) {
    for (uint8_t revision = 0; revision < 4; ++revision) {
      MpaEnd b(framing::Role::Responder, of_revision(c.own, c.permissive));
      b.establish();
      b.receive(0, request_frame(revision == 0 ? 0xc0 : 0x40, revision));
      const bool served = c.served[revision];
      EXPECT_EQ(b.events.requests.size(), served ? 1u : 0u) << int{c.own} << int{revision};
      EXPECT_EQ(b.stream.closes, served ? 0 : 1);
      if (served) {
        b.session->accept({}, b.now);
        EXPECT_EQ(b.pull_all().at(17), revision) << "the Reply has the Request's revision";
      }
    }
  }
  for (uint8_t asked = 0; asked < 3; ++asked) {
    for (uint8_t revision = 0; revision < 4; ++revision) {
      const framing::StartOptions start_options = asked == 2 ? kReads : framing::StartOptions{};
      MpaEnd a(framing::Role::Initiator, of_revision(asked), {}, 512u << 10, nullptr,
               start_options);
      a.establish();
      EXPECT_EQ(a.pull_all().at(17), asked);
      const Octets data = revision == 2 ? Octets{0, 4, 0, 4} : Octets{};
      const uint8_t flags = revision == 0 ? 0xc0 : revision == 2 ? 0x50 : 0x40;
      a.receive(0, reply_frame(flags, revision, data));
      EXPECT_EQ(a.events.starts.size(), revision == asked ? 1u : 0u) << int{asked} << int{revision};
      EXPECT_EQ(a.stream.closes, revision == asked ? 0 : 1);
    }
  }
}

TEST(StartRows, PrivateDataCutByTheFin_UNH_MPA_1_07) {
  for (const framing::Role role : {framing::Role::Initiator, framing::Role::Responder}) {
    const Octets data = numbered_ulpdu(3, 10);
    const Octets frame = role == framing::Role::Initiator ? reply_frame(0x40, 1, data)
                                                          : request_frame(0x40, 1, data);
    for (size_t n = 1; n <= frame.size(); ++n) {
      MpaEnd end(role, {});
      end.establish();
      end.pull_all();
      end.receive(0, {frame.data(), n});
      end.session->peer_finished(end.now);
      const bool whole = n == frame.size();
      const bool started = role == framing::Role::Initiator && whole;
      EXPECT_EQ(end.events.requests.size(), role == framing::Role::Responder && whole ? 1u : 0u);
      EXPECT_EQ(end.events.starts.size(), started ? 1u : 0u);
      EXPECT_EQ(end.events.failures.size(), started ? 0u : 1u) << n;
      EXPECT_EQ(end.session->next_deadline(), base::kNever);
      EXPECT_TRUE(end.pull_all().empty());
    }
  }
}

// Both bits of both frames: the frames, the FPDUs of both directions, and a wrong
// CRC.
TEST(StartRows, MarkersAndCrcInAllCombinations_UNH_MPA_1_09) {
  for (uint32_t bits = 0; bits < 16; ++bits) {
    Config a, b;
    a.markers_receive = (bits & 1) != 0, a.crc = (bits & 2) != 0;
    b.markers_receive = (bits & 4) != 0, b.crc = (bits & 8) != 0;
    const bool crc = a.crc || b.crc;
    MpaPair pair(a, b);
    pair.start();
    EXPECT_EQ(pair.a.records.at(0).octets.at(16) & 0xc0, (bits & 1) << 7 | (bits & 2) << 5);
    // A Reply repeats the C of its Request.
    EXPECT_EQ(pair.b.records.at(0).octets.at(16) & 0xc0, (bits & 4) << 5 | (crc ? 0x40 : 0));
    const Octets ulpdu = numbered_ulpdu(1, 1201);
    SlowEncoder to_b(20, b.markers_receive, crc), to_a(20, a.markers_receive, crc);
    to_b.add(ulpdu);
    to_a.add(ulpdu);
    pair.a.user.to_send = pair.b.user.to_send = {ulpdu};
    const Octets there = pair.a.pull_all();
    EXPECT_EQ(there, to_b.stream) << bits;
    pair.b.receive(20, there);
    const Octets back = pair.b.pull_all();
    EXPECT_EQ(back, to_a.stream) << bits;
    pair.a.receive(20, back);
    EXPECT_EQ(pair.a.user.delivered.size() + pair.b.user.delivered.size(), 2u);
    const size_t next = to_b.stream.size();
    to_b.add(ulpdu);
    to_b.stream.back() ^= 1;
    const base::ByteView all(to_b.stream);
    EXPECT_EQ(pair.b.receive(20 + next, all.subspan(next)), !crc);
    EXPECT_EQ(pair.b.user.delivered.size(), crc ? 1u : 2u);
  }
}

/// An end in one state of its start-up.
struct Phase {
  const char* name;
  framing::Role role;
  std::function<void(MpaEnd&)> enter;
  bool full_operation = false;
};

const std::vector<Phase> kPhases{
    {"before the connection", framing::Role::Initiator, [](MpaEnd&) {}},
    {"before the connection", framing::Role::Responder, [](MpaEnd&) {}},
    {"Request not sent", framing::Role::Initiator, [](MpaEnd& e) { e.establish(); }},
    {"half of the Request sent", framing::Role::Initiator,
     [](MpaEnd& e) {
       e.establish();
       e.pull(10);
     }},
    {"Request sent", framing::Role::Initiator,
     [](MpaEnd& e) {
       e.establish();
       e.pull_all();
     }},
    {"half of the Reply", framing::Role::Initiator,
     [](MpaEnd& e) {
       e.establish();
       e.pull_all();
       e.receive(0, {reply_frame(0x40, 1).data(), 10});
     }},
    {"an FPDU before the Reply", framing::Role::Initiator,
     [](MpaEnd& e) {
       e.establish();
       e.pull_all();
       e.receive(20, Octets(100));
     }},
    {"full operation", framing::Role::Initiator,
     [](MpaEnd& e) {
       e.establish();
       e.pull_all();
       e.receive(0, reply_frame(0x40, 1));
     },
     true},
    {"no Request", framing::Role::Responder, [](MpaEnd& e) { e.establish(); }},
    {"half of the Request", framing::Role::Responder,
     [](MpaEnd& e) {
       e.establish();
       e.receive(0, {request_frame(0x40, 1).data(), 10});
     }},
    {"the owner has the Request", framing::Role::Responder,
     [](MpaEnd& e) {
       e.establish();
       e.receive(0, request_frame(0x40, 1));
     }},
    {"Reply not sent", framing::Role::Responder,
     [](MpaEnd& e) {
       e.establish();
       e.receive(0, request_frame(0x40, 1));
       e.session->accept({}, e.now);
     }},
    {"rejection not sent", framing::Role::Responder,
     [](MpaEnd& e) {
       e.establish();
       e.receive(0, request_frame(0x40, 1));
       e.session->reject({}, e.now);
     }},
    {"full operation", framing::Role::Responder,
     [](MpaEnd& e) {
       e.establish();
       e.receive(0, request_frame(0x40, 1));
       e.session->accept({}, e.now);
       e.pull_all();
     },
     true}};

TEST(StartRows, FinAndResetInEachState_UNH_MPA_1_15) {
  for (const Phase& phase : kPhases) {
    for (const bool reset : {false, true}) {
      SCOPED_TRACE(std::string(phase.name) + (reset ? ", RST" : ", FIN"));
      MpaEnd end(phase.role, {});
      phase.enter(end);
      EXPECT_TRUE(end.events.failures.empty()) << "the state stands without it";
      EXPECT_EQ(end.events.starts.size(), phase.full_operation ? 1u : 0u);
      const bool connected = end.emss != 0 && std::string(phase.name) != "before the connection";
      if (!reset && !connected) continue;  // a FIN needs a connection
      if (!reset) end.session->peer_finished(end.now);
      // The peer may have closed and still read our rejection.
      const bool answers = std::string(phase.name) == "rejection not sent";
      if (!reset && !answers) {
        EXPECT_EQ(end.session->next_deadline(), base::kNever);
      }
      end.session->ended(reset ? StreamEnd::PeerReset : StreamEnd::Closed, end.now);
      EXPECT_EQ(end.session->next_deadline(), base::kNever);
      EXPECT_EQ(end.events.failures.size(), phase.full_operation ? 0u : 1u);
      EXPECT_EQ(end.events.starts.size(), phase.full_operation ? 1u : 0u);
      EXPECT_EQ(end.user.ends.size(), 1u);
      EXPECT_EQ(end.user.finished.size(), phase.full_operation && !reset ? 1u : 0u);
      EXPECT_EQ(held_octets(*end.own_store), 0u);
      EXPECT_TRUE(end.pull_all().empty());
    }
  }
}

/// The four octets of enhanced data.
struct Enhanced {
  bool a, b, c, d;
  uint16_t ird, ord;
  [[nodiscard]] Octets octets() const {
    Octets out(4);
    base::store_be16(out.data(), static_cast<uint16_t>(a << 15 | b << 14 | ird));
    base::store_be16(out.data() + 2, static_cast<uint16_t>(c << 15 | d << 14 | ord));
    return out;
  }
  static Enhanced read(const Octets& frame) {
    const uint16_t first = base::load_be16(&frame.at(20)), second = base::load_be16(&frame.at(22));
    return {(first >> 15) != 0,
            (first >> 14 & 1) != 0,
            (second >> 15) != 0,
            (second >> 14 & 1) != 0,
            static_cast<uint16_t>(first & 0x3fff),
            static_cast<uint16_t>(second & 0x3fff)};
  }
};

// Each combination of the control flags as a Request, with depths below, at and above
// the responder's own and 0x3FFF; the Reply octet by octet. S in revision 1 is a reserved bit.
TEST(StartRows, EveryEnhancedRequest_UNH_MPA_1_16) {
  constexpr std::array<uint16_t, 6> kDepths{0, 1, 4, 5, 128, 0x3fff};
  for (uint32_t flags = 0; flags < 16; ++flags) {
    for (const uint16_t ird : kDepths) {
      for (const uint16_t ord : kDepths) {
        const Enhanced request{
            (flags & 8) != 0, (flags & 4) != 0, (flags & 2) != 0, (flags & 1) != 0, ird, ord};
        MpaEnd b(framing::Role::Responder, {});
        b.establish();
        b.receive(0, request_frame(0x50, 2, request.octets()));
        ASSERT_EQ(b.events.offers.size(), 1u);
        EXPECT_EQ(b.events.offers[0].peer_to_peer, request.a);
        EXPECT_EQ(b.events.offers[0].ird, ird);
        EXPECT_EQ(b.events.offers[0].ord, ord);
        b.session->accept({}, b.now, kReads);
        const Octets frame = b.pull_all();
        ASSERT_EQ(frame.size(), 24u);
        EXPECT_EQ(frame[16] & 0x30, 0x10) << "S, and no rejection";
        const Enhanced reply = Enhanced::read(frame);
        EXPECT_EQ(reply.a, request.a);
        const bool any = reply.b || reply.c || reply.d;
        EXPECT_EQ(any, request.a);
        if (request.a && (flags & 7) != 0) {
          EXPECT_TRUE((reply.b && request.b) || (reply.c && request.c) || (reply.d && request.d));
        }
        EXPECT_EQ(reply.ord, ird == 0x3fff ? 0x3fff : std::min<uint16_t>(4, ird));
        if (ord == 0x3fff) {
          EXPECT_EQ(reply.ird, 0x3fff);
        } else {
          EXPECT_EQ(reply.ird, 4);
        }
        EXPECT_EQ(b.session->negotiated().ord.has_value(), ird != 0x3fff);
      }
    }
  }
  MpaEnd plain(framing::Role::Responder, {});
  plain.establish();
  plain.receive(0, request_frame(0x50, 1, {0x80, 4, 0xc0, 4}));
  ASSERT_EQ(plain.events.requests, (std::vector<Octets>{{0x80, 4, 0xc0, 4}}));
  EXPECT_FALSE(plain.events.offers[0].enhanced);
}

}  // namespace
}  // namespace rnic::mpa
