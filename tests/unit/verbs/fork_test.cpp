// What a child has of its parent's devices, which is nothing, and what parent and peers notice.

#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <ostream>
#include <sstream>
#include <thread>

#include "forked_child.hpp"
#include "process/descriptor_table.hpp"
#include "support/at.hpp"
#include "verbs_pair.hpp"

// A child of a process with threads opens devices with threads of its own here.
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }

// A thread of the parent's that ended with the fork looks like a leak at the end of a child.
namespace {
bool is_a_child = false;
}
extern "C" int __lsan_is_turned_off() { return is_a_child ? 1 : 0; }

namespace rnic::test {
namespace {

constexpr int kForks = 100;

enum class Medium : uint8_t { Wire, Sockets, PacketSockets };

struct Setup {
  const char* name;
  Medium medium;
  bool threaded;
};
void PrintTo(const Setup& setup, std::ostream* out) { *out << setup.name; }

/// Two interfaces that are one wire, in a network of the test's own; empty: they are there.
std::string make_network() {
  if (geteuid() != 0) return "only root can make network namespaces";
  if (unshare(CLONE_NEWNET) != 0) return "this machine allows no network namespaces";
  const bool made = std::system(
                        "ip link set lo up && ip link add near type veth peer far && "
                        "ip link set near up && ip link set far up") == 0;
  return made ? "" : "this machine allows no network namespaces";
}

const std::string& lack_of_network() {
  static const std::string lack = make_network();
  return lack;
}

Config config_of(const Setup& setup) {
  if (setup.medium == Medium::Wire) return loopback_config(setup.threaded);
  if (setup.medium == Medium::Sockets) return socket_config(setup.threaded);
  Config config = Config::from_text(R"(
[eal]
hugepages = "off"
[[device]]
name = "rnic0"
port = "net_af_packet0,iface=near"
address = "10.0.0.1/24"
[[device]]
name = "rnic1"
port = "net_af_packet1,iface=far"
address = "10.0.0.2/24"
)");
  if (setup.threaded) config.set("worker.mode=threaded");
  return config;
}

/// Those of the library, and those of DPDK that it knows.
std::set<int> known_descriptors() {
  std::set<int> known;
  for (const int descriptor : open_descriptors()) {
    const auto& table = process::descriptors();
    if (table.has(descriptor) || table.has_adopted(descriptor)) known.insert(descriptor);
  }
  return known;
}

std::string target(int descriptor) {
  std::error_code gone;
  const auto link = "/proc/self/fd/" + std::to_string(descriptor);
  return std::filesystem::read_symlink(link, gone).string();
}

void expect_closed(Findings& found, const std::set<int>& descriptors) {
  for (const int descriptor : descriptors) {
    found.expect(fcntl(descriptor, F_GETFD) == -1,
                 "descriptor " + std::to_string(descriptor) + " is open: " + target(descriptor));
  }
}

/// Nothing but what was open before there were devices, and the child's own pipes.
void expect_only(Findings& found, std::set<int> allowed) {
  allowed.merge(ForkedChild::own_descriptors());
  for (const int descriptor : open_descriptors()) {
    found.expect(allowed.contains(descriptor),
                 "descriptor " + std::to_string(descriptor) + " is open: " + target(descriptor));
  }
}

/// Lines of the map of this process's memory: what it shares with others of DPDK and the kernel.
std::string shared_memory() {
  std::ifstream maps("/proc/self/maps");
  std::string found;
  for (std::string line; std::getline(maps, line);) {
    for (const char* name : {"/memfd:nohuge", "/memfd:seg_", "/anon_hugepage", "socket:["}) {
      if (line.find(name) != std::string::npos) found += line + "\n";
    }
  }
  return found;
}

template <typename Answer>
void expect_abandoned(Findings& found, const Answer& answer, const std::string& call) {
  if (answer) return found.expect(false, call + " succeeds");
  found.expect(answer.error().code == ErrorCode::Abandoned,
               call + ": " + to_string(answer.error().code) + ": " + answer.error().message);
}

/// Everything that an application may have.
struct Everything {
  World world;
  Side a;
  Side b;
  Memory near;
  Memory far;
  PortReservation port;
  StreamListener stream_listener;
  FramedStreamListener framed_listener;
  Stream stream;
  FramedStream framed;

  explicit Everything(const Config& config)
      : world(config),
        a(world.left),
        b(world.right),
        near(a.pd, octets(20'000, 1), Access::LocalWrite),
        far(b.pd, std::vector<uint8_t>(20'000), kEverything),
        port(must(world.left.reserve({world.left.address(), 0}))) {
    world.connect(a, b);
  }

  /// One message: posted, a fork in between, then verified.
  void send(uint64_t id, const std::function<void()>& in_between) {
    const auto content = octets(near.data.size(), id);
    std::ranges::copy(content, near.data.begin());
    must(b.qp.post_receive(receive(far.all(), id)));
    must(a.qp.post_send(request(Opcode::Send, near.all(), id)));
    in_between();
    world.expect_done(a.send_cq, id, static_cast<uint32_t>(content.size()));
    world.expect_done(b.receive_cq, id, static_cast<uint32_t>(content.size()));
    EXPECT_EQ(far.data, content);
  }
};

/// Files of a child's own under the lowest free numbers, which were those of its parent's devices.
class OwnFiles {
 public:
  OwnFiles() {
    for (int& file : files_) {
      file = memfd_create("own", MFD_CLOEXEC);
      if (write(file, "mine", 4) != 4) std::abort();
    }
  }
  void expect_untouched(Findings& found) const {
    for (const int file : files_) {
      std::array<char, 16> content{};
      found.expect(pread(file, content.data(), content.size(), 0) == 4 &&
                       std::string(content.data()) == "mine",
                   "the child's own file " + std::to_string(file) + " was touched");
    }
  }

 private:
  std::array<int, 64> files_{};
};

void ask_queues(Findings& found, Everything& all) {
  std::array<Completion, 4> out;
  QueuePair& qp = all.a.qp;
  expect_abandoned(found, qp.post_send(request(Opcode::Send, all.near.all())), "post_send");
  expect_abandoned(found, qp.post_receive(receive(all.near.all())), "post_receive");
  expect_abandoned(found, qp.post_fetch_add(1, {}, 1), "post_fetch_add");
  expect_abandoned(found, qp.post_compare_swap(1, {}, 1, 2), "post_compare_swap");
  expect_abandoned(found, qp.post_immediate(1, {}), "post_immediate");
  expect_abandoned(found, qp.connect(at("10.0.0.2", 7471)), "connect");
  expect_abandoned(found, qp.accept({}), "accept");
  expect_abandoned(found, qp.info(), "info");
  found.expect(qp.number() == 0 && all.a.send_cq.number() == 0, "a queue has its number");
  expect_abandoned(found, qp.local(), "local");
  expect_abandoned(found, qp.remote(), "remote");
  expect_abandoned(found, qp.cancel_connect(), "cancel_connect");
  expect_abandoned(found, qp.commit("terminate now"), "commit");
  const std::array<SendRequest, 1> sends;
  expect_abandoned(found, qp.post_send(sends).status, "post_send of a list");
  const std::array<ReceiveRequest, 1> receives;
  expect_abandoned(found, qp.post_receive(receives).status, "post_receive of a list");
  expect_abandoned(found, qp.disconnect(), "disconnect");
  expect_abandoned(found, qp.query(), "query");
  expect_abandoned(found, qp.modify({}), "modify");
  expect_abandoned(found, qp.drain(), "drain");
  found.expect(qp.state() == QueuePairState::Error, "a queue pair lives");
  expect_abandoned(found, qp.start_trace(4), "start_trace");
  expect_abandoned(found, qp.take_trace(), "take_trace");
  expect_abandoned(found, all.b.qp.destroy(), "QueuePair::destroy");
  found.expect(all.a.send_cq.poll(out) == 0, "a completion queue has entries");
  expect_abandoned(found, all.a.send_cq.fd(), "CompletionQueue::fd");
  expect_abandoned(found, all.a.send_cq.arm(), "CompletionQueue::arm");
  expect_abandoned(found, all.b.send_cq.destroy(), "CompletionQueue::destroy");
  std::array<std::byte, 8> memory{};
  expect_abandoned(found, all.a.pd.register_memory(memory, kEverything), "register_memory");
  expect_abandoned(found, all.a.pd.create_qp(all.a.send_cq, all.a.send_cq), "create_qp");
  expect_abandoned(found, all.b.pd.destroy(), "ProtectionDomain::destroy");
  expect_abandoned(found, all.near.region.deregister(), "deregister");
}

void ask_ports(Findings& found, Everything& all) {
  Device& device = all.world.left;
  expect_abandoned(found, device.reserve(), "reserve");
  expect_abandoned(found, device.listen(all.port), "listen on a reserved port");
  expect_abandoned(found, device.listen_stream(all.port), "listen_stream on a reserved port");
  expect_abandoned(found, device.listen_framed(all.port), "listen_framed on a reserved port");
  expect_abandoned(found, all.a.qp.connect(all.port, at("10.0.0.2", 7471)), "connect from a port");
  found.expect(all.port.local() == Endpoint{}, "a port is reserved");
  expect_abandoned(found, all.port.destroy(), "PortReservation::destroy");
}

void ask_devices(Findings& found, Everything& all) {
  Context& context = all.world.context;
  Device& device = all.world.left;
  expect_abandoned(found, device.alloc_pd(), "alloc_pd");
  expect_abandoned(found, device.create_cq(4), "create_cq");
  expect_abandoned(found, device.listen(7472), "listen");
  expect_abandoned(found, device.unlisten(7472), "unlisten");
  expect_abandoned(found, device.reject({}), "reject");
  expect_abandoned(found, device.listen_stream(7473), "listen_stream");
  expect_abandoned(found, device.connect_stream(at("10.0.0.2", 7473)), "connect_stream");
  expect_abandoned(found, device.listen_framed(7474), "listen_framed");
  expect_abandoned(found, device.connect_framed(at("10.0.0.2", 7474), {}), "connect_framed");
  expect_abandoned(found, device.event_fd(), "event_fd");
  found.expect(!device.poll_event(), "there is an event");
  found.expect(device.poll() == 0 && context.poll() == 0, "a poll does something");
  found.expect(device.counters().empty(), "there are counters");
  expect_abandoned(found, device.counter("device", "doorbells"), "counter");
  expect_abandoned(found, device.limits(), "limits");
  expect_abandoned(found, device.terminates(), "terminates");
  expect_abandoned(found, device.connections(), "connections");
  expect_abandoned(found, device.abort({}), "abort");
  found.expect(device.quiescent(), "something is under way");
  found.expect(device.new_framing_key() == 0, "there is a key");
  found.expect(device.name() == "rnic0", "the name is lost");
  expect_abandoned(found, context.device("rnic0"), "Context::device");
  expect_abandoned(found, context.fd(), "Context::fd");
  found.expect(context.arm(), "arm() says that there is something to poll for");
  found.expect(!context.next_deadline(), "there is a deadline");
  found.expect(!context.wait_until([] { return false; }, kForever), "what never comes has come");
  found.expect(context.wait_until([] { return true; }, kForever), "what is there is not seen");
}

void ask_streams(Findings& found, Everything& all) {
  std::array<uint8_t, 16> some{};
  expect_abandoned(found, all.stream.send(some), "Stream::send");
  expect_abandoned(found, all.stream.receive(some), "Stream::receive");
  expect_abandoned(found, all.stream.await_rdma(), "await_rdma");
  expect_abandoned(found, all.stream.set_options({}), "set_options");
  expect_abandoned(found, all.stream.status(), "Stream::status");
  found.expect(all.stream.readable() == 0 && all.stream.writable() == 0, "a stream has room");
  found.expect(all.stream.state() == StreamState::Ended, "a stream lives");
  found.expect(all.stream.local() == Endpoint{} && all.stream.remote() == Endpoint{},
               "it has ends");
  found.expect(all.stream_listener.local() == Endpoint{}, "a listener has its end");
  found.expect(all.stream.how_ended() == StreamEnd::Aborted && all.stream.at_end(), "no end");
  all.stream.finish_sending();
  all.stream.abort();
  expect_abandoned(found, all.framed.send(some), "FramedStream::send");
  expect_abandoned(found, all.framed.receive(some), "FramedStream::receive");
  expect_abandoned(found, all.framed.read(some), "FramedStream::read");
  expect_abandoned(found, all.framed.set_send_mode(FramedSendMode::Plain), "set_send_mode");
  expect_abandoned(found, all.framed.set_receive_mode(FramedReceiveMode::Plain), "receive_mode");
  expect_abandoned(found, all.framed.set_send_interval(512), "set_send_interval");
  expect_abandoned(found, all.framed.set_receive_interval(512), "set_receive_interval");
  expect_abandoned(found, all.framed.set_packing(true), "set_packing");
  expect_abandoned(found, all.framed.set_emergency(true), "set_emergency");
  expect_abandoned(found, all.framed.set_max_frame(1000), "set_max_frame");
  found.expect(all.framed.readable() == 0 && !all.framed.writable(1), "a framed stream has room");
  found.expect(all.framed.frame_limit() == 0 && all.framed.usable_emss() == 0, "it has a limit");
  found.expect(!all.stream_listener.accept() && !all.framed_listener.accept(), "one is accepted");
  all.framed.close();
}

class Forked : public ::testing::TestWithParam<Setup> {
 protected:
  void SetUp() override {
    if (GetParam().medium == Medium::PacketSockets && !lack_of_network().empty()) {
      GTEST_SKIP() << lack_of_network();
    }
  }
  [[nodiscard]] static bool sockets() { return GetParam().medium == Medium::Sockets; }

  /// What is open while there are no devices.
  const std::set<int> before_ = open_descriptors();
};

INSTANTIATE_TEST_SUITE_P(
    Modes, Forked,
    ::testing::Values(Setup{"SocketsInline", Medium::Sockets, false},
                      Setup{"SocketsThreaded", Medium::Sockets, true},
                      Setup{"WireInline", Medium::Wire, false},
                      Setup{"WireThreaded", Medium::Wire, true},
                      Setup{"PacketSocketsInline", Medium::PacketSockets, false},
                      Setup{"PacketSocketsThreaded", Medium::PacketSockets, true}),
    [](const auto& setup) { return setup.param.name; });

/// Opens what Everything has beside queue pairs, where the device has a stack of its own.
void open_streams(Everything& all) {
  all.stream_listener = must(all.world.right.listen_stream(7100));
  FramedListenerOptions options;
  options.framing.send_key = options.framing.receive_key = all.world.left.new_framing_key();
  all.framed_listener = must(all.world.right.listen_framed(7200, options));
  all.stream = must(all.world.left.connect_stream({all.world.right.address(), 7100}));
  all.framed =
      must(all.world.left.connect_framed({all.world.right.address(), 7200}, options.framing));
  ASSERT_TRUE(all.world.wait([&] {
    return all.stream.state() == StreamState::Open && all.framed.state() == StreamState::Open;
  }));
}

TEST_P(Forked, EveryHandleAnswersAbandonedAndEndsInSilence) {
  auto all = std::make_unique<Everything>(config_of(GetParam()));
  if (!sockets()) open_streams(*all);
  must(all->a.send_cq.arm());
  must(all->world.left.event_fd());
  all->send(1, [] {});
  const std::set<int> known = known_descriptors();
  ASSERT_FALSE(known.empty());
  // DPDK's stays with the process once it was started.
  EXPECT_TRUE(sockets() || shared_memory().find("memfd") != std::string::npos);
  EXPECT_EQ(shared_memory().find("socket:[") != std::string::npos,
            GetParam().medium == Medium::PacketSockets);
  ForkedChild child([&](Findings& found) {
    expect_closed(found, known);
    if (sockets()) expect_only(found, before_);
    found.expect(shared_memory().empty(), "the parent's memory:\n" + shared_memory());
    const OwnFiles files;
    ask_queues(found, *all);
    ask_devices(found, *all);
    ask_ports(found, *all);
    if (!sockets()) ask_streams(found, *all);
    all.reset();
    files.expect_untouched(found);
  });
  EXPECT_EQ(child.findings(), "");
  all->send(2, [] {});
  const Endpoint reserved = all->port.local();
  EXPECT_FALSE(all->world.left.reserve(reserved)) << "a child gives its parent's port back";
  EXPECT_EQ(must(all->world.left.listen(all->port)), reserved);
  EXPECT_TRUE(sockets() || all->stream.state() == StreamState::Open);
  EXPECT_TRUE(sockets() || all->framed.state() == StreamState::Open);
  all->world.disconnect(all->a, all->b);
}

TEST_P(Forked, ParentAndPeerNoticeNothingOfAHundredForks) {
  Everything all(config_of(GetParam()));
  for (int i = 0; i < kForks; ++i) {
    all.send(static_cast<uint64_t>(i), [&] {
      const std::set<int> known = known_descriptors();
      ForkedChild child([&](Findings& found) {
        expect_closed(found, known);
        const OwnFiles files;
        expect_abandoned(found, all.a.qp.post_receive(receive(all.near.all())), "post_receive");
        { const QueuePair mine = std::move(all.a.qp); }
        files.expect_untouched(found);
      });
      ASSERT_TRUE(all.world.wait([&] { return child.has_reported(); }));
      ASSERT_EQ(child.findings(), "") << "fork " << i;
    });
  }
  all.world.disconnect(all.a, all.b);
}

// Destructors of the program and of libraries run then, DPDK's for one.
TEST_P(Forked, AChildMayEndByExit) {
  auto all = std::make_unique<Everything>(config_of(GetParam()));
  all->send(1, [&] {
    const pid_t child = fork();
    if (child == 0) {
      is_a_child = true;
      all.reset();
      std::exit(7);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 7);
  });
  all->send(2, [] {});
}

TEST_P(Forked, AChildHasDevicesOfItsOwnOverSocketsAndNoneOfDpdk) {
  Everything all(config_of(GetParam()));
  for (const bool threaded : {false, true}) {
    all.send(threaded ? 2 : 1, [&] {
      ForkedChild child([threaded](Findings& found) {
        const auto refused = Context::open(loopback_config(threaded));
        if (refused) return found.expect(false, "a child has a port of DPDK");
        found.expect(refused.error().code == ErrorCode::Unsupported &&
                         refused.error().message.find("exec a program") != std::string::npos,
                     to_string(refused.error().code) + (": " + refused.error().message));
        Everything own(socket_config(threaded));
        own.send(1, [] {});
        // A grandchild has nothing of the child's either.
        const std::set<int> known = known_descriptors();
        ForkedChild grandchild([&](Findings& seen) {
          expect_closed(seen, known);
          expect_abandoned(seen, own.a.qp.disconnect(), "disconnect");
        });
        found.expect(grandchild.findings().empty(), "grandchild: " + grandchild.findings());
        own.send(2, [] {});
        own.world.disconnect(own.a, own.b);
      });
      ASSERT_TRUE(all.world.wait([&] { return child.has_reported(); }));
      EXPECT_EQ(child.findings(), "");
    });
  }
}

TEST_P(Forked, ACallThatForksEndsInTheChild) {
  Everything all(config_of(GetParam()));
  const pid_t parent = getpid();
  int status = 0;
  pid_t child = -1;
  const bool came = all.world.wait([&] {
    child = fork();
    if (child != 0) return true;
    return false;
  });
  if (getpid() != parent) _exit(came ? 1 : 7);
  ASSERT_TRUE(came);
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
  all.send(1, [] {});
}

// Workers make descriptors, and other threads make calls, at the very moment of each fork.
TEST_P(Forked, ForksWhileOtherThreadsAreInsideCalls) {
  if (!GetParam().threaded) return;
  Everything all(config_of(GetParam()));
  // What nobody can tell from the application's, of DPDK's interrupt thread, is there, too.
  std::set<int> steady = open_descriptors();
  for (const int descriptor : known_descriptors()) steady.erase(descriptor);
  std::atomic<bool> stop{false};
  std::string failed;
  std::thread caller([&] {
    try {
      std::vector<std::byte> memory(64);
      while (!stop.load()) {
        Side side(all.world.left, 4);
        const MemoryRegion region = must(side.pd.register_memory(memory, kEverything));
        must(side.send_cq.fd());
        PortReservation port = must(all.world.right.reserve({{}, 7500}));
        must(all.world.right.listen(port));
        must(side.qp.connect({all.world.right.address(), 7500}));
        must(all.world.right.unlisten(7500));
      }
    } catch (const std::exception& error) {
      failed = error.what();
    }
  });
  for (int i = 0; i < kForks; ++i) {
    ForkedChild child([&](Findings& found) {
      expect_only(found, steady);
      expect_abandoned(found, all.world.left.alloc_pd(), "alloc_pd");
      expect_abandoned(found, all.a.qp.destroy(), "destroy");
    });
    EXPECT_EQ(child.findings(), "") << "fork " << i;
  }
  stop.store(true);
  caller.join();
  EXPECT_EQ(failed, "");
  all.send(1, [] {});
}

/// Forks a child that lives until `hold` is closed, says that it has come, and is killed.
void fork_and_die(Findings& found, int hold) {
  std::array<int, 2> ready{};
  found.expect(pipe2(ready.data(), O_CLOEXEC) == 0, "no pipe");
  if (fork() == 0) {
    char octet = 1;
    if (write(ready[1], &octet, 1) != 1) _exit(1);
    while (read(hold, &octet, 1) > 0) continue;
    _exit(0);
  }
  char octet = 0;
  found.expect(read(ready[0], &octet, 1) == 1, "no child");
  if (!found.text().empty()) return;
  // The test's process kills this one here, with all that it has open.
  if (write(ForkedChild::says(), "", 1) != 1) _exit(1);
  for (;;) pause();
}

/// The process that dies: connects to `peer` first.
void connect_and_fork(Findings& found, const IpAddress& peer, bool threaded, int hold) {
  World world(socket_config(threaded));
  Side side(world.left);
  must(side.qp.connect({peer, 7600}));
  found.expect(world.await<event::Established>(world.left).has_value(), "no connection");
  fork_and_die(found, hold);
}

class KilledParent : public ::testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(Modes, KilledParent, ::testing::Bool(),
                         [](const auto& mode) { return mode.param ? "Threaded" : "Inline"; });

TEST_P(KilledParent, ItsPeerLearnsOfItWhileAChildLives) {
  World world(socket_config(GetParam()));
  Side side(world.right);
  must(world.right.listen(7600));
  std::array<int, 2> hold{};   // the grandchild lives until the first is closed here
  std::array<int, 2> alive{};  // and holds the second
  ASSERT_EQ(pipe2(hold.data(), O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(alive.data(), O_CLOEXEC), 0);
  ForkedChild parent([&](Findings& found) {
    close(hold[1]);
    close(alive[0]);
    connect_and_fork(found, world.right.address(), GetParam(), hold[0]);
  });
  close(alive[1]);
  const auto asked = world.await<event::ConnectRequest>(world.right);
  ASSERT_TRUE(asked) << parent.findings();
  must(side.qp.accept(asked->request));
  ASSERT_TRUE(world.await<event::Established>(world.right));
  ASSERT_TRUE(world.wait([&] { return parent.has_reported(); }));
  ASSERT_EQ(parent.findings(), "");
  kill(parent.pid(), SIGKILL);
  const bool told = world.wait([&] {
    return world.take<event::PeerClosed>(world.right, side.qp.number()) ||
           world.take<event::Disconnected>(world.right, side.qp.number());
  });
  EXPECT_TRUE(told) << "the child of the dead process holds the connection";
  pollfd grandchild{alive[0], POLLIN, 0};
  EXPECT_EQ(poll(&grandchild, 1, 0), 0) << "it was to outlive its parent";
  close(hold[1]);
  EXPECT_EQ(poll(&grandchild, 1, ForkedChild::kPatience), 1) << "it was to end now";
  close(hold[0]);
  close(alive[0]);
}

TEST_P(KilledParent, ItsPortIsFreeWhileAChildLives) {
  World world(socket_config(GetParam()));
  const Endpoint local = must(world.left.reserve({world.left.address(), 0})).local();
  std::array<int, 2> hold{};
  std::array<int, 2> alive{};
  ASSERT_EQ(pipe2(hold.data(), O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(alive.data(), O_CLOEXEC), 0);
  ForkedChild parent([&](Findings& found) {
    close(hold[1]);
    close(alive[0]);
    World own(socket_config(GetParam()));
    const PortReservation port = must(own.left.reserve(local));
    fork_and_die(found, hold[0]);
  });
  close(alive[1]);
  ASSERT_EQ(parent.findings(), "");
  const auto refused = world.left.reserve(local);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::AlreadyExists);
  EXPECT_NE(refused.error().message.find("another program"), std::string::npos)
      << refused.error().message;
  kill(parent.pid(), SIGKILL);
  waitpid(parent.pid(), nullptr, 0);
  PortReservation port = must(world.left.reserve(local));
  EXPECT_EQ(must(world.left.listen(port)), local);
  pollfd grandchild{alive[0], POLLIN, 0};
  EXPECT_EQ(poll(&grandchild, 1, 0), 0) << "it was to outlive its parent";
  for (const int each : {hold[0], hold[1], alive[0]}) close(each);
}

/// As net_memif's client begins: whoever listens says hello.
int greeted_by(const std::string& path) {
  const int client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  EXPECT_EQ(connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  pollfd hello{client, POLLIN, 0};
  EXPECT_EQ(poll(&hello, 1, ForkedChild::kPatience), 1);
  return client;
}

// Its sockets come and go without a call of ours; the peer knows by them that this process lives.
TEST(ForkedMemif, ItsSocketsAreClosedInAChild) {
  const std::string path = testing::TempDir() + "rnic_fork_" + std::to_string(getpid());
  const auto context = must(Context::open(Config::from_text(R"(
[eal]
hugepages = "off"
[[device]]
name = "rnic0"
address = "10.0.0.1/24"
port = "net_memif0,role=server,id=0,socket-abstract=no,socket=)" +
                                                            path + "\"\n")));
  const int client = greeted_by(path);
  std::set<int> sockets = known_descriptors();
  std::erase_if(sockets, [](int one) { return !target(one).starts_with("socket:"); });
  EXPECT_EQ(sockets.size(), 2u) << "the one that listens, and the connection";
  ForkedChild child([&](Findings& found) { expect_closed(found, sockets); });
  EXPECT_EQ(child.findings(), "");
  close(client);
  unlink(path.c_str());
}

// A program that is started has no handler that could close anything.
TEST_P(Forked, AProgramThatIsStartedHasNoDescriptorOfADevice) {
  Everything all(config_of(GetParam()));
  must(all.a.send_cq.arm());
  must(all.world.left.event_fd());
  std::array<int, 2> out{};
  ASSERT_EQ(pipe2(out.data(), O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  const char* const arguments[] = {"ls", "-l", "/proc/self/fd", nullptr};
  pid_t child = -1;
  ASSERT_EQ(posix_spawnp(&child, "ls", &actions, nullptr, const_cast<char**>(arguments), environ),
            0);
  posix_spawn_file_actions_destroy(&actions);
  close(out[1]);
  std::string said;
  std::array<char, 4096> some{};
  for (ssize_t got = 0; (got = read(out[0], some.data(), some.size())) > 0;) {
    said.append(some.data(), static_cast<size_t>(got));
  }
  close(out[0]);
  waitpid(child, nullptr, 0);
  ASSERT_NE(said.find(" 0 -> "), std::string::npos) << said;
  // Of DPDK's own the epoll, the pipe and the timer of its interrupt thread cannot be known.
  for (const char* device : {"socket:", "eventfd", "memfd", "hugepage", "/dev/net/tun"}) {
    EXPECT_EQ(said.find(device), std::string::npos) << said;
  }
  if (!sockets()) return;
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);) {
    const size_t arrow = line.find(" -> ");
    if (arrow == std::string::npos || line.ends_with("/fd")) continue;  // its own way to look
    const int number = std::stoi(line.substr(line.rfind(' ', arrow - 1) + 1));
    EXPECT_TRUE(before_.contains(number)) << line;
  }
}

}  // namespace
}  // namespace rnic::test

// The network has to be there before the first thread, which would stay in the old one.
int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  static_cast<void>(rnic::test::lack_of_network());
  return RUN_ALL_TESTS();
}
