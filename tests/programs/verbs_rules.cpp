// A program of libibverbs and librdmacm that holds the plugin to rules which the programs of others
// do not ask about. Both ends of its connections are in one process. Prints what is wrong and
// returns 1, or prints "ok".

#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <thread>

#include "verbs_end.hpp"

namespace {

using rnic::programs::listen_here;
using rnic::programs::need;
using rnic::programs::queues;
using rnic::programs::resolved;

constexpr int kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND;
constexpr uint32_t kOctets = 100000;
using Octets = rnic::programs::Memory<kOctets>;

int wrong = 0;

void expect(bool good, const char* what) {
  if (good) return;
  std::printf("wrong: %s\n", what);
  ++wrong;
}

struct End {
  explicit End(rdma_cm_id* made)
      : id(made), pd(ibv_alloc_pd(id->verbs)), memory(pd, kRights),
        cq(ibv_create_cq(id->verbs, 16, nullptr, nullptr, 0)) {
    need(0, cq != nullptr, "ibv_create_cq");
    ibv_qp_init_attr attr = queues(cq, nullptr);
    need(rdma_create_qp(id, pd, &attr), "rdma_create_qp");
  }
  ~End() {
    rdma_destroy_qp(id);
    need(ibv_destroy_cq(cq), "ibv_destroy_cq");
    need(ibv_dereg_mr(memory.region), "ibv_dereg_mr");
    need(ibv_dealloc_pd(pd), "ibv_dealloc_pd");
    need(rdma_destroy_id(id), "rdma_destroy_id");
  }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  void receive() {
    ibv_recv_wr wr{};
    ibv_recv_wr* bad = nullptr;
    need(ibv_post_recv(id->qp, &wr, &bad), "ibv_post_recv");
  }
  void send(ibv_send_wr wr) {
    ibv_send_wr* bad = nullptr;
    wr.send_flags |= IBV_SEND_SIGNALED;
    need(ibv_post_send(id->qp, &wr, &bad), "ibv_post_send");
  }
  ibv_wc complete() {
    ibv_wc done{};
    while (ibv_poll_cq(cq, 1, &done) == 0) std::this_thread::yield();
    return done;
  }
  [[nodiscard]] ibv_qp_state state() const {
    ibv_qp_attr attr{};
    ibv_qp_init_attr made{};
    need(ibv_query_qp(id->qp, &attr, IBV_QP_STATE, &made), "ibv_query_qp");
    return attr.qp_state;
  }

  rdma_cm_id* id;
  ibv_pd* pd;
  Octets memory;
  ibv_cq* cq;
};

/// A connection.
class Pair {
 public:
  Pair() : listener_(listen_here(here_, 1)), client(resolved(here_)), server(request()) {
    need(rdma_accept(server.id, nullptr), "rdma_accept");
    connecting_.join();
  }
  ~Pair() { need(rdma_destroy_id(listener_), "rdma_destroy_id"); }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

 private:
  rdma_cm_id* request() {
    connecting_ = std::thread([this] {
      rdma_conn_param param{};
      need(rdma_connect(client.id, &param), "rdma_connect");
    });
    rdma_cm_id* id = nullptr;
    need(rdma_get_request(listener_, &id), "rdma_get_request");
    return id;
  }

  sockaddr_in here_{};
  rdma_cm_id* listener_;
  std::thread connecting_;

 public:
  End client;
  End server;
};

int change(ibv_qp* qp, ibv_qp_state to, int more = 0, uint8_t port = 1) {
  ibv_qp_attr attr{};
  attr.qp_state = to;
  attr.port_num = port;
  return ibv_modify_qp(qp, &attr, IBV_QP_STATE | more);
}

/// A queue takes its unread event with it, even where no descriptor is left to look for it with.
void events_of_queues_that_are_gone(End& end) {
  ibv_comp_channel* const channel = ibv_create_comp_channel(end.id->verbs);
  need(0, channel != nullptr, "ibv_create_comp_channel");
  ibv_cq* const cq = ibv_create_cq(end.id->verbs, 4, nullptr, channel, 0);
  need(0, cq != nullptr, "ibv_create_cq");
  ibv_qp_init_attr attr = queues(cq, nullptr);
  ibv_qp* const qp = ibv_create_qp(end.pd, &attr);
  need(0, qp != nullptr, "ibv_create_qp");
  need(ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
  ibv_recv_wr wr{};
  ibv_recv_wr* bad = nullptr;
  need(ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
  need(change(qp, IBV_QPS_ERR), "ibv_modify_qp");
  pollfd told{channel->fd, POLLIN, 0};
  need(0, poll(&told, 1, -1) == 1, "poll");
  need(ibv_destroy_qp(qp), "ibv_destroy_qp");
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{0, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  need(ibv_destroy_cq(cq), "ibv_destroy_cq");
  setrlimit(RLIMIT_NOFILE, &before);
  expect(poll(&told, 1, 0) == 0, "an event of a completion queue that is gone");
  need(ibv_destroy_comp_channel(channel), "ibv_destroy_comp_channel");
}

/// Makes the calls on a thread that is cancelled already: a cancellation point would end it there.
template <typename Calls>
void are_no_cancellation_points(Calls calls, const char* what) {
  bool returned = false;
  std::thread cancelled([&] {
    pthread_cancel(pthread_self());
    calls();
    returned = true;
  });
  cancelled.join();
  expect(returned, what);
}

void cancelled_threads(End& end) {
  are_no_cancellation_points([&] { const Octets memory(end.pd); ibv_dereg_mr(memory.region); },
                             "ibv_reg_mr ended a thread");
  are_no_cancellation_points(
      [&] { ibv_destroy_cq(ibv_create_cq(end.id->verbs, 4, nullptr, nullptr, 0)); },
      "ibv_create_cq ended a thread");
  are_no_cancellation_points([&] { end.send({.opcode = IBV_WR_RDMA_WRITE}); end.complete(); },
                             "ibv_post_send ended a thread");
}

/// A thread that waits for an event of the connection manager ends there.
void cancelled_waits() {
  rdma_event_channel* const channel = rdma_create_event_channel();
  need(0, channel != nullptr, "rdma_create_event_channel");
  pthread_t waiting;
  const auto wait = [](void* from) -> void* {
    rdma_cm_event* event = nullptr;
    rdma_get_cm_event(static_cast<rdma_event_channel*>(from), &event);
    return nullptr;
  };
  need(pthread_create(&waiting, nullptr, wait, channel), "pthread_create");
  need(pthread_cancel(waiting), "pthread_cancel");
  void* how = nullptr;
  need(pthread_join(waiting, &how), "pthread_join");
  expect(how == PTHREAD_CANCELED, "a wait for an event that cannot be cancelled");
  rdma_destroy_event_channel(channel);
}

/// A peer may invalidate a window of type 2.
void invalidation(End& owner, End& peer) {
  ibv_mw* const window = ibv_alloc_mw(owner.pd, IBV_MW_TYPE_2);
  need(0, window != nullptr, "ibv_alloc_mw");
  ibv_send_wr bind{.opcode = IBV_WR_BIND_MW};
  bind.bind_mw.mw = window;
  bind.bind_mw.rkey = ibv_inc_rkey(window->rkey);
  bind.bind_mw.bind_info = {.mr = owner.memory.region,
                            .addr = owner.memory.piece().addr,
                            .length = kOctets,
                            .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
  owner.send(bind);
  expect(owner.complete().status == IBV_WC_SUCCESS, "the window was not bound");
  owner.receive();
  ibv_send_wr invalidates{.opcode = IBV_WR_SEND_WITH_INV};
  invalidates.invalidate_rkey = bind.bind_mw.rkey;
  peer.send(invalidates);
  const ibv_wc done = owner.complete();
  expect(done.status == IBV_WC_SUCCESS && (done.wc_flags & IBV_WC_WITH_INV) != 0 &&
             done.invalidated_rkey == bind.bind_mw.rkey,
         "a Send that invalidates a window");
  peer.complete();
  need(ibv_dealloc_mw(window), "ibv_dealloc_mw");
}

/// The states that a connection goes through, and what may not be asked for in each.
void states(End& end) {
  ibv_qp_init_attr attr = queues(end.cq, nullptr);
  ibv_qp* const qp = ibv_create_qp(end.pd, &attr);
  need(0, qp != nullptr, "ibv_create_qp");
  const auto state = [qp] {
    ibv_qp_attr now{};
    ibv_qp_init_attr made{};
    need(ibv_query_qp(qp, &now, IBV_QP_STATE, &made), "ibv_query_qp");
    return now.qp_state;
  };
  expect(state() == IBV_QPS_INIT, "a new queue pair is not idle");
  expect(change(qp, IBV_QPS_RTS) == EINVAL, "RESET to RTS");
  expect(change(qp, static_cast<ibv_qp_state>(99)) == EINVAL, "RESET to no state");
  expect(change(qp, IBV_QPS_INIT, IBV_QP_PORT, 7) == EINVAL, "port 7");
  expect(state() == IBV_QPS_INIT && qp->state == IBV_QPS_INIT,
         "what was refused has changed the state");
  need(change(qp, IBV_QPS_INIT, IBV_QP_PORT), "RESET to INIT");
  need(change(qp, IBV_QPS_ERR), "INIT to ERR");
  expect(change(qp, IBV_QPS_RTS) == EINVAL, "ERR to RTS");
  expect(change(qp, IBV_QPS_INIT) == EINVAL, "ERR to INIT");
  need(change(qp, IBV_QPS_RESET), "ERR to RESET");
  expect(state() == IBV_QPS_INIT, "not idle behind ERR");
  need(ibv_destroy_qp(qp), "ibv_destroy_qp");
}

/// Ends the connection.
void states_of_a_connection(Pair& pair) {
  expect(pair.client.state() == IBV_QPS_RTS, "the side that connected is not in RTS");
  expect(pair.server.state() == IBV_QPS_RTS, "the side that accepted is not in RTS");
  expect(change(pair.client.id->qp, IBV_QPS_RESET) == EINVAL, "RTS to RESET");
  pair.server.receive();
  need(rdma_disconnect(pair.client.id), "rdma_disconnect");
  expect(pair.server.complete().status == IBV_WC_WR_FLUSH_ERR, "a receive behind the end");
  expect(pair.server.state() == IBV_QPS_ERR, "not in ERR behind the end");
}

/// What a receive tells of Immediate Data: the octets written since the last message.
void immediate_data(End& from, End& to) {
  ibv_send_wr wr{.num_sge = 1, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM};
  wr.wr.rdma.remote_addr = to.memory.piece().addr;
  wr.wr.rdma.rkey = to.memory.region->rkey;
  for (const uint32_t octets : {uint32_t{0}, uint32_t{1}, uint32_t{1000}, kOctets}) {
    to.receive();
    ibv_sge piece = from.memory.piece(0, octets);
    wr.sg_list = &piece;
    wr.imm_data = htonl(octets);
    from.send(wr);
    const ibv_wc done = to.complete();
    expect(done.opcode == IBV_WC_RECV_RDMA_WITH_IMM && done.imm_data == wr.imm_data,
           "a receive of a Write with immediate");
    expect(done.byte_len == octets, "byte_len of a Write with immediate");
    expect(from.complete().opcode == IBV_WC_RDMA_WRITE, "the completion of a Write with immediate");
  }
  to.receive();
  from.send({.opcode = IBV_WR_SEND_WITH_IMM, .imm_data = 7});
  const ibv_wc done = to.complete();
  expect(done.opcode == IBV_WC_RECV && done.byte_len == 0 && done.imm_data == 7 &&
             (done.wc_flags & IBV_WC_WITH_IMM) != 0,
         "a receive of an empty Send with immediate");
  from.complete();
}

void bad_arguments(End& end) {
  ibv_sge piece = end.memory.piece();
  ibv_recv_wr receive{.sg_list = &piece, .num_sge = -1};
  ibv_recv_wr* bad_receive = nullptr;
  expect(ibv_post_recv(end.id->qp, &receive, &bad_receive) == EINVAL && bad_receive == &receive,
         "a receive with less than no pieces");
  ibv_send_wr send{.sg_list = &piece, .num_sge = -1, .opcode = IBV_WR_SEND};
  ibv_send_wr* bad_send = nullptr;
  expect(ibv_post_send(end.id->qp, &send, &bad_send) == EINVAL && bad_send == &send,
         "a Send with less than no pieces");

  ibv_srq_init_attr made{.attr = {.max_wr = 16, .max_sge = 1}};
  ibv_srq* const srq = ibv_create_srq(end.pd, &made);
  need(0, srq != nullptr, "ibv_create_srq");
  ibv_srq_attr limit{.srq_limit = 1000};
  expect(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT) == EINVAL, "a limit above what a queue holds");
  expect(ibv_post_srq_recv(srq, &receive, &bad_receive) == EINVAL,
         "a shared receive with less than no pieces");
  limit.srq_limit = 16;
  need(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), "ibv_modify_srq");
  need(ibv_destroy_srq(srq), "ibv_destroy_srq");

  char octets[64];
  // As numbers: clang warns of the header's own arithmetic with enumerators.
  constexpr int kOnDemand = IBV_ACCESS_ON_DEMAND;
  constexpr int kWritable = IBV_ACCESS_LOCAL_WRITE;
  expect(ibv_reg_mr(end.pd, octets, sizeof(octets), kOnDemand) == nullptr && errno == EOPNOTSUPP,
         "a region with paging on demand");
  ibv_mr* const region = ibv_reg_mr(end.pd, octets, sizeof(octets), kWritable);
  need(0, region != nullptr, "ibv_reg_mr");
  expect(ibv_rereg_mr(region, 0, nullptr, nullptr, 0, 0) != 0, "a change of nothing");
  const auto give = [region](int rights) {
    return ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, rights);
  };
  expect(give(IBV_ACCESS_REMOTE_WRITE) != 0, "octets that peers alone may write");
  expect(give(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE) == 0, "ibv_rereg_mr");
  need(ibv_dereg_mr(region), "ibv_dereg_mr");
}

}  // namespace

int main() {
  Pair pair;
  events_of_queues_that_are_gone(pair.client);
  cancelled_threads(pair.client);
  cancelled_waits();
  invalidation(pair.server, pair.client);
  immediate_data(pair.client, pair.server);
  bad_arguments(pair.client);
  states(pair.client);
  states_of_a_connection(pair);
  if (wrong == 0) std::puts("ok");
  return wrong == 0 ? 0 : 1;
}
