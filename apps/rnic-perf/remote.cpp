// rnic-perf server and client: one end each, in two processes.

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <iostream>
#include <optional>

#include "rnic-perf/perf.hpp"

namespace rnic::perf {

namespace {

using workload::ControlKind;
using workload::ControlMessage;
using workload::Operation;

constexpr uint64_t kServerMemory = 64u << 20;  // the region a server offers
constexpr uint32_t kReceiveDepth = 1024;       // a batch of Sends has at most this many, less one
constexpr uint32_t kVerifyEvery = 64;          // messages
constexpr int64_t kTimeoutMs = 30000;

Error protocol_error(const std::string& what) { return Error{ErrorCode::Protocol, what}; }

/// One end with a region, and control messages in buffers of their own.
class Station {
 public:
  static Result<std::unique_ptr<Station>> create(Context& context, const std::string& device,
                                                 uint64_t memory, uint32_t rights);

  Status post_control_receive();
  Status send(const ControlMessage& message);
  Result<ControlMessage> receive(
      int64_t timeout_ms, const std::function<void()>& meanwhile = [] {});

  Context& context;
  std::unique_ptr<workload::End> end;
  workload::Buffer memory;
  MemoryRegion region;

 private:
  explicit Station(Context& c) : context(c) {}
  workload::Buffer control_;  // out in the first half, in in the second
  MemoryRegion control_region_;
};

Result<std::unique_ptr<Station>> Station::create(Context& context, const std::string& device,
                                                 uint64_t memory, uint32_t rights) {
  std::unique_ptr<Station> station(new Station(context));
  auto chosen = workload::choose_device(context, device);
  if (!chosen) return tl::unexpected(chosen.error());
  auto end = workload::make_end(*chosen, kReceiveDepth);
  if (!end) return tl::unexpected(end.error());
  station->end = std::move(*end);
  auto buffer = workload::Buffer::allocate(memory);
  auto control = workload::Buffer::allocate(2 * workload::kControlOctets);
  if (!buffer) return tl::unexpected(buffer.error());
  if (!control) return tl::unexpected(control.error());
  station->memory = std::move(*buffer);
  station->control_ = std::move(*control);
  auto region = station->end->pd.register_memory(station->memory.data(), memory, rights);
  if (!region) return tl::unexpected(region.error());
  station->region = std::move(*region);
  auto control_region = station->end->pd.register_memory(station->control_.data(),
                                                         station->control_.size(), kLocalWrite);
  if (!control_region) return tl::unexpected(control_region.error());
  station->control_region_ = std::move(*control_region);
  return station;
}

Status Station::post_control_receive() {
  ReceiveRequest request;
  request.sge_count = 1;
  request.sges[0] = control_region_.sge(workload::kControlOctets, workload::kControlOctets);
  return end->qp.post_receive(request);
}

Status Station::send(const ControlMessage& message) {
  encode(message, control_.octets().first(workload::kControlOctets));
  SendRequest request;
  request.sge_count = 1;
  request.sges[0] = control_region_.sge(0, workload::kControlOctets);
  if (Status status = end->qp.post_send(request); !status) return status;
  auto done = workload::await(context, end->send_cq, kTimeoutMs);
  if (!done) return tl::unexpected(done.error());
  return {};
}

Result<ControlMessage> Station::receive(int64_t timeout_ms,
                                        const std::function<void()>& meanwhile) {
  auto done = workload::await(context, end->receive_cq, timeout_ms, meanwhile);
  if (!done) return tl::unexpected(done.error());
  auto message = workload::decode_control(
      control_.octets().subspan(workload::kControlOctets, workload::kControlOctets));
  if (!message) return tl::unexpected(protocol_error("the peer is not an rnic-perf"));
  return *message;
}

// --- Server ---

bool fits(const ControlMessage& batch) {
  if (workload::is_of_word(batch.operation) && batch.size != workload::kWordOctets) return false;
  return batch.size >= 1 && batch.size <= kServerMemory && batch.slots >= 1 &&
         batch.messages >= 1 && batch.messages < kReceiveDepth &&
         workload::slot_stride(batch.size) * batch.slots <= kServerMemory;
}

void prepare(Station& station, const ControlMessage& batch) {
  const uint64_t stride = workload::slot_stride(batch.size);
  const bool atomic = workload::is_atomic(batch.operation);
  for (uint32_t slot = 0; slot < batch.slots; ++slot) {
    const uint64_t offset = slot * stride;
    // Between the words of atomics, too: nothing of it may change.
    const auto octets = station.memory.octets().subspan(offset, atomic ? stride : batch.size);
    if (batch.operation == Operation::Read || atomic) {
      workload::fill(octets, batch.pattern, offset);
    } else {
      workload::poison(octets);
    }
  }
}

bool slot_matches(Station& station, const ControlMessage& batch, uint32_t slot) {
  const uint64_t offset = slot * workload::slot_stride(batch.size);
  return !workload::compare(station.memory.octets().subspan(offset, batch.size), batch.pattern,
                            offset);
}

bool matches(Station& station, const ControlMessage& batch) {
  const uint32_t slots = std::min(batch.slots, batch.messages);
  for (uint32_t slot = 0; slot < slots; ++slot) {
    if (!slot_matches(station, batch, slot)) return false;
  }
  return true;
}

/// What the server's memory must hold behind a batch.
bool verdict_of(Station& station, const ControlMessage& batch) {
  if (batch.operation == Operation::Read || batch.operation == Operation::Immediate) return true;
  if (!workload::is_atomic(batch.operation)) return matches(station, batch);
  const workload::AtomicBatch atomics(batch.operation, batch.pattern, batch.slots, batch.messages);
  return !atomics.compare_targets(station.memory.octets());
}

Status post_receives(Station& station, const ControlMessage& batch) {
  for (uint32_t i = 0; i < batch.messages; ++i) {
    ReceiveRequest request;
    if (batch.operation == Operation::Send) {
      request.sge_count = 1;
      request.sges[0] = station.region.sge((i % batch.slots) * workload::slot_stride(batch.size),
                                           static_cast<uint32_t>(batch.size));
    }
    if (Status status = station.end->qp.post_receive(request); !status) return status;
  }
  return {};
}

/// Awaits what takes a receive. \return whether each has come as it must, and at its time.
Result<bool> take_messages(Station& station, const ControlMessage& batch) {
  const bool immediate = workload::has_immediate(batch.operation);
  bool good = true;
  for (uint32_t i = 0; i < batch.messages; ++i) {
    auto done = workload::await(station.context, station.end->receive_cq, kTimeoutMs);
    if (!done) return tl::unexpected(done.error());
    good = good && done->has_immediate == immediate;
    if (immediate) good = good && done->immediate == workload::immediate_of(batch.pattern, i);
    // Immediate Data says that the Write before it is placed.
    if (batch.operation == Operation::WriteImmediate) {
      good = good && slot_matches(station, batch, i % batch.slots);
    }
  }
  return good;
}

/// Between two batches: who else wants to be served waits, and a client that has closed its half
/// gets ours, which flushes our receive.
void read_events(Station& station, std::deque<Event>& waiting) {
  Event event;
  while (station.end->device.poll_event(event)) {
    if (event.kind == EventKind::ConnectRequest) waiting.push_back(event);
    if (event.kind == EventKind::PeerClosed && event.qp == station.end->qp.number()) {
      static_cast<void>(station.end->qp.disconnect());
    }
  }
}

Status serve_batch(Station& station, std::deque<Event>& waiting) {
  auto batch = station.receive(INT64_MAX / 1000000 / 4, [&] { read_events(station, waiting); });
  if (!batch) return tl::unexpected(batch.error());
  if (batch->kind != ControlKind::Prepare || !fits(*batch)) {
    return tl::unexpected(protocol_error("the client asked for a batch that does not fit"));
  }
  prepare(station, *batch);
  const bool receives = workload::takes_receive(batch->operation);
  if (receives) {
    if (Status status = post_receives(station, *batch); !status) return status;
  }
  if (Status status = station.post_control_receive(); !status) return status;
  ControlMessage answer = *batch;
  answer.kind = ControlKind::Ready;
  if (Status status = station.send(answer); !status) return status;
  Result<bool> taken = true;
  if (receives) taken = take_messages(station, *batch);
  if (!taken) return tl::unexpected(taken.error());
  auto verify = station.receive(kTimeoutMs);
  if (!verify) return tl::unexpected(verify.error());
  answer.kind = ControlKind::Verdict;
  answer.ok = *taken && verdict_of(station, *batch);
  if (Status status = station.post_control_receive(); !status) return status;
  return station.send(answer);
}

Status serve_client(Context& context, const Options& options, const Event& request,
                    std::deque<Event>& waiting) {
  auto station = Station::create(context, options.device, kServerMemory,
                                 kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic);
  if (!station) return tl::unexpected(station.error());
  Station& here = **station;
  if (Status status = here.post_control_receive(); !status) return status;
  const auto offer = workload::encode(
      workload::Offer{here.region.stag(), here.region.address(), here.region.length()});
  if (Status status = here.end->qp.accept(request.request, offer); !status) return status;
  while (!workload::interrupted()) {
    if (Status status = serve_batch(here, waiting); !status) {
      // The client's disconnect flushes our receive: the normal end.
      std::cerr << "client " << request.remote << " is gone: " << status.error().message << "\n";
      return {};
    }
  }
  return {};
}

// --- Client ---

class Client {
 public:
  Client(Context& context, const Options& options) : context_(context), options_(options) {}

  int run() {
    if (Status status = set_up(); !status) return complain(status.error());
    const auto start = std::chrono::steady_clock::now();
    const auto elapsed = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    while ((goodput_.empty() || elapsed() < options_.seconds) && !workload::interrupted()) {
      if (Status status = batch(); !status) return complain(status.error().message, kNotVerified);
    }
    report();
    static_cast<void>(station_->end->qp.disconnect());
    context_.wait_until([] { return false; }, 50);
    return verified_ ? kOk : kNotVerified;
  }

 private:
  Status set_up();
  Status batch();
  Status timed(const ControlMessage& batch);
  Status post(const ControlMessage& batch, uint32_t index);
  void prepare_own(const ControlMessage& batch);
  [[nodiscard]] bool own_matches(const ControlMessage& batch);
  SendRequest request(const ControlMessage& batch, uint32_t index) const;
  void report();

  Context& context_;
  const Options& options_;
  std::unique_ptr<Station> station_;
  workload::Offer offer_;
  uint64_t generation_ = 0;
  std::optional<workload::AtomicBatch> atomics_;  // of this batch
  bool originals_right_ = true;
  bool verified_ = true;
  std::vector<double> goodput_;
  std::vector<double> rate_;
  std::vector<int64_t> latency_ns_;
};

Status Client::set_up() {
  auto station = Station::create(context_, options_.device, kServerMemory, kLocalWrite);
  if (!station) return tl::unexpected(station.error());
  station_ = std::move(*station);
  auto reply = workload::connect_end(context_, *station_->end, options_.address, options_.port.tcp,
                                     kTimeoutMs);
  if (!reply) return tl::unexpected(reply.error());
  auto offer = workload::decode_offer(*reply);
  if (!offer) return tl::unexpected(protocol_error("the peer is not an rnic-perf server"));
  offer_ = *offer;
  if (options_.size > offer_.length) {
    return tl::unexpected(
        Error{ErrorCode::InvalidArgument,
              "--size is above the server's " + std::to_string(offer_.length) + " octets"});
  }
  return {};
}

SendRequest Client::request(const ControlMessage& batch, uint32_t index) const {
  const uint64_t offset = (index % batch.slots) * workload::slot_stride(batch.size);
  SendRequest request;
  request.id = index;
  request.opcode = workload::opcode_of(batch.operation);
  if (batch.operation != Operation::Immediate) {
    request.sge_count = 1;
    request.sges[0] = station_->region.sge(offset, static_cast<uint32_t>(batch.size));
  }
  request.remote_stag = offer_.stag;
  request.remote_offset = offer_.address + offset;
  request.immediate = workload::immediate_of(batch.pattern, index);
  if (atomics_) request.atomic = atomics_->step(index).operands;
  return request;
}

Status Client::post(const ControlMessage& batch, uint32_t index) {
  SendRequest first = request(batch, index);
  if (batch.operation != Operation::WriteImmediate) return station_->end->qp.post_send(first);
  first.signaled = false;  // the Immediate's completion is that of both
  if (Status status = station_->end->qp.post_send(first); !status) return status;
  return station_->end->qp.post_immediate(index, first.immediate);
}

Status Client::timed(const ControlMessage& batch) {
  std::vector<int64_t> posted_at(batch.messages);
  std::array<Completion, 32> done;
  uint32_t posted = 0;
  uint32_t completed = 0;
  const int64_t start = context_.now_ns();
  while (completed < batch.messages) {
    while (posted < batch.messages && posted - completed < options_.depth) {
      posted_at[posted] = context_.now_ns();
      if (Status status = post(batch, posted); !status) return status;
      ++posted;
    }
    context_.poll();
    const uint32_t n = station_->end->send_cq.poll(done);
    for (uint32_t i = 0; i < n; ++i) {
      if (done[i].status != CompletionStatus::Success) {
        return tl::unexpected(
            protocol_error(std::string("a message completed with ") + to_string(done[i].status)));
      }
      if (atomics_ && done[i].original != atomics_->step(completed).original) {
        originals_right_ = false;
      }
      latency_ns_.push_back(context_.now_ns() - posted_at[completed++]);
    }
    if (context_.now_ns() - start > kTimeoutMs * 1000000 || workload::interrupted()) {
      return tl::unexpected(Error{ErrorCode::TimedOut, "the batch did not complete"});
    }
  }
  const auto elapsed = static_cast<double>(context_.now_ns() - start);
  goodput_.push_back(static_cast<double>(batch.messages * batch.size) * 8.0 / elapsed);
  rate_.push_back(batch.messages * 1e9 / elapsed);
  return {};
}

void Client::prepare_own(const ControlMessage& batch) {
  atomics_.reset();
  originals_right_ = true;
  if (workload::is_atomic(batch.operation)) {
    atomics_.emplace(batch.operation, batch.pattern, batch.slots, batch.messages);
  }
  for (uint32_t slot = 0; slot < batch.slots; ++slot) {
    const uint64_t offset = slot * workload::slot_stride(batch.size);
    const auto octets = station_->memory.octets().subspan(offset, batch.size);
    if (batch.operation == Operation::Read || atomics_)
      workload::poison(octets);
    else
      workload::fill(octets, batch.pattern, offset);
  }
}

/// What came to our own memory, and with the completions.
bool Client::own_matches(const ControlMessage& batch) {
  if (batch.operation == Operation::Read) return matches(*station_, batch);
  return !atomics_ || (originals_right_ && !atomics_->compare_originals(station_->memory.octets()));
}

Status Client::batch() {
  ControlMessage batch;
  batch.operation = options_.operation;
  batch.size = options_.size;
  batch.slots = static_cast<uint32_t>(std::clamp<uint64_t>(
      std::min<uint64_t>(offer_.length, 1u << 20) / workload::slot_stride(options_.size), 1,
      kVerifyEvery));
  batch.messages = kVerifyEvery;
  batch.pattern = {7, ++generation_};
  prepare_own(batch);
  const auto ask = [&](ControlKind kind) -> Result<ControlMessage> {
    batch.kind = kind;
    if (Status status = station_->post_control_receive(); !status) {
      return tl::unexpected(status.error());
    }
    if (Status status = station_->send(batch); !status) return tl::unexpected(status.error());
    return station_->receive(kTimeoutMs);
  };
  if (auto ready = ask(ControlKind::Prepare); !ready) return tl::unexpected(ready.error());
  if (Status status = timed(batch); !status) return status;
  auto verdict = ask(ControlKind::Verify);
  if (!verdict) return tl::unexpected(verdict.error());
  if (options_.verify && !(verdict->ok && own_matches(batch))) {
    verified_ = false;
    return tl::unexpected(protocol_error("verification failed"));
  }
  return {};
}

void Client::report() {
  nlohmann::ordered_json result;
  result["op"] = workload::to_string(options_.operation);
  result["size"] = options_.size;
  result["mtu"] = station_->end->device.mtu();
  result["checksum"] = station_->end->device.checksum_mode();
  result["goodput_gbps"] = median(goodput_);
  result["goodput_min"] = *std::min_element(goodput_.begin(), goodput_.end());
  result["goodput_max"] = *std::max_element(goodput_.begin(), goodput_.end());
  result["rounds"] = goodput_.size();
  result["msgs_per_s"] = median(rate_);
  result["p50_us"] = percentile_us(latency_ns_, 0.50);
  result["p99_us"] = percentile_us(latency_ns_, 0.99);
  result["verified"] = options_.verify && verified_;
  result["verify"] = options_.verify ? "every batch" : "off";
  result["depth"] = options_.depth;
  result["machine"] = workload::machine();
  if (options_.json) {
    std::cout << result.dump() << "\n";
  } else {
    print_table(result);
  }
}

}  // namespace

int run_server(const Options& options) {
  auto config = configuration(options);
  if (!config) return complain(config.error());
  auto context = Context::open(*config);
  if (!context) return complain(context.error());
  auto device = workload::choose_device(*context, options.device);
  if (!device) return complain(device.error());
  if (Status status = device->listen(options.port.tcp); !status) return complain(status.error());
  std::cerr << "listening on " << device->address() << ":" << options.port.tcp << "; "
            << context->environment() << "\n";
  std::deque<Event> waiting;
  while (!workload::interrupted()) {
    Event event;
    if (!waiting.empty()) {
      event = waiting.front();
      waiting.pop_front();
    } else {
      context->wait_until([&] { return workload::interrupted() || device->poll_event(event); },
                          1000);
    }
    if (event.kind != EventKind::ConnectRequest) continue;
    std::cerr << "client " << event.remote << "\n";
    if (Status status = serve_client(*context, options, event, waiting); !status) {
      std::cerr << "rnic-perf: " << event.remote << ": " << status.error().message << "\n";
      static_cast<void>(device->reject(event.request));  // unless it was accepted
    }
  }
  return kOk;
}

int run_client(const Options& options) {
  auto config = configuration(options);
  if (!config) return complain(config.error());
  auto context = Context::open(*config);
  if (!context) return complain(context.error());
  return Client(*context, options).run();
}

}  // namespace rnic::perf
