// The same work over MPA and over ULP framing in both modes: what stands between TCP and DDP is the
// device's, a listener's or a connect's choice.

#include "device_pair.hpp"
#include "support/logged.hpp"

namespace rnic::device {
namespace {

struct Choice {
  const char* name;
  rnic::Framing framing;
  bool align;
  bool packing;
};

class Framing : public DevicePair {
 public:
  static constexpr Choice kChoices[] = {{"mpa", rnic::Framing::Mpa, true, true},
                                        {"alignment", rnic::Framing::Tuf, true, true},
                                        {"alignment, not packed", rnic::Framing::Tuf, true, false},
                                        {"markers", rnic::Framing::Tuf, false, true}};
  explicit Framing(const Choice& choice)
      : DevicePair([&choice](DeviceConfig& config) {
          config.framing = choice.framing;
          config.tuf.align_receive = choice.align;
          config.tuf.packing = choice.packing;
          config.limits.max_packed = 512;
        }) {}
  void TestBody() override {}

  /// Writes, Reads and Sends, small ones and large ones.
  void workload() {
    QueuePair* a = left().make_qp();
    QueuePair* b = right().make_qp();
    connect(a, b);
    constexpr uint32_t kSize = 200'000;
    auto source = octets(kSize, 11);
    std::vector<uint8_t> target(kSize);
    std::vector<uint8_t> back(kSize);
    std::vector<uint8_t> inbox(4096);
    const auto source_stag = left().add(source, a->spec().pd, Access::LocalWrite);
    const auto back_stag = left().add(back, a->spec().pd, Access::LocalWrite);
    const auto target_stag = right().add(
        target, b->spec().pd, Access::LocalWrite | Access::RemoteWrite | Access::RemoteRead);
    const auto inbox_stag = right().add(inbox, b->spec().pd, Access::LocalWrite);
    ASSERT_EQ(b->post_receive(receive(9, inbox, inbox_stag, 4096)), PostResult::Ok);
    auto write = work(Opcode::Write, 1, source, source_stag, kSize);
    write.remote = {target_stag.value, reinterpret_cast<uint64_t>(target.data())};
    ASSERT_EQ(a->post_send(write), PostResult::Ok);
    uint32_t posted = 1;
    for (uint32_t i = 0; i < 60; ++i) {
      auto small = work(Opcode::Write, 2 + i, source, source_stag, 1 + i * 3);
      small.remote = {target_stag.value, reinterpret_cast<uint64_t>(target.data())};
      ASSERT_EQ(a->post_send(small), PostResult::Ok);
      ++posted;
    }
    ASSERT_EQ(a->post_send(work(Opcode::Send, 100, source, source_stag, 4000)), PostResult::Ok);
    auto read = work(Opcode::Read, 101, back, back_stag, kSize);
    read.remote = {target_stag.value, reinterpret_cast<uint64_t>(target.data())};
    ASSERT_EQ(a->post_send(read), PostResult::Ok);
    posted += 2;
    uint32_t done = 0;
    ASSERT_TRUE(run_until([&] {
      for (const auto& c : left().completions(a->spec().send_cq)) {
        EXPECT_EQ(c.status, CompletionStatus::Success);
        ++done;
      }
      return done == posted;
    }));
    EXPECT_EQ(target, source);
    EXPECT_EQ(back, source);
    EXPECT_TRUE(std::equal(inbox.begin(), inbox.begin() + 4000, source.begin()));
    ASSERT_TRUE(left().device->disconnect(*a).has_value());
    ASSERT_TRUE(run_until(
        [&] { return left().has<event::Disconnected>() && right().has<event::Disconnected>(); }));
  }

  using DevicePair::connect;
  using DevicePair::expect_all_returned;
  using DevicePair::left;
  using DevicePair::now_;
  using DevicePair::right;
  using DevicePair::right_end;
  using DevicePair::run_until;
};

TEST(FramingChoice, TheSameWorkOverEach) {
  for (const Choice& choice : Framing::kChoices) {
    SCOPED_TRACE(choice.name);
    Framing f(choice);
    f.workload();
    const tuf::Counters& out = f.left().device->tuf_counters();
    const tuf::Counters& in = f.right().device->tuf_counters();
    const bool tuf = choice.framing == rnic::Framing::Tuf;
    EXPECT_EQ(out.starts, tuf ? 1u : 0u);
    EXPECT_EQ(out.frames_out != 0, tuf && choice.align);
    EXPECT_EQ(out.markers_out != 0, tuf && !choice.align);
    EXPECT_EQ(out.packed_pdus_out != 0, tuf && choice.align && choice.packing);
    EXPECT_EQ(in.pdus_in != 0, tuf);
    EXPECT_EQ(f.left().device->mpa_counters().fpdus_out != 0, !tuf);
    f.expect_all_returned();
  }
}

// A listener and a connect have their own; the two have to match.
TEST(FramingChoice, OfOneConnection) {
  Framing f(Framing::kChoices[0]);
  ASSERT_TRUE(f.right().device->listen(4421, {.framing = rnic::Framing::Tuf}).has_value());
  for (const uint16_t port : {uint16_t{4421}, kPort}) {
    QueuePair* qp = f.left().make_qp();
    ASSERT_TRUE(
        f.left()
            .device->connect(*qp, f.right_end(port), {}, f.now_, {.framing = rnic::Framing::Tuf})
            .has_value());
    if (port == kPort) {
      ASSERT_TRUE(f.run_until([&] { return f.left().has<event::ConnectFailed>(); }));
      EXPECT_FALSE(f.left().take<event::ConnectFailed>()->detail.empty());
      continue;
    }
    ASSERT_TRUE(f.run_until([&] { return f.right().has<event::ConnectRequest>(); }));
    const auto request = f.right().take<event::ConnectRequest>();
    ASSERT_TRUE(f.right().device->reject(request->request, {}, f.now_).has_value());
    ASSERT_TRUE(f.run_until([&] { return f.left().has<event::Rejected>(); }));
  }
  // MPA speaks to a listener of ULP framing.
  QueuePair* qp = f.left().make_qp();
  ASSERT_TRUE(f.left().device->connect(*qp, f.right_end(4421), {}, f.now_).has_value());
  ASSERT_TRUE(f.run_until([&] { return f.left().has<event::ConnectFailed>(); }));
  EXPECT_EQ(f.right().device->tuf_counters().start_failures, 2u);
}

/// ULP framing between devices whose queue pairs differ in their Reads.
class FramedReads : public DevicePair {
 protected:
  FramedReads() : DevicePair([](DeviceConfig& config) { config.framing = rnic::Framing::Tuf; }) {}
  static QueuePair* make(Host& host, uint32_t ird, uint32_t ord) {
    QueuePairSpec spec;
    spec.pd = *host.device->alloc_pd();
    spec.send_cq = spec.receive_cq = *host.device->create_cq(64);
    spec.send_depth = spec.receive_depth = 32;
    spec.ird = ird;
    spec.ord = ord;
    return *host.device->create_qp(spec);
  }
  /// Connects; \return what the initiator is told, and leaves the responder's events
  std::optional<event::Established> start(QueuePair* a, QueuePair* b,
                                          const ConnectOptions& options = {},
                                          const ConnectOptions& answer = {}) {
    EXPECT_TRUE(left().device->connect(*a, right_end(), octets(512, 1), now_, options).has_value());
    EXPECT_TRUE(run_until([&] { return right().has<event::ConnectRequest>(); }));
    asked_ = *right().take<event::ConnectRequest>();
    EXPECT_EQ(asked_.private_data, octets(512, 1)) << "all of it is the application's";
    EXPECT_TRUE(
        right().device->accept(asked_.request, *b, octets(512, 2), now_, answer).has_value());
    run_until([&] {
      return left().has<event::Rejected>() || left().has<event::ConnectFailed>() ||
             (left().has<event::Established>() && right().has<event::Established>());
    });
    return left().take<event::Established>();
  }
  /// Sixteen Reads at once. \return those that were answered
  size_t read_at_once(QueuePair* a, QueuePair* b) {
    sink_.assign(1600, 0);
    source_ = octets(1600, 9);
    const mem::Stag here = left().add(sink_, a->spec().pd, Access::LocalWrite);
    const mem::Stag there = right().add(source_, b->spec().pd, Access::RemoteRead);
    for (uint32_t i = 0; i < 16; ++i) {
      auto w = work(Opcode::Read, i, sink_, here, 100);
      w.sges[0].address += 100ull * i;
      w.remote = {there.value, reinterpret_cast<uint64_t>(source_.data()) + 100ull * i};
      EXPECT_EQ(a->post_send(w), PostResult::Ok);
    }
    size_t answered = 0, done = 0;
    EXPECT_TRUE(run_until([&] {
      for (const auto& c : left().completions(a->spec().send_cq)) {
        answered += c.status == CompletionStatus::Success ? 1 : 0;
        ++done;
      }
      return done == 16;
    }));
    return answered;
  }
  event::ConnectRequest asked_;
  std::vector<uint8_t> sink_, source_;
};

// RFC 6581 s.9.1 over ULP framing: both ends are told, and the agreed ORD is kept to. Without the
// exchange the same Reads are too many for the peer.
TEST_F(FramedReads, AreAgreedOnAndKeptTo) {
  for (const bool exchanged : {true, false}) {
    QueuePair* a = make(left(), 4, 12);
    QueuePair* b = make(right(), 2, 9);
    const auto l = start(a, b, {.exchange_reads = exchanged});
    const auto r = right().take<event::Established>();
    ASSERT_TRUE(l && r);
    EXPECT_EQ(asked_.facts.peer_ird.has_value(), exchanged);
    if (!exchanged) {
      EXPECT_FALSE(l->facts.ird || l->facts.ord || r->facts.ird || r->facts.ord);
      EXPECT_LT(read_at_once(a, b), 16u);
      EXPECT_EQ(right().take<event::TerminateSent>()->fault.code, 2) << "no buffer on queue 1";
      continue;
    }
    EXPECT_EQ(asked_.facts.peer_ird, 4u);
    EXPECT_EQ(asked_.facts.peer_ord, 12u);
    EXPECT_EQ(l->facts.ird, 4);
    EXPECT_EQ(l->facts.ord, 2);
    EXPECT_EQ(l->facts.peer_ird, 2u);
    EXPECT_EQ(l->facts.peer_ord, 4u);
    EXPECT_EQ(r->facts.ird, 2);
    EXPECT_EQ(r->facts.ord, 4);
    EXPECT_EQ(read_at_once(a, b), 16u);
    EXPECT_EQ(sink_, source_);
    EXPECT_FALSE(right().has<event::TerminateSent>());
  }
}

TEST_F(FramedReads, MayBeLeftToTheApplications) {
  const ConnectOptions own{.ird = kReadsByApplication, .ord = kReadsByApplication};
  const auto l = start(make(left(), 4, 4), make(right(), 6, 3), own);
  ASSERT_TRUE(l);
  EXPECT_FALSE(l->facts.ird || l->facts.ord);
  EXPECT_EQ(l->facts.peer_ird, kReadsByApplication);
}

// CM6581-9.1-05 over ULP framing.
TEST_F(FramedReads, TooFewAreRejected) {
  QueuePair* b = make(right(), 8, 8);
  EXPECT_FALSE(start(make(left(), 2, 2), b, {}, {.ord_required = 5}));
  const auto rejected = left().take<event::Rejected>();
  ASSERT_TRUE(rejected);
  EXPECT_EQ(rejected->facts.peer_ord, 5u);
  EXPECT_TRUE(run_until([&] { return right().has<event::RequestWithdrawn>(); }));
  const auto told = right().take<event::RequestWithdrawn>();
  EXPECT_NE(told->detail.find("IRD and ORD do not fit"), std::string::npos) << told->detail;
  EXPECT_TRUE(start(make(left(), 5, 2), make(right(), 8, 8), {}, {.ord_required = 5}));
}

// Go is the RTR: the responder may send first, whether peer to peer was asked for or not. What has
// no meaning here is refused with a reason.
TEST_F(FramedReads, EitherSideSendsFirst) {
  for (const bool asked : {false, true}) {
    QueuePair* a = make(left(), 4, 4);
    QueuePair* b = make(right(), 4, 4);
    ASSERT_TRUE(start(a, b, {.peer_to_peer = asked}));
    ASSERT_EQ(a->post_receive({.id = 3}), PostResult::Ok);
    ASSERT_EQ(b->post_send({.id = 4}), PostResult::Ok);
    std::vector<Completion> got;
    EXPECT_TRUE(run_until([&] {
      got = left().completions(a->spec().receive_cq);
      return !got.empty();
    }));
    EXPECT_EQ(got.at(0).status, CompletionStatus::Success);
    right().take<event::Established>();
  }
  const auto status =
      left().device->connect(*make(left(), 4, 4), right_end(), {}, now_,
                             {.start = {.revision = 2}});
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::InvalidArgument);
  EXPECT_NE(status.error().message.find("no MPA revision"), std::string::npos);
}

/// ULP framing through a window that is far smaller than a framing PDU.
class CutFrames : public DevicePair {
 protected:
  CutFrames()
      : DevicePair([](DeviceConfig& config) {
          config.framing = rnic::Framing::Tuf;
          config.tuf.middlebox_limit = 1;
          if (config.name == "right") config.tcp.receive_window = 400;
        }) {}
};

// What comes cut is told of once, with both ends and what to do about it.
TEST_F(CutFrames, AreToldOf) {
  QueuePair* near = left().make_qp();
  QueuePair* far = right().make_qp();
  test::Logged log;
  connect(near, far);
  std::vector<uint8_t> out = octets(5000, 3), in(out.size());
  const mem::Stag source = left().add(out, near->spec().pd, Access::LocalRead);
  const mem::Stag sink = right().add(in, far->spec().pd, Access::LocalWrite);
  ASSERT_EQ(far->post_receive(receive(1, in, sink, 5000)), PostResult::Ok);
  ASSERT_EQ(near->post_send(work(Opcode::Send, 1, out, source, 5000)), PostResult::Ok);
  left().device->ring_doorbell(near->number());
  ASSERT_TRUE(run_until([&] { return !right().completions(far->spec().receive_cq).empty(); }));
  EXPECT_EQ(in, out);
  const std::string said = log.take();
  EXPECT_NE(said.find("something between 10.0.0.2:7471 and 10.0.0.1:"), std::string::npos) << said;
  EXPECT_NE(said.find("resegments the stream: marker mode (tuf.align = false) costs less there"),
            std::string::npos)
      << said;
}

}  // namespace
}  // namespace rnic::device
