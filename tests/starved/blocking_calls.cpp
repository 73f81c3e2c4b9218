// The table of the calls that wait (rnic/blocking.hpp), and of those that coroutines wait for
// (rnic/coroutine.hpp).
//
// Both ends are in one process, and what is refused may strike either of them while the call waits:
// then the connection ends, as it would where a peer lacks memory.

#include <array>
#include <coroutine>
#include <cstring>
#include <span>

#include "rnic/coroutine.hpp"
#include "trial.hpp"

namespace rnic::starved {

namespace {

constexpr uint16_t kPort = 7471;
constexpr uint16_t kNobody = 7472;
/// Short: where everything is refused nothing moves, and a call is made many times.
constexpr auto kLimit = std::chrono::seconds(1);

blocking::ConnectionOptions small() {
  blocking::ConnectionOptions options;
  options.message_size = 256;
  options.receives = 4;
  options.reads = 2;
  return options;
}

/// The outcome of a call that waits for the other end, where an end for want of memory looks like
/// any other.
template <typename T>
Outcome across(const Result<T>& result) {
  Outcome outcome = of(result);
  if (outcome.done) return outcome;
  switch (outcome.code) {
    case ErrorCode::Reset:
    case ErrorCode::Protocol:
    case ErrorCode::Rejected:
    case ErrorCode::TimedOut:
    case ErrorCode::Unreachable:
    case ErrorCode::WrongState: outcome.code = ErrorCode::ResourceExhausted; break;
    default: break;
  }
  return outcome;
}

// --- preparations ---

void adapters(World& w) {
  w.near_adapter.emplace(must(blocking::Adapter::open(*w.context, "rnic0")));
  w.far_adapter.emplace(must(blocking::Adapter::open(*w.context, "rnic1")));
}

void linked(World& w) {
  adapters(w);
  auto ends = must(w.near_adapter->connect_pair(*w.far_adapter, kPort, kLimit, small()));
  w.near_link = std::move(ends.first);
  w.far_link = std::move(ends.second);
}

/// Memory at the far end that the near one may do everything with, and some here: w.a, w.b.
void with_memory(World& w) {
  linked(w);
  const AccessSet all = Access::LocalWrite | Access::RemoteWrite | Access::RemoteRead |
                        Access::RemoteAtomic | Access::LocalRead;
  w.a.octets.assign(64, 1);
  w.b.octets.assign(64, 2);
  w.a.region =
      must(w.near_adapter->register_memory(std::as_writable_bytes(std::span(w.a.octets)), all));
  w.b.region =
      must(w.far_adapter->register_memory(std::as_writable_bytes(std::span(w.b.octets)), all));
}

RemoteAddress there(World& w) { return {w.b.region.stag(), w.b.region.address()}; }

void message_waits(World& w) {
  linked(w);
  must(w.near_link.send(std::as_bytes(std::span(w.octets)).first(200), kLimit));
}

void asked(World& w) {
  adapters(w);
  w.blocking_listener = must(w.far_adapter->listen(kPort));
  w.a = w.end(w.near());
  must(w.a.qp.connect({w.far_address, kPort}));
  if (!w.turn_until([&w] { return must(w.far().limits()).connections != 0; })) {
    broken("nobody asks");
  }
}

void event_waits(World& w) {
  adapters(w);
  w.a = w.end(w.near());
  must(w.a.qp.connect({w.far_address, kNobody}));
  if (!w.turn_until([&w] { return w.a.qp.state() == QueuePairState::Error; })) {
    broken("somebody listens");
  }
}

// --- the calls ---

std::vector<Call> adapter_calls() {
  return {
      {"Adapter::open, Device::open_event_desk, Adapter::~Adapter, Adapter::device, "
       "Adapter::events_lost",
       nullptr,
       [](World& w) {
         auto made = blocking::Adapter::open(*w.context, "rnic0");
         const Outcome outcome = of(made);
         if (made) w.near_adapter.emplace(std::move(*made));
         return outcome;
       },
       [](World& w) {
         if (w.near_adapter->device().name() != "rnic0") broken("another device");
         if (w.near_adapter->events_lost() != 0) broken("events are lost");
       }},
      {"Adapter::listen, Listener::~Listener, Listener::local", adapters,
       [](World& w) {
         auto made = w.far_adapter->listen(kPort);
         const Outcome outcome = of(made);
         if (made) w.blocking_listener = std::move(*made);
         return outcome;
       },
       [](World& w) {
         if (w.blocking_listener.local().port != kPort) broken("it listens elsewhere");
         w.blocking_listener = blocking::Listener();
         must(w.far().listen(kPort));
         must(w.far().unlisten(kPort));
       }},
      {"Adapter::register_memory", adapters,
       [](World& w) {
         auto made = w.near_adapter->register_memory(std::as_writable_bytes(std::span(w.octets)),
                                                     Access::LocalWrite);
         const Outcome outcome = of(made);
         if (made) w.region.emplace(std::move(*made));
         return outcome;
       },
       [](World& w) {
         if (w.region->length() != w.octets.size()) broken("another length");
       }},
      {"Adapter::poll_event", event_waits,
       [](World& w) -> Outcome {
         if (w.near_adapter->poll_event()) return {};
         return {false, ErrorCode::ResourceExhausted, true};
       }},
  };
}

std::vector<Call> meeting_calls() {
  return {
      {"Adapter::connect", adapters,  // nobody listens: what is told of that needs memory, too
       [](World& w) -> Outcome {
         const auto made = w.near_adapter->connect({w.far_address, kNobody}, kLimit, small());
         if (!made && made.error().code == ErrorCode::Unreachable) return {};
         return across(made);
       }},
      {"Adapter::connect_pair, Connection::~Connection, Connection::number, Connection::local, "
       "Connection::remote, Connection::peer_data, Connection::peer_closed",
       adapters,
       [](World& w) {
         auto made = w.near_adapter->connect_pair(*w.far_adapter, kPort, kLimit, small());
         const Outcome outcome = across(made);
         if (!made) return outcome;
         w.near_link = std::move(made->first);
         w.far_link = std::move(made->second);
         return outcome;
       },
       [](World& w) {
         if (w.near_link.number() == 0 || w.near_link.remote() != w.far_link.local()) {
           broken("they are not connected with each other");
         }
         if (w.near_link.peer_closed() || !w.near_link.peer_data().empty()) broken("it is new");
       }},
      {"Listener::accept", asked,
       [](World& w) {
         auto made = w.blocking_listener.accept(kLimit, small());
         const Outcome outcome = across(made);
         if (made) w.far_link = std::move(*made);
         return outcome;
       },
       nullptr, Where::Everywhere, true},
      {"Connection::close", linked, [](World& w) { return across(w.near_link.close(kLimit)); },
       nullptr, Where::Everywhere, true},
  };
}

std::vector<Call> message_calls() {
  return {
      {"Connection::send", linked,
       [](World& w) {
         return across(w.near_link.send(std::as_bytes(std::span(w.octets)).first(200), kLimit));
       },
       [](World& w) {
         std::array<std::byte, 256> got{};
         if (must(w.far_link.receive(got, kLimit)).length != 200) broken("another message");
         if (std::memcmp(got.data(), w.octets.data(), 200) != 0) broken("other octets");
       },
       Where::Everywhere, true},
      {"Connection::receive", message_waits,
       [](World& w) {
         return across(w.far_link.receive(std::as_writable_bytes(std::span(w.octets)), kLimit));
       },
       nullptr, Where::Everywhere, true},
      {"Connection::carry_out", linked,
       [](World& w) {
         SendRequest request;
         request.opcode = Opcode::Immediate;
         return across(w.near_link.carry_out(request, kLimit));
       },
       [](World& w) {
         if (!must(w.far_link.receive({}, kLimit)).has_immediate) broken("another message");
       },
       Where::Everywhere, true},
  };
}

std::vector<Call> memory_calls() {
  return {
      {"Connection::write", with_memory,
       [](World& w) {
         return across(w.near_link.write({w.a.region.sge(0, 64)}, there(w), kLimit));
       },
       [](World& w) {
         must(w.near_link.read({w.a.region.sge(0, 8)}, there(w), kLimit));
         if (w.b.octets != std::vector<uint8_t>(64, 1)) broken("other octets");
       },
       Where::Everywhere, true},
      {"Connection::read", with_memory,
       [](World& w) { return across(w.near_link.read({w.a.region.sge(0, 64)}, there(w), kLimit)); },
       [](World& w) {
         if (w.a.octets != w.b.octets) broken("other octets");
       },
       Where::Everywhere, true},
      {"Connection::fetch_add", with_memory,
       [](World& w) { return across(w.near_link.fetch_add(there(w), 1, kLimit)); },
       [](World& w) {
         if (w.b.octets[0] != 3) broken("it was not added");
       },
       Where::Everywhere, true},
      {"Connection::compare_swap", with_memory,
       [](World& w) {
         return across(w.near_link.compare_swap(there(w), 0x0202020202020202, 7, kLimit));
       },
       [](World& w) {
         if (w.b.octets[0] != 7) broken("it was not swapped");
       },
       Where::Everywhere, true},
  };
}

// --- coroutines ---

void connected(World& w) {
  w.a = w.end(w.near());
  w.b = w.end(w.far());
  w.connect(w.a, w.b, kPort);
}

RemoteAddress at_b(World& w) { return {w.b.region.stag(), w.b.region.address()}; }

/// One operation, whose place is the first of a new dispatcher.
template <typename Make>
Outcome operation(World& w, Make&& make) {
  coroutine::Dispatcher dispatcher(w.a.cq);
  coroutine::Operation one = make(coroutine::Operations(w.a.qp, dispatcher, dispatcher));
  return one.await_ready() ? of(one.await_resume()) : Outcome{};
}

using At = const coroutine::Operations&;

std::vector<Call> coroutine_calls() {
  return {
      {"Operations::send, Operation::~Operation, Operation::await_ready, Operation::await_resume, "
       "Dispatcher::enlist, Dispatcher::strike, Dispatcher::~Dispatcher",
       connected,
       [](World& w) { return operation(w, [&](At at) { return at.send(w.a.region.sge(0, 0)); }); }},
      {"Operations::receive", connected,
       [](World& w) {
         return operation(w, [&](At at) { return at.receive(w.a.region.sge(0, 8)); });
       }},
      {"Operations::write", connected,
       [](World& w) {
         return operation(w, [&](At at) { return at.write(w.a.region.sge(0, 8), at_b(w)); });
       }},
      {"Operations::read", connected,
       [](World& w) {
         return operation(w, [&](At at) { return at.read(w.a.region.sge(0, 8), at_b(w)); });
       }},
      {"Operations::fetch_add", connected,
       [](World& w) { return operation(w, [&](At at) { return at.fetch_add(at_b(w), 1); }); }},
      {"Operations::compare_swap", connected,
       [](World& w) {
         return operation(w, [&](At at) { return at.compare_swap(at_b(w), 1, 2); });
       }},
      {"Operations::carry_out", connected,
       [](World& w) {
         return operation(w, [&](At at) {
           SendRequest request;
           request.opcode = Opcode::Immediate;
           return at.carry_out(request);
         });
       }},
      {"Dispatcher::dispatch, Dispatcher::resume, Dispatcher::waiting, Dispatcher::unclaimed, "
       "Operation::await_suspend, Operation::complete",
       connected,
       [](World& w) {
         coroutine::Dispatcher dispatcher(w.a.cq);
         const coroutine::Operations at(w.a.qp, dispatcher, dispatcher);
         coroutine::Operation write = at.write(w.a.region.sge(0, 8), at_b(w));
         if (write.await_ready()) return of(write.await_resume());
         write.await_suspend(std::noop_coroutine());
         const auto through = [&] {
           dispatcher.dispatch();
           return dispatcher.waiting() == 0;
         };
         if (!w.turn_until(through) || dispatcher.unclaimed() != 0) {
           return Outcome{false, ErrorCode::TimedOut, true};
         }
         return Outcome{};
       },
       nullptr, Where::Everywhere, true},
  };
}

}  // namespace

std::vector<Call> blocking_calls() {
  std::vector<Call> out;
  for (const auto& part :
       {adapter_calls(), meeting_calls(), message_calls(), memory_calls(), coroutine_calls()}) {
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

}  // namespace rnic::starved
