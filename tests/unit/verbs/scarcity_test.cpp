// What a call asks for that the machine does not have is refused in words, before anything is made.

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>

#include "verbs/machine_memory.hpp"
#include "verbs_pair.hpp"

namespace rnic::test {
namespace {

constexpr uint64_t kMb = 1 << 20;

/// While it lives the process has only so much address space left.
class LittleSpace {
 public:
  explicit LittleSpace(uint64_t left) {
    getrlimit(RLIMIT_AS, &before_);
    rlimit limit = before_;
    // What is in use is what the greatest limit that is one does not leave.
    limit.rlim_cur = std::min<rlim_t>(before_.rlim_max, RLIM_INFINITY - 1);
    setrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = limit.rlim_cur - verbs::process_bound().octets + left;
    setrlimit(RLIMIT_AS, &limit);
  }
  LittleSpace(const LittleSpace&) = delete;
  LittleSpace& operator=(const LittleSpace&) = delete;
  ~LittleSpace() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

class Scarcity : public ::testing::Test {
 protected:
  static Config deep() {
    Config config = loopback_config();
    config.set("limits.max_work_depth=1048576");
    return config;
  }
  World world_{deep()};
};

template <typename R>
void expect_refused(const R& result, const std::string& begin) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::ResourceExhausted);
  EXPECT_TRUE(result.error().message.starts_with(begin)) << result.error().message;
  EXPECT_TRUE(result.error().message.ends_with(
      "are there (the limit of address space, ulimit -v): ask for less"))
      << result.error().message;
}

TEST_F(Scarcity, QueuesThatDoNotFit) {
  Side a(world_.left);
  {
    const LittleSpace little(32 * kMb);
    expect_refused(world_.left.create_cq(2u << 20), "create_cq: 2097152 completions: ");
    expect_refused(a.pd.create_qp(a.send_cq, a.receive_cq,
                                  {.send_depth = 1u << 20, .receive_depth = 1u << 19}),
                   "create_qp: queues of 1048576 and 524288 requests: ");
    EXPECT_TRUE(world_.left.create_cq(64)) << "what is small is not looked at";
  }
  EXPECT_TRUE(world_.left.create_cq(2u << 20)) << "the device has room for it";
}

TEST_F(Scarcity, ATraceThatDoesNotFit) {
  Side a(world_.left);
  Side b(world_.right);
  world_.connect(a, b);
  {
    const LittleSpace little(32 * kMb);
    expect_refused(a.qp.start_trace(64 * kMb), "start_trace: 67108864 events: 2.0 GB of memory ");
  }
  const Status more = a.qp.start_trace(SIZE_MAX);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, ErrorCode::ResourceExhausted);
  EXPECT_TRUE(more.error().message.starts_with("start_trace: ")) << more.error().message;
  EXPECT_FALSE(a.qp.take_trace()) << "none was started";
}

TEST(ScarceMemory, OnlyLargePiecesAreLookedAt) {
  EXPECT_TRUE(verbs::enough_memory("a call", verbs::kWorthAsking - 1));
  const LittleSpace little(8 * kMb);
  EXPECT_TRUE(verbs::enough_memory("a call", verbs::kWorthAsking - 1));
  const Status status = verbs::enough_memory("a call", verbs::kWorthAsking);
  ASSERT_FALSE(status);
  EXPECT_TRUE(status.error().message.starts_with("a call: 16.0 MB of memory are asked for, and "));
}

TEST(ScarceMemory, WhatOneDomainOfDpdkCannotHold) {
  Config config = loopback_config();
  config.set("wire.loop.mtu=9216");
  config.set("wire.loop.ring_size=32768");
  const auto context = Context::open(config);
  ASSERT_FALSE(context);
  EXPECT_EQ(context.error().code, ErrorCode::ResourceExhausted);
  const std::string& message = context.error().message;
  EXPECT_TRUE(message.starts_with("no memory for 131072 buffers of 9408 octets (")) << message;
  EXPECT_NE(message.find(" MB that DPDK has (eal.memory_mb): raise that, or lower the size of the "
                         "ring"),
            std::string::npos)
      << message;
  EXPECT_TRUE(Context::open(loopback_config())) << "what was made is given back";
}

// The last thing that a context on sockets opens is refused: it does not come into being.
TEST(ScarceDescriptors, NoneForThePollerOfADevice) {
  Config config = Config::from_text("[[device]]\nport = \"socket\"\n", "t.toml");
  for (const char* key : {"tcp.max_half_open", "tcp.max_listeners", "limits.max_connections",
                          "limits.max_pending_requests"}) {
    config.set(std::string(key) + "=1");  // more than there are descriptors would be refused before
  }
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const int next = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
  close(next);
  ASSERT_GT(next, 0);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(next);
  setrlimit(RLIMIT_NOFILE, &none);
  const auto context = Context::open(config);
  setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_FALSE(context);
  EXPECT_EQ(context.error().code, ErrorCode::ResourceExhausted);
  EXPECT_EQ(context.error().message,
            "epoll: Too many open files; raise the limit of open files (ulimit -n)");
  EXPECT_TRUE(Context::open(config));
}

}  // namespace
}  // namespace rnic::test
