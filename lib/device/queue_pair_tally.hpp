/// \file
/// QueuePairTally: what has become of the work of one queue pair, over all its connections.
#pragma once

#include <variant>

#include "rnic/event.hpp"
#include "rnic/queue_info.hpp"
#include "rnic/work.hpp"

namespace rnic::device {

/// Belongs to the worker.
class QueuePairTally {
 public:
  void send_ended(const Completion& completion) { ended(completion); }
  void receive_ended(const Completion& completion) {
    ended(completion);
    if (completion.status != CompletionStatus::Success) return;
    ++told_.receives;
    told_.octets_received += completion.length;
  }
  void connection_begins() { ++told_.connections; }
  void happened(const Event& event) {
    if (std::holds_alternative<event::TerminateSent>(event)) ++told_.terminates_sent;
    if (std::holds_alternative<event::TerminateReceived>(event)) ++told_.terminates_received;
  }
  [[nodiscard]] const QueuePairCounters& counters() const { return told_; }

 private:
  void ended(const Completion& completion) {
    if (completion.status == CompletionStatus::Success) return;
    ++(completion.status == CompletionStatus::Flushed ? told_.flushed : told_.failed);
  }

  QueuePairCounters told_;
};

}  // namespace rnic::device
