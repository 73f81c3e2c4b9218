// The same work over MPA and over ULP framing in both modes: what stands between TCP and DDP is the
// device's, a listener's or a connect's choice.

#include "device_pair.hpp"

namespace rnic::nic {
namespace {

using rdmap::WorkOpcode;
using rdmap::WorkStatus;

struct Choice {
  const char* name;
  FramingKind framing;
  bool align;
  bool packing;
};

class Framing : public DevicePair {
 public:
  static constexpr Choice kChoices[] = {{"mpa", FramingKind::Mpa, true, true},
                                        {"alignment", FramingKind::Tuf, true, true},
                                        {"alignment, not packed", FramingKind::Tuf, true, false},
                                        {"markers", FramingKind::Tuf, false, true}};
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
    const auto source_stag = left().add(source, a->spec().pd, mem::kLocalWrite);
    const auto back_stag = left().add(back, a->spec().pd, mem::kLocalWrite);
    const auto target_stag =
        right().add(target, b->spec().pd, mem::kLocalWrite | mem::kRemoteWrite | mem::kRemoteRead);
    const auto inbox_stag = right().add(inbox, b->spec().pd, mem::kLocalWrite);
    ASSERT_EQ(b->post_receive(receive(9, inbox, inbox_stag, 4096)), PostResult::Ok);
    auto write = work(WorkOpcode::Write, 1, source, source_stag, kSize);
    write.remote_stag = target_stag.value;
    write.remote_to = reinterpret_cast<uint64_t>(target.data());
    ASSERT_EQ(a->post_send(write), PostResult::Ok);
    uint32_t posted = 1;
    for (uint32_t i = 0; i < 60; ++i) {
      auto small = work(WorkOpcode::Write, 2 + i, source, source_stag, 1 + i * 3);
      small.remote_stag = target_stag.value;
      small.remote_to = reinterpret_cast<uint64_t>(target.data());
      ASSERT_EQ(a->post_send(small), PostResult::Ok);
      ++posted;
    }
    ASSERT_EQ(a->post_send(work(WorkOpcode::Send, 100, source, source_stag, 4000)), PostResult::Ok);
    auto read = work(WorkOpcode::Read, 101, back, back_stag, kSize);
    read.remote_stag = target_stag.value;
    read.remote_to = reinterpret_cast<uint64_t>(target.data());
    ASSERT_EQ(a->post_send(read), PostResult::Ok);
    posted += 2;
    uint32_t done = 0;
    ASSERT_TRUE(run_until([&] {
      for (const auto& c : left().completions(a->spec().send_cq)) {
        EXPECT_EQ(c.status, WorkStatus::Success);
        ++done;
      }
      return done == posted;
    }));
    EXPECT_EQ(target, source);
    EXPECT_EQ(back, source);
    EXPECT_TRUE(std::equal(inbox.begin(), inbox.begin() + 4000, source.begin()));
    ASSERT_TRUE(left().device->disconnect(*a, now_).has_value());
    ASSERT_TRUE(run_until([&] {
      return left().has(EventKind::Disconnected) && right().has(EventKind::Disconnected);
    }));
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
    const bool tuf = choice.framing == FramingKind::Tuf;
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
  ASSERT_TRUE(f.right().device->listen(4421, FramingKind::Tuf).has_value());
  for (const uint16_t port : {uint16_t{4421}, kPort}) {
    QueuePair* qp = f.left().make_qp();
    ASSERT_TRUE(
        f.left()
            .device->connect(*qp, f.right_end(port), {}, f.now_, {.framing = FramingKind::Tuf})
            .has_value());
    if (port == kPort) {
      ASSERT_TRUE(f.run_until([&] { return f.left().has(EventKind::ConnectFailed); }));
      EXPECT_FALSE(f.left().take(EventKind::ConnectFailed)->detail.empty());
      continue;
    }
    ASSERT_TRUE(f.run_until([&] { return f.right().has(EventKind::ConnectRequest); }));
    const auto request = f.right().take(EventKind::ConnectRequest);
    ASSERT_TRUE(f.right().device->reject(request->connection, {}, f.now_).has_value());
    ASSERT_TRUE(f.run_until([&] { return f.left().has(EventKind::Rejected); }));
  }
  // MPA speaks to a listener of ULP framing.
  QueuePair* qp = f.left().make_qp();
  ASSERT_TRUE(f.left().device->connect(*qp, f.right_end(4421), {}, f.now_).has_value());
  ASSERT_TRUE(f.run_until([&] { return f.left().has(EventKind::ConnectFailed); }));
  EXPECT_EQ(f.right().device->tuf_counters().start_failures, 2u);
}

}  // namespace
}  // namespace rnic::nic
