// Before DPDK runs: what is refused without it, and with what it is not started. Each start is
// tried in a child, as DPDK may refuse a second one in the same process.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/starved.hpp"
#include "dpdk/dpdk.hpp"
#include "dpdk/reassembler.hpp"
#include "live_memory.hpp"

namespace rnic::dpdk {
namespace {

/// What a start with it answers; in a child, so that nothing of it stays.
std::string answer_to(const EalConfig& config) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    const Status status = Eal::init(config);
    const std::string text =
        status ? "started"
               : to_string(status.error().code) + std::string(": ") + status.error().message;
    const ssize_t written = write(ends[1], text.data(), text.size());
    _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char piece[512];
  for (ssize_t n = 0; (n = read(ends[0], piece, sizeof piece)) > 0;) {
    text.append(piece, static_cast<size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  return text;
}

EalConfig without_hugepages() {
  EalConfig config;
  config.hugepages = Hugepages::Off;
  config.memory_mb = 64;
  return config;
}

TEST(EalStart, ArgumentsThatWouldEndTheProcessAreRefused) {
  for (const std::string argument : {"-h", "--help", "-v", "--version"}) {
    EalConfig config = without_hugepages();
    config.extra_args = {"--no-telemetry", argument};
    const Status status = Eal::init(config);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::InvalidArgument);
    EXPECT_EQ(status.error().message, "EAL argument " + argument + " is not allowed");
  }
}

TEST(EalStart, LittleMemoryIsRefused) {
  EalConfig config = without_hugepages();
  config.memory_mb = 15;
  const Status status = Eal::init(config);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::InvalidArgument);
  EXPECT_EQ(status.error().message, "DPDK memory of 15 MB: at least 16");
  config.memory_mb = 16;
  EXPECT_EQ(answer_to(config), "started");
}

// More than there are addresses for. The reason is DPDK's own, in words and as it says it.
TEST(EalStart, MemoryThatDpdkDoesNotGet) {
  EalConfig config = without_hugepages();
  config.memory_mb = 1u << 28;
  const std::string answer = answer_to(config);
  EXPECT_TRUE(answer.starts_with(to_string(ErrorCode::Environment) +
                                 std::string(": DPDK does not start: Cannot allocate memory (DPDK "
                                             "says: ")))
      << answer;
  EXPECT_TRUE(answer.ends_with(
      "); check the memory (268435456 MB), the rights of this user and the EAL arguments"))
      << answer;
}

TEST(EalStart, WhatNeedsDpdkSaysSo) {
  EXPECT_FALSE(Eal::started());
  EXPECT_FALSE(Eal::on_hugepages());
  const auto clock = TscClock::create();
  ASSERT_FALSE(clock);
  EXPECT_EQ(clock.error().code, ErrorCode::WrongState);
  const auto reassembler = make_reassembler({});
  ASSERT_FALSE(reassembler);
  EXPECT_EQ(reassembler.error().code, ErrorCode::WrongState);
  const auto port = open_port("net_null0");
  ASSERT_FALSE(port);
  EXPECT_EQ(port.error().code, ErrorCode::WrongState);
  EXPECT_FALSE(Eal::register_thread());
}

// A thread's first call has nobody above it who would catch what it throws.
TEST(EalStart, AThreadThatIsRefusedWithoutMemoryIsTold) {
  test::refuse_memory_after(0);
  const Status status = Eal::register_thread();
  EXPECT_TRUE(test::refuse_no_more()) << "the words need memory";
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::WrongState);
  EXPECT_EQ(status.error().message, base::kOutOfMemory);
}

// Files that no name is known for are nobody's: they go. Under a name that was given they stay.
TEST(EalStart, FilesOfHugepagesStayUnderANameOnly) {
  const auto unlinked = [](const EalConfig& config, bool hugepages) {
    const auto arguments = Eal::arguments(config, hugepages, 0);
    return std::count(arguments.begin(), arguments.end(), "--huge-unlink=always") == 1;
  };
  EalConfig config;
  EXPECT_FALSE(unlinked(config, true)) << "there are none";
  config.in_memory = false;
  EXPECT_TRUE(unlinked(config, true));
  EXPECT_FALSE(unlinked(config, false));
  config.file_prefix = "mine";
  EXPECT_FALSE(unlinked(config, true));
}

}  // namespace
}  // namespace rnic::dpdk
