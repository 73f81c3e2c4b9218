// What can be posted, and what is learned of it: each kind of work request through the public API.

#include <array>
#include <numeric>
#include <span>

#include "verbs_pair.hpp"

namespace rnic {
namespace {

using namespace test;  // NOLINT: the tests' own vocabulary

/// Two connected queue pairs, with registered memory and receives on either side.
class WorkRequests : public ::testing::Test {
 protected:
  static constexpr uint32_t kSize = 20'000;
  static constexpr ImmediateData kOctets{8, 7, 6, 5, 4, 3, 2, 1};

  WorkRequests() {
    world_.connect(a_, b_);
    for (uint64_t id = 0; id < 8; ++id) must(b_.qp.post_receive(id, {to_.region.sge(0, kSize)}));
  }
  static RemoteAddress at(const Memory& memory, uint64_t offset = 0) {
    return {memory.region.stag(), memory.region.address() + offset};
  }
  /// Four pieces, not in the order of their addresses, and the octets that they are.
  [[nodiscard]] SgeList pieces() const {
    return {from_.region.sge(5000, 3), from_.region.sge(100, 4000), from_.region.sge(7000, 0),
            from_.region.sge(0, 77)};
  }
  [[nodiscard]] std::vector<uint8_t> gathered() const {
    std::vector<uint8_t> out;
    for (const auto& [at, n] : {std::pair{5000, 3}, {100, 4000}, {0, 77}}) {
      out.insert(out.end(), from_.data.begin() + at, from_.data.begin() + at + n);
    }
    return out;
  }
  [[nodiscard]] bool received(const std::vector<uint8_t>& octets) const {
    return std::equal(octets.begin(), octets.end(), to_.data.begin());
  }

  World world_;
  Side a_{world_.left};
  Side b_{world_.right};
  Memory from_{a_.pd, octets(kSize, 1), kEverything};
  Memory to_{b_.pd, std::vector<uint8_t>(kSize), kEverything | Access::RemoteInvalidate,
             &b_.qp};
};

// Each kind of Send, from a list of pieces and from inline data that is overwritten at once.
TEST_F(WorkRequests, SendsOfEachKind_VERBS_06) {
  for (const bool invalidate : {false, true}) {
    for (const bool solicited : {false, true}) {
      for (const bool kept : {false, true}) {
        SCOPED_TRACE(::testing::Message() << invalidate << solicited << kept);
        Memory window(b_.pd, octets(8, 1), Access::RemoteWrite | Access::RemoteInvalidate,
                      &b_.qp);
        const auto expected = kept ? octets(kMaxInline, 5) : gathered();
        std::vector<uint8_t> data = octets(kMaxInline, 5);
        SendRequest work{.id = 5, .solicited = solicited};
        if (invalidate) work.opcode = Opcode::SendInvalidate;
        work.invalidate_stag = window.region.stag();
        kept ? work.inline_data = std::as_bytes(std::span(data)) : work.inline_data = {};
        if (!kept) work.sges = pieces();
        must(a_.qp.post_send(work));
        std::ranges::fill(data, uint8_t{0});
        world_.expect_done(a_.send_cq, 5, static_cast<uint32_t>(expected.size()));
        const auto got = world_.await(b_.receive_cq);
        ASSERT_TRUE(got);
        EXPECT_EQ(got->length, expected.size());
        EXPECT_EQ(got->solicited, solicited);
        EXPECT_EQ(got->invalidated_stag, invalidate ? window.region.stag() : 0u);
        EXPECT_TRUE(received(expected));
        must(b_.qp.post_receive(1, {to_.all()}));
      }
    }
  }
}

TEST_F(WorkRequests, WritesFromPiecesAndFromInlineData_VERBS_07) {
  must(a_.qp.post_write(1, pieces(), at(to_)));
  world_.expect_done(a_.send_cq, 1, 4080);
  must(a_.qp.post_send(2, {}));  // the peer has the Write when it has this
  ASSERT_TRUE(world_.await(b_.receive_cq));
  EXPECT_TRUE(received(gathered()));
  world_.expect_done(a_.send_cq, 2, 0);

  std::vector<uint8_t> data = octets(kMaxInline, 9);
  SendRequest write{.id = 3, .opcode = Opcode::Write};
  write.inline_data = std::as_bytes(std::span(data));
  write.remote = at(to_);
  must(a_.qp.post_send(write));
  std::ranges::fill(data, uint8_t{0});
  world_.expect_done(a_.send_cq, 3, kMaxInline);
  must(a_.qp.post_send(4, {}));
  ASSERT_TRUE(world_.await(b_.receive_cq));
  EXPECT_TRUE(received(octets(kMaxInline, 9)));
}

TEST_F(WorkRequests, InlineDataThatCannotBeKept) {
  const std::vector<std::byte> data(kMaxInline + 1);
  const auto refused = [&](Opcode opcode, size_t octets, bool piece) {
    SendRequest work{.opcode = opcode, .remote = at(to_)};
    work.inline_data = std::span(data).first(octets);
    if (piece) work.sges = {from_.region.sge(0, 8)};
    const Status status = a_.qp.post_send(work);
    return status ? std::string() : status.error().message;
  };
  EXPECT_EQ(refused(Opcode::Send, kMaxInline, false), "");
  EXPECT_EQ(refused(Opcode::WriteImmediate, kMaxInline, false), "");
  EXPECT_EQ(refused(Opcode::Read, 0, false), "");
  EXPECT_NE(refused(Opcode::Send, kMaxInline + 1, false).find("256 octets"), std::string::npos);
  EXPECT_NE(refused(Opcode::Send, 8, true).find("leave out"), std::string::npos);
  for (const Opcode opcode : {Opcode::Read, Opcode::FetchAdd, Opcode::CompareSwap,
                              Opcode::Immediate, Opcode::LocalInvalidate}) {
    EXPECT_NE(refused(opcode, 8, false).find("leave out"), std::string::npos) << to_string(opcode);
  }
}

// The error of too many pieces says how many each opcode takes, and the queue takes as many.
TEST_F(WorkRequests, HowManyPiecesARequestTakesIsWhatTheErrorSays) {
  QueuePair idle = must(a_.pd.create_qp(a_.send_cq, a_.receive_cq));
  const auto error_of = [&](Opcode opcode, uint32_t pieces) {
    SendRequest work{.opcode = opcode};
    for (uint32_t i = 0; i < pieces; ++i) work.sges.push_back(from_.region.sge(8 * i, 8));
    const Status status = idle.post_send(work);
    return status ? std::string() : status.error().message;
  };
  struct Most {
    Opcode opcode;
    uint32_t pieces;
    const char* words;
  };
  const std::array<Most, 11> all{{{Opcode::Send, kMaxSge, "at most 16,"},
                                  {Opcode::SendInvalidate, kMaxSge, "at most 16,"},
                                  {Opcode::Write, kMaxSge, "at most 16,"},
                                  {Opcode::WriteImmediate, kMaxSge, "at most 16,"},
                                  {Opcode::Read, kMaxSge, "at most 16, but 1 for ReadInvalidate,"},
                                  {Opcode::FastRegister, kMaxSge, "at most 16,"},
                                  {Opcode::ReadInvalidate, 1, "1 for ReadInvalidate, an atomic"},
                                  {Opcode::FetchAdd, 1, "an atomic and BindWindow"},
                                  {Opcode::BindWindow, 1, "and BindWindow, and none"},
                                  {Opcode::Immediate, 0, "none for Immediate"},
                                  {Opcode::LocalInvalidate, 0, "Immediate and LocalInvalidate"}}};
  for (const auto& [opcode, pieces, words] : all) {
    EXPECT_EQ(error_of(opcode, pieces), "") << to_string(opcode);
    const std::string error = error_of(opcode, pieces + 1);
    EXPECT_NE(error.find(words), std::string::npos) << to_string(opcode) << ": " << error;
  }
}

TEST_F(WorkRequests, Reads_VERBS_08) {
  must(a_.qp.post_read(1, {from_.region.sge(0, 9000)}, at(to_, 500)));
  world_.expect_done(a_.send_cq, 1, 9000);
  EXPECT_TRUE(std::equal(to_.data.begin() + 500, to_.data.begin() + 9500, from_.data.begin()));
  Memory sink(a_.pd, std::vector<uint8_t>(100, 7), Access::LocalWrite);
  must(a_.qp.post_read_invalidate(2, sink.all(), at(to_)));
  world_.expect_done(a_.send_cq, 2, 100);
  EXPECT_EQ(sink.data, std::vector<uint8_t>(100));
  must(a_.qp.post_read(3, {sink.all()}, at(to_)));
  const auto gone = world_.await(a_.send_cq);
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->status, CompletionStatus::LocalProtection);
}

// Sixteen pieces, the last of them first in memory.
TEST_F(WorkRequests, AReadIntoPieces_VERBS_26) {
  Memory sink(a_.pd, std::vector<uint8_t>(16 * 1000), Access::LocalWrite);
  SgeList pieces;
  for (uint32_t i = 0; i < kMaxSge; ++i) {
    pieces.push_back(sink.region.sge((kMaxSge - 1 - i) * 1000, 900));
  }
  must(a_.qp.post_write(2, {from_.region.sge(0, kSize)}, at(to_)));
  world_.expect_done(a_.send_cq, 2, kSize);
  must(a_.qp.post_read(3, pieces, at(to_, 50)));
  world_.expect_done(a_.send_cq, 3, 16 * 900);
  for (uint32_t i = 0; i < kMaxSge; ++i) {
    const auto got = sink.data.begin() + (kMaxSge - 1 - i) * 1000;
    EXPECT_TRUE(std::equal(got, got + 900, from_.data.begin() + 50 + i * 900)) << i;
    EXPECT_EQ(std::vector<uint8_t>(got + 900, got + 1000), std::vector<uint8_t>(100)) << i;
  }
  pieces.push_back({});
  EXPECT_EQ(a_.qp.post_read(4, pieces, at(to_)).error().code, ErrorCode::InvalidArgument);
}

// CompletionStatus::Success: without a turn of the peer a Write completes over sockets, where the
// system's TCP has it, and not over a TCP of ours; a Read completes over neither.
TEST(SuccessOfARequest, SaysWhatThePortKnows) {
  for (const bool sockets : {false, true}) {
    SCOPED_TRACE(sockets ? "sockets" : "wire");
    Config config = sockets ? socket_config(false) : loopback_config();
    config.set("mpa.first_fpdu_delay=0s");
    World world(config);
    Side a(world.left);
    Side b(world.right);
    world.connect(a, b);
    Memory near(a.pd, octets(64, 1), Access::LocalWrite);
    Memory far(b.pd, std::vector<uint8_t>(64), kEverything);
    const auto completes_alone = [&] {
      Completion done;
      for (int turn = 0; turn < 1000; ++turn) {
        world.left.poll();
        if (a.send_cq.poll({&done, 1}) == 1) return true;
      }
      return false;
    };
    must(a.qp.post_write(1, {near.all()}, {far.region.stag(), far.region.address()}));
    EXPECT_EQ(completes_alone(), sockets);
    EXPECT_EQ(far.data, std::vector<uint8_t>(64)) << "it is not placed yet";
    if (!sockets) {
      world.expect_done(a.send_cq, 1, 64);
    }
    must(a.qp.post_read(2, {near.all()}, {far.region.stag(), far.region.address()}));
    EXPECT_FALSE(completes_alone());
    world.expect_done(a.send_cq, 2, 64);
    EXPECT_EQ(far.data, octets(64, 1)) << "what a Read has gone by is placed";
  }
}

TEST_F(WorkRequests, WriteWithImmediateIsOneRequest_VERBS_10) {
  must(a_.qp.post_write_immediate(1, pieces(), at(to_), kOctets, {.solicited = true}));
  const auto got = world_.await(b_.receive_cq);
  ASSERT_TRUE(got);
  EXPECT_TRUE(received(gathered())) << "it is placed when the immediate is there";
  EXPECT_TRUE(got->has_immediate);
  EXPECT_TRUE(got->solicited);
  EXPECT_EQ(got->immediate, kOctets);
  EXPECT_EQ(got->length, 8u);
  EXPECT_EQ(got->written, gathered().size());
  world_.expect_done(a_.send_cq, 1, 4080);
  must(a_.qp.post_immediate(2, {1}));
  const auto alone = world_.await(b_.receive_cq);
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->immediate, (ImmediateData{1}));
  world_.expect_done(a_.send_cq, 2, 8);
  Completion more;
  EXPECT_EQ(a_.send_cq.poll({&more, 1}), 0u);
}

// What is fenced leaves when the Read before it is here: it has the octets that were read.
TEST_F(WorkRequests, AFenceWaitsForReadsAndAtomics_VERBS_11) {
  std::ranges::copy(octets(8, 77), to_.data.begin());
  Memory counter(b_.pd, std::vector<uint8_t>(8), Access::RemoteAtomic);
  must(a_.qp.post_read(1, {from_.region.sge(0, 8)}, at(to_)));
  must(a_.qp.post_write(2, {from_.region.sge(0, 8)}, at(to_, 1000), {.fence = true}));
  SendRequest add = request(Opcode::FetchAdd, from_.region.sge(8, 8), counter, 3);
  add.atomic.data = 5;
  std::ranges::fill(std::span(from_.data).subspan(8, 8), uint8_t{0xff});
  must(a_.qp.post_send(add));
  must(a_.qp.post_write(4, {from_.region.sge(8, 8)}, at(to_, 2000), {.fence = true}));
  must(a_.qp.post_send(5, {}));
  for (uint64_t id = 1; id <= 5; ++id) world_.expect_done(a_.send_cq, id, id == 5 ? 0 : 8);
  ASSERT_TRUE(world_.await(b_.receive_cq));
  EXPECT_TRUE(std::equal(to_.data.begin(), to_.data.begin() + 8, to_.data.begin() + 1000));
  EXPECT_TRUE(std::all_of(to_.data.begin() + 2000, to_.data.begin() + 2008,
                          [](uint8_t octet) { return octet == 0; }));
}

// An unsignalled success says nothing; an error completes whatever was asked for, and so does what
// is flushed behind it.
TEST_F(WorkRequests, UnsignalledRequestsCompleteInAnError_VERBS_12) {
  for (uint64_t id = 1; id <= 3; ++id) {
    must(a_.qp.post_write(id, {from_.region.sge(0, 8)}, at(to_), {.signaled = id == 3}));
  }
  world_.expect_done(a_.send_cq, 3, 8);
  must(a_.qp.post_write(4, {{from_.region.address(), 8, from_.region.stag() ^ 1}}, at(to_),
                        {.signaled = false}));
  must(a_.qp.post_write(5, {from_.region.sge(0, 8)}, at(to_), {.signaled = false}));
  for (const auto& [id, status] :
       {std::pair{4, CompletionStatus::LocalProtection}, {5, CompletionStatus::Flushed}}) {
    const auto done = world_.await(a_.send_cq);
    ASSERT_TRUE(done);
    EXPECT_EQ(done->id, static_cast<uint64_t>(id));
    EXPECT_EQ(done->status, status);
  }
}

// A piece that leaves its region, wherever in a long list: nothing of the message leaves.
TEST_F(WorkRequests, APieceBeyondItsRegionIsRefusedBeforeAnythingLeaves) {
  must(a_.qp.post_write(1, {from_.all(), from_.region.sge(kSize - 1, 2)}, at(to_)));
  const auto done = world_.await(a_.send_cq);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->status, CompletionStatus::LocalProtection);
  EXPECT_TRUE(world_.await<event::TerminateReceived>(world_.right, b_.qp.number()));
  EXPECT_EQ(world_.left.counter("rdmap", "octets_out"), 0u);
  EXPECT_EQ(to_.data, std::vector<uint8_t>(kSize));
}

// A list is taken up to the first request that is refused; what was taken is carried out.
TEST_F(WorkRequests, AListSaysHowManyWereTakenAndWhyNotTheNext) {
  std::vector<SendRequest> list(5);
  for (uint64_t i = 0; i < 5; ++i) list[i] = SendRequest{.id = i, .sges = {from_.region.sge(i, 1)}};
  list[3].opcode = Opcode::Receive;
  const ListPosted some = a_.qp.post_send(list);
  EXPECT_EQ(some.taken, 3u);
  ASSERT_FALSE(some.status);
  EXPECT_EQ(some.status.error().code, ErrorCode::InvalidArgument);
  for (uint64_t id = 0; id < 3; ++id) world_.expect_done(a_.send_cq, id, 1);

  list.assign(100, SendRequest{.id = 9});
  const ListPosted full = a_.qp.post_send(list);
  EXPECT_EQ(full.taken, 64u);
  ASSERT_FALSE(full.status);
  EXPECT_EQ(full.status.error().code, ErrorCode::ResourceExhausted);
  EXPECT_NE(full.status.error().message.find("64 outstanding"), std::string::npos);

  const std::vector<ReceiveRequest> receives(100);
  const ListPosted taken = a_.qp.post_receive(receives);
  EXPECT_EQ(taken.taken, 64u);
  EXPECT_FALSE(taken.status);
  EXPECT_TRUE(a_.qp.post_send(std::span<const SendRequest>{}).status);
  EXPECT_EQ(a_.qp.post_receive(std::span(receives).first(1)).taken, 0u);
}

// One call of poll() takes many; each entry says what it is.
TEST_F(WorkRequests, ManyCompletionsInOnePoll_VERBS_14) {
  const std::array<SendRequest, 3> list{
      SendRequest{.id = 1, .sges = {from_.region.sge(0, 10)}},
      SendRequest{
          .id = 2, .opcode = Opcode::Write, .sges = {from_.region.sge(0, 20)}, .remote = at(to_)},
      SendRequest{.id = 3, .opcode = Opcode::Immediate, .immediate = kOctets}};
  const ListPosted posted = a_.qp.post_send(list);
  ASSERT_TRUE(posted.status);
  EXPECT_EQ(posted.taken, 3u);
  world_.wait([&] { return world_.left.counter("rdmap", "messages_out") == 3u; });
  world_.wait([&] { return world_.right.counter("rdmap", "immediates_in") == 1u; });
  std::array<Completion, 8> out;
  uint32_t count = 0;
  world_.wait([&] { return (count += a_.send_cq.poll(std::span(out).subspan(count))) == 3; });
  constexpr std::array<uint32_t, 3> kLengths{10, 20, 8};
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(out[i].id, i + 1);
    EXPECT_EQ(out[i].opcode, list[i].opcode);
    EXPECT_EQ(out[i].length, kLengths[i]);
    EXPECT_EQ(out[i].qp, a_.qp.number());
  }
  ASSERT_EQ(b_.receive_cq.poll(out), 2u);
  EXPECT_EQ(out[0].length, 10u);
  EXPECT_EQ(out[1].immediate, kOctets);
  for (uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(out[i].id, i);
    EXPECT_EQ(out[i].opcode, Opcode::Receive);
    EXPECT_EQ(out[i].qp, b_.qp.number());
  }
}

}  // namespace
}  // namespace rnic
