// What must be true of memory and completions.

#include <algorithm>
#include <cstring>

#include "traffic.hpp"
#include "wire/rdmap.hpp"

namespace rnic::simulation {

namespace {

wire::RdmapOpcode opcode_of(Operation operation) {
  switch (operation) {
    case Operation::Send: return wire::RdmapOpcode::Send;
    case Operation::SendSolicited: return wire::RdmapOpcode::SendSolicited;
    case Operation::SendInvalidate: return wire::RdmapOpcode::SendInvalidate;
    case Operation::Immediate: return wire::RdmapOpcode::Immediate;
    case Operation::Write: return wire::RdmapOpcode::Write;
    case Operation::FetchAdd:
    case Operation::CompareSwap: return wire::RdmapOpcode::AtomicRequest;
    case Operation::Read:
    case Operation::ReadBack: break;
  }
  return wire::RdmapOpcode::ReadRequest;
}

}  // namespace

void Flow::check_content(const Job& job, const std::vector<Piece>& pieces, const char* moment) {
  uint64_t first = 0;
  for (const Piece& piece : pieces) {
    const auto length =
        static_cast<uint32_t>(std::min<uint64_t>(piece.slice.length, job.plan.length - first));
    const base::ByteView view{piece.region->memory.data() + piece.slice.offset, length};
    if (const auto bad = pattern_difference(view, job.key, first)) {
      fail("content", "octet " + std::to_string(first + *bad) + " of " + describe(job) +
                          " is wrong " + moment +
                          (view[*bad] == kPoison ? " (it holds what was there before)" : ""));
      return;
    }
    if (piece.slice.length != 0 && !piece.region->memory.neighbours_clean(piece.slice)) {
      fail("guard", "octets next to " + describe(job) + " were written " + moment);
    }
    // What a receive buffer has beyond the message is untouched.
    for (uint32_t i = length; i < piece.slice.length; ++i) {
      if (piece.region->memory.data()[piece.slice.offset + i] != kPoison) {
        fail("guard", "octets behind " + describe(job) + " were written " + moment);
        return;
      }
    }
    first += length;
  }
}

void Flow::check_mixed(const Job& job, const std::vector<Piece>& pieces) {
  uint64_t first = 0;
  for (const Piece& piece : pieces) {
    const uint8_t* octets = piece.region->memory.data() + piece.slice.offset;
    for (uint32_t i = 0; i < piece.slice.length; ++i, ++first) {
      if (octets[i] == kPoison) continue;
      if (first >= job.plan.length || octets[i] != pattern_octet(job.key, first)) {
        fail("content", "octet " + std::to_string(first) + " of " + describe(job) +
                            " holds what nobody has sent, while it is on its way");
        return;
      }
    }
  }
}

/// The memory for an atomic's result: poison, or the original, and the latter when it is complete.
void Flow::check_original(const Job& job, bool completed) {
  for (const Piece& piece : job.local) {
    uint64_t value = 0;
    std::memcpy(&value, piece.region->memory.view(piece.slice).data(), sizeof value);
    const bool untouched = value == kPoison * 0x0101010101010101ull;
    if (value != job.original && (completed || !untouched)) {
      fail("content", "the result of " + describe(job) + " is " + std::to_string(value) +
                          " instead of " + std::to_string(job.original));
    }
  }
}

void Flow::check_word() {
  if (broken_) return;
  uint64_t word = 0;
  std::memcpy(&word, counter_->memory.view(word_).data(), sizeof word);
  for (size_t i = completed_jobs_; i < jobs_.size(); ++i) {
    const Job& job = jobs_[i];
    if (!is_atomic(job.plan.operation)) continue;
    if (word == job.original) return;
    if (reference_requests_ <= i) {
      fail("atomic", "the word is " + std::to_string(word) + " although " + describe(job) +
                         ", which finds " + std::to_string(job.original) + ", is not delivered");
      return;
    }
  }
  if (word != word_value_) fail("atomic", "the word holds a value that no atomic leaves");
}

void Flow::check_delivered_before(size_t job_index, const char* moment) {
  // What is completed already was checked at its own completion, where that says that it arrived.
  if (world_.delivered_when_complete) delivered_jobs_ = completed_jobs_;
  for (size_t& i = delivered_jobs_; i < job_index && !verdict_.failed(); ++i) {
    const Job& job = jobs_[i];
    if (job.plan.operation == Operation::Write) check_content(job, {job.remote}, moment);
  }
}

void Flow::check_reference(size_t job_index, bool response, const char* moment) {
  if (reference_requests_ <= job_index) {
    fail("reference", describe(jobs_[job_index]) + " is ahead of the reference receiver " + moment);
  }
  if (!response) return;
  const auto it = std::lower_bound(read_jobs_.begin(), read_jobs_.end(), job_index);
  if (reference_responses_ <= static_cast<size_t>(it - read_jobs_.begin())) {
    fail("reference", describe(jobs_[job_index]) + " completed before its Read Response arrived");
  }
}

void Flow::complete(Job& job) {
  const auto index = static_cast<size_t>(job.id);
  const char* moment = "at its completion";
  const bool arrived = world_.delivered_when_complete || is_read(job.plan.operation);
  if (arrived) check_reference(index, is_read(job.plan.operation), moment);
  if (!arrived) {
    // The system has the octets: whose they were, may do with them what he likes.
  } else if (is_send(job.plan.operation)) {
    const Receive& receive = receives_[job.receive];
    if (!receive.completed) check_content(job, receive.pieces, moment);
  } else if (job.plan.operation == Operation::Write) {
    check_content(job, {job.remote}, moment);
  } else {
    if (is_atomic(job.plan.operation)) {
      check_original(job, true);
    } else {
      check_content(job, job.local, moment);
    }
    check_delivered_before(index, "when a later Read or atomic completes");
  }
  job.completed = true;
  release(job.local);
  const bool kept =
      job.plan.operation == Operation::Read || job.plan.operation == Operation::ReadBack ||
      (index + 1 < messages_.size() && messages_[index + 1].operation == Operation::ReadBack) ||
      !arrived;
  if (job.remote.region != nullptr && !kept && !job.released) {
    job.remote.region->memory.release(job.remote.slice);
    job.released = true;
  }
}

void Flow::send_flushed(const Completion& completion) {
  // The first that did not succeed may have been under way when the connection was lost.
  const bool lost = completion.status == CompletionStatus::Lost && !flushing_;
  if ((completion.status != CompletionStatus::Flushed && !lost) || completion.id >= jobs_.size() ||
      completion.id < completed_jobs_) {
    fail("completion", "work request " + std::to_string(completion.id) + " completed with " +
                           to_string(completion.status) + " on a broken connection");
    return;
  }
  // What nobody wants to hear of may have succeeded silently; behind the first that was flushed
  // every one is told.
  for (; completed_jobs_ < completion.id; ++completed_jobs_) {
    if (flushing_ || jobs_[completed_jobs_].plan.signaled) {
      fail("completion", describe(jobs_[completed_jobs_]) + " was passed over by a flush");
      return;
    }
    release(jobs_[completed_jobs_].local);
  }
  flushing_ = true;
  release(jobs_[completed_jobs_++].local);
}

void Flow::send_completed(const Completion& completion) {
  if (broken_ && (completion.status != CompletionStatus::Success || flushing_)) {
    return send_flushed(completion);
  }
  if (completion.status != CompletionStatus::Success) {
    fail("completion", "work request " + std::to_string(completion.id) + " completed with " +
                           to_string(completion.status));
    return;
  }
  if (completion.id >= jobs_.size() || completion.id < completed_jobs_) {
    fail("completion",
         "work request " + std::to_string(completion.id) + " completed twice or was never posted");
    return;
  }
  while (completed_jobs_ < completion.id && !verdict_.failed()) {
    if (jobs_[completed_jobs_].plan.signaled) {
      fail("completion", "work request " + std::to_string(completion.id) + " completed before " +
                             describe(jobs_[completed_jobs_]));
      return;
    }
    complete(jobs_[completed_jobs_]);
    ++completed_jobs_;
  }
  Job& job = jobs_[completion.id];
  if (!job.plan.signaled) {
    fail("completion", describe(job) + " was not signaled, but completed");
    return;
  }
  const bool immediate = job.plan.operation == Operation::Immediate;
  if (completion.length != (immediate ? 8 : job.plan.length)) {
    fail("completion",
         describe(job) + " completed with length " + std::to_string(completion.length));
  }
  if (is_atomic(job.plan.operation) && completion.original != job.original) {
    fail("atomic", describe(job) + " returned " + std::to_string(completion.original) +
                       " instead of " + std::to_string(job.original));
  }
  complete(job);
  ++completed_jobs_;
}

void Flow::receive_completed(const Completion& completion) {
  if (received_ >= receives_.size() || completion.id != receives_[received_].id) {
    fail("completion", "receive " + std::to_string(completion.id) + " completed out of order");
    return;
  }
  Receive& receive = receives_[received_++];
  receive.completed = true;
  if (broken_ && completion.status == CompletionStatus::Flushed) {
    release(receive.pieces);
    return;
  }
  if (completion.status == CompletionStatus::Flushed && to_.closing && received_ > sends_.size()) {
    for (const Piece& piece : receive.pieces) {
      for (uint32_t i = 0; i < piece.slice.length; ++i) {
        if (piece.region->memory.data()[piece.slice.offset + i] != kPoison) {
          fail("guard", "a flushed receive buffer was written");
          return;
        }
      }
    }
    release(receive.pieces);
    return;
  }
  if (completion.status != CompletionStatus::Success || received_ > send_jobs_.size()) {
    fail("completion", "receive " + std::to_string(completion.id) + " completed with " +
                           to_string(completion.status) + " and no Send for it");
    return;
  }
  const uint32_t index = send_jobs_[received_ - 1];
  const Job& job = jobs_[index];
  const char* moment = "at the receive's completion";
  check_reference(index, false, moment);
  check_content(job, receive.pieces, moment);
  check_delivered_before(index, "when a later Send is delivered");
  const bool solicited = job.plan.operation == Operation::SendSolicited;
  const bool immediate = job.plan.operation == Operation::Immediate;
  if (completion.has_immediate != immediate ||
      (immediate && completion.immediate != immediate_of(job))) {
    fail("completion", "the receive of " + describe(job) + " has other immediate data");
  }
  if (completion.length != (immediate ? 8 : job.plan.length) || completion.solicited != solicited ||
      completion.invalidated_stag != job.invalidate.value) {
    fail("completion", "the receive of " + describe(job) + " says length " +
                           std::to_string(completion.length) + ", solicited " +
                           std::to_string(completion.solicited) + ", invalidated " +
                           std::to_string(completion.invalidated_stag));
  }
  if (job.plan.operation == Operation::SendInvalidate) {
    const auto access =
        to_.device->memory().access({job.invalidate,
                                     reinterpret_cast<uint64_t>(window_->memory.data()),
                                     1,
                                     {},
                                     to_.pd,
                                     to_.qp->number()});
    if (access.at != nullptr) fail("invalidate", describe(job) + " left its STag valid");
  }
  release(receive.pieces);
}

void Flow::reference_request(const WireMessage& message) {
  if (rtr_expected_) {
    rtr_expected_ = false;
    if (!message.tagged || !message.payload.empty()) fail("rtr", "the first message is another");
    return;
  }
  // Beside a planned Write of no octets it does not matter which of the two comes first.
  const bool planned = reference_requests_ < jobs_.size() &&
                       jobs_[reference_requests_].plan.operation == Operation::Write &&
                       jobs_[reference_requests_].plan.length == 0;
  if (nudge_allowed_ && message.tagged && message.payload.empty() && !planned) {
    if (!nudge_allowed_()) fail("nudge", "a peer that has spoken is woken");
    nudge_allowed_ = nullptr;
    return;
  }
  const size_t index = reference_requests_++;
  if (index >= jobs_.size()) {
    fail("reference", "message " + std::to_string(index) + " was never posted");
    return;
  }
  const Job& job = jobs_[index];
  const auto wrong = [&](const std::string& what) {
    fail("reference", describe(job) + " came over the wire with " + what);
  };
  if (message.opcode != static_cast<uint8_t>(opcode_of(job.plan.operation))) {
    return wrong("opcode " + std::to_string(message.opcode));
  }
  if (is_atomic(job.plan.operation)) {
    if (const auto bad = wrong_atomic(job, message)) wrong(*bad);
    return;
  }
  if (job.plan.operation == Operation::Immediate) {
    if (!std::ranges::equal(message.payload, immediate_of(job))) wrong("other octets");
    if (message.msn != job.receive + 1) wrong("MSN " + std::to_string(message.msn));
    return;
  }
  if (is_read(job.plan.operation)) {
    const auto request = wire::parse_rdmap_read_request(message.payload);
    const Piece& sink = job.local.empty() ? job.remote : job.local[0];
    if (!request || request->size != job.plan.length) return wrong("another size");
    if (job.plan.length == 0 || job.completed) return;
    if (request->sink_stag != sink.region->stag.value ||
        request->sink_to != sink.region->base + sink.slice.offset ||
        request->source_stag != job.remote.region->stag.value ||
        request->source_to != job.remote.region->base + job.remote.slice.offset) {
      wrong("another sink or source");
    }
    return;
  }
  if (message.payload.size() != job.plan.length) {
    return wrong(std::to_string(message.payload.size()) + " octets");
  }
  if (pattern_difference(message.payload, job.key, 0)) return wrong("other content");
  if (is_send(job.plan.operation)) {
    if (message.msn != job.receive + 1) wrong("MSN " + std::to_string(message.msn));
    if (message.stag != job.invalidate.value) wrong("another STag to invalidate");
  } else if (job.plan.length != 0 &&
             (message.stag != job.remote.region->stag.value ||
              message.to != job.remote.region->base + job.remote.slice.offset)) {
    wrong("another sink");
  }
}

std::optional<std::string> Flow::wrong_atomic(const Job& job, const WireMessage& message) const {
  const auto request = wire::parse_rdmap_atomic_request(message.payload);
  if (!request || message.payload.size() != wire::kRdmapAtomicRequestSize) return "another size";
  const bool add = job.plan.operation == Operation::FetchAdd;
  if (request->code != (add ? 0 : 2)) return "another AOpCode";
  if (request->data != job.operands.data || request->mask != job.operands.mask) {
    return "other operands";
  }
  if (!add && (request->compare != job.operands.compare ||
               request->compare_mask != job.operands.compare_mask)) {
    return "another comparison";
  }
  if (request->stag != counter_->stag.value || request->to != counter_->base + word_.offset) {
    return "another target";
  }
  return std::nullopt;
}

void Flow::reference_response(const WireMessage& message) {
  const size_t index = reference_responses_++;
  if (index >= read_jobs_.size()) {
    fail("reference", "Read Response " + std::to_string(index) + " answers no Read");
    return;
  }
  const Job& job = jobs_[read_jobs_[index]];
  if (is_atomic(job.plan.operation)) {
    const auto response = wire::parse_rdmap_atomic_response(message.payload);
    if (message.opcode != static_cast<uint8_t>(wire::RdmapOpcode::AtomicResponse) || !response ||
        response->original != job.original) {
      fail("reference", "the response to " + describe(job) + " came with another value");
    }
    return;
  }
  if (message.payload.size() != job.plan.length ||
      pattern_difference(message.payload, job.key, 0)) {
    fail("reference",
         "the response to " + describe(job) + " came over the wire with other content");
  }
}

/// Everything that was posted was told of: all receives, and all requests but those whose success
/// nobody wants to hear of.
void Flow::check_broken_end() {
  if (received_ != receives_.size()) {
    fail("completion", std::to_string(receives_.size() - received_) + " receives were not flushed");
  }
  for (size_t i = completed_jobs_; i < jobs_.size(); ++i) {
    if (flushing_ || jobs_[i].plan.signaled) fail("completion", describe(jobs_[i]) + " was lost");
  }
}

void Flow::check_end() {
  if (broken_) return check_broken_end();
  if (!done()) fail("completion", "the connection ended too early");
  if (received_ != receives_.size()) {
    fail("completion",
         std::to_string(receives_.size() - received_) + " receives were neither used nor flushed");
  }
  if (reference_requests_ != jobs_.size() || reference_responses_ != read_jobs_.size()) {
    fail("reference", "the reference receiver saw " + std::to_string(reference_requests_) +
                          " messages and " + std::to_string(reference_responses_) +
                          " Read Responses");
  }
  uint64_t word = 0;
  std::memcpy(&word, counter_->memory.view(word_).data(), sizeof word);
  if (word != word_value_) fail("atomic", "the word of the atomics holds another value at the end");
  counter_->memory.release(word_);
  // What was kept until now.
  for (Job& job : jobs_) {
    if (job.remote.region == nullptr || job.released || !job.completed) continue;
    if (job.plan.operation == Operation::ReadBack) continue;
    check_content(job, {job.remote}, "at the end");
    job.remote.region->memory.release(job.remote.slice);
    job.released = true;
  }
}

void Flow::check_memory() {
  for (const auto& region :
       {&source_, &sink_, &receive_, &target_, &rewritten_, &readable_, &window_, &counter_}) {
    if (auto bad = (*region)->memory.check_idle()) fail("guard", *bad);
  }
  for (size_t i = completed_jobs_; i < jobs_.size() && !verdict_.failed(); ++i) {
    const Job& job = jobs_[i];
    if (is_atomic(job.plan.operation)) {
      check_original(job, false);
    } else if (is_read(job.plan.operation)) {
      check_mixed(job, job.local);
    } else {
      check_content(job, job.local, "in its source, while it is on its way");
    }
    if (job.plan.operation == Operation::Write) check_mixed(job, {job.remote});
    if (is_send(job.plan.operation) && job.receive < receives_.size() &&
        !receives_[job.receive].completed) {
      check_mixed(job, receives_[job.receive].pieces);
    }
  }
}

}  // namespace rnic::simulation
