// Driver `process`: what a child has of this process's descriptors, and of its log.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/log.hpp"
#include "process/descriptor_table.hpp"
#include "process/generation.hpp"

namespace rnic::process {
namespace {

constexpr int kPatience = 60'000;  // ms: only a failure takes that long

int file() { return memfd_create("file", MFD_CLOEXEC); }
bool is_open(int descriptor) { return fcntl(descriptor, F_GETFD) != -1; }

class Table : public ::testing::Test {
 protected:
  // Too large for a stack.
  std::unique_ptr<DescriptorTable> owner_ = std::make_unique<DescriptorTable>();
  DescriptorTable& table_ = *owner_;
};

TEST_F(Table, ClosesWhatIsInItOnce) {
  const int one = table_.open(file);
  ASSERT_GE(one, 0);
  EXPECT_TRUE(table_.has(one));
  EXPECT_EQ(table_.close(one), 0);
  EXPECT_FALSE(table_.has(one));
  EXPECT_FALSE(is_open(one));

  const int other = file();  // has the number now
  ASSERT_EQ(other, one);
  errno = 0;
  EXPECT_EQ(table_.close(one), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_TRUE(is_open(other)) << "somebody else's file was closed";
  close(other);
}

TEST_F(Table, AChildClosesAllThatIsInItAndNothingElse) {
  std::vector<int> mine;
  for (int i = 0; i < 200; ++i) mine.push_back(table_.open(file));
  const int other = file();
  const int left = table_.open(file);
  table_.leave(left);
  const int adopted = file();
  EXPECT_TRUE(table_.adopt(adopted));
  EXPECT_TRUE(table_.has_adopted(adopted));
  table_.close_all();
  for (const int descriptor : mine) EXPECT_FALSE(is_open(descriptor)) << descriptor;
  EXPECT_FALSE(is_open(adopted));
  EXPECT_TRUE(is_open(other));
  EXPECT_TRUE(is_open(left));
  EXPECT_FALSE(table_.has(mine.front()));
  close(other);
  close(left);
}

TEST_F(Table, PassesErrorsOn) {
  EXPECT_EQ(table_.open([] {
    errno = ENFILE;
    return -1;
  }),
            -1);
  EXPECT_EQ(errno, ENFILE);
  EXPECT_FALSE(table_.has(-1));
  table_.leave(-1);
  table_.disown(-1);
  EXPECT_TRUE(table_.adopt(-1)) << "it is closed already, and no matter of ours";
}

TEST_F(Table, RefusesNumbersThatTheSystemDoesNotGive) {
  EXPECT_FALSE(table_.enter(DescriptorTable::kMost));
  errno = 0;
  EXPECT_EQ(table_.open([] { return DescriptorTable::kMost; }), -1);
  EXPECT_EQ(errno, EMFILE);
  EXPECT_TRUE(table_.enter(DescriptorTable::kMost - 1));
  EXPECT_TRUE(table_.has(DescriptorTable::kMost - 1));
  EXPECT_FALSE(table_.has(DescriptorTable::kMost));
}

// DPDK closes what is its own without a word, and the number is another file's.
TEST_F(Table, AnAdoptedNumberThatIsAnotherFileIsLeftAlone) {
  const int adopted = file();
  ASSERT_TRUE(table_.adopt(adopted));
  EXPECT_EQ(fcntl(adopted, F_GETFD), FD_CLOEXEC);
  close(adopted);
  const int other = file();
  ASSERT_EQ(other, adopted);
  EXPECT_FALSE(table_.has_adopted(other));
  table_.close_all();
  EXPECT_TRUE(is_open(other));
  close(other);
}

TEST_F(Table, HasRoomForSoManyOfOthersAtOnce) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit wide = before;
  wide.rlim_cur = std::min<rlim_t>(wide.rlim_max, 2 * DescriptorTable::kMostAdopted);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &wide), 0);
  std::vector<int> all;
  for (size_t i = 0; i < DescriptorTable::kMostAdopted; ++i) {
    all.push_back(file());
    ASSERT_TRUE(table_.adopt(all.back())) << i << ": " << all.back();
  }
  const int one_more = file();
  EXPECT_FALSE(table_.adopt(one_more));
  close(all[7]);
  EXPECT_TRUE(table_.adopt(one_more)) << "a place whose file is gone is free";
  table_.close_all();
  for (const int descriptor : all) close(descriptor);
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST(Generation, CountsForksThatLeaveSomethingBehind) {
  const auto of_child = [] {
    const pid_t child = fork();
    if (child == 0) {
      const pid_t grandchild = fork();  // which has nothing left behind
      if (grandchild == 0) _exit(static_cast<int>(Generation::now()));
      int status = 0;
      waitpid(grandchild, &status, 0);
      _exit(WEXITSTATUS(status) == static_cast<int>(Generation::now()) ? WEXITSTATUS(status) : 99);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  };
  const uint32_t mine = Generation::now();
  EXPECT_EQ(of_child(), static_cast<int>(mine));
  {
    const Generation::Use use;
    EXPECT_EQ(of_child(), static_cast<int>(mine + 1));
  }
  EXPECT_EQ(of_child(), static_cast<int>(mine));
  EXPECT_EQ(Generation::now(), mine);
}

TEST(ForkPause, IsNoObstacleToAForkOfItsOwnThread) {
  const ForkDelay delay;
  const ForkPause pause;
  const ForkPause nested;
  const pid_t child = fork();
  if (child == 0) {
    const ForkPause another;
    _exit(5);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 5);
}

/// Whoever logs is held up by a pipe that nobody reads, with the log's lock in its hand.
TEST(Log, AChildLogsWhatAThreadOfItsParentKeepsLocked) {
  std::array<int, 2> full{};
  ASSERT_EQ(pipe2(full.data(), O_CLOEXEC), 0);
  const int stderr_before = dup(STDERR_FILENO);
  dup2(full[1], STDERR_FILENO);
  base::set_log_level(base::LogLevel::Warning);
  const std::string long_line(1 << 20, 'x');
  std::thread held(
      [&] { base::log(base::LogLevel::Warning, "test", std::string_view(long_line)); });
  // It is in the middle of its line when the pipe has octets.
  pollfd begun{full[0], POLLIN, 0};
  ASSERT_EQ(poll(&begun, 1, kPatience), 1);

  std::array<int, 2> said{};
  ASSERT_EQ(pipe2(said.data(), O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(said[1], STDERR_FILENO);
    base::log(base::LogLevel::Info, "test", [] { return std::string("the level is another one"); });
    base::log(base::LogLevel::Warning, "test", [] { return std::string("said by the child"); });
    _exit(0);
  }
  close(said[1]);
  pollfd heard{said[0], POLLIN, 0};
  EXPECT_EQ(poll(&heard, 1, kPatience), 1) << "the child waits for a thread that it has not";
  std::array<char, 256> text{};
  const ssize_t got = heard.revents == 0 ? 0 : read(said[0], text.data(), text.size() - 1);
  EXPECT_GT(got, 0);
  EXPECT_NE(std::string(text.data()).find("test: said by the child"), std::string::npos);
  EXPECT_EQ(std::string(text.data()).find("another one"), std::string::npos);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(said[0]);

  std::array<char, 65536> drain{};
  size_t drained = 0;
  while (drained < long_line.size()) {
    const ssize_t octets = read(full[0], drain.data(), drain.size());
    ASSERT_GT(octets, 0);
    drained += static_cast<size_t>(octets);
  }
  held.join();
  dup2(stderr_before, STDERR_FILENO);
  for (const int descriptor : {stderr_before, full[0], full[1]}) close(descriptor);
}

}  // namespace
}  // namespace rnic::process
