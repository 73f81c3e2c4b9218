#include "device/link_watch.hpp"

#include <optional>

#include "base/check.hpp"
#include "base/log.hpp"
#include "base/starved.hpp"

namespace rnic::device {

using port::LinkState;

namespace {

/// \return what is said, behind the name of the device, of a link that has become so
const char* words_for(LinkState state) {
  switch (state) {
    case LinkState::Up: return ": the link of its port is up again";
    case LinkState::Down:
      return ": the link of its port is down: connections send again until they time out; is its "
             "other end up?";
    case LinkState::Gone:
      return ": its port is gone: connections will time out; close the context, and open one when "
             "the port is there again";
  }
  return "";
}

}  // namespace

LinkWatch::LinkWatch(const std::string& device, port::Port& port, DeviceCounters& counters,
                     base::Now now)
    : device_(device),
      port_(port),
      counters_(counters),
      tells_(port.link().has_value()),
      next_look_(tells_ ? now + kInterval : base::kNever) {}

void LinkWatch::look(EventQueue& events, base::Now now) {
  next_look_ = now + kInterval;
  if (seen_ != LinkState::Gone) {
    if (const std::optional<LinkState> state = port_.link(); state && *state != seen_) see(*state);
  }
  if (seen_ != told_ && events.offer(event_of(seen_))) told_ = seen_;
  if (told_ == LinkState::Gone) next_look_ = base::kNever;
}

void LinkWatch::see(LinkState state) {
  seen_ = state;
  switch (state) {
    case LinkState::Up: ++counters_.link_ups; break;
    case LinkState::Down: ++counters_.link_downs; break;
    case LinkState::Gone: ++counters_.ports_gone; break;
  }
  base::log(base::LogLevel::Warning, "rnic", [&] { return device_ + words_for(state); });
}

Event LinkWatch::event_of(LinkState state) const {
  Event event;
  switch (state) {
    case LinkState::Up: event = event::PortUp{}; break;
    case LinkState::Down: event = event::PortDown{}; break;
    case LinkState::Gone: event = event::DeviceFatal{}; break;
  }
  event::common(event).detail = base::worded([&] { return device_ + words_for(state); });
  return event;
}

void LinkWatch::validate() const {
  RNIC_CHECK(seen_ == LinkState::Gone || told_ != LinkState::Gone);
  RNIC_CHECK((next_look_ == base::kNever) == (!tells_ || told_ == LinkState::Gone));
}

}  // namespace rnic::device
