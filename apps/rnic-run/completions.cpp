#include "rnic-run/completions.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "rnic-run/async_events.hpp"
#include "rnic-run/face.hpp"
#include "rnic-run/immediate_octets.hpp"

namespace rnic::run {

namespace {

// Some ten microseconds of empty polls: nothing where a processor is free.
constexpr uint32_t kEmptyPolls = 64;

ibv_wc_opcode opcode_of(const Completion& completion) {
  switch (completion.opcode) {
    case Opcode::Write:
    case Opcode::WriteImmediate: return IBV_WC_RDMA_WRITE;
    case Opcode::Read:
    case Opcode::ReadInvalidate: return IBV_WC_RDMA_READ;
    case Opcode::FetchAdd: return IBV_WC_FETCH_ADD;
    case Opcode::CompareSwap: return IBV_WC_COMP_SWAP;
    case Opcode::LocalInvalidate: return IBV_WC_LOCAL_INV;
    case Opcode::BindWindow: return IBV_WC_BIND_MW;
    case Opcode::Receive:
      return completion.has_immediate && !was_sent_alone(completion.immediate)
                 ? IBV_WC_RECV_RDMA_WITH_IMM
                 : IBV_WC_RECV;
    default: return IBV_WC_SEND;
  }
}

ibv_wc_status status_of(CompletionStatus status) {
  switch (status) {
    case CompletionStatus::Success: return IBV_WC_SUCCESS;
    case CompletionStatus::LocalProtection: return IBV_WC_LOC_PROT_ERR;
    case CompletionStatus::LocalLength: return IBV_WC_LOC_LEN_ERR;
    case CompletionStatus::RemoteAccess: return IBV_WC_REM_ACCESS_ERR;
    case CompletionStatus::RemoteInvalidRequest: return IBV_WC_REM_INV_REQ_ERR;
    case CompletionStatus::RemoteOperation: return IBV_WC_REM_OP_ERR;
    case CompletionStatus::Flushed: return IBV_WC_WR_FLUSH_ERR;
    case CompletionStatus::Lost: return IBV_WC_RETRY_EXC_ERR;
  }
  return IBV_WC_GENERAL_ERR;
}

ibv_wc as_theirs(const Completion& completion) {
  ibv_wc out{};
  out.wr_id = completion.id;
  out.status = status_of(completion.status);
  out.opcode = opcode_of(completion);
  out.byte_len = completion.length;
  out.qp_num = completion.qp;
  if (completion.invalidated_stag != 0) {
    out.wc_flags |= IBV_WC_WITH_INV;
    out.invalidated_rkey = completion.invalidated_stag;
  }
  if (completion.has_immediate) {
    out.wc_flags |= IBV_WC_WITH_IMM;
    // Of a Write it is the octets written that count, and a Send with immediate has none.
    out.byte_len = out.opcode == IBV_WC_RECV ? 0 : completion.written;
    std::memcpy(&out.imm_data, completion.immediate.data(), sizeof(out.imm_data));
  }
  return out;
}

bool is_gone_peers(CompletionCause cause) {
  switch (cause) {
    case CompletionCause::PeerClosed:
    case CompletionCause::Closed:
    case CompletionCause::PeerReset:
    case CompletionCause::TimedOut:
    case CompletionCause::Unreachable: return true;
    default: return false;
  }
}

/// The status of the first request of a queue pair that fails, in the words of InfiniBand.
ibv_wc_status first_status(ibv_wc_status status, const Completion& completion) {
  if (status != IBV_WC_WR_FLUSH_ERR) return status;
  if (is_gone_peers(completion.cause)) return IBV_WC_RETRY_EXC_ERR;
  if (completion.cause != CompletionCause::PeerTerminate) return status;
  // Of DDP it is an error of a tagged buffer, of RDMAP a remote protection error.
  constexpr uint8_t kOfMemory = 1;
  const bool of_memory =
      completion.fault.layer != FaultLayer::Llp && completion.fault.type == kOfMemory;
  return of_memory ? IBV_WC_REM_ACCESS_ERR : IBV_WC_REM_OP_ERR;
}

}  // namespace

int Channels::make() {
  EventPipe<uint64_t> pipe;
  if (!pipe.open()) return -1;
  const int reads = pipe.reads();
  const std::lock_guard lock(mutex_);
  try {
    pipes_.insert_or_assign(reads, std::move(pipe));
  } catch (const std::bad_alloc&) {
    ::close(reads);  // nobody else knows of it
    throw;
  }
  return reads;
}

void Channels::closed(int reads) {
  const std::lock_guard lock(mutex_);
  pipes_.erase(reads);
}

bool Channels::tell(int reads, const ibv_cq* queue) {
  const std::lock_guard lock(mutex_);
  const auto found = pipes_.find(reads);
  return found != pipes_.end() && found->second.tell(reinterpret_cast<uintptr_t>(queue));
}

void Channels::withdraw(int reads, const ibv_cq* queue) {
  const std::lock_guard lock(mutex_);
  const auto found = pipes_.find(reads);
  if (found == pipes_.end()) return;
  found->second.withdraw(
      [queue](uint64_t record) { return record == reinterpret_cast<uintptr_t>(queue); });
}

ibv_cq* Completions::create(ibv_context* context, int depth, ibv_comp_channel* channel,
                            int vector) {
  Adapter* adapter = Adapter::get();
  if (adapter == nullptr || depth <= 0 || vector != 0) {
    errno = EINVAL;
    return nullptr;
  }
  auto made = adapter->device().create_cq(static_cast<uint32_t>(depth));
  if (!made) {
    errno = as_errno(made.error());
    return nullptr;
  }
  std::unique_ptr<Completions> queue(new Completions);
  queue->queue_ = std::move(*made);
  queue->adapter_ = adapter;
  queue->shown_.cq.cqe = depth;
  if (channel != nullptr) {
    auto fd = queue->queue_.fd();
    if (!fd || !adapter->watch().add(*fd, &queue->bell_)) {
      errno = ENOMEM;
      return nullptr;
    }
    queue->fd_ = *fd;
    queue->channel_ = channel->fd;
  }
  AsyncEvents::all().add(AsyncEvents::Kind::CompletionQueue, queue->queue_.number(),
                         &queue->shown_.cq, context);
  return &queue.release()->shown_.cq;
}

int Completions::resize(ibv_cq* shown, int depth) {
  if (depth <= 0) return EINVAL;
  const std::lock_guard turn(of(shown).turn_);
  auto status = of(shown).queue_.resize(static_cast<uint32_t>(depth));
  if (!status) return as_errno(status.error());
  shown->cqe = depth;
  return 0;
}

int Completions::destroy(ibv_cq* shown) {
  Completions& queue = of(shown);
  // A child has its parent's epoll, and must not take the queue out of it.
  const bool watched = queue.fd_ >= 0 && queue.adapter_->is_own();
  if (watched) queue.adapter_->watch().remove(queue.fd_, &queue.bell_);
  if (const int refused = given_back(queue.queue_.destroy())) {
    if (watched) queue.adapter_->watch().add(queue.fd_, &queue.bell_);
    return refused;
  }
  if (queue.channel_ >= 0) Channels::all().withdraw(queue.channel_, shown);
  const uint32_t errors = AsyncEvents::all().remove(shown);
  // As the kernel's: the call returns when the program has acknowledged every event. Some programs
  // acknowledge more than they got.
  pthread_mutex_lock(&shown->mutex);
  while (queue.adapter_->is_own() && (shown->comp_events_completed < queue.taken_ ||
                                      shown->async_events_completed < errors)) {
    pthread_cond_wait(&shown->cond, &shown->mutex);
  }
  pthread_mutex_unlock(&shown->mutex);
  delete &queue;
  return 0;
}

int Completions::poll(ibv_cq* shown, int count, ibv_wc* out) {
  constexpr int kAtOnce = 16;
  std::array<Completion, kAtOnce> taken;
  int filled = 0;
  Completions& queue = of(shown);
  std::unique_lock turn(queue.turn_);
  queue.paused_ = std::exchange(queue.pauses_, false);
  if (queue.paused_) return 0;
  if (!queue.withheld_.empty()) queue.release_withheld();
  while (filled < count) {
    const auto room = static_cast<size_t>(std::min(count - filled, kAtOnce));
    const uint32_t got = queue.queue_.poll({taken.data(), room});
    for (uint32_t i = 0; i < got; ++i) {
      if (!queue.is_gone(taken[i].qp) && queue.show(taken[i], out[filled])) ++filled;
    }
    if (got == room) continue;
    queue.gone_.clear();  // the queue is empty
    queue.emptied_.store(queue.emptied() + 1, std::memory_order_relaxed);
    break;
  }
  for (; filled < count && !queue.added_.empty(); ++filled) {
    out[filled] = queue.added_.front();
    queue.added_.pop_front();
  }
  queue.empty_polls_ = filled != 0 ? 0 : queue.empty_polls_ + 1;
  const bool in_vain = queue.empty_polls_ != 0 && queue.empty_polls_ % kEmptyPolls == 0;
  queue.spins_ = queue.spins_ || in_vain;
  queue.pauses_ = queue.is_to_pause(count, {out, static_cast<size_t>(filled)});
  turn.unlock();
  // A program that spins was written for hardware. Here the peer may need the same processor.
  if (in_vain) sched_yield();
  return filled;
}

/// A program that spins comes upon message after message over hardware, whose peer needs some time
/// for each. Here it gives the processor away meanwhile, and then finds all that its peer has sent,
/// perhaps up to the farewell: rsockets tells of data and of the end at once, and rstream stops
/// reading. So between two messages it finds nothing once.
bool Completions::is_to_pause(int asked, std::span<const ibv_wc> out) const {
  if (!spins_ || asked != 1 || out.empty() || is_roce()) return false;
  return out[0].status == IBV_WC_SUCCESS && (out[0].opcode & IBV_WC_RECV) != 0;
}

int Completions::request_notify(ibv_cq* shown, int solicited_only) {
  Completions& queue = of(shown);
  if (queue.fd_ < 0) return 0;
  const std::lock_guard turn(queue.turn_);
  queue.spins_ = false;
  queue.pauses_ = false;
  // What it was not shown must not be missed by a program that looks no more before it sleeps.
  const bool may_miss = std::exchange(queue.paused_, false) &&
                        (queue.is_waiting() || !queue.added_.empty());
  queue.armed_ = true;
  auto status = queue.queue_.arm(solicited_only != 0 ? Notify::Solicited : Notify::Next);
  if (!status) return as_errno(status.error());
  queue.adapter_->watch().look_again(queue.fd_, &queue.bell_);
  if (may_miss) queue.tell();
  return 0;
}

/// Over RoCE a queue pair does not notice that its peer has gone, and its receives stay posted:
/// programs end on one side while the other one polls still. So such a receive is told of only when
/// the program knows, by a request that has failed or by itself.
/// \return false: not now
bool Completions::show(const Completion& completion, ibv_wc& out) {
  out = as_theirs(completion);
  if (!is_roce()) return true;
  const auto pair = ShownNumbers::all().find(completion.qp);
  if (pair == nullptr) return true;
  out.qp_num = pair->number;
  const bool is_receive = completion.opcode == Opcode::Receive;
  if (pair->receipts != nullptr && !is_receive && !pair->receipts->take(completion.id, out)) {
    return false;
  }
  if (out.status == IBV_WC_SUCCESS) return true;
  // The first request that fails says why: the one that was to blame may be complete already.
  if (!is_receive && !pair->failed.exchange(true)) {
    out.status = first_status(out.status, completion);
  }
  const bool shows_that_peer_is_gone =
      is_receive && out.status == IBV_WC_WR_FLUSH_ERR && is_gone_peers(completion.cause);
  // What tells why may have been added here, and comes first.
  if (!shows_that_peer_is_gone || (pair->failed && added_.empty())) return true;
  // Whoever goes on posting receives to such a queue pair is told in the end.
  if (withheld_.size() >= static_cast<size_t>(shown_.cq.cqe)) return true;
  try {
    if (pair->failed) {
      added_.push_back(out);
    } else {
      withheld_.push_back({out, pair});
    }
  } catch (const std::bad_alloc&) {
    return true;
  }
  return false;
}

void Completions::release_withheld() {
  const auto stays = [](const Withheld& each) { return !each.pair->failed; };
  const auto first = std::stable_partition(withheld_.begin(), withheld_.end(), stays);
  for (auto each = first; each != withheld_.end(); ++each) added_.push_back(each->done);
  withheld_.erase(first, withheld_.end());
}

void Completions::forget(std::span<const uint32_t> numbers, uint32_t shown) {
  const std::lock_guard turn(turn_);
  gone_.insert(gone_.end(), numbers.begin(), numbers.end());
  const auto info = queue_.info();
  const bool is_empty = info && info->waiting == 0;
  std::erase_if(added_, [shown](const ibv_wc& done) { return done.qp_num == shown; });
  std::erase_if(withheld_, [shown](const Withheld& each) { return each.done.qp_num == shown; });
  if (is_empty) gone_.clear();
}

std::optional<uint32_t> Completions::emptied_if_unread() {
  const std::lock_guard turn(turn_);
  if (!is_waiting()) return std::nullopt;
  return emptied();
}

bool Completions::is_waiting() const {
  const auto info = queue_.info();
  return info && info->waiting != 0;
}

bool Completions::is_gone(uint32_t number) const {
  return std::find(gone_.begin(), gone_.end(), number) != gone_.end();
}

bool Completions::add(const ibv_wc& done) {
  // C is above: nothing may be thrown there.
  try {
    const std::lock_guard turn(turn_);
    added_.push_back(done);
  } catch (const std::bad_alloc&) {
    return false;
  }
  tell();
  return true;
}

void Completions::tell() {
  if (armed_.exchange(false)) Channels::all().tell(channel_, &shown_.cq);
}

}  // namespace rnic::run
