/// \file
/// AnsweredRequests: connection requests at one listener that were answered, and whose connections
/// are not in full operation yet (rnic/blocking.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "verbs/blocking_link.hpp"
#include "verbs/event_desk.hpp"

namespace rnic::verbs {

/// Answers the requests at a listener, several at once, because a peer may take long to get from
/// the Reply into full operation (RFC 6581 s.9.2: the RTR), or never get there.
///
/// Threads: in a threaded context several threads may call next() at once.
class AnsweredRequests {
 public:
  /// The most of them at a time. Each holds a queue pair and its buffers.
  static constexpr size_t kMost = 64;
  /// Decides by the peer's end who may connect.
  using Admission = std::function<bool(const Endpoint& remote)>;

  /// \param admits those for whom it returns false are rejected; empty: everybody may connect
  explicit AnsweredRequests(std::shared_ptr<EventDesk> desk, Admission admits = {});

  [[nodiscard]] const EventDesk& desk() const { return *desk_; }

  /// Answers every request for the listener on `local`, and waits for the first connection that is
  /// in full operation. A peer that went away, broke a rule, took too long or is not fit for
  /// `options` is passed over. Those that are not through stay for the next call. TimedOut: the end
  /// came first.
  Result<std::unique_ptr<BlockingLink>> next(const Endpoint& local, const WaitEnd& end,
                                             const blocking::ConnectionOptions& options);
  /// Ends the listener on `local`, and rejects the requests that wait there.
  void stop(const Endpoint& local);

 private:
  /// What one call of next() answers with.
  struct Answer {
    const blocking::ConnectionOptions& options;
    std::unique_ptr<BlockingLink> link{};  ///< for the next request
    bool is_checked = false;               ///< a link took the options
    /// departed_ when there was no room for a further one; nothing: there is room.
    std::optional<uint64_t> no_room{};
  };

  std::unique_ptr<BlockingLink> take_established();
  Status answer_all(const Endpoint& local, Answer& answer);
  Status answer_one(const RequestHandle& request, Answer& answer);
  Status make_link(Answer& answer);
  [[nodiscard]] bool has_room(const blocking::ConnectionOptions& options) const;
  /// \return whether the caller waits on, although no further request can be answered now
  bool waits_for_room(const Error& error, Answer& answer) const;
  [[nodiscard]] bool has_news(const Endpoint& local, const Answer& answer);
  void reject(const RequestHandle& request);
  [[nodiscard]] Error no_one_in_time();

  std::shared_ptr<EventDesk> desk_;
  Admission admits_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<BlockingLink>> links_;  // at most kMost; the oldest first
  uint64_t departed_ = 0;                             // links that have left links_
};

}  // namespace rnic::verbs
