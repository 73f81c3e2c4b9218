#include "base/sabotage.hpp"
#include "rdmap/engine.hpp"

namespace rnic::rdmap {

void Endpoint::Impl::report_work(Completion completion, bool signaled) {
  completion.qp = config_.qp;
  if (completion.status == WorkStatus::Success && !signaled) {
    owner_.send_retired();
    return;
  }
  if (completion.status == WorkStatus::Flushed) ++counters_.flushed;
  if (completion.status != WorkStatus::Success) completion.length = 0;
  owner_.send_completed(completion);
}

/// Tells the user of the oldest untold slot. The slot is given up first: he may post from the call.
void Endpoint::Impl::report_send() {
  const SendSlot& slot = sends_.at(sends_.report());
  const bool told = slot.reported;  // ahead of its turn: only with a planted defect
  const bool signaled = slot.work.signaled;
  Completion completion{
      .id = slot.work.id, .opcode = slot.work.opcode, .status = slot.status, .length = slot.length};
  if (flushing_ && slot.status == WorkStatus::Success) completion.status = WorkStatus::Flushed;
  sends_.retire();
  if (!told) report_work(completion, signaled);
}

// RFC 5040 s.5.5(15): local completion in submission order, across Reads and Writes.
void Endpoint::Impl::complete_sends() {
  while (!flushing_ && sends_.has_unreported() && sends_.at(sends_.report()).done()) {
    report_send();
  }
}

void Endpoint::Impl::report_receive(WorkStatus status, uint32_t length, bool solicited,
                                    uint32_t invalidated) {
  const uint64_t id = receives_.front().work.id;
  receives_.pop();
  if (status == WorkStatus::Flushed) ++counters_.flushed;
  owner_.receive_completed({.id = id,
                            .opcode = WorkOpcode::Receive,
                            .status = status,
                            .solicited = solicited,
                            .length = length,
                            .qp = config_.qp,
                            .invalidated_stag = invalidated});
}

// BUG-06: everything completes, in post order, also what the user posts while he is told.
void Endpoint::Impl::flush() {
  if (flushing_) return;
  flushing_ = true;
  sends_.abandon();
  outbound_reads_.clear();
  while (sends_.has_unreported()) report_send();
  while (!receives_.empty()) {
    const bool refused = receives_.front().refused;
    report_receive(refused ? WorkStatus::LocalProtection : WorkStatus::Flushed, 0, false, 0);
  }
  flushing_ = false;
}

}  // namespace rnic::rdmap
