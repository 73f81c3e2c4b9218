// The table of the public calls.

#include <cstdio>
#include <cstring>
#include <span>

#include "trial.hpp"

namespace rnic::starved {

namespace {

constexpr uint16_t kPort = 7471;
constexpr uint16_t kStreamPort = 7000;
constexpr uint16_t kFramedPort = 7200;
const Endpoint kHere{{}, kPort};

template <typename T, typename R>
Outcome keep(std::optional<T>& place, R&& result) {
  const Outcome outcome = of(result);
  if (result) place.emplace(std::move(*result));
  return outcome;
}

// --- preparations ---

void two_ends(World& w) {
  w.a = w.end(w.near());
  w.b = w.end(w.far());
}

void connected(World& w) {
  two_ends(w);
  w.connect(w.a, w.b, kPort);
}

void listening(World& w) {
  two_ends(w);
  must(w.far().listen(kPort));
}

void asked(World& w) {
  listening(w);
  must(w.a.qp.connect({w.far_address, kPort}));
  if (!w.await(w.far(), w.request)) broken("no connection request comes");
}

StreamListenerOptions few() {
  StreamListenerOptions options;
  options.backlog = 4;
  return options;
}

/// Until the far device has counted one of them.
void until_counted(World& w, const char* name) {
  if (!w.turn_until([&] { return w.far().counter("device", name).value_or(0) == 1; })) broken(name);
}

void stream_listener(World& w) {
  w.listener.emplace(must(w.far().listen_stream(kStreamPort, few())));
}

FramedListenerOptions few_framed(World& w) {
  FramedListenerOptions options;
  options.backlog = 4;
  options.framing = w.framing;
  return options;
}

void streams(World& w) {
  stream_listener(w);
  w.connect_stream(kStreamPort);
}

void framed_listener(World& w) {
  w.framed_listener.emplace(must(w.far().listen_framed(kFramedPort, few_framed(w))));
}

void framed(World& w) {
  framed_listener(w);
  w.connect_framed(kFramedPort);
}

void frame_under_way(World& w) {
  framed(w);
  w.octets[0] = 0;
  w.octets[1] = 98;
  if (must(w.near_framed.send({w.octets.data(), 100})) != 100) broken("no frame is taken");
  if (!w.turn_until([&w] { return w.far_framed.readable() == 100; })) broken("no frame comes");
}

// --- proofs ---

void becomes_established(World& w) {
  event::Established got;
  if (!w.await(w.near(), got)) broken("the initiator is not connected");
  if (!w.await(w.far(), got)) broken("the responder is not connected");
}

void request_comes(World& w) {
  if (!w.await(w.far(), w.request)) broken("no connection request comes");
  must(w.b.qp.accept(w.request.request));
  becomes_established(w);
}

void both_disconnect(World& w) {
  must(w.b.qp.disconnect());
  event::Disconnected got;
  if (!w.await(w.near(), got)) broken("the initiator does not end");
  if (!w.await(w.far(), got)) broken("the responder does not end");
}

void one_completion(World& w, CompletionQueue& queue) {
  if (!w.await_completion(queue, w.completion)) broken("a completion does not come");
  if (w.completion.status != CompletionStatus::Success) broken("a request did not succeed");
}

void octets_come(World& w) {
  std::array<uint8_t, 300> got{};
  size_t have = 0;
  const bool all = w.turn_until([&] {
    have += must(w.far_stream.receive({got.data() + have, got.size() - have}));
    return have == got.size();
  });
  if (!all || got != w.octets) broken("the octets of the stream do not come");
}

void send_octets(World& w) {
  if (must(w.near_stream.send(w.octets)) != w.octets.size()) broken("the stream takes no octets");
  octets_come(w);
}

SendRequest a_write(World& w) {
  SendRequest request{.id = 7, .opcode = Opcode::Write};
  request.sges = {w.a.region.sge(0, 700)};
  request.remote = {w.b.region.stag(), w.b.region.address()};
  return request;
}

/// One turn of everything, or (threaded) a moment for the workers.
void turns(World& w, int count) {
  for (int i = 0; i < count; ++i) {
    const int64_t until = w.context->now().count() + 50'000;
    w.context->poll();
    while (w.setting.threaded && w.context->now().count() < until) {
    }
  }
}

// --- Config ---

std::vector<Call> config_calls() {
  return {
      {"Config::loopback", nullptr,
       [](World&) {
         const Config made = Config::loopback();
         return of(made.check());
       },
       nullptr},
      {"Config::from_file",
       [](World& w) {
         w.text = "/tmp/rnic-starved-" + std::to_string(getpid()) + ".toml";
         std::FILE* file = std::fopen(w.text.c_str(), "w");
         std::fputs(config_text(w.setting).c_str(), file);
         std::fclose(file);
       },
       [](World& w) { return of(Config::from_file(w.text)); },
       [](World& w) {
         must(must(Config::from_file(w.text)).check());
         std::remove(w.text.c_str());
       }},
      {"Config::set, Config::from_text, Config::text, Config::name, Config::overrides",
       [](World& w) { w.text = "tcp.nagle=true"; },
       [](World& w) {
         Config config = Config::from_text({}, {});
         config.set(std::move(w.text));
         const bool kept =
             config.overrides().size() == 1 && config.text().empty() && config.name().empty();
         w.text = "tcp.nagle=true";
         // Nothing is forgotten in silence.
         if (kept) return Outcome{};
         const Outcome outcome = of(config.check());
         return outcome.done ? Outcome{false, ErrorCode::Protocol, true} : outcome;
       },
       nullptr},
      {"Config::check", nullptr, [](World& w) { return of(w.config.check()); }, nullptr},
      {"Config::needs_dpdk", nullptr, [](World& w) { return of(w.config.needs_dpdk()); }, nullptr},
  };
}

// --- Context ---

std::vector<Call> context_calls() {
  return {
      {"Context::open, Context::~Context", nullptr,
       [](World& w) {
         auto opened = Context::open(w.config);
         return of(opened);
       },
       nullptr},
      {"Context::device_names", nullptr,
       [](World& w) {
         const size_t count = w.context->device_names().size();
         return count == 2 ? Outcome{} : Outcome{false, ErrorCode::ResourceExhausted, true};
       },
       nullptr},
      {"Context::device", [](World& w) { w.text = "rnic1"; },
       [](World& w) { return of(w.context->device(w.text)); }, nullptr},
      {"Context::device", [](World& w) { w.text = "another"; },
       [](World& w) {
         // What is wrong stays what is wrong, though the text may be short.
         const Outcome outcome = of(w.context->device(w.text));
         return !outcome.done && outcome.code == ErrorCode::NotFound && outcome.told
                    ? Outcome{}
                    : Outcome{false, ErrorCode::Protocol, true};
       },
       nullptr},
      {"Context::environment", nullptr,
       [](World& w) {
         return w.context->environment().empty()
                    ? Outcome{false, ErrorCode::ResourceExhausted, true}
                    : Outcome{};
       },
       nullptr},
      {"Context::fd, Context::arm", nullptr,
       [](World& w) {
         const auto fd = w.context->fd();
         static_cast<void>(w.context->arm());
         const bool refused =
             w.setting.threaded && !fd && fd.error().code == ErrorCode::Unsupported;
         return refused ? Outcome{} : of(fd);
       },
       nullptr},
      {"Context::threaded, Context::poll, Context::next_deadline, Context::now, "
       "Context::wait_until, Device::poll",
       nullptr,
       [](World& w) {
         static_cast<void>(w.context->threaded());
         static_cast<void>(w.context->next_deadline());
         w.near().poll();
         turns(w, 3);
         w.settled = true;
         w.turn_until([&w] { return w.settled; });
         return Outcome{};
       },
       nullptr},
  };
}

// --- Device ---

std::vector<Call> device_calls() {
  return {
      {"Device::name, Device::port, Device::mtu, Device::context, Device::checksum_mode, "
       "Device::new_framing_key, Device::quiescent, Device::counter, Device::set_context, "
       "Device::~Device",
       [](World& w) { w.text = "polls"; },
       [](World& w) {
         static_cast<void>(w.near().name());
         static_cast<void>(w.near().port());
         static_cast<void>(w.near().mtu());
         static_cast<void>(w.near().context().threaded());
         static_cast<void>(w.near().checksum_mode());
         static_cast<void>(w.near().new_framing_key());
         static_cast<void>(w.near().quiescent());
         static_cast<void>(w.near().counter(w.text, w.text));
         static_cast<void>(w.near().set_context(&w));
         return Outcome{};
       },
       nullptr},
      {"Device::address, Device::addresses", nullptr,
       [](World& w) {
         return w.near().addresses().size() == 1 && w.near().address() == w.near_address
                    ? Outcome{}
                    : Outcome{false, ErrorCode::ResourceExhausted, true};
       },
       nullptr},
      {"Device::counters", nullptr,
       [](World& w) {
         return w.near().counters().size() > 50
                    ? Outcome{}
                    : Outcome{false, ErrorCode::ResourceExhausted, true};
       },
       nullptr},
      {"Device::terminates", connected, [](World& w) { return of(w.near().terminates()); },
       nullptr},
      {"Device::limits, Device::connections, Device::abort", connected,
       [](World& w) {
         static_cast<void>(w.near().limits());
         const auto all = w.near().connections();
         return all ? of(w.near().abort(all->front().id)) : of(all);
       },
       nullptr},
      {"QueuePair::state, QueuePair::query, QueuePair::info", connected,
       [](World& w) {
         static_cast<void>(w.a.qp.state());
         const auto attributes = w.a.qp.query();
         return attributes ? of(w.a.qp.info()) : of(attributes);
       },
       nullptr},
      {"QueuePair::local, QueuePair::remote", connected,
       [](World& w) {
         const auto local = w.a.qp.local();
         return local ? of(w.a.qp.remote()) : of(local);
       },
       nullptr},
      {"QueuePair::cancel_connect", asked, [](World& w) { return of(w.a.qp.cancel_connect()); },
       [](World& w) {
         event::ConnectFailed told;
         if (!w.await(w.near(), told)) broken("the connect goes on");
       }},
      {"QueuePair::commit", connected,
       [](World& w) { return of(w.a.qp.commit("stall the responder 1s at request 3")); }, nullptr},
      {"Device::event_fd", nullptr, [](World& w) { return of(w.near().event_fd()); }, nullptr},
      {"Device::alloc_pd, ProtectionDomain::~ProtectionDomain", nullptr,
       [](World& w) { return keep(w.pd, w.near().alloc_pd()); }, nullptr},
      {"Device::create_cq, CompletionQueue::~CompletionQueue", nullptr,
       [](World& w) { return keep(w.cq, w.near().create_cq(128)); }, nullptr},
  };
}

std::vector<Call> listen_calls() {
  return {
      {"Device::listen", two_ends,
       [](World& w) {
         return of(w.far().listen({w.far_address, kPort}));
       },
       [](World& w) {
         must(w.a.qp.connect({w.far_address, kPort}));
         request_comes(w);
       }},
      {"Device::listen", two_ends,
       [](World& w) { return of(w.far().listen(kPort, {.framing = Framing::Mpa})); },
       [](World& w) {
         must(w.a.qp.connect({w.far_address, kPort}));
         request_comes(w);
       }},
      {"Device::unlisten", listening, [](World& w) { return of(w.far().unlisten(kPort)); },
       [](World& w) { must(w.far().listen(kPort)); }},
      {"Device::reject", asked,
       [](World& w) {
         return of(w.far().reject(w.request.request, {w.octets.data(), 100}));
       },
       [](World& w) {
         event::Rejected told;
         if (!w.await(w.near(), told)) broken("the reject does not come");
         if (told.private_data.size() == 100) return;
         // A worker may make the event while the call still goes on: it is given without them then.
         const uint64_t without = w.near().counter("device", "starved_texts").value_or(0);
         if (without == 0) broken("the reject's private data is lost");
       }},
      {"Device::poll_event",
       [](World& w) {
         listening(w);
         must(w.a.qp.connect({w.far_address, kPort}, {w.octets.data(), 200}));
         until_counted(w, "connect_requests");
       },
       [](World& w) {
         auto event = w.far().poll_event();
         if (!event) return Outcome{false, ErrorCode::ResourceExhausted, true};
         auto* asked = std::get_if<event::ConnectRequest>(&*event);
         if (asked != nullptr) w.request = std::move(*asked);
         return Outcome{};
       },
       [](World& w) {
         if (w.request.private_data.size() != 200) {
           broken("the event is not what it was");
         }
         must(w.b.qp.accept(w.request.request));
         becomes_established(w);
       }},
  };
}

std::vector<Call> listen_stream_calls() {
  return {
      {"Device::listen_stream, StreamListener::~StreamListener", nullptr,
       [](World& w) { return keep(w.listener, w.far().listen_stream(kStreamPort, few())); },
       [](World& w) {
         w.listener.reset();
         streams(w);
       },
       Where::OnWire},
      {"Device::connect_stream, Stream::~Stream", stream_listener,
       [](World& w) {
         auto made = w.near().connect_stream({w.far_address, kStreamPort});
         const Outcome outcome = of(made);
         if (made) w.near_stream = std::move(*made);
         return outcome;
       },
       [](World& w) {
         if (!w.turn_until([&w] { return w.near_stream.state() == StreamState::Open; })) {
           broken("the stream does not open");
         }
       },
       Where::OnWire},
      {"Device::listen_framed, FramedStreamListener::~FramedStreamListener", nullptr,
       [](World& w) {
         return keep(w.framed_listener, w.far().listen_framed(kFramedPort, few_framed(w)));
       },
       [](World& w) {
         w.framed_listener.reset();
         framed(w);
       },
       Where::OnWire},
      {"Device::connect_framed, FramedStream::~FramedStream", framed_listener,
       [](World& w) {
         auto made = w.near().connect_framed({w.far_address, kFramedPort}, w.framing);
         const Outcome outcome = of(made);
         if (made) w.near_framed = std::move(*made);
         return outcome;
       },
       [](World& w) {
         if (!w.turn_until([&w] { return w.near_framed.state() == StreamState::Open; })) {
           broken("the framed stream does not open");
         }
       },
       Where::OnWire},
  };
}

// --- ProtectionDomain, MemoryRegion, CompletionQueue ---

std::vector<Call> memory_calls() {
  return {
      {"ProtectionDomain::register_memory, MemoryRegion::~MemoryRegion, MemoryRegion::stag, "
       "MemoryRegion::address, MemoryRegion::length, MemoryRegion::sge",
       two_ends,
       [](World& w) {
         return keep(w.region, w.a.pd.register_memory(std::as_writable_bytes(std::span(w.octets)),
                                                      Access::LocalWrite));
       },
       [](World& w) {
         if (w.region->stag() == 0 || w.region->length() != 300 || w.region->address() == 0 ||
             w.region->sge(1, 2).length != 2) {
           broken("the region is none");
         }
       }},
      {"MemoryRegion::deregister",
       [](World& w) {
         two_ends(w);
         w.region.emplace(must(w.a.pd.register_memory(
             std::as_writable_bytes(std::span(w.octets.data(), 300)), Access::LocalWrite)));
       },
       [](World& w) { return of(w.region->deregister()); }, nullptr},
      {"ProtectionDomain::create_qp, QueuePair::number",
       [](World& w) {
         w.pd.emplace(must(w.near().alloc_pd()));
         w.cq.emplace(must(w.near().create_cq(64)));
       },
       [](World& w) {
         return keep(w.qp, w.pd->create_qp(*w.cq, *w.cq, {64, 64, 4, 4}));
       },
       [](World& w) {
         if (w.qp->number() == 0) broken("the queue pair has no number");
       }},
      {"ProtectionDomain::destroy", [](World& w) { w.pd.emplace(must(w.near().alloc_pd())); },
       [](World& w) { return of(w.pd->destroy()); }, nullptr},
      {"CompletionQueue::destroy", [](World& w) { w.cq.emplace(must(w.near().create_cq(64))); },
       [](World& w) { return of(w.cq->destroy()); }, nullptr},
      {"QueuePair::destroy",
       [](World& w) {
         w.pd.emplace(must(w.near().alloc_pd()));
         w.cq.emplace(must(w.near().create_cq(64)));
         w.qp.emplace(must(w.pd->create_qp(*w.cq, *w.cq, {64, 64, 4, 4})));
       },
       [](World& w) { return of(w.qp->destroy()); }, nullptr},
      {"CompletionQueue::fd, CompletionQueue::arm", connected,
       [](World& w) {
         const auto fd = w.a.cq.fd();
         return fd ? of(w.a.cq.arm()) : of(fd);
       },
       nullptr},
      {"CompletionQueue::poll", connected,
       [](World& w) {
         w.a.cq.poll({&w.completion, 1});
         return Outcome{};
       },
       nullptr},
  };
}

// --- queues of several threads ---

std::vector<Call> several_threads_calls() {
  return {
      {"Device::create_cq", nullptr,
       [](World& w) { return keep(w.cq, w.near().create_cq(128, {.several_threads = true})); },
       [](World& w) { if (w.cq->poll({&w.completion, 1}) != 0) broken("it has a completion"); }},
      {"ProtectionDomain::create_qp",
       [](World& w) {
         w.pd.emplace(must(w.near().alloc_pd()));
         w.cq.emplace(must(w.near().create_cq(64)));
       },
       [](World& w) {
         QueuePairOptions options{64, 64, 4, 4};
         options.several_threads = true;
         return keep(w.qp, w.pd->create_qp(*w.cq, *w.cq, options));
       },
       [](World& w) { must(w.qp->post_receive(ReceiveRequest{})); }},
      {"ProtectionDomain::create_srq", [](World& w) { w.pd.emplace(must(w.near().alloc_pd())); },
       [](World& w) { return keep(w.srq, w.pd->create_srq({16, 4, nullptr, true})); },
       [](World& w) { must(w.srq->post_receive({.id = 1})); }},
      {"CompletionQueue::arm, CompletionQueue::resize",
       [](World& w) { w.cq.emplace(must(w.near().create_cq(64, {.several_threads = true}))); },
       [](World& w) {
         const Outcome outcome = of(w.cq->resize(100));
         return outcome.done ? of(w.cq->arm()) : outcome;
       }},
  };
}

// --- shared receive queues, windows, regions of several pieces ---

void with_srq(World& w) {
  w.pd.emplace(must(w.near().alloc_pd()));
  w.srq.emplace(must(w.pd->create_srq({.depth = 16, .max_sges = 2})));
}

std::vector<Call> srq_calls() {
  return {
      {"ProtectionDomain::create_srq, SharedReceiveQueue::~SharedReceiveQueue, "
       "SharedReceiveQueue::number",
       [](World& w) { w.pd.emplace(must(w.near().alloc_pd())); },
       [](World& w) { return keep(w.srq, w.pd->create_srq({.depth = 16, .max_sges = 2})); },
       [](World& w) {
         if (w.srq->number() == 0) broken("the shared receive queue has no number");
       }},
      {"SharedReceiveQueue::destroy", with_srq, [](World& w) { return of(w.srq->destroy()); },
       nullptr},
      {"SharedReceiveQueue::post_receive", with_srq,
       [](World& w) { return of(w.srq->post_receive({.id = 1})); },
       [](World& w) {
         if (!w.turn_until([&w] { return must(w.srq->info()).posted != 0; })) {
           broken("nothing is posted");
         }
       }},
      {"SharedReceiveQueue::arm_limit, SharedReceiveQueue::arm_high_water", with_srq,
       [](World& w) {
         const Outcome outcome = of(w.srq->arm_high_water(3));
         return outcome.done ? of(w.srq->arm_limit(0)) : outcome;
       },
       nullptr},
      {"SharedReceiveQueue::resize", with_srq, [](World& w) { return of(w.srq->resize(64)); },
       [](World& w) {
         if (must(w.srq->info()).depth != 64) broken("the queue has another depth");
       }},
      {"SharedReceiveQueue::info", with_srq, [](World& w) { return of(w.srq->info()); }, nullptr},
      {"CompletionQueue::resize, CompletionQueue::info, CompletionQueue::number, "
       "CompletionQueue::moderate",
       [](World& w) { w.cq.emplace(must(w.near().create_cq(64))); },
       [](World& w) {
         const Outcome outcome = of(w.cq->resize(128));
         if (w.cq->number() == 0) return Outcome{false, ErrorCode::Protocol, true};
         if (!outcome.done) return outcome;
         const Outcome moderated =
             of(w.cq->moderate({.count = 8, .period = std::chrono::microseconds(50)}));
         return moderated.done ? of(w.cq->info()) : moderated;
       },
       nullptr},
  };
}

void with_consumer(World& w) {
  w.consumer.emplace(must(w.near().create_consumer({.name = "one"})));
}

std::vector<Call> consumer_calls() {
  return {
      {"Device::create_consumer, Consumer::~Consumer", nullptr,
       [](World& w) { return keep(w.consumer, w.near().create_consumer({.name = "one"})); },
       nullptr},
      {"Consumer::destroy", with_consumer, [](World& w) { return of(w.consumer->destroy()); },
       nullptr},
      {"Consumer::info", with_consumer, [](World& w) { return of(w.consumer->info()); }, nullptr},
      {"Consumer::alloc_pd", with_consumer,
       [](World& w) { return keep(w.pd, w.consumer->alloc_pd()); }, nullptr},
      {"Consumer::create_cq", with_consumer,
       [](World& w) { return keep(w.cq, w.consumer->create_cq(128)); }, nullptr},
      {"Consumer::listen", with_consumer, [](World& w) { return of(w.consumer->listen(kHere)); },
       [](World& w) { must(w.consumer->unlisten(kHere)); }},
      {"Consumer::unlisten",
       [](World& w) {
         with_consumer(w);
         must(w.consumer->listen(kHere));
       },
       [](World& w) { return of(w.consumer->unlisten(kHere)); },
       [](World& w) { must(w.near().listen(kHere)); }},
  };
}

std::span<std::byte> octets_of(World& w, size_t from, size_t count) {
  return std::as_writable_bytes(std::span(w.octets).subspan(from, count));
}

void bindable(World& w) {
  connected(w);
  w.region.emplace(
      must(w.b.pd.register_memory(octets_of(w, 0, 300), Access::Bind | Access::LocalWrite)));
}

void with_window(World& w) {
  bindable(w);
  w.window.emplace(must(w.b.pd.create_window(WindowType::Domain)));
}

/// Lets the responder begin, which does nothing of its queue before the initiator's first message.
void first_message(World& w) {
  must(w.a.qp.post_send(a_write(w)));
  one_completion(w, w.a.cq);
}

std::vector<Call> region_calls() {
  return {
      {"ProtectionDomain::register_pieces", two_ends,
       [](World& w) {
         const std::array<std::span<std::byte>, 2> pieces{octets_of(w, 0, 100),
                                                          octets_of(w, 200, 50)};
         return keep(w.region, w.a.pd.register_pieces(pieces, {.access = Access::LocalWrite}));
       },
       [](World& w) {
         if (w.region->length() != 150) broken("the region has another length");
       }},
      {"ProtectionDomain::reregister", bindable,
       [](World& w) {
         return of(w.b.pd.reregister(*w.region, {.access = Access::RemoteRead}));
       },
       nullptr},
      {"ProtectionDomain::allocate_region", two_ends,
       [](World& w) { return keep(w.region, w.a.pd.allocate_region(4)); }, nullptr},
  };
}

std::vector<Call> window_calls() {
  return {
      {"ProtectionDomain::create_window, MemoryWindow::~MemoryWindow, MemoryWindow::stag", bindable,
       [](World& w) { return keep(w.window, w.b.pd.create_window(WindowType::Domain)); },
       [](World& w) {
         if (w.window->stag() == 0) broken("the window has no STag");
       }},
      {"MemoryWindow::bind", with_window,
       [](World& w) {
         return of(w.window->bind(*w.region, w.region->address(), 100, Access::RemoteWrite));
       },
       nullptr},
      {"MemoryWindow::unbind, MemoryWindow::destroy",
       [](World& w) {
         with_window(w);
         must(w.window->bind(*w.region, w.region->address(), 100, Access::RemoteWrite));
       },
       [](World& w) {
         // Bound again where a destroy() that failed comes once more.
         const Outcome outcome =
             of(w.window->bind(*w.region, w.region->address(), 100, Access::RemoteWrite));
         if (!outcome.done) return outcome;
         const Outcome unbound = of(w.window->unbind());
         return unbound.done ? of(w.window->destroy()) : unbound;
       },
       nullptr},
      {"QueuePair::post_bind_window",
       [](World& w) {
         bindable(w);
         w.window.emplace(must(w.b.pd.create_window(WindowType::QueuePair)));
         first_message(w);
       },
       [](World& w) {
         const MemoryGrant grant{next_key(w.window->stag()), Access::RemoteRead, 0};
         return of(w.b.qp.post_bind_window(1, grant, w.region->sge(0, 100)));
       },
       [](World& w) { one_completion(w, w.b.cq); }},
      {"QueuePair::post_fast_register",
       [](World& w) {
         connected(w);
         w.region.emplace(must(w.b.pd.allocate_region(2)));
         first_message(w);
       },
       [](World& w) {
         const MemoryGrant grant{next_key(w.region->stag()), Access::RemoteRead, 0};
         return of(w.b.qp.post_fast_register(1, grant, {w.b.region.sge(0, 100)}));
       },
       [](World& w) { one_completion(w, w.b.cq); }},
      {"QueuePair::post_local_invalidate",
       [](World& w) {
         connected(w);
         w.region.emplace(must(w.a.pd.register_memory(octets_of(w, 0, 100), Access::RemoteRead)));
       },
       [](World& w) { return of(w.a.qp.post_local_invalidate(1, w.region->stag())); },
       [](World& w) { one_completion(w, w.a.cq); }},
  };
}

// --- QueuePair ---

void atomic_target(World& w) {
  connected(w);
  w.region.emplace(must(w.b.pd.register_memory(
      std::as_writable_bytes(std::span(w.b.octets.data(), 8)), Access::RemoteAtomic)));
}

RemoteAddress word_of(World& w) { return {w.region->stag(), w.region->address()}; }

void atomic_done(World& w) { one_completion(w, w.a.cq); }

std::vector<Call> post_calls() {
  return {
      {"QueuePair::post_send", connected, [](World& w) { return of(w.a.qp.post_send(a_write(w))); },
       [](World& w) { one_completion(w, w.a.cq); }},
      {"QueuePair::post_send",
       [](World& w) {
         two_ends(w);
         for (int i = 0; i < 8; ++i) must(w.a.qp.post_send(a_write(w)));
       },
       [](World& w) {
         // A full queue is one, whether there is memory to say so at length or not.
         const Outcome full = of(w.a.qp.post_send(a_write(w)));
         SendRequest wrong = a_write(w);
         while (wrong.sges.size() < 17) wrong.sges.push_back({});
         const Outcome bad = of(w.a.qp.post_send(wrong));
         // A worker may have flushed some meanwhile.
         const bool told = full.code == ErrorCode::ResourceExhausted && full.told;
         const bool right = (full.done ? w.setting.threaded : told) && !bad.done &&
                            bad.code == ErrorCode::InvalidArgument && bad.told;
         return right ? Outcome{} : Outcome{false, ErrorCode::Protocol, true};
       },
       nullptr},
      {"QueuePair::post_receive", connected,
       [](World& w) {
         ReceiveRequest receive{.id = 9};
         receive.sges = {w.b.region.sge(0, 64)};
         return of(w.b.qp.post_receive(receive));
       },
       [](World& w) {
         SendRequest send{.id = 8};
         send.sges = {w.a.region.sge(0, 64)};
         must(w.a.qp.post_send(send));
         one_completion(w, w.b.cq);
       }},
      {"QueuePair::post_fetch_add", atomic_target,
       [](World& w) { return of(w.a.qp.post_fetch_add(1, word_of(w), 5)); }, atomic_done},
      {"QueuePair::post_compare_swap", atomic_target,
       [](World& w) { return of(w.a.qp.post_compare_swap(1, word_of(w), 0, 5)); }, atomic_done},
      {"QueuePair::post_immediate",
       [](World& w) {
         connected(w);
         must(w.b.qp.post_receive({.id = 9}));
       },
       [](World& w) {
         return of(w.a.qp.post_immediate(4, {1, 2, 3}));
       },
       [](World& w) { one_completion(w, w.b.cq); }},
  };
}

RemoteAddress remote(World& w) { return {w.b.region.stag(), w.b.region.address()}; }

void receives(World& w) {
  connected(w);
  must(w.b.qp.post_receive({.id = 9}));
}

/// A call for each operation.
std::vector<Call> operation_calls() {
  return {
      {"QueuePair::post_write", connected,
       [](World& w) {
         return of(w.a.qp.post_write(1, {w.a.region.sge(0, 64)}, remote(w)));
       },
       atomic_done},
      {"QueuePair::post_write_immediate", receives,
       [](World& w) {
         return of(w.a.qp.post_write_immediate(1, {w.a.region.sge(0, 64)}, remote(w), {1, 2}));
       },
       [](World& w) { one_completion(w, w.b.cq); }},
      {"QueuePair::post_read", connected,
       [](World& w) {
         return of(w.a.qp.post_read(1, {w.a.region.sge(0, 64)}, remote(w)));
       },
       atomic_done},
      {"QueuePair::post_read_invalidate",
       [](World& w) {
         connected(w);
         w.region.emplace(must(w.a.pd.register_memory(octets_of(w, 0, 100), Access::LocalWrite)));
       },
       [](World& w) {
         return of(w.a.qp.post_read_invalidate(1, w.region->sge(0, 64), remote(w)));
       },
       atomic_done},
      {"QueuePair::post_send_invalidate",
       [](World& w) {
         connected(w);
         must(w.b.qp.post_receive({.id = 9}));
         w.region.emplace(must(w.b.pd.register_memory(
             octets_of(w, 0, 100), {.access = Access::RemoteWrite | Access::RemoteInvalidate,
                                    .queue_pair = &w.b.qp})));
       },
       [](World& w) { return of(w.a.qp.post_send_invalidate(1, {}, w.region->stag())); },
       [](World& w) { one_completion(w, w.b.cq); }},
  };
}

std::vector<Call> connection_calls() {
  return {
      {"QueuePair::connect", listening,
       [](World& w) {
         return of(w.a.qp.connect({w.far_address, kPort}, {w.octets.data(), 200}));
       },
       request_comes},
      {"QueuePair::connect",
       [](World& w) {
         two_ends(w);
         must(w.far().listen(kPort, {.framing = Framing::Tuf}));
       },
       [](World& w) {
         ConnectOptions options;
         options.framing = Framing::Tuf;
         return of(w.a.qp.connect({w.far_address, kPort}, {w.octets.data(), 200}, options));
       },
       request_comes, Where::OnWire},
      {"QueuePair::connect",
       [](World& w) {
         streams(w);
         two_ends(w);
         must(w.far_stream.await_rdma());
       },
       [](World& w) { return of(w.a.qp.connect(w.near_stream)); }, request_comes, Where::OnWire},
      {"QueuePair::accept", asked,
       [](World& w) {
         return of(w.b.qp.accept(w.request.request, {w.octets.data(), 200}));
       },
       becomes_established},
      {"QueuePair::disconnect", connected, [](World& w) { return of(w.a.qp.disconnect()); },
       both_disconnect},
      {"QueuePair::drain", connected, [](World& w) { return of(w.a.qp.drain()); }, both_disconnect},
      {"QueuePair::modify",
       [](World& w) {
         two_ends(w);
         must(w.a.qp.modify({.state = QueuePairState::Error}));
       },
       [](World& w) { return of(w.a.qp.modify({.state = QueuePairState::Idle})); },
       [](World& w) {
         if (w.a.qp.state() != QueuePairState::Idle) broken("the queue pair is not idle");
       }},
      {"QueuePair::~QueuePair", connected,
       [](World& w) {
         w.a.qp = QueuePair();
         return Outcome{};
       },
       nullptr},
      {"QueuePair::start_trace", connected, [](World& w) { return of(w.a.qp.start_trace(64)); },
       [](World& w) {
         must(w.a.qp.post_send(a_write(w)));
         one_completion(w, w.a.cq);
         if (must(w.a.qp.take_trace()).empty()) broken("nothing was traced");
       }},
      {"QueuePair::take_trace",
       [](World& w) {
         connected(w);
         must(w.a.qp.start_trace(64));
         must(w.a.qp.post_send(a_write(w)));
         one_completion(w, w.a.cq);
       },
       [](World& w) { return of(w.a.qp.take_trace()); }, nullptr},
  };
}

// --- Stream ---

std::vector<Call> stream_calls() {
  const auto where = Where::OnWire;
  return {
      {"Stream::send", streams, [](World& w) { return of(w.near_stream.send(w.octets)); },
       octets_come, where},
      {"Stream::receive",
       [](World& w) {
         streams(w);
         must(w.near_stream.send(w.octets));
         if (!w.turn_until([&w] { return w.far_stream.readable() == 300; })) broken("no octets");
       },
       [](World& w) {
         std::array<uint8_t, 64> got;
         return of(w.far_stream.receive(got));
       },
       nullptr, where},
      {"Stream::readable, Stream::writable, Stream::unacknowledged, Stream::at_end, "
       "Stream::is_converted, Stream::state, Stream::how_ended, Stream::is_valid, Stream::status, "
       "StreamListener::local",
       streams,
       [](World& w) {
         const Stream& s = w.near_stream;
         const bool open = s.is_valid() && s.readable() == 0 && s.writable() != 0 && !s.at_end() &&
                           s.unacknowledged() == 0 && !s.is_converted() && !s.how_ended() &&
                           s.state() == StreamState::Open &&
                           w.listener->local().port == kStreamPort;
         return open ? of(s.status()) : Outcome{false, ErrorCode::Protocol, true};
       },
       send_octets, where},
      {"Stream::status",
       [](World& w) {
         streams(w);
         w.near_stream.abort();
         w.turn_until([&w] { return w.near_stream.state() == StreamState::Ended; });
       },
       [](World& w) {
         const Outcome outcome = of(w.near_stream.status());
         return !outcome.done && outcome.told ? Outcome{}
                                              : Outcome{false, ErrorCode::Protocol, true};
       },
       nullptr, where},
      {"Stream::local, Stream::remote", streams,
       [](World& w) {
         return w.near_stream.local().port == 0 || w.near_stream.remote().port == 0
                    ? Outcome{false, ErrorCode::ResourceExhausted, true}
                    : Outcome{};
       },
       nullptr, where},
  };
}

std::vector<Call> stream_ends() {
  const auto where = Where::OnWire;
  return {
      {"Stream::finish_sending", streams,
       [](World& w) {
         w.near_stream.finish_sending();
         return Outcome{};
       },
       [](World& w) {
         if (!w.turn_until([&w] { return w.far_stream.at_end(); })) broken("no end comes");
       },
       where},
      {"Stream::close", streams,
       [](World& w) {
         w.near_stream.close();
         return Outcome{};
       },
       nullptr, where},
      {"Stream::abort", streams,
       [](World& w) {
         w.near_stream.abort();
         return Outcome{};
       },
       nullptr, where},
      {"Stream::await_rdma", streams, [](World& w) { return of(w.far_stream.await_rdma()); },
       [](World& w) {
         two_ends(w);
         must(w.a.qp.connect(w.near_stream));
         request_comes(w);
       },
       where},
      {"Stream::set_options", streams,
       [](World& w) {
         StreamOptions options;
         options.nagle = true;
         return of(w.near_stream.set_options(options));
       },
       send_octets, where},
      {"StreamListener::accept",
       [](World& w) {
         stream_listener(w);
         w.near_stream = must(w.near().connect_stream({w.far_address, kStreamPort}));
         until_counted(w, "streams_accepted");
       },
       [](World& w) {
         auto stream = w.listener->accept();
         if (!stream) return Outcome{false, ErrorCode::ResourceExhausted, true};
         w.far_stream = std::move(*stream);
         return Outcome{};
       },
       send_octets, where},
  };
}

// --- FramedStream ---

std::vector<Call> framed_calls() {
  const auto where = Where::OnWire;
  return {
      {"FramedStream::send", framed,
       [](World& w) {
         w.octets[0] = 0;
         w.octets[1] = 98;
         return of(w.near_framed.send({w.octets.data(), 100}));
       },
       [](World& w) {
         if (!w.turn_until([&w] { return w.far_framed.readable() == 100; })) broken("no frame");
       },
       where},
      {"FramedStream::receive", frame_under_way,
       [](World& w) { return of(w.far_framed.receive(w.octets)); }, nullptr, where},
      {"FramedStream::read", frame_under_way,
       [](World& w) { return of(w.far_framed.read(w.octets)); }, nullptr, where},
      {"FramedStream::readable, FramedStream::writable, FramedStream::unacknowledged, "
       "FramedStream::at_end, FramedStream::frame_limit, FramedStream::usable_emss, "
       "FramedStream::emss_changes, FramedStream::is_middlebox_suspected, FramedStream::supports, "
       "FramedStream::send_mode, FramedStream::receive_mode, FramedStream::send_interval, "
       "FramedStream::receive_interval, FramedStream::packing, FramedStream::state, "
       "FramedStream::how_ended, FramedStream::status, FramedStream::is_valid, "
       "FramedStreamListener::local",
       framed,
       [](World& w) {
         const FramedStream& s = w.near_framed;
         const bool open =
             s.is_valid() && s.readable() == 0 && s.writable(10) && s.unacknowledged() == 0 &&
             !s.at_end() && s.frame_limit() != 0 && s.usable_emss() != 0 &&
             s.emss_changes() < 100 && !s.is_middlebox_suspected() &&
             s.supports(FramedSendMode::Align) && s.send_mode() == FramedSendMode::Align &&
             s.receive_mode() == FramedReceiveMode::Align && s.send_interval() != 0 &&
             s.receive_interval() != 0 && s.packing() && s.state() == StreamState::Open &&
             !s.how_ended() && w.framed_listener->local().port == kFramedPort;
         return open ? of(s.status()) : Outcome{false, ErrorCode::Protocol, true};
       },
       nullptr, where},
      {"FramedStream::local, FramedStream::remote", framed,
       [](World& w) {
         return w.near_framed.local().port == 0 || w.near_framed.remote().port == 0
                    ? Outcome{false, ErrorCode::ResourceExhausted, true}
                    : Outcome{};
       },
       nullptr, where},
  };
}

std::vector<Call> framed_changes() {
  const auto where = Where::OnWire;
  return {
      {"FramedStream::set_send_mode", framed,
       [](World& w) { return of(w.near_framed.set_send_mode(FramedSendMode::Plain)); }, nullptr,
       where},
      {"FramedStream::set_receive_mode", framed,
       [](World& w) { return of(w.far_framed.set_receive_mode(FramedReceiveMode::Plain)); },
       nullptr, where},
      {"FramedStream::set_send_interval, FramedStream::set_receive_interval", framed,
       [](World& w) {
         const Outcome first = of(w.near_framed.set_send_interval(512));
         return first.done ? of(w.near_framed.set_receive_interval(512)) : first;
       },
       nullptr, where},
      {"FramedStream::set_packing, FramedStream::set_emergency, FramedStream::set_max_frame",
       framed,
       [](World& w) {
         Outcome outcome = of(w.near_framed.set_packing(false));
         if (outcome.done) outcome = of(w.near_framed.set_emergency(false));
         return outcome.done ? of(w.near_framed.set_max_frame(1000)) : outcome;
       },
       nullptr, where},
      {"FramedStream::finish_sending", framed,
       [](World& w) {
         w.near_framed.finish_sending();
         return Outcome{};
       },
       [](World& w) {
         if (!w.turn_until([&w] { return w.far_framed.at_end(); })) broken("no end comes");
       },
       where},
      {"FramedStream::close", framed,
       [](World& w) {
         w.near_framed.close();
         return Outcome{};
       },
       nullptr, where},
      {"FramedStream::abort", framed,
       [](World& w) {
         w.near_framed.abort();
         return Outcome{};
       },
       nullptr, where},
      {"FramedStreamListener::accept",
       [](World& w) {
         framed_listener(w);
         w.near_framed = must(w.near().connect_framed({w.far_address, kFramedPort}, w.framing));
         until_counted(w, "framed_accepted");
       },
       [](World& w) {
         auto stream = w.framed_listener->accept();
         if (!stream) return Outcome{false, ErrorCode::ResourceExhausted, true};
         w.far_framed = std::move(*stream);
         return Outcome{};
       },
       nullptr, where},
  };
}

// --- what happens while nobody calls: turns of the loop ---

Outcome many_turns(World& w) {
  turns(w, w.on_sockets() ? 60 : 150);
  return {};
}

std::vector<Call> background_calls() {
  return {
      {"Context::poll",  // the handshake, the Request
       [](World& w) {
         listening(w);
         must(w.a.qp.connect({w.far_address, kPort}, {w.octets.data(), 200}));
       },
       many_turns, nullptr, Where::Everywhere, true},
      {"Context::poll",  // the Reply, full operation
       [](World& w) {
         asked(w);
         must(w.b.qp.accept(w.request.request, {w.octets.data(), 200}));
       },
       many_turns, nullptr, Where::Everywhere, true},
      {"Context::poll",  // a reject
       [](World& w) {
         asked(w);
         must(w.far().reject(w.request.request, {w.octets.data(), 200}));
       },
       many_turns, nullptr, Where::Everywhere, true},
      {"Context::poll",  // nobody listens
       [](World& w) {
         two_ends(w);
         must(w.a.qp.connect({w.far_address, kPort}));
       },
       many_turns, nullptr, Where::Everywhere, true},
      {"Context::poll",  // a Write that the peer refuses: Terminate
       [](World& w) {
         connected(w);
         SendRequest wrong = a_write(w);
         wrong.remote.stag ^= 0x100;
         must(w.a.qp.post_send(wrong));
       },
       many_turns, nullptr, Where::Everywhere, true},
      {"Context::poll",  // the end
       [](World& w) {
         connected(w);
         must(w.a.qp.disconnect());
         must(w.b.qp.disconnect());
       },
       many_turns, nullptr, Where::Everywhere, true},
  };
}

std::vector<Call> background_streams() {
  const auto where = Where::OnWire;
  return {
      {"Context::poll",  // ULP framing
       [](World& w) {
         two_ends(w);
         must(w.far().listen(kPort, {.framing = Framing::Tuf}));
         ConnectOptions options;
         options.framing = Framing::Tuf;
         must(w.a.qp.connect({w.far_address, kPort}, {w.octets.data(), 200}, options));
       },
       many_turns, nullptr, where, true},
      {"Context::poll",  // streams
       [](World& w) {
         stream_listener(w);
         w.near_stream = must(w.near().connect_stream({w.far_address, kStreamPort}));
         must(w.near_stream.send(w.octets));
       },
       many_turns, nullptr, where, true},
      {"Context::poll",  // framed streams
       [](World& w) {
         framed_listener(w);
         w.near_framed = must(w.near().connect_framed({w.far_address, kFramedPort}, w.framing));
       },
       many_turns, nullptr, where, true},
      {"Context::poll",  // a stream that becomes an RDMA connection
       [](World& w) {
         streams(w);
         two_ends(w);
         must(w.far_stream.await_rdma({w.octets.data(), 0}));
         must(w.a.qp.connect(w.near_stream));
       },
       many_turns, nullptr, where, true},
  };
}

}  // namespace

const std::vector<Call>& calls() {
  static const std::vector<Call> all = [] {
    std::vector<Call> out;
    for (const auto& part :
         {config_calls(), context_calls(), device_calls(), listen_calls(), listen_stream_calls(),
          memory_calls(), region_calls(), several_threads_calls(), srq_calls(), consumer_calls(),
          window_calls(), post_calls(),
          operation_calls(), connection_calls(), stream_calls(), stream_ends(),
          framed_calls(), framed_changes(), background_calls(), background_streams(),
          blocking_calls(), free_calls(), reserve_calls()}) {
      out.insert(out.end(), part.begin(), part.end());
    }
    return out;
  }();
  return all;
}

}  // namespace rnic::starved
