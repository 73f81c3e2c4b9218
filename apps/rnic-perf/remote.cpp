// rnic-perf client: one end; the other one is a server in another process.

#include <algorithm>
#include <array>
#include <chrono>
#include <iostream>
#include <optional>

#include "rnic-perf/perf.hpp"
#include "rnic-perf/station.hpp"
#include "workload/captures.hpp"

namespace rnic::perf {

namespace {

using workload::ControlKind;
using workload::ControlMessage;
using workload::Operation;

constexpr uint32_t kBatch = 64;  // messages at most
// The server's application hears nothing of a batch before its end, and who says nothing for a
// second may have to give way.
constexpr uint64_t kFirstBatchOctets = 64u << 20;
constexpr double kLongBatchNs = 0.25e9;
constexpr int64_t kTimeoutMs = 30000;

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
      if (Status status = batch(); !status) return complain_of_run(status.error());
    }
    report();
    static_cast<void>(station_->end->qp.disconnect());
    context_.wait_until([] { return false; }, std::chrono::milliseconds(50));
    return verified_ ? kOk : kNotVerified;
  }

 private:
  Status set_up();
  Status batch();
  Result<ControlMessage> exchange(const ControlMessage& question);
  Status timed(const ControlMessage& batch);
  Status post(const ControlMessage& batch, uint32_t index);
  void prepare_own(const ControlMessage& batch);
  [[nodiscard]] bool own_matches(const ControlMessage& batch);
  [[nodiscard]] SendRequest request(const ControlMessage& batch, uint32_t index) const;
  void report();

  Context& context_;
  const Options& options_;
  std::unique_ptr<Station> station_;
  workload::Offer offer_;
  uint64_t generation_ = 0;
  uint32_t messages_ = kBatch;                    // of the next batch
  std::optional<workload::AtomicBatch> atomics_;  // of this batch
  bool originals_right_ = true;
  bool verified_ = true;
  std::vector<double> goodput_;
  std::vector<double> rate_;
  std::vector<int64_t> latency_ns_;
};

Status Client::set_up() {
  auto device = workload::choose_device(context_, options_.device);
  if (!device) return tl::unexpected(device.error());
  auto station = Station::create(*device, kServerMemory, Access::LocalWrite);
  if (!station) return tl::unexpected(station.error());
  station_ = std::move(*station);
  const auto server = parse_endpoint(options_.address, options_.port.tcp);
  if (!server) return tl::unexpected(server.error());
  workload::End& end = *station_->end;
  auto reply = workload::connect_end(context_, {end.device, end.qp}, *server, kTimeoutMs);
  if (!reply) return tl::unexpected(reply.error());
  auto offer = workload::decode_offer(*reply);
  if (!offer) return tl::unexpected(protocol_error("the peer is not an rnic-perf server"));
  offer_ = *offer;
  // Our own region is no larger, whatever a peer says of its own.
  offer_.length = std::min(offer_.length, kServerMemory);
  if (options_.size > offer_.length) {
    return tl::unexpected(
        Error{ErrorCode::InvalidArgument,
              "--size is above the server's " + std::to_string(offer_.length) + " octets"});
  }
  messages_ =
      static_cast<uint32_t>(std::clamp<uint64_t>(kFirstBatchOctets / options_.size, 1, kBatch));
  return {};
}

Result<ControlMessage> Client::exchange(const ControlMessage& question) {
  if (Status status = station_->post_control_send(question); !status) {
    return tl::unexpected(status.error());
  }
  auto sent = workload::await(context_, station_->end->send_cq, kTimeoutMs);
  if (!sent) return tl::unexpected(sent.error());
  auto came = workload::await(context_, station_->end->receive_cq, kTimeoutMs);
  if (!came) return tl::unexpected(came.error());
  return station_->received();
}

SendRequest Client::request(const ControlMessage& batch, uint32_t index) const {
  const uint64_t offset = (index % batch.slots) * workload::slot_stride(batch.size);
  SendRequest request;
  request.id = index;
  request.opcode = workload::opcode_of(batch.operation);
  if (batch.operation != Operation::Immediate) {
    request.sges = {station_->region.sge(offset, static_cast<uint32_t>(batch.size))};
  }
  request.remote = {offer_.stag, offer_.address + offset};
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
  const int64_t start = context_.now().count();
  while (completed < batch.messages) {
    while (posted < batch.messages && posted - completed < options_.depth) {
      posted_at[posted] = context_.now().count();
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
      latency_ns_.push_back(context_.now().count() - posted_at[completed++]);
    }
    if (context_.now().count() - start > kTimeoutMs * 1000000 || workload::interrupted()) {
      return tl::unexpected(Error{ErrorCode::TimedOut, workload::interrupted()
                                                           ? "interrupted"
                                                           : "the batch did not complete"});
    }
  }
  const auto elapsed = static_cast<double>(context_.now().count() - start);
  if (elapsed > kLongBatchNs) {
    messages_ = std::max(batch.messages / 2, 1u);
  } else if (elapsed < kLongBatchNs / 4) {
    messages_ = std::min(batch.messages * 2, kBatch);
  }
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
      kBatch));
  batch.messages = messages_;
  batch.pattern = {7, ++generation_};
  prepare_own(batch);
  const auto ask = [&](ControlKind kind) -> Result<ControlMessage> {
    batch.kind = kind;
    if (Status status = station_->post_control_receive(); !status) {
      return tl::unexpected(status.error());
    }
    return exchange(batch);
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

int run_client(const Options& options) {
  auto config = configuration(options);
  if (!config) return complain(config.error());
  auto context = Context::open(*config);
  if (!context) return complain(context.error());
  auto device = workload::choose_reachable_device(*context, options.device);
  if (!device) return complain(device.error());
  const int status = Client(*context, options).run();  // its queue pair ends here
  return workload::with_captures("rnic-perf", *context, status);
}

}  // namespace rnic::perf
