#include "verbs/event_desk.hpp"

#include <unistd.h>

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/starved.hpp"
#include "llp/framing.hpp"
#include "verbs/boundary.hpp"
#include "verbs/runtime.hpp"

namespace rnic::verbs {

namespace {

ErrorCode code_of(StreamEnd end) {
  switch (end) {
    case StreamEnd::TimedOut: return ErrorCode::TimedOut;
    case StreamEnd::Refused:
    case StreamEnd::Unreachable: return ErrorCode::Unreachable;
    case StreamEnd::Closed:
    case StreamEnd::PeerReset:
    case StreamEnd::Aborted: return ErrorCode::Reset;
  }
  return ErrorCode::Reset;
}

/// \return whether the fault says that a rule was broken. False for "the LLP connection was closed"
/// (RFC 5044 s.8), the code that stands for every other end.
bool tells_of_a_rule(const Fault& fault) {
  return fault.layer != FaultLayer::Llp ||
         fault.code != static_cast<uint8_t>(llp::FramingError::Closed);
}

Error failure_of(event::Ending& ending) {
  const bool is_fault = ending.fault && tells_of_a_rule(*ending.fault);
  return {is_fault ? ErrorCode::Protocol : code_of(ending.end), std::move(ending.detail)};
}

/// Reserves room for one more element.
template <typename T>
void make_room(std::vector<T>& list) {
  if (list.size() == list.capacity()) list.reserve(2 * list.size() + 8);
}

/// Records in the fate of a queue pair what an event says about it.
struct FateWriter {
  Fate& fate;

  void operator()(event::Established& event) const { fate.established = std::move(event); }
  void operator()(event::ConnectFailed& event) const { fail(failure_of(event)); }
  void operator()(event::RequestWithdrawn& event) const { fail(failure_of(event)); }
  void operator()(event::Rejected& event) const {
    fail({ErrorCode::Rejected, std::move(event.detail)});
  }
  void operator()(event::PeerClosed&) const { fate.peer_closed = true; }
  void operator()(event::Disconnected& event) const {
    if (!fate.established) fail(failure_of(event));
    fate.ended = true;
  }
  template <typename Other>
  void operator()(Other&) const {}  // completions tell the consequences

 private:
  void fail(Error&& error) const {
    if (!fate.failure) fate.failure = std::move(error);
  }
};

}  // namespace

// --- WaitEnd ---

WaitEnd::WaitEnd(const Context& context, std::chrono::nanoseconds limit) {
  const std::chrono::nanoseconds now = context.now();
  at_ = limit >= kForever - now ? kForever : now + std::max(limit, std::chrono::nanoseconds(0));
}

std::chrono::nanoseconds WaitEnd::left(const Context& context) const {
  return at_ == kForever ? kForever : at_ - context.now();
}

// --- EventDesk ---

EventDesk::EventDesk(Device device, DeskPlace place, ProtectionDomain pd)
    : device_(std::move(device)),
      place_(std::move(place)),
      context_(device_.context()),
      pd_(std::move(pd)),
      owner_(getpid()) {}

bool EventDesk::is_abandoned() const { return getpid() != owner_; }

bool EventDesk::shares_context(EventDesk& other) {
  const auto found = other.context_.device(device_.name());
  // The name of a device is one object, however many handles the device has.
  return found && &found->name() == &device_.name();
}

bool EventDesk::wait(const std::function<bool()>& done, const WaitEnd& end) {
  const auto sorted = [&] {
    sort_events();
    return done();
  };
  // Passed by reference, for which std::function needs no memory.
  return context_.wait_until(std::ref(sorted), end.left(context_));
}

void EventDesk::enroll(uint32_t qp) {
  const std::lock_guard lock(mutex_);
  fates_[qp] = {};
}

void EventDesk::strike(uint32_t qp) {
  sort_events();
  const std::lock_guard lock(mutex_);
  fates_.erase(qp);
}

void EventDesk::sort_events() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;  // another thread sorts them
  for (;;) {
    // An event that is taken needs a place: without memory for one, events wait in the device.
    const bool room = base::attempt([this] {
      make_room(others_);
      make_room(requests_);
    });
    if (!room) return;
    auto event = device_.poll_event();
    if (!event) return;
    sort(std::move(*event));
  }
}

void EventDesk::sort(Event&& event) {
  const auto fate = fates_.find(common(event).qp);
  if (fate != fates_.end()) {
    std::visit(FateWriter{fate->second}, event);
  } else if (auto* request = std::get_if<event::ConnectRequest>(&event)) {
    requests_.push_back(
        std::move(*request));  // the device bounds them: limits.max_pending_requests
  } else if (auto* gone = std::get_if<event::RequestWithdrawn>(&event)) {
    std::erase_if(requests_, [gone](const event::ConnectRequest& waiting) {
      return waiting.request == gone->request;
    });
  } else if (others_.size() < kMaxKept) {
    others_.push_back(std::move(event));
  } else {
    ++lost_;
  }
}

std::optional<Asking> EventDesk::request_at(const Endpoint& local) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(requests_, [&](const event::ConnectRequest& request) {
    return request.local.port == local.port &&
           (local.address.is_unspecified() || request.local.address == local.address);
  });
  if (found == requests_.end()) return std::nullopt;
  return Asking{found->request, found->remote};
}

std::vector<uint8_t> EventDesk::drop_request(const RequestHandle& request) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(requests_, request, &event::ConnectRequest::request);
  if (found == requests_.end()) return {};
  std::vector<uint8_t> data = std::move(found->private_data);
  requests_.erase(found);
  return data;
}

std::optional<Event> EventDesk::take_other() {
  sort_events();
  const std::lock_guard lock(mutex_);
  if (others_.empty()) return std::nullopt;
  Event event = std::move(others_.front());
  others_.erase(others_.begin());
  return event;
}

uint64_t EventDesk::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

}  // namespace rnic::verbs
