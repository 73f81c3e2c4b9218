// The room for a start frame is given back by each way out of a start-up, not with the session: a
// server has many.
#include <gtest/gtest.h>

#include "start_frames.hpp"
#include "support/live_memory.hpp"

namespace rnic::mpa {
namespace {

using test::Octets;

/// Keeps nothing, so that it needs no memory.
class NoEvents final : public framing::StartEvents {
 public:
  void request_received(const framing::StartOffer&, base::ByteView, base::Now) override { ++told; }
  void started(const framing::Negotiated&, base::ByteView, base::Now) override { ++told; }
  void start_failed(framing::StartFailure how, base::ByteView, base::Now) override {
    ++told;
    why = how;
  }
  int told = 0;
  std::optional<framing::StartFailure> why;
};

/// A session that gets the peer's start frame. \return octets that are given back by it
int64_t given_back(framing::Role role, const Config& config, const Octets& frame,
                   std::optional<framing::StartFailure> why) {
  const framing::HoldStorePtr store = framing::make_hold_store(64u << 10);
  Counters counters;
  NoEvents events;
  test::FakeStream stream;
  test::FakeFramingUser user;
  user.mulpdus.reserve(8);
  user.errors.reserve(8);
  const framing::StartOptions reads{.exchange_reads = config.exchange_reads, .ird = 4, .ord = 4};
  Session session(config, role, *store, counters, events, {}, reads);
  user.session = &session;
  session.attach(stream);
  session.bind(user);
  const base::Now now{};
  session.established(1460, now);
  if (role == framing::Role::Initiator) {
    std::array<uint8_t, 1460> room;
    llp::Frame out(room.data(), room.size());
    const llp::Pulled request = session.pull(1460, 0, out, {});
    session.released(request.tag, request.length);
  }
  const int64_t before = test::live_octets();
  EXPECT_EQ(session.inspect({0, frame.size()}, frame, now), llp::InspectVerdict::Accept);
  session.place({0, frame.size()}, frame, true, now);
  session.ordered(frame.size(), now);
  const int64_t after = test::live_octets();
  EXPECT_EQ(events.told, 1);
  EXPECT_EQ(events.why, why);
  return before - after;
}

/// Full operation takes some of it in return.
constexpr int64_t kMostOfIt = wire::kMpaPrivateDataMax * 3 / 4;

TEST(StartMemory, AResponderGivesItBackWithTheRequest) {
  const Octets request = request_frame(0x40, 1, Octets(500, 7));
  EXPECT_GE(given_back(framing::Role::Responder, {}, request, {}), kMostOfIt);
}

TEST(StartMemory, AnInitiatorGivesItBackWithTheReply) {
  Config config;
  config.revision = 1;
  const Octets reply = reply_frame(0x40, 1, Octets(500, 7));
  EXPECT_GE(given_back(framing::Role::Initiator, config, reply, {}), kMostOfIt);
}

TEST(StartMemory, ARejectGivesItBack) {
  for (const bool closes : {false, true}) {
    Config config;
    config.revision = 1;
    config.reject_closes = closes;
    const Octets reply = reply_frame(0x60, 1, Octets(500, 7));
    EXPECT_GE(
        given_back(framing::Role::Initiator, config, reply, framing::StartFailure::RejectedByPeer),
        kMostOfIt);
  }
}

TEST(StartMemory, AFailureGivesItBack) {
  EXPECT_GE(
      given_back(framing::Role::Responder, {}, Octets(20, 'x'), framing::StartFailure::BadKey),
      kMostOfIt);
  EXPECT_GE(
      given_back(framing::Role::Initiator, {}, Octets(20, 'x'), framing::StartFailure::BadKey),
      kMostOfIt);
}

// A Reply that this side cannot meet: the session stays for as long as its Terminate needs.
TEST(StartMemory, ARefusalGivesItBack) {
  Config config;
  config.revision = 2;
  config.markers_send_allowed = false;
  // IRD and ORD of RFC 6581 s.9: 4 and 4.
  const Octets reply = reply_frame(0xd0, 2, {0, 4, 0, 4});
  EXPECT_GE(given_back(framing::Role::Initiator, config, reply, framing::StartFailure::LocalError),
            kMostOfIt);
}

// What the start-up has worked with goes when the connection is up, but not before the peer's TCP
// has all of our start frame: it may have to be sent again.
TEST(StartMemory, AConnectionThatIsUpHasNone) {
  Config config;
  config.revision = 1;
  config.exchange_reads = false;
  const framing::HoldStorePtr store = framing::make_hold_store(64u << 10);
  Counters counters;
  NoEvents events;
  test::FakeStream stream;
  test::FakeFramingUser user;
  Session session(config, framing::Role::Initiator, *store, counters, events, {});
  user.session = &session;
  session.attach(stream);
  session.bind(user);
  const base::Now now{};
  session.established(1460, now);
  std::array<uint8_t, 1460> room;
  llp::Frame out(room.data(), room.size());
  const llp::Pulled request = session.pull(1460, 0, out, {});
  const Octets reply = reply_frame(0x40, 1);
  session.place({0, reply.size()}, reply, true, now);
  session.ordered(reply.size(), now);
  ASSERT_TRUE(session.full_operation());
  llp::Frame again(room.data(), room.size());
  EXPECT_TRUE(session.rebuild(request.tag, 0, request.length, again));
  const int64_t before = test::live_octets();
  session.released(request.tag, request.length);
  EXPECT_GE(before - test::live_octets(), static_cast<int64_t>(sizeof(StartUp)));
  session.validate();
  llp::Frame gone(room.data(), room.size());
  EXPECT_FALSE(session.rebuild(request.tag, 0, request.length, gone));
  session.ended(StreamEnd::PeerReset, now);
  EXPECT_EQ(counters.start_failures, 0u);
}

// The longer private data of revision 0 has room of its own, and there may be none.
TEST(StartMemory, AStartThatFindsNoneFails) {
  Config config;
  config.permissive = true;
  const Octets request = request_frame(0x40, 0, Octets(2000, 7));
  const framing::HoldStorePtr store = framing::make_hold_store(64u << 10);
  Counters counters;
  NoEvents events;
  test::FakeStream stream;
  Session session(config, framing::Role::Responder, *store, counters, events, {});
  session.attach(stream);
  const base::Now now{};
  session.established(1460, now);
  test::refuse_memory_after(0);
  session.place({0, request.size()}, request, true, now);
  ASSERT_TRUE(test::refuse_no_more());
  EXPECT_EQ(events.told, 1);
  EXPECT_EQ(events.why, framing::StartFailure::OutOfMemory);
  EXPECT_EQ(counters.start_failures, 1u);
  EXPECT_EQ(stream.closes, 1);
  EXPECT_EQ(session.arrived(), request.size());
}

// An owner need not care for the RTR, nor for a peer that leaves behind a reject.
TEST(StartMemory, AnOwnerMayHearOfTheLeastOnly) {
  for (const bool accepts : {true, false}) {
    const framing::HoldStorePtr store = framing::make_hold_store(64u << 10);
    Counters counters;
    NoEvents events;
    test::FakeStream stream;
    test::FakeFramingUser user;
    Session session({}, framing::Role::Responder, *store, counters, events, {});
    session.attach(stream);
    session.bind(user);
    const base::Now now{};
    session.established(1460, now);
    // RFC 6581 s.9: peer to peer, by a Send.
    const Octets request = request_frame(0x50, 2, {0xc0, 4, 0, 4});
    session.place({0, request.size()}, request, true, now);
    session.ordered(request.size(), now);
    if (accepts) {
      session.accept({}, now);
    } else {
      session.reject({}, now);
    }
    std::array<uint8_t, 1460> room;
    llp::Frame out(room.data(), room.size());
    ASSERT_NE(session.pull(1460, 0, out, {}).length, 0u);
    EXPECT_EQ(events.told, 2);
    if (accepts) {
      EXPECT_TRUE(session.negotiated().peer_to_peer);
      EXPECT_NE(session.next_deadline(), base::kNever) << "the RTR has its time";
      test::SlowEncoder rtr(request.size(), false);
      rtr.add(figure_ulpdu(0x41, 0x43, 1));
      const base::Range range{request.size(), request.size() + rtr.stream.size()};
      ASSERT_EQ(session.inspect(range, rtr.stream, now), llp::InspectVerdict::Accept);
      session.place(range, rtr.stream, true, now);
      session.ordered(range.end, now);
      EXPECT_TRUE(session.may_send());
      EXPECT_EQ(session.next_deadline(), base::kNever);
    } else {
      EXPECT_TRUE(session.left());
    }
    session.peer_finished(now);
    EXPECT_EQ(user.finished.size(), accepts ? 1u : 0u);
    EXPECT_EQ(events.told, 2);
    EXPECT_EQ(stream.closes, 0);
  }
}

}  // namespace
}  // namespace rnic::mpa
