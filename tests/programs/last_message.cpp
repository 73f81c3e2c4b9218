// A program of libibverbs and librdmacm whose server sends one message on each connection and ends
// it at once. The client looks for receives, for sends and for events in turn, each in a queue of
// its own, and has to come upon the message before the end. Prints what is wrong and returns 1, or
// prints "ok".
//
// The end is held back for 20 ms at most where nobody looks for completions. A client that the
// machine gives no processor for so long, between its looks, says nothing of that connection.

#include <fcntl.h>
#include <poll.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "verbs_end.hpp"

namespace {

using rnic::programs::listen_here;
using rnic::programs::need;
using rnic::programs::queues;
using rnic::programs::resolved;
using Memory = rnic::programs::Memory<>;

constexpr int kConnections = 200;

/// One end, with completion queues of its own.
struct End {
  explicit End(rdma_cm_id* made)
      : id(made), pd(ibv_alloc_pd(id->verbs)), memory(pd),
        receives(ibv_create_cq(id->verbs, 4, nullptr, nullptr, 0)),
        sends(ibv_create_cq(id->verbs, 4, nullptr, nullptr, 0)) {
    need(0, receives != nullptr && sends != nullptr, "ibv_create_cq");
    ibv_qp_init_attr attr = queues(receives, nullptr, 2);
    attr.send_cq = sends;
    need(rdma_create_qp(id, pd, &attr), "rdma_create_qp");
  }
  ~End() {
    rdma_destroy_qp(id);
    for (ibv_cq* cq : {receives, sends}) need(ibv_destroy_cq(cq), "ibv_destroy_cq");
    need(ibv_dereg_mr(memory.region), "ibv_dereg_mr");
    need(ibv_dealloc_pd(pd), "ibv_dealloc_pd");
    need(rdma_destroy_id(id), "rdma_destroy_id");
  }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  rdma_cm_id* id;
  ibv_pd* pd;
  Memory memory;
  ibv_cq* receives;
  ibv_cq* sends;
};

void serve(rdma_cm_id* listener) {
  rdma_cm_id* request = nullptr;
  need(rdma_get_request(listener, &request), "rdma_get_request");
  End end(request);
  need(rdma_accept(end.id, nullptr), "rdma_accept");
  ibv_sge piece = end.memory.piece();
  ibv_send_wr wr{};
  ibv_send_wr* bad = nullptr;
  wr.sg_list = &piece;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  need(ibv_post_send(end.id->qp, &wr, &bad), "ibv_post_send");
  ibv_wc done{};
  while (ibv_poll_cq(end.sends, 1, &done) == 0) std::this_thread::yield();
  need(0, done.status == IBV_WC_SUCCESS, "the Send");
  need(rdma_disconnect(end.id), "rdma_disconnect");
}

enum class First { Message, End, Unknown };

/// \return what the client came upon first
First call(const sockaddr_in& here) {
  End end(resolved(here));
  ibv_sge piece = end.memory.piece();
  for (int receives = 0; receives < 2; ++receives) {
    ibv_recv_wr wr{};
    ibv_recv_wr* bad = nullptr;
    wr.sg_list = &piece;
    wr.num_sge = 1;
    need(ibv_post_recv(end.id->qp, &wr, &bad), "ibv_post_recv");
  }
  rdma_conn_param param{};
  need(rdma_connect(end.id, &param), "rdma_connect");
  for (bool come = false;;) {
    ibv_wc done{};
    const auto looked = std::chrono::steady_clock::now();
    while (ibv_poll_cq(end.receives, 1, &done) != 0) {
      come = come || done.status == IBV_WC_SUCCESS;
    }
    while (ibv_poll_cq(end.sends, 1, &done) != 0) continue;
    pollfd events{end.id->channel->fd, POLLIN, 0};
    if (poll(&events, 1, 0) == 0) continue;
    rdma_cm_event* event = nullptr;
    need(rdma_get_cm_event(end.id->channel, &event), "rdma_get_cm_event");
    need(0, event->event == RDMA_CM_EVENT_DISCONNECTED, "another event than the end");
    need(rdma_ack_cm_event(event), "rdma_ack_cm_event");
    if (come) return First::Message;
    const auto between_looks = std::chrono::steady_clock::now() - looked;
    return between_looks < std::chrono::milliseconds(15) ? First::End : First::Unknown;
  }
}

}  // namespace

int main() {
  sockaddr_in here;
  rdma_cm_id* const listener = listen_here(here, 1);
  int early = 0;
  int unknown = 0;
  for (int i = 0; i < kConnections; ++i) {
    std::thread serving([listener] { serve(listener); });
    const First first = call(here);
    early += first == First::End ? 1 : 0;
    unknown += first == First::Unknown ? 1 : 0;
    serving.join();
  }
  need(rdma_destroy_id(listener), "rdma_destroy_id");
  if (early != 0) std::printf("%d of %d ends were told before the message\n", early, kConnections);
  if (unknown != 0) std::printf("%d of %d connections say nothing\n", unknown, kConnections);
  const bool good = early == 0 && unknown <= kConnections / 2;
  if (good) std::puts("ok");
  return good ? 0 : 1;
}
