#include "rnic-run/receipts.hpp"

#include <array>
#include <cerrno>
#include <span>

#include "rnic-run/adapter.hpp"

namespace rnic::run {

int Receipts::post(QueuePair& pair, const SendRequest& request) {
  const std::lock_guard lock(mutex_);
  // As on hardware: a place is free when a completion behind it was polled.
  if (outstanding_ >= depth_) return refused(ENOMEM, "post_send: the send queue is full");
  const bool needs_receipt = request.opcode == Opcode::Write && request.signaled;
  const int error = needs_receipt ? post_with_receipt(pair, request, request.id)
                                  : post_alone(pair, request, request.id);
  if (error == 0) ++outstanding_;
  return error;
}

int Receipts::post_alone(QueuePair& pair, SendRequest request, uint64_t id) {
  request.id = first_ + entries_.size();
  entries_.push_back({id, Role::Alone});
  const Status posted = pair.post_send(request);
  if (posted) return 0;
  entries_.pop_back();
  return as_errno(posted.error());
}

int Receipts::post_with_receipt(QueuePair& pair, SendRequest request, uint64_t id) {
  std::array<SendRequest, 2> both;
  request.id = first_ + entries_.size();
  request.signaled = false;
  both[0] = request;
  both[1].id = request.id + 1;
  both[1].opcode = Opcode::Read;
  entries_.push_back({id, Role::Carried});
  try {
    entries_.push_back({id, Role::Receipt});
  } catch (...) {
    entries_.pop_back();
    throw;
  }
  const ListPosted posted = pair.post_send(std::span<const SendRequest>(both));
  if (posted.status) return 0;
  // There is room for both, so that it is the first one that the device has refused.
  entries_.pop_back();
  entries_.pop_back();
  return as_errno(posted.status.error());
}

bool Receipts::take(uint64_t id, ibv_wc& out) {
  const std::lock_guard lock(mutex_);
  const uint64_t place = id - first_;
  if (place >= entries_.size()) return true;
  const Entry entry = entries_[place];
  // Those in front are complete, too: a send queue completes in order.
  for (uint64_t i = 0; i <= place; ++i) {
    if (entries_.front().role != Role::Receipt) --outstanding_;
    entries_.pop_front();
    ++first_;
  }
  if (entry.told) return false;
  if (entry.role == Role::Carried && !entries_.empty()) entries_.front().told = true;
  out.wr_id = entry.id;
  if (entry.role == Role::Receipt) out.opcode = IBV_WC_RDMA_WRITE;
  return true;
}

void Receipts::clear() {
  const std::lock_guard lock(mutex_);
  first_ += entries_.size();
  entries_.clear();
  outstanding_ = 0;
}

}  // namespace rnic::run
