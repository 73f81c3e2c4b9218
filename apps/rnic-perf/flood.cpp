#include "rnic-perf/flood.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "rnic-perf/processor_time.hpp"

namespace rnic::perf {

namespace {

using workload::Operation;

constexpr size_t kMaxLatencySamples = 4u << 20;
constexpr uint32_t kLaneBits = 16;  // of an id; the rest counts the lane's messages
constexpr uint64_t kLaneMask = (uint64_t{1} << kLaneBits) - 1;

std::string tell(const Completion& done) {
  return std::to_string(done.id >> kLaneBits) + " of queue pair " +
         std::to_string(done.id & kLaneMask) + ": " + describe(done) + ", " +
         std::to_string(done.length) + " octets";
}

}  // namespace

Result<std::unique_ptr<Flood>> Flood::create(Context& context, Crowd& crowd,
                                             const FloodOptions& options) {
  std::unique_ptr<Flood> flood(new Flood(context, crowd, options));
  flood->slot_octets_ = (options.size + 63) / 64 * 64;
  flood->slots_ = std::max<uint64_t>(options.region / flood->slot_octets_, 1);
  if (Status status = flood->register_memory(); !status) return tl::unexpected(status.error());
  flood->make_requests();
  // Twice as many as may be on their way: a message may come before its receive is posted again.
  for (uint32_t lane = 0; flood->receives() && lane < flood->lanes_.size(); ++lane) {
    for (uint32_t i = 0; i < 2 * options.depth; ++i) {
      if (Status status = flood->post_receive(lane); !status) {
        return tl::unexpected(status.error());
      }
    }
  }
  flood->post_time_.resize(options.depth);
  flood->touched_.reserve(flood->lanes_.size());
  return flood;
}

Status Flood::register_memory() {
  const bool read = options_.operation == Operation::Read;
  Side& from = read ? *crowd_.responder : *crowd_.initiator;
  auto buffer = workload::Buffer::allocate(slot_octets_ * slots_);
  if (!buffer) return tl::unexpected(buffer.error());
  source_ = std::move(*buffer);
  auto source = from.pd.register_memory(std::as_writable_bytes(source_.octets()),
                                        read ? Access::RemoteRead : Access::LocalRead);
  if (!source) return tl::unexpected(source.error());
  source_region_ = std::move(*source);
  if (options_.afar) {
    remote_ = {options_.afar->stag, options_.afar->address};
    return {};
  }
  if (Status status = register_target(read ? *crowd_.initiator : *crowd_.responder); !status) {
    return status;
  }
  const MemoryRegion& remote = read ? source_region_ : target_region_;
  remote_ = {remote.stag(), remote.address()};
  return {};
}

Status Flood::register_target(Side& to) {
  auto buffer = workload::Buffer::allocate(slot_octets_ * slots_);
  if (!buffer) return tl::unexpected(buffer.error());
  target_ = std::move(*buffer);
  const bool write = options_.operation == Operation::Write;
  auto target = to.pd.register_memory(
      std::as_writable_bytes(target_.octets()),
      write ? Access::LocalWrite | Access::RemoteWrite : AccessSet(Access::LocalWrite));
  if (!target) return tl::unexpected(target.error());
  target_region_ = std::move(*target);
  return {};
}

/// What all requests have alike.
void Flood::make_requests() {
  const bool read = options_.operation == Operation::Read;
  const MemoryRegion& local = read ? target_region_ : source_region_;
  for (SendRequest& request : requests_) {
    request.opcode = workload::opcode_of(options_.operation);
    request.sges = {local.sge(0, static_cast<uint32_t>(options_.size))};
    request.remote = remote_;
  }
}

void Flood::prepare() {
  ++pattern_.generation;
  for (uint64_t slot = 0; slot < slots_; ++slot) {
    workload::fill(source_.octets().subspan(slot * slot_octets_, options_.size), pattern_,
                   slot * slot_octets_);
  }
  workload::poison(target_.octets());
}

std::optional<workload::Mismatch> Flood::verify() const {
  const uint64_t first = begin_ * lanes_.size();
  const uint64_t count = std::min(slots_, (quota_ - begin_) * lanes_.size());
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t offset = (first + i) % slots_ * slot_octets_;
    if (auto mismatch = workload::compare(target_.octets().subspan(offset, options_.size),
                                          pattern_, offset)) {
      mismatch->offset += offset;
      return mismatch;
    }
  }
  return std::nullopt;
}

Status Flood::post(uint32_t lane, uint32_t count) {
  const bool read = options_.operation == Operation::Read;
  const uint64_t local = (read ? target_region_ : source_region_).address();
  Lane& state = lanes_[lane];
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t index = state.posted + i;
    const uint64_t offset = place(receives() ? number_of(lane, index) : posted_ + i);
    SendRequest& request = requests_[i];
    request.id = index << kLaneBits | lane;
    request.sges[0].address = local + offset;
    request.remote.offset = remote_.offset + offset;
  }
  QueuePair& qp = crowd_.initiator->qps[lane];
  const Status status = count == 1 ? qp.post_send(requests_[0])
                                   : qp.post_send(std::span(requests_).first(count)).status;
  if (!status) return status;
  state.posted += count;
  posted_ += count;
  return {};
}

/// Posts what the lane has room for.
Status Flood::fill_lane(uint32_t lane, int64_t now) {
  Lane& state = lanes_[lane];
  while (state.posted < quota_ && state.posted - state.completed < options_.depth) {
    const uint64_t room = std::min(quota_ - state.posted,
                                   options_.depth - (state.posted - state.completed));
    const auto count = options_.lists ? static_cast<uint32_t>(std::min<uint64_t>(room, kList)) : 1;
    if (lane == 0) {
      for (uint32_t i = 0; i < count; ++i) post_time_[(state.posted + i) % options_.depth] = now;
    }
    if (Status status = post(lane, count); !status) return status;
    if (state.posted == quota_) ++satisfied_;
  }
  return {};
}

Status Flood::post_receive(uint32_t lane) {
  Sink& sink = sinks_[lane];
  ReceiveRequest request;
  request.id = sink.posted << kLaneBits | lane;
  const uint64_t offset = place(number_of(lane, sink.posted));
  request.sges = {target_region_.sge(offset, static_cast<uint32_t>(options_.size))};
  ++sink.posted;
  return crowd_.responder->qps[lane].post_receive(request);
}

Status Flood::take(const Completion& done) {
  const auto lane = static_cast<uint32_t>(done.id & kLaneMask);
  if (done.status != CompletionStatus::Success || lane >= lanes_.size() ||
      done.id >> kLaneBits != lanes_[lane].completed) {
    return workload::fail(ErrorCode::Protocol, "not the completion awaited: " + tell(done));
  }
  Lane& state = lanes_[lane];
  // Before the first one of a turn a lane that has more to post is full.
  if (state.posted - state.completed == options_.depth) touched_.push_back(lane);
  ++state.completed;
  return {};
}

/// \param now the time, which is read when something has completed
Status Flood::reap(int64_t& now, FloodResult& result) {
  std::array<Completion, 64> done;
  uint32_t got = 0;
  do {
    got = crowd_.initiator->send_cq.poll(done);
    if (got != 0) now = context_.now().count();
    for (uint32_t i = 0; i < got; ++i) {
      if (Status status = take(done[i]); !status) return status;
      const uint64_t index = done[i].id >> kLaneBits;
      if ((done[i].id & kLaneMask) == 0 && result.latency_ns.size() < kMaxLatencySamples) {
        result.latency_ns.push_back(now - post_time_[index % options_.depth]);
      }
    }
    completed_ += got;
  } while (got == done.size());
  return {};
}

Status Flood::refill(int64_t now) {
  for (const uint32_t lane : touched_) {
    if (Status status = fill_lane(lane, now); !status) return status;
  }
  touched_.clear();
  return {};
}

void Flood::reap_receives() {
  std::array<Completion, 64> done;
  uint32_t got = 0;
  do {
    got = crowd_.responder->receive_cq.poll(done);
    for (uint32_t i = 0; i < got; ++i) {
      const auto lane = static_cast<uint32_t>(done[i].id & kLaneMask);
      if (done[i].status != CompletionStatus::Success || done[i].length != options_.size ||
          done[i].id >> kLaneBits != sinks_[lane].received) {
        return break_off({ErrorCode::Protocol, "not the receive awaited: " + tell(done[i])});
      }
      ++sinks_[lane].received;
      if (Status status = post_receive(lane); !status) return break_off(status.error());
    }
    if (got != 0) {
      received_.store(received_.load(std::memory_order_relaxed) + got, std::memory_order_release);
    }
  } while (got == done.size());
}

void Flood::responder_turn() {
  crowd_.responder->device.poll();
  if (receives() && !is_broken_.load(std::memory_order_relaxed)) reap_receives();
}

void Flood::break_off(Error error) {
  responder_error_ = std::move(error.message);
  is_broken_.store(true, std::memory_order_release);
}

Status Flood::broken() const {
  if (!is_broken_.load(std::memory_order_acquire)) return {};
  return workload::fail(ErrorCode::Protocol, responder_error_);
}

Status Flood::stalled(uint64_t missing) const {
  return workload::fail(ErrorCode::TimedOut,
                        std::to_string(missing) + " messages did not complete within " +
                            std::to_string(options_.timeout_ms) + " ms");
}

/// Messages that are placed at the target and completed at the sender.
uint64_t Flood::done() const {
  if (!receives()) return completed_;
  return std::min(completed_, received_.load(std::memory_order_acquire));
}

Status Flood::run(uint64_t messages, bool apart, FloodResult& result, dpdk::BestWindow& window) {
  const auto lanes = static_cast<uint32_t>(lanes_.size());
  begin_ = quota_;
  quota_ += (messages + lanes - 1) / lanes;
  satisfied_ = 0;
  const uint64_t end = quota_ * lanes;
  int64_t now = context_.now().count();
  const int64_t start = now;
  const int64_t deadline = start + options_.timeout_ms * 1'000'000;
  const int64_t spent = processor_time_ns();
  window.begin_run();
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    if (Status status = fill_lane(lane, now); !status) return status;
  }
  for (uint32_t turn = 1; done() < end; ++turn) {
    crowd_.initiator->device.poll();
    if (!apart) responder_turn();
    const uint64_t before = completed_;
    if (Status status = reap(now, result); !status) return status;
    if (completed_ != before) {
      if (Status status = refill(now); !status) return status;
      if (satisfied_ == 0) window.sample(base::from_nanos(now), posted_, done());
    } else if (turn % 1024 == 0) {
      if (Status status = broken(); !status) return status;
      if (context_.now().count() > deadline) return stalled(end - done());
    }
  }
  result.elapsed_ns += context_.now().count() - start;
  result.cpu_ns += processor_time_ns() - spent;
  result.messages += (quota_ - begin_) * lanes;
  result.octets += (quota_ - begin_) * lanes * options_.size;
  return {};
}

}  // namespace rnic::perf
