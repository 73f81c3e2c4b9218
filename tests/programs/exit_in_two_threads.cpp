// A program of librdmacm that connects to an address where nobody is. Two of its threads then call
// exit(), the second one as soon as the first one is in it. Prints "ok" before.

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "verbs_end.hpp"

namespace {

using rnic::programs::need;
using rnic::programs::queues;
using rnic::programs::resolved;

std::atomic<bool> first_is_in_it{false};

}  // namespace

int main(int argc, char** argv) {
  need(0, argc == 2, "usage: exit_in_two_threads ADDRESS");
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = htons(7174);
  need(0, inet_pton(AF_INET, argv[1], &there.sin_addr) == 1, "the address");
  rdma_cm_id* const id = resolved(there);
  ibv_qp_init_attr attr = queues(nullptr, nullptr);
  need(rdma_create_qp(id, nullptr, &attr), "rdma_create_qp");
  // With a channel of its own it does not wait for the peer, which there is not.
  rdma_event_channel* const channel = rdma_create_event_channel();
  need(0, channel != nullptr, "rdma_create_event_channel");
  need(rdma_migrate_id(id, channel), "rdma_migrate_id");
  rdma_conn_param param{};
  need(rdma_connect(id, &param), "rdma_connect");
  // Of what is registered the last comes first: this stands before the plugin's own.
  need(std::atexit([] { first_is_in_it = true; }), "atexit");
  std::thread([] {
    while (!first_is_in_it) continue;
    std::exit(0);  // as rping does, although no program may
  }).detach();
  static_cast<void>(!write(STDOUT_FILENO, "ok\n", 3));
  std::exit(0);
}
