// A program of libibverbs and librdmacm that looks closely at what the connection manager tells it:
// which events make a channel readable, what becomes of those of an id that goes, what an event
// says, and which port an id has. Both ends are in one thread. Prints what is wrong and returns 1,
// or prints "ok".

#include <poll.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "verbs_end.hpp"

#if defined(__SANITIZE_THREAD__)
// The door would have what the plugin does left out, and its locks with it.
extern "C" const char* __tsan_default_suppressions() { return ""; }
#endif

namespace {

using rnic::programs::loopback;
using rnic::programs::need;
using rnic::programs::queues;

constexpr int kPatience = 10'000;  // milliseconds, until something is taken to be missing

void check(bool good, const char* what) {
  if (good) return;
  std::printf("%s\n", what);
  std::exit(1);
}

bool readable(const rdma_event_channel* channel, int patience = 0) {
  pollfd look{channel->fd, POLLIN, 0};
  return poll(&look, 1, patience) == 1;
}

rdma_event_channel* new_channel() {
  rdma_event_channel* const channel = rdma_create_event_channel();
  return need(channel, channel != nullptr, "rdma_create_event_channel");
}

/// What an event has said.
struct Told {
  rdma_cm_event_type kind;
  rdma_cm_id* id;
  rdma_cm_id* listener;
  rdma_conn_param param;
};

Told next(rdma_event_channel* channel, const char* what) {
  check(readable(channel, kPatience), what);
  rdma_cm_event* event = nullptr;
  need(rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
  const Told told{event->event, event->id, event->listen_id, event->param.conn};
  need(rdma_ack_cm_event(event), "rdma_ack_cm_event");
  return told;
}

Told expect(rdma_event_channel* channel, rdma_cm_event_type kind) {
  const Told told = next(channel, rdma_event_str(kind));
  if (told.kind == kind) return told;
  std::printf("%s, and not %s\n", rdma_event_str(told.kind), rdma_event_str(kind));
  std::exit(1);
}

rdma_cm_id* new_id(rdma_event_channel* channel) {
  rdma_cm_id* id = nullptr;
  need(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), "rdma_create_id");
  return id;
}

/// Asks for the address, which is told by an event.
void resolve(rdma_cm_id* id, uint16_t port) {
  sockaddr_in to = loopback(port);
  need(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), 1000), "rdma_resolve_addr");
}

rdma_cm_id* listen_on(rdma_event_channel* channel) {
  rdma_cm_id* const id = new_id(channel);
  sockaddr_in here = loopback(0);
  need(rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&here)), "rdma_bind_addr");
  need(rdma_listen(id, 8), "rdma_listen");
  return id;
}

void make_queue_pair(rdma_cm_id* id) {
  ibv_cq* const cq = ibv_create_cq(id->verbs, 16, nullptr, nullptr, 0);
  need(0, cq != nullptr, "ibv_create_cq");
  ibv_qp_init_attr attr = queues(cq, nullptr, 2);
  need(rdma_create_qp(id, nullptr, &attr), "rdma_create_qp");
}

/// An id that has asked the listener for a connection.
rdma_cm_id* ask(rdma_event_channel* channel, rdma_cm_id* listener, rdma_conn_param param = {}) {
  rdma_cm_id* const id = new_id(channel);
  resolve(id, rdma_get_src_port(listener));
  expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
  need(rdma_resolve_route(id, 1000), "rdma_resolve_route");
  expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
  make_queue_pair(id);
  need(rdma_connect(id, &param), "rdma_connect");
  return id;
}

void drop(rdma_cm_id* id) {
  if (id->qp != nullptr) {
    ibv_cq* const cq = id->send_cq != nullptr ? id->send_cq : id->qp->send_cq;
    rdma_destroy_qp(id);
    need(ibv_destroy_cq(cq), "ibv_destroy_cq");
  }
  need(rdma_destroy_id(id), "rdma_destroy_id");
}

/// The channel has so many events, and poll() tells of no more.
void count(rdma_event_channel* channel, int events) {
  for (int i = 0; i < events; ++i) expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
  check(!readable(channel), "the channel is readable without an event");
}

/// The events of an id that is destroyed go with it, wherever they are in the queue.
void events_of_a_destroyed_id() {
  rdma_event_channel* const channel = new_channel();
  for (int gone = 0; gone < 3; ++gone) {
    rdma_cm_id* ids[3];
    for (rdma_cm_id*& each : ids) resolve(each = new_id(channel), htons(9));
    check(readable(channel), "the channel is not readable");
    drop(ids[gone]);
    count(channel, 2);
    for (int i = 0; i < 3; ++i) {
      if (i != gone) drop(ids[i]);
    }
  }
  rdma_cm_id* const only = new_id(channel);
  resolve(only, htons(9));
  drop(only);
  count(channel, 0);
  rdma_destroy_event_channel(channel);
}

/// They go along with an id that moves to another channel.
void events_of_an_id_that_moves() {
  rdma_event_channel* const from = new_channel();
  rdma_event_channel* const to = new_channel();
  rdma_cm_id* const stays = new_id(from);
  rdma_cm_id* const moves = new_id(from);
  resolve(stays, htons(9));
  resolve(moves, htons(9));
  need(rdma_migrate_id(moves, to), "rdma_migrate_id");
  count(from, 1);
  count(to, 1);
  need(rdma_migrate_id(moves, to), "rdma_migrate_id to where it is");
  count(to, 0);
  drop(stays);
  drop(moves);
  rdma_destroy_event_channel(from);
  rdma_destroy_event_channel(to);
}

struct Pair {
  rdma_cm_id* client;
  rdma_cm_id* server;
};

/// What the two sides give is what the other one is told.
Pair connect_two(rdma_event_channel* clients, rdma_event_channel* servers, rdma_cm_id* listener) {
  rdma_conn_param asked{};
  asked.responder_resources = 6;
  asked.initiator_depth = 9;
  Pair out{ask(clients, listener, asked), nullptr};
  const uint16_t port = rdma_get_src_port(out.client);
  check(port != 0, "whoever has resolved an address has no port");
  const Told request = expect(servers, RDMA_CM_EVENT_CONNECT_REQUEST);
  out.server = request.id;
  check(rdma_get_dst_port(out.server) == port, "the client connects from another port");
  check(request.param.responder_resources == 9 && request.param.initiator_depth == 6,
        "the request does not say how many Reads the client takes and makes");
  make_queue_pair(out.server);
  rdma_conn_param given{};
  given.responder_resources = 4;
  given.initiator_depth = 3;
  need(rdma_accept(out.server, &given), "rdma_accept");
  const Told answer = expect(clients, RDMA_CM_EVENT_ESTABLISHED);
  check(answer.param.responder_resources == 3 && answer.param.initiator_depth == 4,
        "the answer does not say how many Reads the server takes and makes");
  expect(servers, RDMA_CM_EVENT_ESTABLISHED);
  return out;
}

/// A server ends its only connection and destroys the id, without waiting for DISCONNECTED.
void an_id_that_is_not_waited_for() {
  rdma_event_channel* const clients = new_channel();
  rdma_event_channel* const servers = new_channel();
  rdma_cm_id* const listener = listen_on(servers);
  const Pair pair = connect_two(clients, servers, listener);
  need(rdma_disconnect(pair.server), "rdma_disconnect");
  expect(clients, RDMA_CM_EVENT_DISCONNECTED);
  check(readable(servers, kPatience), "the server hears of no end");
  drop(pair.server);
  check(!readable(servers), "the channel is readable without an event");
  drop(pair.client);
  drop(listener);
  rdma_destroy_event_channel(clients);
  rdma_destroy_event_channel(servers);
}

/// Whoever has asked a listener that goes before it reads the request is rejected.
void a_listener_that_goes() {
  rdma_event_channel* const clients = new_channel();
  rdma_event_channel* const servers = new_channel();
  rdma_cm_id* const listener = listen_on(servers);
  rdma_cm_id* const client = ask(clients, listener);
  check(readable(servers, kPatience), "there is no request");
  drop(listener);
  check(!readable(servers), "the request of a listener that has gone is there");
  expect(clients, RDMA_CM_EVENT_REJECTED);
  drop(client);
  rdma_destroy_event_channel(clients);
  rdma_destroy_event_channel(servers);
}

/// Requests that nobody has read go along with a listener, and so does what comes of them.
void a_listener_that_moves() {
  rdma_event_channel* const clients = new_channel();
  rdma_event_channel* const from = new_channel();
  rdma_event_channel* const to = new_channel();
  rdma_cm_id* const listener = listen_on(from);
  rdma_cm_id* const client = ask(clients, listener);
  check(readable(from, kPatience), "there is no request");
  need(rdma_migrate_id(listener, to), "rdma_migrate_id");
  check(!readable(from), "the request of a listener that has moved is there");
  rdma_destroy_event_channel(from);
  const Told request = expect(to, RDMA_CM_EVENT_CONNECT_REQUEST);
  make_queue_pair(request.id);
  need(rdma_accept(request.id, nullptr), "rdma_accept");
  expect(clients, RDMA_CM_EVENT_ESTABLISHED);
  expect(to, RDMA_CM_EVENT_ESTABLISHED);
  drop(client);
  drop(request.id);
  drop(listener);
  rdma_destroy_event_channel(clients);
  rdma_destroy_event_channel(to);
}

}  // namespace

int main() {
  events_of_a_destroyed_id();
  events_of_an_id_that_moves();
  an_id_that_is_not_waited_for();
  a_listener_that_goes();
  a_listener_that_moves();
  std::puts("ok");
  return 0;
}
