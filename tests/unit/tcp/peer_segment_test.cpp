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
  s.ecn = kEct0;
  s.dscp = 6;
  s.hop_limit = 7;
  return s;
}

/// What is expected of it, but for members that are not compared unless they are named.
Expected like_it() {
  return {.flags = flag::kSyn | flag::kAck,
          .payload = 4,
          .ecn = kEct0,
          .sack = SackBlocks{{10, 20}},
          .dscp = 6,
          .hop_limit = 7};
}

/// The text of the failure of this comparison, which is to be one.
std::string failure_of(const Segment& s, const Expected& expected) {
  ::testing::TestPartResultArray results;
  {
    const ::testing::ScopedFakeTestPartResultReporter reporter(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
    compare(s, expected);
  }
  EXPECT_EQ(results.size(), 1);
  return results.size() == 0 ? "" : results.GetTestPartResult(0).message();
}

TEST(PeerSegment, NumbersPortsAndOptionsAreComparedWhereTheyAreNamed) {
  compare(of_the_stack(), like_it());
  Expected more = like_it();
  more.seq = 1;
  more.ack = 2;
  more.window = 3;
  more.options = kinds::kMss | kinds::kSack;
  more.mss = 1460;
  more.source_port = 5;
  compare(of_the_stack(), more);
}

TEST(PeerSegment, WhatIsNotNamedIsThatOfABareAck) {
  const Segment bare{.seq = 1, .ack = 2, .flags = flag::kAck, .window = 3};
  compare(bare, {});
  EXPECT_EQ(
      failure_of(of_the_stack(), {}),
      "Failed\nthe segment differs:"
      "\n  flags: SYN|ACK, expected ACK"
      "\n  payload: 4, expected 0"
      "\n  ecn: 2, expected 0"
      "\n  sack: { (10, 20) }, expected {}"
      "\n  dscp: 6, expected 0"
      "\n  hop_limit: 7, expected 0"
      "\n  sent: flags SYN|ACK, seq 1, ack 2, window 3, payload 4, ecn 2, options MSS|SACK, mss "
      "1460, sack { (10, 20) }, source_port 5, dscp 6, hop_limit 7"
      "\n  expected: flags ACK, payload 0, ecn 0, sack {}, dscp 0, hop_limit 0");
  for (const uint8_t more : {flag::kPsh, flag::kEce, flag::kCwr, flag::kUrg, flag::kFin}) {
    Segment s = bare;
    s.flags |= more;
    EXPECT_NONFATAL_FAILURE(compare(s, {}), "flags: ");
  }
  compare(
      of_the_stack(),
      {.flags = kAny, .payload = kAny, .ecn = kAny, .sack = kAny, .dscp = kAny, .hop_limit = kAny});
}

TEST(PeerSegment, TheOctetsTellTheLength) {
  Segment s{.flags = flag::kAck, .payload = 2};
  s.octets = {7, 8};
  compare(s, {.octets = std::vector<uint8_t>{7, 8}});
  EXPECT_NONFATAL_FAILURE(compare(s, {.octets = std::vector<uint8_t>{7}}), "octets: ");
  EXPECT_NONFATAL_FAILURE(compare(s, {}), "payload: 2, expected 0");
}

TEST(PeerSegment, OptionsOfASynStandOnNoOtherSegment) {
  Segment s{.flags = flag::kAck};
  s.parsed.window_scale = 7;
  EXPECT_NONFATAL_FAILURE(compare(s, {}), "options: WS, expected on a SYN alone");
  s.parsed.mss = 1460;
  EXPECT_NONFATAL_FAILURE(compare(s, {}), "options: MSS|WS, expected on a SYN alone");
  compare(s, {.options = kinds::kMss | kinds::kWindowScale});
  s.flags = flag::kSyn;
  compare(s, {.flags = flag::kSyn});
}

TEST(PeerSegment, AWholeSegmentIsLikeItselfAndNoOther) {
  Segment stamped = of_the_stack();
  stamped.parsed.timestamps = wire::TcpTimestamps{1, 2};
  compare(of_the_stack(), all_of(of_the_stack()));
  compare(stamped, all_of(stamped));
  EXPECT_NONFATAL_FAILURE(compare(stamped, all_of(of_the_stack())), "options: ");
  EXPECT_NONFATAL_FAILURE(compare(of_the_stack(), all_of(stamped)), "ts_echo: absent, expected 2");
}

/// The line that tells of `member`: the first of the differences, and the only one.
template <typename T>
std::string difference(std::optional<T> Expected::*member, const T& expected) {
  Expected e = like_it();
  e.*member = expected;
  const std::string text = failure_of(of_the_stack(), e);
  const size_t from = text.find("\n  ") + 3;
  const size_t to = text.find("\n  sent: ");
  return text.substr(from, to - from);
}

TEST(PeerSegment, EachDifferenceIsReportedByItsName) {
  using E = Expected;
  EXPECT_EQ(difference(&E::flags, flag::kSyn), "flags: SYN|ACK, expected SYN");
  EXPECT_EQ(difference(&E::seq, 9u), "seq: 1, expected 9");
  EXPECT_EQ(difference(&E::ack, 9u), "ack: 2, expected 9");
  EXPECT_EQ(difference(&E::window, uint16_t{9}), "window: 3, expected 9");
  EXPECT_EQ(difference(&E::payload, 9u), "payload: 4, expected 9");
  EXPECT_EQ(difference(&E::octets, std::vector<uint8_t>{7}), "octets: {}, expected { '\\a' (7) }");
  EXPECT_EQ(difference(&E::ecn, kCe), "ecn: 2, expected 3");
  EXPECT_EQ(difference(&E::options, kinds::kMss), "options: MSS|SACK, expected MSS");
  EXPECT_EQ(difference(&E::mss, uint16_t{9}), "mss: 1460, expected 9");
  EXPECT_EQ(difference(&E::window_scale, uint8_t{9}), "window_scale: absent, expected 9");
  EXPECT_EQ(difference(&E::ts_value, 9u), "ts_value: absent, expected 9");
  EXPECT_EQ(difference(&E::ts_echo, 9u), "ts_echo: absent, expected 9");
  EXPECT_EQ(difference(&E::sack, SackBlocks{}), "sack: { (10, 20) }, expected {}");
  EXPECT_EQ(difference(&E::source_port, uint16_t{9}), "source_port: 5, expected 9");
  EXPECT_EQ(difference(&E::dscp, uint8_t{9}), "dscp: 6, expected 9");
  EXPECT_EQ(difference(&E::hop_limit, uint8_t{9}), "hop_limit: 7, expected 9");
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
