// blocking.hpp.

#include "rnic/blocking.hpp"

#include "values.hpp"

namespace rnic::arguments {

namespace {

using blocking::ConnectionOptions;
using std::chrono::nanoseconds;
using Octets = std::vector<std::byte>;

constexpr auto kPatience = World::kPatience;
constexpr auto kSoon = std::chrono::milliseconds(20);

/// The far end has listened, in the same thread: who connects there waits for an answer.
void far_listens(World& w) {
  with_adapters(w);
  w.blocking_listener = must(w.far_adapter->listen(kPort));
}
void linked(World& w) {
  with_links(w);
  const AccessSet all =
      Access::LocalWrite | Access::RemoteWrite | Access::RemoteRead | Access::RemoteAtomic;
  const auto of = [](starved::End& end) { return std::as_writable_bytes(std::span(end.octets)); };
  w.a.region = must(w.near_adapter->register_memory(of(w.a), all));
  w.b.region = must(w.far_adapter->register_memory(of(w.b), all));
}
RemoteAddress far_octets(World& w) {
  return {w.b.region.stag(), (w.b.region.address() + 7) / 8 * 8};
}
Sge near_sge(World& w) { return w.a.region.sge(0, 8); }

/// Limits of a call that has its answer at once. \param late what the shortest ones may be answered
Values<nanoseconds> limits(Expected late) {
  return {value(Class::AtLimit, "for ever", nanoseconds::max()),
          value(Class::Empty, "0", nanoseconds(0), late),
          value(Class::Beyond, "the least", nanoseconds::min(), late)};
}
Expected late() { return refused(ErrorCode::TimedOut, {}); }

Values<RemoteAddress> places() {
  const Expected refusal = refused(ErrorCode::PermissionDenied, {"remote access"});
  return {{Class::AtLimit, "the peer's", far_octets, {}},
          value<RemoteAddress>(Class::Empty, "nothing", {}, refusal),
          {Class::Foreign, "this side's",
           [](World& w) {
             return RemoteAddress{w.a.region.stag(), w.a.region.address()};
           },
           refusal}};
}
Values<SgeList> lists() {
  const Expected local = refused(ErrorCode::PermissionDenied, {"local protection"});
  const auto pieces = [](uint32_t n) {
    return [n](World& w) {
      SgeList list;
      while (list.size() < n) list.push_back(w.a.region.sge(0, 1));
      return list;
    };
  };
  return {{Class::AtLimit, "16 pieces", pieces(16), {}},
          {Class::Beyond, "17 pieces", pieces(17), wrong({"at most 16"})},
          {Class::Empty, "nothing", pieces(0), {}},
          {Class::Foreign, "the other device's",
           [](World& w) { return SgeList{w.b.region.sge(0, 8)}; }, local}};
}

void add_operations(Table& table) {
  const auto take = [](World& w) {
    Octets into(64);
    return of(w.far_link.receive(into, kPatience));
  };
  table.row(
      "Connection::send message", linked,
      [take](World& w, size_t n) {
        const Octets message(n);
        const auto sent = w.near_link.send(std::span<const std::byte>(message), kPatience);
        return sent ? take(w) : of(sent);
      },
      up_to<size_t>(64, wrong({"65", "64"})));
  table.row(
      "Connection::send source", linked,
      [take](World& w, const SgeList& source) {
        const auto sent = w.near_link.send(source, kPatience);
        return sent ? take(w) : of(sent);
      },
      lists());
  const auto sent = [](World& w) {
    const Octets message(50);
    must(w.near_link.send(std::span<const std::byte>(message), kPatience));
  };
  table.row(
      "Connection::receive into", linked,
      [sent](World& w, size_t n) {
        sent(w);
        Octets into(n);
        return of(w.far_link.receive(into, kPatience));
      },
      Values<size_t>{
          value<size_t>(Class::AtLimit, "as long as the message", 50),
          value<size_t>(Class::Beyond, "an octet shorter", 49,
                        refused(ErrorCode::MessageSize, {"50", "49"})),
          value<size_t>(Class::Empty, "nothing", 0, refused(ErrorCode::MessageSize, {"50"}))});
  table.row(
      "Connection::receive limit", linked,
      [](World& w, nanoseconds limit) {
        Octets into(64);
        return of(w.far_link.receive(into, limit));
      },
      Values<nanoseconds>{value(Class::AtLimit, "20 ms", nanoseconds(20'000'000), late()),
                          value(Class::Empty, "0", nanoseconds(0), late()),
                          value(Class::Beyond, "the least", nanoseconds::min(), late())});
}

void add_transfers(Table& table) {
  table.row(
      "Connection::write source", linked,
      [](World& w, const SgeList& s) { return of(w.near_link.write(s, far_octets(w))); }, lists());
  table.row(
      "Connection::read sink", linked,
      [](World& w, const SgeList& s) { return of(w.near_link.read(s, far_octets(w))); }, lists());
  table.row(
      "Connection::read source", linked,
      [](World& w, const RemoteAddress& from) { return of(w.near_link.read({near_sge(w)}, from)); },
      places());
  // A Write may have completed before the peer's Terminate comes: then what comes next is told of
  // it, but not blamed.
  table.row(
      "Connection::write target", linked,
      [](World& w, const RemoteAddress& to) -> Status {
        const auto wrote = w.near_link.write({near_sge(w)}, to);
        if (!wrote) return of(wrote);
        const auto next = w.near_link.read({near_sge(w)}, far_octets(w));
        if (next) return {};
        return tl::unexpected(
            Error{ErrorCode::PermissionDenied, "remote access: " + next.error().message});
      },
      places());
  table.row(
      "Connection::fetch_add remote", linked,
      [](World& w, const RemoteAddress& to) { return of(w.near_link.fetch_add(to, 1)); }, places());
  table.row(
      "Connection::compare_swap remote", linked,
      [](World& w, const RemoteAddress& to) { return of(w.near_link.compare_swap(to, 1, 2)); },
      places());
  table.row(
      "Connection::fetch_add add", linked,
      [](World& w, uint64_t n) { return of(w.near_link.fetch_add(far_octets(w), n)); },
      whole<uint64_t>());
  table.row(
      "Connection::compare_swap compare", linked,
      [](World& w, uint64_t n) { return of(w.near_link.compare_swap(far_octets(w), n, 1)); },
      whole<uint64_t>());
  table.row(
      "Connection::compare_swap swap", linked,
      [](World& w, uint64_t n) { return of(w.near_link.compare_swap(far_octets(w), 1, n)); },
      whole<uint64_t>());
  const auto request = [](Opcode opcode) {
    return [opcode](World& w) {
      SendRequest out{.id = UINT64_MAX, .opcode = opcode};
      out.sges = {near_sge(w)};
      out.remote = far_octets(w);
      return out;
    };
  };
  table.row(
      "Connection::carry_out request", linked,
      [](World& w, const SendRequest& r) { return of(w.near_link.carry_out(r)); },
      Values<SendRequest>{
          {Class::AtLimit, "a Read", request(Opcode::Read), {}},
          {Class::Beyond, "an Immediate with a piece", request(Opcode::Immediate),
           wrong({"too many"})},
          {Class::Illegal, "a Receive", request(Opcode::Receive), wrong({"opcode"})},
          {Class::Illegal, "opcode 13", request(static_cast<Opcode>(13)), wrong({"opcode"})}});
}

using Call = std::function<Status(World&, nanoseconds)>;

/// With a limit of 0 a call only looks, and a worker may have carried the request out by then.
Call looking(const Call& call) {
  return [call](World& w, nanoseconds limit) -> Status {
    const Status done = call(w, limit);
    if (!done || limit > nanoseconds(0) || !w.setting.threaded) return done;
    return tl::unexpected(Error{ErrorCode::TimedOut, "it was done in no time: call again"});
  };
}

void add_limits(Table& table) {
  const auto limited = [&table](const char* name, const Call& call) {
    table.row(std::string("Connection::") + name + " limit", linked, looking(call), limits(late()));
  };
  limited("send", [](World& w, nanoseconds limit) {
    const Octets message(8);
    return of(w.near_link.send(std::span<const std::byte>(message), limit));
  });
  limited("write", [](World& w, nanoseconds limit) {
    return of(w.near_link.write({near_sge(w)}, far_octets(w), limit));
  });
  limited("read", [](World& w, nanoseconds limit) {
    return of(w.near_link.read({near_sge(w)}, far_octets(w), limit));
  });
  limited("fetch_add", [](World& w, nanoseconds limit) {
    return of(w.near_link.fetch_add(far_octets(w), 1, limit));
  });
  limited("compare_swap", [](World& w, nanoseconds limit) {
    return of(w.near_link.compare_swap(far_octets(w), 1, 2, limit));
  });
  limited("carry_out", [](World& w, nanoseconds limit) {
    return of(w.near_link.carry_out({.opcode = Opcode::Write}, limit));
  });
  const Values<nanoseconds> closing = {
      value(Class::AtLimit, "20 ms", nanoseconds(20'000'000), late()),
      value(Class::Empty, "0", nanoseconds(0), late()),
      value(Class::Beyond, "the least", nanoseconds::min(), late())};
  limited("close", [](World& w, nanoseconds limit) { return w.near_link.close(limit); });
  table.row(
      "Listener::accept limit", far_listens,
      [](World& w, nanoseconds limit) { return of(w.blocking_listener.accept(limit)); }, closing);
  table.row(
      "Adapter::connect limit", far_listens,
      [](World& w, nanoseconds limit) {
        return of(w.near_adapter->connect(Endpoint{w.far_address, kPort}, limit));
      },
      closing);
  table.row("Adapter::connect_pair limit", with_adapters, looking([](World& w, nanoseconds limit) {
              return of(w.near_adapter->connect_pair(*w.far_adapter, kPort, limit,
                                                     {.receives = 4, .reads = 2}));
            }),
            limits(late()));
}

Value<ConnectionOptions> options(Class of, const char* said,
                                 std::function<void(ConnectionOptions&)> change,
                                 Expected expected = {}) {
  ConnectionOptions out;
  out.receives = 4;
  out.reads = 2;
  change(out);
  return value(of, said, out, std::move(expected));
}

Values<ConnectionOptions> connection_options() {
  using Options = ConnectionOptions;
  static const std::vector<uint8_t> data(kMaxPrivateData + 1);
  return {options(Class::AtLimit, ".message_size 1", [](Options& o) { o.message_size = 1; }),
          options(
              Class::Empty, ".message_size 0", [](Options& o) { o.message_size = 0; },
              wrong({"message_size", "at least 1"})),
          options(
              Class::Beyond, ".message_size all", [](Options& o) { o.message_size = UINT32_MAX; },
              wrong({"message_size"})),
          options(Class::AtLimit, ".receives 1", [](Options& o) { o.receives = 1; }),
          options(
              Class::Empty, ".receives 0", [](Options& o) { o.receives = 0; }, wrong({"receives"})),
          options(
              Class::Beyond, ".receives all", [](Options& o) { o.receives = UINT32_MAX; },
              wrong({"receives"})),
          options(Class::AtLimit, ".reads 128", [](Options& o) { o.reads = 128; }),
          options(
              Class::Beyond, ".reads 129", [](Options& o) { o.reads = 129; },
              wrong({"limits.max_reads"})),
          options(Class::AtLimit, ".private_data 508",
                  [](Options& o) { o.private_data = std::span(data).first(kMaxPrivateData); }),
          options(
              Class::Beyond, ".private_data 509", [](Options& o) { o.private_data = data; },
              wrong({"509", "508"})),
          options(
              Class::Illegal, ".connect with a revision 3",
              [](Options& o) { o.connect.start.revision = uint8_t{3}; }, wrong({"revision"}))};
}

void add_making(Table& table) {
  table.row(
      "Adapter::open device", two_ends,
      [](World& w, const std::string& name) {
        return of(blocking::Adapter::open(*w.context, name));
      },
      Values<std::string>{value<std::string>(Class::AtLimit, "one that there is", "rnic0"),
                          with_zero("rnic0", refused(ErrorCode::NotFound, {"rnic0", "rnic1"})),
                          value<std::string>(Class::Empty, "nothing", "",
                                             refused(ErrorCode::NotFound, {"rnic0", "rnic1"})),
                          value<std::string>(Class::Beyond, "one that there is not", "rnic2",
                                             refused(ErrorCode::NotFound, {"rnic2"})),
                          {Class::WrongState, "one that has its adapter",
                           [](World& w) {
                             w.near_adapter.emplace(
                                 must(blocking::Adapter::open(*w.context, "rnic0")));
                             return std::string("rnic0");
                           },
                           refused(ErrorCode::AlreadyExists, {"rnic0"})}});
  table.row(
      "Adapter::open context", two_ends,
      [](World&, Context* context) { return of(blocking::Adapter::open(*context, "rnic0")); },
      Values<Context*>{{Class::AtLimit, "an open one", [](World& w) { return &*w.context; }, {}},
                       {Class::Empty, "one that was moved from",
                        [](World& w) {
                          static std::optional<Context> from, to;
                          from.emplace(w.near().context());
                          to.emplace(std::move(*from));
                          to.reset();
                          return &*from;
                        },
                        refused(ErrorCode::WrongState, {"empty"})}});
  const auto pair = [](World& w, const ConnectionOptions& how) {
    return of(w.near_adapter->connect_pair(*w.far_adapter, kPort, kPatience, how));
  };
  table.row("Adapter::connect_pair options", with_adapters, pair, connection_options());
  // It listens on the address of the device alone.
  Values<uint16_t> pair_ports = listen_ports();
  pair_ports.back().make = [](World& w) {
    must(w.far().listen(Endpoint{w.far_address, 81}));
    return uint16_t{81};
  };
  table.row(
      "Adapter::connect_pair port", with_adapters,
      [](World& w, uint16_t port) {
        return of(w.near_adapter->connect_pair(*w.far_adapter, port, kPatience,
                                               {.receives = 4, .reads = 2}));
      },
      pair_ports);
}

void add_adapters_own(Table& table) {
  table.row(
      "Adapter::listen local", with_adapters,
      [](World& w, const Endpoint& local) { return of(w.far_adapter->listen(local)); },
      locals("listen"));
  table.row(
      "Adapter::listen port", with_adapters,
      [](World& w, uint16_t port) { return of(w.far_adapter->listen(port)); }, listen_ports());
  table.row(
      "Adapter::listen options", with_adapters,
      [](World& w, const ListenOptions& how) { return of(w.far_adapter->listen(kPort, how)); },
      listen_options());
  using Memory = std::span<std::byte>;
  const auto octets = [](World& w) { return std::as_writable_bytes(std::span(w.a.octets)); };
  table.row(
      "Adapter::register_memory memory", with_adapters,
      [](World& w, Memory memory) {
        return of(w.near_adapter->register_memory(memory, Access::LocalWrite));
      },
      Values<Memory>{{Class::AtLimit, "all of it", octets, {}},
                     {Class::Beyond, "octets of nobody",
                      [](World&) { return Memory(reinterpret_cast<std::byte*>(4096), 4096); },
                      wrong({"mapped"})},
                     value<Memory>(Class::Empty, "no octet", {})});
  table.row(
      "Adapter::register_memory access", with_adapters,
      [octets](World& w, AccessSet access) {
        return of(w.near_adapter->register_memory(octets(w), access));
      },
      Values<AccessSet>{value<AccessSet>(Class::AtLimit, "all but one queue pair's",
                                         AccessSet::all().without(Access::RemoteInvalidate)),
                        value<AccessSet>(Class::Empty, "none", {}),
                        value<AccessSet>(Class::Illegal, "a bit without a name",
                                         static_cast<Access>(1u << 7), wrong({"unknown rights"}))});
}

/// Nobody answers in the same thread: what is right waits until its time is over.
void add_connecting(Table& table) {
  Values<Endpoint> ends = remotes(kPort);
  ends[0].expected = late();
  table.row(
      "Adapter::connect remote", far_listens,
      [](World& w, const Endpoint& remote) { return of(w.near_adapter->connect(remote, kSoon)); },
      ends);
  Values<ConnectionOptions> how = connection_options();
  for (auto& one : how) {
    if (one.expected.works) one.expected = late();
  }
  table.row(
      "Adapter::connect options", far_listens,
      [](World& w, const ConnectionOptions& options) {
        return of(w.near_adapter->connect(Endpoint{w.far_address, kPort}, kSoon, options));
      },
      how);
  table.row(
      "Listener::accept options", far_listens,
      [](World& w, const ConnectionOptions& options) {
        return of(w.blocking_listener.accept(kSoon, options));
      },
      how);
  table.row(
      "Adapter::connect host", far_listens,
      [](World& w, const std::string& host) {
        return of(w.near_adapter->connect(host, kPort, kSoon));
      },
      Values<std::string>{value<std::string>(Class::AtLimit, "an address", "10.0.0.2", late()),
                          with_zero("10.0.0.2", wrong({"name"})),
                          value<std::string>(Class::Empty, "nothing", "", wrong({"name"})),
                          value<std::string>(Class::Beyond, "a name that is none",
                                             std::string(255, 'a'), wrong({"255", "254"}))});
  table.row(
      "Adapter::connect port", far_listens,
      [](World& w, uint16_t port) { return of(w.near_adapter->connect("10.0.0.2", port, kSoon)); },
      Values<uint16_t>{value<uint16_t>(Class::AtLimit, kWholeType, kPort, late()),
                       value<uint16_t>(Class::Empty, "0", 0, wrong({"10.0.0.2:0"}))});
  table.row(
      "Adapter::connect_pair far", with_adapters,
      [](World& w, blocking::Adapter* far) {
        return of(
            w.near_adapter->connect_pair(*far, kPort, kPatience, {.receives = 4, .reads = 2}));
      },
      Values<blocking::Adapter*>{
          {Class::AtLimit, "of the context", [](World& w) { return &*w.far_adapter; }, {}},
          {Class::Foreign, "of another context",
           [](World&) {
             static std::optional<Context> other;
             static std::optional<blocking::Adapter> adapter;
             adapter.reset();
             other.emplace(must(Context::open(Config::from_text(
                 starved::config_text({starved::Below::Sockets, false}), "other"))));
             adapter.emplace(must(blocking::Adapter::open(*other, "rnic0")));
             return &*adapter;
           },
           wrong({"another context"})}});
}

}  // namespace

void add_blocking(Table& table) {
  add_operations(table);
  add_transfers(table);
  add_limits(table);
  add_making(table);
  add_adapters_own(table);
  add_connecting(table);
}

}  // namespace rnic::arguments
