/// \file
/// EventDesk: hands the events of one device to the calls that wait for them (rnic/blocking.hpp).
///
/// Threads: in a threaded context several threads may make any of the calls at once.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "rnic/verbs.hpp"
#include "verbs/desk_place.hpp"

namespace rnic::verbs {

/// The outcome of the connection of one queue pair.
struct Fate {
  std::optional<event::Established> established{};
  std::optional<Error> failure{};  ///< why it was not established
  bool peer_closed = false;
  bool ended = false;
};

/// A peer that waits for the answer to its connection request.
struct Asking {
  RequestHandle request{};
  Endpoint remote{};
};

/// The time until which a call waits, on the context's clock.
class WaitEnd {
 public:
  WaitEnd(const Context& context, std::chrono::nanoseconds limit);
  /// The time that is left; kForever: the wait has no end.
  [[nodiscard]] std::chrono::nanoseconds left(const Context& context) const;

 private:
  std::chrono::nanoseconds at_;
};

class EventDesk {
 public:
  /// The most events kept that nobody has asked for. The device bounds requests:
  /// limits.max_pending_requests.
  static constexpr size_t kMaxKept = 256;

  /// Device::open_event_desk() makes it: two desks of a device would miss each other's events.
  EventDesk(Device device, DeskPlace place, ProtectionDomain pd);

  [[nodiscard]] const Context& context() const { return context_; }
  [[nodiscard]] const Device& device() const { return device_; }
  /// \return a handle of the device for calls that change it
  [[nodiscard]] Device handle() const { return device_; }
  /// Makes a queue pair in the desk's protection domain.
  Result<QueuePair> create_qp(CompletionQueue& send_cq, CompletionQueue& receive_cq,
                              const QueuePairOptions& options) {
    return pd_.create_qp(send_cq, receive_cq, options);
  }
  /// Registers memory in the desk's protection domain.
  Result<MemoryRegion> register_memory(std::span<std::byte> memory, AccessSet access) {
    return pd_.register_memory(memory, access);
  }
  /// Gives the devices of an inline context a turn.
  void poll() { context_.poll(); }
  /// \return whether the devices of both desks belong to one context
  [[nodiscard]] bool shares_context(EventDesk& other);
  /// \return whether this process was forked from the one that opened the desk
  [[nodiscard]] bool is_abandoned() const;

  /// Sorts events until `done`. \return false: the end came first
  bool wait(const std::function<bool()>& done, const WaitEnd& end);

  /// Takes the events that have come; wait() does, too.
  void sort_events();

  /// From now on events about this queue pair are its fate.
  void enroll(uint32_t qp);
  void strike(uint32_t qp);
  /// \return what `ask` returns for the fate of a queue pair that is enrolled
  template <typename Ask>
  auto ask(uint32_t qp, Ask&& ask) {
    const std::lock_guard lock(mutex_);
    return ask(fates_.at(qp));
  }

  /// The oldest request for the listener on `local` (Device::listen()). It stays until
  /// drop_request().
  std::optional<Asking> request_at(const Endpoint& local);
  /// Removes a request that was answered or is gone. \return the private data of the peer
  std::vector<uint8_t> drop_request(const RequestHandle& request);

  /// The oldest event that is not about an enrolled queue pair.
  std::optional<Event> take_other();
  [[nodiscard]] uint64_t lost() const;

 private:
  void sort(Event&& event);

  Device device_;
  DeskPlace place_;
  Context context_;  // a handle of our own: the application's may be gone
  ProtectionDomain pd_;
  pid_t owner_;

  mutable std::mutex mutex_;
  std::unordered_map<uint32_t, Fate> fates_;
  std::vector<event::ConnectRequest> requests_;
  std::vector<Event> others_;
  uint64_t lost_ = 0;  // events that found no room in others_
};

}  // namespace rnic::verbs
