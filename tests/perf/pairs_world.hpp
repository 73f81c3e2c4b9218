/// \file
/// Two devices of one context with many queue pairs between them, for benchmarks of the public API.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "rnic/verbs.hpp"

namespace rnic::perf {

constexpr uint16_t kFirstPort = 7471;
constexpr uint16_t kPorts = 64;  // of the listener: each has ephemeral ports of its own
constexpr size_t kMessage = 64;   // octets
constexpr uint32_t kAtOnce = 64;  // connections that are being made or ended together
constexpr std::chrono::seconds kPatience(10);  // without any progress: something hangs

/// Ends the program: what cannot be measured has no figure.
[[noreturn]] inline void fail(const std::string& what, int status = 2) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(status);
}

template <typename T>
T must(Result<T> result) {
  if (!result) fail(result.error().message);
  return std::move(*result);
}
inline void must(const Status& status) {
  if (!status) fail(status.error().message);
}

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// One queue pair with its completion queue.
struct End {
  CompletionQueue cq;
  QueuePair qp;
};

/// A device with its queue pairs, and one region that all of them use: what is sent stands in its
/// first half, what arrives in its second.
class Side {
 public:
  Side(Context& context, const std::string& name, uint8_t octet)
      : device_(must(context.device(name))),
        pd_(must(device_.alloc_pd())),
        memory_(2 * kMessage, std::byte{octet}),
        region_(must(pd_.register_memory(memory_, Access::LocalRead | Access::LocalWrite))) {}

  [[nodiscard]] Device& device() { return device_; }
  [[nodiscard]] ProtectionDomain& pd() { return pd_; }
  [[nodiscard]] std::vector<End>& ends() { return ends_; }
  void make(uint32_t depth) {
    auto cq = must(device_.create_cq(2 * depth));
    QueuePairOptions options;
    options.send_depth = options.receive_depth = depth;
    auto qp = must(pd_.create_qp(cq, cq, options));
    ends_.push_back({std::move(cq), std::move(qp)});
  }
  void post_receive(size_t i) {
    must(ends_[i].qp.post_receive(1, SgeList{region_.sge(kMessage, kMessage)}));
  }
  void post_send(size_t i) { must(ends_[i].qp.post_send(2, SgeList{region_.sge(0, kMessage)})); }
  /// Takes what has completed on queue pair i. \return completions
  uint32_t reap(size_t i) {
    std::array<Completion, 32> done;
    const uint32_t got = ends_[i].cq.poll(done);
    for (uint32_t n = 0; n < got; ++n) {
      if (done[n].status != CompletionStatus::Success) fail(describe(done[n]));
    }
    return got;
  }
  /// What has arrived is gone, so that it has to arrive again.
  void expect_and_clear(uint8_t octet) {
    for (size_t at = kMessage; at < 2 * kMessage; ++at) {
      if (memory_[at] != std::byte{octet}) fail("an octet is not what was sent");
      memory_[at] = std::byte{0};
    }
  }

 private:
  Device device_;
  ProtectionDomain pd_;
  std::vector<std::byte> memory_;
  MemoryRegion region_;
  std::vector<End> ends_;
};

inline Config with_room(Config config, uint32_t pairs) {
  const std::string most = std::to_string(std::max(pairs, kAtOnce));
  config.set("limits.max_connections=" + most);
  config.set("limits.max_qps=" + most);
  config.set("limits.max_pending_requests=" + std::to_string(kAtOnce));
  config.set("limits.max_starting=" + std::to_string(kAtOnce));
  return config;
}

/// Two devices, of which the first connects and the second accepts.
class World {
 public:
  /// Over the wire in memory, in one thread, with room for `pairs` connections.
  explicit World(uint32_t pairs) : World(with_room(Config::loopback(), pairs)) {}
  /// \param config of rnic0 and rnic1, each with an address and with room for all connections
  explicit World(const Config& config)
      : context_(must(Context::open(config))),
        client_(context_, "rnic0", 1),
        server_(context_, "rnic1", 2) {
    for (uint16_t i = 0; i < kPorts; ++i) {
      must(server_.device().listen(static_cast<uint16_t>(kFirstPort + i)));
    }
  }

  /// Makes queue pairs until there are `total` on each side, and connects them.
  void connect(size_t total, uint32_t depth) {
    size_t up = 2 * client_.ends().size();
    for (size_t i = client_.ends().size(); i < total; ++i) {
      client_.make(depth);
      server_.make(depth);
      const auto port = static_cast<uint16_t>(kFirstPort + connects_++ % kPorts);
      // Requests do not arrive in the order of the connects: each says whose it is.
      std::array<uint8_t, sizeof i> whose;
      std::memcpy(whose.data(), &i, sizeof i);
      must(client_.ends()[i].qp.connect({server_.device().address(), port}, whose));
    }
    turn_until("connections did not come up", [&] { return up == 2 * total; },
               [&](Side& side, const Event& event) {
                 if (const auto* request = std::get_if<event::ConnectRequest>(&event)) {
                   size_t whose = 0;
                   std::memcpy(&whose, request->private_data.data(), sizeof whose);
                   must(side.ends().at(whose).qp.accept(request->request));
                 } else if (std::holds_alternative<event::Established>(event)) {
                   ++up;
                 } else {
                   fail(std::string("while connecting: ") + event::to_string(event));
                 }
               });
  }
  /// `count` messages each way on every queue pair, each compared with what was sent.
  void talk(uint32_t count) {
    for (size_t i = 0; i < client_.ends().size(); ++i) {
      for (uint32_t n = 0; n < count; ++n) {
        exchange(client_, 1, server_, i);
        exchange(server_, 2, client_, i);
      }
    }
  }
  /// As talk(), but all messages of a queue pair are posted before the first of them is sent.
  void talk_at_once(uint32_t count) {
    for (size_t i = 0; i < client_.ends().size(); ++i) {
      exchange(client_, 1, server_, i, count);
      exchange(server_, 2, client_, i, count);
    }
  }
  /// Ends all connections gracefully and destroys the queue pairs.
  void end_all() {
    size_t left = 2 * client_.ends().size();
    for (End& end : client_.ends()) must(end.qp.disconnect());
    turn_until("connections did not end", [&] { return left == 0; },
               [&](Side&, const Event& event) {
                 if (std::holds_alternative<event::Disconnected>(event)) --left;
               });
    for (Side* side : {&client_, &server_}) {
      for (End& end : side->ends()) {
        must(end.qp.destroy());
        must(end.cq.destroy());
      }
      side->ends().clear();
    }
  }
  [[nodiscard]] Context& context() { return context_; }
  [[nodiscard]] Side& client() { return client_; }
  [[nodiscard]] Side& server() { return server_; }
  [[nodiscard]] bool quiescent() {
    return context_.wait_until(
        [&] { return client_.device().quiescent() && server_.device().quiescent(); }, kPatience);
  }

 private:
  void exchange(Side& from, uint8_t octet, Side& to, size_t i, uint32_t count = 1) {
    for (uint32_t n = 0; n < count; ++n) to.post_receive(i);
    for (uint32_t n = 0; n < count; ++n) from.post_send(i);
    uint32_t arrived = 0;
    uint32_t sent = 0;
    const bool both = context_.wait_until(
        [&] {
          arrived += to.reap(i);
          sent += from.reap(i);
          return arrived == count && sent == count;
        },
        kPatience);
    if (!both) fail("a message did not arrive");
    to.expect_and_clear(octet);
  }
  /// Turns both devices, and hands each event to `on(side, event)`, until `done()`.
  template <typename Done, typename On>
  void turn_until(const char* what, Done&& done, On&& on) {
    const bool in_time = context_.wait_until(
        [&] {
          for (Side* side : {&client_, &server_}) {
            while (const auto event = side->device().poll_event()) on(*side, *event);
          }
          return done();
        },
        kPatience);
    if (!in_time) fail(what);
  }

  Context context_;
  Side client_;
  Side server_;
  uint64_t connects_ = 0;
};

inline uint32_t number(const char* text, uint32_t least, uint32_t most) {
  char* end = nullptr;
  const unsigned long value = std::strtoul(text, &end, 10);
  if (end == text || *end != 0 || value < least || value > most) {
    fail(std::string("not a number of ") + std::to_string(least) + " to " + std::to_string(most) +
         ": " + text);
  }
  return static_cast<uint32_t>(value);
}

}  // namespace rnic::perf
