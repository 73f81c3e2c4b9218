/// \file
/// LinkWatch: looks at the link of a device's port, and tells the application when it changes.
#pragma once

#include <chrono>
#include <string>

#include "base/time.hpp"
#include "device/counters.hpp"
#include "device/event_queue.hpp"
#include "port/port.hpp"

namespace rnic::device {

/// A watch belongs to the worker. It looks once in kInterval and not with each frame, so a link
/// that goes down and comes up in less is not noticed. Each change that it sees is counted and
/// logged, and is one event for the application (RFC 5042 s.2.2.7): PortDown, PortUp, DeviceFatal.
/// While the queue of events is full the event waits; it is not told if the link has by then become
/// again what the application knows.
class LinkWatch {
 public:
  static constexpr base::Duration kInterval = std::chrono::milliseconds(100);

  /// The link counts as up at first. A port that cannot tell is asked here, and never again.
  /// \param device the name of the device, for the log \param device, port, counters outlive it
  LinkWatch(const std::string& device, port::Port& port, DeviceCounters& counters, base::Now now);

  /// \return kNever: the port cannot tell, or it is gone and the application knows
  [[nodiscard]] base::Now next_look() const { return next_look_; }
  /// Asks the port, which next_look() has said is due.
  void look(EventQueue& events, base::Now now);
  /// Checks that a port that is gone stays so, and that one that can change is looked at.
  void validate() const;

 private:
  void see(port::LinkState state);
  [[nodiscard]] Event event_of(port::LinkState state) const;

  const std::string& device_;
  port::Port& port_;
  DeviceCounters& counters_;
  const bool tells_;  // the port can
  base::Now next_look_;
  port::LinkState seen_ = port::LinkState::Up;  // at the latest look
  port::LinkState told_ = port::LinkState::Up;  // what the application knows
};

}  // namespace rnic::device
