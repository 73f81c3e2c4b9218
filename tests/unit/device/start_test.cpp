// Start-ups of whole devices: revisions, Reads agreed on, RTR, second attempts, faulty peers.

#include "device_pair.hpp"

namespace rnic::device {
namespace {

class Starts : public DevicePair {
 protected:
  using Both = std::function<void(mpa::Config& left, mpa::Config& right)>;

  Starts() : Starts([](mpa::Config&, mpa::Config&) {}) {}
  explicit Starts(const Both& tweak)
      : DevicePair([&](DeviceConfig& config) {
          mpa::Config other;
          const bool is_left = config.name == "left";
          tweak(is_left ? config.mpa : other, is_left ? other : config.mpa);
          config.tcp.time_wait = std::chrono::milliseconds(1);
        }) {}

  static QueuePair* make(Host& host, uint32_t ird, uint32_t ord) {
    QueuePairSpec spec;
    spec.pd = *host.device->alloc_pd();
    spec.send_cq = *host.device->create_cq(64);
    spec.receive_cq = *host.device->create_cq(64);
    spec.send_depth = spec.receive_depth = 16;
    spec.ird = ird;
    spec.ord = ord;
    return *host.device->create_qp(spec);
  }
  /// Connects and takes both Established events, unless the attempt ends otherwise.
  struct Outcome {
    std::optional<event::Established> left, right;
  };
  Outcome start(QueuePair* a, QueuePair* b, const ConnectOptions& options = {},
                const ConnectOptions& answer = {}) {
    EXPECT_TRUE(left().device->connect(*a, right_end(), octets(5, 1), now_, options).has_value());
    if (!run_until([&] { return right().has<event::ConnectRequest>(); })) return {};
    const auto request = right().take<event::ConnectRequest>();
    EXPECT_EQ(request->private_data, octets(5, 1));
    EXPECT_TRUE(right().device->accept(request->request, *b, {}, now_, answer).has_value());
    run_until([&] {
      return left().has<event::Disconnected>() ||
             (left().has<event::Established>() && right().has<event::Established>());
    });
    return {left().take<event::Established>(), right().take<event::Established>()};
  }
  /// Outcomes of a connect that were told (BUG-05).
  size_t outcomes(Host& host) {
    return host.count<event::Established>() + host.count<event::Rejected>() +
           host.count<event::ConnectFailed>();
  }
  /// A Send each way arrives in the first receive, and nothing else completes.
  void expect_traffic(QueuePair* a, QueuePair* b, bool responder_first) {
    std::vector<uint8_t> mine = octets(100, 3), theirs(100);
    const AccessSet rights = Access::LocalWrite;
    const mem::Stag stags[] = {left().add(mine, a->spec().pd, rights),
                               right().add(theirs, b->spec().pd, rights)};
    ASSERT_EQ(a->post_receive(receive(1, mine, stags[0], 100)), PostResult::Ok);
    ASSERT_EQ(b->post_receive(receive(2, theirs, stags[1], 100)), PostResult::Ok);
    const auto wait = [&](Host& host, QueuePair* qp) {
      std::vector<Completion> all;
      EXPECT_TRUE(run_until([&] {
        for (const auto& c : host.completions(qp->spec().receive_cq)) all.push_back(c);
        return !all.empty();
      }));
      ASSERT_EQ(all.size(), 1u);
      EXPECT_EQ(all[0].status, CompletionStatus::Success);
      EXPECT_EQ(all[0].length, 60u);
    };
    const auto from_left = [&] {
      ASSERT_EQ(a->post_send(work(Opcode::Send, 7, mine, stags[0], 60)), PostResult::Ok);
      wait(right(), b);
    };
    const auto from_right = [&] {
      ASSERT_EQ(b->post_send(work(Opcode::Send, 8, theirs, stags[1], 60)), PostResult::Ok);
      wait(left(), a);
    };
    responder_first ? from_right() : from_left();
    responder_first ? from_left() : from_right();
    run_for(std::chrono::milliseconds(10));
    EXPECT_EQ(left().completions(a->spec().send_cq).size(), 1u);
    EXPECT_EQ(right().completions(b->spec().send_cq).size(), 1u);
  }
};

// CM6581-5-02 RDMAP-6.1-04: what both have is agreed, and both are told
// of it.
// UNH-MPA-1-16
TEST_F(Starts, ReadsAreAgreedOnAndTold_CM6581_9_1_01_CM6581_9_1_02) {
  QueuePair* a = make(left(), 4, 12);
  QueuePair* b = make(right(), 6, 3);
  ASSERT_TRUE(left().device->connect(*a, right_end(), {}, now_).has_value());
  ASSERT_TRUE(run_until([&] { return right().has<event::ConnectRequest>(); }));
  const auto request = right().take<event::ConnectRequest>();
  EXPECT_EQ(request->facts.peer_ird, 4u);
  EXPECT_EQ(request->facts.peer_ord, 12u);
  EXPECT_EQ(request->facts.revision, 2);
  ASSERT_TRUE(right().device->accept(request->request, *b, {}, now_).has_value());
  ASSERT_TRUE(run_until([&] { return left().has<event::Established>(); }));
  const auto l = left().take<event::Established>(), r = right().take<event::Established>();
  EXPECT_EQ(*l->facts.ird, 4);
  EXPECT_EQ(*l->facts.ord, 6);
  EXPECT_EQ(l->facts.peer_ird, 6u);
  EXPECT_EQ(l->facts.peer_ord, 3u);
  EXPECT_EQ(*r->facts.ird, 6);
  EXPECT_EQ(*r->facts.ord, 3);
  expect_traffic(a, b, false);
}

// The agreed ORD is kept to: 20 Reads at once against an IRD of 2.
TEST_F(Starts, TheAgreedOrdIsKept_CM6581_9_1_01_BUG_19) {
  QueuePair* a = make(left(), 4, 12);
  QueuePair* b = make(right(), 2, 2);
  ASSERT_TRUE(start(a, b).left);
  std::vector<uint8_t> sink(1600), source = octets(1600, 9);
  const mem::Stag here = left().add(sink, a->spec().pd, Access::LocalWrite);
  const mem::Stag there = right().add(source, b->spec().pd, Access::RemoteRead);
  for (uint32_t i = 0; i < 16; ++i) {
    auto w = work(Opcode::Read, i, sink, here, 100);
    w.sges[0].address += 100ull * i;
    w.remote = {there.value, reinterpret_cast<uint64_t>(source.data()) + 100ull * i};
    ASSERT_EQ(a->post_send(w), PostResult::Ok);
  }
  size_t done = 0;
  EXPECT_TRUE(run_until([&] {
    for (const auto& c : left().completions(a->spec().send_cq)) {
      EXPECT_EQ(c.status, CompletionStatus::Success);
      ++done;
    }
    return done == 16;
  }));
  EXPECT_EQ(sink, source);
  EXPECT_FALSE(right().has<event::TerminateSent>());
}

// Nothing is negotiated, and nothing changes.
// UNH-MPA-1-16
TEST_F(Starts, ReadsByTheApplications_CM6581_9_1_07) {
  const ConnectOptions own{.ird = kReadsByApplication, .ord = kReadsByApplication};
  const Outcome o = start(make(left(), 4, 4), make(right(), 6, 3), own);
  ASSERT_TRUE(o.left && o.right);
  EXPECT_FALSE(o.left->facts.ird || o.left->facts.ord);
  EXPECT_FALSE(o.right->facts.ird || o.right->facts.ord);
  EXPECT_EQ(o.left->facts.peer_ird, kReadsByApplication);
  EXPECT_EQ(o.left->facts.peer_ord, kReadsByApplication);
}

// The initiator learns what would have been enough.
TEST_F(Starts, TooFewReadsForTheResponder_CM6581_9_1_05) {
  QueuePair* a = make(left(), 2, 2);
  const Outcome o = start(a, make(right(), 8, 8), {}, {.ord_required = 5});
  EXPECT_FALSE(o.left || o.right);
  const auto rejected = left().take<event::Rejected>();
  ASSERT_TRUE(rejected);
  EXPECT_EQ(rejected->facts.peer_ord, 5u);
  EXPECT_TRUE(right().has<event::RequestWithdrawn>());
  expect_all_returned();
}

TEST_F(Starts, ImpossibleWishesAreRefused_CM6581_5_02) {
  QueuePair* a = make(left(), 2, 2);
  const auto connect = [&](const ConnectOptions& options) {
    return left().device->connect(*a, right_end(), {}, now_, options);
  };
  EXPECT_FALSE(connect({.start = {.revision = 3}}).has_value());
  EXPECT_FALSE(connect({.ird = 3}).has_value());
  EXPECT_FALSE(connect({.ord = 3}).has_value());
  EXPECT_FALSE(connect({.start = {.revision = 1}, .peer_to_peer = true}).has_value());
  EXPECT_TRUE(connect({.ird = 1, .ord = 0}).has_value());
}

class EachRtr : public Starts, public ::testing::WithParamInterface<int> {
 protected:
  EachRtr()
      : Starts([](mpa::Config& l, mpa::Config& r) {
          for (mpa::Config* c : {&l, &r}) {
            c->rtr_send = GetParam() == 0;
            c->rtr_write = GetParam() == 1;
            c->rtr_read = GetParam() == 2;
          }
        }) {}
};

// CM6581-5-02 CM6581-9.2-01: with each kind either side may
// send first, no receive is taken and nothing completes; also where no Reads were wanted at all.
// UNH-MPA-1-17
TEST_P(EachRtr, EitherSideSendsFirst_CM6581_5_01_CM6581_9_2_07_CM6581_9_1_04) {
  for (const uint32_t reads : {0u, 4u}) {
    for (const bool responder_first : {false, true}) {
      QueuePair* a = make(left(), reads, reads);
      QueuePair* b = make(right(), reads, reads);
      const Outcome o = start(a, b, {.peer_to_peer = true});
      ASSERT_TRUE(o.left && o.right);
      EXPECT_TRUE(o.left->facts.peer_to_peer);
      EXPECT_EQ(o.left->facts.rtr, static_cast<Rtr>(GetParam() + 1));
      EXPECT_TRUE(o.right->facts.peer_to_peer);
      expect_traffic(a, b, responder_first);
      EXPECT_TRUE(left().device->destroy_qp(a).has_value());
      EXPECT_TRUE(right().device->destroy_qp(b).has_value());
      run_for(std::chrono::milliseconds(50));
      left().events.clear();
      right().events.clear();
    }
  }
  EXPECT_EQ(left().device->rdmap_counters().rtrs_out, 4u);
  EXPECT_EQ(left().device->mpa_counters().starts_peer_to_peer, 4u);
}

INSTANTIATE_TEST_SUITE_P(SendWriteRead, EachRtr, ::testing::Values(0, 1, 2));

// A model without RTR: the responder may not send first (RFC 5044 s.7.1.2 rule 4).
// CM6581-5-02
// UNH-MPA-1-17
TEST_F(Starts, WithoutAnRtrTheInitiatorSendsFirst_CM6581_9_2_07) {
  QueuePair* a = make(left(), 4, 4);
  QueuePair* b = make(right(), 4, 4);
  const Outcome o = start(a, b);
  ASSERT_TRUE(o.left);
  EXPECT_FALSE(o.left->facts.peer_to_peer) << "this connection did not ask";
  std::vector<uint8_t> memory = octets(10, 1);
  const mem::Stag stag = right().add(memory, b->spec().pd, {});
  ASSERT_EQ(b->post_send(work(Opcode::Send, 1, memory, stag, 10)), PostResult::Ok);
  run_for(std::chrono::milliseconds(100));
  EXPECT_TRUE(right().completions(b->spec().send_cq).empty());
}

class MostReads : public DevicePair {
 protected:
  MostReads()
      : DevicePair([](DeviceConfig& config) {
          config.limits.max_reads = config.mpa.reads_limit = 16383;
        }) {}
};

// 0x3FFF leaves the number to the applications, so 0x3FFE is the greatest number.
TEST_F(MostReads, AreOneLessThanTheValueWithAMeaning_CM6581_9_1_07) {
  for (const uint32_t own : {16'381u, 16'382u, 16'383u}) {
    QueuePairSpec spec;
    spec.pd = *left().device->alloc_pd();
    spec.send_cq = spec.receive_cq = *left().device->create_cq(64);
    spec.send_depth = spec.receive_depth = 4;
    spec.ird = spec.ord = own;
    const auto qp = left().device->create_qp(spec);
    ASSERT_TRUE(qp.has_value());
    ASSERT_TRUE(left().device->connect(**qp, right_end(), {}, now_).has_value());
    ASSERT_TRUE(run_until([&] { return right().has<event::ConnectRequest>(); }));
    const auto request = right().take<event::ConnectRequest>();
    EXPECT_EQ(request->facts.peer_ird, std::min(own, 16'382u));
    EXPECT_EQ(request->facts.peer_ord, std::min(own, 16'382u));
  }
}

class NoCommonRtr : public Starts {
 protected:
  NoCommonRtr()
      : Starts([](mpa::Config& l, mpa::Config& r) {
          l.rtr_write = l.rtr_read = false;
          r.rtr_send = r.rtr_read = false;
        }) {}
};

// Terminate 2/0/7, and one outcome.
// UNH-MPA-1-18
TEST_F(NoCommonRtr, EndsInATerminate_CM6581_9_2_05_CM6581_8_01) {
  start(make(left(), 4, 4), make(right(), 4, 4), {.peer_to_peer = true});
  ASSERT_TRUE(run_until([&] { return right().has<event::TerminateReceived>(); }));
  const auto told = right().take<event::TerminateReceived>();
  EXPECT_EQ(told->fault.layer, FaultLayer::Llp);
  EXPECT_EQ(told->fault.type, 0);
  EXPECT_EQ(told->fault.code, 7);
  EXPECT_EQ(outcomes(left()), 1u);
  EXPECT_TRUE(left().has<event::ConnectFailed>());
  EXPECT_EQ(left().device->mpa_counters().start_terminates, 1u);
}

class MarkersRefused : public Starts {
 protected:
  MarkersRefused()
      : Starts([](mpa::Config& l, mpa::Config& r) {
          l.markers_send_allowed = false;
          r.markers_receive = true;
        }) {}
};

// An error of this side alone: Terminate 2/0/5, markers and all.
TEST_F(MarkersRefused, EndsInATerminate_CM6581_9_3_01_CM6581_8_01) {
  start(make(left(), 4, 4), make(right(), 4, 4));
  ASSERT_TRUE(run_until([&] { return right().has<event::TerminateReceived>(); }));
  const auto told = right().take<event::TerminateReceived>();
  EXPECT_EQ(told->fault.layer, FaultLayer::Llp);
  EXPECT_EQ(told->fault.code, 5);
  EXPECT_EQ(outcomes(left()), 1u);
  EXPECT_TRUE(left().has<event::ConnectFailed>());
}

class OldResponder : public Starts {
 protected:
  OldResponder() : Starts([](mpa::Config&, mpa::Config& r) { r.revision = 1; }) {}
};

// Once more with revision 1, one outcome, and the revision is told.
// UNH-MPA-1-20
TEST_F(OldResponder, IsDialledAgain_BUG_18_BUG_05_CM6581_10_02) {
  QueuePair* a = make(left(), 4, 4);
  QueuePair* b = make(right(), 4, 4);
  const Outcome o = start(a, b);
  ASSERT_TRUE(o.left && o.right);
  EXPECT_EQ(o.left->facts.revision, 1);
  EXPECT_EQ(left().device->device_counters().connects_redialed, 1u);
  EXPECT_EQ(left().device->device_counters().connects_failed, 0u);
  EXPECT_EQ(outcomes(left()), 0u);  // start() took the only one
  EXPECT_FALSE(left().has<event::Disconnected>());
  expect_traffic(a, b, false);
}

// RFC 6581 s.10: peer to peer has no equivalent in revision 1.
TEST_F(OldResponder, IsNotDialledAgainForPeerToPeer_BUG_18) {
  ASSERT_TRUE(
      left()
          .device->connect(*make(left(), 4, 4), right_end(), {}, now_, {.peer_to_peer = true})
          .has_value());
  EXPECT_TRUE(run_until([&] { return left().has<event::ConnectFailed>(); }));
  EXPECT_EQ(left().device->device_counters().connects_redialed, 0u);
  EXPECT_EQ(outcomes(left()), 1u);
}

TEST_F(OldResponder, DestroyedBetweenTheAttempts_BUG_18) {
  QueuePair* a = make(left(), 4, 4);
  ASSERT_TRUE(left().device->connect(*a, right_end(), {}, now_).has_value());
  ASSERT_TRUE(run_until([&] { return left().device->mpa_counters().start_failures == 1; }));
  ASSERT_TRUE(left().device->destroy_qp(a).has_value());
  run_for(std::chrono::seconds(1));
  EXPECT_EQ(outcomes(left()), 0u);
  right().device->unlisten({{}, kPort});
  expect_all_returned();
}

class NoRedial : public Starts {
 protected:
  NoRedial()
      : Starts([](mpa::Config& l, mpa::Config& r) {
          l.redial = false;
          r.revision = 1;
        }) {}
};

// UNH-MPA-1-20
TEST_F(NoRedial, FailsAtOnce_BUG_18) {
  ASSERT_TRUE(left().device->connect(*make(left(), 4, 4), right_end(), {}, now_).has_value());
  EXPECT_TRUE(run_until([&] { return left().has<event::ConnectFailed>(); }));
  EXPECT_EQ(left().device->device_counters().connects_redialed, 0u);
}

// The revision is a wish of one connection before it is the device's: it is in the Request, it says
// how much private data fits, and whether there is an older one to try.
class WishedRevision : public Starts, public ::testing::WithParamInterface<uint8_t> {
 protected:
  WishedRevision() : Starts([](mpa::Config& l, mpa::Config&) { l.revision = GetParam(); }) {}
  static ConnectOptions other_revision() {
    return {.start = {.revision = static_cast<uint8_t>(3 - GetParam())}};
  }
};

TEST_P(WishedRevision, IsInTheRequest) {
  QueuePair* a = make(left(), 4, 4);
  QueuePair* b = make(right(), 4, 4);
  const Outcome o = start(a, b, other_revision());
  ASSERT_TRUE(o.left && o.right);
  EXPECT_EQ(o.left->facts.revision, 3 - GetParam());
  EXPECT_EQ(o.right->facts.revision, 3 - GetParam());
  expect_traffic(a, b, false);
}

TEST_P(WishedRevision, SaysHowMuchPrivateDataFits) {
  const auto fits = [&](const ConnectOptions& options, size_t size) {
    QueuePair* a = make(left(), 4, 4);
    const auto status = left().device->connect(*a, right_end(), octets(size, 1), now_, options);
    EXPECT_TRUE(left().device->destroy_qp(a).has_value());
    return status.has_value();
  };
  for (const uint8_t revision : {1, 2}) {
    const ConnectOptions options = revision == GetParam() ? ConnectOptions{} : other_revision();
    const size_t most = revision == 1 ? 512 : 508;  // RFC 6581 s.9: IRD and ORD are in front
    EXPECT_TRUE(fits(options, most)) << int{revision};
    EXPECT_FALSE(fits(options, most + 1)) << int{revision};
  }
}

// A peer that hangs up on revision 2 is tried once more; on revision 1 there is nothing older.
TEST_P(WishedRevision, SaysWhetherToDialAgain_BUG_18) {
  constexpr uint16_t kNoMpa = 7472;
  ASSERT_TRUE(right().device->listen(Endpoint{{}, kNoMpa}, {.framing = Framing::Tuf}).has_value());
  const auto redials = [&](const ConnectOptions& options) {
    const uint64_t before = left().device->device_counters().connects_redialed;
    EXPECT_TRUE(left()
                    .device->connect(*make(left(), 4, 4), right_end(kNoMpa), {}, now_, options)
                    .has_value());
    EXPECT_TRUE(run_until([&] { return left().has<event::ConnectFailed>(); }));
    static_cast<void>(left().take<event::ConnectFailed>());
    return left().device->device_counters().connects_redialed - before;
  };
  EXPECT_EQ(redials({}), GetParam() == 2 ? 1u : 0u);
  EXPECT_EQ(redials(other_revision()), GetParam() == 2 ? 0u : 1u);
}

INSTANTIATE_TEST_SUITE_P(Configured, WishedRevision, ::testing::Values(1, 2));

class Draft : public Starts {
 protected:
  Draft()
      : Starts([](mpa::Config& l, mpa::Config& r) {
          l.revision = 0;
          l.markers_receive = true;
          r.permissive = true;
        }) {}
};

// Version 0 in DDP and RDMAP, both ways, and told; a
// device of version 1 would terminate at the first message.
TEST_F(Draft, VersionZeroEverywhere_MPA_C_02_MPA_C_03_MPA00_8_1_07_MPA_3_09) {
  QueuePair* a = make(left(), 4, 4);
  QueuePair* b = make(right(), 4, 4);
  const Outcome o = start(a, b);
  ASSERT_TRUE(o.left && o.right);
  for (const auto* event : {&*o.left, &*o.right}) {
    EXPECT_EQ(event->facts.revision, 0);
    EXPECT_TRUE(event->facts.markers_send && event->facts.markers_receive && event->facts.crc);
  }
  expect_traffic(a, b, false);
  EXPECT_FALSE(left().has<event::TerminateSent>() || right().has<event::TerminateSent>());
}

class Delayed : public Starts {
 protected:
  Delayed()
      : Starts([](mpa::Config& l, mpa::Config&) {
          l.first_fpdu_delay = std::chrono::milliseconds(300);
        }) {}
};

// BUG-14-a: what was posted leaves when the time has come.
TEST_F(Delayed, TheFirstFpduWaits_BUG_14) {
  QueuePair* a = make(left(), 4, 4);
  QueuePair* b = make(right(), 4, 4);
  ASSERT_TRUE(start(a, b).left);
  const base::Now from = now_;
  expect_traffic(a, b, false);
  EXPECT_GE(now_ - from, std::chrono::milliseconds(299));
  EXPECT_EQ(left().device->mpa_counters().first_fpdus_delayed, 1u);
}

class LateReceiver : public Starts {
 protected:
  LateReceiver()
      : Starts([](mpa::Config& l, mpa::Config&) {
          l.first_fpdu_delay = std::chrono::milliseconds(10);
        }) {}
  uint64_t nudges() { return left().device->rdmap_counters().nudges_out; }
};

// BUG-14-b: a peer that has our first message and says nothing gets a Write of nothing, once: the
// octets that wake a receiver which was installed too late. No message is disturbed by it.
TEST_F(LateReceiver, IsNudgedOnce_BUG_14) {
  QueuePair* a = make(left(), 4, 4);
  QueuePair* b = make(right(), 4, 4);
  ASSERT_TRUE(start(a, b).left);
  std::vector<uint8_t> octets(100'000, 7), sink(octets.size());
  const mem::Stag from = left().add(octets, a->spec().pd, Access::LocalWrite);
  const mem::Stag into = right().add(sink, b->spec().pd, Access::LocalWrite | Access::RemoteWrite);
  auto write = work(Opcode::Write, 1, octets, from, static_cast<uint32_t>(octets.size()));
  write.remote = {into.value, reinterpret_cast<uint64_t>(sink.data())};
  ASSERT_EQ(a->post_send(write), PostResult::Ok);
  run_for(std::chrono::milliseconds(205));
  EXPECT_EQ(nudges(), 0u);
  run_for(std::chrono::milliseconds(10));
  EXPECT_EQ(nudges(), 1u);
  EXPECT_EQ(right().device->rdmap_counters().writes_in, 2u);
  EXPECT_EQ(sink, octets);
  run_for(std::chrono::minutes(1));
  EXPECT_EQ(nudges(), 1u);
  EXPECT_EQ(left().completions(a->spec().send_cq).size(), 1u);  // the Write's
  expect_traffic(a, b, false);
}

// BUG-14-b
TEST_F(LateReceiver, WhoAnswersOrWasNotSpokenToIsNotNudged_BUG_14) {
  QueuePair* a = make(left(), 4, 4);
  QueuePair* b = make(right(), 4, 4);
  ASSERT_TRUE(start(a, b).left);
  expect_traffic(a, b, false);
  ASSERT_TRUE(start(make(left(), 4, 4), make(right(), 4, 4)).left);
  run_for(std::chrono::seconds(1));
  EXPECT_EQ(nudges(), 0u);
}

class Legacy : public Starts {
 protected:
  Legacy()
      : Starts([](mpa::Config& l, mpa::Config& r) {
          for (mpa::Config* c : {&l, &r}) {
            c->revision = 1;
            c->reads_in_private_data = true;
          }
        }) {}
};

// IRD and ORD before the private data, a Read as RTR, and the ULP sees only its own octets.
TEST_F(Legacy, ReadsInPrivateData_BUG_12) {
  QueuePair* a = make(left(), 3, 5);
  QueuePair* b = make(right(), 2, 9);
  const Outcome o = start(a, b);  // checks the private data
  ASSERT_TRUE(o.left && o.right);
  EXPECT_EQ(*o.left->facts.ord, 2);
  EXPECT_EQ(*o.right->facts.ord, 3);
  EXPECT_EQ(left().device->rdmap_counters().rtrs_out, 1u);
  expect_traffic(a, b, true);
}

class FaultyPeers : public Starts {
 protected:
  static std::vector<uint8_t> frame(const char* key, uint8_t flags, uint8_t revision,
                                    uint16_t length) {
    std::vector<uint8_t> all(20);
    std::copy_n(key, 16, all.begin());
    all[16] = flags;
    all[17] = revision;
    all[18] = static_cast<uint8_t>(length >> 8);
    all[19] = static_cast<uint8_t>(length);
    return all;
  }
  static void tell(Host& host, StreamSocket* socket, uint8_t wishes) {
    const uint32_t number = socket->doorbell();
    socket->request(wishes);
    host.device->ring_doorbell(number);
  }
  void put(Host& host, StreamSocket* socket, const std::vector<uint8_t>& octets) {
    EXPECT_TRUE(socket->reserve_ring().has_value());
    EXPECT_EQ(socket->put(octets), octets.size());
    host.device->ring_doorbell(socket->doorbell());
  }
};

// Requests that fail at once, then a close or a reset: everything comes back, no
// timer is left, and the next peer is served.
// UNH-MPA-1-02 UNH-MPA-1-15
TEST_F(FaultyPeers, RequestsAtFaultLeaveNothingBehind_BUG_04_MPA_8_06) {
  const std::vector<std::vector<uint8_t>> kFaulty{
      frame("MPA ID Rep Frame", 0x40, 1, 0),   frame("MPA ID Req Fram!", 0x40, 1, 0),
      frame("MPA ID Req Frame", 0x40, 7, 0),   frame("MPA ID Req Frame", 0x40, 0, 0),
      frame("MPA ID Req Frame", 0x40, 1, 513), frame("MPA ID Req Frame", 0x50, 2, 3)};
  uint64_t failures = 0;
  for (const auto& request : kFaulty) {
    for (const uint8_t wish : {StreamSocket::kFinish, StreamSocket::kAbort}) {
      auto socket = left().device->connect_stream(right_end(), {}, now_);
      ASSERT_TRUE(socket.has_value());
      ASSERT_TRUE(run_until([&] { return (*socket)->is_established(); }));
      put(left(), *socket, request);
      ++failures;
      ASSERT_TRUE(
          run_until([&] { return right().device->mpa_counters().start_failures == failures; }));
      tell(left(), *socket, wish);
      tell(left(), *socket, StreamSocket::kRelease);
      ASSERT_TRUE(run_until([&] { return right().device->live_connections() == 0; }));
      EXPECT_FALSE(right().has<event::ConnectRequest>());
    }
  }
  run_for(3 * right().device->config().mpa.start_timeout);
  EXPECT_EQ(right().device->mpa_counters().start_failures, failures);
  EXPECT_TRUE(start(make(left(), 4, 4), make(right(), 4, 4)).left);
}

// The Reply and the end in one segment: one outcome, and then the end.
TEST_F(FaultyPeers, ReplyAndCloseInOneSegment_BUG_05_MPA00_5_1_01) {
  auto listener = right().device->listen_stream({{}, 9000}, 4);
  ASSERT_TRUE(listener.has_value());
  for (const uint8_t flags : {0x50, 0x70}) {
    ASSERT_TRUE(left().device->connect(*make(left(), 4, 4), right_end(9000), {}, now_).has_value());
    StreamSocket* peer = nullptr;
    ASSERT_TRUE(run_until([&] { return (peer = (*listener)->next()) != nullptr; }));
    ASSERT_TRUE(run_until([&] { return peer->readable() == 24; }));
    auto reply = frame("MPA ID Rep Frame", flags, 2, 4);
    for (const uint8_t octet : {0, 4, 0, 4}) reply.push_back(octet);
    put(right(), peer, reply);
    tell(right(), peer, StreamSocket::kFinish);
    ASSERT_TRUE(run_until([&] { return outcomes(left()) != 0; }));
    run_for(std::chrono::seconds(5));
    EXPECT_EQ(outcomes(left()), 1u);
    EXPECT_EQ(left().has<event::Established>(), flags == 0x50);
    left().events.clear();
    tell(right(), peer, StreamSocket::kAbort | StreamSocket::kRelease);
    run_for(std::chrono::seconds(1));
  }
}

// The Reply wants more Reads at once than were offered: a Terminate as an FPDU behind
// the Request, and one outcome. As many as were offered are taken.
TEST_F(FaultyPeers, MoreReadsThanOffered_UNH_MPA_1_19_CM6581_9_1_06) {
  auto listener = right().device->listen_stream({{}, 9000}, 4);
  ASSERT_TRUE(listener.has_value());
  for (const uint8_t ord : {4, 5}) {
    ASSERT_TRUE(left().device->connect(*make(left(), 4, 4), right_end(9000), {}, now_).has_value());
    StreamSocket* peer = nullptr;
    ASSERT_TRUE(run_until([&] { return (peer = (*listener)->next()) != nullptr; }));
    ASSERT_TRUE(run_until([&] { return peer->readable() == 24; }));
    std::array<uint8_t, 24> request;
    EXPECT_EQ(peer->take(request), 24u);
    auto reply = frame("MPA ID Rep Frame", 0x50, 2, 4);
    for (const uint8_t octet : {uint8_t{0}, uint8_t{4}, uint8_t{0}, ord}) reply.push_back(octet);
    put(right(), peer, reply);
    ASSERT_TRUE(run_until([&] { return outcomes(left()) != 0; }));
    run_for(std::chrono::seconds(5));
    EXPECT_EQ(outcomes(left()), 1u);
    EXPECT_EQ(left().has<event::Established>(), ord == 4);
    EXPECT_EQ(left().has<event::ConnectFailed>(), ord == 5);
    // Length 22: the DDP header of queue 2, opcode 7, then layer 2, type 0, code 6; CRC.
    std::array<uint8_t, 64> heard{};
    EXPECT_EQ(peer->take(heard), ord == 4 ? 0u : 28u);
    if (ord == 5) {
      EXPECT_EQ(base::load_be16(heard.data()), 22u);
      EXPECT_EQ(heard[3], 0x47);
      EXPECT_EQ(base::load_be32(&heard[2 + 6]), 2u);
      EXPECT_EQ(heard[2 + 18], 0x20);
      EXPECT_EQ(heard[2 + 19], 6);
    }
    left().events.clear();
    tell(right(), peer, StreamSocket::kAbort | StreamSocket::kRelease);
    run_for(std::chrono::seconds(1));
  }
}

// The request's connection is gone when the answer comes.
TEST_F(Starts, AcceptOfADeadRequest_CM_02) {
  QueuePair* a = make(left(), 4, 4);
  QueuePair* b = make(right(), 4, 4);
  ASSERT_TRUE(left().device->connect(*a, right_end(), {}, now_).has_value());
  ASSERT_TRUE(run_until([&] { return right().has<event::ConnectRequest>(); }));
  const auto request = right().take<event::ConnectRequest>();
  ASSERT_TRUE(left().device->destroy_qp(a).has_value());
  ASSERT_TRUE(run_until([&] { return right().has<event::RequestWithdrawn>(); }));
  const auto status = right().device->accept(request->request, *b, {}, now_);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::NotFound);
  // The queue pair is as good as new.
  EXPECT_TRUE(start(make(left(), 4, 4), b).right);
}

// The event of each way a connect can end.
TEST_F(Starts, EventsOfEveryOutcome_CM_01) {
  ASSERT_TRUE(start(make(left(), 4, 4), make(right(), 4, 4)).left);  // request, established
  ASSERT_TRUE(left().device->connect(*make(left(), 4, 4), right_end(), {}, now_).has_value());
  ASSERT_TRUE(run_until([&] { return right().has<event::ConnectRequest>(); }));
  const auto request = right().take<event::ConnectRequest>();
  ASSERT_TRUE(right().device->reject(request->request, octets(3, 1), now_).has_value());
  ASSERT_TRUE(run_until([&] { return left().has<event::Rejected>(); }));
  EXPECT_EQ(left().take<event::Rejected>()->private_data, octets(3, 1));
  ASSERT_TRUE(left().device->connect(*make(left(), 4, 4), right_end(9), {}, now_).has_value());
  ASSERT_TRUE(run_until([&] { return left().has<event::ConnectFailed>(); }));
  const auto refused = left().take<event::ConnectFailed>();
  EXPECT_EQ(refused->end, StreamEnd::Refused);
  EXPECT_NE(refused->detail.find("refused"), std::string::npos);
  EXPECT_EQ(refused->fault.value().code, 1);
  ASSERT_TRUE(left().device->connect(*make(left(), 4, 4), right_end(), {}, now_).has_value());
  ASSERT_TRUE(run_until([&] { return left().has<event::ConnectFailed>(); },
                        std::chrono::minutes(5)));  // nobody answers: the time-out
}

// Both close at once; the ports are free afterwards.
TEST_F(Starts, SimultaneousDisconnect_CM_04) {
  for (int i = 0; i < 20; ++i) {
    QueuePair* a = make(left(), 4, 4);
    QueuePair* b = make(right(), 4, 4);
    ASSERT_TRUE(start(a, b).left);
    ASSERT_TRUE(left().device->disconnect(*a).has_value());
    ASSERT_TRUE(right().device->disconnect(*b).has_value());
    ASSERT_TRUE(run_until(
        [&] { return left().has<event::Disconnected>() && right().has<event::Disconnected>(); }));
    EXPECT_EQ(left().take<event::Disconnected>()->end, StreamEnd::Closed);
    EXPECT_EQ(right().take<event::Disconnected>()->end, StreamEnd::Closed);
    EXPECT_TRUE(left().device->destroy_qp(a).has_value());
    EXPECT_TRUE(right().device->destroy_qp(b).has_value());
    left().events.clear();
    right().events.clear();
  }
  expect_all_returned();
}

// Many connections, opened, used and closed in one run, and nothing is left of them.
TEST_F(Starts, TenThousandConnections_CM_06) {
  constexpr uint32_t kAtOnce = 20;
  struct Side {
    QueuePairSpec spec;
    std::vector<QueuePair*> qps;
  };
  std::array<Side, 2> sides;
  for (uint32_t i = 0; i < 2; ++i) {
    Device& device = *hosts_[i]->device;
    QueuePairSpec& spec = sides[i].spec;
    spec.pd = *device.alloc_pd();
    spec.send_cq = *device.create_cq(64);
    spec.receive_cq = *device.create_cq(64);
    spec.send_depth = spec.receive_depth = 2;
  }
  uint32_t used = 0;
  for (uint32_t round = 0; round < 10'000 / kAtOnce; ++round) {
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      for (uint32_t s = 0; s < 2; ++s) {
        sides[s].qps.push_back(*hosts_[s]->device->create_qp(sides[s].spec));
      }
      ASSERT_TRUE(left().device->connect(*sides[0].qps.back(), right_end(), {}, now_).has_value());
      ASSERT_EQ(sides[1].qps.back()->post_receive({}), PostResult::Ok);
    }
    uint32_t accepted = 0;
    ASSERT_TRUE(run_until([&] {
      while (const auto request = right().take<event::ConnectRequest>()) {
        EXPECT_TRUE(right()
                        .device->accept(request->request, *sides[1].qps[accepted++], {}, now_)
                        .has_value());
      }
      while (const auto event = left().take<event::Established>()) {
        for (QueuePair* qp : sides[0].qps) {
          if (qp->number() != event->qp) continue;
          EXPECT_EQ(qp->post_send({}), PostResult::Ok);
        }
      }
      used += static_cast<uint32_t>(right().completions(sides[1].spec.receive_cq).size());
      return used == (round + 1) * kAtOnce;
    }));
    for (QueuePair* qp : sides[0].qps) {
      ASSERT_TRUE(left().device->disconnect(*qp).has_value());
    }
    ASSERT_TRUE(run_until([&] {
      while (const auto event = right().take<event::PeerClosed>()) {
        for (QueuePair* qp : sides[1].qps) {
          if (qp->number() == event->qp) {
            EXPECT_TRUE(right().device->disconnect(*qp).has_value());
          }
        }
      }
      return left().device->live_connections() == 0 && right().device->live_connections() == 0;
    }));
    for (uint32_t s = 0; s < 2; ++s) {
      for (QueuePair* qp : sides[s].qps) {
        ASSERT_TRUE(hosts_[s]->device->destroy_qp(qp).has_value());
      }
      sides[s].qps.clear();
      hosts_[s]->collect();
      hosts_[s]->events.clear();
      hosts_[s]->completions(sides[s].spec.send_cq);
    }
  }
  EXPECT_EQ(used, 10'000u);
  EXPECT_EQ(left().device->device_counters().connections_established, 10'000u);
  EXPECT_EQ(left().device->device_counters().connects_failed, 0u);
  expect_all_returned();
}

// Bursts after pauses: each segment begins with an FPDU
// and holds whole ones.
TEST_F(Starts, SegmentsBeginWithFpdus_MPA_A_1_01_MPA00_7_3_01_MPA_5_1_02) {
  QueuePair* a = make(left(), 4, 4);
  QueuePair* b = make(right(), 4, 4);
  ASSERT_TRUE(start(a, b).left);
  std::vector<uint8_t> source = octets(60'000, 1), target(60'000);
  const mem::Stag from = left().add(source, a->spec().pd, {});
  const mem::Stag to = right().add(target, b->spec().pd, Access::RemoteWrite);
  for (uint32_t burst = 0; burst < 20; ++burst) {
    for (uint32_t i = 0; i < 3; ++i) {
      auto w = work(Opcode::Write, i, source, from, 17'000 + 977 * i);
      w.remote = {to.value, reinterpret_cast<uint64_t>(target.data())};
      ASSERT_EQ(a->post_send(w), PostResult::Ok);
    }
    size_t done = 0;
    ASSERT_TRUE(run_until([&] {
      done += left().completions(a->spec().send_cq).size();
      return done == 3;
    }));
    run_for(std::chrono::milliseconds(burst * 50));
  }
  const tcp::Counters& counters = left().device->tcp_counters();
  EXPECT_GT(counters.data_segments_out, 20u * 3 * 12);
  EXPECT_EQ(counters.aligned_segments_out, counters.data_segments_out);
  EXPECT_EQ(right().device->mpa_counters().held_octets, 0u);
}

// There is no Nagle: a small message leaves though one is in flight.
TEST_F(Starts, ASmallMessageDoesNotWait_MPA00_7_3_02) {
  QueuePair* a = make(left(), 4, 4);
  QueuePair* b = make(right(), 4, 4);
  ASSERT_TRUE(start(a, b).left);
  std::vector<uint8_t> source = octets(10, 1);
  const mem::Stag from = left().add(source, a->spec().pd, {});
  const uint64_t before = left().device->tcp_counters().data_segments_out;
  for (uint64_t i = 1; i <= 5; ++i) {
    ASSERT_EQ(a->post_send(work(Opcode::Send, i, source, from, 10)), PostResult::Ok);
    left().device->poll(now_ += base::Duration(10));
    EXPECT_EQ(left().device->tcp_counters().data_segments_out, before + i);
  }
}

class Packing : public DevicePair, public ::testing::WithParamInterface<bool> {
 protected:
  Packing() : DevicePair([](DeviceConfig& config) { config.tcp.pack_records = GetParam(); }) {}
};

// Ten small messages at once, in one segment or in ten.
TEST_P(Packing, SmallMessages_MPAA_6_05_MPAA_6_06) {
  QueuePair* a = left().make_qp();
  QueuePair* b = right().make_qp();
  connect(a, b);
  std::vector<uint8_t> source = octets(10, 1), target(100);
  const mem::Stag from = left().add(source, a->spec().pd, {});
  const mem::Stag to = right().add(target, b->spec().pd, Access::LocalWrite);
  for (uint64_t i = 0; i < 10; ++i) {
    ASSERT_EQ(b->post_receive(receive(i, target, to, 10)), PostResult::Ok);
    ASSERT_EQ(a->post_send(work(Opcode::Send, i, source, from, 10)), PostResult::Ok);
  }
  const uint64_t before = left().device->tcp_counters().data_segments_out;
  size_t done = 0;
  EXPECT_TRUE(run_until([&] {
    done += right().completions(b->spec().receive_cq).size();
    return done == 10;
  }));
  EXPECT_EQ(left().device->tcp_counters().data_segments_out - before, GetParam() ? 1u : 10u);
}

INSTANTIATE_TEST_SUITE_P(OnAndOff, Packing, ::testing::Bool());

// Switching CRC off is answered with a warning that names its condition.
TEST_F(Starts, CrcOffIsWarnedOf_MPA_4_4_05) {
  base::set_log_level(base::LogLevel::Warning);
  for (const bool crc : {true, false}) {
    sim::Link link(link_config());
    DeviceConfig config;
    config.mpa.crc = crc;
    ::testing::internal::CaptureStderr();
    const Device device(config, link.a(), now_);
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(said.find("IPsec") != std::string::npos, !crc) << said;
  }
  base::set_log_level(base::LogLevel::Off);
}

}  // namespace
}  // namespace rnic::device
