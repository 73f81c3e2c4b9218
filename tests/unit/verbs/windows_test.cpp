// Memory windows, fast registration and what ends remote access, the way an application has them.

#include "verbs_pair.hpp"

namespace rnic::test {
namespace {

class WindowsApiTest : public ::testing::TestWithParam<bool> {
 protected:
  static constexpr uint32_t kSize = 4096;

  // A responder sends nothing, and does nothing that was posted to be sent, before the initiator's
  // first FPDU has come (RFC 5044 s.7.1.2): an empty Write is one.
  void SetUp() override {
    world_.connect(a_, b_);
    must(a_.qp.post_write(0, {}, {}));
    world_.expect_done(a_.send_cq, 0, 0);
  }

  /// The peer writes `n` octets there, which it is allowed to.
  void expect_written(uint32_t stag, uint64_t offset, uint32_t n, uint64_t at) {
    Memory near(a_.pd, octets(n, at + n), Access::LocalRead);
    SendRequest write = request(Opcode::Write, near.all(), 1);
    write.remote = {stag, offset};
    must(a_.qp.post_send(write));
    world_.expect_done(a_.send_cq, 1, n);
    // A Read comes behind it, so that it is placed.
    SendRequest read = request(Opcode::Read, near.all(), 2);
    read.remote = {stag, offset};
    const std::vector<uint8_t> sent = near.data;
    must(near.region.deregister());
    Memory back(a_.pd, std::vector<uint8_t>(n), Access::LocalWrite);
    read.sges = {back.all()};
    must(a_.qp.post_send(read));
    world_.expect_done(a_.send_cq, 2, n);
    EXPECT_EQ(back.data, sent);
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), memory_.begin() + static_cast<long>(at)));
  }
  /// The peer writes an octet there, which ends the connection.
  void expect_refused(uint32_t stag, uint64_t offset) {
    Memory near(a_.pd, octets(1, 1), Access::LocalRead);
    SendRequest write = request(Opcode::Write, near.all(), 1);
    write.remote = {stag, offset};
    must(a_.qp.post_send(write));
    EXPECT_TRUE(world_.await<event::TerminateSent>(world_.right, b_.qp.number()));
  }
  void expect_bound(uint64_t id) {
    const auto done = world_.await(b_.send_cq);
    ASSERT_TRUE(done);
    EXPECT_EQ(done->id, id);
    EXPECT_EQ(done->status, CompletionStatus::Success);
  }
  static void expect_refusal(const Status& status, ErrorCode code, const char* word) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, code);
    EXPECT_NE(status.error().message.find(word), std::string::npos) << status.error().message;
  }

  static constexpr AccessSet kBoth = Access::RemoteWrite | Access::RemoteRead;

  World world_{loopback_config(GetParam())};
  Side a_{world_.left};
  Side b_{world_.right};
  std::vector<uint8_t> memory_ = std::vector<uint8_t>(kSize);
  MemoryRegion region_ =
      must(b_.pd.register_memory(std::as_writable_bytes(std::span(memory_)),
                                 {.access = Access::Bind | Access::LocalWrite, .offset = 0}));
};
INSTANTIATE_TEST_SUITE_P(InlineAndThreaded, WindowsApiTest, ::testing::Bool());

TEST_P(WindowsApiTest, OfADomain_VERBS_04) {
  MemoryWindow window = must(b_.pd.create_window(WindowType::Domain));
  must(window.bind(region_, 100, 50, kBoth));
  expect_written(window.stag(), 100, 50, 100);
  const uint32_t before = window.stag();
  must(window.bind(region_, 1000, 7, kBoth));
  EXPECT_NE(window.stag(), before);
  expect_written(window.stag(), 1001, 6, 1001);
  expect_refusal(window.bind(region_, 4000, 97, kBoth), ErrorCode::InvalidArgument, "not inside");
  expect_refusal(window.bind(region_, 0, 1, Access::RemoteInvalidate), ErrorCode::InvalidArgument,
                 "type 1");
  Memory closed(b_.pd, std::vector<uint8_t>(8), kEverything);
  expect_refusal(window.bind(closed.region, closed.region.address(), 8, kBoth),
                 ErrorCode::PermissionDenied, "Access::Bind");
  expect_refused(before, 100);
}

TEST_P(WindowsApiTest, OfAQueuePair_VERBS_04) {
  MemoryWindow window = must(b_.pd.create_window(WindowType::QueuePair));
  const MemoryGrant grant{.stag = next_key(window.stag()), .access = kBoth, .offset = 9};
  must(b_.qp.post_bind_window(7, grant, region_.sge(200, 10)));
  expect_bound(7);
  expect_written(grant.stag, 9, 10, 200);
  must(b_.qp.post_local_invalidate(8, grant.stag));
  expect_bound(8);
  const MemoryGrant again{.stag = next_key(grant.stag), .access = kBoth, .offset = 0};
  must(b_.qp.post_bind_window(9, again, region_.sge(300, 10)));
  expect_bound(9);
  expect_written(again.stag, 0, 10, 300);
  must(window.unbind());
  must(region_.deregister());
  expect_refused(again.stag, 0);
}

TEST_P(WindowsApiTest, FastRegistration_VERBS_03) {
  const MemoryRegion allocated = must(b_.pd.allocate_region(2));
  const MemoryGrant grant{
      .stag = next_key(allocated.stag()), .access = kBoth | Access::LocalWrite, .offset = 0};
  must(b_.qp.post_fast_register(1, grant, {region_.sge(500, 20), region_.sge(520, 30)}));
  expect_bound(1);
  expect_written(grant.stag, 10, 40, 510);
  must(b_.qp.post_local_invalidate(2, grant.stag));
  expect_bound(2);
  expect_refused(grant.stag, 10);
}

// Deregistering a region to which windows are bound is refused, and nothing changes; dropping its
// handle ends the region and its windows at once.
TEST_P(WindowsApiTest, ARegionWithWindowsIsNotDeregistered_VERBS_02) {
  MemoryWindow window = must(b_.pd.create_window(WindowType::Domain));
  must(window.bind(region_, 0, 100, kBoth));
  expect_refusal(region_.deregister(), ErrorCode::WrongState, "1 window");
  expect_refusal(b_.pd.reregister(region_, {}), ErrorCode::WrongState, "1 window");
  expect_written(window.stag(), 0, 100, 0);
  region_ = MemoryRegion();
  expect_refused(window.stag(), 0);
  EXPECT_EQ(memory_[0], octets(100, 100)[0]) << "as it was written before";
}

// The same in the other order: the window goes, then the region may.
TEST_P(WindowsApiTest, AWindowThatGoesFreesItsRegion_VERBS_01) {
  ProtectionDomain pd = must(world_.right.alloc_pd());
  MemoryRegion region = must(pd.register_memory(std::as_writable_bytes(std::span(memory_)),
                                                Access::Bind | Access::LocalWrite));
  MemoryWindow window = must(pd.create_window(WindowType::Domain));
  // Of another domain nothing can be bound.
  MemoryWindow other = must(b_.pd.create_window(WindowType::Domain));
  expect_refusal(other.bind(region, region.address(), 1, kBoth), ErrorCode::InvalidArgument,
                 "another domain");
  must(window.bind(region, region.address(), 1, kBoth));
  expect_refusal(pd.destroy(), ErrorCode::WrongState, "1 region and 1 window");
  must(window.destroy());
  must(region.deregister());
  must(pd.destroy());
  EXPECT_FALSE(window.bind(region_, 0, 1, kBoth));
  EXPECT_FALSE(window.unbind());
  EXPECT_TRUE(window.destroy());
  EXPECT_FALSE(must(world_.right.alloc_pd()).create_window(static_cast<WindowType>(3)));
  EXPECT_EQ(world_.right.counter("device", "windows_allocated"), 2u);
  EXPECT_EQ(world_.right.counter("device", "windows_freed"), 1u);
}

// A peer writes as fast as it can; the region is deregistered under it, and its memory is another
// one's from that moment: not one octet of what is under way reaches it.
// RDMAP-8.1-01: RFC 5040 s.8.1.1(4), (6)
TEST(RevokedUnderTraffic, NothingIsWrittenAnyMore_SEC_6_2_2_01) {
  World world(loopback_config(true));
  std::vector<uint8_t> memory(64 << 10);
  for (uint64_t round = 0; round < 25; ++round) {
    Side a(world.left);
    Side b(world.right);
    Memory near(a.pd, octets(memory.size(), round), Access::LocalRead);
    MemoryRegion region =
        must(b.pd.register_memory(std::as_writable_bytes(std::span(memory)), kEverything));
    world.connect(a, b, static_cast<uint16_t>(7000 + round));
    std::ranges::fill(memory, uint8_t{0x11});
    for (uint64_t id = 0; id < 40; ++id) {
      SendRequest write = request(Opcode::Write, near.all(), id);
      write.remote = {region.stag(), region.address()};
      must(a.qp.post_send(write));
    }
    std::optional<Completion> first = world.await(a.send_cq);
    ASSERT_TRUE(first);
    must(region.deregister());
    std::ranges::fill(memory, uint8_t{0xc3});
    // All that was under way has come or was flushed when each Write has completed.
    for (int done = 1; done < 40; ++done) ASSERT_TRUE(world.await(a.send_cq));
    EXPECT_TRUE(std::ranges::all_of(memory, [](uint8_t o) { return o == 0xc3; })) << round;
  }
}

}  // namespace
}  // namespace rnic::test
