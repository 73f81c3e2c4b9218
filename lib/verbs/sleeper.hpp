/// \file
/// Sleeper: what a thread that drives devices sleeps on.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/fail.hpp"
#include "base/time.hpp"
#include "device/device.hpp"
#include "wakeup/descriptor.hpp"
#include "wakeup/event_signal.hpp"
#include "wakeup/poller.hpp"

namespace rnic::verbs {

/// One descriptor of several devices: what comes to their ports, the next deadline, and a bell.
///
///     while (devices have work) poll them;
///     if (sleeper.arm(now)) sleeper.sleep(now, limit);
///
/// Belongs to the thread that drives the devices; any thread rings.
class Sleeper {
 public:
  /// Of a port that cannot tell of frames (net_memif, most NICs): how long it is left alone.
  static constexpr base::Duration kPause = std::chrono::microseconds(50);

  /// ResourceExhausted when the system has no descriptor left. \param devices outlive it
  static Result<std::unique_ptr<Sleeper>> open(std::vector<device::Device*> devices);
  ~Sleeper() = default;
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  /// Behind a turn of all devices that served nothing. False: there is something to do now. True:
  /// from here on fd() is readable as soon as there is.
  bool arm(base::Now now);
  void disarm() { bell_.disarm(); }
  /// Until there is something to do, `limit` at the longest. Behind arm().
  void sleep(base::Now now, base::Now limit) const;

  /// Any thread: work was added.
  void ring() { bell_.ring(); }
  /// The thread that sleeps has added work itself.
  void ring_own() { bell_.ring_unfenced(); }

  /// For poll() and epoll of others, who are to know of the deadline of the latest arm(), too.
  [[nodiscard]] int fd() const { return poller_.fd(); }
  void set_timer(base::Now now);
  /// Behind a turn: whoever sleeps on the descriptor without another arm() must not sleep through a
  /// deadline that has come in between.
  void check_timer();

 private:
  struct Watched {
    device::Device* device = nullptr;
    std::optional<int> descriptor;  // that epoll knows of
  };

  Sleeper(const std::vector<device::Device*>& devices, wakeup::EventSignal signal,
          wakeup::Poller poller, wakeup::Descriptor timer);
  [[nodiscard]] base::Now next_deadline() const;
  [[nodiscard]] bool listen_to(Watched& watched) const;

  std::vector<Watched> devices_;
  wakeup::Bell bell_;
  wakeup::Poller poller_;              // of the bell, the timer and the ports
  wakeup::Descriptor timer_;           // a timerfd
  base::Now deadline_ = base::kNever;  // of the latest arm()
  base::Now timer_at_ = base::kNever;  // what the timerfd is set to
};

}  // namespace rnic::verbs
