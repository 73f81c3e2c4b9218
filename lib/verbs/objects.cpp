// The handles of the public API: device, protection domain, memory region, queues.

#include <algorithm>
#include <array>
#include <functional>
#include <span>

#include "rnic/verbs.hpp"
#include "verbs/boundary.hpp"
#include "verbs/machine_memory.hpp"
#include "verbs/runtime.hpp"
#include "verbs/streams.hpp"

namespace rnic {

using verbs::guarded;
using verbs::guarded_or;
using verbs::on_worker;
using verbs::quietly;

namespace {

/// An error of the program keeps its code where there is no memory for its words.
Status refused(ErrorCode code, const char* why) {
  return tl::unexpected(Error{code, base::worded([why] { return why; })});
}

Status full_queue(const char* queue, uint32_t depth) {
  return tl::unexpected(
      Error{ErrorCode::ResourceExhausted, base::worded([&] {
              return std::string("the ") + queue + " queue is full (" + std::to_string(depth) +
                     " outstanding): poll completions, or create the queue pair deeper";
            })});
}

Status to_status(device::PostResult result, const char* queue, uint32_t depth) {
  switch (result) {
    case device::PostResult::Ok: return {};
    case device::PostResult::Full: return full_queue(queue, depth);
    case device::PostResult::TooManySge:
      return refused(ErrorCode::InvalidArgument,
                     "too many scatter/gather elements: at most 16, 1 for a Read or an atomic, "
                     "none for Immediate and LocalInvalidate");
    case device::PostResult::BadLength:
      return refused(ErrorCode::InvalidArgument,
                     "an atomic returns 8 octets into its element, and ReadInvalidate needs one");
    case device::PostResult::Disabled:
      return refused(ErrorCode::Unsupported,
                     "atomics and Immediate Data are switched off for this device: set "
                     "rdma_extensions = true");
    case device::PostResult::TooLong:
      return refused(ErrorCode::InvalidArgument,
                     "the message is longer than 2^32 - 1 octets: split it");
    case device::PostResult::BadOpcode:
      return refused(ErrorCode::InvalidArgument,
                     "no opcode of the send queue: Receive goes to post_receive(), and other "
                     "numbers mean nothing");
  }
  return {};
}

tl::unexpected<Error> empty_handle() {
  return tl::unexpected(Error{ErrorCode::WrongState, base::worded([] {
                                return "the handle is empty: it was never filled, or what it stood "
                                       "for was moved from it or destroyed";
                              })});
}

base::ByteView view(std::span<const uint8_t> octets) { return {octets.data(), octets.size()}; }

}  // namespace

// --- MemoryRegion ---

MemoryRegion::MemoryRegion(MemoryRegion&& other) noexcept { swap(other); }

MemoryRegion& MemoryRegion::operator=(MemoryRegion&& other) noexcept {
  MemoryRegion before(std::move(other));
  swap(before);
  return *this;
}

void MemoryRegion::swap(MemoryRegion& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(stag_, other.stag_);
  std::swap(address_, other.address_);
  std::swap(length_, other.length_);
}

MemoryRegion::~MemoryRegion() {
  quietly([this] { static_cast<void>(deregister()); });
}

Status MemoryRegion::deregister() {
  if (device_ == nullptr) return {};
  const auto device = std::exchange(device_, nullptr);
  return guarded("MemoryRegion::deregister", [&] {
    return on_worker(
        *device, [&](base::Now) { return device->device->deregister_memory(mem::Stag{stag_}); });
  });
}

// --- CompletionQueue ---

CompletionQueue::CompletionQueue(CompletionQueue&& other) noexcept { swap(other); }

CompletionQueue& CompletionQueue::operator=(CompletionQueue&& other) noexcept {
  CompletionQueue before(std::move(other));
  swap(before);
  return *this;
}

void CompletionQueue::swap(CompletionQueue& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(cq_, other.cq_);
  std::swap(alarm_, other.alarm_);
}

CompletionQueue::~CompletionQueue() {
  if (device_ == nullptr) return;
  quietly([this] { on_worker(*device_, [&](base::Now) { device_->device->release_cq(cq_); }); });
}

Status CompletionQueue::destroy() {
  if (device_ == nullptr) return {};
  return guarded("CompletionQueue::destroy", [&]() -> Status {
    const Status status =
        on_worker(*device_, [&](base::Now) { return device_->device->destroy_cq(cq_); });
    if (status) {
      device_ = nullptr;
      cq_ = nullptr;
      alarm_ = nullptr;
    }
    return status;
  });
}

uint32_t CompletionQueue::poll(std::span<Completion> out) {
  return cq_ == nullptr ? 0 : cq_->poll(out);
}

Result<int> CompletionQueue::fd() {
  return guarded("CompletionQueue::fd", [&]() -> Result<int> {
    if (device_ == nullptr) return empty_handle();
    if (alarm_ != nullptr) return alarm_->fd();
    std::optional<int> driver;
    if (device_->worker == nullptr) {
      auto fd = device_->runtime->driver_fd();
      if (!fd) return fd;
      driver = *fd;
    }
    auto alarm = verbs::QueueAlarm::open(driver);
    if (!alarm) return tl::unexpected(alarm.error());
    verbs::QueueAlarm* const made = alarm->get();
    on_worker(*device_, [&](base::Now) { cq_->set_listener(std::move(*alarm)); });
    alarm_ = made;
    return alarm_->fd();
  });
}

Status CompletionQueue::arm(Notify what) {
  if (alarm_ == nullptr) {
    if (auto opened = fd(); !opened) return tl::unexpected(opened.error());
  }
  alarm_->arm(what == Notify::Solicited ? base::BellFor::Urgent : base::BellFor::Anything);
  if (device_->worker == nullptr) device_->runtime->settle();
  return {};
}

// --- QueuePair ---

/// Fixed memory for trace events; the worker fills it.
class QueuePair::Trace final : public base::TraceSink {
 public:
  explicit Trace(size_t max_events) : max_events_(max_events) { events_.reserve(max_events); }
  void record(TraceKind kind, base::Range range, base::Now now) override {
    if (events_.size() == max_events_) return;
    events_.push_back({kind, range.begin, range.end, std::chrono::nanoseconds(base::nanos(now))});
  }
  std::vector<TraceEvent> take() { return std::move(events_); }

 private:
  size_t max_events_;
  std::vector<TraceEvent> events_;
};

QueuePair::QueuePair() = default;
QueuePair::QueuePair(QueuePair&& other) noexcept { swap(other); }

QueuePair& QueuePair::operator=(QueuePair&& other) noexcept {
  QueuePair before(std::move(other));
  swap(before);
  return *this;
}

void QueuePair::swap(QueuePair& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(qp_, other.qp_);
  std::swap(trace_, other.trace_);
}

QueuePair::~QueuePair() {
  quietly([this] { static_cast<void>(destroy()); });
}

Status QueuePair::destroy() {
  if (device_ == nullptr) return {};
  return guarded("QueuePair::destroy", [&] {
    const auto device = std::exchange(device_, nullptr);
    device::QueuePair* const qp = std::exchange(qp_, nullptr);
    const auto trace = std::move(trace_);  // it outlives the recording
    return on_worker(*device, [&](base::Now) {
      if (trace != nullptr) device->device->end_trace(*qp);
      return device->device->destroy_qp(qp);
    });
  });
}

uint32_t QueuePair::number() const { return qp_ == nullptr ? 0 : qp_->number(); }

Status QueuePair::post_send(const SendRequest& request) {
  if (qp_ == nullptr) return empty_handle();
  const device::PostResult result = qp_->post_send(request);
  if (result != device::PostResult::Ok) return to_status(result, "send", qp_->spec().send_depth);
  device_->wake();
  return {};
}

Status QueuePair::post_receive(const ReceiveRequest& request) {
  if (qp_ == nullptr) return empty_handle();
  const device::PostResult result = qp_->post_receive(request);
  if (result != device::PostResult::Ok)
    return to_status(result, "receive", qp_->spec().receive_depth);
  device_->wake();
  return {};
}

Status QueuePair::post_fetch_add(uint64_t id, const RemoteAddress& remote, uint64_t add,
                                 uint64_t boundaries) {
  SendRequest request;
  request.id = id;
  request.opcode = Opcode::FetchAdd;
  request.remote = remote;
  request.atomic.data = add;
  request.atomic.mask = boundaries;
  return post_send(request);
}

Status QueuePair::post_compare_swap(uint64_t id, const RemoteAddress& remote, uint64_t compare,
                                    uint64_t swap, uint64_t compare_mask, uint64_t swap_mask) {
  SendRequest request;
  request.id = id;
  request.opcode = Opcode::CompareSwap;
  request.remote = remote;
  request.atomic = {swap, swap_mask, compare, compare_mask};
  return post_send(request);
}

Status QueuePair::post_immediate(uint64_t id, const ImmediateData& octets, bool solicited) {
  SendRequest request;
  request.id = id;
  request.opcode = Opcode::Immediate;
  request.immediate = octets;
  request.solicited = solicited;
  return post_send(request);
}

Status QueuePair::connect(const std::string& address, uint16_t port,
                          std::span<const uint8_t> private_data, const ConnectOptions& options) {
  return guarded("QueuePair::connect", [&]() -> Status {
    if (device_ == nullptr) return empty_handle();
    auto ip = parse_ip(address);
    if (!ip) return tl::unexpected(ip.error());
    if (port == 0) {
      return tl::unexpected(Error{ErrorCode::InvalidArgument, "port 0 cannot be connected to"});
    }
    return on_worker(*device_, [&](base::Now now) {
      return device_->device->connect(*qp_, {*ip, port}, view(private_data), now, options);
    });
  });
}

Status QueuePair::connect(Stream& stream, std::span<const uint8_t> private_data,
                          const ConnectOptions& options) {
  return guarded("QueuePair::connect", [&]() -> Status {
    if (device_ == nullptr) return empty_handle();
    if (!stream.is_valid() || stream.device_ != device_) {
      return tl::unexpected(
          Error{ErrorCode::InvalidArgument, "the stream is closed, or another device's"});
    }
    return on_worker(*device_, [&](base::Now now) {
      return device_->device->connect(*qp_, stream.socket(), view(private_data), now, options);
    });
  });
}

Status QueuePair::accept(const RequestHandle& request, std::span<const uint8_t> private_data,
                         const ConnectOptions& options) {
  return guarded("QueuePair::accept", [&]() -> Status {
    if (device_ == nullptr) return empty_handle();
    return on_worker(*device_, [&](base::Now now) {
      return device_->device->accept(request, *qp_, view(private_data), now, options);
    });
  });
}

Status QueuePair::disconnect() {
  return guarded("QueuePair::disconnect", [&]() -> Status {
    if (device_ == nullptr) return empty_handle();
    return on_worker(*device_, [&](base::Now) { return device_->device->disconnect(*qp_); });
  });
}

Status QueuePair::start_trace(size_t max_events) {
  return guarded("QueuePair::start_trace", [&]() -> Status {
    if (device_ == nullptr) return empty_handle();
    const uint64_t octets =
        std::min<uint64_t>(max_events, UINT64_MAX / sizeof(TraceEvent)) * sizeof(TraceEvent);
    if (auto enough =
            verbs::enough_memory("start_trace: " + std::to_string(max_events) + " events", octets);
        !enough) {
      return tl::unexpected(enough.error());
    }
    auto trace = std::make_unique<Trace>(max_events);
    Status status = on_worker(
        *device_, [&](base::Now) { return device_->device->set_trace(*qp_, trace.get()); });
    if (status) trace_ = std::move(trace);
    return status;
  });
}

Result<std::vector<TraceEvent>> QueuePair::take_trace() {
  return guarded("QueuePair::take_trace", [&]() -> Result<std::vector<TraceEvent>> {
    if (device_ == nullptr) return empty_handle();
    if (trace_ == nullptr) {
      return tl::unexpected(Error{ErrorCode::WrongState, "no trace was started"});
    }
    on_worker(*device_, [&](base::Now) { device_->device->end_trace(*qp_); });
    auto events = trace_->take();
    trace_.reset();
    return events;
  });
}

// --- ProtectionDomain ---

namespace {

/// Queues that are deeper than the limits allow are left to the device, which refuses them.
Status enough_for(device::QueuePairSpec spec, const device::Limits& limits) {
  spec.send_depth = std::min(spec.send_depth, limits.max_work_depth);
  spec.receive_depth = std::min(spec.receive_depth, limits.max_work_depth);
  const uint64_t octets = device::QueuePair::octets_for(spec);
  if (octets < verbs::kWorthAsking) return {};
  return verbs::enough_memory("create_qp: queues of " + std::to_string(spec.send_depth) + " and " +
                                  std::to_string(spec.receive_depth) + " requests",
                              octets);
}

}  // namespace

ProtectionDomain::ProtectionDomain(ProtectionDomain&& other) noexcept { swap(other); }

ProtectionDomain& ProtectionDomain::operator=(ProtectionDomain&& other) noexcept {
  ProtectionDomain before(std::move(other));
  swap(before);
  return *this;
}

void ProtectionDomain::swap(ProtectionDomain& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(pd_, other.pd_);
}

ProtectionDomain::~ProtectionDomain() {
  if (device_ == nullptr) return;
  quietly([this] { on_worker(*device_, [&](base::Now) { device_->device->release_pd(pd_); }); });
}

Status ProtectionDomain::destroy() {
  if (device_ == nullptr) return {};
  return guarded("ProtectionDomain::destroy", [&]() -> Status {
    const Status status =
        on_worker(*device_, [&](base::Now) { return device_->device->free_pd(pd_); });
    if (status) device_ = nullptr;
    return status;
  });
}

Result<MemoryRegion> ProtectionDomain::register_memory(std::span<std::byte> memory,
                                                       AccessSet access) {
  mem::RegionSpec spec;
  spec.address = reinterpret_cast<uint8_t*>(memory.data());
  spec.length = memory.size();
  spec.pd = pd_;
  spec.rights = access;
  return guarded("ProtectionDomain::register_memory", [&]() -> Result<MemoryRegion> {
    if (device_ == nullptr) return empty_handle();
    auto stag =
        on_worker(*device_, [&](base::Now) { return device_->device->register_memory(spec); });
    if (!stag) return tl::unexpected(stag.error());
    MemoryRegion region;
    region.device_ = device_;
    region.stag_ = stag->value;
    region.address_ = reinterpret_cast<uint64_t>(memory.data());
    region.length_ = memory.size();
    return region;
  });
}

Result<QueuePair> ProtectionDomain::create_qp(CompletionQueue& send_cq, CompletionQueue& receive_cq,
                                              const QueuePairOptions& options) {
  if (device_ == nullptr || send_cq.device_ == nullptr || receive_cq.device_ == nullptr) {
    return empty_handle();
  }
  if (send_cq.device_ != device_ || receive_cq.device_ != device_) {
    return tl::unexpected(Error{ErrorCode::InvalidArgument, base::worded([] {
                                  return "a completion queue belongs to another device";
                                })});
  }
  const device::QueuePairSpec spec{
      pd_,         send_cq.cq_, receive_cq.cq_, options.send_depth, options.receive_depth,
      options.ird, options.ord};
  return guarded("ProtectionDomain::create_qp", [&]() -> Result<QueuePair> {
    if (auto enough = enough_for(spec, device_->device->config().limits); !enough) {
      return tl::unexpected(enough.error());
    }
    auto qp = on_worker(*device_, [&](base::Now) { return device_->device->create_qp(spec); });
    if (!qp) return tl::unexpected(qp.error());
    QueuePair handle;
    handle.device_ = device_;
    handle.qp_ = *qp;
    return handle;
  });
}

// --- Device ---

const std::string& Device::name() const { return device_->name; }

std::string Device::address() const {
  return guarded_or(std::string{},
                    [&] { return to_string(device_->device->config().net.address); });
}

const std::string& Device::port() const { return device_->port_name; }

uint32_t Device::mtu() const { return device_->device->config().net.mtu; }

std::string Device::checksum_mode() const {
  if (!device_->device->has_port()) return "system";
  return port::to_string(device_->device->port().info().checksum);
}

Result<ProtectionDomain> Device::alloc_pd() {
  return guarded("Device::alloc_pd", [&]() -> Result<ProtectionDomain> {
    auto pd = on_worker(*device_, [&](base::Now) { return device_->device->alloc_pd(); });
    if (!pd) return tl::unexpected(pd.error());
    ProtectionDomain domain;
    domain.device_ = device_;
    domain.pd_ = *pd;
    return domain;
  });
}

Result<CompletionQueue> Device::create_cq(uint32_t depth) {
  return guarded("Device::create_cq", [&]() -> Result<CompletionQueue> {
    const uint32_t deepest = 2 * device_->device->config().limits.max_work_depth;
    if (const uint64_t octets = device::CompletionQueue::octets_for(std::min(depth, deepest));
        octets >= verbs::kWorthAsking) {
      auto enough =
          verbs::enough_memory("create_cq: " + std::to_string(depth) + " completions", octets);
      if (!enough) return tl::unexpected(enough.error());
    }
    auto cq = on_worker(*device_, [&](base::Now) { return device_->device->create_cq(depth); });
    if (!cq) return tl::unexpected(cq.error());
    CompletionQueue queue;
    queue.device_ = device_;
    queue.cq_ = *cq;
    return queue;
  });
}

Status Device::listen(uint16_t port, const std::string& address, std::optional<Framing> framing) {
  return guarded("Device::listen", [&]() -> Status {
    if (port == 0) {
      return tl::unexpected(Error{ErrorCode::InvalidArgument, "port 0 cannot be listened on"});
    }
    const auto local = parse_endpoint(address, port);
    if (!local) return tl::unexpected(local.error());
    return on_worker(*device_, [&](base::Now) { return device_->device->listen(*local, framing); });
  });
}

Status Device::unlisten(uint16_t port, const std::string& address) {
  return guarded("Device::unlisten", [&]() -> Status {
    const auto local = parse_endpoint(address, port);
    if (!local) return tl::unexpected(local.error());
    return on_worker(*device_, [&](base::Now) { return device_->device->unlisten(*local); });
  });
}

Status Device::reject(const RequestHandle& request, std::span<const uint8_t> private_data) {
  return guarded("Device::reject", [&] {
    return on_worker(*device_, [&](base::Now now) {
      return device_->device->reject(request, view(private_data), now);
    });
  });
}

std::optional<Event> Device::poll_event() { return device_->poll_event(); }

Result<int> Device::event_fd() {
  return guarded("Device::event_fd", [&] { return device_->event_fd(); });
}

uint32_t Device::poll() {
  if (device_->worker != nullptr) return 0;
  return device_->turn();
}

namespace {

/// Calls `visit(layer, row)` for each counter of everything under a device; on its worker.
template <typename F>
void for_each_counter(verbs::DeviceRuntime& device, F&& visit) {
  device.device->for_each_counter(std::ref(visit));
  const auto pass_on = [&visit](const char* layer, const auto& counters) {
    counters.for_each([&](const base::CounterRow& row) { visit(layer, row); });
  };
  if (device.socket != nullptr) pass_on("socket", device.socket->counters());
  if (device.impaired != nullptr) pass_on("impair", device.impaired->impair_counters());
  if (device.capture != nullptr) {
    device.capture->writer()
        .flush();  // only then does the file system refuse what it has no room for
    pass_on("capture", device.capture->writer().counters());
  }
}

}  // namespace

std::vector<Counter> Device::counters() const {
  return guarded_or(std::vector<Counter>{}, [&] {
    std::vector<Counter> out;
    const auto add = [&](const char* layer, const base::CounterRow& row) {
      out.push_back({layer, row.name, row.unit, row.help, row.value});
    };
    on_worker(*device_, [&](base::Now) { for_each_counter(*device_, add); });
    return out;
  });
}

uint64_t Device::counter(const std::string& layer, const std::string& name) const {
  uint64_t value = 0;
  const auto look = [&](const char* at, const base::CounterRow& row) {
    if (layer == at && name == row.name) value = row.value;
  };
  on_worker(*device_, [&](base::Now) { for_each_counter(*device_, look); });
  return value;
}

bool Device::quiescent() const {
  return on_worker(*device_, [&](base::Now) {
    return device_->device->quiescent() &&
           (device_->socket == nullptr || device_->socket->quiescent());
  });
}

}  // namespace rnic
