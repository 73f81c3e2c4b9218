/// \file
/// QueueAlarm: the descriptor of a completion queue, or of a device's events.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "base/fail.hpp"
#include "device/queue_listener.hpp"
#include "wakeup/event_signal.hpp"
#include "wakeup/poller.hpp"

namespace rnic::verbs {

/// The worker rings the alarm, and the thread that reads the queue arms it.
class QueueAlarm final : public device::QueueListener {
 public:
  /// ResourceExhausted when the system has no descriptor left.
  /// \param driver set if the thread that reads the queue also drives the device: a descriptor that
  ///        is readable when the device has something to do; then ours is readable, too
  static Result<std::unique_ptr<QueueAlarm>> open(std::optional<int> driver);
  ~QueueAlarm() override = default;
  QueueAlarm(const QueueAlarm&) = delete;
  QueueAlarm& operator=(const QueueAlarm&) = delete;

  // device::QueueListener
  void added(bool urgent) override { bell_.ring(urgent); }
  [[nodiscard]] bool awaits(bool urgent) const override { return bell_.is_armed_for(urgent); }

  /// Has the next entry make the descriptor readable. The caller looks at the queue once more after
  /// the call.
  void arm(base::BellFor what = base::BellFor::Anything) { bell_.arm(what); }
  /// As arm(), for one of several threads that sleep on the descriptor.
  /// \param is_left tells whether the queue has entries
  template <typename IsLeft>
  void arm_among_several(base::BellFor what, IsLeft&& is_left) {
    bell_.arm_among_several(what, std::forward<IsLeft>(is_left));
  }
  /// There is more in the queue than the caller has taken.
  void keep_readable() { bell_.ring_unfenced(); }
  [[nodiscard]] int fd() const { return poller_ ? poller_->fd() : own_fd(); }
  /// The bell's descriptor: it tells nothing of the device.
  [[nodiscard]] int own_fd() const { return bell_.signal().fd(); }

 private:
  QueueAlarm(wakeup::EventSignal signal, std::optional<wakeup::Poller> poller)
      : bell_(std::move(signal)), poller_(std::move(poller)) {}

  wakeup::Bell bell_;
  std::optional<wakeup::Poller> poller_;  // of the bell and the driver, if there is a driver
};

}  // namespace rnic::verbs
