// A program of libibverbs and librdmacm to be built with a sanitizer. It keeps what it makes of the
// device until it ends, and has one fault if its argument names it: it leaks 13 octets ("leak"), or
// two threads write to a number ("race"). Prints "ok" at last.

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "verbs_end.hpp"

namespace {

using rnic::programs::listen_here;
using rnic::programs::need;
using rnic::programs::queues;
using rnic::programs::resolved;

rdma_cm_id* listener = nullptr;
rdma_cm_id* id = nullptr;
ibv_pd* pd = nullptr;
ibv_cq_ex* cq = nullptr;
ibv_qp* qp = nullptr;
void* volatile lost = nullptr;
int written = 0;

void make() {
  sockaddr_in here{};
  listener = listen_here(here, 1);
  id = resolved(here);
  pd = ibv_alloc_pd(id->verbs);
  ibv_cq_init_attr_ex attr{};
  attr.cqe = 8;
  cq = ibv_create_cq_ex(id->verbs, &attr);
  need(0, pd != nullptr && cq != nullptr, "ibv_create_cq_ex");
}

/// A queue pair of its own, used by calls that keep a lock of the device's between them.
void use() {
  static rnic::programs::Memory<> memory(pd);
  const ibv_qp_init_attr plain = queues(ibv_cq_ex_to_cq(cq), nullptr);
  ibv_qp_init_attr_ex attr{};
  attr.send_cq = plain.send_cq;
  attr.recv_cq = plain.recv_cq;
  attr.cap = plain.cap;
  attr.qp_type = plain.qp_type;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attr.pd = pd;
  attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
  qp = ibv_create_qp_ex(id->verbs, &attr);
  need(0, qp != nullptr, "ibv_create_qp_ex");
  ibv_qp_ex* const batch = ibv_qp_to_qp_ex(qp);
  ibv_wr_start(batch);
  ibv_wr_abort(batch);
  ibv_sge piece = memory.piece();
  ibv_recv_wr wr{};
  ibv_recv_wr* bad = nullptr;
  wr.sg_list = &piece;
  wr.num_sge = 1;
  need(ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
  ibv_qp_attr change{};
  change.qp_state = IBV_QPS_ERR;
  need(ibv_modify_qp(qp, &change, IBV_QP_STATE), "ibv_modify_qp");
  ibv_poll_cq_attr none{};
  while (ibv_start_poll(cq, &none) == ENOENT) std::this_thread::yield();
  need(0, cq->status == IBV_WC_WR_FLUSH_ERR, "the receive");
  ibv_end_poll(cq);
}

void fork_once() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  int status = 0;
  need(0, waitpid(child, &status, 0) == child && status == 0, "the child");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view fault = argc == 2 ? argv[1] : "";
  make();
  use();
  fork_once();
  if (fault == "leak") {
    lost = std::malloc(13);
    lost = nullptr;
  }
  if (fault == "race") {
    std::thread one([] { ++written; });
    std::thread other([] { ++written; });
    one.join();
    other.join();
  }
  std::puts("ok");
  return 0;
}
