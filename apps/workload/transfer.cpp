#include "workload/transfer.hpp"

#include <algorithm>
#include <array>

namespace rnic::workload {

namespace {

tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected(Error{code, std::move(message)});
}

}  // namespace

const char* to_string(Operation operation) {
  switch (operation) {
    case Operation::Send: return "send";
    case Operation::Write: return "write";
    case Operation::Read: return "read";
  }
  return "unknown";
}

std::optional<Operation> parse_operation(const std::string& word) {
  for (const Operation op : {Operation::Send, Operation::Write, Operation::Read}) {
    if (word == to_string(op)) return op;
  }
  return std::nullopt;
}

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
  const bool read = options.operation == Operation::Read;
  End& source_end = read ? *pair.responder : *pair.initiator;
  End& target_end = read ? *pair.initiator : *pair.responder;
  auto source_region = source_end.pd.register_memory(transfer->source_.data(), octets,
                                                     read ? kRemoteRead : kLocalRead);
  if (!source_region) return tl::unexpected(source_region.error());
  transfer->source_region_ = std::move(*source_region);
  const uint32_t rights =
      options.operation == Operation::Write ? kLocalWrite | kRemoteWrite : uint32_t{kLocalWrite};
  auto target_region = target_end.pd.register_memory(transfer->target_.data(), octets, rights);
  if (!target_region) return tl::unexpected(target_region.error());
  transfer->target_region_ = std::move(*target_region);
  transfer->pattern_.seed = options.seed;
  transfer->post_time_.resize(options.depth);
  return transfer;
}

void Transfer::prepare() {
  ++pattern_.generation;
  for (uint32_t slot = 0; slot < options_.slots; ++slot) {
    fill(source_.octets().subspan(slot * slot_octets_, options_.size), pattern_,
         slot * slot_octets_);
  }
  poison(target_.octets());
}

std::optional<Mismatch> Transfer::verify() const {
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
  const auto size = static_cast<uint32_t>(options_.size);
  SendRequest request;
  request.id = index;
  request.sge_count = 1;
  switch (options_.operation) {
    case Operation::Send:
      request.opcode = Opcode::Send;
      request.sges[0] = source_region_.sge(offset, size);
      break;
    case Operation::Write:
      request.opcode = Opcode::Write;
      request.sges[0] = source_region_.sge(offset, size);
      request.remote_stag = target_region_.stag();
      request.remote_offset = target_region_.address() + offset;
      break;
    case Operation::Read:
      request.opcode = Opcode::Read;
      request.sges[0] = target_region_.sge(offset, size);
      request.remote_stag = source_region_.stag();
      request.remote_offset = source_region_.address() + offset;
      break;
  }
  post_time_[index % options_.depth] = context_.now_ns();
  return pair_.initiator->qp.post_send(request);
}

Status Transfer::post_receives() {
  while (receives_posted_ < messages_ && receives_posted_ - received_ < options_.depth) {
    ReceiveRequest request;
    request.id = receives_posted_;
    request.sge_count = 1;
    request.sges[0] = target_region_.sge((receives_posted_ % options_.slots) * slot_octets_,
                                         static_cast<uint32_t>(options_.size));
    if (Status status = pair_.responder->qp.post_receive(request); !status) return status;
    ++receives_posted_;
  }
  return {};
}

Status Transfer::reap(TransferResult& result) {
  std::array<Completion, 32> done;
  const uint32_t n = pair_.initiator->send_cq.poll(done);
  const int64_t now = n != 0 ? context_.now_ns() : 0;
  for (uint32_t i = 0; i < n; ++i) {
    if (done[i].status != CompletionStatus::Success || done[i].id != completed_) {
      return fail(ErrorCode::Protocol, "message " + std::to_string(done[i].id) +
                                           " completed with " + to_string(done[i].status) +
                                           ", expected message " + std::to_string(completed_) +
                                           " with success");
    }
    result.latency_ns.push_back(now - post_time_[completed_ % options_.depth]);
    ++completed_;
  }
  if (options_.operation != Operation::Send) return {};
  const uint32_t received = pair_.responder->receive_cq.poll(done);
  for (uint32_t i = 0; i < received; ++i) {
    if (done[i].status != CompletionStatus::Success || done[i].id != received_ ||
        done[i].length != options_.size) {
      return fail(ErrorCode::Protocol, "receive " + std::to_string(done[i].id) +
                                           " completed with " + to_string(done[i].status) + ", " +
                                           std::to_string(done[i].length) + " octets");
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
  const bool send = options_.operation == Operation::Send;
  const int64_t start = context_.now_ns();
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
    if ((++turns & 1023) == 0 && context_.now_ns() > deadline) return stalled();
  }
  result.elapsed_ns += context_.now_ns() - start;
  result.messages += messages;
  result.octets += messages * options_.size;
  return {};
}

}  // namespace rnic::workload
