#include "verbs/answered_requests.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/fail.hpp"

namespace rnic::verbs {

AnsweredRequests::AnsweredRequests(std::shared_ptr<EventDesk> desk, Admission admits)
    : desk_(std::move(desk)), admits_(std::move(admits)) {
  links_.reserve(kMost);  // a request that was answered always finds a place
}

Result<std::unique_ptr<BlockingLink>> AnsweredRequests::next(
    const Endpoint& local, const WaitEnd& end, const blocking::ConnectionOptions& options) {
  Answer answer{options};
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (auto link = take_established()) return link;
      if (auto answered = answer_all(local, answer); !answered) {
        return tl::unexpected(std::move(answered.error()));
      }
    }
    const auto news = [&] { return has_news(local, answer); };
    if (!desk_->wait(std::ref(news), end)) return tl::unexpected(no_one_in_time());
  }
}

/// Takes the oldest connection in full operation, and lets those go that have failed.
std::unique_ptr<BlockingLink> AnsweredRequests::take_established() {
  for (auto at = links_.begin(); at != links_.end();) {
    if (!(*at)->is_decided()) {
      ++at;
      continue;
    }
    std::unique_ptr<BlockingLink> link = std::move(*at);
    at = links_.erase(at);
    ++departed_;
    if (link->outcome()) return link;
  }
  return nullptr;
}

Status AnsweredRequests::answer_all(const Endpoint& local, Answer& answer) {
  answer.no_room.reset();
  Status ready;
  // The first link is made before anybody asks: a mistake in the options shows at once.
  if (!answer.is_checked) ready = make_link(answer);
  while (ready) {
    const auto asking = desk_->request_at(local);
    if (!asking) return {};
    if (admits_ && !admits_(asking->remote)) {
      reject(asking->request);
      continue;
    }
    if (!has_room(answer.options)) {
      answer.no_room = departed_;
      return {};
    }
    ready = make_link(answer);
    if (ready) ready = answer_one(asking->request, answer);
  }
  if (waits_for_room(ready.error(), answer)) return {};
  return ready;
}

Status AnsweredRequests::make_link(Answer& answer) {
  if (answer.link != nullptr) return {};
  auto made = BlockingLink::make(desk_, answer.options);
  if (!made) return tl::unexpected(std::move(made.error()));
  if (auto good = (*made)->check_answer(answer.options); !good) return good;
  answer.is_checked = true;
  answer.link = std::move(*made);
  return {};
}

Status AnsweredRequests::answer_one(const RequestHandle& request, Answer& answer) {
  Status accepted = answer.link->accept(request, answer.options);
  if (accepted) {
    answer.link->set_peer_data(desk_->drop_request(request));
    links_.push_back(std::move(answer.link));
    return {};
  }
  switch (accepted.error().code) {
    case ErrorCode::NotFound:  // the peer went away
      static_cast<void>(desk_->drop_request(request));
      return {};
    case ErrorCode::InvalidArgument:
      // The options are good: it is this peer that they do not fit, by its revision of MPA.
      reject(request);
      return {};
    default: return accepted;  // the request stays, and the call may be made again
  }
}

bool AnsweredRequests::has_room(const blocking::ConnectionOptions& options) const {
  if (links_.empty()) return true;
  uint64_t octets = buffer_octets(options);
  for (const auto& link : links_) octets += link->buffered();
  return links_.size() < kMost && octets <= blocking::kMaxBufferOctets;
}

bool AnsweredRequests::waits_for_room(const Error& error, Answer& answer) const {
  if (error.code != ErrorCode::ResourceExhausted || links_.empty()) return false;
  answer.no_room = departed_;
  return true;
}

bool AnsweredRequests::has_news(const Endpoint& local, const Answer& answer) {
  const std::lock_guard lock(mutex_);
  const auto decided = [](const auto& link) { return link->is_decided(); };
  if (std::ranges::any_of(links_, decided)) return true;
  // Whoever found no room looks again when another one has left.
  if (answer.no_room == departed_) return false;
  return desk_->request_at(local).has_value();
}

void AnsweredRequests::stop(const Endpoint& local) {
  static_cast<void>(desk_->handle().unlisten(local));
  desk_->sort_events();  // rejects requests that came since the last wait, too
  while (const auto asking = desk_->request_at(local)) reject(asking->request);
}

void AnsweredRequests::reject(const RequestHandle& request) {
  static_cast<void>(desk_->handle().reject(request));
  static_cast<void>(desk_->drop_request(request));
}

Error AnsweredRequests::no_one_in_time() {
  const std::lock_guard lock(mutex_);
  if (links_.empty()) {
    return {ErrorCode::TimedOut, "nobody asked for a connection in time: call accept() again"};
  }
  return {ErrorCode::TimedOut,
          "of those who asked for a connection none was through with its start-up in time: " +
              std::to_string(links_.size()) + " are waited for in the next call"};
}

}  // namespace rnic::verbs
