#include "rnic-run/async_events.hpp"

#include <utility>
#include <variant>

#include "rnic-run/adapter.hpp"

namespace rnic::run {

namespace {

constexpr uint64_t kPort = 1;

ibv_event_type type_of(QueuePairError error) {
  switch (error) {
    case QueuePairError::Access: return IBV_EVENT_QP_ACCESS_ERR;
    case QueuePairError::Request: return IBV_EVENT_QP_REQ_ERR;
    case QueuePairError::Fatal:
    case QueuePairError::None: break;
  }
  return IBV_EVENT_QP_FATAL;
}

}  // namespace

int AsyncEvents::open(const ibv_context* context) {
  const std::lock_guard lock(mutex_);
  auto& pipe = pipes_[context];
  if (pipe.open()) return pipe.reads();
  pipes_.erase(context);
  return -1;
}

void AsyncEvents::close(const ibv_context* context) {
  const std::lock_guard lock(mutex_);
  pipes_.erase(context);
}

void AsyncEvents::add(Kind kind, uint32_t number, const void* element, const ibv_context* context) {
  const std::lock_guard lock(mutex_);
  objects_[element] = {.kind = kind, .number = number, .context = context};
}

void AsyncEvents::renumber(const void* element, uint32_t number) {
  const std::lock_guard lock(mutex_);
  if (const auto found = objects_.find(element); found != objects_.end()) {
    found->second.number = number;
  }
}

uint32_t AsyncEvents::remove(const void* element) {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(element);
  if (found == objects_.end()) return 0;
  const Named named = found->second;
  objects_.erase(found);
  const auto pipe = pipes_.find(named.context);
  if (pipe == pipes_.end()) return 0;
  return named.told - pipe->second.withdraw([element](const AsyncRecord& record) {
    return record.element == reinterpret_cast<uintptr_t>(element);
  });
}

void AsyncEvents::tell(Kind kind, uint32_t number, ibv_event_type type) {
  for (auto& [element, named] : objects_) {
    if (named.kind != kind || named.number != number) continue;
    const auto pipe = pipes_.find(named.context);
    if (pipe == pipes_.end()) return;
    const AsyncRecord record{.element = reinterpret_cast<uintptr_t>(element), .type = type};
    if (put(pipe->second, record)) ++named.told;
    return;
  }
}

void AsyncEvents::tell_all(ibv_event_type type) {
  for (auto& [context, pipe] : pipes_) put(pipe, {.element = kPort, .type = type});
}

bool AsyncEvents::put(EventPipe<AsyncRecord>& pipe, const AsyncRecord& record) {
  if (pipe.tell(record)) return true;
  if (!std::exchange(has_lost_, true)) {
    complain("asynchronous events are lost from here on: the program reads none "
             "(ibv_get_async_event), and there is no room for more");
  }
  return false;
}

void AsyncEvents::take(const Event& event) {
  const std::lock_guard lock(mutex_);
  if (const auto* sent = std::get_if<event::TerminateSent>(&event)) {
    tell(Kind::QueuePair, sent->qp, type_of(sent->error));
  } else if (const auto* received = std::get_if<event::TerminateReceived>(&event)) {
    tell(Kind::QueuePair, received->qp, IBV_EVENT_QP_FATAL);
  } else if (const auto* last = std::get_if<event::LastReceiveDone>(&event)) {
    tell(Kind::QueuePair, last->qp, IBV_EVENT_QP_LAST_WQE_REACHED);
  } else if (const auto* few = std::get_if<event::SrqLimitReached>(&event)) {
    tell(Kind::SharedReceiveQueue, few->srq, IBV_EVENT_SRQ_LIMIT_REACHED);
  } else if (const auto* over = std::get_if<event::CompletionOverrun>(&event)) {
    tell(Kind::CompletionQueue, over->cq, IBV_EVENT_CQ_ERR);
  } else if (std::holds_alternative<event::PortDown>(event)) {
    tell_all(IBV_EVENT_PORT_ERR);
  } else if (std::holds_alternative<event::PortUp>(event)) {
    tell_all(IBV_EVENT_PORT_ACTIVE);
  } else if (std::holds_alternative<event::DeviceFatal>(event)) {
    tell_all(IBV_EVENT_DEVICE_FATAL);
  }
}

}  // namespace rnic::run
