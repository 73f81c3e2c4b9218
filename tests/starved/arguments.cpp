// The table of the calls that take numbers. A member function with a number among its arguments
// and no entry here fails `starved-calls`.

#include "arguments.hpp"

#include <array>
#include <climits>
#include <coroutine>
#include <cstdint>
#include <span>

#include "rnic/coroutine.hpp"

namespace rnic::starved {

namespace {

constexpr uint32_t kMost32 = UINT32_MAX;
constexpr uint64_t kMost64 = UINT64_MAX;
constexpr uint16_t kNobody = 65535;
/// Nobody has it, so that what connects there stays as it is; a peer would refuse, perhaps at once.
constexpr IpAddress kUnanswered = IpAddress::v4(0x0a00004d);
constexpr RequestHandle kNoRequest{kMost32 - 1, kMost32};

template <typename T>
Status of(const Result<T>& result) {
  if (result) return {};
  return tl::unexpected(result.error());
}

StreamOptions options() {
  StreamOptions options;
  options.keep_alive_idle = options.keep_alive_interval = std::chrono::milliseconds(kMost32);
  options.user_timeout = std::chrono::milliseconds(kMost32);
  options.keep_alive_count = kMost32;
  options.dscp = options.hop_limit = UINT8_MAX;
  options.max_segment = UINT16_MAX;
  return options;
}

FramingOptions framing() {
  FramingOptions options;
  options.format.length_at = options.format.length_octets = UINT8_MAX;
  options.format.adds = UINT16_MAX;
  options.send_key = options.receive_key = kMost64;
  options.send_interval = options.receive_interval = UINT16_MAX;
  options.max_frame = options.middlebox_limit = kMost32;
  return options;
}

QueuePairOptions depths(uint32_t send, uint32_t receive, uint32_t reads) {
  QueuePairOptions options;
  options.send_depth = send;
  options.receive_depth = receive;
  options.ird = options.ord = reads;
  options.receive_wait = std::chrono::nanoseconds::max();
  return options;
}

Status make_qp(World& w, const QueuePairOptions& options) {
  w.a = w.end(w.near());
  return of(w.a.pd.create_qp(w.a.cq, w.a.cq, options));
}

Status trace(World& w, size_t events) {
  w.a = w.end(w.near());
  w.b = w.end(w.far());
  w.connect(w.a, w.b, 7471);
  return w.a.qp.start_trace(events);
}

SendRequest widest() {
  SendRequest request;
  request.id = kMost64;
  while (request.sges.size() < kMaxSge) request.sges.push_back({kMost64, kMost32, kMost32});
  request.remote = {kMost32, kMost64};
  request.atomic = {kMost64, kMost64, kMost64, kMost64};
  return request;
}

ConnectOptions wishes() {
  ConnectOptions options;
  options.start.revision = UINT8_MAX;
  options.ird = options.ord = options.ord_required = kMost32;
  options.tcp.keep_alive_count = kMost32;
  options.tcp.dscp = options.tcp.hop_limit = UINT8_MAX;
  options.tcp.max_segment = UINT16_MAX;
  return options;
}

/// A stream on its way to nobody.
void a_framed_stream(World& w) {
  w.near_framed = must(w.near().connect_framed({kUnanswered, kNobody}, w.framing));
}

std::vector<Extreme> resources() {
  return {
      {"Device::create_cq", [](World& w) { return of(w.near().create_cq(kMost32)); }},
      {"Device::create_cq", [](World& w) { return of(w.near().create_cq(2 << 20)); }, false},
      {"Consumer::create_cq",
       [](World& w) {
         w.consumer.emplace(must(w.near().create_consumer({.name = "one"})));
         return of(w.consumer->create_cq(kMost32));
       }},
      {"ProtectionDomain::create_qp",
       [](World& w) { return make_qp(w, depths(kMost32, kMost32, kMost32)); }},
      {"ProtectionDomain::create_qp",
       [](World& w) { return make_qp(w, depths(1 << 20, 1 << 20, 16383)); }, false},
      {"ProtectionDomain::register_memory",
       [](World& w) {
         w.a = w.end(w.near());
         return of(w.a.pd.register_memory(
             std::as_writable_bytes(std::span(w.a.octets.data(), kMost64)), Access::LocalWrite));
       }},
      {"ProtectionDomain::register_memory",
       [](World& w) {
         w.a = w.end(w.near());
         return of(w.a.pd.register_memory(
             std::as_writable_bytes(std::span(w.a.octets.data(), uint64_t{1} << 46)),
             Access::RemoteWrite));
       }},
      {"ProtectionDomain::register_memory",
       [](World& w) {
         w.a = w.end(w.near());
         return of(w.a.pd.register_memory(std::as_writable_bytes(std::span(w.a.octets.data(), 1)),
                                          static_cast<Access>(kMost32)));
       }},
      {"MemoryRegion::sge",
       [](World& w) {
         w.a = w.end(w.near());
         SendRequest request{.id = 1};
         request.sges = {w.a.region.sge(kMost64, kMost32)};
         return w.a.qp.post_send(request);
       },
       false},
      {"Device::abort",
       [](World& w) {
         return w.near().abort({kMost32, kMost32});
       }},
      {"QueuePair::modify",
       [](World& w) {
         w.a = w.end(w.near());
         return w.a.qp.modify({.ird = kMost32, .ord = kMost32});
       }},
      {"QueuePair::drain",
       [](World& w) {
         w.a = w.end(w.near());
         return w.a.qp.drain(std::chrono::hours::max());
       },
       false},
      {"QueuePair::start_trace", [](World& w) { return trace(w, SIZE_MAX); }},
      {"QueuePair::start_trace", [](World& w) { return trace(w, size_t{1} << 40); }},
      {"QueuePair::start_trace", [](World& w) { return trace(w, size_t{1} << 24); }, false},
  };
}

std::vector<Extreme> work() {
  return {
      {"QueuePair::post_send",
       [](World& w) {
         w.a = w.end(w.near());
         return w.a.qp.post_send(widest());
       }},
      {"QueuePair::post_send",
       [](World& w) {
         w.a = w.end(w.near());
         SendRequest request = widest();
         while (request.sges.size() < 100'000) request.sges.push_back({});
         return w.a.qp.post_send(request);
       }},
      {"QueuePair::post_receive",
       [](World& w) {
         w.a = w.end(w.near());
         ReceiveRequest request{.id = kMost64};
         while (request.sges.size() < 100'000) request.sges.push_back({});
         return w.a.qp.post_receive(request);
       }},
      {"QueuePair::post_fetch_add",
       [](World& w) {
         w.a = w.end(w.near());
         return w.a.qp.post_fetch_add(kMost64, {kMost32, kMost64}, kMost64, kMost64);
       },
       false},
      {"QueuePair::post_compare_swap",
       [](World& w) {
         w.a = w.end(w.near());
         return w.a.qp.post_compare_swap(kMost64, {kMost32, kMost64}, kMost64, kMost64);
       },
       false},
      {"QueuePair::post_immediate",
       [](World& w) {
         w.a = w.end(w.near());
         return w.a.qp.post_immediate(kMost64, {});
       },
       false},
  };
}

void region_of(World& w) {
  w.a = w.end(w.near());
  w.region.emplace(must(w.a.pd.register_memory(std::as_writable_bytes(std::span(w.a.octets)),
                                               Access::Bind | Access::LocalWrite)));
}

void srq_of(World& w) {
  w.pd.emplace(must(w.near().alloc_pd()));
  w.srq.emplace(must(w.pd->create_srq({.depth = 16, .max_sges = 2})));
}

const MemoryGrant kWidest{kMost32, static_cast<Access>(kMost32), kMost64};
constexpr Sge kFar{kMost64, kMost32, kMost32};
constexpr RemoteAddress kThere{kMost32, kMost64};

/// The ends of what names memory.
std::vector<Extreme> memory() {
  return {
      {"ProtectionDomain::register_pieces",
       [](World& w) {
         w.a = w.end(w.near());
         const std::array<std::span<std::byte>, 1> pieces{
             std::as_writable_bytes(std::span(w.a.octets.data(), kMost64))};
         return of(
             w.a.pd.register_pieces(pieces, {.access = Access::LocalWrite, .offset = kMost64}));
       }},
      {"ProtectionDomain::reregister",
       [](World& w) {
         region_of(w);
         return w.a.pd.reregister(*w.region, {.offset = kMost64});
       }},
      {"ProtectionDomain::allocate_region",
       [](World& w) {
         w.a = w.end(w.near());
         return of(w.a.pd.allocate_region(kMost32));
       }},
      {"MemoryWindow::bind",
       [](World& w) {
         region_of(w);
         MemoryWindow window = must(w.a.pd.create_window(WindowType::Domain));
         return window.bind(*w.region, kMost64, kMost32, static_cast<Access>(kMost32));
       }},
      {"QueuePair::post_bind_window",
       [](World& w) {
         w.a = w.end(w.near());
         return w.a.qp.post_bind_window(kMost64, kWidest, {kMost64, kMost32, kMost32});
       },
       false},
      {"QueuePair::post_fast_register",
       [](World& w) {
         w.a = w.end(w.near());
         return w.a.qp.post_fast_register(kMost64, kWidest, {{kMost64, kMost32, kMost32}});
       },
       false},
      {"QueuePair::post_local_invalidate",
       [](World& w) {
         w.a = w.end(w.near());
         return w.a.qp.post_local_invalidate(kMost64, kMost32);
       },
       false},
  };
}

/// The ends of a call for each operation.
std::vector<Extreme> operations() {
  return {
      {"QueuePair::post_write",
       [](World& w) {
         w.a = w.end(w.near());
         return w.a.qp.post_write(kMost64, {kFar}, kThere);
       },
       false},
      {"QueuePair::post_write_immediate",
       [](World& w) {
         w.a = w.end(w.near());
         return w.a.qp.post_write_immediate(kMost64, {kFar}, kThere, {});
       },
       false},
      {"QueuePair::post_read",
       [](World& w) {
         w.a = w.end(w.near());
         return w.a.qp.post_read(kMost64, {kFar}, kThere);
       },
       false},
      {"QueuePair::post_read_invalidate",
       [](World& w) {
         w.a = w.end(w.near());
         return w.a.qp.post_read_invalidate(kMost64, kFar, kThere);
       },
       false},
      {"QueuePair::post_send_invalidate",
       [](World& w) {
         w.a = w.end(w.near());
         return w.a.qp.post_send_invalidate(kMost64, {kFar}, kMost32);
       },
       false},
  };
}

/// The ends of depths and marks.
std::vector<Extreme> queues() {
  return {
      {"ProtectionDomain::create_srq",
       [](World& w) {
         w.pd.emplace(must(w.near().alloc_pd()));
         return of(w.pd->create_srq({.depth = kMost32, .max_sges = kMost32}));
       }},
      {"SharedReceiveQueue::post_receive",
       [](World& w) {
         srq_of(w);
         ReceiveRequest request{.id = kMost64};
         while (request.sges.size() < 100'000) request.sges.push_back({});
         return w.srq->post_receive(request);
       }},
      {"SharedReceiveQueue::arm_limit",
       [](World& w) {
         srq_of(w);
         return w.srq->arm_limit(kMost32);
       },
       false},
      {"SharedReceiveQueue::arm_high_water",
       [](World& w) {
         srq_of(w);
         return w.srq->arm_high_water(kMost32);
       },
       false},
      {"SharedReceiveQueue::resize",
       [](World& w) {
         srq_of(w);
         return w.srq->resize(kMost32);
       }},
      {"CompletionQueue::resize",
       [](World& w) {
         w.cq.emplace(must(w.near().create_cq(64)));
         return w.cq->resize(kMost32);
       }},
      {"CompletionQueue::moderate",
       [](World& w) {
         w.cq.emplace(must(w.near().create_cq(64)));
         return w.cq->moderate({kMost32, std::chrono::nanoseconds::max()});
       }},
  };
}

std::vector<Extreme> connections() {
  return {
      {"QueuePair::connect",
       [](World& w) {
         w.a = w.end(w.near());
         return w.a.qp.connect({w.far_address, kNobody}, {}, wishes());
       }},
      {"QueuePair::accept",
       [](World& w) {
         w.a = w.end(w.near());
         return w.a.qp.accept(kNoRequest, {}, wishes());
       }},
      {"Device::reject", [](World& w) { return w.near().reject(kNoRequest); }},
      {"Device::listen",
       [](World& w) -> Status {
         const auto listening = w.near().listen(kNobody);
         if (!listening) return tl::unexpected(listening.error());
         return {};
       },
       false},
      {"Device::reserve",
       [](World& w) {
         return of(w.near().reserve({w.near_address, kNobody}));
       },
       false},
      {"Consumer::reserve",
       [](World& w) {
         w.consumer.emplace(must(w.near().create_consumer({.name = "one"})));
         return of(w.consumer->reserve({{}, kNobody}));
       },
       false},
      {"Device::unlisten", [](World& w) { return w.near().unlisten(kNobody); }},
      {"Consumer::listen",
       [](World& w) {
         w.consumer.emplace(must(w.near().create_consumer({.name = "one"})));
         ListenOptions options;
         options.backlog = kMost32;
         const auto listening = w.consumer->listen({{}, kNobody}, options);
         return listening ? Status{} : tl::unexpected(listening.error());
       },
       false},
      {"Consumer::unlisten",
       [](World& w) {
         w.consumer.emplace(must(w.near().create_consumer({.name = "one"})));
         return w.consumer->unlisten({{}, kNobody});
       }},
      {"Context::wait_until",
       [](World& w) {
         uint32_t asked = 0;
         const auto third_time = [&asked] { return ++asked == 3; };
         return w.context->wait_until(third_time, std::chrono::hours::max())
                    ? Status{}
                    : tl::unexpected(Error{ErrorCode::TimedOut, "the end of time has come"});
       },
       false},
      {"Context::wait_until",
       [](World& w) {
         return w.context->wait_until([] { return false; }, std::chrono::hours::min())
                    ? Status{}
                    : tl::unexpected(Error{ErrorCode::TimedOut, "the time was over before"});
       }},
  };
}

std::vector<Extreme> streams() {
  return {
      {"Device::listen_stream",
       [](World& w) {
         return of(w.far().listen_stream(kNobody, {kMost32, options()}));
       }},
      {"Device::connect_stream",
       [](World& w) {
         return of(w.near().connect_stream({w.far_address, kNobody}, options()));
       }},
      {"Stream::set_options",
       [](World& w) {
         w.near_stream = must(w.near().connect_stream({kUnanswered, kNobody}));
         return w.near_stream.set_options(options());
       }},
      {"Device::listen_framed",
       [](World& w) {
         FramedListenerOptions wide;
         wide.backlog = kMost32;
         wide.framing = framing();
         return of(w.far().listen_framed(kNobody, wide));
       }},
      {"Device::connect_framed",
       [](World& w) {
         return of(w.near().connect_framed({w.far_address, kNobody}, framing()));
       }},
      {"FramedStream::writable",
       [](World& w) {
         a_framed_stream(w);
         return w.near_framed.writable(SIZE_MAX)
                    ? Status{}
                    : tl::unexpected(Error{ErrorCode::MessageSize, "it does not fit"});
       }},
      {"FramedStream::set_send_mode",
       [](World& w) {
         a_framed_stream(w);
         return w.near_framed.set_send_mode(FramedSendMode::Align, kMost64);
       }},
      {"FramedStream::set_receive_mode",
       [](World& w) {
         a_framed_stream(w);
         return w.near_framed.set_receive_mode(FramedReceiveMode::Align, kMost64);
       }},
      {"FramedStream::set_send_interval",
       [](World& w) {
         a_framed_stream(w);
         return w.near_framed.set_send_interval(UINT16_MAX);
       },
       false},
      {"FramedStream::set_receive_interval",
       [](World& w) {
         a_framed_stream(w);
         return w.near_framed.set_receive_interval(UINT16_MAX);
       },
       false},
      {"FramedStream::set_max_frame",
       [](World& w) {
         a_framed_stream(w);
         return w.near_framed.set_max_frame(kMost32);
       }},
  };
}

// --- calls that wait ---

constexpr auto kLimit = std::chrono::seconds(5);

void adapters(World& w) {
  w.near_adapter.emplace(must(blocking::Adapter::open(*w.context, "rnic0")));
  w.far_adapter.emplace(must(blocking::Adapter::open(*w.context, "rnic1")));
}

void linked(World& w) {
  adapters(w);
  auto ends = must(w.near_adapter->connect_pair(*w.far_adapter, 7471, kLimit));
  w.near_link = std::move(ends.first);
  w.far_link = std::move(ends.second);
}

blocking::ConnectionOptions most() {
  blocking::ConnectionOptions options;
  options.message_size = options.receives = options.reads = kMost32;
  options.connect = wishes();
  return options;
}

std::vector<Extreme> waiting_meetings() {
  return {
      {"Adapter::connect",
       [](World& w) {
         adapters(w);
         return of(w.near_adapter->connect({w.far_address, kNobody}, kLimit, most()));
       }},
      {"Adapter::connect",
       [](World& w) {
         adapters(w);
         blocking::ConnectionOptions options;
         options.message_size = 1;
         options.receives = kMost32 >> 10;
         return of(w.near_adapter->connect({w.far_address, kNobody}, kLimit, options));
       }},
      {"Adapter::connect",
       [](World& w) {
         adapters(w);
         return of(w.near_adapter->connect("10.0.0.2", kNobody, std::chrono::hours::min()));
       }},
      {"Adapter::connect_pair",
       [](World& w) {
         adapters(w);
         return of(w.near_adapter->connect_pair(*w.far_adapter, kNobody, kLimit, most()));
       }},
      {"Adapter::listen",
       [](World& w) {
         adapters(w);
         return of(w.near_adapter->listen({kUnanswered, kNobody}));
       }},
      {"Adapter::register_memory",
       [](World& w) {
         adapters(w);
         return of(w.near_adapter->register_memory(
             std::as_writable_bytes(std::span(w.octets.data(), kMost64)), Access::LocalWrite));
       }},
      {"Listener::accept",
       [](World& w) {
         adapters(w);
         w.blocking_listener = must(w.far_adapter->listen(kNobody));
         return of(w.blocking_listener.accept(std::chrono::hours::max(), most()));
       }},
  };
}

std::vector<Extreme> waiting_work() {
  return {
      {"Connection::write",
       [](World& w) {
         linked(w);
         return of(w.near_link.write({kFar}, kThere, kLimit));
       }},
      {"Connection::read",
       [](World& w) {
         linked(w);
         return of(w.near_link.read({kFar}, kThere, kLimit));
       }},
      {"Connection::fetch_add",
       [](World& w) {
         linked(w);
         return of(w.near_link.fetch_add(kThere, kMost64, kLimit));
       }},
      {"Connection::compare_swap",
       [](World& w) {
         linked(w);
         return of(w.near_link.compare_swap(kThere, kMost64, kMost64, kLimit));
       }},
      {"Connection::carry_out",
       [](World& w) {
         linked(w);
         return of(w.near_link.carry_out(widest(), kLimit));
       }},
      {"Connection::receive",
       [](World& w) {
         linked(w);
         return of(w.near_link.receive(std::as_writable_bytes(std::span(w.octets.data(), kMost64)),
                                       std::chrono::hours(0)));
       }},
  };
}

// --- coroutines ---

/// \return how posting it went
template <typename Make>
Status operation(World& w, Make&& make) {
  w.a = w.end(w.near());
  coroutine::Dispatcher dispatcher(w.a.cq);
  coroutine::Operation one = make(coroutine::Operations(w.a.qp, dispatcher, dispatcher));
  return one.await_ready() ? of(one.await_resume()) : Status{};
}

using At = const coroutine::Operations&;

Completion widest_completion() {
  Completion done;
  done.id = done.original = kMost64;
  done.length = done.qp = done.invalidated_stag = kMost32;
  return done;
}

std::vector<Extreme> awaited() {
  return {
      {"Operations::send",
       [](World& w) { return operation(w, [](At at) { return at.send(kFar); }); }, false},
      {"Operations::receive",
       [](World& w) { return operation(w, [](At at) { return at.receive(kFar); }); }, false},
      {"Operations::write",
       [](World& w) { return operation(w, [](At at) { return at.write(kFar, kThere); }); }, false},
      {"Operations::read",
       [](World& w) { return operation(w, [](At at) { return at.read(kFar, kThere); }); }, false},
      {"Operations::fetch_add",
       [](World& w) { return operation(w, [](At at) { return at.fetch_add(kThere, kMost64); }); },
       false},
      {"Operations::compare_swap",
       [](World& w) {
         return operation(w, [](At at) { return at.compare_swap(kThere, kMost64, kMost64); });
       },
       false},
      {"Operations::carry_out",
       [](World& w) { return operation(w, [](At at) { return at.carry_out(widest()); }); }},
      {"Operation::complete",
       [](World& w) {
         w.a = w.end(w.near());
         coroutine::Dispatcher dispatcher(w.a.cq);
         const coroutine::Operations at(w.a.qp, dispatcher, dispatcher);
         coroutine::Operation one = at.receive(w.a.region.sge(0, 8));
         static_cast<void>(one.complete(widest_completion()));
         return of(one.await_resume());
       },
       false},
      {"Dispatcher::resume",
       [](World& w) -> Status {
         w.a = w.end(w.near());
         coroutine::Dispatcher dispatcher(w.a.cq);
         const auto run = [](std::coroutine_handle<> handle) { handle.resume(); };
         if (dispatcher.resume(widest_completion(), run)) return {};
         return tl::unexpected(Error{ErrorCode::NotFound, "nobody has that id"});
       }},
      {"Dispatcher::strike",
       [](World& w) -> Status {
         w.a = w.end(w.near());
         coroutine::Dispatcher dispatcher(w.a.cq);
         if (dispatcher.strike(kMost64) != nullptr) return {};
         return tl::unexpected(Error{ErrorCode::NotFound, "nobody has that id"});
       }},
  };
}

}  // namespace

const std::vector<Extreme>& extremes() {
  static const std::vector<Extreme> all = [] {
    std::vector<Extreme> list;
    for (const auto& part : {resources(), queues(), memory(), work(), operations(), connections(),
                             streams(), waiting_meetings(), waiting_work(), awaited()}) {
      list.insert(list.end(), part.begin(), part.end());
    }
    return list;
  }();
  return all;
}

}  // namespace rnic::starved
