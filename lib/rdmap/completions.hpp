/// \file
/// What the owner of an endpoint is told of posted work.
#pragma once

#include <cstdint>

#include "rdmap/counters.hpp"
#include "rdmap/receive_queue.hpp"
#include "rdmap/send_queue.hpp"
#include "rnic/work.hpp"

namespace rnic::rdmap {

class EndpointOwner;
struct Queues;

/// Why the stream takes no work any more.
struct Ending {
  CompletionCause cause = CompletionCause::NotConnected;  ///< this: it has not begun
  FaultCode fault{};
};

/// Completions of both queues of an endpoint, each in the order in which its work was posted (RFC
/// 5040 s.5.5). The place of a request in its queue is free before the owner is told of it, so that
/// he may post another one from the call.
class Completions {
 public:
  /// All of them outlive this. \param qp the number that completions bear
  Completions(uint32_t qp, const Queues& queues, Counters& counters, EndpointOwner& owner);

  /// Tells of the work of the send queue that is done, up to the first that is not.
  void complete_sends();
  /// Tells of the oldest receive; the caller says what came.
  void report_receive(Completion completion);

  /// What is flushed says why: the first that is told.
  void set_ending(const Ending& ending) {
    if (ending_.cause == CompletionCause::NotConnected) ending_ = ending;
  }

  // Work that is posted outside of a connection in use is not carried out.
  void pass_sends();
  void pass_receives();

  /// Tells of everything that was posted, with Flushed where nothing else is known of it (BUG-06).
  /// What the owner posts while he is told is flushed, too, by the call that is at work.
  void flush();
  [[nodiscard]] bool is_flushing() const { return flushing_; }

 private:
  void report_send();
  void report_work(Completion completion, bool signaled);
  void explain(Completion& completion);

  const uint32_t qp_;
  SendQueue& sends_;
  ReceiveQueue& receives_;
  Counters& counters_;
  EndpointOwner& owner_;
  Ending ending_;
  // No state of the endpoint: a call of flush() is at work, in Terminating, Error or Closed, and
  // the owner may call the endpoint from within.
  bool flushing_ = false;
};

}  // namespace rnic::rdmap
