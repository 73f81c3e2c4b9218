#include <gtest/gtest-spi.h>

#include "raw_peer.hpp"

namespace rnic::testing {
namespace {

Segment of_the_stack() {
  Segment s{.seq = 1, .ack = 2, .flags = flag::kSyn | flag::kAck, .window = 3, .payload = 4};
  s.parsed.mss = 1460;
  s.parsed.sack[0] = {base::Seq32(10), base::Seq32(20)};
  s.parsed.sack_count = 1;
  s.source_port = 5;
  s.traffic_class = 6;
  s.hop_limit = 7;
  return s;
}

TEST(PeerSegment, OnlyWhatIsNamedIsCompared) {
  compare(of_the_stack(), {});
  compare(of_the_stack(), {.seq = 1, .payload = 4});
  compare(of_the_stack(), {.flags = flag::kSyn | flag::kAck,
                           .seq = 1,
                           .ack = 2,
                           .window = 3,
                           .payload = 4,
                           .octets = std::vector<uint8_t>{},
                           .ecn = 0,
                           .options = kinds::kMss | kinds::kSack,
                           .mss = 1460,
                           .sack = SackBlocks{{10, 20}},
                           .source_port = 5,
                           .traffic_class = 6,
                           .hop_limit = 7});
}

TEST(PeerSegment, AWholeSegmentIsLikeItselfAndNoOther) {
  Segment stamped = of_the_stack();
  stamped.parsed.timestamps = wire::TcpTimestamps{1, 2};
  compare(of_the_stack(), all_of(of_the_stack()));
  compare(stamped, all_of(stamped));
  EXPECT_NONFATAL_FAILURE(compare(stamped, all_of(of_the_stack())), "options: ");
  EXPECT_NONFATAL_FAILURE(compare(of_the_stack(), all_of(stamped)), "ts_echo: absent, expected 2");
}

TEST(PeerSegment, EachDifferenceIsReportedByItsName) {
  EXPECT_NONFATAL_FAILURE(compare(of_the_stack(), {.flags = flag::kSyn}),
                          "flags: SYN|ACK, expected SYN");
  EXPECT_NONFATAL_FAILURE(compare(of_the_stack(), {.seq = 9}), "seq: 1, expected 9");
  EXPECT_NONFATAL_FAILURE(compare(of_the_stack(), {.ack = 9}), "ack: 2, expected 9");
  EXPECT_NONFATAL_FAILURE(compare(of_the_stack(), {.window = 9}), "window: 3, expected 9");
  EXPECT_NONFATAL_FAILURE(compare(of_the_stack(), {.payload = 9}), "payload: 4, expected 9");
  EXPECT_NONFATAL_FAILURE(compare(of_the_stack(), {.octets = std::vector<uint8_t>{7}}), "octets: ");
  EXPECT_NONFATAL_FAILURE(compare(of_the_stack(), {.ecn = kCe}), "ecn: 0, expected 3");
  EXPECT_NONFATAL_FAILURE(compare(of_the_stack(), {.options = kinds::kMss}), "options: ");
  EXPECT_NONFATAL_FAILURE(compare(of_the_stack(), {.mss = 9}), "mss: 1460, expected 9");
  EXPECT_NONFATAL_FAILURE(compare(of_the_stack(), {.window_scale = 9}),
                          "window_scale: absent, expected 9");
  EXPECT_NONFATAL_FAILURE(compare(of_the_stack(), {.ts_value = 9}), "ts_value: absent, expected 9");
  EXPECT_NONFATAL_FAILURE(compare(of_the_stack(), {.ts_echo = 9}), "ts_echo: absent, expected 9");
  EXPECT_NONFATAL_FAILURE(compare(of_the_stack(), {.sack = SackBlocks{}}), "sack: ");
  EXPECT_NONFATAL_FAILURE(compare(of_the_stack(), {.source_port = 9}),
                          "source_port: 5, expected 9");
  EXPECT_NONFATAL_FAILURE(compare(of_the_stack(), {.traffic_class = 9}),
                          "traffic_class: 6, expected 9");
  EXPECT_NONFATAL_FAILURE(compare(of_the_stack(), {.hop_limit = 9}), "hop_limit: 7, expected 9");
}

TEST(PeerSegment, AllDifferencesMakeOneFailure) {
  EXPECT_NONFATAL_FAILURE(compare(of_the_stack(), {.seq = 9, .ack = 2, .payload = 8}),
                          "seq: 1, expected 9\n  payload: 4, expected 8");
}

TEST(PeerSegment, TheFailureStandsAtTheCallersLine) {
  ::testing::TestPartResultArray results;
  int line = 0;
  RawPeer p;
  p.connect();
  {
    const ::testing::ScopedFakeTestPartResultReporter reporter(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
    p.inject({.seq = 1, .ack = 9, .flags = flag::kAck});
    line = __LINE__ + 1;
    p.expect({.seq = 8});
  }
  ASSERT_EQ(results.size(), 1);
  EXPECT_STREQ(results.GetTestPartResult(0).file_name(), __FILE__);
  EXPECT_EQ(results.GetTestPartResult(0).line_number(), line);
}

}  // namespace
}  // namespace rnic::testing
