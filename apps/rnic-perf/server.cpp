// rnic-perf server: a session for each client, all driven by one loop.

#include "workload/server.hpp"

#include <iostream>
#include <utility>

#include "rnic-perf/perf.hpp"
#include "rnic-perf/station.hpp"
#include "workload/captures.hpp"

namespace rnic::perf {

namespace {

using workload::ControlKind;
using workload::ControlMessage;
using workload::Operation;

bool fits(const ControlMessage& batch) {
  if (workload::is_of_word(batch.operation) && batch.size != workload::kWordOctets) return false;
  return batch.size >= 1 && batch.size <= kServerMemory && batch.slots >= 1 &&
         batch.messages >= 1 && batch.messages < kQueueDepth &&
         workload::slot_stride(batch.size) <= kServerMemory / batch.slots;
}

Status failed(const Completion& done) {
  return tl::unexpected(Error{ErrorCode::Reset, std::string(to_string(done.opcode)) +
                                                    " completed with " + to_string(done.status)});
}

/// One client: batches, each asked for, prepared, carried out and judged.
class BatchSession final : public workload::Session {
 public:
  static Result<std::unique_ptr<workload::Session>> welcome(Device device,
                                                            const RequestHandle& request);

  [[nodiscard]] uint32_t qp() override { return station_->end->qp.number(); }
  Status step() override;
  [[nodiscard]] uint64_t heard() const override { return heard_; }
  void finish() override { static_cast<void>(station_->end->qp.disconnect()); }

 private:
  explicit BatchSession(std::unique_ptr<Station> station) : station_(std::move(station)) {}

  enum class Awaits : uint8_t {
    Prepare,   // the client's question
    Messages,  // of the batch, that take receives
    Verify,    // the client's next question
  };

  Status reap_sends();
  Status take(const Completion& came);
  Status begin_batch();
  void take_message(const Completion& came);
  Status judge_batch();
  Status answer(ControlKind kind, bool ok);
  void prepare_memory();
  Status post_receives();
  [[nodiscard]] bool verdict() const;

  std::unique_ptr<Station> station_;
  Awaits awaits_ = Awaits::Prepare;
  ControlMessage batch_;
  uint32_t taken_ = 0;      // messages of the batch
  bool good_ = true;        // so far
  bool answering_ = false;  // the control buffer is in use
  uint64_t heard_ = 0;
};

Result<std::unique_ptr<workload::Session>> BatchSession::welcome(Device device,
                                                                 const RequestHandle& request) {
  auto made = Station::create(
      std::move(device), kServerMemory,
      Access::LocalWrite | Access::RemoteWrite | Access::RemoteRead | Access::RemoteAtomic);
  if (!made) return tl::unexpected(made.error());
  Station& station = **made;
  Status status = station.post_control_receive();
  const auto offer = workload::encode(
      workload::Offer{station.region.stag(), station.region.address(), station.region.length()});
  if (status) status = station.end->qp.accept(request, offer);
  if (!status) return tl::unexpected(status.error());
  return std::unique_ptr<workload::Session>(new BatchSession(std::move(*made)));
}

/// Our last answer leaves the buffer before the client's next question is looked at.
Status BatchSession::step() {
  if (Status status = reap_sends(); !status || answering_) return status;
  Completion came;
  while (!answering_ && station_->end->receive_cq.poll({&came, 1}) == 1) {
    if (came.status != CompletionStatus::Success) return failed(came);
    ++heard_;
    if (Status status = take(came); !status) return status;
  }
  return {};
}

Status BatchSession::reap_sends() {
  Completion done;
  if (station_->end->send_cq.poll({&done, 1}) == 0) return {};
  if (done.status != CompletionStatus::Success) return failed(done);
  answering_ = false;
  return {};
}

Status BatchSession::take(const Completion& came) {
  if (awaits_ == Awaits::Messages) {
    take_message(came);
    return {};
  }
  auto question = station_->received();
  if (!question) return tl::unexpected(question.error());
  if (awaits_ == Awaits::Verify) return judge_batch();
  batch_ = *question;
  return begin_batch();
}

Status BatchSession::begin_batch() {
  if (batch_.kind != ControlKind::Prepare || !fits(batch_)) {
    return tl::unexpected(protocol_error("it asked for a batch that does not fit"));
  }
  prepare_memory();
  taken_ = 0;
  good_ = true;
  const bool receives = workload::takes_receive(batch_.operation);
  awaits_ = receives ? Awaits::Messages : Awaits::Verify;
  if (receives) {
    if (Status status = post_receives(); !status) return status;
  }
  return answer(ControlKind::Ready, true);
}

void BatchSession::prepare_memory() {
  const uint64_t stride = workload::slot_stride(batch_.size);
  const bool atomic = workload::is_atomic(batch_.operation);
  for (uint32_t slot = 0; slot < batch_.slots; ++slot) {
    const uint64_t offset = slot * stride;
    // Between the words of atomics, too: nothing of it may change.
    const auto octets = station_->memory.octets().subspan(offset, atomic ? stride : batch_.size);
    if (batch_.operation == Operation::Read || atomic) {
      workload::fill(octets, batch_.pattern, offset);
    } else {
      workload::poison(octets);
    }
  }
}

Status BatchSession::post_receives() {
  for (uint32_t i = 0; i < batch_.messages; ++i) {
    ReceiveRequest request;
    if (batch_.operation == Operation::Send) {
      request.sges = {station_->region.sge((i % batch_.slots) * workload::slot_stride(batch_.size),
                                           static_cast<uint32_t>(batch_.size))};
    }
    if (Status status = station_->end->qp.post_receive(request); !status) return status;
  }
  return {};
}

/// Each has to be of its kind, to hold what it must, and to come at its time.
void BatchSession::take_message(const Completion& came) {
  const bool immediate = workload::has_immediate(batch_.operation);
  good_ = good_ && came.has_immediate == immediate;
  if (immediate) good_ = good_ && came.immediate == workload::immediate_of(batch_.pattern, taken_);
  // Immediate Data says that the Write before it is placed.
  if (batch_.operation == Operation::WriteImmediate) {
    good_ = good_ && slot_matches(*station_, batch_, taken_ % batch_.slots);
  }
  if (++taken_ == batch_.messages) awaits_ = Awaits::Verify;
}

Status BatchSession::judge_batch() {
  awaits_ = Awaits::Prepare;
  return answer(ControlKind::Verdict, good_ && verdict());
}

/// What the memory must hold behind a batch.
bool BatchSession::verdict() const {
  if (batch_.operation == Operation::Read || batch_.operation == Operation::Immediate) return true;
  if (!workload::is_atomic(batch_.operation)) return matches(*station_, batch_);
  const workload::AtomicBatch atomics(batch_.operation, batch_.pattern, batch_.slots,
                                      batch_.messages);
  return !atomics.compare_targets(station_->memory.octets());
}

/// The receive for the client's next question stands before the client is answered.
Status BatchSession::answer(ControlKind kind, bool ok) {
  if (Status status = station_->post_control_receive(); !status) return status;
  ControlMessage message = batch_;
  message.kind = kind;
  message.ok = ok;
  answering_ = true;
  return station_->post_control_send(message);
}

}  // namespace

int run_server(const Options& options) {
  auto config = configuration(options);
  if (!config) return complain(config.error());
  auto context = Context::open(*config);
  if (!context) return complain(context.error());
  auto device = workload::choose_reachable_device(*context, options.device);
  if (!device) return complain(device.error());
  if (Status status = device->listen(options.port.tcp); !status) return complain(status.error());
  std::cerr << "listening on " << device->address() << ":" << options.port.tcp << "; "
            << context->environment() << "\n";
  {  // the queue pairs of its clients end before the captures are looked at
    workload::Server server(*context, *device, "rnic-perf", options.server, BatchSession::welcome);
    context->wait_until(
        [&] {
          server.step();
          return workload::interrupted();
        },
        kForever);
  }
  return workload::with_captures("rnic-perf", *context, kOk);
}

}  // namespace rnic::perf
