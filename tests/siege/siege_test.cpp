// An honest client gets in while strangers do their worst: whole devices, in virtual time.
//
// RNIC_SIEGE_STRANGERS (default 2000) says how many strangers come in each case.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "siege/crowd.hpp"
#include "unit/device/device_pair.hpp"
#include "workload/guest_list.hpp"

namespace rnic::siege {
namespace {

using device::DeviceConfig;
using device::Host;
using device::QueuePair;

constexpr uint16_t kPort = 7471;
constexpr base::Duration kPromise = std::chrono::seconds(2);
constexpr uint32_t kStarts = 100;
constexpr base::Duration kInterval = std::chrono::microseconds(100);  // 10,000 strangers a second

uint32_t strangers() {
  const char* text = std::getenv("RNIC_SIEGE_STRANGERS");
  return text == nullptr ? 2'000 : static_cast<uint32_t>(std::strtoul(text, nullptr, 10));
}

enum class Family : uint8_t { V4, V6 };

IpAddress client_of(Family family) {
  return family == Family::V4 ? IpAddress::v4(0x0a000001) : IpAddress(0xfd00000000000000, 1);
}
IpAddress server_of(Family family) {
  return family == Family::V4 ? IpAddress::v4(0x0a000002) : IpAddress(0xfd00000000000000, 2);
}

/// One siege. What is not said is as it comes.
struct Plan {
  Family family = Family::V4;
  Origin origin = Origin::EachOwn;
  std::vector<Attack> attacks;
  uint64_t seed = 1;
  uint32_t places = 100;                                            ///< that the application has
  std::function<void(DeviceConfig&)> tweak = [](DeviceConfig&) {};  ///< of the server
};

/// The application of the besieged device: accepts everybody, and when its places are full lets
/// somebody go who has said nothing, as the servers of rnic-ping and rnic-perf do.
class Application {
 public:
  Application(Host& host, const uint32_t places) : host_(host), guests_({.most = places}) {
    pd_ = *host.device->alloc_pd();
  }

  void step(base::Now now) {
    while (const auto event = host_.device->poll_event()) {
      if (const auto* asked = std::get_if<event::ConnectRequest>(&*event)) welcome(*asked, now);
      if (std::holds_alternative<event::Disconnected>(*event)) leave(common(*event).qp);
      if (std::holds_alternative<event::PeerClosed>(*event)) leave(common(*event).qp);
    }
    for (const Place& place : places_) {
      std::array<Completion, 4> done;
      if (place.receive_cq->poll(done) != 0) guests_.heard(place.qp->number(), base::nanos(now));
    }
  }
  void leave_all() {
    while (!places_.empty()) leave(places_.back().qp->number());
  }

 private:
  struct Place {
    QueuePair* qp = nullptr;
    device::CompletionQueue* send_cq = nullptr;
    device::CompletionQueue* receive_cq = nullptr;
  };

  void welcome(const event::ConnectRequest& event, base::Now now) {
    const std::string from = to_string(event.remote);
    if (guests_.full()) {
      const auto who = guests_.gives_way(from, base::nanos(now));
      if (!who) {
        static_cast<void>(host_.device->reject(event.request, {}, now));
        return;
      }
      leave(*who);
    }
    device::QueuePairSpec spec;
    spec.answer_close = false;
    spec.pd = pd_;
    spec.send_cq = *host_.device->create_cq(8);
    spec.receive_cq = *host_.device->create_cq(8);
    spec.send_depth = spec.receive_depth = 4;
    const Place place{*host_.device->create_qp(spec), spec.send_cq, spec.receive_cq};
    ReceiveRequest receive;
    ASSERT_EQ(place.qp->post_receive(receive), device::PostResult::Ok);
    places_.push_back(place);
    guests_.enter(place.qp->number(), from, base::nanos(now));
    // A request may be gone by now.
    if (!host_.device->accept(event.request, *place.qp, {}, now)) leave(place.qp->number());
  }

  void leave(uint32_t qp) {
    const auto place = std::find_if(places_.begin(), places_.end(),
                                    [qp](const Place& p) { return p.qp->number() == qp; });
    if (place == places_.end()) return;
    guests_.leave(qp);
    ASSERT_TRUE(host_.device->destroy_qp(place->qp).has_value());
    ASSERT_TRUE(host_.device->destroy_cq(place->send_cq).has_value());
    ASSERT_TRUE(host_.device->destroy_cq(place->receive_cq).has_value());
    places_.erase(place);
  }

  Host& host_;
  workload::GuestList guests_;
  uint32_t pd_ = 0;
  std::vector<Place> places_;
};

class World {
 public:
  explicit World(const Plan& plan)
      : address_(server_of(plan.family)),
        link_(wire()),
        crowd_(link_.a(),
               {.origin = plan.origin,
                .attacks = plan.attacks,
                .strangers = strangers(),
                .interval = kInterval,
                .client = client_of(plan.family),
                .server = address_,
                .port = kPort,
                .seed = plan.seed},
               now_ + std::chrono::milliseconds(10)),
        client_(config("client", plan), crowd_, now_),
        server_(config("server", plan), link_.b(), now_),
        application_(server_, plan.places) {
    EXPECT_TRUE(server_.device->listen(kPort).has_value());
    client_pd_ = *client_.device->alloc_pd();
  }

  /// One honest client: connects, sends one message. \return how long it took; nothing: too long
  std::optional<base::Duration> honest_start() {
    device::QueuePairSpec spec;
    spec.answer_close = false;
    spec.pd = client_pd_;
    spec.send_cq = *client_.device->create_cq(8);
    spec.receive_cq = *client_.device->create_cq(8);
    spec.send_depth = spec.receive_depth = 4;
    QueuePair* qp = *client_.device->create_qp(spec);
    const base::Now begin = now_;
    EXPECT_TRUE(client_.device->connect(*qp, {address_, kPort}, {}, now_).has_value());
    const auto outcome = [&] {
      return client_.has<event::Established>() || client_.has<event::ConnectFailed>() ||
             client_.has<event::Rejected>();
    };
    run_until(outcome, begin + kPromise);
    bool in = client_.take<event::Established>().has_value();
    if (in) {
      SendRequest send;
      send.opcode = Opcode::Send;
      EXPECT_EQ(qp->post_send(send), device::PostResult::Ok);
      std::vector<Completion> done;
      run_until([&] { return !(done = client_.completions(spec.send_cq)).empty(); },
                begin + kPromise);
      in = !done.empty() && done[0].status == CompletionStatus::Success;
    }
    const base::Duration took = now_ - begin;
    EXPECT_TRUE(client_.device->destroy_qp(qp).has_value());
    EXPECT_TRUE(client_.device->destroy_cq(spec.send_cq).has_value());
    EXPECT_TRUE(client_.device->destroy_cq(spec.receive_cq).has_value());
    client_.collect();
    client_.events.clear();
    if (!in || took > kPromise) return std::nullopt;
    return took;
  }

  void run_for(base::Duration span) {
    run_until([] { return false; }, now_ + span);
  }
  [[nodiscard]] device::Device& server() { return *server_.device; }
  [[nodiscard]] Crowd& crowd() { return crowd_; }
  Application& application() { return application_; }

 private:
  static sim::LinkConfig wire() {
    sim::LinkConfig config;
    config.a_to_b.delay = config.b_to_a.delay = std::chrono::microseconds(20);
    config.checksum = port::ChecksumMode::Trusted;
    return config;
  }
  static DeviceConfig config(const char* name, const Plan& plan) {
    base::set_log_level(base::LogLevel::Off);
    DeviceConfig config;  // as it comes
    config.name = name;
    const bool serves = config.name == "server";
    config.net.address = serves ? server_of(plan.family) : client_of(plan.family);
    if (plan.family == Family::V6) config.net.prefix_length = 64;
    if (serves) {
      (plan.family == Family::V4 ? config.net.gateway : config.net.gateway6) =
          client_of(plan.family);
    }
    config.seed = serves ? 2 : 1;
    config.limits.max_regions = 64;
    config.limits.hold_octets = 1u << 20;
    if (serves) plan.tweak(config);
    return config;
  }

  template <typename Done>
  void run_until(Done&& done, base::Now end) {
    while (now_ < end && !done()) {
      crowd_.step(now_);
      const uint32_t work = client_.device->poll(now_) + server_.device->poll(now_);
      application_.step(now_);
      if (work != 0 || client_.device->doorbell_ringing() || server_.device->doorbell_ringing()) {
        now_ += base::Duration(100);
        continue;
      }
      base::Now next = base::earlier(client_.device->next_deadline(), crowd_.next_deadline());
      next = base::earlier(next, server_.device->next_deadline());
      now_ = std::max(now_ + base::Duration(1), std::min(next, end));
    }
  }

  base::Now now_ = base::from_nanos(1'000'000);
  IpAddress address_;  // the server's
  sim::Link link_;
  Crowd crowd_;
  Host client_;
  Host server_;
  Application application_;
  uint32_t client_pd_ = 0;
};

std::vector<Attack> all_attacks() {
  std::vector<Attack> all;
  for (uint32_t i = 0; i < kAttacks; ++i) all.push_back(static_cast<Attack>(i));
  return all;
}

/// 99 of 100 starts within 2 s, however many strangers come meanwhile.
void expect_honest_get_in(World& world) {
  uint32_t in = 0;
  base::Duration longest{};
  const base::Duration pause = kInterval * strangers() / kStarts;
  for (uint32_t i = 0; i < kStarts; ++i) {
    if (const auto took = world.honest_start()) {
      ++in;
      longest = std::max(longest, *took);
    }
    world.run_for(pause);
  }
  EXPECT_GE(in, 99u);
  EXPECT_EQ(world.crowd().arrived(), strangers());
  ::testing::Test::RecordProperty("longest_us", static_cast<int>(longest.count() / 1000));
  const auto& limits = world.server().config().limits;
  EXPECT_LE(world.server().live_connections(), limits.max_connections);
}

/// Nobody says anything more. The longest patience is that with octets that are not acknowledged.
void expect_nothing_left(World& world) {
  world.run_for(world.server().config().tcp.orphan_timeout + std::chrono::minutes(2));
  world.application().leave_all();
  world.run_for(std::chrono::minutes(5));
  EXPECT_EQ(world.server().live_connections(), 0u);
  EXPECT_TRUE(world.server().quiescent());
}

/// A number: one attack alone; kAttacks: all of them mixed.
using Param = std::tuple<Family, Origin, uint32_t>;

std::vector<Attack> attacks_of(uint32_t which) {
  return which == kAttacks ? all_attacks() : std::vector{static_cast<Attack>(which)};
}

Plan plan_of(const Param& param) {
  const auto [family, origin, which] = param;
  return {.family = family, .origin = origin, .attacks = attacks_of(which), .seed = 1 + which};
}

std::string name_of(const ::testing::TestParamInfo<Param>& info) {
  const auto [family, origin, which] = info.param;
  std::string name = which == kAttacks ? "all" : to_string(static_cast<Attack>(which));
  name = std::string(family == Family::V4 ? "v4_" : "v6_") + to_string(origin) + "_" + name;
  std::erase_if(name, [](char c) { return c == ',' || c == '\''; });
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

const auto kFamilies = ::testing::Values(Family::V4, Family::V6);
const auto kOrigins = ::testing::Values(Origin::OneOther, Origin::EachOwn, Origin::TheClients);
const auto kSynOnly = static_cast<uint32_t>(Attack::SynOnly);
const auto kStarted = static_cast<uint32_t>(Attack::Started);

class Siege : public ::testing::TestWithParam<Param> {};

TEST_P(Siege, AnHonestClientGetsIn) {
  World world(plan_of(GetParam()));
  expect_honest_get_in(world);
  if (std::get<uint32_t>(GetParam()) >= kStarted) {
    EXPECT_GT(world.crowd().started(), 0u) << "the strangers do what they are meant to";
  }
  expect_nothing_left(world);
}

INSTANTIATE_TEST_SUITE_P(Strangers, Siege,
                         ::testing::Combine(kFamilies, kOrigins,
                                            ::testing::Range(0u, kAttacks + 1)),
                         name_of);

/// SYNs are answered from the table alone: whoever is half open gives way.
class WithoutCookies : public ::testing::TestWithParam<Param> {};

TEST_P(WithoutCookies, AnHonestClientGetsIn) {
  Plan plan = plan_of(GetParam());
  plan.tweak = [](DeviceConfig& config) { config.tcp.syn_cookies = false; };
  World world(plan);
  expect_honest_get_in(world);
  const tcp::Counters& counters = world.server().tcp_counters();
  EXPECT_EQ(counters.syn_cookies_sent, 0u);
  if (std::get<uint32_t>(GetParam()) == kSynOnly) {
    EXPECT_GT(counters.half_open_displaced, 0u) << "the strangers do what they are meant to";
  }
  expect_nothing_left(world);
}

INSTANTIATE_TEST_SUITE_P(Strangers, WithoutCookies,
                         ::testing::Combine(kFamilies, kOrigins,
                                            ::testing::Values(kSynOnly, kAttacks)),
                         name_of);

/// An application that lets nobody go: limits.silence does it for the device's places.
class SilentOnes : public ::testing::TestWithParam<Param> {};

TEST_P(SilentOnes, GiveWayToAnHonestClient) {
  Plan plan = plan_of(GetParam());
  plan.places = UINT32_MAX;
  plan.tweak = [](DeviceConfig& config) {
    // In half of this time as many come as there are places.
    config.limits.silence = kInterval * 128;
    config.limits.max_connections = 256;
    config.limits.max_starting = 64;
  };
  World world(plan);
  expect_honest_get_in(world);
  EXPECT_GT(world.server().device_counters().silent_displaced, 0u);
  world.application().leave_all();
  expect_nothing_left(world);
}

INSTANTIATE_TEST_SUITE_P(Strangers, SilentOnes,
                         ::testing::Combine(kFamilies, kOrigins,
                                            ::testing::Values(kStarted, kAttacks)),
                         name_of);

}  // namespace
}  // namespace rnic::siege
