#include "traffic.hpp"

#include <algorithm>
#include <cstring>

#include "atomic_model.hpp"
#include "wire/rdmap.hpp"

namespace rnic::simulation {

Region::Region(device::Device& device, uint64_t octets, const mem::RegionSpec& wanted,
               Verdict& verdict)
    : memory(octets) {
  mem::RegionSpec spec = wanted;
  spec.address = memory.data();
  spec.length = octets;
  base = spec.offset.value_or(reinterpret_cast<uint64_t>(memory.data()));
  if (auto registered = device.register_memory(spec)) {
    stag = *registered;
  } else {
    verdict.fail("resources", registered.error().message);
  }
}

namespace {

/// Room for all slices of a kind at once, side by side.
uint64_t room_for(uint64_t octets, size_t count) { return octets + count * 64 + 4096; }

uint64_t longest(const std::vector<MessagePlan>& messages) {
  uint64_t length = 0;
  for (const MessagePlan& m : messages) length = std::max<uint64_t>(length, m.length);
  return length;
}

}  // namespace

Flow::Flow(std::string name, const WorldPlan& plan, End& from, End& to,
           std::vector<MessagePlan> messages, uint64_t seed, Verdict& verdict)
    : name_(std::move(name)),
      world_(plan),
      from_(from),
      to_(to),
      messages_(std::move(messages)),
      prng_(seed),
      key_(seed * 0x2545f4914f6cdd1dull),
      verdict_(verdict) {
  uint64_t read_octets = 0;
  uint64_t kept_writes = 0;
  uint64_t write_octets = 0;
  for (const MessagePlan& m : messages_) {
    if (m.operation == Operation::Write) write_octets += m.length;
    if (m.operation == Operation::Read) read_octets += m.length;
    if (m.operation == Operation::ReadBack) kept_writes += m.length;
    if (is_send(m.operation)) sends_.push_back(m);
  }
  // Any message fits twice and some more; ReadBack and Read sources are never used again, because a
  // lost ACK lets the responder send them once more.
  const uint64_t usual = 2 * longest(messages_) + (128u << 10);
  const auto region = [&](End& end, uint64_t octets, AccessSet rights) {
    mem::RegionSpec spec;
    spec.pd = end.pd;
    spec.rights = rights;
    if (prng_.chance(0.5)) spec.offset = 0;
    if (prng_.chance(0.3)) spec.stream = end.qp->stream();
    return std::make_unique<Region>(*end.device, octets, spec, verdict_);
  };
  source_ = region(from_, usual, Access::LocalRead);
  sink_ = region(from_, usual, Access::LocalWrite);
  receive_ = region(to_, usual, Access::LocalWrite);
  // What has no known moment of arrival is never used again, either.
  const uint64_t target =
      world_.delivered_when_complete ? usual : room_for(write_octets, messages_.size());
  target_ = region(to_, target, Access::RemoteWrite);
  rewritten_ = region(to_, room_for(kept_writes, messages_.size()),
                      Access::RemoteWrite | Access::RemoteRead);
  readable_ = region(to_, room_for(read_octets, messages_.size()), Access::RemoteRead);
  window_ = region(to_, 4096, Access::LocalRead);
  counter_ = region(to_, 4096, Access::RemoteAtomic);
  word_ = *counter_->memory.take_first(8);
  fill_pattern(counter_->memory.view(word_), key_, 0);
  std::memcpy(&word_value_, counter_->memory.view(word_).data(), sizeof word_value_);
}

Opcode Flow::work_opcode(Operation operation) {
  switch (operation) {
    case Operation::Send:
    case Operation::SendSolicited: return Opcode::Send;
    case Operation::SendInvalidate: return Opcode::SendInvalidate;
    case Operation::Immediate: return Opcode::Immediate;
    case Operation::Write: return Opcode::Write;
    case Operation::Read:
    case Operation::ReadBack: break;
    case Operation::FetchAdd: return Opcode::FetchAdd;
    case Operation::CompareSwap: return Opcode::CompareSwap;
  }
  return Opcode::Read;
}

std::array<uint8_t, 8> Flow::immediate_of(const Job& job) {
  std::array<uint8_t, 8> octets{};
  fill_pattern(octets, job.key, 0);
  return octets;
}

void Flow::fail(const char* checker, const std::string& message) {
  verdict_.fail(checker, name_ + ": " + message);
}

std::string Flow::describe(const Job& job) const {
  static constexpr std::array kNames{"Send",
                                     "Send with Solicited Event",
                                     "Send with Invalidate",
                                     "Immediate Data",
                                     "Write",
                                     "Read",
                                     "Read (back)",
                                     "FetchAdd",
                                     "CmpSwap"};
  return std::string(kNames[static_cast<size_t>(job.plan.operation)]) + " " +
         std::to_string(job.id) + " of " + std::to_string(job.plan.length) + " octets";
}

bool Flow::take_pieces(Region& region, uint32_t length, uint32_t count, std::vector<Piece>& out) {
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t left = length;
    const uint32_t part =
        i + 1 == count ? left : static_cast<uint32_t>(prng_.below(uint64_t{left} + 1));
    const auto slice = region.memory.take(part, prng_);
    if (!slice) {
      release(out);
      return false;
    }
    out.push_back({&region, *slice});
    length -= part;
  }
  return true;
}

void Flow::release(std::vector<Piece>& pieces) {
  for (const Piece& piece : pieces) piece.region->memory.release(piece.slice);
  pieces.clear();
}

bool Flow::post(base::Now now) {
  bool any = post_receives(now);
  while (post_send()) any = true;
  return any;
}

bool Flow::post_receives(base::Now now) {
  if (now < receives_due_ || !lacks_receives()) return false;
  bool any = false;
  while (post_receive()) any = true;
  if (any && world_.receive_delay > base::Duration(0)) {
    const auto most = static_cast<uint64_t>(world_.receive_delay.count());
    receives_due_ = now + base::Duration(static_cast<int64_t>(prng_.between(1, most)));
  }
  return any;
}

bool Flow::lacks_receives() const {
  // Two more than there are Sends: they are flushed when the connection ends.
  return receives_.size() < sends_.size() + 2 &&
         receives_.size() - received_ < world_.receive_window;
}

base::Now Flow::next_receives(base::Now now) const {
  return receives_due_ > now && lacks_receives() ? receives_due_ : base::kNever;
}

bool Flow::post_receive() {
  if (!lacks_receives()) return false;
  const size_t index = receives_.size();
  Receive receive;
  receive.id = 0x7000'0000ull + index;
  uint32_t pieces = 1;
  if (index < sends_.size()) {
    receive.length = sends_[index].length + sends_[index].slack;
    pieces = sends_[index].receive_pieces;
  } else {
    receive.length = 100;
  }
  if (!take_pieces(*receive_, receive.length, pieces, receive.pieces)) return false;
  ReceiveRequest work;
  work.id = receive.id;
  for (const Piece& piece : receive.pieces) {
    work.sges.push_back(
        {piece.region->base + piece.slice.offset, piece.slice.length, piece.region->stag.value});
  }
  if (to_.qp->post_receive(work) != device::PostResult::Ok) {
    release(receive.pieces);
    return false;
  }
  receives_.push_back(std::move(receive));
  return true;
}

bool Flow::prepare(Job& job) {
  const MessagePlan& plan = job.plan;
  if (is_send(plan.operation)) {
    job.receive = static_cast<uint32_t>(send_jobs_.size());
    const bool waits = world_.receive_delay > base::Duration(0);
    if (job.receive >= receives_.size() && !waits) return false;  // no buffer at the other end yet
  }
  Region& local = is_read(plan.operation) ? *sink_ : *source_;
  if (!take_pieces(local, plan.length, plan.pieces, job.local)) return false;
  if (is_atomic(plan.operation)) {
    job.remote = {counter_.get(), word_};
    job.released = true;  // the word is the flow's to its end
    job.operands = draw_operands(word_value_, prng_);
    job.original = word_value_;
    word_value_ = plan.operation == Operation::FetchAdd
                      ? after_fetch_add(word_value_, job.operands)
                      : after_compare_swap(word_value_, job.operands);
  } else if (plan.operation == Operation::ReadBack) {
    job.remote = *last_write_;
  } else if (!is_send(plan.operation)) {
    const bool read_back =
        job.id + 1 < messages_.size() && messages_[job.id + 1].operation == Operation::ReadBack;
    const bool kept =
        read_back || plan.operation == Operation::Read || !world_.delivered_when_complete;
    Region& remote = plan.operation == Operation::Read ? *readable_
                     : read_back                       ? *rewritten_
                                                       : *target_;
    const auto slice =
        kept ? remote.memory.take_first(plan.length) : remote.memory.take(plan.length, prng_);
    if (!slice) {
      release(job.local);
      return false;
    }
    job.remote = {&remote, *slice};
  }
  if (plan.operation == Operation::SendInvalidate) {
    mem::RegionSpec spec;
    spec.address = window_->memory.data();
    spec.length = 64;
    spec.pd = to_.pd;
    spec.rights = Access::RemoteInvalidate;
    spec.stream = to_.qp->stream();
    const auto stag = to_.device->register_memory(spec);
    if (!stag) {
      fail("resources", stag.error().message);
      return false;
    }
    job.invalidate = *stag;
    windows_.push_back(*stag);
  }
  return true;
}

bool Flow::completion_awaited() const {
  return std::any_of(jobs_.begin() + static_cast<ptrdiff_t>(completed_jobs_), jobs_.end(),
                     [](const Job& job) { return job.plan.signaled; });
}

SendRequest Flow::make_work(const Job& job) const {
  SendRequest work;
  work.id = job.id;
  work.opcode = work_opcode(job.plan.operation);
  work.signaled = job.plan.signaled;
  work.fence = job.plan.fence;
  work.solicited = job.plan.operation == Operation::SendSolicited;
  for (const Piece& piece : job.local) {
    work.sges.push_back(
        {piece.region->base + piece.slice.offset, piece.slice.length, piece.region->stag.value});
  }
  if (job.remote.region != nullptr) {
    work.remote = {job.remote.region->stag.value,
                   job.remote.region->base + job.remote.slice.offset};
  }
  if (job.plan.operation == Operation::SendInvalidate) work.invalidate_stag = job.invalidate.value;
  work.atomic = job.operands;
  if (job.plan.operation == Operation::Immediate) work.immediate = immediate_of(job);
  return work;
}

bool Flow::post_send() {
  const size_t index = jobs_.size();
  if (index >= messages_.size() || index - completed_jobs_ >= world_.window) return false;
  Job job;
  job.id = index;
  job.plan = messages_[index];
  // The last of a full window is signaled: without it nothing would complete.
  if (index + 1 - completed_jobs_ >= world_.window) job.plan.signaled = true;
  job.key = job.plan.operation == Operation::ReadBack ? last_write_key_ : key_ + index * 0x10001;
  if (!prepare(job)) {
    if (index == completed_jobs_ || completion_awaited()) return false;
    // Memory comes back with completions only: ask for one by an empty message.
    messages_.insert(messages_.begin() + static_cast<ptrdiff_t>(index),
                     MessagePlan{.operation = Operation::Write});
    return true;
  }
  uint64_t first = 0;
  if (!is_read(job.plan.operation)) {
    for (const Piece& piece : job.local) {
      fill_pattern(piece.region->memory.view(piece.slice), job.key, first);
      first += piece.slice.length;
    }
  } else if (job.plan.operation == Operation::Read) {
    fill_pattern(job.remote.region->memory.view(job.remote.slice), job.key, 0);
  }
  const SendRequest work = make_work(job);
  if (const auto result = from_.qp->post_send(work); result != device::PostResult::Ok) {
    fail("post", describe(job) + " was refused: " + std::to_string(static_cast<int>(result)));
    return false;
  }
  if (is_send(job.plan.operation)) send_jobs_.push_back(static_cast<uint32_t>(index));
  if (is_read(job.plan.operation)) read_jobs_.push_back(static_cast<uint32_t>(index));
  if (job.plan.operation == Operation::Write) {
    last_write_ = job.remote;
    last_write_key_ = job.key;
  }
  jobs_.push_back(std::move(job));
  return true;
}

bool Flow::done() const {
  return completed_jobs_ == messages_.size() && received_ >= sends_.size() &&
         receives_.size() == sends_.size() + 2;
}

uint64_t Flow::octets() const {
  uint64_t sum = 0;
  for (const MessagePlan& m : messages_) sum += m.length;
  return sum;
}

void Flow::release_regions() {
  const auto drop = [&](End& end, std::unique_ptr<Region>& region) {
    if (region == nullptr) return;
    if (auto bad = region->memory.check_idle()) fail("guard", *bad);
    if (auto status = end.device->deregister_memory(region->stag); !status) {
      fail("resources", status.error().message);
    }
  };
  drop(from_, source_);
  drop(from_, sink_);
  drop(to_, receive_);
  drop(to_, target_);
  drop(to_, rewritten_);
  drop(to_, readable_);
  drop(to_, window_);
  drop(to_, counter_);
  for (const mem::Stag stag : windows_) {
    if (auto status = to_.device->deregister_memory(stag); !status) {
      fail("resources", status.error().message);
    }
  }
  windows_.clear();
}

std::string Flow::describe() const {
  std::string out =
      "  " + name_ + ": posted " + std::to_string(jobs_.size()) + " of " +
      std::to_string(messages_.size()) + ", completed " + std::to_string(completed_jobs_) +
      ", reference delivered " + std::to_string(reference_requests_) + "; receives posted " +
      std::to_string(receives_.size()) + ", completed " + std::to_string(received_) + " of " +
      std::to_string(sends_.size()) + "; Reads posted " + std::to_string(read_jobs_.size()) +
      ", responses seen by the reference " + std::to_string(reference_responses_);
  if (completed_jobs_ < jobs_.size()) out += "; waits for " + describe(jobs_[completed_jobs_]);
  return out + "\n";
}

}  // namespace rnic::simulation
