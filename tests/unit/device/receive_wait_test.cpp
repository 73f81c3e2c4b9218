// Messages that find no receive posted and wait for one (RFC 5041 s.7.1), over TCP with either
// framing: what goes on meanwhile, what ends the wait, and that nothing is sent twice for it.

#include <algorithm>
#include <chrono>
#include <vector>

#include "device_pair.hpp"

namespace rnic::device {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Path {
  uint32_t window = 1u << 20;
  bool markers = false;
  bool loses = false;
  Framing framing = Framing::Mpa;
  uint32_t hold = 0;  // octets of hold space; 0: twice the window
};

class Waiting : public DevicePair {
 protected:
  static constexpr uint32_t kOctets = 1000;
  static constexpr base::Duration kLimit = seconds(2);

  Waiting() : Waiting(Path{}) {}
  explicit Waiting(const Path& path)
      : DevicePair([&](DeviceConfig& config) {
          config.framing = path.framing;
          config.mpa.receive_window = config.tuf.receive_window = path.window;
          config.mpa.hold_limit = config.tuf.hold_limit =
              path.hold != 0 ? path.hold : 2 * path.window;
          config.limits.hold_octets = 16u << 20;
          config.tcp.receive_window = path.window;
          config.mpa.markers_receive = path.markers;
          config.tuf.align_receive = !path.markers;
        }),
        source_(octets(64 * 1024, 5)),
        target_(64 * 1024, 0),
        written_(64 * 1024, 0) {
    a_ = left().make_qp(2048, 8192);
    b_ = make_waiting();
    connect(a_, b_);
    source_stag_ = left().add(source_, a_->spec().pd, Access::LocalWrite);
    target_stag_ = right().add(target_, b_->spec().pd, Access::LocalWrite);
    written_stag_ = right().add(written_, b_->spec().pd, Access::LocalWrite | Access::RemoteWrite);
    if (path.loses) link_.set_a_to_b(router(12));
  }

  /// A path with a router that has room for so many frames, and loses the others.
  static sim::Direction router(uint32_t frames) {
    sim::Direction path = link_config().a_to_b;
    path.bits_per_second = 1'000'000'000;
    path.queue_limit = frames;
    path.drop_when_full = true;
    return path;
  }

  QueuePair* make_waiting(SharedReceiveQueue* srq = nullptr, uint32_t pd = 0) {
    QueuePairSpec spec;
    spec.pd = pd != 0 ? pd : *right().device->alloc_pd();
    spec.send_cq = *right().device->create_cq(8192);
    spec.receive_cq = *right().device->create_cq(8192);
    spec.send_depth = spec.receive_depth = 64;
    spec.srq = srq;
    spec.receive_wait = kLimit;
    return *right().device->create_qp(spec);
  }

  void send(uint64_t id, uint32_t n = kOctets) {
    ASSERT_EQ(a_->post_send(work(Opcode::Send, id, source_, source_stag_, n)), PostResult::Ok);
  }
  void write(uint64_t id, uint32_t n) {
    SendRequest w = work(Opcode::Write, id, source_, source_stag_, n);
    w.remote = {written_stag_.value, reinterpret_cast<uint64_t>(written_.data())};
    ASSERT_EQ(a_->post_send(w), PostResult::Ok);
  }
  void post(uint64_t id, uint32_t n = 64 * 1024) {
    ASSERT_EQ(b_->post_receive(receive(id, target_, target_stag_, n)), PostResult::Ok);
  }
  /// Lets the world run until a message waits at the right.
  void run_until_waiting() {
    ASSERT_TRUE(run_until([&] { return b_->waits_for_receive(); }, seconds(1)));
  }
  /// \return what completes in the right's receive queue until there are `n`
  std::vector<Completion> received(size_t n) {
    std::vector<Completion> all;
    run_until([&] {
      const auto some = right().completions(b_->spec().receive_cq);
      all.insert(all.end(), some.begin(), some.end());
      return all.size() >= n;
    });
    EXPECT_EQ(all.size(), n);
    return all;
  }
  [[nodiscard]] const rdmap::Counters& counters() { return right().device->rdmap_counters(); }
  void expect_nothing_sent_twice() {
    const tcp::Counters& sent = left().device->tcp_counters();
    EXPECT_EQ(sent.retransmitted_segments, 0u);
    EXPECT_EQ(sent.timeouts, 0u);
    EXPECT_EQ(right().device->tcp_counters().duplicate_octets_in, 0u);
    EXPECT_EQ(right().device->mpa_counters().hold_refused, 0u);
    EXPECT_EQ(right().device->tuf_counters().hold_refused, 0u);
  }

  QueuePair* a_ = nullptr;
  QueuePair* b_ = nullptr;
  std::vector<uint8_t> source_;
  std::vector<uint8_t> target_;
  std::vector<uint8_t> written_;
  mem::Stag source_stag_;
  mem::Stag target_stag_;
  mem::Stag written_stag_;
};

TEST_F(Waiting, APostedReceiveResumesIt) {
  send(1);
  write(2, 5000);
  send(3, 500);
  run_until_waiting();
  run_for(milliseconds(100));
  EXPECT_TRUE(b_->waits_for_receive());
  EXPECT_TRUE(std::equal(written_.begin(), written_.begin() + 5000, source_.begin()))
      << "what is tagged is placed meanwhile";
  EXPECT_TRUE(right().completions(b_->spec().receive_cq).empty());
  EXPECT_EQ(counters().writes_in, 0u) << "nothing is delivered past the message that waits";
  const QueuePairInfo info = right().device->info(*b_, now_);
  EXPECT_TRUE(info.waits_for_receive);
  EXPECT_EQ(info.receive_waits, 1u);
  post(10);
  EXPECT_EQ(received(1)[0].length, kOctets);
  EXPECT_TRUE(std::equal(target_.begin(), target_.begin() + kOctets, source_.begin()));
  EXPECT_EQ(counters().writes_in, 1u);
  run_until_waiting();
  EXPECT_EQ(counters().receive_waits, 2u) << "the second one begins when it is the next";
  post(11);
  EXPECT_EQ(received(1)[0].length, 500u);
  EXPECT_FALSE(right().device->info(*b_, now_).waits_for_receive);
  EXPECT_EQ(counters().receive_waits_expired, 0u);
  EXPECT_EQ(left().completions(a_->spec().send_cq).size(), 3u);
  expect_nothing_sent_twice();
}

TEST_F(Waiting, TheLimitEndsItWithATerminate) {
  send(1);
  run_until_waiting();
  const base::Now began = now_;
  ASSERT_TRUE(run_until([&] { return right().has<event::TerminateSent>(); }));
  EXPECT_GE(now_ - began, kLimit - milliseconds(1));
  EXPECT_LE(now_ - began, kLimit + milliseconds(10));
  const auto sent = right().take<event::TerminateSent>();
  EXPECT_EQ(sent->fault.layer, FaultLayer::Ddp);
  EXPECT_EQ(sent->fault.type, 0x2);
  EXPECT_EQ(sent->fault.code, 0x02) << "no buffer";
  EXPECT_EQ(counters().receive_waits_expired, 1u);
  EXPECT_FALSE(b_->waits_for_receive());
  ASSERT_TRUE(run_until([&] { return left().has<event::TerminateReceived>(); }));
}

TEST_F(Waiting, EachMessageHasItsOwnLimit) {
  for (uint64_t id = 1; id <= 3; ++id) send(id);
  for (uint64_t id = 1; id <= 3; ++id) {
    run_until_waiting();
    run_for(kLimit * 3 / 4);
    EXPECT_TRUE(b_->waits_for_receive());
    post(id);
    EXPECT_EQ(received(1)[0].id, id);
  }
  EXPECT_EQ(counters().receive_waits, 3u);
  EXPECT_EQ(counters().receive_waits_expired, 0u);
}

// The sender was told of success: what it has sent before its close is there for who posts.
TEST_F(Waiting, ThePeersFinComesBehindTheMessages_MPA_7_2_02_DDP_4_1_05) {
  send(1);
  write(2, kOctets);
  send(3);
  run_until_waiting();
  ASSERT_TRUE(left().device->disconnect(*a_).has_value());
  run_for(kLimit / 4);
  EXPECT_TRUE(b_->waits_for_receive());
  EXPECT_FALSE(right().has<event::PeerClosed>());
  post(10);
  EXPECT_EQ(received(1)[0].status, CompletionStatus::Success);
  EXPECT_TRUE(std::equal(written_.begin(), written_.begin() + kOctets, source_.begin()));
  run_for(kLimit / 4);
  EXPECT_TRUE(b_->waits_for_receive()) << "the second message";
  EXPECT_FALSE(right().has<event::PeerClosed>());
  post(11);
  EXPECT_EQ(received(1)[0].status, CompletionStatus::Success);
  EXPECT_EQ(counters().receive_waits_expired, 0u);
  EXPECT_TRUE(right().has<event::PeerClosed>());
  ASSERT_TRUE(run_until([&] { return right().has<event::Disconnected>(); }));
  EXPECT_FALSE(right().has<event::TerminateSent>());
}

TEST_F(Waiting, TheLimitEndsItBehindThePeersFin) {
  send(1);
  run_until_waiting();
  ASSERT_TRUE(left().device->disconnect(*a_).has_value());
  ASSERT_TRUE(run_until([&] { return right().has<event::TerminateSent>(); }));
  EXPECT_EQ(counters().receive_waits_expired, 1u);
  EXPECT_FALSE(right().has<event::PeerClosed>());
  ASSERT_TRUE(run_until([&] { return right().has<event::Disconnected>(); }));
}

TEST_F(Waiting, OurOwnErrorEndsItBehindThePeersFin) {
  send(1);
  run_until_waiting();
  ASSERT_TRUE(left().device->disconnect(*a_).has_value());
  run_for(milliseconds(10));
  ASSERT_TRUE(
      right().device->modify_qp(*b_, {.state = QueuePairState::Error}, now_).has_value());
  ASSERT_TRUE(run_until([&] { return right().has<event::Disconnected>(); }, kLimit / 4));
  EXPECT_FALSE(b_->waits_for_receive());
  EXPECT_FALSE(right().has<event::PeerClosed>());
}

TEST_F(Waiting, ThePeersResetEndsItAtOnce) {
  send(1);
  run_until_waiting();
  const base::Now began = now_;
  ASSERT_TRUE(left().device->modify_qp(*a_, {.state = QueuePairState::Error}, now_).has_value());
  ASSERT_TRUE(run_until([&] { return right().has<event::Disconnected>(); }));
  EXPECT_LT(now_ - began, kLimit / 4);
  EXPECT_FALSE(b_->waits_for_receive());
  EXPECT_FALSE(right().has<event::TerminateSent>());
}

TEST_F(Waiting, OurOwnDisconnectDoesNotLoseAReceive) {
  send(1);
  run_until_waiting();
  post(10);
  ASSERT_TRUE(right().device->disconnect(*b_).has_value());
  EXPECT_EQ(received(1)[0].status, CompletionStatus::Success);
}

// An answer of the peer stands behind its message in the stream.
TEST_F(Waiting, OwnReadsWaitBehindIt) {
  send(1);
  run_until_waiting();
  const mem::Stag readable = left().add(source_, a_->spec().pd, Access::RemoteRead);
  SendRequest read = work(Opcode::Read, 7, target_, target_stag_, 2000);
  read.remote = {readable.value, reinterpret_cast<uint64_t>(source_.data())};
  ASSERT_EQ(b_->post_send(read), PostResult::Ok);
  run_for(milliseconds(100));
  EXPECT_TRUE(right().completions(b_->spec().send_cq).empty());
  post(10, kOctets);
  EXPECT_EQ(received(1)[0].status, CompletionStatus::Success);
  run_for(milliseconds(1));
  EXPECT_EQ(right().completions(b_->spec().send_cq).size(), 1u);
}

TEST_F(Waiting, OfASharedQueueInTheOrderInWhichTheyBegan) {
  const uint32_t pd = *right().device->alloc_pd();
  SharedReceiveQueue* srq = *right().device->create_srq({.pd = pd, .depth = 32, .max_sges = 1});
  const mem::Stag stag = right().add(target_, pd, Access::LocalWrite);
  struct Pair {
    QueuePair* from;
    QueuePair* to;
    mem::Stag source;
  };
  std::vector<Pair> pairs;
  for (int i = 0; i < 3; ++i) {
    Pair pair{left().make_qp(), make_waiting(srq, pd), {}};
    connect(pair.from, pair.to);
    pair.source = left().add(source_, pair.from->spec().pd, {});
    pairs.push_back(pair);
  }
  const auto send_by = [&](const Pair& pair) {
    ASSERT_EQ(pair.from->post_send(work(Opcode::Send, 1, source_, pair.source, kOctets)),
              PostResult::Ok);
    run_for(milliseconds(1));
  };
  for (const int i : {2, 0, 1}) {
    send_by(pairs[i]);
    EXPECT_TRUE(pairs[i].to->waits_for_receive());
  }
  send_by(pairs[2]);  // a message more, behind the one that waits
  std::vector<uint32_t> served;
  for (uint64_t id = 1; id <= 4; ++id) {
    ReceiveRequest request{.id = id};
    request.sges = {{reinterpret_cast<uint64_t>(target_.data()), kOctets, stag.value}};
    ASSERT_EQ(srq->post_receive(request), PostResult::Ok);
    EXPECT_LE(right().device->next_deadline(), now_) << "a worker that goes to sleep now sees it";
    run_for(milliseconds(1));
    for (const Pair& pair : pairs) {
      for (const Completion& done : right().completions(pair.to->spec().receive_cq)) {
        EXPECT_EQ(done.id, id);
        served.push_back(done.qp);
      }
    }
  }
  EXPECT_EQ(served, (std::vector<uint32_t>{pairs[2].to->number(), pairs[0].to->number(),
                                           pairs[1].to->number(), pairs[2].to->number()}));
  EXPECT_EQ(srq->posted(), 0u);
}

class WaitingPath : public Waiting, public ::testing::WithParamInterface<Path> {
 protected:
  WaitingPath() : Waiting(GetParam()) {}
};

// More than a window: the peer stops at the edge that it was offered, and goes on when a receive
// is posted, without a probe.
TEST_P(WaitingPath, TheWindowStaysAndOpensAgain) {
  constexpr uint32_t kSize = 64 * 1024;
  const uint32_t count = GetParam().window / kSize + 8;
  const uint64_t before = right().device->info(*b_, now_).received.arrived;
  for (uint32_t i = 0; i < count; ++i) i % 2 == 0 ? send(i, kSize) : write(i, kSize);
  run_until_waiting();
  run_for(milliseconds(150));
  EXPECT_LE(right().device->info(*b_, now_).received.arrived - before, GetParam().window);
  for (uint32_t i = 0; i < count; i += 2) {
    run_until_waiting();
    const base::Now posted = now_;
    post(i);
    EXPECT_EQ(received(1)[0].id, i);
    if (!GetParam().loses) {
      EXPECT_LT(now_ - posted, milliseconds(60)) << "no probe's time";
    }
  }
  run_until([&] { return counters().writes_in == count / 2; });
  EXPECT_EQ(counters().writes_in, count / 2);
  EXPECT_EQ(target_, source_);
  EXPECT_EQ(written_, source_);
  if (!GetParam().loses) expect_nothing_sent_twice();
}

class WaitingRow : public WaitingPath {};

TEST_P(WaitingRow, AThousandWaitsInARow) {
  constexpr uint32_t kCount = 1000;
  for (uint32_t i = 0; i < kCount; ++i) i % 4 == 3 ? write(i, 900) : send(i, 100 + i);
  uint32_t waits = 0;
  for (uint32_t i = 0; i < kCount; ++i) {
    if (i % 4 == 3) continue;
    ASSERT_NO_FATAL_FAILURE(run_until_waiting());
    ++waits;
    post(i);
    ASSERT_EQ(received(1)[0].length, 100 + i);
  }
  EXPECT_EQ(counters().receive_waits, waits);
  if (!GetParam().loses) expect_nothing_sent_twice();
}

class ScarceHold : public WaitingPath {
 protected:
  uint64_t refused() {
    return right().device->mpa_counters().hold_refused +
           right().device->tuf_counters().hold_refused;
  }
};

// Untagged octets behind the waiting message that find no hold space are not acknowledged, and the
// peer sends them again. One receive at a time: hold space that is full of octets ahead of the
// order does not keep out those in order that have a receive.
TEST_P(ScarceHold, WhatFindsNoRoomIsSentAgain) {
  constexpr uint32_t kSize = 32 * 1024;
  constexpr uint32_t kCount = 6;
  for (uint32_t i = 0; i < kCount; ++i) send(i, kSize);
  run_until_waiting();
  run_for(milliseconds(50));
  EXPECT_GT(refused(), 0u);
  EXPECT_LE(right().device->info(*b_, now_).received.held_now, GetParam().hold);
  EXPECT_TRUE(right().completions(b_->spec().receive_cq).empty());
  for (uint32_t i = 0; i < kCount; ++i) {
    std::ranges::fill(target_, uint8_t{0});
    post(i);
    const std::vector<Completion> done = received(1);
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].id, i);
    EXPECT_EQ(done[0].length, kSize);
    EXPECT_TRUE(std::equal(source_.begin(), source_.begin() + kSize, target_.begin()));
  }
  EXPECT_GT(left().device->tcp_counters().retransmitted_segments, 0u);
  EXPECT_EQ(counters().receive_waits_expired, 0u);
}

INSTANTIATE_TEST_SUITE_P(Windows, ScarceHold,
                         ::testing::Values(Path{256u << 10, false, false, Framing::Mpa, 16u << 10},
                                           Path{256u << 10, true, false, Framing::Mpa, 16u << 10},
                                           Path{256u << 10, false, false, Framing::Tuf, 16u << 10},
                                           Path{1u << 20, true, false, Framing::Tuf, 16u << 10}));

INSTANTIATE_TEST_SUITE_P(Windows, WaitingPath,
                         ::testing::Values(Path{64u << 10, true, false},
                                           Path{256u << 10, true, true},
                                           Path{1u << 20, false, false},
                                           Path{4u << 20, true, false},
                                           Path{64u << 10, true, false, Framing::Tuf},
                                           Path{256u << 10, false, false, Framing::Tuf},
                                           Path{1u << 20, false, true, Framing::Tuf},
                                           Path{1u << 20, true, true, Framing::Tuf}));

INSTANTIATE_TEST_SUITE_P(Windows, WaitingRow,
                         ::testing::Values(Path{64u << 10, false, false},
                                           Path{256u << 10, true, true},
                                           Path{1u << 20, true, false},
                                           Path{4u << 20, false, true},
                                           Path{64u << 10, false, false, Framing::Tuf},
                                           Path{256u << 10, true, true, Framing::Tuf},
                                           Path{4u << 20, false, false, Framing::Tuf}));

}  // namespace
}  // namespace rnic::device
