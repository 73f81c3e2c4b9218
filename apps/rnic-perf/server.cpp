// rnic-perf server: a session for each client, all driven by one loop.

#include "workload/server.hpp"

#include <algorithm>
#include <iostream>
#include <utility>

#include "rnic-perf/perf.hpp"
#include "rnic-perf/station.hpp"
#include "workload/captures.hpp"
#include "workload/slot_walk.hpp"

namespace rnic::perf {

namespace {

using workload::ControlKind;
using workload::ControlMessage;
using workload::Operation;

/// Octets that a session writes or compares before the others have their turn: about a millisecond.
constexpr uint64_t kOctetsPerTurn = 1u << 20;

bool fits(const ControlMessage& batch) {
  if (workload::is_of_word(batch.operation) && batch.size != workload::kWordOctets) return false;
  return batch.size >= 1 && batch.size <= kServerMemory && batch.slots >= 1 &&
         batch.slots < kQueueDepth && batch.messages >= 1 && batch.messages < kQueueDepth &&
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
  /// What walk_ goes through the region for. Nothing else is done meanwhile.
  enum class Work : uint8_t { None, Prepare, Message, Judge };

  Status reap_sends();
  Status take(const Completion& came);
  Status begin_batch();
  void take_message(const Completion& came);
  void judge_batch();
  Status answer(ControlKind kind, bool ok);
  void begin_work(Work work, uint32_t first, uint32_t end);
  bool walk_on(uint64_t& budget);
  void work_on(const workload::SlotWalk::Piece& piece);
  Status finish_work();
  Status post_receives();
  [[nodiscard]] bool atomics_match() const;

  std::unique_ptr<Station> station_;
  Awaits awaits_ = Awaits::Prepare;
  Work work_ = Work::None;
  workload::SlotWalk walk_;
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
  uint64_t budget = kOctetsPerTurn;
  while (!answering_) {
    if (work_ != Work::None) {
      if (!walk_on(budget)) return {};
      if (Status status = finish_work(); !status) return status;
      continue;
    }
    Completion came;
    if (station_->end->receive_cq.poll({&came, 1}) == 0) return {};
    if (came.status != CompletionStatus::Success) return failed(came);
    ++heard_;
    if (Status status = take(came); !status) return status;
  }
  return {};
}

/// False: the octets of this turn are used up.
bool BatchSession::walk_on(uint64_t& budget) {
  while (walk_.is_under_way()) {
    if (budget < 8) return false;
    const auto piece = walk_.next(budget);
    work_on(piece);
    budget -= piece.octets;
  }
  return true;
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
  if (awaits_ == Awaits::Verify) {
    judge_batch();
    return {};
  }
  batch_ = *question;
  return begin_batch();
}

Status BatchSession::begin_batch() {
  if (batch_.kind != ControlKind::Prepare || !fits(batch_)) {
    return tl::unexpected(protocol_error("it asked for a batch that does not fit"));
  }
  taken_ = 0;
  good_ = true;
  begin_work(Work::Prepare, 0, batch_.slots);
  return {};
}

/// \param first, end slots of the batch
void BatchSession::begin_work(Work work, uint32_t first, uint32_t end) {
  work_ = work;
  const uint64_t stride = workload::slot_stride(batch_.size);
  // Between the words of atomics, too: nothing of it may change.
  const bool between = work == Work::Prepare && workload::is_atomic(batch_.operation);
  walk_.begin(first, end, between ? stride : batch_.size, stride);
}

void BatchSession::work_on(const workload::SlotWalk::Piece& piece) {
  const auto octets = station_->memory.octets().subspan(piece.offset, piece.octets);
  if (work_ != Work::Prepare) {
    good_ = good_ && !workload::compare(octets, batch_.pattern, piece.offset);
  } else if (batch_.operation == Operation::Read || workload::is_atomic(batch_.operation)) {
    workload::fill(octets, batch_.pattern, piece.offset);
  } else {
    workload::poison(octets);
  }
}

Status BatchSession::finish_work() {
  const Work done = std::exchange(work_, Work::None);
  if (done == Work::Message) {
    if (++taken_ == batch_.messages) awaits_ = Awaits::Verify;
    return {};
  }
  if (done == Work::Judge) return answer(ControlKind::Verdict, good_ && atomics_match());
  const bool receives = workload::takes_receive(batch_.operation);
  awaits_ = receives ? Awaits::Messages : Awaits::Verify;
  if (receives) {
    if (Status status = post_receives(); !status) return status;
  }
  return answer(ControlKind::Ready, true);
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
  // Immediate Data says that the Write before it is placed. What comes meanwhile writes the same.
  const uint32_t slot = taken_ % batch_.slots;
  const bool written = batch_.operation == Operation::WriteImmediate;
  begin_work(Work::Message, slot, written ? slot + 1 : slot);
}

/// What the memory must hold behind a batch.
void BatchSession::judge_batch() {
  awaits_ = Awaits::Prepare;
  const bool written = batch_.operation != Operation::Read &&
                       batch_.operation != Operation::Immediate &&
                       !workload::is_atomic(batch_.operation);
  begin_work(Work::Judge, 0, written ? std::min(batch_.slots, batch_.messages) : 0);
}

bool BatchSession::atomics_match() const {
  if (!workload::is_atomic(batch_.operation)) return true;
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
  if (const auto listening = device->listen(options.port.tcp); !listening) {
    return complain(listening.error());
  }
  std::cerr << "listening on " << to_string(Endpoint{device->address(), options.port.tcp}) << "; "
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
