#include "pcap/pcap.hpp"

#include <gtest/gtest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "../../support/capture_file.hpp"
#include "../../support/fake_port.hpp"
#include "live_memory.hpp"
#include "sim/sim.hpp"
#include "tcp_frame.hpp"

namespace rnic::pcap {
namespace {

using base::from_nanos;

class Pcap : public ::testing::Test {
 protected:
  void TearDown() override { std::remove(path_.c_str()); }

  [[nodiscard]] std::vector<test::CaptureFrame> parse() const { return test::read_capture(path_); }

  std::string path_ = ::testing::TempDir() + "softrnic_pcap_" + std::to_string(getpid()) + "_" +
                      ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".pcapng";
};

TEST_F(Pcap, FramesOfEveryPaddingComeBack) {
  {
    auto writer = Writer::open(path_);
    ASSERT_TRUE(writer) << writer.error().message;
    for (uint8_t n = 60; n < 65; ++n) {
      (*writer)->append(from_nanos(0x500000000 + n), std::vector<uint8_t>(n, n));
    }
    EXPECT_EQ((*writer)->counters().frames, 5u);
  }
  const auto packets = parse();
  ASSERT_EQ(packets.size(), 5u);
  for (uint8_t i = 0; i < 5; ++i) {
    EXPECT_EQ(packets[i].octets, std::vector<uint8_t>(60 + i, 60 + i));
    EXPECT_EQ(packets[i].stamp, 0x500000000u + 60 + i);
  }
}

TEST_F(Pcap, BothDirectionsWithCompleteChecksumsInTheCopyOnly) {
  sim::LinkConfig config;
  config.checksum = port::ChecksumMode::Trusted;
  sim::Link link(config);
  {
    auto capture = CapturePort::open(link.a(), path_);
    ASSERT_TRUE(capture) << capture.error().message;
    std::array<port::Packet, 1> packet;
    ASSERT_TRUE((*capture)->alloc(packet));
    driver_test::write_segment(packet[0], 1, 33);
    ASSERT_EQ((*capture)->tx_burst(packet, from_nanos(7)), 1u);
    ASSERT_EQ(link.b().rx_burst(packet, from_nanos(8)), 1u);
    EXPECT_FALSE(driver_test::checksums_good(packet[0].view()));
    ASSERT_EQ(link.b().tx_burst(packet, from_nanos(9)), 1u);
    ASSERT_EQ((*capture)->rx_burst(packet, from_nanos(10)), 1u);
    EXPECT_FALSE(driver_test::checksums_good(packet[0].view()));
    (*capture)->free(packet);
  }
  const auto packets = parse();
  ASSERT_EQ(packets.size(), 2u);
  EXPECT_TRUE(driver_test::checksums_good(packets[0].octets));
  EXPECT_TRUE(driver_test::checksums_good(packets[1].octets));
  EXPECT_EQ(packets[0].flags, 2u);  // outbound
  EXPECT_EQ(packets[1].flags, 1u);  // inbound
  EXPECT_EQ(packets[1].stamp, 10u);
  EXPECT_EQ(link.held(), 0u);
}

TEST_F(Pcap, TheLinkIsThatOfThePortBelow) {
  test::FakePort below({.name = "below"});
  auto capture = CapturePort::open(below, path_);
  ASSERT_TRUE(capture) << capture.error().message;
  EXPECT_EQ((*capture)->link(), std::nullopt);
  below.link_state = port::LinkState::Down;
  EXPECT_EQ((*capture)->link(), port::LinkState::Down);
}

TEST_F(Pcap, RefusedFramesAreNotCaptured) {
  sim::LinkConfig config;
  config.a_to_b.bits_per_second = 1000;
  config.a_to_b.queue_limit = 1;
  sim::Link link(config);
  {
    auto capture = CapturePort::open(link.a(), path_);
    ASSERT_TRUE(capture) << capture.error().message;
    std::array<port::Packet, 3> packets;
    ASSERT_TRUE((*capture)->alloc(packets));
    for (port::Packet& packet : packets) driver_test::write_segment(packet, 1, 33);
    EXPECT_EQ((*capture)->tx_burst(packets, from_nanos(7)), 1u);
    (*capture)->free(std::span(packets).subspan(1));
  }
  EXPECT_EQ(parse().size(), 1u);
}

TEST_F(Pcap, LimitsEndTheCaptureAndAreCounted) {
  {
    WriterOptions options;
    options.frame_limit = 3;
    auto writer = Writer::open(path_, options);
    ASSERT_TRUE(writer) << writer.error().message;
    for (int i = 0; i < 5; ++i) (*writer)->append(from_nanos(i), std::vector<uint8_t>(64));
    EXPECT_EQ((*writer)->counters().over_limit, 2u);
  }
  EXPECT_EQ(parse().size(), 3u);
  {
    WriterOptions options;
    options.size_limit = 1000;
    auto writer = Writer::open(path_, options);
    ASSERT_TRUE(writer) << writer.error().message;
    for (int i = 0; i < 50; ++i) (*writer)->append(from_nanos(i), std::vector<uint8_t>(64));
    EXPECT_LE((*writer)->counters().octets, 1000u);
    EXPECT_GT((*writer)->counters().over_limit, 0u);
  }
  EXPECT_GE(parse().size(), 7u);
}

TEST_F(Pcap, AFileThatCannotBeWrittenIsNamed) {
  auto writer = Writer::open("/nonexistent/x.pcapng");
  ASSERT_FALSE(writer);
  EXPECT_NE(writer.error().message.find("/nonexistent/x.pcapng"), std::string::npos);
}

TEST_F(Pcap, AFileHasOneWriter) {
  auto writer = Writer::open(path_);
  ASSERT_TRUE(writer) << writer.error().message;
  (*writer)->append(from_nanos(1), std::vector<uint8_t>(64));
  (*writer)->flush();
  const auto second = Writer::open(path_);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("another device or program writes it"), std::string::npos)
      << second.error().message;
  EXPECT_EQ(parse().size(), 1u);
  writer->reset();
  EXPECT_TRUE(Writer::open(path_));
  EXPECT_EQ(parse().size(), 0u);
}

TEST_F(Pcap, APipeThatNobodyReadsIsRefused) {
  ASSERT_EQ(mkfifo(path_.c_str(), S_IRWXU), 0);
  const auto refused = Writer::open(path_);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("it is a pipe that nobody reads"), std::string::npos)
      << refused.error().message;
  const int reader = open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  EXPECT_TRUE(Writer::open(path_));
  std::array<char, 4> magic{};
  EXPECT_EQ(read(reader, magic.data(), magic.size()), 4);
  EXPECT_EQ(magic[0], 0x0a);
  close(reader);
}

/// Files of this process end here; a write beyond is cut short, and the next one fails.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t octets) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{octets, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

// Wherever the space ends, within a header, a frame or its padding, every block of the file is
// whole, and what is missing is counted.
TEST_F(Pcap, AFullFileSystemLeavesWholeBlocks) {
  constexpr uint64_t kFrames = 10;
  for (rlim_t room = 500; room < 620; ++room) {
    uint64_t written = 0;
    {
      auto writer = Writer::open(path_);
      ASSERT_TRUE(writer) << writer.error().message;
      const FileSizeLimit full(room);
      for (uint8_t i = 0; i < kFrames; ++i) {
        (*writer)->append(from_nanos(i), std::vector<uint8_t>(61, i));
      }
      (*writer)->flush();
      written = (*writer)->counters().frames;
      EXPECT_EQ((*writer)->counters().write_errors, kFrames - written);
      EXPECT_LE((*writer)->counters().octets, room);
      (*writer)->append(from_nanos(99), std::vector<uint8_t>(61));  // nothing more is tried
      EXPECT_EQ((*writer)->counters().write_errors, kFrames - written + 1);
    }
    const auto packets = parse();
    ASSERT_EQ(packets.size(), written) << room;
    EXPECT_GE(written, 3u);
    EXPECT_LT(written, kFrames);
    for (uint8_t i = 0; i < written; ++i) EXPECT_EQ(packets[i].octets.front(), i);
  }
}

// The line in the log is lost where there is no memory for it; nothing throws, the destructor
// least.
TEST_F(Pcap, AFullFileSystemIsNeverFatalWithoutMemoryEither) {
  bool refused = true;
  for (int64_t n = 0; refused; ++n) {
    auto writer = Writer::open(path_);
    ASSERT_TRUE(writer) << writer.error().message;
    const std::vector<uint8_t> frame(61, 7);
    for (uint8_t i = 0; i < 10; ++i) (*writer)->append(from_nanos(i), frame);
    {
      const FileSizeLimit full(600);
      test::refuse_memory_after(n);
      EXPECT_NO_THROW((*writer)->flush());
      refused = test::refuse_no_more();
    }
    EXPECT_EQ((*writer)->counters().frames + (*writer)->counters().write_errors, 10u);
    EXPECT_EQ(parse().size(), (*writer)->counters().frames);
    ASSERT_LT(n, 100);
  }
}

// Whoever moves the file while it is written keeps what stands at its old place.
TEST_F(Pcap, WhatHasTakenThePlaceOfTheFileIsLeftAlone) {
  auto writer = Writer::open(path_);
  ASSERT_TRUE(writer) << writer.error().message;
  const std::string moved = path_ + ".1";
  ASSERT_EQ(std::rename(path_.c_str(), moved.c_str()), 0);
  std::ofstream(path_) << std::string(5000, 'x');
  {
    const FileSizeLimit full(600);
    for (uint8_t i = 0; i < 10; ++i) (*writer)->append(from_nanos(i), std::vector<uint8_t>(61, i));
    (*writer)->flush();
  }
  EXPECT_NE((*writer)->counters().write_errors, 0u);
  EXPECT_EQ(std::filesystem::file_size(path_), 5000u);
  ASSERT_EQ(std::rename(moved.c_str(), path_.c_str()), 0);
  EXPECT_EQ(parse().size(), (*writer)->counters().frames);
}

TEST_F(Pcap, AFullFileSystemIsNeverFatal) {
  auto full = Writer::open("/dev/full");
  ASSERT_FALSE(full);
  EXPECT_NE(full.error().message.find("/dev/full"), std::string::npos);
}

}  // namespace
}  // namespace rnic::pcap
