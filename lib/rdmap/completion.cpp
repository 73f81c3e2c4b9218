#include "rdmap/endpoint.hpp"

namespace rnic::rdmap {

void Endpoint::Impl::report_work(Completion completion, bool signaled) {
  completion.qp = config_.qp;
  if (completion.status == CompletionStatus::Success && !signaled) return;
  if (completion.status == CompletionStatus::Flushed) ++counters_.flushed;
  if (completion.status != CompletionStatus::Success) {
    completion.length = 0;
    completion.original = 0;
  }
  owner_.send_completed(completion);
}

/// Tells the user of the oldest untold slot. The slot is given up first: he may post from the call.
void Endpoint::Impl::report_send() {
  const SendSlot& slot = sends_.at(sends_.report());
  const bool signaled = slot.work->signaled;
  Completion completion{.id = slot.work->id,
                        .opcode = slot.work->opcode,
                        .status = slot.status,
                        .length = slot.length(),
                        .original = slot.original};
  if (flushing_ && slot.status == CompletionStatus::Success) {
    completion.status = CompletionStatus::Flushed;
  }
  sends_.retire();
  report_work(completion, signaled);
}

// RFC 5040 s.5.5(15): local completion in submission order, across Reads and Writes.
void Endpoint::Impl::complete_sends() {
  while (!flushing_ && sends_.has_unreported() && sends_.at(sends_.report()).done()) {
    report_send();
  }
}

/// Tells the user of the oldest receive; the caller says what came.
void Endpoint::Impl::report_receive(Completion completion) {
  completion.id = receives_.front().work->id;
  completion.opcode = Opcode::Receive;
  completion.qp = config_.qp;
  receives_.pop();
  if (completion.status == CompletionStatus::Flushed) ++counters_.flushed;
  owner_.receive_completed(completion);
}

/// What was posted outside of a connection in use is not carried out.
void Endpoint::Impl::pass_sends() {
  while (sends_.has_posted()) {
    Completion completion = sends_.pass();
    completion.status = CompletionStatus::Flushed;
    report_work(completion, true);
  }
}

void Endpoint::Impl::pass_receives() {
  while (receives_.has_posted()) {
    receives_.accept();
    report_receive({.status = CompletionStatus::Flushed});
  }
}

// BUG-06: everything completes, in post order, also what the user posts while he is told.
void Endpoint::Impl::flush() {
  if (flushing_) return;
  flushing_ = true;
  sends_.abandon();
  outbound_.clear();
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
