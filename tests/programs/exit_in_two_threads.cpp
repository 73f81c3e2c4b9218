// A program of librdmacm that connects to a server, and then calls exit(). Its other thread waits
// for events, is told of the connection's end by that, and calls exit(), too, while the first one
// is in it: with a status of its own, as rping does. Prints "ok" before.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "verbs_end.hpp"

namespace {

using rnic::programs::need;
using rnic::programs::queues;
using rnic::programs::resolved;

void say(const char* line) { static_cast<void>(!write(STDOUT_FILENO, line, std::strlen(line))); }

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
  rdma_conn_param param{};
  need(rdma_connect(id, &param), "rdma_connect");
  rdma_event_channel* const channel = rdma_create_event_channel();
  need(0, channel != nullptr, "rdma_create_event_channel");
  need(rdma_migrate_id(id, channel), "rdma_migrate_id");
  std::thread([channel] {
    rdma_cm_event* event = nullptr;
    static_cast<void>(rdma_get_cm_event(channel, &event));
    say("the second thread exits\n");
    std::exit(3);  // no program may while another thread does
  }).detach();
  say("ok\n");
  std::exit(0);
}
