// What the machine has, read from files as the kernel writes them, and what is refused for it.

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/sanitized.hpp"
#include "verbs/machine_check.hpp"

namespace rnic::verbs {
namespace {

constexpr uint64_t kMb = 1 << 20;
constexpr uint64_t kGb = 1 << 30;

/// A file system of a test's own.
class Root {
 public:
  Root() {
    path_ = std::filesystem::temp_directory_path() / ("rnic-machine-" + std::to_string(getpid()));
    std::filesystem::remove_all(path_);
    file("/proc/meminfo",
         "MemTotal:       16000000 kB\nMemFree:          100000 kB\n"
         "MemAvailable:    8388608 kB\nBuffers:               4 kB\n");
  }
  ~Root() { std::filesystem::remove_all(path_); }

  void file(const std::string& name, const std::string& text) const {
    const std::filesystem::path target = path_ / name.substr(1);
    std::filesystem::create_directories(target.parent_path());
    std::ofstream(target) << text;
  }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

settings::Settings parsed(const std::string& text, std::vector<std::string> overrides = {}) {
  auto settings = settings::parse_settings(text, "t.toml", overrides);
  EXPECT_TRUE(settings) << settings.error().message;
  return settings.value_or(settings::Settings{});
}

constexpr const char* kSocket = "[[device]]\nport = \"socket\"\n";

TEST(MachineMemory, MemAvailableBounds) {
  const Root root;
  const MemoryBound bound = kernel_bound(root.path());
  EXPECT_EQ(bound.octets, 8 * kGb);
  EXPECT_STREQ(bound.by, "MemAvailable of /proc/meminfo");
}

TEST(MachineMemory, WhatCannotBeReadBoundsNothing) {
  EXPECT_EQ(kernel_bound("/nowhere").octets, UINT64_MAX);
}

TEST(MachineMemory, ControlGroupOfVersion2) {
  const Root root;
  root.file("/proc/self/cgroup", "0::/outer/inner\n");
  root.file("/sys/fs/cgroup/outer/inner/memory.max", "max\n");
  root.file("/sys/fs/cgroup/outer/inner/memory.current", "1000\n");
  EXPECT_EQ(kernel_bound(root.path()).octets, 8 * kGb) << "a word is no limit";
  // The limit of a group above counts; file cache that can go is not in use.
  root.file("/sys/fs/cgroup/outer/memory.max", std::to_string(2 * kGb) + "\n");
  root.file("/sys/fs/cgroup/outer/memory.current", std::to_string(kGb) + "\n");
  root.file("/sys/fs/cgroup/outer/memory.stat",
            "anon 5\ninactive_file " + std::to_string(512 * kMb) + "\nactive_file 7\n");
  EXPECT_EQ(kernel_bound(root.path()).octets, 2 * kGb - 512 * kMb);
  EXPECT_STREQ(kernel_bound(root.path()).by, "the control group's limit");
}

TEST(MachineMemory, ControlGroupOfVersion1InAContainer) {
  const Root root;
  root.file("/proc/self/cgroup", "9:name=systemd:/\n4:memory:/of/the/host\n0::/\n");
  // The path is one of the machine outside: what is mounted is the container's own.
  root.file("/sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(kGb) + "\n");
  root.file("/sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(256 * kMb) + "\n");
  root.file("/sys/fs/cgroup/memory/memory.stat",
            "inactive_file 1\ntotal_inactive_file " + std::to_string(56 * kMb) + "\n");
  EXPECT_EQ(kernel_bound(root.path()).octets, kGb - 200 * kMb);
  // More in use than allowed: nothing is left.
  root.file("/sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(2 * kGb) + "\n");
  EXPECT_EQ(kernel_bound(root.path()).octets, 0u);
}

/// What `body` answers in a child.
template <typename F>
int status_of(F&& body) {
  const pid_t pid = fork();
  if (pid == 0) _exit(body() ? 0 : 1);
  int status = 0;
  waitpid(pid, &status, 0);
  return status;
}

TEST(MachineMemory, LimitsOfTheProcess) {
  if (test::kSanitized) GTEST_SKIP() << test::kNotMeasured;
  EXPECT_EQ(status_of([] {
              const uint64_t much = uint64_t{1} << 44;
              const rlimit limit{much, much};
              setrlimit(RLIMIT_AS, &limit);
              const MemoryBound bound = process_bound();
              return bound.octets < much && bound.octets > much / 2 &&
                     std::string(bound.by).find("ulimit -v") != std::string::npos;
            }),
            0);
  EXPECT_EQ(status_of([] {
              const rlimit limit{4 * kMb, 4 * kMb};
              setrlimit(RLIMIT_DATA, &limit);
              const MemoryBound bound = process_bound();
              return bound.octets < 4 * kMb &&
                     std::string(bound.by).find("ulimit -d") != std::string::npos;
            }),
            0);
}

TEST(MachineMemory, TextOfAnAmount) {
  EXPECT_EQ(memory_text(0), "0 octets");
  EXPECT_EQ(memory_text(999), "999 octets");
  EXPECT_EQ(memory_text(1536), "1.5 KB");
  EXPECT_EQ(memory_text(64 * kGb), "64.0 GB");
  EXPECT_EQ(memory_text(700 * kMb), "700 MB");
  EXPECT_EQ(memory_text(UINT64_MAX), "16.0 EB");
}

TEST(MachineCheck, TheLargestShareIsNamed) {
  const settings::Settings settings =
      parsed(std::string(kSocket) + "name = \"one\"\n", {"device.one.limits.hold_octets=64GB"});
  EXPECT_TRUE(check_memory(settings, {}));
  const Status status = check_memory(settings, {8 * kGb, "a test"});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::ResourceExhausted);
  EXPECT_EQ(status.error().message,
            "device.one.limits.hold_octets: the configuration asks for 66.0 GB of memory, 66.0 GB "
            "of it by this key, and 8.0 GB are there (a test): lower it");
}

// Nobody has written the key that takes the memory: the one that was written is named with it.
TEST(MachineCheck, WhatTheLargestShareFollowsFromIsNamed) {
  const Status status =
      check_memory(parsed(kSocket, {"limits.max_connections=65536"}), {64 * kMb, "a test"});
  ASSERT_FALSE(status);
  const std::string& message = status.error().message;
  EXPECT_TRUE(message.starts_with("device.rnic0.limits.hold_octets: ")) << message;
  EXPECT_TRUE(
      message.ends_with(" of it by this key, which follows from limits.max_connections, "
                        "and 64.0 MB are there (a test): lower one of them"))
      << message;
}

TEST(MachineCheck, ManySharesThatFitOneByOne) {
  std::string text;
  for (const char* name : {"a", "b", "c"}) {
    text += std::string(kSocket) + "name = \"" + name + "\"\n";
  }
  const settings::Settings settings = parsed(text, {"limits.hold_octets=1GB"});
  EXPECT_TRUE(check_memory(settings, {4 * kGb, "a test"}));
  EXPECT_FALSE(check_memory(settings, {3 * kGb, "a test"}));
}

// One key of one device is one share, whoever of it asks.
TEST(MachineCheck, SharesOfOneKeyAreAddedUp) {
  settings::Settings settings = parsed(std::string(kSocket) + "name = \"one\"\n");
  const auto of = [&](const char* key) {
    uint64_t octets = 0;
    int rows = 0;
    for (const MemoryShare& share : memory_shares(settings)) {
      if (share.key != key) continue;
      octets += share.octets;
      ++rows;
    }
    EXPECT_EQ(rows, 1) << key;
    return octets;
  };
  const uint64_t once = of("limits.hold_octets");
  settings.devices.push_back(settings.devices.front());  // of the same name
  EXPECT_GT(once, 0u);
  EXPECT_EQ(of("limits.hold_octets"), 2 * once);
}

TEST(MachineCheck, OrdinaryMemoryOfDpdkCounts) {
  const std::string text =
      "[[wire]]\nname = \"w\"\n[[device]]\nport = \"wire:w:0\"\naddress = \"10.0.0.1/24\"\n";
  const auto asked = [&](const char* hugepages) {
    const settings::Settings settings =
        parsed(text, {"eal.memory_mb=8192", std::string("eal.hugepages=") + hugepages});
    for (const MemoryShare& share : memory_shares(settings)) {
      if (share.key == "eal.memory_mb") return share.octets;
    }
    return uint64_t{0};
  };
  EXPECT_GE(asked("off"), 8 * kGb);
  EXPECT_LE(asked("off"), 8 * kGb + 8 * kGb / 32) << "a descriptor for each page of 4 KB";
  EXPECT_EQ(asked("require"), 0u) << "hugepages are set aside, or DPDK does not start";
}

TEST(MachineCheck, CoresThatAreNotThere) {
  settings::Settings settings = parsed(kSocket, {"worker.mode=threaded", "worker.cores=[1023]"});
  const Status status = check_cores(settings);
  ASSERT_FALSE(status);
  EXPECT_TRUE(status.error().message.starts_with(
      "worker.cores: core 1023 is asked for, and this process may run on "))
      << status.error().message;
  settings.worker.cores = {static_cast<uint32_t>(sched_getcpu())};
  EXPECT_TRUE(check_cores(settings));
  settings.worker.cores = {1023};
  settings.worker.mode = settings::WorkerSettings::Inline;
  EXPECT_TRUE(check_cores(settings)) << "nothing is pinned";
}

// By default there are as many connections as a process has descriptors by default.
TEST(MachineCheck, DescriptorsThatTheProcessMayNotHave) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{1024, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  EXPECT_TRUE(check_descriptors(parsed(kSocket)));
  const Status many = check_descriptors(parsed(kSocket, {"limits.max_connections=1025"}));
  const Status listeners = check_descriptors(parsed(kSocket, {"tcp.max_listeners=1025"}));
  const Status of_ours =
      check_descriptors(parsed("[[device]]\nport = \"net_null0\"\naddress = \"10.0.0.1/24\"\n",
                               {"limits.max_connections=1025"}));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().code, ErrorCode::ResourceExhausted);
  EXPECT_EQ(
      many.error().message,
      "device.rnic0.limits.max_connections: 1025 are asked for, each of which is a descriptor, "
      "and this process may have 1024 (ulimit -n): lower it, or raise the limit");
  ASSERT_FALSE(listeners);
  EXPECT_NE(listeners.error().message.find("tcp.max_listeners: 1025"), std::string::npos);
  EXPECT_TRUE(of_ours) << "device.rnic0 has connections of our own TCP";
}

// Each limit for itself is within what the process may have, and all of them are not.
TEST(MachineCheck, DescriptorsOfAllDevicesTogether) {
  std::string text;
  for (const char* name : {"one", "two"}) {
    text += std::string(kSocket) + "name = \"" + name + "\"\n";
  }
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit enough{4096, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &enough), 0);
  const Status fits = check_descriptors(parsed(text, {"limits.max_connections=1900"}));
  const Status two = check_descriptors(parsed(text, {"limits.max_connections=2000"}));
  const Status one = check_descriptors(
      parsed(std::string(kSocket), {"limits.max_connections=4000", "tcp.max_listeners=100"}));
  const rlimit few{1024, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const Status usual = check_descriptors(parsed(text));
  const Status listeners = check_descriptors(parsed(text, {"tcp.max_listeners=65"}));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(fits);
  ASSERT_FALSE(two);
  EXPECT_EQ(two.error().message,
            "device.one.limits.max_connections: the devices on sockets ask for 4128 descriptors "
            "together, 2000 of them by this key, and this process may have 4096 (ulimit -n): lower "
            "it, or raise the limit");
  ASSERT_FALSE(one);
  EXPECT_TRUE(usual) << "nobody has asked for more than the defaults";
  ASSERT_FALSE(listeners);
  EXPECT_TRUE(listeners.error().message.starts_with("device.one.tcp.max_listeners: "));
}

TEST(MachineCheck, BuffersOfSocketsThatTheSystemWouldCut) {
  const Root root;
  root.file("/proc/sys/net/core/wmem_max", "212992\n");
  root.file("/proc/sys/net/core/rmem_max", "425984\n");
  root.file("/proc/sys/net/core/somaxconn", "4096\n");
  const auto checked = [&](const std::string& override) {
    const Status status = check_socket_limits(parsed(kSocket, {override}), root.path());
    return status ? std::string() : status.error().message;
  };
  EXPECT_EQ(checked("socket.system_send_buffer=212992"), "");
  EXPECT_EQ(checked("socket.system_send_buffer=212993"),
            "device.rnic0.socket.system_send_buffer: 212993 are asked for, and the system gives "
            "212992 at most (net.core.wmem_max): lower it, or raise the system's limit");
  EXPECT_EQ(checked("socket.system_receive_buffer=425984"), "");
  EXPECT_NE(checked("socket.system_receive_buffer=1GB"), "");
  EXPECT_EQ(checked("socket.backlog=4096"), "");
  EXPECT_NE(checked("socket.backlog=4097"), "");
}

}  // namespace
}  // namespace rnic::verbs
