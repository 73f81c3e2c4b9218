#include "workload/transfer.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace rnic::workload {

namespace {

/// What the initiator asks for comes to its own memory.
bool comes_back(Operation operation) {
  return operation == Operation::Read || is_atomic(operation);
}

AccessSet source_rights(Operation operation) {
  if (operation == Operation::Read) return Access::RemoteRead;
  return is_atomic(operation) ? Access::RemoteAtomic : Access::LocalRead;
}

AccessSet target_rights(Operation operation) {
  const bool write = operation == Operation::Write || operation == Operation::WriteImmediate;
  return write ? Access::LocalWrite | Access::RemoteWrite : AccessSet(Access::LocalWrite);
}

}  // namespace

Result<std::unique_ptr<Transfer>> Transfer::create(Context& context, Pair& pair,
                                                   const TransferOptions& options,
                                                   std::function<void()> poll) {
  std::unique_ptr<Transfer> transfer(new Transfer(context, pair, options, std::move(poll)));
  transfer->slot_octets_ = (options.size + 63) / 64 * 64;
  const uint64_t octets = transfer->slot_octets_ * options.slots;
  auto source = Buffer::allocate(octets);
  if (!source) return tl::unexpected(source.error());
  auto target = Buffer::allocate(octets);
  if (!target) return tl::unexpected(target.error());
  transfer->source_ = std::move(*source);
  transfer->target_ = std::move(*target);
  // Of atomics the "source" is the words they work on, the "target" is where the originals go.
  const bool read = comes_back(options.operation);
  End& source_end = read ? *pair.responder : *pair.initiator;
  End& target_end = read ? *pair.initiator : *pair.responder;
  auto source_region = source_end.pd.register_memory(
      std::as_writable_bytes(std::span(transfer->source_.data(), octets)),
      source_rights(options.operation));
  if (!source_region) return tl::unexpected(source_region.error());
  transfer->source_region_ = std::move(*source_region);
  auto target_region = target_end.pd.register_memory(
      std::as_writable_bytes(std::span(transfer->target_.data(), octets)),
      target_rights(options.operation));
  if (!target_region) return tl::unexpected(target_region.error());
  transfer->target_region_ = std::move(*target_region);
  transfer->pattern_.seed = options.seed;
  transfer->post_time_.resize(options.depth);
  return transfer;
}

void Transfer::prepare() {
  ++pattern_.generation;
  // Between the words of atomics, too: nothing of it may change.
  const uint64_t octets = is_atomic(options_.operation) ? slot_octets_ : options_.size;
  for (uint32_t slot = 0; slot < options_.slots; ++slot) {
    fill(source_.octets().subspan(slot * slot_octets_, octets), pattern_, slot * slot_octets_);
  }
  poison(target_.octets());
  prepared_ = true;
}

std::optional<Mismatch> Transfer::verify() const {
  if (options_.operation == Operation::Immediate) return std::nullopt;  // run() looked
  if (atomics_) {
    if (const auto bad = atomics_->compare_targets(source_.octets())) return bad;
    return atomics_->compare_originals(target_.octets());
  }
  const auto slots = static_cast<uint32_t>(std::min<uint64_t>(options_.slots, messages_));
  for (uint32_t slot = 0; slot < slots; ++slot) {
    const uint64_t offset = slot * slot_octets_;
    if (auto mismatch =
            compare(target_.octets().subspan(offset, options_.size), pattern_, offset)) {
      mismatch->offset += offset;
      return mismatch;
    }
  }
  return std::nullopt;
}

Status Transfer::post(uint64_t index) {
  const uint64_t offset = (index % options_.slots) * slot_octets_;
  const bool back = comes_back(options_.operation);
  const MemoryRegion& local = back ? target_region_ : source_region_;
  const MemoryRegion& remote = back ? source_region_ : target_region_;
  SendRequest request;
  request.id = index;
  request.opcode = opcode_of(options_.operation);
  if (options_.operation != Operation::Immediate) {
    request.sges = {local.sge(offset, static_cast<uint32_t>(options_.size))};
  }
  request.remote = {remote.stag(), remote.address() + offset};
  if (atomics_) request.atomic = atomics_->step(index).operands;
  request.immediate = immediate_of(pattern_, index);
  post_time_[index % options_.depth] = context_.now().count();
  if (options_.operation == Operation::WriteImmediate) {
    request.signaled = false;  // the Immediate's completion is that of both
    if (Status status = pair_.initiator->qp.post_send(request); !status) return status;
    return pair_.initiator->qp.post_immediate(index, request.immediate);
  }
  return pair_.initiator->qp.post_send(request);
}

Status Transfer::post_receives() {
  while (receives_posted_ < messages_ && receives_posted_ - received_ < options_.depth) {
    ReceiveRequest request;
    request.id = receives_posted_;
    if (options_.operation == Operation::Send) {
      request.sges = {target_region_.sge((receives_posted_ % options_.slots) * slot_octets_,
                                         static_cast<uint32_t>(options_.size))};
    }
    if (Status status = pair_.responder->qp.post_receive(request); !status) return status;
    ++receives_posted_;
  }
  return {};
}

Status Transfer::reap(TransferResult& result) {
  std::array<Completion, 32> done;
  const uint32_t n = pair_.initiator->send_cq.poll(done);
  const int64_t now = n != 0 ? context_.now().count() : 0;
  for (uint32_t i = 0; i < n; ++i) {
    if (done[i].status != CompletionStatus::Success || done[i].id != completed_) {
      return fail(ErrorCode::Protocol, "message " + std::to_string(done[i].id) +
                                           " completed with " + to_string(done[i].status) +
                                           ", expected message " + std::to_string(completed_) +
                                           " with success");
    }
    if (atomics_ && prepared_) {
      if (Status status = check_original(done[i]); !status) return status;
    }
    result.latency_ns.push_back(now - post_time_[completed_ % options_.depth]);
    ++completed_;
  }
  return takes_receive(options_.operation) ? reap_receives() : Status{};
}

Status Transfer::check_original(const Completion& done) const {
  const uint64_t expected = atomics_->step(done.id).original;
  if (done.original == expected) return {};
  return fail(ErrorCode::Protocol, std::string(to_string(options_.operation)) + " " +
                                       std::to_string(done.id) + " found " +
                                       std::to_string(done.original) + ", expected " +
                                       std::to_string(expected));
}

Status Transfer::reap_receives() {
  std::array<Completion, 32> done;
  const bool immediate = has_immediate(options_.operation);
  const uint64_t length = immediate ? kWordOctets : options_.size;
  const uint32_t received = pair_.responder->receive_cq.poll(done);
  for (uint32_t i = 0; i < received; ++i) {
    if (done[i].status != CompletionStatus::Success || done[i].id != received_ ||
        done[i].length != length || done[i].has_immediate != immediate) {
      return fail(ErrorCode::Protocol, "receive " + std::to_string(done[i].id) +
                                           " completed with " + to_string(done[i].status) + ", " +
                                           std::to_string(done[i].length) + " octets");
    }
    if (immediate && prepared_ && done[i].immediate != immediate_of(pattern_, received_)) {
      return fail(ErrorCode::Protocol,
                  "Immediate Data " + std::to_string(received_) + " has other octets");
    }
    ++received_;
  }
  return {};
}

Status Transfer::stalled() const {
  return fail(ErrorCode::TimedOut, std::to_string(completed_) + " of " + std::to_string(messages_) +
                                       " messages completed within " +
                                       std::to_string(options_.timeout_ms) + " ms");
}

Status Transfer::run(uint64_t messages, TransferResult& result) {
  messages_ = messages;
  posted_ = completed_ = receives_posted_ = received_ = 0;
  const bool send = takes_receive(options_.operation);
  atomics_.reset();
  if (is_atomic(options_.operation)) {
    atomics_.emplace(options_.operation, pattern_, options_.slots, messages);
  }
  const int64_t start = context_.now().count();
  const int64_t deadline = start + options_.timeout_ms * 1000000;
  uint32_t turns = 0;
  while (completed_ < messages || (send && received_ < messages)) {
    if (send) {
      if (Status status = post_receives(); !status) return status;
    }
    while (posted_ < messages && posted_ - completed_ < options_.depth &&
           (!send || posted_ < receives_posted_)) {
      if (Status status = post(posted_); !status) return status;
      ++posted_;
    }
    poll_();
    if (Status status = reap(result); !status) return status;
    if ((++turns & 1023) == 0 && context_.now().count() > deadline) return stalled();
  }
  result.elapsed_ns += context_.now().count() - start;
  prepared_ = false;
  result.messages += messages;
  result.octets += messages * options_.size;
  return {};
}

}  // namespace rnic::workload
