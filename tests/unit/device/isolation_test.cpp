// What one stream or one application may take of a device, and that nobody else is harmed by it.

#include "device_pair.hpp"

namespace rnic::device {
namespace {

class Isolation : public DevicePair {
 protected:
  static constexpr uint32_t kLarge = 1u << 20;  // more than TCP sends at once: it stays under way
  static constexpr uint32_t kSmall = 64;

  QueuePairSpec spec(Host& host, uint32_t ird, uint32_t ord) {
    QueuePairSpec spec;
    spec.pd = *host.device->alloc_pd();
    spec.send_cq = spec.receive_cq = *host.device->create_cq(64);
    spec.send_depth = spec.receive_depth = 16;
    spec.ird = ird;
    spec.ord = ord;
    return spec;
  }
  QueuePair* make(Host& host, uint32_t ird, uint32_t ord) {
    return *host.device->create_qp(spec(host, ird, ord));
  }

  /// A stream of the left device that reads from memory of the right one.
  struct Reader {
    QueuePair* reads;
    QueuePair* serves;
    std::vector<uint8_t> sink, source;
    mem::Stag here, there;
  };
  void start(Reader& reader, uint8_t seed, const ConnectOptions& options = {}) {
    reader.sink.assign(kLarge, 0);
    reader.source = octets(kLarge, seed);
    reader.here = left().add(reader.sink, reader.reads->spec().pd, Access::LocalWrite);
    reader.there = right().add(reader.source, reader.serves->spec().pd, Access::RemoteRead);
    connect(reader.reads, reader.serves, {1, 2, 3}, {4, 5}, options);
  }
  void read(const Reader& reader, uint64_t id, uint32_t length) {
    auto w = work(Opcode::Read, id, reader.sink, reader.here, length);
    w.remote = {reader.there.value, reinterpret_cast<uint64_t>(reader.source.data())};
    ASSERT_EQ(reader.reads->post_send(w), PostResult::Ok);
  }
  /// Waits until `n` Reads of it have completed, all of them with success.
  void expect_read(const Reader& reader, size_t n) {
    size_t done = 0;
    EXPECT_TRUE(run_until([&] {
      for (const Completion& each : left().completions(reader.reads->spec().send_cq)) {
        EXPECT_EQ(each.status, CompletionStatus::Success);
        ++done;
      }
      return done == n;
    })) << done;
  }
  static void expect_refused(const Error& error, ErrorCode code, const char* word) {
    EXPECT_EQ(error.code, code);
    EXPECT_NE(error.message.find(word), std::string::npos) << error.message;
  }
};

// The applications are to agree on the number of Reads, and one of them does not keep to it.
TEST_F(Isolation, WhoReadsMoreThanItMayEndsAlone_SEC_6_4_3_3_03) {
  Reader greedy{make(left(), 1, 8), make(right(), 2, 2), {}, {}, {}, {}};
  Reader modest{make(left(), 1, 2), make(right(), 2, 2), {}, {}, {}, {}};
  start(greedy, 1, {.ird = kReadsByApplication, .ord = kReadsByApplication});
  start(modest, 2);
  for (uint64_t id = 1; id <= 8; ++id) read(greedy, id, kLarge);
  read(modest, 1, kLarge);
  ASSERT_TRUE(run_until([&] { return right().has<event::TerminateSent>(); }));
  const auto told = right().take<event::TerminateSent>();
  EXPECT_EQ(told->qp, greedy.serves->number());
  EXPECT_EQ(told->fault.layer, FaultLayer::Ddp);
  EXPECT_EQ(told->fault.type, 2);
  EXPECT_EQ(told->fault.code, 0x02);
  expect_read(modest, 1);
  EXPECT_EQ(modest.sink, modest.source);
  EXPECT_EQ(right().take<event::Disconnected>()->qp, greedy.serves->number());
  EXPECT_FALSE(right().has<event::Disconnected>());
  EXPECT_FALSE(right().has<event::TerminateSent>());
  EXPECT_EQ(modest.serves->state(), QueuePairState::Rts);
}

// One stream has filled its queue of Read Requests, and nothing of that is served yet: another one
// reads as many times as it likes.
TEST_F(Isolation, ReadQueuesAreOfOneStreamEach_SEC_6_4_3_3_01) {
  Reader full{make(left(), 2, 2), make(right(), 2, 2), {}, {}, {}, {}};
  Reader other{make(left(), 2, 2), make(right(), 2, 2), {}, {}, {}, {}};
  start(other, 2);
  start(full, 1);
  for (uint64_t id = 1; id <= 2; ++id) read(full, id, kLarge);
  ASSERT_TRUE(run_until([&] { return right().device->rdmap_counters().read_requests_in == 2; }));
  for (uint64_t id = 1; id <= 12; ++id) read(other, id, kSmall);
  expect_read(other, 12);
  EXPECT_TRUE(left().completions(full.reads->spec().send_cq).empty()) << "all was under way";
  EXPECT_TRUE(std::equal(other.sink.begin(), other.sink.begin() + kSmall, other.source.begin()));
  expect_read(full, 2);
  EXPECT_EQ(full.sink, full.source);
  EXPECT_FALSE(right().has<event::TerminateSent>());
}

// Queues of Read Requests are the device's to give: no queue pair has more than limits.max_reads,
// no connection more than its queue pair, and each has its share whatever others have.
// RDMAP-8.1-01: RFC 5040 s.8.1.1(11), s.8.1.2(7)
TEST_F(Isolation, ReadQueuesAreGivenByTheDevice_SEC_7_2_01) {
  Device& device = *right().device;
  const uint32_t most = device.limits().max_reads;
  for (uint32_t QueuePairSpec::*field : {&QueuePairSpec::ird, &QueuePairSpec::ord}) {
    QueuePairSpec wish = spec(right(), 1, 1);
    wish.*field = most + 1;
    const auto refused = device.create_qp(wish);
    ASSERT_FALSE(refused);
    expect_refused(refused.error(), ErrorCode::InvalidArgument, "limits.max_reads");
  }
  QueuePair* qp = make(right(), 2, 2);
  const auto more = device.modify_qp(*qp, {.ird = most + 1}, now_);
  ASSERT_FALSE(more);
  expect_refused(more.error(), ErrorCode::InvalidArgument, "limits.max_reads");
  EXPECT_EQ(qp->attributes().ird, 2u);
  QueuePair* asks = make(left(), 100, 100);
  const auto wish = left().device->connect(*asks, right_end(), {}, now_, {.ird = 101});
  ASSERT_FALSE(wish);
  expect_refused(wish.error(), ErrorCode::InvalidArgument, "above the queue pair's");
  connect(asks, qp);
  EXPECT_EQ(asks->attributes().ord, 2u) << "what the peer's queue pair has";
  EXPECT_EQ(qp->attributes().ird, 2u);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(make(right(), most, most)->attributes().ird, most);
}

}  // namespace
}  // namespace rnic::device
