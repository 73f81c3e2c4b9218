/// \file
/// Completions: reports the outcome of posted work to the owner of an endpoint.
#pragma once

#include <cstdint>

#include "rdmap/counters.hpp"
#include "rdmap/receive_queue.hpp"
#include "rdmap/send_queue.hpp"
#include "rnic/work.hpp"

namespace rnic::rdmap {

class EndpointOwner;
struct Queues;

/// The reason why the stream takes no work any more.
struct Ending {
  CompletionCause cause = CompletionCause::NotConnected;  ///< NotConnected: it has not begun
  FaultCode fault{};
};

/// Completions of both queues of an endpoint, each in the order in which its work was posted (RFC
/// 5040 s.5.5). The place of a request in its queue is freed before the owner is told of the
/// completion, so that it may post another request from the call.
class Completions {
 public:
  /// \param qp the queue pair's number in completions \param queues, counters, owner outlive this
  Completions(uint32_t qp, const Queues& queues, Counters& counters, EndpointOwner& owner);

  /// Reports the requests of the send queue that are done, up to the first that is not.
  void complete_sends();
  /// Reports the oldest receive; the caller fills in what came.
  void report_receive(Completion completion);

  /// Sets the cause that flushed requests report. Only the first call has an effect.
  void set_ending(const Ending& ending) {
    if (ending_.cause == CompletionCause::NotConnected) ending_ = ending;
  }

  // These report work that is posted while no connection is in use; it is not carried out.
  void pass_sends();
  void pass_receives();

  /// Reports everything that was posted, with Flushed unless another outcome is known (BUG-06).
  /// Work that the owner posts from within the reports is flushed, too, by the same call.
  void flush();
  [[nodiscard]] bool is_flushing() const { return flushing_; }

 private:
  void report_direct(const SendSlot& slot);
  void report_send();
  void explain(Completion& completion);

  const uint32_t qp_;
  SendQueue& sends_;
  ReceiveQueue& receives_;
  Counters& counters_;
  EndpointOwner& owner_;
  Ending ending_;
  // True while a call of flush() is at work, from which the owner may call the endpoint. It is not
  // part of the endpoint's state: the endpoint may be Terminating, Error or Closed.
  bool flushing_ = false;
};

}  // namespace rnic::rdmap
