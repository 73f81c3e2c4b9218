/// \file
/// Two devices over sockets of the system, in one process: by default a pair of queue pairs that
/// connect() joins over 127.0.0.1.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <vector>

#include "base/log.hpp"
#include "device/device.hpp"
#include "socket/socket.hpp"

namespace rnic::device {

inline constexpr AccessSet kRights = Access::LocalRead | Access::LocalWrite | Access::RemoteRead |
                                     Access::RemoteWrite | Access::RemoteAtomic;

class OnSockets : public ::testing::Test {
 protected:
  /// The devices as they are by default here.
  static socket::Config sockets() {
    socket::Config config;
    config.system_send_buffer = config.system_receive_buffer = 64 << 10;
    return config;
  }
  static DeviceConfig device() {
    DeviceConfig config;
    config.mpa.markers_receive = true;
    return config;
  }

  /// \param receive_wait how long messages to the right wait for a receive
  explicit OnSockets(uint32_t links = 1, const socket::Config& config = sockets(),
                     const DeviceConfig& left = device(), const DeviceConfig& right = device(),
                     base::Duration receive_wait = {}) {
    base::set_log_level(base::LogLevel::Off);
    for (int i = 0; i < 2; ++i) {
      transports_[i] = std::move(*socket::Transport::open(config, now_));
      devices_[i] = std::make_unique<Device>(i == 0 ? left : right, *transports_[i], now_);
      pds_[i] = *devices_[i]->alloc_pd();
      cqs_[i] = *devices_[i]->create_cq(64 * links);
      receive_cqs_[i] = *devices_[i]->create_cq(64 * links);
      for (uint32_t n = 0; n < links; ++n) {
        QueuePairSpec spec;
        spec.answer_close = false;
        spec.pd = pds_[i];
        spec.send_cq = cqs_[i];
        spec.receive_cq = receive_cqs_[i];
        if (i == 1) spec.receive_wait = receive_wait;
        qps_[i].push_back(*devices_[i]->create_qp(spec));
      }
    }
  }

  /// What else takes its turn with the devices.
  virtual void turn() {}

  template <typename Done>
  bool run_until(Done&& done, int only = -1) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < end) {
      if (done()) return true;
      now_ += std::chrono::microseconds(1);
      turn();
      for (int i = 0; i < 2; ++i) {
        if (only < 0 || only == i) devices_[i]->poll(now_);
      }
    }
    return false;
  }
  void turns(int n) {
    run_until([&] { return n-- == 0; });
  }
  /// Turns until that event comes; others before it are passed over.
  template <typename Kind>
  std::optional<Kind> event(int i) {
    std::optional<Event> next;
    const bool came = run_until([&] {
      next = devices_[i]->poll_event();
      return next && std::holds_alternative<Kind>(*next);
    });
    if (!came) return std::nullopt;
    return std::get<Kind>(std::move(*next));
  }
  /// The right device listens from then on, for a consumer of its. \return where
  Endpoint listen(uint32_t consumer = 0) {
    uint16_t port = 20'000;  // the first that nobody else has
    while (!devices_[1]->listen(Endpoint{IpAddress{}, port}, {}, consumer)) ++port;
    return {IpAddress::v4(0x7f000001), port};
  }
  void connect(uint32_t link, const Endpoint& there) {
    ASSERT_TRUE(devices_[0]->connect(*qps_[0][link], there, {}, now_).has_value());
    const auto asked = event<event::ConnectRequest>(1);
    ASSERT_TRUE(asked);
    ASSERT_TRUE(devices_[1]->accept(asked->request, *qps_[1][link], {}, now_).has_value());
    ASSERT_TRUE(event<event::Established>(0));
    ASSERT_TRUE(event<event::Established>(1));
  }
  void connect() { connect(0, listen()); }
  mem::Stag add(int i, std::vector<uint8_t>& memory, AccessSet rights) {
    mem::RegionSpec spec;
    spec.address = memory.data();
    spec.length = memory.size();
    spec.pd = pds_[i];
    spec.rights = rights;
    return *devices_[i]->register_memory(spec);
  }
  static SendRequest work(Opcode opcode, std::vector<uint8_t>& local, mem::Stag stag) {
    SendRequest w;
    w.opcode = opcode;
    w.sges = {{reinterpret_cast<uint64_t>(local.data()), static_cast<uint32_t>(local.size()),
               stag.value}};
    return w;
  }
  bool completed(int i, Completion& out, int only = -1) {
    return run_until([&] { return cqs_[i]->poll({&out, 1}) == 1; }, only);
  }

  base::Now now_{std::chrono::seconds(1)};
  std::array<std::unique_ptr<socket::Transport>, 2> transports_;
  std::array<std::unique_ptr<Device>, 2> devices_;
  std::array<uint32_t, 2> pds_{};
  std::array<CompletionQueue*, 2> cqs_{};
  std::array<CompletionQueue*, 2> receive_cqs_{};
  std::array<std::vector<QueuePair*>, 2> qps_;
};

}  // namespace rnic::device
