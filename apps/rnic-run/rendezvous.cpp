#include "rnic-run/rendezvous.hpp"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>

#include "rnic-run/adapter.hpp"

namespace rnic::run {

namespace {

constexpr std::chrono::milliseconds kStarved{50};

std::optional<Meeting::Clock::time_point> look_at(Meeting& meeting,
                                                  Meeting::Clock::time_point now) {
  try {
    return meeting.look(now);
  } catch (const std::bad_alloc&) {
    return now + kStarved;  // perhaps there is memory then
  }
}

}  // namespace

Result<uint32_t> Rendezvous::take_number() {
  if (!prepare()) {
    return tl::unexpected(Error{ErrorCode::ResourceExhausted, "the system gives no timer"});
  }
  const std::lock_guard lock(mutex_);
  return numbers_.take(Adapter::get()->device());
}

/// Called without mutex_: the watch has a lock of its own, which it holds while it tells of events,
/// and take() needs mutex_ then.
bool Rendezvous::prepare() {
  const std::lock_guard lock(preparing_);
  if (timer_ >= 0) return true;
  const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  if (timer < 0) return false;
  timer_ = timer;
  if (Adapter::get()->watch().add(timer, this)) return true;
  timer_ = -1;
  close(timer);
  return false;
}

void Rendezvous::give_back(uint32_t qpn) {
  const std::lock_guard lock(mutex_);
  numbers_.give_back(qpn);
}

void Rendezvous::add(Meeting& meeting) {
  const std::lock_guard lock(mutex_);
  meetings_.push_back(&meeting);
}

void Rendezvous::remove(Meeting& meeting) {
  const std::lock_guard lock(mutex_);
  if (std::erase(meetings_, &meeting) != 0) meeting.leave();
}

Meeting* Rendezvous::of_number(uint32_t qpn) {
  const auto found = std::find_if(meetings_.begin(), meetings_.end(),
                                  [qpn](const Meeting* each) { return each->qpn() == qpn; });
  return found == meetings_.end() ? nullptr : *found;
}

Meeting* Rendezvous::of_event(const Event& event) {
  const auto shown = ShownNumbers::all().find(event::common(event).qp);
  return shown == nullptr ? nullptr : of_number(shown->number);
}

void Rendezvous::take(const event::ConnectRequest& request) {
  const auto from = Introduction::parse(request.private_data);
  Meeting* const meeting = from ? of_number(from->to) : nullptr;
  if (meeting != nullptr) return meeting->hear(request, *from);
  // The device counts it (start_rejects).
  (void)Adapter::get()->device().reject(request.request);
  refused(0, from ? "a connection was asked for to a queue pair that is not there: refused"
                  : "a connection was asked for by somebody who is no queue pair: refused");
}

void Rendezvous::take(const Event& event) {
  with_lock([&] {
    if (const auto* request = std::get_if<event::ConnectRequest>(&event)) return take(*request);
    if (const auto* gone = std::get_if<event::RequestWithdrawn>(&event); gone && gone->qp == 0) {
      for (Meeting* each : meetings_) {
        if (each->withdraw(gone->request)) return;
      }
      return;
    }
    Meeting* const meeting = of_event(event);
    if (meeting == nullptr) return;
    if (const auto* established = std::get_if<event::Established>(&event)) {
      meeting->established(established->private_data);
    } else if (std::holds_alternative<event::TerminateSent>(event) ||
               std::holds_alternative<event::TerminateReceived>(event)) {
      meeting->terminated();
    } else if (std::holds_alternative<event::ConnectFailed>(event) ||
               std::holds_alternative<event::RequestWithdrawn>(event) ||
               std::holds_alternative<event::Disconnected>(event)) {
      meeting->ended();
    }
  });
}

void Rendezvous::readable() {
  uint64_t rung = 0;
  static_cast<void>(!read(timer_, &rung, sizeof(rung)));
  look_again();
  Adapter::get()->watch().look_again(timer_, this);
}

void Rendezvous::set_timer() {
  using std::chrono::duration_cast;
  using std::chrono::nanoseconds;
  const auto now = Meeting::Clock::now();
  std::optional<Meeting::Clock::time_point> next;
  for (Meeting* each : meetings_) {
    const auto wanted = look_at(*each, now);
    if (wanted && (!next || *wanted < *next)) next = wanted;
  }
  itimerspec when{};
  if (next) {
    // A timer of 0 is none.
    const auto left = std::max(duration_cast<nanoseconds>(*next - now), nanoseconds{1000});
    when.it_value.tv_sec = left.count() / 1'000'000'000;
    when.it_value.tv_nsec = left.count() % 1'000'000'000;
  }
  timerfd_settime(timer_, 0, &when, nullptr);  // without a timer there is no meeting
}

}  // namespace rnic::run
