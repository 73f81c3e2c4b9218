// Waiting instead of polling: the descriptors of completion queues, events and a whole context.

#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/readable.hpp"
#include "wakeup/descriptor.hpp"
#include "verbs_pair.hpp"

namespace rnic::test {
namespace {

/// Only a failure waits so long.
constexpr int kPatienceMs = 20'000;

struct Setup {
  const char* name;
  bool sockets;
  bool threaded;
};

class Waiting : public testing::TestWithParam<Setup> {
 protected:
  [[nodiscard]] static Config config() {
    Config out = GetParam().sockets ? socket_config(GetParam().threaded)
                                    : loopback_config(GetParam().threaded);
    out.set("worker.idle=sleep");
    return out;
  }
  [[nodiscard]] static bool threaded() { return GetParam().threaded; }

  /// As a program waits that has nothing but this queue's descriptor.
  static std::optional<Completion> sleep_for_one(World& world, CompletionQueue& queue) {
    Completion out;
    for (;;) {
      if (queue.poll({&out, 1}) == 1) return out;
      must(queue.arm(Notify::Next));
      if (queue.poll({&out, 1}) == 1) return out;
      if (!is_readable(must(queue.fd()), kPatienceMs)) return std::nullopt;
      world.context.poll();
    }
  }
};

TEST_P(Waiting, ACompletionMakesItsQueuesDescriptorReadable_VERBS_15) {
  World world(config());
  Side a(world.left);
  Side b(world.right);
  world.connect(a, b);
  Memory near(a.pd, octets(64, 1), Access::LocalWrite);
  Memory far(b.pd, std::vector<uint8_t>(64), kEverything);
  for (uint64_t round = 0; round < 200; ++round) {
    must(b.qp.post_receive(receive(far.all(), round)));
    must(a.qp.post_send(request(Opcode::Send, near.all(), round)));
    const auto received = sleep_for_one(world, b.receive_cq);
    ASSERT_TRUE(received) << "round " << round;
    EXPECT_EQ(received->id, round);
    const auto sent = sleep_for_one(world, a.send_cq);
    ASSERT_TRUE(sent) << "round " << round;
    EXPECT_EQ(sent->id, round);
    EXPECT_EQ(far.data, near.data);
  }
}

TEST_P(Waiting, NothingIsReadableWhileNothingComes) {
  World world(config());
  Side a(world.left);
  Side b(world.right);
  world.connect(a, b);
  exchange(world, a, b, 1000, 1);
  ASSERT_FALSE(world.left.poll_event());
  // What an inline device still has to do comes to an end.
  const int fd = must(a.receive_cq.fd());
  const auto calm = [&] {
    must(a.receive_cq.arm());
    if (!is_readable(fd)) return true;
    world.context.poll();
    return false;
  };
  EXPECT_TRUE(world.wait(calm));
}

TEST_P(Waiting, WhoWaitsForSolicitedOnesSleepsThroughOthers_VERBS_15) {
  if (!threaded()) return;  // an inline descriptor tells of all that the device has to do
  World world(config());
  Side a(world.left);
  Side b(world.right);
  world.connect(a, b);
  Memory near(a.pd, octets(64, 1), Access::LocalWrite);
  Memory far(b.pd, std::vector<uint8_t>(64), kEverything);
  for (uint64_t id = 1; id <= 4; ++id) must(b.qp.post_receive(receive(far.all(), id)));
  const int fd = must(b.receive_cq.fd());

  must(b.receive_cq.arm(Notify::Solicited));
  must(a.qp.post_send(request(Opcode::Send, near.all(), 1)));
  world.expect_done(a.send_cq, 1, 64);
  world.expect_done(b.receive_cq, 1, 64);
  EXPECT_FALSE(is_readable(fd)) << "nobody has solicited it";

  SendRequest solicited = request(Opcode::Send, near.all(), 2);
  solicited.solicited = true;
  must(a.qp.post_send(solicited));
  EXPECT_TRUE(is_readable(fd, kPatienceMs));
  world.expect_done(b.receive_cq, 2, 64);

  must(b.receive_cq.arm(Notify::Next));
  must(b.receive_cq.arm(Notify::Solicited));
  EXPECT_FALSE(is_readable(fd)) << "arming takes back what was told";
  must(a.qp.post_send(request(Opcode::Send, near.all(), 3)));
  EXPECT_TRUE(is_readable(fd, kPatienceMs)) << "who waits for any goes on doing so";
  world.expect_done(b.receive_cq, 3, 64);

  must(b.receive_cq.arm(Notify::Solicited));
  a.qp = QueuePair();
  EXPECT_TRUE(is_readable(fd, kPatienceMs)) << "a flushed receive is an error, which always tells";
}

// Four of them make one wake-up, one alone makes one when its time is over: by the device's own
// deadline, also where nothing else happens.
TEST_P(Waiting, ModeratedCompletionsAreToldTogetherOrInTime_VERBS_15) {
  World world(config());
  Side a(world.left);
  Side b(world.right);
  world.connect(a, b);
  Memory near(a.pd, octets(64, 1), Access::LocalWrite);
  Memory far(b.pd, std::vector<uint8_t>(64), kEverything);
  must(b.receive_cq.moderate({.count = 4, .period = std::chrono::milliseconds(2)}));
  for (uint64_t round = 0; round < 20; ++round) {
    const uint64_t some = round % 5 + 1;
    for (uint64_t id = 0; id < some; ++id) {
      must(b.qp.post_receive(receive(far.all(), id)));
      must(a.qp.post_send(request(Opcode::Send, near.all(), id)));
    }
    for (uint64_t id = 0; id < some; ++id) {
      const auto received = sleep_for_one(world, b.receive_cq);
      ASSERT_TRUE(received) << "round " << round;
      EXPECT_EQ(received->id, id);
      ASSERT_TRUE(sleep_for_one(world, a.send_cq));
    }
  }
  if (!threaded()) return;  // an inline descriptor tells of all that the device has to do
  // The time is far away: the count alone can wake.
  must(b.receive_cq.moderate({.count = 3, .period = kMaxNotifyPeriod}));
  const int fd = must(b.receive_cq.fd());
  must(b.receive_cq.arm());
  const auto post = [&](uint64_t id) {
    must(b.qp.post_receive(receive(far.all(), id)));
    must(a.qp.post_send(request(Opcode::Send, near.all(), id)));
  };
  post(1);
  post(2);
  world.expect_done(a.send_cq, 1, 64);
  world.expect_done(a.send_cq, 2, 64);
  post(3);
  ASSERT_TRUE(is_readable(fd, kPatienceMs));
  std::vector<Completion> all(8);
  EXPECT_EQ(b.receive_cq.poll(all), 3u);
}

TEST_P(Waiting, EventsMakeTheirDevicesDescriptorReadable) {
  World world(config());
  Side a(world.left);
  Side b(world.right);
  const auto next_event = [&](Device& device) -> std::optional<Event> {
    for (;;) {
      if (auto event = device.poll_event()) return event;
      if (!is_readable(must(device.event_fd()), kPatienceMs)) return std::nullopt;
      world.context.poll();
    }
  };
  must(world.right.listen(7471));
  must(a.qp.connect({world.right.address(), 7471}));
  const auto asked = next_event(world.right);
  ASSERT_TRUE(asked && std::holds_alternative<event::ConnectRequest>(*asked));
  must(b.qp.accept(std::get<event::ConnectRequest>(*asked).request));
  const auto established = next_event(world.left);
  ASSERT_TRUE(established && std::holds_alternative<event::Established>(*established));
  const auto theirs = next_event(world.right);
  ASSERT_TRUE(theirs && std::holds_alternative<event::Established>(*theirs));
}

TEST_P(Waiting, EventsFromBeforeTheDescriptorAreTold) {
  World world(config());
  Side a(world.left);
  must(world.right.listen(7471));
  must(a.qp.connect({world.right.address(), 7471}));
  std::optional<Event> kept;
  ASSERT_TRUE(world.wait([&] { return world.right.poll_event().has_value(); }));
  must(a.qp.disconnect());
  must(world.right.event_fd());
  EXPECT_TRUE(is_readable(must(world.right.event_fd()), kPatienceMs));
}

TEST_P(Waiting, OneDescriptorIsEnoughForAnInlineContext) {
  World world(config());
  if (threaded()) {
    const auto fd = world.context.fd();
    ASSERT_FALSE(fd);
    EXPECT_EQ(fd.error().code, ErrorCode::Unsupported);
    EXPECT_NE(fd.error().message.find("worker.mode = inline"), std::string::npos);
    return;
  }
  Side a(world.left);
  Side b(world.right);
  const int fd = must(world.context.fd());
  EXPECT_EQ(must(world.context.fd()), fd);
  // Sleeps until `done`, and nowhere but on the descriptor.
  const auto sleep_until = [&](const std::function<bool()>& done) {
    while (!done()) {
      while (!world.context.arm()) world.context.poll();
      if (done()) return true;
      if (!is_readable(fd, kPatienceMs)) return false;
      world.context.poll();
    }
    return true;
  };
  must(world.right.listen(7471));
  must(a.qp.connect({world.right.address(), 7471}));
  std::optional<event::ConnectRequest> asked;
  ASSERT_TRUE(sleep_until([&] {
    asked = world.take<event::ConnectRequest>(world.right);
    return asked.has_value();
  }));
  must(b.qp.accept(asked->request));
  ASSERT_TRUE(sleep_until([&] { return world.take<event::Established>(world.left).has_value(); }));
  Memory near(a.pd, octets(200'000, 1), Access::LocalWrite);
  Memory far(b.pd, std::vector<uint8_t>(200'000), kEverything);
  Completion done;
  for (uint64_t round = 0; round < 20; ++round) {
    must(a.qp.post_send(request(Opcode::Write, near.all(), far, round)));
    ASSERT_TRUE(sleep_until([&] { return a.send_cq.poll({&done, 1}) == 1; })) << round;
    ASSERT_TRUE(done.status == CompletionStatus::Success && done.id == round);
    must(a.qp.post_send(request(Opcode::Read, near.all(), far, round)));
    ASSERT_TRUE(sleep_until([&] { return a.send_cq.poll({&done, 1}) == 1; })) << round;
    ASSERT_TRUE(done.status == CompletionStatus::Success && done.id == round);
  }
  EXPECT_EQ(far.data, near.data);
  must(a.qp.disconnect());
  ASSERT_TRUE(sleep_until([&] { return world.take<event::PeerClosed>(world.right).has_value(); }));
  must(b.qp.disconnect());
  ASSERT_TRUE(sleep_until([&] { return world.take<event::Disconnected>(world.left).has_value(); }));
  EXPECT_TRUE(sleep_until([&] { return world.left.quiescent() && world.right.quiescent(); }));
}

/// Descriptors of the process may not be more than there are now, while it lives.
class NoDescriptorLeft {
 public:
  NoDescriptorLeft() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = dup(0);
    close(next);
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(next);
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptorLeft() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptorLeft(const NoDescriptorLeft&) = delete;
  NoDescriptorLeft& operator=(const NoDescriptorLeft&) = delete;

 private:
  rlimit before_{};
};

TEST_P(Waiting, WithoutADescriptorTheCallSaysSoAndPollingGoesOn) {
  World world(config());
  Side a(world.left);
  Side b(world.right);
  world.connect(a, b);
  {
    const NoDescriptorLeft none;
    const auto fd = a.send_cq.fd();
    ASSERT_FALSE(fd);
    EXPECT_EQ(fd.error().code, ErrorCode::ResourceExhausted);
    EXPECT_NE(fd.error().message.find("ulimit -n"), std::string::npos) << fd.error().message;
    EXPECT_FALSE(a.send_cq.arm());
    EXPECT_FALSE(world.left.event_fd());
    EXPECT_FALSE(world.context.fd());
    exchange(world, a, b, 1000, 1);
  }
  EXPECT_TRUE(a.send_cq.fd());
}

/// Does as the documented loop. \return whether arm() says before long that there is nothing to do
bool comes_to_rest(Context& context) {
  for (int turns = 0; turns < 1'000'000; ++turns) {
    if (context.arm()) return true;
    context.poll();
  }
  return false;
}

// An application may have ignored the error of fd(), or not asked for it yet.
TEST_P(Waiting, TheLoopEndsWithoutADescriptor) {
  World world(config());
  EXPECT_TRUE(comes_to_rest(world.context));
  Side a(world.left);
  Side b(world.right);
  world.connect(a, b);
  exchange(world, a, b, 1000, 1);
  EXPECT_TRUE(comes_to_rest(world.context));
  Context other = std::move(world.context);
  EXPECT_TRUE(comes_to_rest(world.context)) << "a context that was moved from has nothing to do";
  EXPECT_TRUE(comes_to_rest(other));
  world.context = std::move(other);
}

TEST_P(Waiting, TheLoopEndsWhereTheMachineHasNoDescriptor) {
  World world(config());
  Side a(world.left);
  Side b(world.right);
  const NoDescriptorLeft none;
  EXPECT_FALSE(world.context.fd());
  EXPECT_TRUE(comes_to_rest(world.context));
}

/// An epoll that contains another descriptor. Nothing: the kernel takes none around that one.
std::optional<wakeup::Descriptor> epoll_around(int inner) {
  auto made = wakeup::Descriptor::open([] { return epoll_create1(EPOLL_CLOEXEC); });
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  if (epoll_ctl(made.get(), EPOLL_CTL_ADD, inner, &wanted) != 0) return std::nullopt;
  return made;
}

// The promise of the headers: an application's epoll, and one around that.
TEST_P(Waiting, EachDescriptorFitsIntoTwoEpolls) {
  World world(config());
  Side a(world.left);
  Side b(world.right);
  std::vector<std::pair<const char*, int>> all{{"of a queue", must(b.receive_cq.fd())},
                                               {"of the events", must(world.right.event_fd())}};
  if (!threaded()) all.emplace_back("of the context", must(world.context.fd()));
  std::vector<wakeup::Descriptor> kept;
  for (const auto& [whose, fd] : all) {
    // The device adds what it waits for when it is armed first, which must fit, too.
    auto inner = epoll_around(fd);
    ASSERT_TRUE(inner) << whose;
    auto outer = epoll_around(inner->get());
    ASSERT_TRUE(outer) << whose;
    kept.push_back(std::move(*inner));
    kept.push_back(std::move(*outer));
  }
  world.connect(a, b);
  Memory near(a.pd, octets(64, 1), Access::LocalWrite);
  Memory far(b.pd, std::vector<uint8_t>(64), kEverything);
  must(b.qp.post_receive(receive(far.all(), 1)));
  must(b.receive_cq.arm());
  must(a.qp.post_send(request(Opcode::Send, near.all(), 1)));
  EXPECT_TRUE(world.wait([&] { return is_readable(kept[1].get()); }));
}

size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

// What the condition ends lives until the call has returned: with the devices their descriptors
// would be closed.
TEST_P(Waiting, TheConditionMayEndTheLastHandle) {
  const size_t without = open_descriptors();
  std::optional<Context> context(must(Context::open(config())));
  const size_t with = open_descriptors();
  ASSERT_GT(with, without);
  int asked = 0;
  const auto done = [&] {
    if (++asked == 2) context.reset();
    EXPECT_GE(open_descriptors(), with) << asked;
    return asked == 4;
  };
  EXPECT_TRUE(context->wait_until(done, kPatience));
  EXPECT_EQ(asked, 4);
  EXPECT_LT(open_descriptors(), with) << "it was the last handle";
}

INSTANTIATE_TEST_SUITE_P(
    Everywhere, Waiting,
    testing::Values(Setup{"WireInline", false, false}, Setup{"WireThreaded", false, true},
                    Setup{"SocketsInline", true, false}, Setup{"SocketsThreaded", true, true}),
    [](const testing::TestParamInfo<Setup>& setup) { return std::string(setup.param.name); });

}  // namespace
}  // namespace rnic::test
