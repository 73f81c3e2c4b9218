// The link of a port that goes down, comes up or is gone: what the application is told of it, and
// what goes on.

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/log.hpp"
#include "device/device.hpp"
#include "device/link_watch.hpp"
#include "support/fake_port.hpp"
#include "support/logged.hpp"

namespace rnic::device {
namespace {

using port::LinkState;
using std::chrono::milliseconds;

constexpr base::Duration kInterval = LinkWatch::kInterval;

port::PortInfo info(uint8_t end) {
  return {"fake", {2, 0, 0, 0, 0, end}, 1500, port::ChecksumMode::Software, {}};
}

/// A device on a port whose link a test sets.
class Link : public ::testing::Test {
 protected:
  Link() {
    base::set_log_level(base::LogLevel::Off);
    config_.name = "rnic0";
    config_.net.address = IpAddress::v4(0x0a000001);
    port_.link_state = LinkState::Up;
    device_ = std::make_unique<Device>(config_, port_, now_);
  }

  /// Turns of a millisecond.
  void run_for(base::Duration span) {
    for (const base::Now end = now_ + span; now_ < end;) {
      now_ += milliseconds(1);
      device_->poll(now_);
      device_->validate();
    }
  }
  /// \return what was told since the last call: "port down, port up"
  std::string told() {
    std::string names;
    while (const auto event = device_->poll_event()) {
      if (!names.empty()) names += ", ";
      names += to_string(*event);
      latest_ = event::common(*event);
    }
    return names;
  }
  [[nodiscard]] const DeviceCounters& counters() const { return device_->device_counters(); }

  base::Now now_{std::chrono::seconds(1)};
  DeviceConfig config_;
  test::FakePort port_{info(1)};
  std::unique_ptr<Device> device_;
  event::Common latest_;  // of the events read
};

TEST_F(Link, EachChangeIsToldOnce_VERBS_20_b) {
  int mine = 0;
  device_->set_context(&mine);
  run_for(3 * kInterval);
  EXPECT_EQ(told(), "") << "it counts as up";
  port_.link_state = LinkState::Down;
  run_for(kInterval);
  EXPECT_EQ(told(), "port down");
  EXPECT_EQ(latest_.qp, 0u);
  EXPECT_EQ(latest_.device_context, &mine);
  EXPECT_EQ(latest_.detail,
            "rnic0: the link of its port is down: connections send again until they time out; is "
            "its other end up?");
  run_for(10 * kInterval);
  EXPECT_EQ(told(), "") << "it is down still";
  port_.link_state = LinkState::Up;
  run_for(kInterval);
  EXPECT_EQ(told(), "port up");
  EXPECT_EQ(latest_.detail, "rnic0: the link of its port is up again");
  run_for(10 * kInterval);
  EXPECT_EQ(told(), "");
  EXPECT_EQ(counters().link_downs, 1u);
  EXPECT_EQ(counters().link_ups, 1u);
  EXPECT_EQ(counters().ports_gone, 0u);
}

TEST_F(Link, APortThatIsGoneIsToldOnceAndAskedNoMore_VERBS_20_b) {
  port_.link_state = LinkState::Gone;
  run_for(kInterval);
  EXPECT_EQ(told(), "device fatal");
  EXPECT_EQ(latest_.detail,
            "rnic0: its port is gone: connections will time out; close the context, and open one "
            "when the port is there again");
  const uint64_t asked = port_.link_calls;
  port_.link_state = LinkState::Up;
  run_for(10 * kInterval);
  EXPECT_EQ(told(), "");
  EXPECT_EQ(port_.link_calls, asked);
  EXPECT_EQ(device_->next_deadline(), base::kNever);
  EXPECT_EQ(counters().ports_gone, 1u);
  EXPECT_EQ(counters().link_ups, 0u);
}

TEST_F(Link, APortMayBeGoneWhileItsLinkIsDown_VERBS_20_b) {
  port_.link_state = LinkState::Down;
  run_for(kInterval);
  port_.link_state = LinkState::Gone;
  run_for(kInterval);
  EXPECT_EQ(told(), "port down, device fatal");
}

// A link that goes and comes between two looks is not noticed; one that is another at each look is
// told of at each look, and no oftener.
TEST_F(Link, FlappingIsToldAsItIsSeen) {
  for (int i = 0; i < 20; ++i) {
    port_.link_state = LinkState::Down;
    run_for(milliseconds(1));
    port_.link_state = LinkState::Up;
    run_for(milliseconds(24));  // a look is at a multiple of 25 ms
  }
  EXPECT_EQ(told(), "");
  for (int i = 0; i < 2; ++i) {
    port_.link_state = LinkState::Down;
    run_for(kInterval);
    port_.link_state = LinkState::Up;
    run_for(kInterval);
  }
  EXPECT_EQ(told(), "port down, port up, port down, port up");
  EXPECT_EQ(counters().link_downs, 2u);
}

// A port is not asked in each turn, and who sleeps wakes for it.
TEST_F(Link, IsLookedAtOnceInAnInterval) {
  EXPECT_EQ(port_.link_calls, 1u);
  EXPECT_EQ(device_->next_deadline(), now_ + kInterval);
  run_for(10 * kInterval);
  EXPECT_EQ(port_.link_calls, 11u);
  now_ += 50 * kInterval;  // it has slept through some
  device_->poll(now_);
  device_->poll(now_);
  EXPECT_EQ(port_.link_calls, 12u);
  EXPECT_EQ(device_->next_deadline(), now_ + kInterval);
}

TEST_F(Link, APortThatCannotTellIsAskedOnce) {
  test::FakePort other(info(2));
  Device device(config_, other, now_);
  EXPECT_EQ(device.next_deadline(), base::kNever);
  for (int i = 0; i < 10; ++i) device.poll(now_ += kInterval);
  EXPECT_EQ(other.link_calls, 1u);
  EXPECT_FALSE(device.poll_event());
}

TEST_F(Link, ChangesAreLogged) {
  test::Logged log;
  for (const LinkState state : {LinkState::Down, LinkState::Up, LinkState::Gone}) {
    port_.link_state = state;
    run_for(2 * kInterval);
  }
  const std::string said = log.take();
  const size_t down = said.find("rnic0: the link of its port is down");
  const size_t up = said.find("rnic0: the link of its port is up again");
  const size_t gone = said.find("rnic0: its port is gone");
  ASSERT_NE(gone, std::string::npos) << said;
  EXPECT_LT(down, up);
  EXPECT_LT(up, gone);
  EXPECT_EQ(said.find("rnic0: the link of its port is down", down + 1), std::string::npos) << said;
}

/// A watch beside a queue of events that a test fills.
class FullQueue : public ::testing::Test {
 protected:
  static constexpr uint32_t kDepth = 16;

  FullQueue() {
    base::set_log_level(base::LogLevel::Off);
    port_.link_state = LinkState::Up;
    while (events_.offer(event::PeerClosed{})) ++others_;
  }
  void look_at(LinkState state) {
    port_.link_state = state;
    watch().look(events_, now_ += kInterval);
    watch().validate();
  }
  LinkWatch& watch() {
    if (!watch_) watch_.emplace(name_, port_, counters_, now_);
    return *watch_;
  }
  /// Empties the queue. \return what was in it beside the events that have filled it
  std::string read() {
    std::string names;
    while (const auto event = events_.poll()) {
      if (std::holds_alternative<event::PeerClosed>(*event)) continue;
      if (!names.empty()) names += ", ";
      names += to_string(*event);
    }
    return names;
  }

  base::Now now_{std::chrono::seconds(1)};
  const std::string name_ = "rnic0";
  test::FakePort port_{info(1)};
  DeviceCounters counters_;
  uint64_t lost_ = 0;
  EventQueue events_{kDepth, lost_};
  uint32_t others_ = 0;
  std::optional<LinkWatch> watch_;
};

TEST_F(FullQueue, AChangeWaitsForRoom) {
  EXPECT_GE(others_, kDepth);
  for (int i = 0; i < 5; ++i) look_at(LinkState::Down);
  EXPECT_EQ(lost_, 0u) << "it is told yet";
  EXPECT_EQ(counters_.link_downs, 1u);
  ASSERT_TRUE(events_.poll());
  look_at(LinkState::Down);
  look_at(LinkState::Down);
  EXPECT_EQ(read(), "port down");
}

TEST_F(FullQueue, WhatIsOverBeforeThereIsRoomIsNotTold) {
  look_at(LinkState::Down);
  look_at(LinkState::Up);
  EXPECT_EQ(read(), "");
  look_at(LinkState::Up);
  EXPECT_EQ(read(), "");
  EXPECT_EQ(counters_.link_downs, 1u);
  EXPECT_EQ(counters_.link_ups, 1u);
}

TEST_F(FullQueue, ThatAPortIsGoneWaitsForRoom) {
  look_at(LinkState::Gone);
  look_at(LinkState::Gone);
  EXPECT_NE(watch().next_look(), base::kNever) << "nobody has been told";
  EXPECT_EQ(read(), "");
  look_at(LinkState::Up);  // it does not come back
  EXPECT_EQ(read(), "device fatal");
  EXPECT_EQ(watch().next_look(), base::kNever);
}

// Nothing but the event: a connection goes on, and what it sends arrives if the link carries it.
TEST_F(Link, ConnectionsGoOn) {
  test::FakePort far_port(info(2));
  test::FakePort::connect(port_, far_port);
  DeviceConfig far_config = config_;
  far_config.net.address = IpAddress::v4(0x0a000002);
  Device far(far_config, far_port, now_);
  const auto turns = [&](int n) {
    for (; n != 0; --n) {
      run_for(milliseconds(1));
      far.poll(now_);
    }
  };
  const auto listener = far.listen_stream({{}, 7000}, 4);
  ASSERT_TRUE(listener.has_value());
  const auto near = device_->connect_stream({far_config.net.address, 7000}, {}, now_);
  ASSERT_TRUE(near.has_value());
  turns(20);
  StreamSocket* const accepted = (*listener)->next();
  ASSERT_NE(accepted, nullptr);
  port_.link_state = LinkState::Down;
  turns(200);
  EXPECT_EQ(told(), "port down");
  EXPECT_TRUE((*near)->is_established());
  EXPECT_FALSE((*near)->how_ended());
  ASSERT_TRUE((*near)->reserve_ring().has_value());
  ASSERT_TRUE(accepted->reserve_ring().has_value());
  const std::vector<uint8_t> octets{1, 2, 3, 4};
  ASSERT_EQ((*near)->put(octets), octets.size());
  device_->ring_doorbell((*near)->doorbell());
  turns(5);
  std::vector<uint8_t> arrived(octets.size());
  EXPECT_EQ(accepted->take(arrived), octets.size());
  EXPECT_EQ(arrived, octets);
  device_.reset();  // before the port that its last frames go to
}

}  // namespace
}  // namespace rnic::device
