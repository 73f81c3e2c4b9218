// Ports that are reserved on sockets of the system: no other socket has them, in this process or in
// another one, and none has to wait for them.

#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <barrier>
#include <csignal>
#include <fstream>
#include <set>
#include <thread>

#include "../verbs/forked_child.hpp"
#include "on_kernel.hpp"

namespace rnic::socket {
namespace {

using llp::PortClaim;
using ::rnic::test::Findings;
using ::rnic::test::ForkedChild;

const IpAddress kLoopback = IpAddress::v4(0x7f000001);
const IpAddress kSecond = IpAddress::v4(0x7f000002);
const IpAddress kAnyV4 = IpAddress::v4(0);
const IpAddress kLoopback6{0, 1};

/// The error with which the system refuses another program's bind(); 0: it does not.
int bind_error(const Endpoint& local, bool shares) {
  const SystemAddress address(local);
  const Descriptor socket(own_system().socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  set_option(own_system(), socket.get(), SOL_SOCKET, SO_REUSEADDR, shares ? 1 : 0);
  if (local.address == IpAddress{}) {
    set_option(own_system(), socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  }
  return bind(socket.get(), address.get(), address.size) == 0 ? 0 : errno;
}
/// Nobody else can bind the port at one of these addresses, however that is tried.
void expect_exclusive(const std::vector<IpAddress>& addresses, uint16_t port) {
  for (const IpAddress& address : addresses) {
    for (const bool shares : {false, true}) {
      EXPECT_EQ(bind_error({address, port}, shares), EADDRINUSE)
          << to_string(address) << (shares ? " with" : " without") << " SO_REUSEADDR";
    }
  }
}

std::unique_ptr<Transport> open_transport(const Config& config = {},
                                          System& system = own_system()) {
  return std::move(*Transport::open(config, base::Now{std::chrono::seconds(1)}, system));
}

class Reserving : public ::testing::Test {
 protected:
  Reserving() { base::set_log_level(base::LogLevel::Off); }

  void turn() {
    now_ += std::chrono::microseconds(1);
    for (Transport* each : {left_.get(), right_.get()}) {
      each->receive(now_, nothing_);
      if (each->next_deadline() <= now_) each->on_timers(now_);
      each->output(now_);
    }
  }
  template <typename Done>
  bool run_until(Done&& done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done() && std::chrono::steady_clock::now() < end) turn();
    return done();
  }
  /// The right one connects to that endpoint of the left one, which listens.
  bool is_reached(const Endpoint& there, RecordUser& to, RecordUser& from) {
    acceptor_.next = {&to};
    const auto stream = right_->connect({}, there, from, now_);
    if (!stream) return false;
    from.stream = *stream;
    run_until([&] { return from.how_ended || (from.is_established && to.is_established); });
    return from.is_established;
  }
  /// Connects from a reserved port of the left one to a listener of the right one.
  Result<llp::Stream*> connect_from(const Endpoint& reserved, RecordUser& from, RecordUser& to,
                                    const IpAddress& peer = kLoopback) {
    const auto there = right_->listen({peer, 0}, acceptor_);
    if (!there) return tl::unexpected(there.error());
    acceptor_.next = {&to};
    auto stream = left_->connect(reserved, *there, from, now_, PortClaim::Reserved);
    if (stream) from.stream = *stream;
    EXPECT_TRUE(!stream || run_until([&] { return from.is_established && to.is_established; }));
    return stream;
  }
  /// Both ends close, the first one first: it is the one in TIME-WAIT.
  void close(RecordUser& first, RecordUser& second) {
    first.stream->close();
    ASSERT_TRUE(run_until([&] { return second.peer_has_finished; }));
    second.stream->close();
    ASSERT_TRUE(run_until([&] { return first.how_ended && second.how_ended; }));
  }
  /// A port at which connections of a former owner are in TIME-WAIT.
  Endpoint left_behind() {
    const Endpoint local = *left_->reserve({kLoopback, 0});
    EXPECT_TRUE(left_->listen(local, acceptor_, PortClaim::Reserved).has_value());
    RecordUser here{1, 2}, there{2, 1};
    EXPECT_TRUE(is_reached(local, here, there));
    close(here, there);
    EXPECT_TRUE(left_->unlisten(local).has_value());
    EXPECT_EQ(bind_error(local, false), EADDRINUSE) << "nothing is in TIME-WAIT";
    return local;
  }

  base::Now now_{std::chrono::seconds(1)};
  Nothing nothing_;
  UserAcceptor acceptor_;
  std::unique_ptr<Transport> left_ = open_transport();
  std::unique_ptr<Transport> right_ = open_transport();
};

TEST_F(Reserving, NobodyElseHasThePort) {
  const Endpoint local = *left_->reserve({kLoopback, 0});
  ASSERT_NE(local.port, 0);
  expect_exclusive({kLoopback, kAnyV4}, local.port);
  EXPECT_EQ(bind_error({kSecond, local.port}, false), 0) << "another address";
  RecordUser near{1, 2}, far{2, 1};
  const std::string mine = to_string(local) + " is reserved for another use; choose another port";
  EXPECT_EQ(left_->listen(local, acceptor_).error().message, "listen: " + mine);
  EXPECT_EQ(left_->reserve({{}, local.port}).error().message,
            "reserve: [::]:" + std::to_string(local.port) +
                " is reserved for another use; choose another port");
  EXPECT_EQ(left_->connect(local, {kSecond, 1}, near, now_).error().message, "connect: " + mine);
  for (const auto& error :
       {right_->listen(local, acceptor_).error(), right_->reserve(local).error(),
        right_->connect(local, {kSecond, 1}, near, now_).error()}) {
    EXPECT_EQ(error.code, ErrorCode::AlreadyExists);
    EXPECT_NE(error.message.find("another program or device has it"), std::string::npos)
        << error.message;
  }
  EXPECT_FALSE(is_reached(local, near, far));
  EXPECT_EQ(far.how_ended, StreamEnd::Refused);
  ASSERT_TRUE(left_->unreserve(local).has_value());
  EXPECT_EQ(bind_error(local, false), 0);
  EXPECT_TRUE(right_->listen(local, acceptor_).has_value());
  EXPECT_EQ(left_->unreserve(local).error().code, ErrorCode::NotFound);
  EXPECT_EQ(left_->reserve(local).error().code, ErrorCode::AlreadyExists);
  EXPECT_EQ(right_->reserve(local).error().message,
            "reserve: " + to_string(local) + " is listened on; choose another port");
}

TEST_F(Reserving, ItsHolderListens) {
  const Endpoint local = *left_->reserve({kLoopback, 0});
  ASSERT_EQ(*left_->listen(local, acceptor_, PortClaim::Reserved), local);
  expect_exclusive({kLoopback, kAnyV4}, local.port);
  RecordUser near{1, 2}, far{2, 1};
  ASSERT_TRUE(is_reached(local, near, far));
  EXPECT_EQ(near.stream->local(), local);
  EXPECT_EQ(left_->unreserve(local).error().code, ErrorCode::NotFound);
  EXPECT_EQ(left_->listen(local, acceptor_, PortClaim::Reserved).error().message,
            "listen: nobody has reserved " + to_string(local));
  ASSERT_TRUE(left_->unlisten(local).has_value());
  EXPECT_TRUE(right_->reserve(local).has_value()) << "a connection that lives is not in the way";
  EXPECT_FALSE(far.how_ended || near.how_ended);
}

// What a former owner has left neither keeps the port from being reserved, nor lets others in.
TEST_F(Reserving, TimeWaitIsNotInTheWay) {
  const Endpoint local = left_behind();
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(*left_->reserve(local), local);
    expect_exclusive({kLoopback, kAnyV4}, local.port);
    RecordUser near{1, 2}, far{2, 1};
    EXPECT_FALSE(is_reached(local, near, far));
    EXPECT_EQ(far.how_ended, StreamEnd::Refused);
    if (i == 0) {
      ASSERT_TRUE(left_->unreserve(local).has_value());
      continue;
    }
    RecordUser here{1, 2}, there{2, 1};
    if (i == 1) {
      ASSERT_TRUE(left_->listen(local, acceptor_, PortClaim::Reserved).has_value());
      ASSERT_TRUE(is_reached(local, here, there));
      ASSERT_TRUE(left_->unlisten(local).has_value());
    } else {
      ASSERT_TRUE(connect_from(local, here, there).has_value());
      EXPECT_EQ(there.stream->remote(), local);
    }
    close(here, there);
  }
}

// Two that ask at the same moment, where both could bind for a moment: one has the port, and can
// use it.
TEST_F(Reserving, OfTwoAtOnceOneHasIt) {
  const Endpoint local = left_behind();
  const std::array<Transport*, 2> both{left_.get(), right_.get()};
  std::array<bool, 2> has{};
  std::barrier together(3);
  std::atomic<bool> over = false;
  const auto ask = [&](size_t i) {
    for (;;) {
      together.arrive_and_wait();
      if (over) return;
      has[i] = both[i]->reserve(local).has_value();
      together.arrive_and_wait();
    }
  };
  std::thread first(ask, 0), second(ask, 1);
  int contested = 0;
  for (int round = 0; round < 500; ++round) {
    together.arrive_and_wait();
    together.arrive_and_wait();
    if (has[0] && has[1]) ++contested;
    for (size_t i = 0; i < 2; ++i) {
      if (!has[i]) continue;
      EXPECT_TRUE(both[i]->listen(local, acceptor_, PortClaim::Reserved).has_value());
      EXPECT_TRUE(both[i]->unlisten(local).has_value());
    }
  }
  over = true;
  together.arrive_and_wait();
  first.join();
  second.join();
  EXPECT_EQ(contested, 0) << "rounds in which both had it";
}

TEST_F(Reserving, ItsHolderConnectsFromThere) {
  const Endpoint local = *left_->reserve({kLoopback, 0});
  RecordUser near{1, 2}, far{2, 1};
  ASSERT_TRUE(connect_from(local, near, far).has_value());
  EXPECT_EQ(near.stream->local(), local);
  EXPECT_EQ(far.stream->remote(), local);
  EXPECT_EQ(left_->unreserve(local).error().code, ErrorCode::NotFound);
  close(near, far);
  EXPECT_TRUE(left_->reserve(local).has_value()) << "TIME-WAIT is not in the way";
}

TEST_F(Reserving, ThereAreNoTwoConnectionsOfTheSameEnds) {
  const Endpoint local = *left_->reserve({kLoopback, 0});
  RecordUser near{1, 2}, far{2, 1}, again{1, 2};
  ASSERT_TRUE(connect_from(local, near, far).has_value());
  const Endpoint there = far.stream->local();
  ASSERT_TRUE(left_->reserve(local).has_value());
  const auto second = left_->connect(local, there, again, now_, PortClaim::Reserved);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::AlreadyExists) << second.error().message;
  EXPECT_EQ(left_->reserve(local).error().code, ErrorCode::AlreadyExists) << "it is still there";
}

TEST_F(Reserving, NobodyListensThere) {
  const Endpoint local = *left_->reserve({kLoopback, 0});
  const Endpoint nobody = *right_->reserve({kLoopback, 0});
  RecordUser near{1, 2};
  ASSERT_TRUE(left_->connect(local, nobody, near, now_, PortClaim::Reserved).has_value());
  ASSERT_TRUE(run_until([&] { return near.how_ended.has_value(); }));
  EXPECT_EQ(near.how_ended, StreamEnd::Refused);
  EXPECT_EQ(bind_error(local, false), 0) << "the port was the connection's";
}

// `::` is one socket for both versions of IP.
TEST_F(Reserving, AllAddressesOfBothVersions) {
  const Endpoint local = *left_->reserve({{}, 0});
  expect_exclusive({kLoopback, kAnyV4, IpAddress{}}, local.port);
  RecordUser near{1, 2}, far{2, 1};
  ASSERT_TRUE(connect_from(local, near, far).has_value());
  EXPECT_EQ(near.stream->local(), (Endpoint{kLoopback, local.port}));
  EXPECT_EQ(far.stream->remote(), (Endpoint{kLoopback, local.port}));
  near.queue(1000);
  EXPECT_TRUE(run_until([&] { return far.ordered_to == 1000; }));
  const Endpoint next = *left_->reserve({{}, 0});
  ASSERT_TRUE(left_->listen(next, acceptor_, PortClaim::Reserved).has_value());
  for (const IpAddress& address : {kLoopback, kLoopback6}) {
    RecordUser here{1, 2}, there{2, 1};
    EXPECT_TRUE(is_reached({address, next.port}, here, there)) << to_string(address);
  }
}

TEST_F(Reserving, TheAddressesOfTheDevice) {
  Config config;
  config.addresses = {kLoopback, kSecond};
  left_ = open_transport(config);
  Endpoint local = *left_->reserve({{}, 0});
  expect_exclusive(config.addresses, local.port);
  EXPECT_EQ(bind_error({IpAddress::v4(0x7f000003), local.port}, false), 0) << "nobody's";
  RecordUser near{1, 2};
  const auto other = left_->connect(local, {kLoopback6, 1}, near, now_, PortClaim::Reserved);
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().message, "connect: " + to_string(local) +
                                       " is not reserved at an address that can speak to [::1]:1");
  ASSERT_TRUE(left_->listen(local, acceptor_, PortClaim::Reserved).has_value());
  for (const IpAddress& address : config.addresses) {
    RecordUser here{1, 2}, there{2, 1};
    EXPECT_TRUE(is_reached({address, local.port}, here, there)) << to_string(address);
  }
  local = *left_->reserve({{}, 0});
  RecordUser far{2, 1};
  ASSERT_TRUE(connect_from(local, near, far).has_value());
  EXPECT_EQ(far.stream->remote(), (Endpoint{kLoopback, local.port}));
  EXPECT_EQ(bind_error({kSecond, local.port}, false), 0) << "no address of it is left over";
}

TEST_F(Reserving, AForeignAddressIsRefused) {
  const auto refused = left_->reserve({IpAddress::v4(0xc0000201), 0});  // 192.0.2.1
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::InvalidArgument);
  EXPECT_TRUE(refused.error().message.starts_with("reserve 192.0.2.1:0: "))
      << refused.error().message;
}

TEST_F(Reserving, ItTakesTheListenersPlace) {
  Config config;
  config.max_listeners = 2;
  left_ = open_transport(config);
  const Endpoint local = *left_->reserve({kLoopback, 0});
  const Endpoint other = *left_->listen({kLoopback, 0}, acceptor_);
  EXPECT_EQ(left_->reserve({kLoopback, 0}).error().message,
            "no listener left: raise tcp.max_listeners (now 2)");
  EXPECT_FALSE(left_->listen({kLoopback, 0}, acceptor_).has_value());
  EXPECT_TRUE(left_->listen(local, acceptor_, PortClaim::Reserved).has_value());
  ASSERT_TRUE(left_->unlisten(other).has_value());
  EXPECT_TRUE(left_->reserve({kLoopback, 0}).has_value());
}

// A call that fails has changed nothing: nobody can connect, nobody else has the port, and the next
// call may succeed.
class RefusedUse : public Reserving {
 protected:
  RefusedUse() { left_ = open_transport(two_addresses(), system_); }
  ~RefusedUse() override { left_.reset(); }
  static Config two_addresses() {
    Config config;
    config.addresses = {kLoopback, kSecond};
    return config;
  }
  void expect_reserved(const Endpoint& local) {
    expect_exclusive(two_addresses().addresses, local.port);
    for (const IpAddress& address : two_addresses().addresses) {
      RecordUser near{1, 2}, far{2, 1};
      EXPECT_FALSE(is_reached({address, local.port}, near, far));
      EXPECT_EQ(far.how_ended, StreamEnd::Refused);
    }
  }

  Refusing system_{own_system()};
};

TEST_F(RefusedUse, ByAListen) {
  const Endpoint local = *left_->reserve({{}, 0});
  system_.listen_error = ENOBUFS;
  EXPECT_FALSE(left_->listen(local, acceptor_, PortClaim::Reserved).has_value());
  expect_reserved(local);
  system_.listen_error = 0;
  system_.watch_error = ENOSPC;
  system_.good_watches = 1;
  EXPECT_FALSE(left_->listen(local, acceptor_, PortClaim::Reserved).has_value());
  system_.watch_error = 0;
  expect_reserved(local);
  ASSERT_TRUE(left_->listen(local, acceptor_, PortClaim::Reserved).has_value());
  RecordUser near{1, 2}, far{2, 1};
  EXPECT_TRUE(is_reached({kSecond, local.port}, near, far));
}

TEST_F(RefusedUse, ByAConnect) {
  const Endpoint local = *left_->reserve({{}, 0});
  RecordUser near{1, 2}, far{2, 1};
  system_.connect_error = ENETUNREACH;
  EXPECT_EQ(connect_from(local, near, far).error().code, ErrorCode::Unreachable);
  system_.connect_error = 0;
  expect_reserved(local);
  // The system itself says no to an address that no peer has, and to a pair that there is already.
  const Endpoint reserved[] = {local, *left_->reserve({{}, 0})};
  EXPECT_FALSE(
      left_->connect(local, {IpAddress::v4(0xffffffff), 1}, near, now_, PortClaim::Reserved));
  expect_reserved(local);
  RecordUser unwanted{2, 1};
  system_.has_memory = false;
  EXPECT_EQ(connect_from(local, near, unwanted).error().code, ErrorCode::ResourceExhausted);
  system_.has_memory = true;
  ASSERT_TRUE(run_until([&] { return unwanted.how_ended.has_value(); })) << "it is reset";
  expect_reserved(local);
  for (const Endpoint& each : reserved) {
    RecordUser here{1, 2}, there{2, 1};
    ASSERT_TRUE(connect_from(each, here, there).has_value());
    EXPECT_EQ(there.stream->remote(), (Endpoint{kLoopback, each.port}));
  }
}

class Delayed : public Reserving {
 protected:
  Delayed() { left_ = open_transport({}, system_); }
  ~Delayed() override { left_.reset(); }
  /// Carries `call` out, and has the right one ask for the port behind each of its steps, one at a
  /// time. \return how often it gets the port so although the call succeeds
  template <typename Call>
  int lets_in(const Endpoint& local, Call&& call) {
    int both = 0;
    for (int step = 0, steps = 1; step < steps; ++step) {
      bool right_has = false;
      steps = 0;
      system_.behind = [&](const char*) {
        if (steps++ == step) right_has = right_->reserve(local).has_value();
      };
      const bool left_has = call();
      system_.behind = nullptr;
      if (left_has && right_has) ++both;
      EXPECT_TRUE(left_has || right_has) << "step " << step;
      if (right_has) static_cast<void>(right_->unreserve(local));
      static_cast<void>(left_->unlisten(local));
      static_cast<void>(left_->unreserve(local));
    }
    return both;
  }

  Refusing system_{own_system()};
};

// A peer that connects before the listener has SO_REUSEADDR leaves nothing that is in the way.
TEST_F(Delayed, TheFirstConnectionOfAListener) {
  const Endpoint local = *left_->reserve({kLoopback, 0});
  RecordUser near{1, 2}, far{2, 1};
  acceptor_.next = {&near};
  system_.behind = [&](const char* call) {
    if (std::string_view(call) != "listen") return;
    far.stream = *right_->connect({}, local, far, now_);
    system_.behind = nullptr;
  };
  ASSERT_TRUE(left_->listen(local, acceptor_, PortClaim::Reserved).has_value());
  ASSERT_TRUE(run_until([&] { return near.is_established && far.is_established; }));
  close(near, far);
  ASSERT_TRUE(left_->unlisten(local).has_value());
  EXPECT_EQ(bind_error(local, false), EADDRINUSE) << "nothing is in TIME-WAIT";
  EXPECT_TRUE(left_->reserve(local).has_value());
}

TEST_F(Delayed, BetweenAnyTwoStepsNobodyElseGetsThePort) {
  const auto reserve = [&](const Endpoint& local) { return left_->reserve(local).has_value(); };
  const auto listen = [&](const Endpoint& local) {
    return left_->listen(local, acceptor_, PortClaim::Reserved).has_value();
  };
  const Endpoint fresh = *left_->reserve({kLoopback, 0});
  ASSERT_TRUE(left_->unreserve(fresh).has_value());
  for (const Endpoint& local : {fresh, left_behind()}) {
    EXPECT_EQ(lets_in(local, [&] { return reserve(local); }), 0);
    EXPECT_EQ(lets_in(local, [&] { return reserve(local) && listen(local); }), 0);
  }
  // Where nothing is left of a former owner, who has reserved the port listens, whatever others do.
  for (int step = 0; step < 4; ++step) {
    ASSERT_TRUE(reserve(fresh));
    int steps = 0;
    bool stolen = false;
    system_.behind = [&](const char*) {
      if (steps++ == step) stolen = right_->reserve(fresh).has_value();
    };
    EXPECT_TRUE(listen(fresh) && !stolen) << "step " << step;
    system_.behind = nullptr;
    ASSERT_TRUE(left_->unlisten(fresh).has_value());
  }
}

// A process that is being forked has the descriptors for a moment.
TEST_F(Delayed, ACopyOfTheDescriptorKeepsNoPort) {
  const Endpoint local = *left_->reserve({kLoopback, 0});
  const int copy = dup(system_.opened);
  ASSERT_TRUE(left_->unreserve(local).has_value());
  EXPECT_TRUE(right_->reserve(local).has_value());
  ::close(copy);
}

/// A process that reserves a port, uses it as it is told, and says so.
struct Owner {
  enum class Use : uint8_t { None, Listener, Connection };
  static void run(Findings& found, const Endpoint& local, Use use, const Endpoint& peer) {
    const auto transport = open_transport();
    const auto reserved = transport->reserve(local);
    found.expect(reserved.has_value(), "it does not get the port");
    if (!reserved) return;
    UserAcceptor acceptor;
    RecordUser user{1, 2}, more{3, 4};
    Nothing nothing;
    base::Now now{std::chrono::seconds(1)};
    acceptor.next = {&more};
    if (use == Use::Listener) {
      found.expect(transport->listen(local, acceptor, PortClaim::Reserved).has_value(), "listen");
    }
    if (use == Use::Connection) {
      found.expect(transport->connect(local, peer, user, now, PortClaim::Reserved).has_value(),
                   "connect");
    }
    if (!found.text().empty() || write(ForkedChild::says(), "", 1) != 1) return;
    for (pollfd none{-1, 0, 0};;) {
      transport->receive(now += std::chrono::microseconds(1), nothing);
      transport->output(now);
      poll(&none, 1, 1);
    }
  }
};

// The owner is killed, with connections to its port: all that is left of it is the system's.
TEST_F(Reserving, WhenItsOwnerIsKilledThePortIsFree) {
  using Use = Owner::Use;
  const Endpoint local = *left_->reserve({kLoopback, 0});
  ASSERT_TRUE(left_->unreserve(local).has_value());
  const Endpoint peer = *right_->listen({kLoopback, 0}, acceptor_);
  for (const Use use : {Use::None, Use::Listener, Use::Connection, Use::None}) {
    RecordUser near{1, 2}, far{2, 1};
    acceptor_.next = {&near};
    ForkedChild owner([&](Findings& found) { Owner::run(found, local, use, peer); });
    ASSERT_EQ(owner.findings(), "");
    if (use != Use::Connection) {
      EXPECT_EQ(left_->reserve(local).error().code, ErrorCode::AlreadyExists);
      expect_exclusive({kLoopback, kAnyV4}, local.port);
    }
    if (use == Use::Listener) {
      far.stream = *right_->connect({}, local, far, now_);
      ASSERT_TRUE(run_until([&] { return far.is_established; }));
    }
    if (use == Use::Connection) {
      ASSERT_TRUE(run_until([&] { return near.is_established; }));
    }
    kill(owner.pid(), SIGKILL);
    waitpid(owner.pid(), nullptr, 0);
    ASSERT_TRUE(left_->reserve(local).has_value()) << "the port of a process that is gone";
    expect_exclusive({kLoopback, kAnyV4}, local.port);
    ASSERT_TRUE(left_->unreserve(local).has_value());
    for (RecordUser* each : {&near, &far}) {
      if (each->is_established && !each->how_ended) each->stream->abort();
    }
    run_until([&] { return right_->quiescent(); });
  }
}

/// A network in which the system has four ports for connects. False: this machine allows none.
bool enter_small_network() {
  if (geteuid() != 0 || unshare(CLONE_NEWNET) != 0) return false;
  const Descriptor any(own_system().socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq lo{};
  std::strcpy(lo.ifr_name, "lo");
  lo.ifr_flags = IFF_UP;
  std::ofstream range("/proc/sys/net/ipv4/ip_local_port_range");
  range << "40000 40003" << std::flush;
  return ioctl(any.get(), SIOCSIFFLAGS, &lo) == 0 && range.good();
}

// Once all others are in use a connect fails, rather than that it gets the reserved one.
TEST(ReservedPort, TheSystemGivesItToNoConnect) {
  ForkedChild child([](Findings& found) {
    if (!enter_small_network()) return found.expect(false, "skipped");
    const auto left = open_transport();
    const auto right = open_transport();
    UserAcceptor acceptor;
    const Endpoint peer = *right->listen({kLoopback, 50'000}, acceptor);
    const Endpoint reserved = *left->reserve({kLoopback, 0});
    found.expect(reserved.port >= 40'000 && reserved.port <= 40'003, "another port is reserved");
    std::vector<std::unique_ptr<RecordUser>> users;
    std::set<uint16_t> given;
    const auto connect = [&]() -> Result<uint16_t> {
      users.push_back(std::make_unique<RecordUser>(1, 2));
      const base::Now now{std::chrono::seconds(1)};
      const auto stream = right->connect({}, peer, *users.back(), now);
      if (!stream) return tl::unexpected(stream.error());
      return (*stream)->local().port;
    };
    for (int i = 0; i < 3; ++i) given.insert(connect().value_or(0));
    found.expect(given.size() == 3 && !given.contains(0), "there are not three ports besides");
    found.expect(!given.contains(reserved.port), "the reserved port is given away");
    found.expect(!connect().has_value(), "there is a fourth");
    found.expect(left->unreserve(reserved).has_value(), "it is not reserved");
    found.expect(connect().value_or(0) == reserved.port, "the port is not free");
  });
  if (child.findings() == "skipped\n") GTEST_SKIP() << "only root can make network namespaces";
  EXPECT_EQ(child.findings(), "");
}

}  // namespace
}  // namespace rnic::socket
