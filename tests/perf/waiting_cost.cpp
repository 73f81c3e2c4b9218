// What it costs to wait asleep: blocking round trips of 64 octets between two processes, over RDMA
// on the system's sockets and over plain TCP, in interleaved rounds; and the processor time of a
// connection on which nothing happens. A program waits in wait_until(), which looks for work before
// it sleeps where a core is free, or it sleeps on the context's descriptor or on that of a
// completion queue; one whose worker drives the devices on the latter alone.
//
//   waiting_cost [ROUNDS] [TRIPS] [BUSY] [IDLE_SECONDS]

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "rnic/verbs.hpp"
#include "support/at.hpp"

namespace {

using rnic::CompletionQueue;
using rnic::Config;
using rnic::Context;

constexpr uint32_t kSize = 64;  // octets of a message
constexpr auto kPatience = std::chrono::seconds(20);

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "waiting_cost: %s\n", what.c_str());
  std::_Exit(1);
}

template <typename T>
T must(rnic::Result<T> result) {
  if (!result) fail(result.error().message);
  return std::move(*result);
}
void must(const rnic::Status& status) {
  if (!status) fail(status.error().message);
}

uint16_t free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    fail("no free port");
  }
  close(fd);
  return ntohs(address.sin_port);
}

/// One end of an exchange: both kinds of program look alike from outside.
class Peer {
 public:
  virtual ~Peer() = default;
  virtual void send(const uint8_t* octets) = 0;
  /// Sleeps until a message has come.
  virtual void receive(uint8_t* octets) = 0;
};

/// Plain TCP, blocking, as a program is written that knows nothing of RDMA.
class TcpPeer final : public Peer {
 public:
  static std::unique_ptr<TcpPeer> accept(uint16_t port, const std::function<void()>& ready) {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    const int yes = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    const sockaddr_in address = loopback(port);
    if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        listen(listener, 1) != 0) {
      fail("cannot listen");
    }
    ready();
    const int fd = ::accept(listener, nullptr, nullptr);
    close(listener);
    return std::unique_ptr<TcpPeer>(new TcpPeer(fd));
  }
  static std::unique_ptr<TcpPeer> connect(uint16_t port) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in address = loopback(port);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      fail("cannot connect");
    }
    return std::unique_ptr<TcpPeer>(new TcpPeer(fd));
  }
  ~TcpPeer() override { close(fd_); }
  void send(const uint8_t* octets) override {
    if (::send(fd_, octets, kSize, MSG_NOSIGNAL) != kSize) std::_Exit(0);
  }
  void receive(uint8_t* octets) override {
    if (::recv(fd_, octets, kSize, MSG_WAITALL) != kSize) std::_Exit(0);  // the client has ended
  }

 private:
  explicit TcpPeer(int fd) : fd_(fd) {
    const int yes = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  }
  static sockaddr_in loopback(uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }

  int fd_;
};

enum class Kind { Tcp, Blocking, InlineContext, InlineQueue, Threaded, ThreadedBlocking };
constexpr std::array kKinds{Kind::Tcp,         Kind::Blocking, Kind::InlineContext,
                            Kind::InlineQueue, Kind::Threaded, Kind::ThreadedBlocking};
constexpr std::array kNames{"TCP, blocking",    "RDMA, blocking",     "RDMA, context's fd",
                            "RDMA, queue's fd", "threaded, queue's",  "threaded, blocking"};

/// RDMA over the system's sockets.
class RdmaPeer final : public Peer {
 public:
  explicit RdmaPeer(Kind kind)
      : kind_(kind),
        context_(must(Context::open(
            config(kind == Kind::Threaded || kind == Kind::ThreadedBlocking)))),
        device_(must(context_.device("rnic0"))),
        pd_(must(device_.alloc_pd())),
        sends_(must(device_.create_cq(128))),
        receives_(must(device_.create_cq(128))),
        qp_(must(pd_.create_qp(sends_, receives_))),
        memory_(2 * kSize),
        region_(must(pd_.register_memory(memory_, rnic::Access::LocalWrite))) {
    expect_one();
  }
  void accept(uint16_t port, const std::function<void()>& ready) {
    must(device_.listen(rnic::at("127.0.0.1", port)));
    ready();
    const auto asked = await<rnic::event::ConnectRequest>();
    must(qp_.accept(asked.request));
    await<rnic::event::Established>();
  }
  void connect(uint16_t port) {
    must(qp_.connect(rnic::at("127.0.0.1", port)));
    await<rnic::event::Established>();
  }
  void send(const uint8_t* octets) override {
    std::memcpy(memory_.data(), octets, kSize);
    rnic::SendRequest request;
    request.sges = {region_.sge(0, kSize)};
    request.signaled = ++sent_ % 32 == 0;
    must(qp_.post_send(request));
    rnic::Completion done;
    while (sends_.poll({&done, 1}) == 1) check(done);
  }
  void receive(uint8_t* octets) override {
    rnic::Completion done;
    switch (kind_) {
      case Kind::Tcp: break;
      case Kind::Blocking:
      case Kind::ThreadedBlocking:
        if (!context_.wait_until([&] { return receives_.poll({&done, 1}) == 1; }, rnic::kForever)) {
          fail("the wait has ended");
        }
        break;
      case Kind::InlineContext: sleep_on_context(done); break;
      case Kind::InlineQueue:
      case Kind::Threaded: sleep_on_queue(done); break;
    }
    check(done);
    std::memcpy(octets, memory_.data() + kSize, kSize);
    expect_one();
  }

 private:
  void sleep_on_context(rnic::Completion& done) {
    while (receives_.poll({&done, 1}) == 0) {
      const int fd = must(context_.fd());
      if (context_.arm()) sleep_on(fd);
      context_.poll();
      // The context's descriptor tells of events, too, until they are taken.
      while (device_.poll_event()) {
      }
    }
  }
  void sleep_on_queue(rnic::Completion& done) {
    while (receives_.poll({&done, 1}) == 0) {
      must(receives_.arm());
      if (receives_.poll({&done, 1}) == 1) break;
      sleep_on(must(receives_.fd()));
      context_.poll();
    }
  }
  static void sleep_on(int fd) {
    pollfd descriptor{fd, POLLIN, 0};
    ::poll(&descriptor, 1, -1);
  }
  static Config config(bool threaded) {
    Config config = Config::from_text("[[device]]\nname = \"rnic0\"\nport = \"socket\"\n");
    if (threaded) config.set("worker.mode=threaded");
    return config;
  }
  template <typename Kind>
  Kind await() {
    std::optional<rnic::Event> event;
    if (!context_.wait_until(
            [&] {
              event = device_.poll_event();
              return event && std::holds_alternative<Kind>(*event);
            },
            kPatience)) {
      fail("the connection was not made");
    }
    return std::get<Kind>(*event);
  }
  void expect_one() {
    rnic::ReceiveRequest request;
    request.sges = {region_.sge(kSize, kSize)};
    must(qp_.post_receive(request));
  }
  static void check(const rnic::Completion& done) {
    if (done.status != rnic::CompletionStatus::Success) std::_Exit(0);  // the client has ended
  }

  const Kind kind_;
  Context context_;
  rnic::Device device_;
  rnic::ProtectionDomain pd_;
  CompletionQueue sends_;
  CompletionQueue receives_;
  rnic::QueuePair qp_;
  std::vector<std::byte> memory_;
  rnic::MemoryRegion region_;
  uint64_t sent_ = 0;
};

/// A process of its own that does `work` and ends with this one.
pid_t spawn(const std::function<void()>& work) {
  const pid_t child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  work();
  std::_Exit(0);
}

void stop(pid_t child) {
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

std::unique_ptr<Peer> serve(Kind kind, uint16_t port, const std::function<void()>& ready) {
  if (kind == Kind::Tcp) return TcpPeer::accept(port, ready);
  auto peer = std::make_unique<RdmaPeer>(kind);
  peer->accept(port, ready);
  return peer;
}

std::unique_ptr<Peer> reach(Kind kind, uint16_t port) {
  if (kind == Kind::Tcp) return TcpPeer::connect(port);
  auto peer = std::make_unique<RdmaPeer>(kind);
  peer->connect(port);
  return peer;
}

/// Round-trip times in ns, sorted, of `trips` messages that an echo of another process returns.
/// Client and server are processes of their own: neither knows the other's kernel objects.
std::vector<double> round_trips(Kind kind, uint32_t trips) {
  const uint16_t port = free_port();
  std::array<int, 2> told{};
  std::array<int, 2> results{};
  if (pipe(told.data()) != 0 || pipe(results.data()) != 0) fail("no pipe");
  const pid_t server = spawn([&] {
    auto peer = serve(kind, port, [&] {
      if (write(told[1], "r", 1) != 1) fail("the client is gone");
    });
    std::array<uint8_t, kSize> message{};
    for (;;) {
      peer->receive(message.data());
      peer->send(message.data());
    }
  });
  const pid_t client = spawn([&] {
    close(told[1]);  // the server's alone: its end is seen
    char ready = 0;
    if (read(told[0], &ready, 1) != 1) fail("the server is gone");
    auto peer = reach(kind, port);
    std::vector<double> times;
    std::array<uint8_t, kSize> message{};
    std::array<uint8_t, kSize> answer{};
    for (uint32_t i = 0; i < trips + trips / 10; ++i) {
      std::memcpy(message.data(), &i, sizeof i);
      const auto begun = std::chrono::steady_clock::now();
      peer->send(message.data());
      peer->receive(answer.data());
      const std::chrono::duration<double, std::nano> took =
          std::chrono::steady_clock::now() - begun;
      if (answer != message) fail("another message came back");
      if (i >= trips / 10) times.push_back(took.count());  // those before warm up
    }
    const auto octets = static_cast<ssize_t>(times.size() * sizeof times[0]);
    ssize_t written = 0;
    while (written < octets) {
      const ssize_t n = write(results[1], reinterpret_cast<char*>(times.data()) + written,
                              static_cast<size_t>(octets - written));
      if (n <= 0) fail("nobody reads the times");
      written += n;
    }
  });
  for (const int fd : {told[1], results[1]}) close(fd);
  std::vector<double> times(trips);
  size_t got = 0;
  while (got < trips * sizeof(double)) {
    const ssize_t n =
        read(results[0], reinterpret_cast<char*>(times.data()) + got, trips * sizeof(double) - got);
    if (n <= 0) fail(std::string("no times of ") + kNames[static_cast<size_t>(kind)]);
    got += static_cast<size_t>(n);
  }
  waitpid(client, nullptr, 0);
  stop(server);
  for (const int fd : {told[0], results[0]}) close(fd);
  std::sort(times.begin(), times.end());
  return times;
}

/// Share of a core that a server with one silent connection takes, in percent.
double idle_share(Kind kind, uint32_t seconds) {
  const uint16_t port = free_port();
  std::array<int, 2> told{};
  if (pipe(told.data()) != 0) fail("no pipe");
  const pid_t server = spawn([&] {
    auto peer = serve(kind, port, [&] {
      if (write(told[1], "r", 1) != 1) fail("the client is gone");
    });
    std::array<uint8_t, kSize> message{};
    peer->receive(message.data());
  });
  const pid_t client = spawn([&] {
    close(told[1]);  // the server's alone: its end is seen
    char ready = 0;
    if (read(told[0], &ready, 1) != 1) fail("the server is gone");
    auto peer = reach(kind, port);
    pause();
  });
  for (const int fd : told) close(fd);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  clockid_t clock{};
  if (clock_getcpuclockid(server, &clock) != 0) fail("the server is gone");
  const auto used = [&] {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
  };
  const double before = used();
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  const double share = (used() - before) / seconds * 100;
  stop(client);
  stop(server);
  return share;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

uint32_t argument(int argc, char** argv, int index, uint32_t otherwise) {
  if (argc <= index) return otherwise;
  char* end = nullptr;
  const unsigned long value = std::strtoul(argv[index], &end, 10);
  if (*argv[index] == 0 || *end != 0 || value > 10'000'000) {
    std::fprintf(stderr, "usage: waiting_cost [ROUNDS] [TRIPS] [BUSY] [IDLE_SECONDS]\n");
    std::_Exit(2);
  }
  return static_cast<uint32_t>(value);
}

}  // namespace

int main(int argc, char** argv) {
  const uint32_t rounds = std::max(1u, argument(argc, argv, 1, 7));
  const uint32_t trips = std::max(100u, argument(argc, argv, 2, 2000));
  const uint32_t busy = argument(argc, argv, 3, 0);
  const uint32_t idle = argument(argc, argv, 4, 10);
  std::vector<pid_t> others;
  for (uint32_t i = 0; i < busy; ++i) {
    others.push_back(spawn([] {
      for (std::atomic<uint64_t> turn = 0;;) turn.fetch_add(1, std::memory_order_relaxed);
    }));
  }
  std::printf(
      "%u round trips of %u octets between two processes, asleep while waiting (\"blocking\": in "
      "wait_until(), which looks for work before where a core is free), in each of %u interleaved "
      "rounds, beside %u busy processes; us\n\n",
      trips, kSize, rounds, busy);
  std::array<std::vector<double>, kKinds.size()> medians;
  std::array<std::vector<double>, kKinds.size()> slow;
  for (uint32_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < kKinds.size(); ++i) {
      const std::vector<double> times = round_trips(kKinds[i], trips);
      medians[i].push_back(times[times.size() / 2] / 1000);
      slow[i].push_back(times[times.size() * 99 / 100] / 1000);
    }
  }
  for (const pid_t other : others) stop(other);
  std::printf("%-18s %8s %17s %6s   %8s %17s %6s\n", "", "median", "(least to most)", "ratio",
              "p99", "(least to most)", "ratio");
  for (size_t i = 0; i < kKinds.size(); ++i) {
    const auto [least, most] = std::minmax_element(medians[i].begin(), medians[i].end());
    const auto [least99, most99] = std::minmax_element(slow[i].begin(), slow[i].end());
    std::printf("%-18s %8.1f %8.1f %8.1f %6.2f   %8.1f %8.1f %8.1f %6.2f\n", kNames[i],
                median(medians[i]), *least, *most, median(medians[i]) / median(medians[0]),
                median(slow[i]), *least99, *most99, median(slow[i]) / median(slow[0]));
  }
  if (idle == 0) return 0;
  std::printf("\na server whose connection is silent for %u s, share of a core:\n", idle);
  for (size_t i = 0; i < kKinds.size(); ++i) {
    std::printf("%-18s %8.3f %%\n", kNames[i], idle_share(kKinds[i], idle));
  }
  return 0;
}
