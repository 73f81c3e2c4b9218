// A program of libibverbs and librdmacm that reads asynchronous events: both ends in one process.
// Prints what is wrong and returns 1, or prints "ok".

#include <arpa/inet.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <future>

#include "verbs_end.hpp"

namespace {

using rnic::programs::listen_here;
using rnic::programs::need;
using rnic::programs::queues;
using rnic::programs::resolved;
using Memory = rnic::programs::Memory<>;

constexpr int kSeconds = 10;
constexpr uint32_t kReceives = 4;
constexpr uint32_t kLimit = 3;

/// The next event of the device; its type has to be the expected one.
ibv_async_event next_event(ibv_context* device, ibv_event_type type) {
  pollfd ready{device->async_fd, POLLIN, 0};
  need(0, poll(&ready, 1, kSeconds * 1000) == 1, "no event has come");
  ibv_async_event event{};
  need(ibv_get_async_event(device, &event), "ibv_get_async_event");
  if (event.event_type != type) {
    std::printf("event \"%s\" instead of \"%s\"\n", ibv_event_type_str(event.event_type),
                ibv_event_type_str(type));
    std::exit(1);
  }
  return event;
}

/// The end that a peer connects to, with a shared receive queue.
struct Server {
  explicit Server(rdma_cm_id* request) : id(request), pd(ibv_alloc_pd(id->verbs)), memory(pd) {
    ibv_srq_init_attr attr{};
    attr.attr = {.max_wr = kReceives, .max_sge = 1, .srq_limit = 0};
    srq = ibv_create_srq(pd, &attr);
    need(0, srq != nullptr, "ibv_create_srq");
    ibv_sge piece = memory.piece();
    for (uint32_t i = 0; i < kReceives; ++i) {
      ibv_recv_wr wr{};
      ibv_recv_wr* bad = nullptr;
      wr.sg_list = &piece;
      wr.num_sge = 1;
      need(ibv_post_srq_recv(srq, &wr, &bad), "ibv_post_srq_recv");
    }
    ibv_srq_attr limit{.max_wr = 0, .max_sge = 0, .srq_limit = kLimit};
    need(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), "ibv_modify_srq");
    cq = ibv_create_cq(id->verbs, 16, nullptr, nullptr, 0);
    ibv_qp_init_attr made = queues(cq, srq);
    need(rdma_create_qp(id, pd, &made), "rdma_create_qp");
    need(rdma_accept(id, nullptr), "rdma_accept");
  }

  rdma_cm_id* id;
  ibv_pd* pd;
  Memory memory;
  ibv_srq* srq = nullptr;
  ibv_cq* cq = nullptr;
};

struct Client {
  explicit Client(const sockaddr_in& to) : id(resolved(to)) {
    pd = ibv_alloc_pd(id->verbs);
    cq = ibv_create_cq(id->verbs, 16, nullptr, nullptr, 0);
    ibv_qp_init_attr made = queues(cq, nullptr);
    need(rdma_create_qp(id, pd, &made), "rdma_create_qp");
    rdma_conn_param param{};
    need(rdma_connect(id, &param), "rdma_connect");
  }

  void post(ibv_wr_opcode opcode, Memory& memory, uint32_t rkey) {
    ibv_sge piece = memory.piece();
    ibv_send_wr wr{};
    ibv_send_wr* bad = nullptr;
    wr.sg_list = &piece;
    wr.num_sge = 1;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.rkey = rkey;
    wr.wr.rdma.remote_addr = 4096;
    need(ibv_post_send(id->qp, &wr, &bad), "ibv_post_send");
  }

  rdma_cm_id* id;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
};

/// A queue pair that was reset and connected again: its events and completions are of it still.
void again(rdma_cm_id* listener, const sockaddr_in& here) {
  rdma_cm_id* request = nullptr;
  auto connecting = std::async(std::launch::async, [&] { return Client(here); });
  need(rdma_get_request(listener, &request), "rdma_get_request");
  Server server(request);
  Client client = connecting.get();
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  need(ibv_modify_qp(client.id->qp, &attr, IBV_QP_STATE), "to the error state");
  ibv_async_event last = next_event(server.id->verbs, IBV_EVENT_QP_LAST_WQE_REACHED);
  ibv_ack_async_event(&last);
  attr.qp_state = IBV_QPS_RESET;
  for (int left = 1000; ibv_modify_qp(client.id->qp, &attr, IBV_QP_STATE) != 0; --left) {
    need(0, left > 0, "the queue pair is not reset");
    poll(nullptr, 0, 10);  // its connection has not come to an end
  }
  ibv_qp* const qp = client.id->qp;
  rdma_destroy_qp(server.id);
  need(ibv_destroy_srq(server.srq), "ibv_destroy_srq");

  // The queue pair is the program's own now, and is given to another id.
  rdma_cm_id* const id = resolved(here);
  auto second = std::async(std::launch::async, [&] {
    rdma_conn_param param{};
    param.qp_num = qp->qp_num;
    id->qp = qp;
    need(rdma_connect(id, &param), "rdma_connect again");
  });
  need(rdma_get_request(listener, &request), "rdma_get_request");
  Server other(request);
  second.get();
  Memory memory(client.pd);
  client.post(IBV_WR_RDMA_WRITE, memory, 0x12345678);
  ibv_wc done{};
  while (ibv_poll_cq(client.cq, 1, &done) == 0) continue;
  need(0, done.qp_num == qp->qp_num, "a completion of another queue pair");
  bool told = false;
  while (!told) {
    ibv_async_event event{};
    pollfd ready{id->verbs->async_fd, POLLIN, 0};
    need(0, poll(&ready, 1, kSeconds * 1000) == 1, "no event of the queue pair that was reset");
    need(ibv_get_async_event(id->verbs, &event), "ibv_get_async_event");
    told = event.event_type == IBV_EVENT_QP_FATAL && event.element.qp == qp;
    ibv_ack_async_event(&event);
  }
  rdma_destroy_qp(id);
  rdma_destroy_qp(other.id);
  need(ibv_destroy_srq(other.srq), "ibv_destroy_srq");
}

/// What has completed on a queue pair that is gone is not told any more, and the rest is.
void forgotten(ibv_context* device) {
  ibv_pd* const pd = ibv_alloc_pd(device);
  ibv_cq* const cq = ibv_create_cq(device, 16, nullptr, nullptr, 0);
  ibv_qp* pairs[2];
  for (ibv_qp*& qp : pairs) {
    ibv_qp_init_attr made = queues(cq, nullptr);
    qp = ibv_create_qp(pd, &made);
    need(0, qp != nullptr, "ibv_create_qp");
    for (uint64_t id = 0; id < 3; ++id) {
      ibv_recv_wr wr{};
      ibv_recv_wr* bad = nullptr;
      wr.wr_id = id;
      need(ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
    }
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_ERR;
    need(ibv_modify_qp(qp, &attr, IBV_QP_STATE), "to the error state");
  }
  const uint32_t stays = pairs[1]->qp_num;
  need(ibv_destroy_qp(pairs[0]), "ibv_destroy_qp");
  ibv_wc done[8];
  need(0, ibv_poll_cq(cq, 8, done) == 3, "completions of a queue pair that is gone");
  for (uint64_t id = 0; id < 3; ++id) {
    need(0, done[id].qp_num == stays && done[id].wr_id == id, "another completion");
  }
  need(ibv_destroy_qp(pairs[1]), "ibv_destroy_qp");
  need(ibv_destroy_cq(cq), "ibv_destroy_cq");
  need(ibv_dealloc_pd(pd), "ibv_dealloc_pd");
}

}  // namespace

int main() {
  sockaddr_in here;
  rdma_cm_id* const listener = listen_here(here, 1);

  auto connecting = std::async(std::launch::async, [&] { return Client(here); });
  rdma_cm_id* request = nullptr;
  need(rdma_get_request(listener, &request), "rdma_get_request");
  Server server(request);
  Client client = connecting.get();
  Memory memory(client.pd);

  // Two of four receives are taken, and fewer than the limit are left.
  for (uint32_t i = 0; i + kLimit <= kReceives; ++i) client.post(IBV_WR_SEND, memory, 0);
  ibv_async_event few = next_event(server.id->verbs, IBV_EVENT_SRQ_LIMIT_REACHED);
  need(0, few.element.srq == server.srq, "another shared receive queue");
  ibv_ack_async_event(&few);

  // A Write to memory that was never registered. Both ends are of one open device: the events of
  // both come there. The queue pair's receives have come back before its error is told.
  client.post(IBV_WR_RDMA_WRITE, memory, 0x12345678);
  ibv_async_event last = next_event(server.id->verbs, IBV_EVENT_QP_LAST_WQE_REACHED);
  ibv_ack_async_event(&last);
  ibv_async_event access = next_event(server.id->verbs, IBV_EVENT_QP_ACCESS_ERR);
  need(0, access.element.qp == server.id->qp, "another queue pair");
  // The other end's event is left unread, and goes with its queue pair.
  auto destroying = std::async(std::launch::async, [&] { rdma_destroy_qp(server.id); });
  need(0, destroying.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout,
       "a queue pair went before its event was acknowledged");
  ibv_ack_async_event(&access);
  destroying.get();
  rdma_destroy_qp(client.id);
  again(listener, here);
  forgotten(server.id->verbs);
  need(ibv_destroy_srq(server.srq), "ibv_destroy_srq");
  pollfd ready{server.id->verbs->async_fd, POLLIN, 0};
  need(0, poll(&ready, 1, 0) == 0, "an event of a queue pair that is gone");
  std::puts("ok");
  return 0;
}
