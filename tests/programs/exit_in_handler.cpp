// A program of libibverbs and librdmacm that polls a completion queue until the handler of a signal
// ends it by exit(), wherever it is then. Prints "ok" before.

#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "verbs_end.hpp"

int main(int argc, char** argv) {
  using rnic::programs::need;
  need(0, argc == 2, "usage: exit_in_handler ADDRESS");
  rdma_cm_id* id = nullptr;
  sockaddr_in here{};
  here.sin_family = AF_INET;
  need(0, inet_pton(AF_INET, argv[1], &here.sin_addr) == 1, "the address");
  need(rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP), "rdma_create_id");
  need(rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&here)), "rdma_bind_addr");
  ibv_cq* const cq = ibv_create_cq(id->verbs, 16, nullptr, nullptr, 0);
  need(0, cq != nullptr, "ibv_create_cq");
  struct sigaction ends {};
  ends.sa_handler = [](int) {
    static_cast<void>(!write(STDOUT_FILENO, "ok\n", 3));
    std::exit(0);  // as many programs do, although no handler may
  };
  need(sigaction(SIGALRM, &ends, nullptr), "sigaction");
  const itimerval soon{{0, 0}, {0, 50'000}};
  need(setitimer(ITIMER_REAL, &soon, nullptr), "setitimer");
  for (ibv_wc done;;) need(0, ibv_poll_cq(cq, 1, &done) == 0, "a completion");
}
