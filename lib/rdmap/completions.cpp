#include "rdmap/completions.hpp"

#include "rdmap/rdmap.hpp"

namespace rnic::rdmap {

Completions::Completions(uint32_t qp, const Queues& queues, Counters& counters,
                         EndpointOwner& owner)
    : qp_(qp),
      sends_(queues.sends),
      receives_(queues.receives),
      counters_(counters),
      owner_(owner) {}

/// Removes the results from a completion with an error, and adds the cause. What was under way when
/// all was flushed has the error that it was flushed.
void Completions::explain(Completion& completion) {
  if (completion.status == CompletionStatus::Success) completion.status = CompletionStatus::Flushed;
  completion.length = 0;
  completion.original = 0;
  if (completion.status == CompletionStatus::Flushed) ++counters_.flushed;
  const bool own = completion.status == CompletionStatus::LocalProtection ||
                   completion.status == CompletionStatus::LocalLength;
  if (own || completion.cause != CompletionCause::None) return;
  completion.cause = ending_.cause;
  completion.fault = ending_.fault;
}

/// Does what report_send() does, for a request that has succeeded and is direct: nothing came of it
/// besides.
[[gnu::always_inline]] inline void Completions::report_direct(const SendSlot& slot) {
  // The slot is there until another request takes it, which the owner may post from the call.
  const PostedSend& posted = slot.posted();
  sends_.retire_released();
  if (!posted.signaled) return;
  owner_.send_succeeded(posted.id, posted.opcode, static_cast<uint32_t>(posted.length), qp_);
}

/// Reports the oldest slot that was not reported yet.
[[gnu::noinline]] void Completions::report_send() {
  const SendSlot& slot = sends_.at(sends_.report());
  sends_.retire();
  // What the slot has copied is there until another request takes the slot.
  const PostedSend& posted = slot.posted();
  const bool success = slot.status == CompletionStatus::Success && !flushing_;
  if (success && !posted.signaled) return;
  Completion completion{.id = posted.id,
                        .opcode = posted.opcode,
                        .status = slot.status,
                        .cause = slot.cause,
                        .length = static_cast<uint32_t>(posted.length),
                        .qp = qp_};
  if (slot.row->response == Response::Atomic) completion.original = slot.original;
  if (!success) [[unlikely]] explain(completion);
  owner_.send_completed(completion);
}

// RFC 5040 s.5.5(15): work completes locally in the order of its submission, Reads and Writes
// alike.
void Completions::complete_sends() {
  while (!flushing_ && sends_.has_unreported() && sends_.at(sends_.report()).done()) {
    const SendSlot& slot = sends_.at(sends_.report());
    slot.direct ? report_direct(slot) : report_send();
  }
}

void Completions::report_receive(Completion completion) {
  completion.id = receives_.front().work->id;
  completion.opcode = Opcode::Receive;
  completion.qp = qp_;
  receives_.pop();
  if (completion.status != CompletionStatus::Success) explain(completion);
  owner_.receive_completed(completion);
}

void Completions::pass_sends() {
  while (sends_.has_posted()) {
    Completion completion = sends_.pass();
    completion.qp = qp_;
    explain(completion);
    owner_.send_completed(completion);
  }
}

void Completions::pass_receives() {
  while (receives_.has_posted()) {
    receives_.accept();
    report_receive({.status = CompletionStatus::Flushed});
  }
}

void Completions::flush() {
  if (flushing_) return;
  flushing_ = true;
  sends_.abandon();
  while (sends_.has_unreported()) report_send();
  pass_sends();
  while (!receives_.empty()) {
    const bool refused = receives_.front().refused;
    report_receive(
        {.status = refused ? CompletionStatus::LocalProtection : CompletionStatus::Flushed});
  }
  pass_receives();
  flushing_ = false;
}

}  // namespace rnic::rdmap
