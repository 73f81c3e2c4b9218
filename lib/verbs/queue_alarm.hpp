/// \file
/// QueueAlarm: the descriptor of a completion queue, or of a device's events.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>

#include "base/fail.hpp"
#include "device/queue_listener.hpp"
#include "wakeup/event_signal.hpp"

namespace rnic::verbs {

/// The worker rings, the thread that reads the queue arms.
class QueueAlarm final : public device::QueueListener {
 public:
  /// ResourceExhausted when the system has no descriptor left.
  /// \param driver the descriptor of who fills the queue, where that is the thread that reads it:
  ///        then ours is readable, too, when it has something to do
  static Result<std::unique_ptr<QueueAlarm>> open(std::optional<int> driver);
  ~QueueAlarm() override;
  QueueAlarm(const QueueAlarm&) = delete;
  QueueAlarm& operator=(const QueueAlarm&) = delete;

  // device::QueueListener
  void added(bool urgent) override { bell_.ring(urgent); }

  /// The next entry makes the descriptor readable. The caller looks at the queue behind it.
  void arm(base::BellFor what = base::BellFor::Anything) { bell_.arm(what); }
  /// There is more in the queue than the caller has taken.
  void keep_readable() { bell_.ring_unfenced(); }
  [[nodiscard]] int fd() const { return poller_ >= 0 ? poller_ : bell_.signal().fd(); }
  /// Of the bell alone.
  [[nodiscard]] int own_fd() const { return bell_.signal().fd(); }

 private:
  QueueAlarm(wakeup::EventSignal signal, int poller) : bell_(std::move(signal)), poller_(poller) {}

  wakeup::Bell bell_;
  int poller_;  // an epoll of the bell and the driver; -1: there is no driver
};

/// An epoll of `descriptors`. ResourceExhausted when the system has no descriptor left.
Result<int> poller_of(std::initializer_list<int> descriptors);
Status add_to_poller(int poller, int descriptor);

}  // namespace rnic::verbs
