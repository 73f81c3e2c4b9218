/// \file
/// Two devices on a simulated link, in virtual time.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "device/device.hpp"
#include "sim/sim.hpp"

namespace rnic::device {

inline constexpr uint16_t kPort = 7471;

/// One device and what its application has.
struct Host {
  explicit Host(const DeviceConfig& config, port::Port& port, base::Now now)
      : device(std::make_unique<Device>(config, port, now)) {}

  /// A queue pair with a domain and completion queues of its own.
  QueuePair* make_qp(uint32_t depth = 64, uint32_t cq_depth = 256) {
    QueuePairSpec spec;
    spec.answer_close = false;
    spec.pd = *device->alloc_pd();
    spec.send_cq = *device->create_cq(cq_depth);
    spec.receive_cq = *device->create_cq(cq_depth);
    spec.send_depth = spec.receive_depth = depth;
    return *device->create_qp(spec);
  }

  mem::Stag add(std::vector<uint8_t>& memory, uint32_t pd, AccessSet rights,
                std::optional<uint64_t> stream = {}) {
    mem::RegionSpec spec;
    spec.address = memory.data();
    spec.length = memory.size();
    spec.pd = pd;
    spec.rights = rights;
    spec.stream = stream;
    return *device->register_memory(spec);
  }

  std::vector<Completion> completions(CompletionQueue* cq) {
    std::vector<Completion> all(64);
    all.resize(cq->poll(all));
    return all;
  }

  /// The first event of a kind that came; it is taken.
  template <typename Kind>
  std::optional<Kind> take() {
    collect();
    for (auto it = events.begin(); it != events.end(); ++it) {
      if (!std::holds_alternative<Kind>(*it)) continue;
      Kind found = std::get<Kind>(std::move(*it));
      events.erase(it);
      return found;
    }
    return std::nullopt;
  }
  template <typename Kind>
  [[nodiscard]] bool has() {
    return count<Kind>() != 0;
  }
  template <typename Kind>
  [[nodiscard]] size_t count() {
    collect();
    return static_cast<size_t>(std::count_if(events.begin(), events.end(), [](const Event& e) {
      return std::holds_alternative<Kind>(e);
    }));
  }
  void collect() {
    while (auto event = device->poll_event()) events.push_back(std::move(*event));
  }

  std::unique_ptr<Device> device;
  std::vector<Event> events;
};

class DevicePair : public ::testing::Test {
 protected:
  using Tweak = std::function<void(DeviceConfig&)>;

  DevicePair() : DevicePair([](DeviceConfig&) {}) {}
  /// What stands between a device and its end of the link. It lives as long as the test.
  using Decorate = std::function<port::Port&(uint32_t host, port::Port& end)>;

  explicit DevicePair(
      const Tweak& tweak,
      const Decorate& decorate = [](uint32_t, port::Port& end) -> port::Port& { return end; })
      : link_(link_config()) {
    base::set_log_level(base::LogLevel::Off);
    for (uint32_t i = 0; i < 2; ++i) {
      DeviceConfig config;
      config.name = i == 0 ? "left" : "right";
      config.net.address = IpAddress::v4(0x0a000001u + i);
      config.seed = i + 1;
      config.tcp.max_connections = 64;
      config.tcp.max_records = 4096;
      config.tcp.max_records_per_connection = 1024;
      config.limits.max_qps = 32;
      config.limits.max_cqs = 64;
      config.limits.max_regions = 64;
      config.limits.max_connections = 32;
      config.limits.hold_octets = 1u << 20;
      tweak(config);
      port::Port& port = i == 0 ? static_cast<port::Port&>(link_.a()) : link_.b();
      hosts_[i] = std::make_unique<Host>(config, decorate(i, port), now_);
    }
    EXPECT_TRUE(right().device->listen(kPort).has_value());
  }

  Host& left() { return *hosts_[0]; }
  Host& right() { return *hosts_[1]; }
  [[nodiscard]] Endpoint right_end(uint16_t port = kPort) {
    return {right().device->config().net.address, port};
  }

  /// Lets the world run until `done`, or until nothing happens any more. \return done()
  bool run_until(const std::function<bool()>& done,
                 base::Duration limit = std::chrono::seconds(30)) {
    const base::Now end = now_ + limit;
    for (int steps = 0; steps < 1'000'000 && now_ < end; ++steps) {
      if (done()) return true;
      const uint32_t work = left().device->poll(now_) + right().device->poll(now_);
      for (auto& host : hosts_) host->device->validate();
      if (work != 0 || left().device->doorbell_ringing() || right().device->doorbell_ringing()) {
        now_ += base::Duration(100);
        continue;
      }
      const base::Now next =
          base::earlier(left().device->next_deadline(), right().device->next_deadline());
      if (next == base::kNever) break;
      now_ = std::max(now_ + base::Duration(1), next);
    }
    return done();
  }
  void run_for(base::Duration span) {
    run_until([] { return false; }, span);
  }

  /// Connects two queue pairs.
  void connect(QueuePair* from, QueuePair* to, std::vector<uint8_t> request = {1, 2, 3},
               std::vector<uint8_t> reply = {4, 5}, const ConnectOptions& options = {},
               const ConnectOptions& answer = {}) {
    ASSERT_TRUE(left().device->connect(*from, right_end(), request, now_, options).has_value());
    ASSERT_TRUE(run_until([&] { return right().has<event::ConnectRequest>(); }));
    const auto event = right().take<event::ConnectRequest>();
    EXPECT_EQ(event->private_data, request);
    ASSERT_TRUE(right().device->accept(event->request, *to, reply, now_, answer).has_value());
    ASSERT_TRUE(run_until(
        [&] { return left().has<event::Established>() && right().has<event::Established>(); }));
    EXPECT_EQ(left().take<event::Established>()->private_data, reply);
    EXPECT_TRUE(right().take<event::Established>().has_value());
  }

  static SendRequest work(Opcode opcode, uint64_t id, const std::vector<uint8_t>& memory,
                          mem::Stag stag, uint32_t length) {
    SendRequest w;
    w.id = id;
    w.opcode = opcode;
    w.sges = {{reinterpret_cast<uint64_t>(memory.data()), length, stag.value}};
    return w;
  }
  static ReceiveRequest receive(uint64_t id, const std::vector<uint8_t>& memory, mem::Stag stag,
                                uint32_t length) {
    ReceiveRequest w;
    w.id = id;
    w.sges = {{reinterpret_cast<uint64_t>(memory.data()), length, stag.value}};
    return w;
  }
  static std::vector<uint8_t> octets(size_t n, uint8_t seed) {
    std::vector<uint8_t> out(n);
    for (size_t i = 0; i < n; ++i) out[i] = static_cast<uint8_t>(seed + i * 7 + i / 251);
    return out;
  }

  /// Everything was returned, buffers included. The devices are gone then.
  void expect_all_returned() {
    run_until([&] {
      return left().device->quiescent() && right().device->quiescent() && link_.in_flight() == 0;
    });
    for (auto& host : hosts_) {
      EXPECT_TRUE(host->device->quiescent());
      EXPECT_EQ(host->device->live_connections(), 0u);
      host.reset();
    }
    EXPECT_EQ(link_.held(), 0u);
  }

  static sim::LinkConfig link_config() {
    sim::LinkConfig config;
    config.a_to_b.delay = config.b_to_a.delay = std::chrono::microseconds(20);
    config.slots = 1024;
    return config;
  }

  base::Now now_ = base::from_nanos(1'000'000);
  sim::Link link_;
  std::array<std::unique_ptr<Host>, 2> hosts_;
};

}  // namespace rnic::device
