#include "rnic-run/watch.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include "rnic-run/quiet_thread.hpp"

namespace rnic::run {

namespace {

epoll_event once(Watched* who) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLONESHOT;
  event.data.ptr = who;
  return event;
}

}  // namespace

Watch::Watch() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (epoll_ < 0 || start_quiet_thread([this] { run(); })) return;
  close(epoll_);
  epoll_ = -1;
}

bool Watch::add(int fd, Watched* who) {
  {
    const std::lock_guard lock(mutex_);
    known_.insert(who);
  }
  epoll_event event = once(who);
  return epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) == 0;
}

void Watch::look_again(int fd, Watched* who) {
  epoll_event event = once(who);
  epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event);
}

void Watch::remove(int fd, Watched* who) {
  epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
  std::unique_lock lock(mutex_);
  known_.erase(who);
  has_told_.wait(lock, [this, who] { return told_ != who; });
}

void Watch::run() {
  for (;;) {
    epoll_event event{};
    if (epoll_wait(epoll_, &event, 1, -1) == 1) tell(static_cast<Watched*>(event.data.ptr));
  }
}

void Watch::tell(Watched* who) {
  {
    const std::lock_guard lock(mutex_);
    if (!known_.contains(who)) return;
    told_ = who;
  }
  who->readable();
  {
    const std::lock_guard lock(mutex_);
    told_ = nullptr;
  }
  has_told_.notify_all();
}

}  // namespace rnic::run
