// verbs.hpp, Device: what it makes, whom it listens for, whom it answers.

#include "values.hpp"

namespace rnic::arguments {

namespace {

using Octets = std::vector<uint8_t>;

/// Reservations to listen on at the far device. \param consumers what a consumer's is answered
Values<PortReservation*> ports(Expected consumers) {
  return {{Class::AtLimit,
           "one of the device",
           [](World& w) {
             w.reserved_port = must(w.far().reserve());
             return &w.reserved_port;
           },
           {}},
          {Class::Empty, "nothing", [](World& w) { return &w.reserved_port; },
           refused(ErrorCode::WrongState, {"empty"})},
          {Class::Foreign, "the other device's",
           [](World& w) {
             w.reserved_port = must(w.near().reserve());
             return &w.reserved_port;
           },
           wrong({"rnic0", "rnic1"})},
          {Class::Foreign, "a consumer's",
           [](World& w) {
             w.consumer.emplace(must(w.far().create_consumer({.name = "one"})));
             w.reserved_port = must(w.consumer->reserve());
             return &w.reserved_port;
           },
           std::move(consumers)}};
}

/// A refusal keeps the reservation as it was.
template <typename Listen>
auto keeping(Listen listen) {
  return [listen](World& w, PortReservation* port) {
    const Endpoint before = port->local();
    const Status status = listen(w, *port);
    const bool kept = port->local() == before;
    if (before != Endpoint{} && status.has_value() == kept) {
      broken("the reservation is not as it has to be");
    }
    return status;
  };
}

Values<StreamListenerOptions> stream_listener_options() {
  using Options = StreamListenerOptions;
  Options most, none;
  most.backlog = 8;  // limits.max_streams
  none.backlog = 0;
  return Values<Options>{value(Class::AtLimit, ".backlog 8", most),
                         value(Class::Empty, ".backlog 0", none, wrong({"backlog"}))} +
         inside(tcp_options(), &Options::stream, ".stream");
}

Values<FramedListenerOptions> framed_listener_options() {
  using Options = FramedListenerOptions;
  const auto of = [](uint32_t backlog) {
    return [backlog](World& w) { return Options{.backlog = backlog, .framing = w.framing}; };
  };
  Values<Options> all = {{Class::AtLimit, ".backlog 4", of(4), {}},
                         {Class::Empty, ".backlog 0", of(0), wrong({"backlog"})}};
  for (const Value<TcpOptions>& part : tcp_options()) {
    all.push_back({part.of, ".stream" + part.said,
                   [make = part.make](World& w) {
                     return Options{.backlog = 4, .framing = w.framing, .stream = make(w)};
                   },
                   part.expected});
  }
  for (const Value<FramingOptions>& part : framing_options()) {
    all.push_back(
        {part.of, ".framing" + part.said,
         [make = part.make](World& w) { return Options{.backlog = 4, .framing = make(w)}; },
         part.expected});
  }
  return all;
}

void add_listening(Table& table) {
  table.row(
      "Device::listen local", two_ends,
      [](World& w, const Endpoint& local) { return of(w.far().listen(local)); }, locals("listen"));
  table.row(
      "Device::listen port", two_ends,
      [](World& w, uint16_t port) { return of(w.far().listen(port)); }, listen_ports());
  table.row("Device::listen port", two_ends,
            keeping([](World& w, PortReservation& port) { return of(w.far().listen(port)); }),
            ports(refused(ErrorCode::PermissionDenied, {"consumer"})));
  table.row(
      "Device::listen options", two_ends,
      [](World& w, const ListenOptions& how) { return of(w.far().listen(kPort, how)); },
      listen_options());
  table.row(
      "Device::reserve local", two_ends,
      [](World& w, const Endpoint& local) { return of(w.far().reserve(local)); },
      locals("reserve"));
  const Values<Endpoint> listened = {
      value<Endpoint>(Class::AtLimit, "what is listened on", {{}, kPort}),
      value<Endpoint>(Class::Empty, "nothing", {},
                      refused(ErrorCode::NotFound, {"unlisten", "nobody"})),
      value<Endpoint>(Class::Illegal, "multicast", {IpAddress::v4(0xe0000001), kPort},
                      refused(ErrorCode::NotFound, {"224.0.0.1"})),
      {Class::Foreign, "a consumer's",
       [](World& w) {
         w.consumer.emplace(must(w.far().create_consumer({.name = "one"})));
         return must(w.consumer->listen(Endpoint{{}, 99}));
       },
       refused(ErrorCode::PermissionDenied, {"consumer", "99"})},
      {Class::WrongState, "a stream's",
       [](World& w) {
         w.listener.emplace(must(w.far().listen_stream(kStreamPort)));
         return Endpoint{{}, kStreamPort};
       },
       refused(ErrorCode::NotFound, {"unlisten", "7000"})}};
  table.row(
      "Device::unlisten local", listening,
      [](World& w, const Endpoint& local) { return w.far().unlisten(local); }, listened);
  table.row(
      "Device::unlisten port", listening,
      [](World& w, uint16_t port) { return w.far().unlisten(port); },
      Values<uint16_t>{
          value<uint16_t>(Class::AtLimit, "what is listened on", kPort),
          value<uint16_t>(Class::Beyond, "another", kPort + 1,
                          refused(ErrorCode::NotFound, {"unlisten", "7472"})),
          value<uint16_t>(Class::Empty, "0", 0, refused(ErrorCode::NotFound, {"nobody"}))});
}

void add_stream_listening(Table& table) {
  const Expected consumers = refused(ErrorCode::PermissionDenied, {"consumer"});
  table.row(
      "Device::listen_stream local", two_ends,
      [](World& w, const Endpoint& local) { return of(w.far().listen_stream(local)); },
      locals("listen"));
  table.row(
      "Device::listen_stream port", two_ends,
      [](World& w, uint16_t port) { return of(w.far().listen_stream(port)); }, listen_ports());
  table.row("Device::listen_stream port", two_ends, keeping([](World& w, PortReservation& port) {
              return of(w.far().listen_stream(port));
            }),
            ports(consumers));
  table.row(
      "Device::listen_stream options", two_ends,
      [](World& w, const StreamListenerOptions& how) {
        return of(w.far().listen_stream(kStreamPort, how));
      },
      stream_listener_options());
  const auto framed = [](World& w) {
    return FramedListenerOptions{.backlog = 4, .framing = w.framing};
  };
  table.row(
      "Device::listen_framed local", two_ends,
      [framed](World& w, const Endpoint& local) {
        return of(w.far().listen_framed(local, framed(w)));
      },
      locals("listen"));
  table.row(
      "Device::listen_framed port", two_ends,
      [framed](World& w, uint16_t port) { return of(w.far().listen_framed(port, framed(w))); },
      listen_ports());
  table.row("Device::listen_framed port", two_ends,
            keeping([framed](World& w, PortReservation& port) {
              return of(w.far().listen_framed(port, framed(w)));
            }),
            ports(consumers));
  table.row(
      "Device::listen_framed options", two_ends,
      [](World& w, const FramedListenerOptions& how) {
        return of(w.far().listen_framed(kFramedPort, how));
      },
      framed_listener_options());
}

void add_stream_connecting(Table& table) {
  table.row(
      "Device::connect_stream remote", two_ends,
      [](World& w, const Endpoint& remote) { return of(w.near().connect_stream(remote)); },
      remotes(kStreamPort));
  table.row(
      "Device::connect_stream options", two_ends,
      [](World& w, const StreamOptions& how) {
        return of(w.near().connect_stream({w.far_address, kStreamPort}, how));
      },
      tcp_options());
  table.row(
      "Device::connect_framed remote", two_ends,
      [](World& w, const Endpoint& remote) {
        return of(w.near().connect_framed(remote, w.framing));
      },
      remotes(kFramedPort));
  table.row(
      "Device::connect_framed options", two_ends,
      [](World& w, const StreamOptions& how) {
        return of(w.near().connect_framed({w.far_address, kFramedPort}, w.framing, how));
      },
      tcp_options());
  table.row(
      "Device::connect_framed framing", two_ends,
      [](World& w, const FramingOptions& how) {
        return of(w.near().connect_framed({w.far_address, kFramedPort}, how));
      },
      framing_options());
}

void add_answers(Table& table) {
  const auto reject = [](World& w, const RequestHandle& request) {
    return w.far().reject(request);
  };
  table.row("Device::reject request", asked, reject,
            Values<RequestHandle>{
                {Class::AtLimit, "one that waits", [](World& w) { return w.request.request; }, {}},
                value<RequestHandle>(Class::Empty, "nothing", {},
                                     refused(ErrorCode::NotFound, {"nobody's"})),
                {Class::WrongState, "one that was answered",
                 [](World& w) {
                   answered(w);
                   return w.request.request;
                 },
                 refused(ErrorCode::NotFound, {"gone"})}});
  table.row(
      "Device::reject request", asked,
      [](World& w, const RequestHandle& request) { return w.near().reject(request); },
      Values<RequestHandle>{{Class::Foreign, "the other device's",
                             [](World& w) { return w.request.request; },
                             wrong({"request", "rnic0", "rnic1"})}});
  table.row(
      "Device::reject private_data", asked,
      [](World& w, const Octets& octets) { return w.far().reject(w.request.request, octets); },
      private_data(kMaxPrivateData));
  const auto present = [](World& w) { return must(w.near().connections()).at(0).id; };
  table.row(
      "Device::abort id", connected,
      [](World& w, const ConnectionId& id) { return w.near().abort(id); },
      Values<ConnectionId>{{Class::AtLimit, "one that there is", present, {}},
                           value<ConnectionId>(Class::Empty, "nothing", {},
                                               refused(ErrorCode::NotFound, {"nobody's"})),
                           {Class::Foreign, "the other device's",
                            [](World& w) { return must(w.far().connections()).at(0).id; },
                            wrong({"connection", "rnic0", "rnic1"})},
                           {Class::WrongState, "one that has ended",
                            [present](World& w) {
                              const ConnectionId gone = present(w);
                              must(w.near().abort(gone));
                              event::Disconnected ended;
                              if (!w.await(w.near(), ended)) broken("no end is told");
                              w.turn_until(
                                  [&] { return must(w.near().limits()).connections == 0; });
                              w.turn_until([&] { return must(w.far().limits()).connections == 0; });
                              return gone;
                            },
                            refused(ErrorCode::NotFound, {"ended"})}});
}

Values<ConsumerOptions> consumer_options() {
  using Options = ConsumerOptions;
  Values<Options> all = {
      value<Options>(Class::AtLimit, ".name one letter", {.name = "a"}),
      value<Options>(Class::AtLimit, ".name long", {.name = std::string(10'000, 'a')}),
      value<Options>(Class::Empty, ".name nothing", {}, wrong({"create_consumer", "name"})),
      value<Options>(Class::Beyond, ".quotas.pds more than there are",
                     {.name = "a", .quotas = {.pds = uint64_t{1} << 40}})};
  const std::pair<const char*, uint64_t ResourceCounts::*> quotas[] = {
      {"pds", &ResourceCounts::pds},
      {"regions", &ResourceCounts::regions},
      {"registered_octets", &ResourceCounts::registered_octets},
      {"pieces", &ResourceCounts::pieces},
      {"cqs", &ResourceCounts::cqs},
      {"cq_entries", &ResourceCounts::cq_entries},
      {"srqs", &ResourceCounts::srqs},
      {"qps", &ResourceCounts::qps},
      {"reads", &ResourceCounts::reads},
      {"listeners", &ResourceCounts::listeners},
      {"requests", &ResourceCounts::requests},
      {"held_octets", &ResourceCounts::held_octets}};
  for (const auto& [name, field] : quotas) {
    Options options{.name = "a"};
    options.quotas.*field = kNoQuota;
    all.push_back(value(Class::AtLimit, std::string(".quotas.") + name, options));
  }
  return all;
}

void add_making(Table& table) {
  static int mine = 0;
  table.row(
      "Device::set_context context", two_ends,
      [](World& w, void* context) { return w.near().set_context(context); },
      Values<void*>{value<void*>(Class::AtLimit, "a pointer", &mine),
                    value<void*>(Class::Empty, "nothing", nullptr)});
  table.row(
      "Device::create_consumer options", two_ends,
      [](World& w, const ConsumerOptions& how) { return of(w.near().create_consumer(how)); },
      consumer_options());
  const auto outside = [](uint32_t depth) {
    return wrong({"create_cq", std::to_string(depth), "1..128", "limits.max_work_depth"});
  };
  table.row(
      "Device::create_cq depth", two_ends,
      [](World& w, uint32_t depth) { return of(w.near().create_cq(depth)); },
      up_to<uint32_t>(128, outside(129), outside(0)));
  table.row(
      "Device::create_cq options", two_ends,
      [](World& w, const CompletionQueueOptions& how) { return of(w.near().create_cq(16, how)); },
      completion_queue_options());
  const auto counters = [](const char* good) {
    return Values<std::string>{
        value<std::string>(Class::AtLimit, "one that there is", good),
        value<std::string>(Class::Empty, "nothing", "", refused(ErrorCode::NotFound, {"counter"})),
        with_zero(good, refused(ErrorCode::NotFound, {good})),
        value<std::string>(Class::Beyond, "one that there is not", "doorbell",
                           refused(ErrorCode::NotFound, {"doorbell"}))};
  };
  table.row(
      "Device::counter layer", two_ends,
      [](World& w, const std::string& layer) {
        return of(w.near().counter(layer, "streams_opened"));
      },
      counters("device"));
  table.row(
      "Device::counter name", two_ends,
      [](World& w, const std::string& name) { return of(w.near().counter("device", name)); },
      counters("streams_opened"));
}

}  // namespace

void add_device(Table& table) {
  add_making(table);
  add_listening(table);
  add_stream_listening(table);
  add_stream_connecting(table);
  add_answers(table);
}

void add_context(Table& table) {
  using std::chrono::nanoseconds;
  table.row(
      "Context::device name", two_ends,
      [](World& w, const std::string& name) { return of(w.context->device(name)); },
      Values<std::string>{
          value<std::string>(Class::AtLimit, "one that there is", "rnic1"),
          with_zero("rnic1", refused(ErrorCode::NotFound, {"rnic0", "rnic1"})),
          value<std::string>(Class::Empty, "nothing", "",
                             refused(ErrorCode::NotFound, {"rnic0", "rnic1"})),
          value<std::string>(Class::Beyond, "one that there is not", "rnic2",
                             refused(ErrorCode::NotFound, {"rnic2", "rnic0", "rnic1"}))});
  const auto over = [](bool done) {
    return done ? Status{}
                : tl::unexpected(Error{ErrorCode::TimedOut, "it was not done: wait longer"});
  };
  using Done = std::function<bool()>;
  table.row(
      "Context::wait_until done", two_ends,
      [over](World& w, const Done& done) { return over(w.context->wait_until(done, kForever)); },
      Values<Done>{value<Done>(Class::AtLimit, "true", [] { return true; }),
                   value<Done>(Class::Empty, "nothing", {}, refused(ErrorCode::TimedOut, {}))});
  const auto wait = [over](World& w, nanoseconds span) {
    int asked = 0;
    return over(w.context->wait_until([&] { return ++asked > 3; }, span));
  };
  table.row(
      "Context::wait_until timeout", two_ends, wait,
      Values<nanoseconds>{
          value(Class::AtLimit, "for ever", nanoseconds::max()),
          value(Class::Empty, "0", nanoseconds(0), refused(ErrorCode::TimedOut, {})),
          value(Class::Beyond, "the least", nanoseconds::min(), refused(ErrorCode::TimedOut, {}))});
}

}  // namespace rnic::arguments
