// Over sockets of the system nothing can be dropped: what hold space has no room for stays in the
// system's receive buffer, whose window tells the peer; so it is where a consumer's share of it is
// full. A relay stands between the devices and passes on as much as a test says, in pieces as short
// as it says.

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <random>

#include "on_sockets.hpp"
#include "socket/emss.hpp"

namespace rnic::device {

namespace {

constexpr uint64_t kEverything = UINT64_MAX;
constexpr uint32_t kBuffer = 16 << 10;

/// Accepts the initiators' connections and makes one to the responder for each.
class Relay {
 public:
  explicit Relay(const Endpoint& responder) : responder_(responder) {
    listening_ = std::move(*socket::open_socket(socket::own_system(), AF_INET));
    socket::SystemAddress any(Endpoint{IpAddress::v4(0x7f000001), 0});
    // A wide window makes a long EMSS of the loopback: the FPDUs are as long as the Writes.
    socket::set_option(socket::own_system(), listening_.get(), SOL_SOCKET, SO_RCVBUF, 256 << 10);
    EXPECT_EQ(bind(listening_.get(), any.get(), any.size), 0);
    EXPECT_EQ(::listen(listening_.get(), 16), 0);
    EXPECT_EQ(getsockname(listening_.get(), any.get(), &any.size), 0);
    here_ = any.endpoint();
  }

  struct Link {
    socket::Descriptor initiator;
    socket::Descriptor responder;
    uint64_t allowed = kEverything;  ///< octets towards the responder that may still pass
    size_t longest = SIZE_MAX;       ///< of one write towards it
    std::vector<uint8_t> kept;       ///< read, and not taken there yet
    bool is_refused = false;         ///< the responder's system took nothing the last time
  };

  [[nodiscard]] const Endpoint& here() const { return here_; }
  std::vector<Link> links;

  void turn() {
    socket::Descriptor next(
        socket::own_system().accept4(listening_.get(), nullptr, nullptr, SOCK_NONBLOCK));
    if (next.open()) {
      Link link;
      link.initiator = std::move(next);
      link.responder = std::move(*socket::open_socket(socket::own_system(), AF_INET));
      socket::set_option(socket::own_system(), link.responder.get(), SOL_SOCKET, SO_SNDBUF,
                         kBuffer);
      socket::set_option(socket::own_system(), link.responder.get(), IPPROTO_TCP, TCP_NODELAY, 1);
      const socket::SystemAddress there(responder_);
      EXPECT_TRUE(::connect(link.responder.get(), there.get(), there.size) == 0 ||
                  errno == EINPROGRESS);
      links.push_back(std::move(link));
    }
    for (Link& link : links) {
      forward(link);
      back(link);
    }
  }

 private:
  void forward(Link& link) {
    std::array<uint8_t, kBuffer> buffer;
    if (link.kept.empty()) {
      const ssize_t got = recv(link.initiator.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (got > 0) link.kept.assign(buffer.begin(), buffer.begin() + got);
    }
    const size_t n = std::min<uint64_t>({link.kept.size(), link.longest, link.allowed});
    if (n == 0) return;
    const ssize_t sent = send(link.responder.get(), link.kept.data(), n, MSG_DONTWAIT);
    link.is_refused = sent < 0 && errno == EAGAIN;
    if (sent <= 0) return;
    link.kept.erase(link.kept.begin(), link.kept.begin() + sent);
    if (link.allowed != kEverything) link.allowed -= static_cast<uint64_t>(sent);
  }
  static void back(Link& link) {
    std::array<uint8_t, kBuffer> buffer;
    const ssize_t got = recv(link.responder.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got <= 0) return;
    EXPECT_EQ(send(link.initiator.get(), buffer.data(), static_cast<size_t>(got), 0), got);
  }

  Endpoint responder_;
  Endpoint here_;
  socket::Descriptor listening_;
};

enum class Framed : uint8_t { Mpa, MpaMarkers, TufMarkers };

DeviceConfig with_hold(uint64_t octets, Framed framed) {
  DeviceConfig config;
  config.limits.hold_octets = octets;
  config.mpa.markers_receive = framed == Framed::MpaMarkers;
  config.framing = framed == Framed::TufMarkers ? Framing::Tuf : Framing::Mpa;
  return config;
}

socket::Config with_buffers(uint32_t octets) {
  socket::Config config;
  config.system_receive_buffer = octets;
  return config;
}

struct Space {
  uint64_t octets = 4096;  ///< two pages
  uint64_t share = 0;      ///< octets of it for all connections, which are one consumer's; 0: all
};

/// `links` queue pairs through a relay, with little hold space at the responder. The parameter is
/// the framing of both.
class LittleHoldSpace : public OnSockets, public ::testing::WithParamInterface<Framed> {
 protected:
  explicit LittleHoldSpace(uint32_t links, uint32_t system_buffer = 256 << 10,
                           const Space& space = {})
      : OnSockets(links, with_buffers(system_buffer), initiator(),
                  with_hold(space.octets, GetParam())),
        relay_(listen(consumer_with(space.share))) {
    for (uint32_t link = 0; link < links; ++link) {
      connect(link, relay_.here());
      sources_.emplace_back();
      sinks_.emplace_back();
    }
  }
  static DeviceConfig initiator() {
    DeviceConfig config = device();
    config.framing = with_hold(4096, GetParam()).framing;
    return config;
  }
  void turn() override { relay_.turn(); }
  /// Makes the responder's queue pairs those of a consumer with a share. \return its number; 0:
  /// there is no share, and all stays as it is
  uint32_t consumer_with(uint64_t share) {
    if (share == 0) return 0;
    Device& device = *devices_[1];
    const uint32_t consumer =
        *device.consumers().create({.name = "one", .quotas = {.held_octets = share}});
    QueuePairSpec spec;
    spec.answer_close = false;
    spec.pd = pds_[1] = *device.alloc_pd(consumer);
    cqs_[1] = receive_cqs_[1] = *device.create_cq(256, {}, consumer);
    spec.send_cq = spec.receive_cq = cqs_[1];
    for (QueuePair*& qp : qps_[1]) {
      EXPECT_TRUE(device.destroy_qp(qp).has_value());
      qp = *device.create_qp(spec);
    }
    return consumer;
  }

  /// Posts a Write of `length` octets.
  void write(uint32_t link, uint32_t length) {
    now_ += socket::KnownEmss::kAskedAgain;  // the message goes by the MSS of the moment
    std::vector<uint8_t>& source = sources_[link];
    source.resize(length);
    for (uint32_t i = 0; i < length; ++i) source[i] = static_cast<uint8_t>(i * 7 + i / 251 + link);
    sinks_[link].assign(length, 0);
    SendRequest write = work(Opcode::Write, source, add(0, source, kRights));
    write.remote = {add(1, sinks_[link], kRights).value,
                    reinterpret_cast<uint64_t>(sinks_[link].data())};
    ASSERT_EQ(qps_[0][link]->post_send(write), PostResult::Ok);
  }
  [[nodiscard]] bool arrived(uint32_t link) const { return sinks_[link] == sources_[link]; }
  [[nodiscard]] uint64_t held(uint32_t link) {
    return devices_[1]->info(*qps_[1][link], now_).received.held_now;
  }
  /// Until the relay has passed on all that it may, and the responder has looked at it.
  bool allowance_used(uint32_t link) {
    const bool used = run_until([&] { return relay_.links[link].allowed == 0; });
    turns(200);
    return used;
  }
  [[nodiscard]] const socket::Counters& responder() const { return transports_[1]->counters(); }
  [[nodiscard]] uint64_t refused() {
    return devices_[1]->mpa_counters().hold_refused + devices_[1]->tuf_counters().hold_refused;
  }
  void expect_no_loss() {
    EXPECT_EQ(responder().aborted, 0u);
    EXPECT_EQ(refused(), 0u);
    EXPECT_EQ(framing::held_octets(devices_[1]->hold_store()), 0u);
  }

  Relay relay_;
  std::vector<std::vector<uint8_t>> sources_;
  std::vector<std::vector<uint8_t>> sinks_;
};

class TwoThatWait : public LittleHoldSpace {
 protected:
  TwoThatWait() : LittleHoldSpace(2) {}
};

/// An FPDU does not fit the system's receive buffer.
class TwoWithSmallBuffers : public LittleHoldSpace {
 protected:
  TwoWithSmallBuffers() : LittleHoldSpace(2, kBuffer) {}
};

/// There is hold space for all of them, but their share is small.
class ThreeWithAShare : public LittleHoldSpace {
 protected:
  static constexpr uint64_t kShare = 30'000;
  static constexpr uint32_t kOfTheThird = 15'000;  // what has come of it

  ThreeWithAShare() : LittleHoldSpace(3, 256 << 10, {.octets = 1 << 20, .share = kShare}) {}

  /// The first connection has the share, the second one the reserve, and neither goes on. The third
  /// one's octets are left with the system.
  void fill() {
    come(0, kShare);
    ASSERT_TRUE(run_until([&] { return held(0) == kShare; }));
    come(1, 10'000);
    ASSERT_TRUE(run_until([&] { return held(1) == 10'000; }));
    come(2, kOfTheThird);
    expect_third_waits();
  }
  /// So much of a Write comes.
  void come(uint32_t link, uint64_t octets) {
    relay_.links[link].allowed = octets;
    write(link, 60'000);
    ASSERT_TRUE(allowance_used(link));
  }
  void expect_third_waits() {
    turns(500);  // it has looked
    const uint64_t peeks = responder().peeks;
    turns(500);
    EXPECT_EQ(responder().peeks, peeks) << "it is looked at again although nothing has changed";
    EXPECT_EQ(held(2), 0u);
  }
  [[nodiscard]] bool third_goes_on() {
    return run_until([&] { return held(2) == kOfTheThird; });
  }
  void go_on(uint32_t link) {
    relay_.links[link].allowed = kEverything;
    ASSERT_TRUE(run_until([&] { return arrived(link); })) << link;
  }
};

class ManyInPieces : public LittleHoldSpace {
 protected:
  static constexpr uint32_t kLinks = 5;
  ManyInPieces() : LittleHoldSpace(kLinks, 64 << 10) {}
};

// One connection has all hold space and does not go on. Another one's FPDU is left with the system
// until it is whole there, and is placed from there.
TEST_P(TwoThatWait, WholeFpdusNeedNoHoldSpace) {
  relay_.links[0].allowed = relay_.links[1].allowed = 30'000;
  write(0, 60'000);
  ASSERT_TRUE(allowance_used(0));
  EXPECT_EQ(held(0), 30'000u);
  write(1, 60'000);
  ASSERT_TRUE(allowance_used(1));
  EXPECT_EQ(held(1), 0u);
  EXPECT_GT(responder().receive_waits, 0u);
  relay_.links[1].allowed = kEverything;
  ASSERT_TRUE(run_until([&] { return arrived(1); }));
  EXPECT_EQ(held(1), 0u);
  EXPECT_FALSE(arrived(0));
  relay_.links[0].allowed = kEverything;
  ASSERT_TRUE(run_until([&] { return arrived(0); }));
  expect_no_loss();
}

// Nothing is looked at again and again while nothing changes, and nobody is called for.
TEST_P(TwoThatWait, WaitingCostsNothing) {
  relay_.links[0].allowed = relay_.links[1].allowed = 30'000;
  write(0, 60'000);
  ASSERT_TRUE(allowance_used(0));
  write(1, 60'000);
  ASSERT_TRUE(allowance_used(1));
  const uint64_t peeks = responder().peeks;
  const uint64_t busy = devices_[1]->device_counters().busy_polls;
  EXPECT_GT(peeks, 0u);
  turns(2000);
  EXPECT_EQ(responder().peeks, peeks);
  EXPECT_EQ(devices_[1]->device_counters().busy_polls, busy);
  EXPECT_GT(transports_[1]->next_deadline(), now_);
}

// The window closes: the peer's system takes no more. Space that another connection gives back
// wakes the one that waits, without an octet of its own.
TEST_P(TwoWithSmallBuffers, TheWindowCloses) {
  relay_.links[0].allowed = 30'000;
  write(0, 60'000);
  ASSERT_TRUE(allowance_used(0));
  write(1, 60'000);
  ASSERT_TRUE(run_until([&] { return relay_.links[1].is_refused; }));
  turns(500);
  EXPECT_TRUE(relay_.links[1].is_refused);
  EXPECT_FALSE(arrived(1));
  relay_.links[0].allowed = kEverything;
  ASSERT_TRUE(run_until([&] { return arrived(0) && arrived(1); }));
  expect_no_loss();
}

// The same when the other connection ends.
TEST_P(TwoWithSmallBuffers, AnEndGivesSpaceBack) {
  relay_.links[0].allowed = 30'000;
  write(0, 60'000);
  ASSERT_TRUE(allowance_used(0));
  write(1, 60'000);
  ASSERT_TRUE(run_until([&] { return relay_.links[1].is_refused; }));
  turns(500);
  EXPECT_FALSE(arrived(1));
  ASSERT_TRUE(devices_[1]->destroy_qp(qps_[1][0]).has_value());
  ASSERT_TRUE(run_until([&] { return arrived(1); }));
  EXPECT_EQ(refused(), 0u);
}

// Space of their share that one connection gives back wakes the one that waits for it, without an
// octet of its own.
TEST_P(ThreeWithAShare, SpaceOfTheShareWakesTheOneThatWaits) {
  come(0, kShare + 15'000);  // with the reserve
  ASSERT_TRUE(run_until([&] { return held(0) == kShare + 15'000; }));
  come(2, kOfTheThird);
  expect_third_waits();
  go_on(0);
  ASSERT_TRUE(third_goes_on());
  go_on(2);
  expect_no_loss();
}

// The same when the connection that has the share ends, and another one has the reserve.
TEST_P(ThreeWithAShare, AnEndWakesTheOneThatWaits) {
  fill();
  ASSERT_TRUE(devices_[1]->destroy_qp(qps_[1][0]).has_value());
  ASSERT_TRUE(third_goes_on());
  EXPECT_EQ(held(1), 10'000u);
  go_on(1);
  go_on(2);
  EXPECT_EQ(refused(), 0u);
}

// The reserve is for everybody in turn, whoever has the share.
TEST_P(ThreeWithAShare, TheReserveWakesTheOneThatWaits) {
  fill();
  go_on(1);
  ASSERT_TRUE(third_goes_on());
  EXPECT_EQ(held(0), kShare);
  go_on(2);
  go_on(0);
  expect_no_loss();
}

// Five connections in pieces of one octet to a few thousand share two pages and the reserve.
TEST_P(ManyInPieces, EveryOctetArrives) {
  std::mt19937 random(7);
  for (uint32_t link = 0; link < kLinks; ++link) write(link, 200'000 + 999 * link);
  ASSERT_TRUE(run_until([&] {
    bool all = true;
    for (uint32_t link = 0; link < kLinks; ++link) {
      relay_.links[link].longest = 1 + random() % (random() % 8 == 0 ? 6000 : 300);
      all = all && arrived(link);
    }
    return all;
  }));
  EXPECT_GT(responder().peeks, 0u);
  expect_no_loss();
}

constexpr auto kFramings = [] {
  return ::testing::Values(Framed::Mpa, Framed::MpaMarkers, Framed::TufMarkers);
};
INSTANTIATE_TEST_SUITE_P(Framings, TwoThatWait, kFramings());
INSTANTIATE_TEST_SUITE_P(Framings, TwoWithSmallBuffers, kFramings());
INSTANTIATE_TEST_SUITE_P(Framings, ThreeWithAShare, kFramings());
INSTANTIATE_TEST_SUITE_P(Framings, ManyInPieces, kFramings());

}  // namespace
}  // namespace rnic::device
