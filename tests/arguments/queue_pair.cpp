// verbs.hpp, QueuePair: its connection and its attributes.

#include "values.hpp"

namespace rnic::arguments {

namespace {

using Octets = std::vector<uint8_t>;
using std::chrono::nanoseconds;

/// The peer of `a` can be any that listens there.
Endpoint there(World& w) { return {w.far_address, kPort}; }

void stream_and_ends(World& w) { with_streams(w); }

void used(World& w) { asked(w); }

void add_connect(Table& table) {
  const auto to = [](World& w, const Endpoint& remote) { return w.a.qp.connect(remote); };
  table.row("QueuePair::connect remote", listening, to, remotes(kPort));
  const auto from_port = [](World& w, const Endpoint& remote) {
    return w.a.qp.connect(w.reserved_port, remote);
  };
  table.row("QueuePair::connect remote", with_port, from_port, remotes(kPort));
  const auto data = [](World& w, const Octets& octets) { return w.a.qp.connect(there(w), octets); };
  table.row("QueuePair::connect private_data", listening, data, private_data(kMaxPrivateData));
  const auto options = [](World& w, const ConnectOptions& how) {
    return w.a.qp.connect(there(w), {}, how);
  };
  table.row("QueuePair::connect options", listening, options, connect_options());
  const auto over = [](World& w, Stream* stream) { return w.a.qp.connect(*stream); };
  const auto is = [](auto make) { return [make](World& w) { return &make(w); }; };
  const Values<Stream*> streams = {
      {Class::AtLimit, "one that is open", is([](World& w) -> Stream& { return w.near_stream; }),
       works()},
      {Class::Foreign, "the other device's", is([](World& w) -> Stream& { return w.far_stream; }),
       wrong({"stream", "rnic0", "rnic1"})},
      {Class::Empty, "nothing", is([](World& w) -> Stream& {
         w.near_stream.close();
         return w.near_stream;
       }),
       refused(ErrorCode::WrongState, {"stream"})},
      {Class::WrongState, "one that was finished", is([](World& w) -> Stream& {
         w.near_stream.finish_sending();
         return w.near_stream;
       }),
       refused(ErrorCode::WrongState, {"stream"})}};
  table.row("QueuePair::connect stream", stream_and_ends, over, streams);
  const auto from = [](World& w, PortReservation* port) {
    return w.a.qp.connect(*port, {w.far_address, kPort});
  };
  static PortReservation none, consumers, other;
  const Values<PortReservation*> ports = {
      {Class::AtLimit, "one of the device", [](World& w) { return &w.reserved_port; }, works()},
      {Class::Empty, "nothing", [](World&) { return &none; },
       refused(ErrorCode::WrongState, {"empty"})},
      {Class::Foreign, "the other device's",
       [](World& w) {
         other = must(w.far().reserve());
         return &other;
       },
       wrong({"rnic0", "rnic1"})},
      {Class::Foreign, "a consumer's",
       [](World& w) {
         w.consumer.emplace(must(w.near().create_consumer({.name = "one"})));
         consumers = must(w.consumer->reserve());
         return &consumers;
       },
       refused(ErrorCode::PermissionDenied, {"consumer"})}};
  table.row("QueuePair::connect from", with_port, from, ports);
}

void add_accept(Table& table) {
  const auto answer = [](World& w, const RequestHandle& request) { return w.b.qp.accept(request); };
  const auto accept_by_near = [](World& w, const RequestHandle& request) {
    return w.end(w.near()).qp.accept(request);
  };
  const Values<RequestHandle> requests = {
      {Class::AtLimit, "one that waits", [](World& w) { return w.request.request; }, works()},
      value<RequestHandle>(Class::Empty, "nothing", {}, refused(ErrorCode::NotFound, {"nobody's"})),
      {Class::WrongState, "one that was answered",
       [](World& w) {
         answered(w);
         return w.request.request;
       },
       refused(ErrorCode::NotFound, {"gone"})}};
  table.row("QueuePair::accept request", asked, answer, requests);
  const Values<RequestHandle> foreign = {{Class::Foreign, "the other device's",
                                          [](World& w) { return w.request.request; },
                                          wrong({"request", "rnic0", "rnic1"})}};
  table.row("QueuePair::accept request", asked, accept_by_near, foreign);
  const auto data = [](World& w, const Octets& octets) {
    return w.b.qp.accept(w.request.request, octets);
  };
  table.row("QueuePair::accept private_data", asked, data, private_data(kMaxPrivateData));
  const auto options = [](World& w, const ConnectOptions& how) {
    return w.b.qp.accept(w.request.request, {}, how);
  };
  table.row("QueuePair::accept options", asked, options, accept_options());
}

template <typename Field, typename Given>
Value<QueuePairChange> changed(Class of, const char* said, Field QueuePairChange::*field,
                               Given given, Expected expected = {}) {
  QueuePairChange change;
  change.*field = given;
  return value<QueuePairChange>(of, said, change, std::move(expected));
}

void add_modify(Table& table) {
  using Change = QueuePairChange;
  static int mine = 0;
  const auto modify = [](World& w, const Change& change) { return w.a.qp.modify(change); };
  const Expected never = wrong({"modify", "connect()"});
  const Values<Change> unconnected = {
      changed(Class::AtLimit, ".state Error", &Change::state, QueuePairState::Error),
      changed(Class::Illegal, ".state Rts", &Change::state, QueuePairState::Rts, never),
      changed(Class::Illegal, ".state Terminate", &Change::state, QueuePairState::Terminate, never),
      changed(Class::Illegal, ".state 5", &Change::state, static_cast<QueuePairState>(5), never),
      changed(Class::WrongState, ".state Closing", &Change::state, QueuePairState::Closing,
              refused(ErrorCode::WrongState, {"not connected"})),
      changed(Class::AtLimit, ".ird 128", &Change::ird, 128u),
      changed(Class::Beyond, ".ird 129", &Change::ird, 129u, wrong({"limits.max_reads (128)"})),
      changed(Class::AtLimit, ".ord 128", &Change::ord, 128u),
      changed(Class::Beyond, ".ord 129", &Change::ord, 129u, wrong({"limits.max_reads (128)"})),
      changed(Class::AtLimit, ".answer_close", &Change::answer_close, false),
      changed(Class::AtLimit, ".context", &Change::context, static_cast<void*>(&mine)),
      changed(Class::WrongState, ".tcp", &Change::tcp, TcpOptions{},
              refused(ErrorCode::WrongState, {"there is none"})),
      value<Change>(Class::Empty, "nothing", {})};
  table.row("QueuePair::modify change", two_ends, modify, unconnected);
  Values<Change> tcp;
  for (const Value<TcpOptions>& part : tcp_options()) {
    tcp.push_back({part.of, ".tcp" + part.said,
                   [make = part.make](World& w) { return Change{.tcp = make(w)}; }, part.expected});
  }
  table.row("QueuePair::modify change", connected, modify, tcp);
  const Values<Change> running = {
      changed(Class::WrongState, ".state Idle", &Change::state, QueuePairState::Idle,
              refused(ErrorCode::WrongState, {"Disconnected"})),
      changed(Class::WrongState, ".ird", &Change::ird, 1u,
              refused(ErrorCode::WrongState, {"Idle"})),
      value<Change>(Class::Illegal, ".state and .tcp",
                    {.state = QueuePairState::Error, .tcp = TcpOptions{}},
                    wrong({"leave one out"}))};
  table.row("QueuePair::modify change", connected, modify, running);
}

void add_commit(Table& table) {
  const auto commit = [](World& w, const std::string& fault) { return w.a.qp.commit(fault); };
  using Texts = Values<std::string>;
  const auto line = [](Class of, const char* said, const char* text, Expected expected = {}) {
    return value<std::string>(of, said, text, std::move(expected));
  };
  table.row("QueuePair::commit fault", connected, commit,
            Texts{line(Class::AtLimit, "the longest stall", "stall the responder 60min"),
                  line(Class::AtLimit, "the last message", "terminate at message 4294967295"),
                  line(Class::Beyond, "a longer one", "stall the responder 61min",
                       wrong({"61min", "an hour"})),
                  line(Class::Beyond, "a message more", "terminate at message 4294967296",
                       wrong({"4294967296", "number of a message"})),
                  line(Class::Empty, "nothing", "", wrong({"no fault", "terminate now"})),
                  line(Class::Illegal, "no fault", "lose", wrong({"lose", "terminate now"})),
                  line(Class::Illegal, "one of frames", "drop fpdu 1 of message 1",
                       refused(ErrorCode::Unsupported, {"device.fault"}))});
}

void add_ends(Table& table) {
  const auto drain = [](World& w, nanoseconds limit) { return w.a.qp.drain(limit); };
  const Values<nanoseconds> spans = {value(Class::AtLimit, "the longest", nanoseconds::max()),
                                     value(Class::Empty, "0", nanoseconds(0)),
                                     value(Class::Beyond, "the least", nanoseconds::min())};
  table.row("QueuePair::drain limit", two_ends, drain, spans);
  const auto trace = [](World& w, size_t events) { return w.a.qp.start_trace(events); };
  const Values<size_t> events = {
      value<size_t>(Class::AtLimit, "a million", 1'000'000),
      value<size_t>(Class::Beyond, "all", SIZE_MAX,
                    refused(ErrorCode::ResourceExhausted, {"start_trace", "events"})),
      value<size_t>(Class::Empty, "0", 0)};
  table.row("QueuePair::start_trace max_events", connected, trace, events);
  // What the queue pair itself has to be.
  using Call = Status (*)(World&);
  const auto state = [&table](const char* name, void (*prepare)(World&), Call call,
                              const char* word) {
    table.row(
        std::string("QueuePair::") + name + " this", prepare,
        [](World& w, Call made) { return made(w); },
        Values<Call>{value(Class::WrongState, word, call, refused(ErrorCode::WrongState, {word}))});
  };
  state(
      "connect", used, [](World& w) { return w.a.qp.connect(there(w)); }, "its connection");
  state(
      "accept",
      [](World& w) {
        asked(w);
        must(w.b.qp.drain());
      },
      [](World& w) { return w.b.qp.accept(w.request.request); }, "make it Idle");
  state(
      "cancel_connect", two_ends, [](World& w) { return w.a.qp.cancel_connect(); },
      "no connect of the queue pair is under way");
  state(
      "commit", two_ends, [](World& w) { return w.a.qp.commit("terminate now"); },
      "not connected");
  state(
      "disconnect", two_ends, [](World& w) { return w.a.qp.disconnect(); }, "not connected");
  state(
      "local", two_ends, [](World& w) { return of(w.a.qp.local()); }, "no connection");
  state(
      "remote", two_ends, [](World& w) { return of(w.a.qp.remote()); }, "no connection");
  state(
      "start_trace", two_ends, [](World& w) { return w.a.qp.start_trace(1); }, "not connected");
  state(
      "take_trace", connected, [](World& w) { return of(w.a.qp.take_trace()); }, "no trace");
  state(
      "post_receive",
      [](World& w) {
        with_srq(w);
        w.qp.emplace(must(w.pd->create_qp(w.a.cq, w.a.cq, small(&*w.srq))));
      },
      [](World& w) { return w.qp->post_receive(1, {}); }, "shared receive queue");
}

}  // namespace

void add_queue_pair(Table& table) {
  add_connect(table);
  add_accept(table);
  add_modify(table);
  add_ends(table);
  add_commit(table);
}

}  // namespace rnic::arguments
