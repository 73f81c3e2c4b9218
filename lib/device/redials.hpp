/// \file
/// Redials: connects between their two attempts, of which the second one asks for revision 1 of MPA
/// (RFC 6581 s.10).
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.hpp"
#include "base/starved.hpp"
#include "device/connection.hpp"
#include "device/counters.hpp"
#include "device/event_queue.hpp"
#include "device/queue_pair.hpp"
#include "device/resources.hpp"

namespace rnic::device {

/// Belongs to the worker. A first attempt fails in a callback of its own session, so the second one
/// waits here until no callback is under way.
class Redials {
 public:
  /// \param most how many may wait at once \param resources, events, counters outlive it
  Redials(size_t most, Resources& resources, EventQueue& events, DeviceCounters& counters);

  /// \return whether a connect whose first attempt has failed so is tried once more
  [[nodiscard]] static bool wants(const Connection& connection, framing::StartFailure why);
  /// The queue pair has no connection any more, and waits for its second attempt. Takes no memory:
  /// connections end at moments in which none may be allocated.
  void add(QueuePair& qp, std::unique_ptr<Connection::Redial> redial);
  [[nodiscard]] bool any() const { return !waiting_.empty(); }
  /// Calls `dial(qp, redial)`, which begins a second attempt and returns how that went, for each
  /// that waits and whose queue pair there still is. Of one that does not begin the application is
  /// told.
  template <typename Dial>
  void dial_all(Dial&& dial) {
    while (!waiting_.empty()) {
      const std::unique_ptr<Connection::Redial> redial = std::move(waiting_.back());
      waiting_.pop_back();
      QueuePair* qp = resources_.qp(redial->qp);
      // The queue pair may have been destroyed meanwhile, and another one may have its number.
      if (qp == nullptr || !qp->awaits_redial()) continue;
      ++counters_.connects_redialed;
      Status status;
      const bool tried = base::attempt([&] { status = dial(*qp, *redial); });
      if (!tried) status = base::fail(ErrorCode::ResourceExhausted, base::kOutOfMemory);
      if (!status) give_up(*qp, *redial, std::move(status.error().message));
    }
  }
  /// The application has cancelled the connect. \param why makes the text of the event \return
  /// whether the queue pair waited here
  template <typename Why>
  bool cancel(QueuePair& qp, const Why& why) {
    const std::unique_ptr<Connection::Redial> gone = take(qp);
    if (gone == nullptr) return false;
    give_up(qp, *gone, base::worded(why));
    return true;
  }

 private:
  std::unique_ptr<Connection::Redial> take(const QueuePair& qp);
  void give_up(QueuePair& qp, const Connection::Redial& redial, std::string why);

  Resources& resources_;
  EventQueue& events_;
  DeviceCounters& counters_;
  std::vector<std::unique_ptr<Connection::Redial>> waiting_;  // the vector never grows
};

}  // namespace rnic::device
