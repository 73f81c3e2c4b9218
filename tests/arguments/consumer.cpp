// consumer.hpp.

#include "values.hpp"

namespace rnic::arguments {

namespace {

void with_far_consumer(World& w) {
  two_ends(w);
  w.consumer.emplace(must(w.far().create_consumer({.name = "one", .quotas = {.cq_entries = 64}})));
}

}  // namespace

void add_consumer(Table& table) {
  const auto make = with_far_consumer;
  const auto depth = [](World& w, uint32_t n) { return of(w.consumer->create_cq(n)); };
  table.row("Consumer::create_cq depth", make, depth,
            up_to<uint32_t>(64, refused(ErrorCode::ResourceExhausted, {"\"one\"", "cq_entries"}),
                            wrong({"create_cq", "1..128"})));
  table.row(
      "Consumer::create_cq options", make,
      [](World& w, const CompletionQueueOptions& how) {
        return of(w.consumer->create_cq(16, how));
      },
      completion_queue_options());
  table.row(
      "Consumer::listen local", make,
      [](World& w, const Endpoint& local) { return of(w.consumer->listen(local)); },
      locals("listen"));
  table.row(
      "Consumer::reserve local", make,
      [](World& w, const Endpoint& local) { return of(w.consumer->reserve(local)); },
      locals("reserve"));
  table.row(
      "Consumer::listen options", make,
      [](World& w, const ListenOptions& how) {
        return of(w.consumer->listen(Endpoint{{}, kPort}, how));
      },
      listen_options());
  using Port = PortReservation*;
  const auto reserved = [](auto whose) {
    return [whose](World& w) -> Port {
      w.reserved_port = must(whose(w));
      return &w.reserved_port;
    };
  };
  table.row(
      "Consumer::listen port", make,
      [](World& w, Port port) { return of(w.consumer->listen(*port)); },
      Values<Port>{
          {Class::AtLimit, "its own", reserved([](World& w) { return w.consumer->reserve(); }), {}},
          {Class::Empty, "nothing", [](World& w) { return &w.reserved_port; },
           refused(ErrorCode::WrongState, {"empty"})},
          {Class::Foreign, "the application's",
           reserved([](World& w) { return w.far().reserve(); }),
           refused(ErrorCode::PermissionDenied, {"reserved"})},
          {Class::Foreign, "the other device's",
           reserved([](World& w) { return w.near().reserve(); }), wrong({"rnic0", "rnic1"})}});
  table.row(
      "Consumer::unlisten local", make,
      [](World& w, const Endpoint& local) { return w.consumer->unlisten(local); },
      Values<Endpoint>{
          {Class::AtLimit,
           "what is listened on",
           [](World& w) { return must(w.consumer->listen(Endpoint{})); },
           {}},
          value<Endpoint>(Class::Empty, "nothing", {}, refused(ErrorCode::NotFound, {"unlisten"})),
          value<Endpoint>(Class::Illegal, "multicast", {IpAddress::v4(0xe0000001), kPort},
                          refused(ErrorCode::NotFound, {"224.0.0.1"})),
          {Class::Foreign, "the application's",
           [](World& w) { return must(w.far().listen(uint16_t{99})); },
           refused(ErrorCode::PermissionDenied, {"99"})}});
  const auto with_domain = [](World& w) {
    with_far_consumer(w);
    w.pd.emplace(must(w.consumer->alloc_pd()));
  };
  table.row(
      "Consumer::destroy this", with_domain, [](World& w, bool) { return w.consumer->destroy(); },
      Values<bool>{value(Class::WrongState, "with a domain", true,
                         refused(ErrorCode::WrongState, {"\"one\"", "domain"}))});
}

}  // namespace rnic::arguments
