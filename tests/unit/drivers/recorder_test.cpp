// What goes over the system's sockets as frames in a capture file.

#include "recorder/recorder.hpp"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "../../support/capture_file.hpp"
#include "on_kernel.hpp"
#include "wire/inet_checksum.hpp"
#include "wire/ipv4.hpp"
#include "wire/ipv6.hpp"
#include "wire/tcp.hpp"

namespace rnic::socket {
namespace {

using pcap::Way;
using recorder::RecordingSystem;
using recorder::StreamFrames;
namespace flag = wire::tcp_flag;

/// A segment of a capture, with all that may differ from one to the next.
struct Segment {
  Way way = Way::Unknown;
  uint8_t flags = 0;
  uint32_t sequence = 0;
  uint32_t acknowledgment = 0;
  size_t octets = 0;
  friend bool operator==(const Segment&, const Segment&) = default;
};

void PrintTo(const Segment& s, std::ostream* out) {
  *out << (s.way == Way::Outbound ? "out" : "in") << " flags " << int{s.flags} << " seq "
       << s.sequence << " ack " << s.acknowledgment << " octets " << s.octets;
}

constexpr uint8_t kSyn = flag::kSyn;
constexpr uint8_t kSynAck = flag::kSyn | flag::kAck;
constexpr uint8_t kAck = flag::kAck;
constexpr uint8_t kData = flag::kAck | flag::kPsh;
constexpr uint8_t kFin = flag::kAck | flag::kFin;
constexpr uint8_t kRst = flag::kAck | flag::kRst;

class Recorder : public OnKernel {
 protected:
  void TearDown() override {
    OnKernel::TearDown();
    recording_.reset();
    std::remove(path_.c_str());
  }

  /// Has the transport on the left recorded. What it had is gone.
  void record() {
    transports_[0].reset();
    recording_.reset();  // a file has one writer
    auto opened = RecordingSystem::open(*kernels_[0], path_, [this] { return now_; });
    ASSERT_TRUE(opened) << opened.error().message;
    recording_ = std::move(*opened);
    transports_[0] = std::move(*Transport::open(config_, now_, *recording_));
  }
  /// The segments in the file, all between these ends and with checksums that are right.
  std::vector<Segment> segments(const Endpoint& ours, const Endpoint& peers) {
    if (recording_ != nullptr) recording_->flush();
    std::vector<Segment> all;
    for (const test::CaptureFrame& frame : test::read_capture(path_)) {
      all.push_back(segment_of(frame, ours, peers));
    }
    return all;
  }
  /// As segments(), where pieces of data that follow each other count as one: the cut into pieces
  /// is the system's.
  std::vector<Segment> joined(const Endpoint& ours, const Endpoint& peers) {
    std::vector<Segment> all;
    for (const Segment& segment : segments(ours, peers)) {
      const bool goes_on = !all.empty() && segment.octets != 0 && all.back().octets != 0 &&
                           all.back().way == segment.way;
      if (goes_on) {
        EXPECT_EQ(segment.sequence, all.back().sequence + all.back().octets);
        EXPECT_EQ(segment.acknowledgment, all.back().acknowledgment);
        all.back().octets += segment.octets;
      } else {
        all.push_back(segment);
      }
    }
    return all;
  }
  /// Octets of the payloads of one direction.
  std::vector<uint8_t> payloads(Way way) {
    recording_->flush();
    std::vector<uint8_t> all;
    for (const test::CaptureFrame& frame : test::read_capture(path_)) {
      if (frame.flags != static_cast<uint32_t>(way)) continue;
      all.insert(all.end(), frame.octets.begin() + 14 + 20 + 20, frame.octets.end());
    }
    return all;
  }

  std::string path_ = ::testing::TempDir() + "softrnic_recorder_" + std::to_string(getpid()) +
                      "_" + ::testing::UnitTest::GetInstance()->current_test_info()->name() +
                      ".pcapng";
  std::unique_ptr<RecordingSystem> recording_;

 private:
  static Segment segment_of(const test::CaptureFrame& frame, const Endpoint& ours,
                            const Endpoint& peers) {
    const auto way = static_cast<Way>(frame.flags);
    const Endpoint& from = way == Way::Outbound ? ours : peers;
    const Endpoint& to = way == Way::Outbound ? peers : ours;
    const base::ByteView packet = base::ByteView(frame.octets).subspan(14);
    base::ByteView tcp;
    uint32_t sum = 0;
    if (from.address.is_v4()) {
      const auto ip = wire::parse_ipv4(packet);
      if (!ip) return ADD_FAILURE() << "no IPv4 packet", Segment{};
      EXPECT_TRUE(wire::ipv4_checksum_good(packet.first(ip->header_length)));
      EXPECT_EQ(IpAddress::v4(ip->source), from.address);
      EXPECT_EQ(IpAddress::v4(ip->destination), to.address);
      EXPECT_EQ(ip->total_length, packet.size());
      tcp = packet.subspan(ip->header_length);
      sum = wire::pseudo_header_sum(ip->source, ip->destination, 6,
                                    static_cast<uint32_t>(tcp.size()));
    } else {
      const auto ip = wire::parse_ipv6(packet);
      if (!ip) return ADD_FAILURE() << "no IPv6 packet", Segment{};
      EXPECT_EQ(IpAddress(ip->source.high, ip->source.low), from.address);
      EXPECT_EQ(IpAddress(ip->destination.high, ip->destination.low), to.address);
      EXPECT_EQ(ip->payload_length + 40, packet.size());
      tcp = packet.subspan(40);
      sum = wire::checksum_add(6 + static_cast<uint32_t>(tcp.size()), packet.subspan(8, 32));
    }
    EXPECT_EQ(wire::checksum_fold(wire::checksum_add(sum, tcp)), 0);
    const auto view = wire::TcpView::parse(tcp);
    if (!view) return ADD_FAILURE() << "no TCP segment", Segment{};
    EXPECT_EQ(view->source_port(), from.port);
    EXPECT_EQ(view->destination_port(), to.port);
    return {way, view->flags(), view->sequence().value, view->acknowledgment().value,
            view->payload().size()};
  }
};

TEST_F(Recorder, AConnectionThatWeAskFor) {
  record();
  connect(near_, far_);
  const Endpoint ours = near_.stream->local();
  const Endpoint peers = near_.stream->remote();
  near_.queue(300);
  ASSERT_TRUE(run_until([&] { return far_.ordered_to == 300; }));
  far_.queue(200);
  ASSERT_TRUE(run_until([&] { return near_.ordered_to == 200; }));
  near_.stream->close();
  ASSERT_TRUE(run_until([&] { return far_.peer_has_finished; }));
  far_.stream->close();
  ASSERT_TRUE(run_until([&] { return near_.how_ended.has_value(); }));
  turns(10);
  EXPECT_EQ(joined(ours, peers), (std::vector<Segment>{
                                     {Way::Outbound, kSyn, 0, 0, 0},
                                     {Way::Inbound, kSynAck, 0, 1, 0},
                                     {Way::Outbound, kAck, 1, 1, 0},
                                     {Way::Outbound, kData, 1, 1, 300},
                                     {Way::Inbound, kData, 1, 301, 200},
                                     {Way::Outbound, kFin, 301, 201, 0},
                                     {Way::Inbound, kFin, 201, 302, 0},
                                 }));
}

TEST_F(Recorder, AConnectionThatThePeerAsksFor) {
  record();
  ASSERT_TRUE(left().listen({{}, kPort}, acceptor_).has_value());
  acceptor_.next.push_back(&near_);
  auto stream = right().connect({}, {kernels_[0]->address(), kPort}, far_, now_);
  ASSERT_TRUE(stream.has_value());
  far_.stream = *stream;
  ASSERT_TRUE(run_until([&] { return near_.is_established && far_.is_established; }));
  far_.queue(100);
  ASSERT_TRUE(run_until([&] { return near_.ordered_to == 100; }));
  const Endpoint ours = near_.stream->local();
  const Endpoint peers = near_.stream->remote();
  near_.stream->abort();
  ASSERT_TRUE(run_until([&] { return far_.how_ended.has_value(); }));
  EXPECT_EQ(joined(ours, peers), (std::vector<Segment>{
                                     {Way::Inbound, kSyn, 0, 0, 0},
                                     {Way::Outbound, kSynAck, 0, 1, 0},
                                     {Way::Inbound, kAck, 1, 1, 0},
                                     {Way::Inbound, kData, 1, 1, 100},
                                     {Way::Outbound, kRst, 1, 101, 0},
                                 }));
}

TEST_F(Recorder, APeerThatRefusesOrResets) {
  record();
  auto refused = left().connect({}, {kernels_[1]->address(), 9}, near_, now_);
  ASSERT_TRUE(refused.has_value());
  const Endpoint nowhere = (*refused)->remote();
  const Endpoint ours = (*refused)->local();
  ASSERT_TRUE(run_until([&] { return near_.how_ended.has_value(); }));
  EXPECT_EQ(segments(ours, nowhere), (std::vector<Segment>{{Way::Outbound, kSyn, 0, 0, 0},
                                                           {Way::Inbound, kRst, 0, 1, 0}}));
  record();
  RecordUser next{1, 2};
  connect(next, far_);
  const Endpoint local = next.stream->local();
  const Endpoint remote = next.stream->remote();
  far_.stream->abort();
  ASSERT_TRUE(run_until([&] { return next.how_ended.has_value(); }));
  turns(10);
  const auto all = segments(local, remote);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all.back(), (Segment{Way::Inbound, kRst, 1, 1, 0}));
}

// What a system takes and gives in pieces, and what is looked at before it is taken, is in the file
// once, octet for octet.
TEST_F(Recorder, EveryOctetOnce) {
  SystemFaults faults;
  faults.partial = faults.interrupted = faults.again = 0.3;
  for (auto& kernel : kernels_) kernel->set_faults(faults);
  record();
  Waiting looking{1, 2};
  looking.open = true;
  connect(looking, far_);
  for (int i = 0; i < 20; ++i) {
    looking.queue(1000);
    far_.queue(700);
  }
  ASSERT_TRUE(run_until([&] { return far_.ordered_to == 20'000 && looking.ordered_to == 14'000; }));
  std::vector<uint8_t> sent(20'000);
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = testing::octet_at(i, 1);
  std::vector<uint8_t> received(14'000);
  for (size_t i = 0; i < received.size(); ++i) received[i] = testing::octet_at(i, 2);
  EXPECT_EQ(payloads(Way::Outbound), sent);
  EXPECT_EQ(payloads(Way::Inbound), received);
}

// A connection that cannot be recorded goes on, and is counted.
TEST_F(Recorder, WhatIsNotRecordedIsCounted) {
  record();
  SystemFaults faults;
  faults.options = 1;  // getsockname() fails, too
  kernels_[0]->set_faults(faults);
  acceptor_.next.push_back(&far_);
  auto stream = left().connect({}, {kernels_[1]->address(), kPort}, near_, now_);
  ASSERT_TRUE(stream.has_value());
  kernels_[0]->set_faults({});
  ASSERT_TRUE(run_until([&] { return near_.is_established && far_.is_established; }));
  EXPECT_EQ(recording_->counters().unrecorded, 1u);
  EXPECT_EQ(recording_->counters().connections, 0u);
  near_.stream = *stream;
  near_.queue(100);
  ASSERT_TRUE(run_until([&] { return far_.ordered_to == 100; }));
  recording_->flush();
  EXPECT_EQ(test::read_capture(path_).size(), 0u);
}

// A turn without events comes before each sleep, and a program may be killed in it.
TEST_F(Recorder, TheFileIsWholeBehindATurnWithoutEvents) {
  record();
  connect(near_, far_);
  turns(10);
  EXPECT_EQ(test::read_capture(path_).size(), 3u);
  EXPECT_EQ(recording_->writer().counters().frames, 3u);
}

// It may be the last thing that the process does.
TEST_F(Recorder, TheFileIsWholeBeforeASleepInTheTransport) {
  record();
  connect(near_, far_);
  left().receive(now_, nothing_);  // a turn without events
  const size_t before = test::read_capture(path_).size();
  near_.queue(88);
  near_.stream->ready();
  left().output(now_);
  EXPECT_EQ(test::read_capture(path_).size(), before) << "it is not written by and by";
  // The sleep ends by an event, and no turn without one follows.
  far_.queue(88);
  far_.stream->ready();
  right().output(now_);
  network_.advance(now_ += std::chrono::milliseconds(1));
  kernels_[0]->may_sleep(true);
  left().sleep();
  kernels_[0]->may_sleep(false);
  EXPECT_GT(test::read_capture(path_).size(), before);
}

TEST_F(Recorder, TheFileSaysThatItsFramesAreMadeUp) {
  record();
  std::ifstream file(path_, std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(all.find("The frames are made up"), all.npos);
}

TEST_F(Recorder, AFileThatCannotBeWrittenIsAnError) {
  const auto opened =
      RecordingSystem::open(*kernels_[0], "/does/not/exist/a.pcapng", [this] { return now_; });
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::Environment);
  EXPECT_NE(opened.error().message.find("/does/not/exist/a.pcapng"), std::string::npos);
}

// More octets than a packet takes, over IPv6, are several segments.
TEST_F(Recorder, ManyOctetsAreSeveralSegments) {
  const Endpoint ours{IpAddress(0xfd77ull << 48, 1), 1000};
  const Endpoint peers{IpAddress(0xfd77ull << 48, 2), 2000};
  std::vector<uint8_t> octets(2 * StreamFrames::kMostOctets + 1);
  std::iota(octets.begin(), octets.end(), uint8_t{0});
  {
    auto writer = pcap::Writer::open(path_);
    ASSERT_TRUE(writer);
    StreamFrames frames(**writer, ours, peers);
    frames.octets(Way::Inbound, octets, now_);
    frames.octets(Way::Outbound, {}, now_);
    for (int i = 0; i < 2; ++i) frames.finish(Way::Inbound, now_);
    EXPECT_TRUE(frames.has_finished(Way::Inbound));
    EXPECT_FALSE(frames.has_finished(Way::Outbound));
    for (int i = 0; i < 2; ++i) frames.reset(Way::Outbound, now_);
    frames.finish(Way::Outbound, now_);
  }
  const auto most = static_cast<uint32_t>(StreamFrames::kMostOctets);
  EXPECT_EQ(segments(ours, peers), (std::vector<Segment>{
                                       {Way::Inbound, kSyn, 0, 0, 0},
                                       {Way::Outbound, kSynAck, 0, 1, 0},
                                       {Way::Inbound, kAck, 1, 1, 0},
                                       {Way::Inbound, kData, 1, 1, most},
                                       {Way::Inbound, kData, 1 + most, 1, most},
                                       {Way::Inbound, kData, 1 + 2 * most, 1, 1},
                                       {Way::Inbound, kFin, 2 + 2 * most, 1, 0},
                                       {Way::Outbound, kRst, 1, 3 + 2 * most, 0},
                                   }));
}

}  // namespace
}  // namespace rnic::socket
