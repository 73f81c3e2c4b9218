// Atomics, Immediate Data and local invalidation through the public API.

#include <mutex>
#include <span>
#include <thread>

#include "verbs_pair.hpp"

namespace rnic {
namespace {

using namespace test;  // NOLINT: the tests' own vocabulary

class Extensions : public ::testing::Test {
 protected:
  static RemoteAddress at(const Memory& memory, uint64_t offset = 0) {
    return {memory.region.stag(), memory.region.address() + offset};
  }
  static uint64_t word(const Memory& memory, uint64_t offset = 0) {
    uint64_t value = 0;
    std::copy_n(memory.data.begin() + static_cast<ptrdiff_t>(offset), 8,
                reinterpret_cast<uint8_t*>(&value));
    return value;
  }
  World world_;
};

// R7306-5-04 R7306-5-05 R7306-5-06
TEST_F(Extensions, Atomics_R7306_5_01_VERBS_09) {
  Side a(world_.left);
  Side b(world_.right);
  world_.connect(a, b);
  Memory counter(b.pd, std::vector<uint8_t>(64), Access::RemoteAtomic);
  const auto original = [&](uint64_t id) {
    const auto done = world_.await(a.send_cq);
    EXPECT_TRUE(done && done->id == id && done->status == CompletionStatus::Success);
    EXPECT_EQ(done->length, 8u);
    return done->original;
  };
  must(a.qp.post_fetch_add(1, at(counter), 40));
  EXPECT_EQ(original(1), 0u);
  must(a.qp.post_fetch_add(2, at(counter), ~uint64_t{0}));  // minus one
  EXPECT_EQ(original(2), 40u);
  EXPECT_EQ(word(counter), 39u);
  must(a.qp.post_fetch_add(3, at(counter), 0x0000'0001'ffff'ffff, uint64_t{1} << 31));
  EXPECT_EQ(original(3), 39u);
  EXPECT_EQ(word(counter), 0x0000'0001'0000'0026u) << "no carry from the low 32 bits";
  must(a.qp.post_compare_swap(4, at(counter), 1, 7));
  EXPECT_EQ(original(4), 0x0000'0001'0000'0026u);
  EXPECT_EQ(word(counter), 0x0000'0001'0000'0026u) << "did not match";
  must(a.qp.post_compare_swap(5, at(counter), 0x26, 0xabcd, 0xff, 0xff00));
  EXPECT_EQ(original(5), 0x0000'0001'0000'0026u);
  EXPECT_EQ(word(counter), 0x0000'0001'0000'ab26u);
  // Into memory, beside the completion.
  Memory result(a.pd, std::vector<uint8_t>(8), Access::LocalWrite);
  SendRequest add = request(Opcode::FetchAdd, result.all(), counter, 6);
  add.atomic.data = 1;
  must(a.qp.post_send(add));
  EXPECT_EQ(original(6), 0x0000'0001'0000'ab26u);
  EXPECT_EQ(word(result), 0x0000'0001'0000'ab26u);
  EXPECT_EQ(must(world_.right.counter("rdmap", "atomics_in")), 6u);
}

// R7306-5-07
TEST_F(Extensions, AtomicsNeedRightAndAlignment_R7306_5_14) {
  struct Case {
    AccessSet access;
    uint64_t offset;
    Fault fault;
  };
  for (const Case& c : {Case{kEverything, 0, {FaultLayer::Rdmap, 1, 2}},
                        Case{Access::RemoteAtomic, 4, {FaultLayer::Rdmap, 2, 7}},
                        Case{Access::RemoteAtomic, 64, {FaultLayer::Rdmap, 1, 1}}}) {
    Side a(world_.left);
    Side b(world_.right);
    world_.connect(a, b);
    Memory target(b.pd, octets(64, 5), c.access);
    const auto before = target.data;
    must(a.qp.post_fetch_add(1, at(target, c.offset), 1));
    const auto event = world_.await<event::TerminateSent>(world_.right, b.qp.number());
    ASSERT_TRUE(event);
    EXPECT_EQ(event->fault.layer, c.fault.layer);
    EXPECT_EQ(event->fault.type, c.fault.type);
    EXPECT_EQ(event->fault.code, c.fault.code);
    EXPECT_EQ(target.data, before);
    const auto done = world_.await(a.send_cq);
    ASSERT_TRUE(done);
    EXPECT_EQ(done->status, c.fault.type == 1 ? CompletionStatus::RemoteAccess
                                              : CompletionStatus::RemoteOperation);
  }
}

// R7306-6-02
TEST_F(Extensions, WriteWithImmediate_R7306_6_03) {
  Side a(world_.left);
  Side b(world_.right);
  world_.connect(a, b);
  Memory from(a.pd, octets(20'000, 3), Access::LocalRead);
  Memory to(b.pd, std::vector<uint8_t>(20'000), kEverything);
  for (uint64_t i = 0; i < 2; ++i) must(b.qp.post_receive(ReceiveRequest{.id = i}));
  must(a.qp.post_send(request(Opcode::Write, from.all(), to)));
  must(a.qp.post_immediate(2, {1, 2, 3, 4, 5, 6, 7, 8}, true));
  must(a.qp.post_send(SendRequest{.id = 3, .opcode = Opcode::Send}));
  const auto got = world_.await(b.receive_cq);
  ASSERT_TRUE(got);
  EXPECT_EQ(to.data, from.data);
  EXPECT_TRUE(got->has_immediate);
  EXPECT_TRUE(got->solicited);
  EXPECT_EQ(got->immediate, (ImmediateData{1, 2, 3, 4, 5, 6, 7, 8}));
  const auto plain = world_.await(b.receive_cq);
  ASSERT_TRUE(plain);
  EXPECT_FALSE(plain->has_immediate);
}

TEST_F(Extensions, LocalInvalidation) {
  Side a(world_.left);
  Side b(world_.right);
  world_.connect(a, b);
  Memory sink(a.pd, std::vector<uint8_t>(100), Access::LocalWrite);
  Memory source(b.pd, octets(100, 9), kEverything);
  must(a.qp.post_send(request(Opcode::ReadInvalidate, sink.all(), source, 1)));
  world_.expect_done(a.send_cq, 1, 100);
  EXPECT_EQ(sink.data, source.data);
  Memory other(a.pd, std::vector<uint8_t>(100), Access::LocalWrite);
  SendRequest invalidate{.id = 2, .opcode = Opcode::LocalInvalidate};
  invalidate.invalidate_stag = other.region.stag();
  must(a.qp.post_send(invalidate));
  world_.expect_done(a.send_cq, 2, 0);
  // Both are gone.
  must(a.qp.post_send(request(Opcode::Read, sink.all(), source, 3)));
  const auto done = world_.await(a.send_cq);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->status, CompletionStatus::LocalProtection);
}

TEST_F(Extensions, RequestsThatCanNeverWork) {
  Side a(world_.left);
  Memory memory(a.pd, std::vector<uint8_t>(100), Access::LocalWrite);
  const auto refused = [&](Opcode opcode, uint32_t length, uint32_t count) {
    SendRequest bad = request(opcode, memory.region.sge(0, length));
    bad.sges = {};
    while (bad.sges.size() < count) bad.sges.push_back(memory.region.sge(0, length));
    const Status status = a.qp.post_send(bad);
    return !status && status.error().code == ErrorCode::InvalidArgument;
  };
  for (const Opcode opcode : {Opcode::FetchAdd, Opcode::CompareSwap}) {
    EXPECT_TRUE(refused(opcode, 8, 2));
    EXPECT_TRUE(refused(opcode, 7, 1));
    EXPECT_TRUE(refused(opcode, 0, 1));
  }
  EXPECT_TRUE(refused(Opcode::Immediate, 8, 1));
  EXPECT_TRUE(refused(Opcode::LocalInvalidate, 8, 1));
  EXPECT_TRUE(refused(Opcode::ReadInvalidate, 8, 0));
  EXPECT_TRUE(refused(Opcode::ReadInvalidate, 8, 2));
  EXPECT_TRUE(refused(Opcode::Receive, 8, 1));
}

// Switched off for a device.
TEST(ExtensionsOff, AreUnsupported_R7306_4_01) {
  Config config = loopback_config();
  config.set("device.rnic0.rdma_extensions=false");
  const Status valid = config.check();
  ASSERT_TRUE(valid) << valid.error().message;
  World world(config);
  Side a(world.left);
  const Status status = a.qp.post_fetch_add(1, {}, 1);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::Unsupported);
  EXPECT_FALSE(a.qp.post_immediate(1, {}));
}

// Two workers, each serving the other's stream, on one word at once. An addition that
// was lost, or a value that was given twice, would show.
TEST(ExtensionsThreaded, StreamsOnOneWord_R7306_5_11) {
  constexpr uint64_t kEach = 3000;
  World world(loopback_config(true));
  Side a(world.left);
  Side b(world.right);
  world.connect(a, b);
  alignas(8) uint64_t shared = 0;
  MemoryRegion far = must(
      b.pd.register_memory(std::as_writable_bytes(std::span(&shared, 1)), Access::RemoteAtomic));
  MemoryRegion near = must(
      a.pd.register_memory(std::as_writable_bytes(std::span(&shared, 1)), Access::RemoteAtomic));
  std::vector<int> given(2 * kEach);
  std::mutex guard;
  const auto run = [&](Side& side, const MemoryRegion& target) {
    uint64_t posted = 0, done = 0;
    std::vector<uint64_t> mine;
    while (done < kEach) {
      while (posted < kEach && posted - done < 32) {
        if (!side.qp.post_fetch_add(posted, {target.stag(), target.address()}, 1)) break;
        ++posted;
      }
      Completion c;
      while (side.send_cq.poll({&c, 1}) == 1) {
        ASSERT_EQ(c.status, CompletionStatus::Success);
        mine.push_back(c.original);
        ++done;
      }
      std::this_thread::yield();
    }
    const std::lock_guard lock(guard);
    for (const uint64_t value : mine) ++given.at(value);
  };
  // The responder may send once it has heard from the initiator.
  must(b.qp.post_receive(ReceiveRequest{}));
  must(a.qp.post_immediate(1, {}));
  ASSERT_TRUE(world.await(b.receive_cq));
  ASSERT_TRUE(world.await(a.send_cq));
  std::thread left([&] { run(a, far); });
  std::thread right([&] { run(b, near); });
  left.join();
  right.join();
  EXPECT_EQ(shared, 2 * kEach);
  EXPECT_TRUE(std::ranges::all_of(given, [](int n) { return n == 1; }));
}

}  // namespace
}  // namespace rnic
