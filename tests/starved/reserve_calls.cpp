// The table of the calls that reserve ports and take reserved ports over
// (rnic/port_reservation.hpp).

#include "trial.hpp"

namespace rnic::starved {

namespace {

constexpr uint16_t kPort = 7471;
constexpr uint16_t kListening = 7472;
const Endpoint kHere{{}, kPort};

// --- preparations ---

void two_ends(World& w) {
  w.a = w.end(w.near());
  w.b = w.end(w.far());
}

void reserved(World& w) { w.reserved_port = must(w.far().reserve({w.far_address, kPort})); }

void ends_and_port(World& w) {
  two_ends(w);
  reserved(w);
}

void source_and_listener(World& w) {
  two_ends(w);
  must(w.far().listen(kListening));
  w.reserved_port = must(w.near().reserve({w.near_address, kPort}));
}

void with_consumer(World& w) {
  w.consumer.emplace(must(w.near().create_consumer({.name = "one"})));
}

void consumer_and_port(World& w) {
  with_consumer(w);
  w.reserved_port = must(w.consumer->reserve(kHere));
}

FramedListenerOptions framed(World& w) {
  FramedListenerOptions options;
  options.backlog = 4;
  options.framing = w.framing;
  return options;
}

Outcome keep(World& w, Result<PortReservation>&& made) {
  const Outcome outcome = of(made);
  if (made) w.reserved_port = std::move(*made);
  return outcome;
}

// --- proofs ---

void becomes_established(World& w) {
  if (!w.await(w.far(), w.request)) broken("no connection request comes");
  must(w.b.qp.accept(w.request.request));
  event::Established got;
  if (!w.await(w.near(), got)) broken("the initiator is not connected");
  if (!w.await(w.far(), got)) broken("the responder is not connected");
}

void is_reached(World& w) {
  must(w.a.qp.connect({w.far_address, kPort}));
  becomes_established(w);
}

void comes_from_there(World& w) {
  becomes_established(w);
  if (w.request.remote != Endpoint{w.near_address, kPort}) {
    broken("it comes from another port: " + to_string(w.request.remote));
  }
}

}  // namespace

std::vector<Call> reserve_calls() {
  return {
      {"Device::reserve", two_ends,
       [](World& w) {
         return keep(w, w.far().reserve({w.far_address, kPort}));
       },
       [](World& w) {
         must(w.far().listen(w.reserved_port));
         is_reached(w);
       }},
      {"Consumer::reserve", with_consumer,
       [](World& w) { return keep(w, w.consumer->reserve(kHere)); },
       [](World& w) { must(w.consumer->listen(w.reserved_port)); }},
      {"PortReservation::local", reserved,
       [](World& w) {
         return w.reserved_port.local().port == kPort
                    ? Outcome{}
                    : Outcome{false, ErrorCode::ResourceExhausted, true};
       },
       nullptr},
      {"PortReservation::destroy", reserved, [](World& w) { return of(w.reserved_port.destroy()); },
       reserved},
      {"PortReservation::~PortReservation", reserved,
       [](World& w) {
         w.reserved_port = PortReservation();
         return Outcome{};
       },
       reserved},
      {"Device::listen", ends_and_port,
       [](World& w) { return of(w.far().listen(w.reserved_port)); }, is_reached},
      {"Consumer::listen", consumer_and_port,
       [](World& w) { return of(w.consumer->listen(w.reserved_port)); },
       [](World& w) { must(w.consumer->unlisten(kHere)); }},
      {"Device::listen_stream", reserved,
       [](World& w) {
         auto made = w.far().listen_stream(w.reserved_port, {.backlog = 4});
         const Outcome outcome = of(made);
         if (made) w.listener.emplace(std::move(*made));
         return outcome;
       },
       [](World& w) {
         if (w.listener->local().port != kPort) broken("the port is another one");
       },
       Where::OnWire},
      {"Device::listen_framed", reserved,
       [](World& w) {
         auto made = w.far().listen_framed(w.reserved_port, framed(w));
         const Outcome outcome = of(made);
         if (made) w.framed_listener.emplace(std::move(*made));
         return outcome;
       },
       [](World& w) {
         if (w.framed_listener->local().port != kPort) broken("the port is another one");
       },
       Where::OnWire},
      {"QueuePair::connect", source_and_listener,
       [](World& w) {
         return of(
             w.a.qp.connect(w.reserved_port, {w.far_address, kListening}, {w.octets.data(), 200}));
       },
       comes_from_there},
  };
}

}  // namespace rnic::starved
