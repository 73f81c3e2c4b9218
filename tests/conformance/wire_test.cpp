// What a test station says to a whole device, and the Terminate that it reads from the wire. Each
// row has its twin: the nearest legal message is taken.

#include "station.hpp"

namespace rnic::conformance {
namespace {

using wire::DdpTaggedHeader;
using wire::DdpUntaggedHeader;

class Wire : public Station {
 protected:
  [[nodiscard]] Octets write(uint32_t stag, uint64_t to, size_t n) const {
    return tagged({.last = true, .rsvd_ulp = 0x40, .stag = stag, .to = to}, n);
  }
  /// One segment of a Send.
  static Octets send(uint32_t msn, uint32_t mo, size_t n, bool last = true) {
    return untagged({.last = last, .rsvd_ulp = 0x43, .msn = msn, .mo = mo}, n);
  }
  [[nodiscard]] Octets read(uint32_t msn, uint32_t stag, uint64_t to, uint32_t n) const {
    return read_request(msn, {.sink_stag = 7, .size = n, .source_stag = stag, .source_to = to});
  }
  static Octets with(Octets ulpdu, size_t at, uint8_t value) {
    ulpdu[at] = value;
    return ulpdu;
  }
};

TEST_F(Wire, DdpVersionsAndReservedBits_UNH_DDP_01_UNH_DDP_02) {
  std::vector<Row> rows;
  for (const uint8_t version : {0, 2, 3}) {
    const auto own = static_cast<uint8_t>(0xc0 | version);
    rows.push_back({"tagged",
                    {with(write(stag_, 0, 8), 0, own)},
                    {1, 1, 4},
                    {write(stag_, 0, 8), with(write(stag_, 8, 8), 0, 0xc1 | 0x3c)}});
    rows.push_back({"untagged",
                    {with(send(1, 0, 8), 0, own & 0x7f)},
                    {1, 2, 6},
                    {send(1, 0, 8), with(send(2, 0, 8), 0, 0x41 | 0x3c)}});
  }
  expect_rows(rows);
  EXPECT_EQ(memory_[15], 0xee);  // what had reserved bits was placed
}

TEST_F(Wire, TaggedBuffers_UNH_DDP_03_UNH_DDP_04_UNH_DDP_05_UNH_DDP_12) {
  const uint32_t other_pd = add(Access::RemoteWrite, *right().device->alloc_pd());
  const uint32_t other_stream = add(Access::RemoteWrite, {}, 4000);
  const uint32_t gone = add(Access::RemoteWrite);
  ASSERT_TRUE(right().device->deregister_memory(mem::Stag{gone}).has_value());
  const std::vector<Octets> good{write(stag_, 0, 8)};
  expect_rows({
      {"unknown", {write(stag_ ^ 1, 0, 8)}, {1, 1, 0}, good},
      {"nobody's", {write(0xfffffff0, 0, 8)}, {1, 1, 0}, good},
      {"invalidated", {write(gone, 0, 8)}, {1, 1, 0}, good},
      {"other domain", {write(other_pd, 0, 8)}, {1, 1, 2}, good},
      {"other stream", {write(other_stream, 0, 8)}, {1, 1, 2}, good},
      {"one past the end", {write(stag_, kSize - 7, 8)}, {1, 1, 1}, {write(stag_, kSize - 8, 8)}},
      {"behind the end", {write(stag_, kSize, 1)}, {1, 1, 1}, {write(stag_, kSize - 1, 1)}},
      {"wraps", {write(stag_, UINT64_MAX - 6, 8)}, {1, 1, 3}, good},
      {"ends at 2^64", {write(stag_, UINT64_MAX - 7, 8)}, {1, 1, 1}, good},
      {"one octet", {write(0xdead, UINT64_MAX, 1)}, {1, 1, 0}, {write(0xdead, UINT64_MAX, 0)}},
  });
}

TEST_F(Wire, QueuesThatAreNone_UNH_DDP_06) {
  std::vector<Row> rows;
  for (const uint32_t qn : {4u, 5u, 255u, 0x10000u, 0x80000000u, UINT32_MAX}) {
    rows.push_back({"queue",
                    {untagged({.last = true, .rsvd_ulp = 0x43, .qn = qn, .msn = 1}, 8)},
                    {1, 2, 1},
                    {send(1, 0, 8)}});
  }
  rows.push_back({"a Send on queue 3",
                  {untagged({.last = true, .rsvd_ulp = 0x43, .qn = 3, .msn = 1}, 8)},
                  {1, 2, 2},  // no atomic waits for it; otherwise 0/2/06
                  {send(1, 0, 8)}});
  expect_rows(rows);
}

TEST_F(Wire, UntaggedBuffers_UNH_DDP_07_UNH_DDP_08_UNH_DDP_09) {
  const auto rest = [](uint32_t n) {
    std::vector<Octets> all;
    for (uint32_t msn = 1; msn <= n; ++msn) all.push_back(send(msn, 0, 8));
    return all;
  };
  std::vector<Octets> one_more = rest(kReceives + 1);
  expect_rows({
      {"no buffer", one_more, {1, 2, 2}, rest(kReceives)},
      {"one ahead, and its turn does not come", {send(2, 0, 8)}, {1, 2, 3}, rest(2)},
      {"below the window", {send(1, 0, 8), send(1, 0, 8)}, {1, 2, 3}, rest(2)},
      {"zero", {send(0, 0, 8)}, {1, 2, 3}, rest(1)},
      {"far beyond", {send(1u << 31, 0, 8)}, {1, 2, 3}, rest(1)},
      {"beyond the buffer", {send(1, kBuffer + 1, 8)}, {1, 2, 4}, {send(1, 0, 8)}},
      {"too long by one", {send(1, 0, kBuffer + 1)}, {1, 2, 5}, {send(1, 0, kBuffer)}},
      {"too long in its second segment",
       {send(1, 0, 60, false), send(1, 60, 5)},
       {1, 2, 5},
       {send(1, 0, 60, false), send(1, 60, 4)}},
      {"no last segment",
       {send(1, 0, 8, false), send(2, 0, 8)},
       {1, 2, 3},
       {send(1, 0, 8, false), send(1, 8, 8)}},
  });
}

// What overlaps or leaves a hole is placed before the last segment shows the fault;
// nothing of the message completes.
TEST_F(Wire, HolesAndOverlapsCompleteNothing_UNH_DDP_08) {
  for (const uint32_t mo : {4u, 7u, 8u, 9u}) {
    Talk talk = open();
    say(talk, send(1, 0, 8, false));
    say(talk, send(1, mo, 8));
    EXPECT_EQ(terminate_heard(talk), mo == 8 ? kNoTerminate : (Code{1, 2, 4}));
    const auto done = right().completions(cq_);
    ASSERT_FALSE(done.empty());
    EXPECT_EQ(done[0].status == CompletionStatus::Success, mo == 8);
    hang_up(talk);
  }
}

// A Write's segments lie between those of a Send.
TEST_F(Wire, TaggedBetweenUntagged_UNH_DDP_10) {
  Talk talk = open();
  say(talk, send(1, 0, 20, false));
  say(talk, tagged({.last = false, .rsvd_ulp = 0x40, .stag = stag_, .to = 0}, 100));
  say(talk, send(1, 20, 20, false));
  say(talk, tagged({.last = true, .rsvd_ulp = 0x40, .stag = stag_, .to = 100}, 50));
  run_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(right().completions(cq_).empty()) << "its last segment is missing";
  say(talk, send(1, 40, 1));
  EXPECT_EQ(terminate_heard(talk), kNoTerminate);
  const auto done = right().completions(cq_);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].length, 41u);
  EXPECT_EQ(std::count(memory_.begin(), memory_.end(), 0xee), 150);
  EXPECT_EQ(std::count(buffers_.begin(), buffers_.end(), 0xee), 41);
  hang_up(talk);
}

TEST_F(Wire, RdmapVersionsAndOpcodes_UNH_RDMAP_01_UNH_RDMAP_02) {
  std::vector<Row> rows;
  for (const uint8_t version : {0, 2, 3}) {
    rows.push_back({"version",
                    {with(send(1, 0, 8), 1, static_cast<uint8_t>(version << 6 | 3))},
                    {0, 2, 5},
                    {send(1, 0, 8), with(send(2, 0, 8), 1, 0x43 | 0x30)}});
  }
  for (uint8_t opcode = 0; opcode < 16; ++opcode) {
    const auto control = static_cast<uint8_t>(0x40 | opcode);
    const bool on_queue_0 = opcode >= 3 && opcode <= 9 && opcode != 7;
    if (!on_queue_0) {
      rows.push_back({"on queue 0", {with(send(1, 0, 8), 1, control)}, {0, 2, 6}, {send(1, 0, 8)}});
    }
    if (opcode != 0 && opcode != 2) {  // unasked Responses have a row of their own
      rows.push_back(
          {"tagged", {with(write(stag_, 0, 8), 1, control)}, {0, 2, 6}, {write(stag_, 0, 8)}});
    }
  }
  rows.push_back(
      {"unasked Response", {with(write(stag_, 0, 8), 1, 0x42)}, {0, 2, 6}, {write(stag_, 0, 8)}});
  expect_rows(rows);
}

// What may not be invalidated.
TEST_F(Wire, Invalidation_UNH_RDMAP_03) {
  const uint32_t kept = add(Access::RemoteWrite);
  std::vector<Row> rows;
  for (const uint8_t control : {0x44, 0x46}) {
    for (const uint32_t stag : {kept, stag_ ^ 1}) {
      // Each row opens a connection for what is at fault, and one for what is legal.
      const uint64_t legal = stream_to_come(2 * rows.size() + 1);
      const uint32_t may_go = add(Access::RemoteInvalidate, {}, legal);
      const auto invalidate = [&](uint32_t which) {
        return untagged({.last = true, .rsvd_ulp = control, .rsvd_ulp_tail = which, .msn = 1}, 0);
      };
      rows.push_back({"invalidate", {invalidate(stag)}, {0, 1, 9}, {invalidate(may_go)}});
    }
  }
  expect_rows(rows);
}

TEST_F(Wire, ReadRequests_UNH_RDMAP_04) {
  const uint32_t other_pd = add(Access::RemoteRead, *right().device->alloc_pd());
  const uint32_t other_stream = add(Access::RemoteRead, {}, 4000);
  const uint32_t no_right = add(Access::RemoteWrite);
  const std::vector<Octets> good{read(1, stag_, 0, 8)};
  expect_rows({
      {"unknown", {read(1, stag_ ^ 1, 0, 8)}, {0, 1, 0}, good},
      {"bounds", {read(1, stag_, kSize - 7, 8)}, {0, 1, 1}, {read(1, stag_, kSize - 8, 8)}},
      {"no right", {read(1, no_right, 0, 8)}, {0, 1, 2}, good},
      {"other domain", {read(1, other_pd, 0, 8)}, {0, 1, 3}, good},
      {"other stream", {read(1, other_stream, 0, 8)}, {0, 1, 3}, good},
      {"wraps", {read(1, stag_, UINT64_MAX - 6, 8)}, {0, 1, 4}, good},
      {"one octet", {read(1, 0xdead, 5, 1)}, {0, 1, 0}, {read(1, 0xdead, 5, 0)}},
  });
}

// The IRD of the queue pairs is 2.
TEST_F(Wire, AsManyReadsAsTheIrd_UNH_RDMAP_05) {
  for (const uint32_t reads : {2u, 3u}) {
    Talk talk = open();
    for (uint32_t msn = 1; msn <= reads; ++msn) {
      talk.encoder.add(read(msn, stag_, 0, 8));  // in one segment: none is answered before the next
    }
    flush(talk);
    EXPECT_EQ(terminate_heard(talk), reads == 2 ? kNoTerminate : (Code{1, 2, 2}));
    if (reads == 2) {
      EXPECT_EQ(ulpdus(talk).size(), 2u);
    }
    hang_up(talk);
  }
}

// A Terminate from the peer is told and never answered; a malformed one is an error.
TEST_F(Wire, ATerminateIsNotAnswered_UNH_RDMAP_09) {
  for (const bool legal : {true, false}) {
    Talk talk = open();
    Octets terminate = untagged({.last = true, .rsvd_ulp = 0x47, .qn = 2, .msn = 1}, 4);
    std::copy_n(Octets{0x11, 0x01, 0, 0}.begin(), 4, terminate.begin() + 18);
    if (!legal) terminate.resize(18 + 60);  // more than any Terminate has
    say(talk, terminate);
    EXPECT_EQ(terminate_heard(talk), legal ? kNoTerminate : (Code{1, 2, 5}));
    EXPECT_EQ(right().has<event::TerminateReceived>(), legal);
    hang_up(talk);
  }
}

/// A device that reports a bad CRC at once, with markers and without.
class Framing : public Station, public ::testing::WithParamInterface<bool> {
 protected:
  Framing()
      : Station([](device::DeviceConfig& config) {
          config.mpa.silent_drop = false;
          config.mpa.markers_receive = config.name == "right" && GetParam();
        }) {}
  [[nodiscard]] Octets write(uint64_t to, size_t n) const {
    return tagged({.last = true, .rsvd_ulp = 0x40, .stag = stag_, .to = to}, n);
  }
};

// A bit of header, payload, pad and CRC; what stands before is there, and nothing of
// the FPDU itself. Twin: the same stream with the bit as it should be.
TEST_P(Framing, ABitChanged_UNH_MPA_2_03) {
  constexpr size_t kLength = 43;  // 14 + 43 + 2 octets of length: one of pad
  for (const bool changed : {true, false}) {
    for (const size_t from_end : {0u, 4u, 5u, 30u, 50u}) {  // CRC, pad, payload, DDP header
      std::fill(memory_.begin(), memory_.end(), kUntouched);
      Talk talk = open();
      say(talk, write(0, 10));
      talk.encoder.add(write(100, kLength));
      if (changed) talk.encoder.stream[talk.encoder.stream.size() - 1 - from_end] ^= 0x04;
      flush(talk);
      EXPECT_EQ(terminate_heard(talk), changed ? (Code{2, 0, 2}) : kNoTerminate) << from_end;
      EXPECT_EQ(std::count(memory_.begin(), memory_.end(), 0xee),
                static_cast<long>(changed ? 10 : 10 + kLength));
      hang_up(talk);
    }
  }
}

// Pads that are not zero.
TEST_P(Framing, PadsThatAreNotZero_UNH_MPA_2_02) {
  for (size_t length = 40; length < 44; ++length) {
    const size_t pad = (4 - (2 + 14 + length) % 4) % 4;
    for (const bool repaired : {true, false}) {
      std::fill(memory_.begin(), memory_.end(), kUntouched);
      Talk talk = open();
      say(talk, write(0, 0));
      const size_t begin = talk.encoder.stream.size();
      talk.encoder.add(write(0, length));
      Octets& stream = talk.encoder.stream;
      for (size_t i = 0; i < pad; ++i) stream[stream.size() - 5 - i] = 0xa5;
      if (repaired) {
        base::store_le32(&stream[stream.size() - 4],
                         test::slow_crc32c({&stream[begin], stream.size() - 4 - begin}));
      }
      flush(talk);
      const bool taken = repaired || pad == 0;
      EXPECT_EQ(terminate_heard(talk), taken ? kNoTerminate : (Code{2, 0, 2}));
      EXPECT_EQ(std::count(memory_.begin(), memory_.end(), 0xee),
                static_cast<long>(taken ? length : 0));
      hang_up(talk);
    }
  }
}

// MPA-7.1.2-09: before an FPDU was found right the responder may send none, not even a
// Terminate (RFC 5044 s.7.1.2 rule 4): it closes, and tells its own user why.
TEST_P(Framing, ABitChangedInTheFirstFpdu_UNH_MPA_2_03) {
  Talk talk = open();
  talk.encoder.add(write(0, 40));
  talk.encoder.stream.back() ^= 1;
  flush(talk);
  EXPECT_TRUE(run_until([&] { return right().has<event::Disconnected>(); }));
  const auto told = right().take<event::Disconnected>();
  EXPECT_EQ(told->fault.value().layer, FaultLayer::Llp);
  EXPECT_EQ(told->fault.value().code, 2);
  EXPECT_FALSE(right().has<event::TerminateSent>());
  listen_to(talk);
  EXPECT_EQ(talk.heard.size(), talk.reply) << "nothing behind the Reply";
  EXPECT_EQ(std::count(memory_.begin(), memory_.end(), 0xee), 0);
  hang_up(talk);
}

TEST_P(Framing, MarkersThatPointElsewhere_UNH_MPA_2_06_UNH_MPA_2_08) {
  if (!GetParam()) return;  // without markers there are none
  for (const bool wrong : {true, false}) {
    std::fill(memory_.begin(), memory_.end(), kUntouched);
    Talk talk = open();
    say(talk, write(0, 400));
    const size_t begin = talk.encoder.stream.size();
    ASSERT_LT(begin, 512u);
    talk.encoder.add(write(1000, 300));
    Octets& stream = talk.encoder.stream;
    stream[512] = 0xaa, stream[513] = 0x55;  // reserved
    stream[515] = static_cast<uint8_t>(wrong ? stream[515] + 8 : stream[515]);
    base::store_le32(&stream[stream.size() - 4],
                     test::slow_crc32c({&stream[begin], stream.size() - 4 - begin}));
    flush(talk);
    EXPECT_EQ(terminate_heard(talk), wrong ? (Code{2, 0, 3}) : kNoTerminate);
    EXPECT_EQ(std::count(memory_.begin(), memory_.end(), 0xee), wrong ? 400 : 700);
    hang_up(talk);
  }
}

INSTANTIATE_TEST_SUITE_P(WithoutAndWithMarkers, Framing, ::testing::Bool());

}  // namespace
}  // namespace rnic::conformance
