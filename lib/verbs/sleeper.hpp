/// \file
/// Sleeper: lets a thread that drives devices sleep until there is work.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/fail.hpp"
#include "base/time.hpp"
#include "device/device.hpp"
#include "socket/transport.hpp"
#include "wakeup/descriptor.hpp"
#include "wakeup/event_signal.hpp"
#include "wakeup/poller.hpp"

namespace rnic::verbs {

/// One descriptor for several devices: it becomes readable when something comes to their ports, at
/// the next deadline, and when a bell rings.
///
///     while (devices have work) poll them;
///     if (sleeper.arm(now)) sleeper.sleep(now, limit);
///
/// Belongs to the thread that drives the devices; any thread may ring.
class Sleeper {
 public:
  /// How long a port that cannot tell of frames (net_memif, most NICs) is left alone.
  static constexpr base::Duration kPause = std::chrono::microseconds(50);

  /// ResourceExhausted when the system has no descriptor left. \param devices outlive it
  /// \param sockets the transport of the only device, in which sleep() then sleeps itself; nullptr:
  /// there is none, or another thread may poll the devices meanwhile
  static Result<std::unique_ptr<Sleeper>> open(std::vector<device::Device*> devices,
                                               socket::Transport* sockets = nullptr);
  ~Sleeper() = default;
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  /// Called after a turn of all devices that served nothing. \return false: there is something to
  /// do now; true: fd() becomes readable as soon as there is
  bool arm(base::Now now);
  void disarm() { bell_.disarm(); }
  /// Sleeps until there is something to do, at most until `limit`. Called after arm().
  void sleep(base::Now now, base::Now limit);
  /// As sleep(), where another thread may call keep_deadline() meanwhile.
  void sleep_until(base::Now now, base::Now until) const;

  /// Sleeps until the bell rings, at most for `longest`, whatever comes to the ports. Called while
  /// the bell is armed. \return whether it has rung; it may have for nothing, and stays so until
  /// the next arm()
  [[nodiscard]] bool pause(base::Duration longest) const;
  /// The bell has rung since it was armed.
  [[nodiscard]] bool was_rung() const { return !bell_.is_armed(); }

  /// Work was added. Any thread.
  void ring() { bell_.ring(); }
  /// The thread that sleeps has added work itself.
  void ring_own() { bell_.ring_unfenced(); }
  /// Work was added, and a full fence has been passed since. Any thread.
  void ring_fenced() { bell_.ring_unfenced(); }

  /// The descriptor, for poll() and epoll of others; set_timer() makes it readable at the deadline
  /// of the latest arm(), too.
  [[nodiscard]] int fd() const { return poller_.fd(); }
  void set_timer(base::Now now);
  /// Called after a turn: a thread that sleeps on the descriptor without another arm() must not
  /// miss a deadline that was set in between.
  void check_timer();
  /// The end of a sleep that begins now, by the latest arm(). No timer of keep_deadline() is left.
  [[nodiscard]] base::Now begin_sleep();
  /// Called after a turn that another thread has done instead of the one that sleeps: that one is
  /// woken for what the turn has left over, and at a deadline that is set since.
  void keep_deadline(base::Now now);

 private:
  struct Watched {
    device::Device* device = nullptr;
    std::optional<int> descriptor;  // the one that epoll watches
  };

  Sleeper(const std::vector<device::Device*>& devices, socket::Transport* sockets,
          wakeup::EventSignal signal, wakeup::Poller poller, wakeup::Descriptor timer);
  [[nodiscard]] base::Now next_deadline() const;
  void set_timer_by(base::Now when, base::Now now);
  void set_timer_to(base::Now when, base::Now now);
  [[nodiscard]] bool listen_to(Watched& watched) const;

  std::vector<Watched> devices_;
  socket::Transport* const sockets_;
  wakeup::Bell bell_;
  wakeup::Poller poller_;              // of the bell, the timer and the ports
  wakeup::Descriptor timer_;           // a timerfd
  base::Now deadline_ = base::kNever;  // of the latest arm()
  base::Now timer_at_ = base::kNever;  // the time that the timerfd is set to
};

}  // namespace rnic::verbs
