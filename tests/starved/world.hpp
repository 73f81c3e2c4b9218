/// \file
/// Two small devices of one context, and what a trial needs of them, made before anything is
/// scarce.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rnic/blocking.hpp"
#include "rnic/consumer.hpp"
#include "rnic/verbs.hpp"

namespace rnic::starved {

enum class Below : uint8_t {
  Sockets,  ///< the system's TCP, over the loopback interface
  Wire,     ///< our TCP over rings in memory
};

struct Setting {
  Below below = Below::Sockets;
  bool threaded = false;
};

[[nodiscard]] std::string name_of(const Setting& setting);
/// The configuration of a World. On sockets the devices have addresses of their own of 127/8, so
/// that processes that run at the same time do not meet.
[[nodiscard]] std::string config_text(const Setting& setting);

/// A queue pair with everything it needs.
struct End {
  std::optional<Device> device;
  ProtectionDomain pd;
  CompletionQueue cq;
  QueuePair qp;
  std::vector<uint8_t> octets;
  MemoryRegion region;
};

/// Ends the process with this line: something that has nothing to do with scarcity failed.
[[noreturn]] void broken(const std::string& what);

template <typename T>
T must(Result<T> result) {
  if (!result) broken(result.error().message);
  return std::move(*result);
}
inline void must(const Status& status) {
  if (!status) broken(status.error().message);
}

class World {
 public:
  explicit World(const Setting& setting, const std::vector<std::string>& overrides = {});
  /// Ends everything, tells an error when something is left.
  ~World();

  [[nodiscard]] Device& near() { return *near_; }
  [[nodiscard]] Device& far() { return *far_; }
  [[nodiscard]] bool on_sockets() const { return setting.below == Below::Sockets; }

  /// An End that is not connected.
  [[nodiscard]] End end(Device& device);
  /// Listens, connects, accepts; near() connects to far().
  void connect(End& a, End& b, uint16_t port);
  /// Connects near() to `listener`, which is at that port of far(): near_stream and far_stream are
  /// the two ends.
  void connect_stream(uint16_t port);
  /// Connects near() to `framed_listener`, which is at that port of far(): near_framed and
  /// far_framed are the two ends.
  void connect_framed(uint16_t port);
  /// New ends, connected; a Send and a Write verified; destroyed again.
  void prove_traffic();
  /// Forgets what a trial has left: requests are rejected, events dropped.
  void settle();

  /// Polls until `done`. False: not within some thousand turns, or (threaded) seconds.
  template <typename F>
  bool turn_until(F&& done) {
    return context->wait_until(std::ref(done), kPatience);
  }
  /// The next event of this kind (and of this queue pair); others are dropped.
  template <typename Kind>
  [[nodiscard]] bool await(Device& device, Kind& out, uint32_t of_qp = 0) {
    return turn_until([&] {
      while (auto event = device.poll_event()) {
        auto* found = std::get_if<Kind>(&*event);
        if (found == nullptr || (of_qp != 0 && found->qp != of_qp)) continue;
        out = std::move(*found);
        return true;
      }
      return false;
    });
  }
  bool await_completion(CompletionQueue& cq, Completion& out);

  static constexpr auto kPatience = std::chrono::seconds(10);

  Setting setting;
  Config config;
  std::optional<Context> context;

  // Things that trials work on, made by their preparation.
  End a;
  End b;
  event::ConnectRequest request;
  Completion completion;
  std::optional<Consumer> consumer;
  std::optional<ProtectionDomain> pd;
  std::optional<CompletionQueue> cq;
  std::optional<QueuePair> qp;
  std::optional<SharedReceiveQueue> srq;
  std::optional<MemoryRegion> region;
  std::optional<MemoryWindow> window;
  PortReservation reserved_port;
  std::optional<StreamListener> listener;
  Stream near_stream;
  Stream far_stream;
  std::optional<FramedStreamListener> framed_listener;
  FramedStream near_framed;
  FramedStream far_framed;
  FramingOptions framing;
  std::optional<blocking::Adapter> near_adapter;
  std::optional<blocking::Adapter> far_adapter;
  blocking::Listener blocking_listener;
  blocking::Connection near_link;
  blocking::Connection far_link;
  std::array<uint8_t, 300> octets{};
  IpAddress near_address;
  IpAddress far_address;
  std::string text;
  bool settled = false;

 private:
  std::optional<Device> near_;
  std::optional<Device> far_;
  uint16_t next_port_ = 20'000;
};

}  // namespace rnic::starved
