// A program of libibverbs and librdmacm that asks for connections in states in which it may not,
// and takes them away: the connection manager refuses it as the kernel's does, and what was refused
// has changed nothing. Both ends are in one process. Prints what is wrong and returns 1, or prints
// "ok".

#include <poll.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "verbs_end.hpp"

namespace {

using rnic::programs::loopback;
using rnic::programs::need;
using rnic::programs::queues;

int wrong = 0;

void expect(bool good, const std::string& what) {
  if (good) return;
  std::printf("wrong: %s\n", what.c_str());
  ++wrong;
}

/// The call was refused, because this is not the time for it.
void is_refused(int status, const char* what) {
  const int error = errno;
  expect(status == -1 && error == EINVAL, std::string("not refused: ") + what);
}

int bind_to(rdma_cm_id* id, uint16_t port = 0) {
  sockaddr_in here = loopback(port);
  return rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&here));
}

int resolve(rdma_cm_id* id, uint16_t port) {
  sockaddr_in to = loopback(port);
  return rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), 1000);
}

/// A channel with one id, or with a listener and the ids of its requests.
class Channel {
 public:
  Channel() : channel_(rdma_create_event_channel()) {
    need(0, channel_ != nullptr, "rdma_create_event_channel");
  }
  ~Channel() { rdma_destroy_event_channel(channel_); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  [[nodiscard]] rdma_cm_id* make() const {
    rdma_cm_id* id = nullptr;
    need(rdma_create_id(channel_, &id, nullptr, RDMA_PS_TCP), "rdma_create_id");
    return id;
  }
  /// Waits for the next event, which has to be this one. \return its id and what it says
  rdma_conn_param next(rdma_cm_event_type type, int status = 0, rdma_cm_id** id = nullptr) const {
    rdma_cm_event* event = nullptr;
    need(rdma_get_cm_event(channel_, &event), "rdma_get_cm_event");
    expect(event->event == type && event->status == status,
           std::string(rdma_event_str(event->event)) + " " + std::to_string(event->status) +
               " in the place of " + rdma_event_str(type));
    if (id != nullptr) *id = event->id;
    const rdma_conn_param said = event->param.conn;
    need(rdma_ack_cm_event(event), "rdma_ack_cm_event");
    return said;
  }
  void has_no_event(const char* what) const {
    pollfd now{channel_->fd, POLLIN, 0};
    expect(poll(&now, 1, 0) == 0, std::string("an event of ") + what);
  }

 private:
  rdma_event_channel* const channel_;
};

/// One end's queue pair, which the connection manager does not know of unless it is told.
struct Queues {
  explicit Queues(rdma_cm_id* id) : pd(ibv_alloc_pd(id->verbs)) {
    cq = ibv_create_cq(id->verbs, 16, nullptr, nullptr, 0);
    need(0, cq != nullptr, "ibv_create_cq");
    ibv_qp_init_attr attr = queues(cq, nullptr);
    qp = ibv_create_qp(pd, &attr);
    need(0, qp != nullptr, "ibv_create_qp");
  }
  ~Queues() {
    destroy();
    need(ibv_destroy_cq(cq), "ibv_destroy_cq");
    need(ibv_dealloc_pd(pd), "ibv_dealloc_pd");
  }
  Queues(const Queues&) = delete;
  Queues& operator=(const Queues&) = delete;

  void destroy() {
    if (qp != nullptr) need(ibv_destroy_qp(qp), "ibv_destroy_qp");
    qp = nullptr;
  }
  [[nodiscard]] int connect(rdma_cm_id* id, uint8_t reads = 1) const {
    rdma_conn_param param = params(reads);
    return rdma_connect(id, &param);
  }
  void accept(rdma_cm_id* id, uint8_t reads = 1) const {
    rdma_conn_param param = params(reads);
    need(rdma_accept(id, &param), "rdma_accept");
  }
  [[nodiscard]] ibv_wc_status send() const {
    ibv_send_wr wr{.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    ibv_send_wr* bad = nullptr;
    need(ibv_post_send(qp, &wr, &bad), "ibv_post_send");
    ibv_wc done{};
    while (ibv_poll_cq(cq, 1, &done) == 0) continue;
    return done.status;
  }
  /// It may serve and ask for so many Reads at once.
  void has_reads(int reads) const {
    ibv_qp_attr now{};
    ibv_qp_init_attr made{};
    need(ibv_query_qp(qp, &now, IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC, &made),
         "ibv_query_qp");
    expect(now.max_rd_atomic == reads && now.max_dest_rd_atomic == reads,
           "a queue pair has " + std::to_string(now.max_rd_atomic) + "/" +
               std::to_string(now.max_dest_rd_atomic) + " Reads, and was given others");
  }

  ibv_pd* pd;
  ibv_cq* cq = nullptr;
  ibv_qp* qp = nullptr;

 private:
  [[nodiscard]] rdma_conn_param params(uint8_t reads) const {
    rdma_conn_param param{};
    param.responder_resources = reads;
    param.initiator_depth = reads;
    param.qp_num = qp->qp_num;
    return param;
  }
};

/// A listener, and what it hears.
struct Server {
  Server() : listener(events.make()) {
    need(bind_to(listener), "rdma_bind_addr");
    need(rdma_listen(listener, 4), "rdma_listen");
  }
  ~Server() { need(rdma_destroy_id(listener), "rdma_destroy_id"); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] uint16_t port() const { return rdma_get_src_port(listener); }
  [[nodiscard]] rdma_cm_id* request() const {
    rdma_cm_id* id = nullptr;
    events.next(RDMA_CM_EVENT_CONNECT_REQUEST, 0, &id);
    return id;
  }

  Channel events;
  rdma_cm_id* listener;
};

/// A side that knows its way to the server.
struct Client {
  explicit Client(const Server& server) : id(events.make()) {
    need(resolve(id, server.port()), "rdma_resolve_addr");
    events.next(RDMA_CM_EVENT_ADDR_RESOLVED);
    need(rdma_resolve_route(id, 1000), "rdma_resolve_route");
    events.next(RDMA_CM_EVENT_ROUTE_RESOLVED);
  }
  ~Client() { need(rdma_destroy_id(id), "rdma_destroy_id"); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// The answer came. The program has made the queue pair, and gives its consent.
  void establish() const {
    events.next(RDMA_CM_EVENT_CONNECT_RESPONSE);
    need(rdma_establish(id), "rdma_establish");
  }

  Channel events;
  rdma_cm_id* id;
};

void before_there_is_a_way(const Server& server) {
  const Channel events;
  rdma_cm_id* const id = events.make();
  need(resolve(id, server.port()), "rdma_resolve_addr");
  is_refused(resolve(id, htons(9)), "a second address");
  is_refused(bind_to(id), "an address of an id that has one");
  is_refused(rdma_listen(id, 1), "a listener that has a peer");
  events.next(RDMA_CM_EVENT_ADDR_RESOLVED);
  events.has_no_event("what was refused");
  const Queues own(id);
  is_refused(own.connect(id), "a connection without a route");
  need(rdma_resolve_route(id, 1000), "rdma_resolve_route");
  is_refused(rdma_resolve_route(id, 1000), "a second route");
  is_refused(resolve(id, htons(9)), "an address behind the route");
  events.next(RDMA_CM_EVENT_ROUTE_RESOLVED);
  events.has_no_event("what was refused");
  expect(rdma_get_dst_port(id) == server.port(), "what was refused is the peer");
  need(rdma_destroy_id(id), "rdma_destroy_id");
}

void on_a_listener(const Server& server) {
  const uint16_t port = server.port();
  is_refused(resolve(server.listener, htons(9)), "a listener's peer");
  is_refused(rdma_resolve_route(server.listener, 1000), "a listener's route");
  is_refused(rdma_listen(server.listener, 1), "a second rdma_listen");
  is_refused(bind_to(server.listener), "a listener's second address");
  server.events.has_no_event("what was refused");
  expect(server.port() == port, "a listener has another port");
}

void on_a_connection(const Server& server) {
  const Client client(server);
  const Queues asks(client.id);
  need(asks.connect(client.id), "rdma_connect");
  is_refused(asks.connect(client.id), "a second connect");
  is_refused(resolve(client.id, htons(9)), "an address of an id that connects");
  rdma_cm_id* const other = server.request();
  const Queues answers(other);
  answers.accept(other);
  client.establish();
  server.events.next(RDMA_CM_EVENT_ESTABLISHED);

  for (rdma_cm_id* each : {client.id, other}) {
    const uint16_t peer = rdma_get_dst_port(each);
    is_refused(asks.connect(each), "a connect of an id that is connected");
    is_refused(resolve(each, htons(9)), "an address of an id that is connected");
    is_refused(rdma_resolve_route(each, 1000), "a route of an id that is connected");
    is_refused(bind_to(each), "an own address of an id that is connected");
    is_refused(rdma_listen(each, 1), "a listener that is connected");
    is_refused(rdma_reject(each, nullptr, 0), "a rejection of an id that is connected");
    expect(rdma_get_dst_port(each) == peer, "what was refused is the peer");
  }
  client.events.has_no_event("what was refused");
  need(rdma_disconnect(client.id), "rdma_disconnect");
  client.events.next(RDMA_CM_EVENT_DISCONNECTED);
  server.events.next(RDMA_CM_EVENT_DISCONNECTED);
  is_refused(asks.connect(client.id), "a connect of an id that was connected");
  need(rdma_destroy_id(other), "rdma_destroy_id");
}

/// What the device says that it has is what a connection gets, and what both are told of it.
void reads_at_once(const Server& server) {
  const Client client(server);
  ibv_device_attr device{};
  need(ibv_query_device(client.id->verbs, &device), "ibv_query_device");
  expect(device.max_qp_rd_atom == device.max_qp_init_rd_atom, "one more Read in one direction");
  const auto most = static_cast<uint8_t>(device.max_qp_rd_atom);
  const Queues asks(client.id);
  need(asks.connect(client.id, most), "rdma_connect");
  rdma_cm_id* other = nullptr;
  const rdma_conn_param asked = server.events.next(RDMA_CM_EVENT_CONNECT_REQUEST, 0, &other);
  const Queues answers(other);
  answers.accept(other, most);
  const rdma_conn_param got = client.events.next(RDMA_CM_EVENT_CONNECT_RESPONSE);
  server.events.next(RDMA_CM_EVENT_ESTABLISHED);
  for (const rdma_conn_param& each : {asked, got}) {
    expect(each.responder_resources == most && each.initiator_depth == most,
           "a peer is told of " + std::to_string(each.responder_resources) + "/" +
               std::to_string(each.initiator_depth) + " Reads of " + std::to_string(most));
  }
  asks.has_reads(most);
  answers.has_reads(most);
  need(rdma_destroy_id(other), "rdma_destroy_id");
}

/// An id takes its connection along, although its queue pair stays.
void id_that_goes(const Server& server) {
  const Client client(server);
  const Queues asks(client.id);
  need(asks.connect(client.id), "rdma_connect");
  rdma_cm_id* const other = server.request();
  const Queues answers(other);
  answers.accept(other);
  client.establish();
  server.events.next(RDMA_CM_EVENT_ESTABLISHED);
  need(rdma_destroy_id(other), "rdma_destroy_id");
  expect(answers.send() == IBV_WC_WR_FLUSH_ERR, "a Send whose id is gone");
  client.events.next(RDMA_CM_EVENT_DISCONNECTED);
}

/// An attempt ends with the queue pair, and both are told.
void queue_pair_that_goes(const Server& server) {
  const Client client(server);
  Queues asks(client.id);
  need(asks.connect(client.id), "rdma_connect");
  rdma_cm_id* const other = server.request();
  asks.destroy();
  client.events.next(RDMA_CM_EVENT_REJECTED, -ECONNRESET);
  need(rdma_destroy_id(other), "rdma_destroy_id");
}

/// Where nobody can be reached nobody is sought. No address is this machine.
void addresses(const Server& server) {
  const Channel events;
  sockaddr_in6 of_link{};
  of_link.sin6_family = AF_INET6;
  of_link.sin6_port = htons(9);
  of_link.sin6_scope_id = 1;
  need(0, inet_pton(AF_INET6, "fe80::1", &of_link.sin6_addr) == 1, "inet_pton");
  auto* const link = reinterpret_cast<sockaddr*>(&of_link);
  sockaddr_in to = loopback(server.port());
  auto* const target = reinterpret_cast<sockaddr*>(&to);
  rdma_cm_id* const id = events.make();
  expect(rdma_bind_addr(id, link) == -1 && errno == EADDRNOTAVAIL, "bound to one link");
  expect(rdma_resolve_addr(id, nullptr, link, 1000) == -1 && errno == EADDRNOTAVAIL,
         "an address of one link is resolved");
  to.sin_addr.s_addr = htonl(INADDR_ALLHOSTS_GROUP);
  is_refused(rdma_resolve_addr(id, nullptr, target, 1000), "a group as a peer");
  events.has_no_event("what was refused");
  to.sin_addr.s_addr = htonl(INADDR_ANY);
  need(rdma_resolve_addr(id, nullptr, target, 1000), "rdma_resolve_addr");
  events.next(RDMA_CM_EVENT_ADDR_RESOLVED);
  sockaddr_in peer{};
  std::memcpy(&peer, rdma_get_peer_addr(id), sizeof(peer));
  expect(peer.sin_addr.s_addr == htonl(INADDR_LOOPBACK) && peer.sin_port == server.port(),
         "0.0.0.0 is another machine");
  need(rdma_destroy_id(id), "rdma_destroy_id");
}

}  // namespace

int main() {
  {
    const Server server;
    before_there_is_a_way(server);
    on_a_listener(server);
    on_a_connection(server);
    reads_at_once(server);
    id_that_goes(server);
    queue_pair_that_goes(server);
    addresses(server);
  }
  if (wrong == 0) std::puts("ok");
  return wrong == 0 ? 0 : 1;
}
