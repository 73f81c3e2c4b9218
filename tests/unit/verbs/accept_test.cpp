// blocking::Listener::accept() and connect_pair() against peers that do not do their part.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "blocking_world.hpp"
#include "verbs/answered_requests.hpp"

namespace rnic::test {
namespace {

constexpr std::chrono::hours kNever{1};  // as a time-out: no test takes that long

/// A peer-to-peer Request (RFC 6581 s.7, s.9): flags C and S, revision 2, four octets of private
/// data; A, B and an IRD of 1, C, D and an ORD of 1.
constexpr std::array<uint8_t, 8> kPeerToPeer{0x50, 2, 0, 4, 0xc0, 1, 0xc0, 1};
/// Revision 1, with an IRD and an ORD of 1 in the private data (mpa.reads_in_private_data).
constexpr std::array<uint8_t, 12> kReadsInData{0x40, 1, 0, 8, 0, 0, 0, 1, 0, 0, 0, 1};

/// A peer that asks for a connection and then says nothing any more: an RTR never comes. It is a
/// stream of the near device; over sockets, where that has none, one of the system's.
class Silent {
 public:
  /// Returns when the far device has got the request.
  Silent(Adapters& world, std::span<const uint8_t> request) : world_(&world) {
    const std::string key = "MPA ID Req Frame";
    std::vector<uint8_t> frame(key.begin(), key.end());
    frame.insert(frame.end(), request.begin(), request.end());
    const uint64_t before = requests();
    if (world.far.device().port() == "socket") {
      ask_by_socket(frame);
    } else {
      ask_by_stream(frame);
    }
    until([this, before] { return requests() == before + 1; }, "no request comes");
  }
  Silent(const Silent&) = delete;
  Silent& operator=(const Silent&) = delete;
  ~Silent() {
    if (socket_ >= 0) close(socket_);
  }

  /// Waits until the other side has ended the connection.
  void await_end() {
    if (socket_ >= 0) {
      std::array<uint8_t, 64> some{};
      while (recv(socket_, some.data(), some.size(), 0) > 0) continue;
      return;
    }
    until([this] { return stream_.state() == StreamState::Ended; }, "the connection stays");
  }

 private:
  [[nodiscard]] uint64_t requests() const {
    return must(world_->far.device().counter("device", "connect_requests"));
  }
  void until(const std::function<bool()>& done, const char* otherwise) {
    if (!world_->context.wait_until(done, kPatience)) throw std::runtime_error(otherwise);
  }
  void ask_by_stream(const std::vector<uint8_t>& frame) {
    Device near = world_->near.device();
    stream_ = must(near.connect_stream(world_->there()));
    until([this] { return stream_.state() == StreamState::Open; }, "no connection");
    if (must(stream_.send(frame)) != frame.size()) throw std::runtime_error("no room");
  }
  void ask_by_socket(const std::vector<uint8_t>& frame) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(kPort);
    to.sin_addr.s_addr = htonl(world_->there().address.as_v4());
    socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 ||
        ::send(socket_, frame.data(), frame.size(), 0) != static_cast<ssize_t>(frame.size())) {
      throw std::runtime_error("no connection");
    }
  }

  Adapters* world_;
  Stream stream_;
  int socket_ = -1;
};

/// A queue pair of the near device that asks for a connection, and says who it is.
class Honest {
 public:
  Honest(Adapters& world, uint8_t name)
      : side_(world.near.device(), {.send_depth = 1, .receive_depth = 1, .ird = 1, .ord = 1}, 2) {
    ConnectOptions options;
    options.start.revision = 2;
    options.exchange_reads = true;
    must(side_.qp.connect(world.there(), std::array<uint8_t, 1>{name}, options));
  }

 private:
  Side side_;
};

Listener patient_listener(Adapters& world) {
  ListenOptions options;
  options.start.revision = 2;
  options.start.reads_in_private_data = true;
  options.start.rtr_timeout = kNever;
  return must(world.far.listen(world.there(), options));
}

/// The name that the peer has said.
uint8_t name_of(const Connection& accepted) {
  return accepted.peer_data().size() == 1 ? accepted.peer_data()[0] : uint8_t{0};
}

ConnectionOptions small() { return {.message_size = 16, .receives = 1, .reads = 1}; }

/// Connections of the far device that have a queue pair: their requests were answered.
size_t answered(Adapters& world) {
  const auto all = must(world.far.device().connections());
  return static_cast<size_t>(std::ranges::count_if(all, [](const auto& one) { return one.qp; }));
}

class Accepting : public ::testing::TestWithParam<Setting> {};

TEST_P(Accepting, ASilentPeerHoldsNobodyUp) {
  Adapters world(GetParam());
  auto listener = patient_listener(world);
  std::deque<Silent> silent;
  for (int i = 0; i < 3; ++i) silent.emplace_back(world, kPeerToPeer);
  const Honest honest(world, 7);
  EXPECT_EQ(name_of(must(listener.accept(kPatience, small()))), 7);
}

// What one call has answered, the next one returns: with what that peer was told.
TEST_P(Accepting, AllWhoAskAreAnsweredAtOnceAndStay) {
  Adapters world(GetParam());
  auto listener = patient_listener(world);
  std::deque<Honest> all;
  for (uint8_t name = 1; name <= 4; ++name) all.emplace_back(world, name);
  const auto asked = [&] {
    return must(world.far.device().counter("device", "connect_requests")) == all.size();
  };
  ASSERT_TRUE(world.context.wait_until(asked, kPatience));
  ConnectionOptions first = small();
  const std::array<uint8_t, 2> words{5, 6};
  first.private_data = words;
  std::vector<Connection> accepted;
  accepted.push_back(must(listener.accept(kPatience, first)));

  std::set<uint32_t> established;
  ASSERT_TRUE(world.context.wait_until(
      [&] {
        while (const auto event = world.near.poll_event()) {
          const auto* told = std::get_if<event::Established>(&*event);
          if (told == nullptr) continue;
          EXPECT_TRUE(std::ranges::equal(told->private_data, words));
          established.insert(told->qp);
        }
        return established.size() == all.size();
      },
      kPatience))
      << "they wait for a further accept()";
  std::set<uint8_t> names{name_of(accepted.front())};
  while (accepted.size() < all.size()) {
    accepted.push_back(must(listener.accept(kPatience, small())));
    names.insert(name_of(accepted.back()));
  }
  EXPECT_EQ(names, (std::set<uint8_t>{1, 2, 3, 4}));
}

TEST_P(Accepting, ThereIsABoundAndWhoLeavesMakesRoom) {
  Adapters world(GetParam());
  auto listener = patient_listener(world);
  constexpr size_t kMost = verbs::AnsweredRequests::kMost;
  std::deque<Silent> silent;
  for (size_t i = 0; i < kMost + 1; ++i) silent.emplace_back(world, kPeerToPeer);
  const Honest honest(world, 9);
  EXPECT_EQ(code_of(listener.accept(kNow, small())), ErrorCode::TimedOut);
  EXPECT_EQ(answered(world), kMost);
  silent.pop_front();
  silent.pop_front();
  EXPECT_EQ(name_of(must(listener.accept(kPatience, small()))), 9);
}

// A peer that takes the last queue pair and stays half-way is no error of the call.
TEST_P(Accepting, WithoutAQueuePairForOneMoreItWaits) {
  Adapters world(GetParam(), {"limits.max_qps=2"});
  auto listener = patient_listener(world);
  std::deque<Silent> silent;
  for (int i = 0; i < 3; ++i) silent.emplace_back(world, kPeerToPeer);
  const Honest honest(world, 9);
  EXPECT_EQ(code_of(listener.accept(kNow, small())), ErrorCode::TimedOut);
  EXPECT_EQ(answered(world), 2u);
  silent.pop_front();
  silent.pop_front();
  EXPECT_EQ(name_of(must(listener.accept(kPatience, small()))), 9);
}

// Revision 1 with the Reads in its private data leaves less room for the application's.
TEST_P(Accepting, APeerThatTheOptionsDoNotFitIsPassedOver) {
  Adapters world(GetParam());
  auto listener = patient_listener(world);
  const Silent other(world, kReadsInData);
  const Honest honest(world, 3);
  ConnectionOptions options = small();
  const std::vector<uint8_t> much(kMaxPrivateData);
  options.private_data = much;
  EXPECT_EQ(name_of(must(listener.accept(kPatience, options))), 3);
  EXPECT_EQ(code_of(listener.accept(kNow, options)), ErrorCode::TimedOut) << "it was rejected";
}

TEST_P(Accepting, ThePortOfAPairIsForTheOtherEndAlone) {
  // Over sockets of the system nobody can ask before somebody listens.
  if (GetParam().on == On::Sockets || GetParam().threaded) return;
  Adapters world(GetParam());
  std::deque<Honest> strangers;  // what they say lies in the far port until the call drives it
  for (uint8_t name = 1; name <= 2; ++name) strangers.emplace_back(world, name);
  auto [a, b] = must(world.near.connect_pair(world.far, kPort, kPatience));
  EXPECT_EQ(a.remote(), b.local());
  EXPECT_EQ(b.remote(), a.local());
  pass(a, b, 100, 1);
  std::set<uint32_t> rejected;
  const auto all_told = [&] {
    while (const auto event = world.near.poll_event()) {
      if (std::holds_alternative<event::Rejected>(*event)) rejected.insert(common(*event).qp);
    }
    return rejected.size() == strangers.size();
  };
  EXPECT_TRUE(world.context.wait_until(all_told, kPatience));
}

INSTANTIATE_TEST_SUITE_P(All, Accepting, kAllSettings, setting_name);

// 32 MB for each: two of them are what the buffers of all may have together.
TEST(AcceptBounds, TheBuffersOfAllHaveABound) {
  Adapters world({.on = On::Sockets});
  auto listener = patient_listener(world);
  std::deque<Silent> silent;
  for (int i = 0; i < 3; ++i) silent.emplace_back(world, kPeerToPeer);
  ConnectionOptions large = small();
  large.message_size = 16u << 20;
  EXPECT_EQ(code_of(listener.accept(kNow, large)), ErrorCode::TimedOut);
  EXPECT_EQ(answered(world), 2u);
}

// The limit of the call has no end, and the one of the start-up is over at once.
TEST(AcceptThreads, NoTimeOutOfAPeerEndsTheCall) {
  for (const On on : {On::Wire, On::Local, On::Sockets}) {
    Adapters world({on, true});
    ListenOptions options;
    options.start.revision = 2;
    options.start.rtr_timeout = std::chrono::milliseconds(1);
    auto listener = must(world.far.listen(world.there(), options));
    Silent silent(world, kPeerToPeer);
    std::optional<Result<Connection>> near;
    std::thread client([&] {
      silent.await_end();
      near.emplace(world.near.connect(world.there(), kPatience));
    });
    auto far = listener.accept(kPatience);
    client.join();
    ASSERT_TRUE(far) << name_of(on) << ": " << far.error().message;
    ASSERT_TRUE(near && *near) << name_of(on);
    pass(**near, *far, 10, 1);
  }
}

TEST(AcceptThreads, SeveralAcceptAtOneListener) {
  for (const On on : {On::Wire, On::Local, On::Sockets}) {
    Adapters world({on, true});
    auto listener = patient_listener(world);
    const Silent silent(world, kPeerToPeer);
    constexpr size_t kServers = 4, kEach = 8;
    std::array<std::vector<Connection>, kServers> accepted;
    std::vector<std::thread> servers;
    for (auto& mine : accepted) {
      servers.emplace_back([&listener, &mine] {
        for (size_t i = 0; i < kEach; ++i) {
          auto one = listener.accept(kPatience, small());
          if (one) mine.push_back(std::move(*one));
        }
      });
    }
    std::vector<Connection> clients;
    for (size_t i = 0; i < kServers * kEach; ++i) {
      auto one = world.near.connect(world.there(), kPatience, small());
      if (one) clients.push_back(std::move(*one));
    }
    for (std::thread& server : servers) server.join();
    std::set<Endpoint> peers;
    for (const auto& mine : accepted) {
      for (const Connection& one : mine) peers.insert(one.remote());
    }
    EXPECT_EQ(clients.size(), kServers * kEach) << name_of(on);
    EXPECT_EQ(peers.size(), kServers * kEach) << name_of(on);
  }
}

}  // namespace
}  // namespace rnic::test
