// MPA beside streaming octets on one connection: started behind them, left to them.
#include <gtest/gtest.h>

#include <functional>

#include "start_frames.hpp"

namespace rnic::mpa {
namespace {

using test::MpaEnd;
using test::numbered_ulpdu;
using test::Octets;
using test::SlowEncoder;

/// A user of plain octets: what it was given, by offset, and when the order reached it.
class Streamer : public llp::StreamUser {
 public:
  void established(uint32_t, base::Now) override {}
  llp::Pulled pull(uint32_t n, uint64_t offset, llp::Frame& out, base::Now) override {
    const auto length = std::min<uint32_t>(n, static_cast<uint32_t>(to_send.size()));
    if (length == 0) return {};
    std::copy_n(to_send.begin(), length, out.append(length));
    to_send.erase(to_send.begin(), to_send.begin() + length);
    return {.length = length, .tag = {offset, length}};
  }
  bool rebuild(const llp::RecordTag&, uint64_t, uint32_t, llp::Frame&) override {
    ++rebuilt;
    return true;
  }
  void released(const llp::RecordTag&, uint64_t) override { ++releases; }
  llp::InspectVerdict inspect(base::Range, base::ByteView, base::Now) override {
    return llp::InspectVerdict::Accept;
  }
  void place(base::Range range, base::ByteView octets, bool in_order, base::Now) override {
    if (in_order && on_order) on_order(range.begin);
    if (got.size() < range.end) got.resize(range.end);
    std::copy(octets.begin(), octets.end(), got.begin() + static_cast<long>(range.begin));
    placed += octets.size();
  }
  void ordered(uint64_t offset, base::Now) override { order = offset; }
  void emss_changed(uint32_t) override {}
  [[nodiscard]] uint32_t receive_room() const override { return 1234; }
  void peer_finished(base::Now) override { finished = true; }
  void ended(StreamEnd, base::Now) override { ++ends; }

  [[nodiscard]] Octets from(uint64_t offset) const {
    return {got.begin() + static_cast<long>(offset), got.end()};
  }

  std::function<void(uint64_t offset)> on_order;  // octets in order begin there
  Octets to_send, got;
  size_t placed = 0;
  uint64_t order = 0;
  int releases = 0, rebuilt = 0, ends = 0;
  bool finished = false;
};

const Octets kText{'s', 't', 'i', 'l', 'l', ' ', 'h', 'e', 'r', 'e'};

// MPA00-5.1.2-02: after a reject both sides stream on;
// octets in the Reply's own segment, and octets that overtook the Reply, are not lost.
TEST(Streaming, GoesOnAfterAReject_MPA_7_1_2_08_MPA_7_1_2_04_MPA_7_1_5_01) {
  const Octets reply = reply_frame(0x60, 1, {'n', 'o'});
  Octets all = reply;
  all.insert(all.end(), kText.begin(), kText.end());
  for (size_t cut = 1; cut < all.size(); ++cut) {
    for (const bool swapped : {false, true}) {
      Streamer next;
      MpaEnd a(framing::Role::Initiator, {});
      a.events.on_failure = [&](framing::StartFailure why) {
        EXPECT_EQ(why, framing::StartFailure::RejectedByPeer);
        ASSERT_TRUE(a.session->left());
        a.hand_over(next);
      };
      a.share_stream();
      a.establish();
      a.pull_all();
      const base::ByteView whole(all);
      if (swapped) a.receive(cut, whole.subspan(cut));
      a.receive(0, whole.first(cut));
      if (!swapped) a.receive(cut, whole.subspan(cut));
      ASSERT_EQ(next.from(reply.size()), kText) << cut << swapped;
      ASSERT_EQ(next.placed, kText.size());
      ASSERT_EQ(next.order, all.size());
      ASSERT_EQ(held_octets(*a.own_store), 0u);
      ASSERT_EQ(a.stream.closes + a.stream.aborts, 0);
      // And the other way, with everything else a stream's user is told.
      next.to_send = kText;
      ASSERT_EQ(a.pull_all(), kText);
      a.users.released({20, 10}, 30);
      ASSERT_EQ(next.releases, 1);
      ASSERT_EQ(a.users.receive_room(), 1234u);
      a.users.peer_finished(a.now);
      ASSERT_TRUE(next.finished);
      a.users.ended(StreamEnd::Closed, a.now);
      ASSERT_EQ(next.ends, 1);
    }
  }
}

// The Reply has been counted before the next user hears of what is behind it, also in
// the same segment; and nothing behind the Reply is the session's.
TEST(Streaming, WhatIsBehindARejectComesBehindWhatHasArrived_MPA_7_1_2_08) {
  const Octets reply = reply_frame(0x60, 1, {'n', 'o'});
  Octets all = reply;
  all.insert(all.end(), kText.begin(), kText.end());
  Streamer next;
  MpaEnd a(framing::Role::Initiator, {});
  std::vector<uint64_t> began, arrived;
  next.on_order = [&](uint64_t offset) {
    began.push_back(offset);
    arrived.push_back(a.session->arrived());
  };
  a.events.on_failure = [&](framing::StartFailure) { a.hand_over(next); };
  a.share_stream();
  a.establish();
  a.pull_all();
  a.receive(0, all);
  a.receive(all.size(), kText);
  EXPECT_EQ(began, (std::vector<uint64_t>{reply.size(), all.size()}));
  EXPECT_EQ(arrived, (std::vector<uint64_t>{reply.size(), reply.size()}));
  EXPECT_EQ(a.session->arrived(), reply.size());
}

// The responder's side: the Reply leaves whole, and may still be retransmitted.
TEST(Streaming, TheResponderStreamsOn_MPA_7_1_2_04_MPA_7_1_2_11) {
  Streamer next;
  MpaEnd b(framing::Role::Responder, {});
  b.events.on_failure = [&](framing::StartFailure) { b.hand_over(next); };
  b.share_stream();
  b.establish();
  b.receive(0, request_frame(0x40, 1, {1, 2}));
  b.session->reject(Octets{'n', 'o'}, b.now);
  next.to_send = kText;
  const auto reply = b.pull(1460);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->octets, reply_frame(0x60, 1, {'n', 'o'}));
  EXPECT_EQ(b.pull_all(), kText);
  Octets again(reply->octets.size());
  llp::Frame frame(again.data(), static_cast<uint32_t>(again.size()));
  ASSERT_TRUE(b.users.rebuild(reply->pulled.tag, 0, static_cast<uint32_t>(again.size()), frame));
  EXPECT_EQ(again, reply->octets);
  EXPECT_EQ(next.rebuilt, 0);
  b.receive(22, kText);
  EXPECT_EQ(next.from(22), kText);
}

// Whoever waits for the peer to close behind a reject is told so once, whether the
// peer closes before the Reply has left, or behind it.
TEST(Streaming, APeerThatLeavesARejectIsTold_MPA_7_1_2_08) {
  for (const bool early : {false, true}) {
    MpaEnd b(framing::Role::Responder, {});
    b.establish();
    b.receive(0, request_frame(0x40, 1));
    b.session->reject({}, b.now);
    if (early) b.session->peer_finished(b.now);
    EXPECT_EQ(b.events.peers_left, 0);
    EXPECT_EQ(b.pull_all(), reply_frame(0x60, 1));
    EXPECT_EQ(b.events.peers_left, early ? 1 : 0);
    if (!early) b.session->peer_finished(b.now);
    EXPECT_EQ(b.events.peers_left, 1);
    EXPECT_EQ(b.events.failures, std::vector{framing::StartFailure::RejectedLocally});
    EXPECT_EQ(b.stream.closes, 0);
  }
}

// S.7.1.4.2's reading, when configured.
TEST(Streaming, ARejectMayClose_MPA_7_1_2_08) {
  Config config;
  config.reject_closes = true;
  EXPECT_FALSE(Config{}.reject_closes);
  MpaEnd a(framing::Role::Initiator, config), b(framing::Role::Responder, config);
  a.establish();
  b.establish();
  b.receive(0, a.pull_all());
  b.session->reject({}, b.now);
  a.receive(0, b.pull_all());
  for (MpaEnd* end : {&a, &b}) {
    EXPECT_FALSE(end->session->left());
    EXPECT_GE(end->stream.closes, 1);
    EXPECT_EQ(end->events.failures.size(), 1u);
  }
}

// MPA-7.1-03 MPA-7.1-05 MPA-7.1.2-12 MPA-4.3-03
// Hello and Hello-Ack of any length before the start frames; the markers count from behind the
// latter.
TEST(Streaming, DelayedStart_MPA_7_1_3_01_MPA_7_1_5_02_MPA_7_1_01_MPA_7_1_02) {
  Config config;
  config.markers_receive = true;
  for (const uint64_t hello : {0ull, 1ull, 7ull, 511ull, 512ull, 70'000ull}) {
    for (const size_t ack : {0u, 1u, 9u, 2000u}) {
      const Octets last = numbered_ulpdu(9, ack);
      MpaEnd a(framing::Role::Initiator, config), b(framing::Role::Responder, config);
      // Streaming mode has carried `hello` octets to the responder, and its own 33 the other way.
      a.sent = b.complete = hello;
      b.sent = a.complete = 33;
      a.committed[0] = 33;
      if (hello != 0) b.committed[0] = hello;
      b.session->take_over(1460, hello, last, b.now);
      const Octets sent = b.pull_all();
      ASSERT_EQ(sent, last);  // MPA sends it, and then waits
      a.complete += ack;      // read by the streaming application
      a.committed[0] = a.complete;
      a.session->take_over(1460, a.complete, {}, a.now);
      const Octets request = a.pull_all();
      ASSERT_EQ(request, request_frame(0xc0, 1));
      ASSERT_TRUE(b.receive(hello, request));
      ASSERT_EQ(b.events.requests.size(), 1u);
      ASSERT_FALSE(b.session->full_operation());
      b.session->accept({}, b.now);
      const uint64_t reply_at = b.sent;
      ASSERT_TRUE(a.receive(reply_at, b.pull_all()));
      ASSERT_EQ(a.events.starts.size(), 1u);
      SlowEncoder to_b(hello + 20, true), to_a(reply_at + 20, true);
      const Octets ulpdu = numbered_ulpdu(1, 1200);
      to_b.add(ulpdu);
      to_a.add(ulpdu);
      a.user.to_send = {ulpdu};
      b.user.to_send = {ulpdu};
      const Octets there = a.pull_all();
      ASSERT_EQ(there, to_b.stream);
      b.receive(hello + 20, there);
      const Octets back = b.pull_all();
      ASSERT_EQ(back, to_a.stream);
      a.receive(reply_at + 20, back);
      ASSERT_EQ(b.user.delivered.size(), 1u);
      ASSERT_EQ(a.user.delivered.size(), 1u);
      // The last message is kept until it is acknowledged, and not longer.
      if (ack == 0) continue;
      const MpaEnd::Record& first = b.records.front();
      Octets again(first.octets.size());
      llp::Frame frame(again.data(), static_cast<uint32_t>(again.size()));
      ASSERT_TRUE(b.session->rebuild(first.pulled.tag, first.offset,
                                     static_cast<uint32_t>(again.size()), frame));
      ASSERT_EQ(again, first.octets);
    }
  }
}

// An octet of streaming that the peer had not been allowed is no start frame.
TEST(Streaming, LeftoverOctetsEndTheStart_MPA_7_1_5_01) {
  MpaEnd b(framing::Role::Responder, {});
  b.complete = 5;
  b.committed[0] = 5;
  b.session->take_over(1460, 5, kText, b.now);
  b.pull_all();
  Octets stray{'x'};
  const Octets request = request_frame(0x40, 1);
  stray.insert(stray.end(), request.begin(), request.end());
  b.receive(5, stray);
  EXPECT_EQ(b.events.failures, std::vector{framing::StartFailure::BadKey});
  EXPECT_EQ(b.stream.closes, 1);
  EXPECT_TRUE(b.user.placed.empty());
}

// The stream is gone with its end: what the user asks for later touches it no more.
TEST(Streaming, NothingIsAskedOfAStreamThatHasEnded) {
  MpaEnd end(framing::Role::Initiator, {});
  end.establish();
  end.session->ended(StreamEnd::PeerReset, end.now);
  const int readies = end.stream.readies;
  end.session->abort();
  end.session->close();
  end.session->ready();
  EXPECT_EQ(end.stream.aborts, 0);
  EXPECT_EQ(end.stream.closes, 0);
  EXPECT_EQ(end.stream.readies, readies);
}

/// Has room for three octets.
class SmallStreamer final : public Streamer {
 public:
  uint32_t takes(base::Range, base::ByteView octets) override {
    return std::min<uint32_t>(3, static_cast<uint32_t>(octets.size()));
  }
};

// What a transport may take out of the system's buffer is the start frame's, while there is one to
// come; then what the next user says; and all where nobody wants any.
TEST(Streaming, HowMuchIsTakenOfTheStream) {
  const Octets behind(30, 7);
  for (const bool next_user : {true, false}) {
    SmallStreamer next;
    MpaEnd b(framing::Role::Responder, {});
    b.share_stream();
    b.establish();
    const Octets request = request_frame(0x40, 1, {1, 2});
    const base::ByteView octets(request);
    EXPECT_EQ(b.session->takes({0, 5}, octets.first(5)), 5u);
    EXPECT_EQ(b.session->takes({0, 22}, octets), 20u) << "how long it is is known then";
    b.receive(0, octets.first(20));
    EXPECT_EQ(b.session->takes({20, 50}, behind), 2u);
    b.receive(20, octets.subspan(20));
    b.session->reject({}, b.now);
    b.pull_all();
    ASSERT_TRUE(b.session->left());
    if (next_user) b.hand_over(next);
    EXPECT_EQ(b.users.takes({22, 52}, behind), next_user ? 3u : 30u);
  }
}

}  // namespace
}  // namespace rnic::mpa
