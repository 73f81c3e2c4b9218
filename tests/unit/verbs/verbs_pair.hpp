// Two devices of one context, the way an application sees them.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "rnic/verbs.hpp"
#include "support/at.hpp"

namespace rnic::test {

inline constexpr auto kPatience = std::chrono::seconds(20);  // only a failure takes that long
inline constexpr AccessSet kEverything =
    Access::LocalWrite | Access::RemoteWrite | Access::RemoteRead;

/// Short timers, no hugepages: the machine of a test has a single heap for the whole process.
inline Config loopback_config(bool threaded = false) {
  Config config = Config::loopback();
  config.set("eal.hugepages=off");
  config.set("device.*.random_secret=false");
  config.set("tcp.rto_initial=50ms");
  config.set("tcp.rto_min=20ms");
  config.set("tcp.delayed_ack=1ms");
  config.set("tcp.time_wait=0s");
  if (threaded) config.set("worker.mode=threaded");
  return config;
}

/// An address of the loopback network that tests which run beside this one do not have, so that
/// both may listen on the same port.
inline std::string own_loopback() {
  const auto process = static_cast<uint32_t>(getpid());
  return "127." + std::to_string(1 + (process >> 16 & 0x7f)) + "." +
         std::to_string(process >> 8 & 0xff) + "." + std::to_string(process & 0xff);
}

/// Configures the two devices over the system's sockets.
inline Config socket_config(bool threaded) {
  std::string text;
  for (const char* name : {"rnic0", "rnic1"}) {
    text += std::string("[[device]]\nname = \"") + name + "\"\nport = \"socket\"\naddress = \"" +
            own_loopback() + "/8\"\n";
  }
  Config config = Config::from_text(text);
  if (threaded) config.set("worker.mode=threaded");
  return config;
}

inline std::vector<uint8_t> octets(size_t size, uint64_t seed) {
  std::vector<uint8_t> out(size);
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (uint8_t& octet : out) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    octet = static_cast<uint8_t>(state >> 56);
  }
  return out;
}

/// Unwraps a Result; a failure fails the test with the message and ends it.
template <typename T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  throw std::runtime_error(result.error().message);
}
inline void must(const Status& status) {
  if (!status) throw std::runtime_error(status.error().message);
}

/// Registered memory; change its octets, not the vector. Declare it after its Side.
struct Memory {
  std::vector<uint8_t> data;
  MemoryRegion region;

  /// \param only whose stream may use it alone
  Memory(ProtectionDomain& pd, std::vector<uint8_t> content, AccessSet rights,
         const QueuePair* only = nullptr)
      : data(std::move(content)),
        region(must(pd.register_memory(std::as_writable_bytes(std::span(data)),
                                       RegionOptions{.access = rights, .queue_pair = only}))) {}
  [[nodiscard]] Sge all() const { return region.sge(0, static_cast<uint32_t>(data.size())); }
};

/// A queue pair with everything that it needs.
struct Side {
  Device device;
  ProtectionDomain pd;
  CompletionQueue send_cq;
  CompletionQueue receive_cq;
  QueuePair qp;

  explicit Side(Device d, uint32_t depth = 64)
      : Side(std::move(d), {.send_depth = depth, .receive_depth = depth}, 2 * depth) {}
  /// \param completions that fit each completion queue
  Side(Device d, const QueuePairOptions& options, uint32_t completions)
      : device(std::move(d)),
        pd(must(device.alloc_pd())),
        send_cq(must(device.create_cq(completions, {.several_threads = options.several_threads}))),
        receive_cq(
            must(device.create_cq(completions, {.several_threads = options.several_threads}))),
        qp(must(pd.create_qp(send_cq, receive_cq, options))) {}
};

inline SendRequest request(Opcode opcode, const Sge& sge, uint64_t id = 1) {
  SendRequest out;
  out.id = id;
  out.opcode = opcode;
  out.sges = {sge};
  return out;
}

inline SendRequest request(Opcode opcode, const Sge& sge, const Memory& remote, uint64_t id = 1) {
  SendRequest out = request(opcode, sge, id);
  out.remote = {remote.region.stag(), remote.region.address()};
  return out;
}

inline ReceiveRequest receive(const Sge& sge, uint64_t id = 1) {
  ReceiveRequest out;
  out.id = id;
  out.sges = {sge};
  return out;
}

/// A context with rnic0 and rnic1, whose events are sorted by device.
class World {
 public:
  explicit World(const Config& config = loopback_config())
      : context(must(Context::open(config))),
        left(must(context.device("rnic0"))),
        right(must(context.device("rnic1"))) {}

  bool wait(const std::function<bool()>& done) { return context.wait_until(done, kPatience); }

  /// The next event of that kind at that device (and of that queue pair); what else comes is kept.
  template <typename Kind>
  std::optional<Kind> await(Device& device, uint32_t qp = 0) {
    std::optional<Kind> found;
    wait([&] {
      found = take<Kind>(device, qp);
      return found.has_value();
    });
    return found;
  }

  /// Takes what has come, without waiting.
  template <typename Kind>
  std::optional<Kind> take(Device& device, uint32_t qp = 0) {
    auto& events = device.name() == "rnic0" ? left_events_ : right_events_;
    while (auto next = device.poll_event()) events.push_back(std::move(*next));
    const auto it = std::find_if(events.begin(), events.end(), [&](const Event& event) {
      return std::holds_alternative<Kind>(event) && (qp == 0 || common(event).qp == qp);
    });
    if (it == events.end()) return std::nullopt;
    Kind out = std::get<Kind>(std::move(*it));
    events.erase(it);
    return out;
  }

  std::optional<Completion> await(CompletionQueue& queue) {
    Completion out;
    if (!wait([&] { return queue.poll({&out, 1}) == 1; })) return std::nullopt;
    return out;
  }

  /// `a` of rnic0 connects to `b` of rnic1.
  void connect(Side& a, Side& b, uint16_t port = 7471) {
    must(right.listen(port));
    must(a.qp.connect({right.address(), port}));
    const auto asked = await<event::ConnectRequest>(right);
    if (!asked) throw std::runtime_error("no connection request came");
    must(b.qp.accept(asked->request));
    if (!await<event::Established>(left, a.qp.number()) ||
        !await<event::Established>(right, b.qp.number())) {
      throw std::runtime_error("the connection was not established");
    }
    must(right.unlisten(port));
  }

  /// Both sides close and see it.
  void disconnect(Side& a, Side& b) {
    must(a.qp.disconnect());
    EXPECT_TRUE(await<event::PeerClosed>(right, b.qp.number()));
    must(b.qp.disconnect());
    EXPECT_TRUE(await<event::Disconnected>(left, a.qp.number()));
    EXPECT_TRUE(await<event::Disconnected>(right, b.qp.number()));
  }

  bool becomes_quiescent() {
    return wait([&] { return left.quiescent() && right.quiescent(); });
  }

  /// A completion with success, of that request.
  void expect_done(CompletionQueue& queue, uint64_t id, uint32_t length) {
    const auto done = await(queue);
    ASSERT_TRUE(done);
    EXPECT_EQ(done->status, CompletionStatus::Success) << to_string(done->status);
    EXPECT_EQ(done->id, id);
    EXPECT_EQ(done->length, length);
  }

  Context context;
  Device left;
  Device right;

 private:
  std::deque<Event> left_events_;
  std::deque<Event> right_events_;
};

/// One Write, one Read and one Send of `size` octets from a to b, verified.
inline void exchange(World& world, Side& a, Side& b, uint32_t size, uint64_t seed) {
  Memory near(a.pd, octets(size, seed), Access::LocalWrite);
  Memory far(b.pd, std::vector<uint8_t>(size), kEverything);
  const std::vector<uint8_t> first = near.data;
  must(a.qp.post_send(request(Opcode::Write, near.all(), far, 11)));
  world.expect_done(a.send_cq, 11, size);

  std::ranges::fill(near.data, uint8_t{0});
  must(a.qp.post_send(request(Opcode::Read, near.all(), far, 12)));
  world.expect_done(a.send_cq, 12, size);
  EXPECT_EQ(near.data, first) << size;
  EXPECT_EQ(far.data, first) << size;

  std::ranges::copy(octets(size, seed + 1), near.data.begin());  // the registered octets stay
  must(b.qp.post_receive(receive(far.all(), 21)));
  must(a.qp.post_send(request(Opcode::Send, near.all(), 13)));
  world.expect_done(a.send_cq, 13, size);
  world.expect_done(b.receive_cq, 21, size);
  EXPECT_EQ(far.data, near.data) << size;
}

}  // namespace rnic::test
