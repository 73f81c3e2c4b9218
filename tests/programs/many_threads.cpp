// A program of libibverbs and librdmacm with many threads: both ends of several connections in one
// process, a thread that posts and one that polls on each queue pair, receivers that sleep, and one
// that makes and destroys objects meanwhile. Each Write and each Send is compared. Prints what is
// wrong and returns 1, or prints "ok". The first argument tells how many messages a connection
// carries.

#include <rdma/rdma_cma.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "verbs_end.hpp"

namespace {

using rnic::programs::listen_here;
using rnic::programs::need;
using rnic::programs::queues;
using rnic::programs::resolved;

constexpr uint32_t kPairs = 3;
constexpr uint32_t kSlots = 8;  // messages of a connection at once
constexpr uint32_t kWritten = 4096;
constexpr uint32_t kSent = 256;
constexpr int kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

/// A place for a message: what a Write takes there, and what the Send behind it does.
constexpr uint32_t kSlotOctets = kWritten + kSent;
using Octets = rnic::programs::Memory<size_t{kSlots} * kSlotOctets>;

/// Where the peer may write: each side's private data.
struct Target {
  uint64_t address;
  uint32_t rkey;
};

char octet_of(uint32_t message, uint32_t at) { return static_cast<char>(message * 7 + at); }

/// One end of a connection. Both ends have their slots, and sleep for completions.
struct End {
  explicit End(rdma_cm_id* made)
      : id(made),
        pd(ibv_alloc_pd(id->verbs)),
        memory(std::make_unique<Octets>(pd, kRights)),
        channel(ibv_create_comp_channel(id->verbs)),
        cq(ibv_create_cq(id->verbs, 4 * kSlots, nullptr, channel, 0)) {
    need(0, cq != nullptr, "ibv_create_cq");
    need(ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
    ibv_qp_init_attr attr = queues(cq, nullptr, 2 * kSlots);
    need(rdma_create_qp(id, pd, &attr), "rdma_create_qp");
    for (uint32_t slot = 0; slot < kSlots; ++slot) receive(slot);
  }
  ~End() {
    rdma_destroy_qp(id);
    need(ibv_destroy_cq(cq), "ibv_destroy_cq");
    need(ibv_destroy_comp_channel(channel), "ibv_destroy_comp_channel");
    need(ibv_dereg_mr(memory->region), "ibv_dereg_mr");
    need(ibv_dealloc_pd(pd), "ibv_dealloc_pd");
    need(rdma_destroy_id(id), "rdma_destroy_id");
  }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  [[nodiscard]] Target target() const {
    return {reinterpret_cast<uintptr_t>(memory->octets.data()), memory->region->rkey};
  }
  char* slot(uint32_t number) { return memory->octets.data() + size_t{number} * kSlotOctets; }

  void receive(uint32_t slot) {
    ibv_sge piece = memory->piece(size_t{slot} * kSlotOctets + kWritten, kSent);
    ibv_recv_wr wr{};
    ibv_recv_wr* bad = nullptr;
    wr.wr_id = slot;
    wr.sg_list = &piece;
    wr.num_sge = 1;
    need(ibv_post_recv(id->qp, &wr, &bad), "ibv_post_recv");
  }
  /// A Write to the peer's slot, if it has a target, and a Send.
  void send(uint32_t message, const Target* to) {
    const uint32_t number = message % kSlots;
    ibv_sge written = memory->piece(size_t{number} * kSlotOctets, kWritten);
    ibv_sge sent = memory->piece(size_t{number} * kSlotOctets + kWritten, kSent);
    ibv_send_wr wrs[2]{};
    wrs[0].next = &wrs[1];
    wrs[0].sg_list = &written;
    wrs[0].opcode = IBV_WR_RDMA_WRITE;
    wrs[1].sg_list = &sent;
    wrs[1].opcode = IBV_WR_SEND;
    wrs[1].send_flags = IBV_SEND_SIGNALED;
    wrs[0].num_sge = wrs[1].num_sge = 1;
    if (to != nullptr) {
      wrs[0].wr.rdma.remote_addr = to->address + uint64_t{number} * kSlotOctets;
      wrs[0].wr.rdma.rkey = to->rkey;
    }
    ibv_send_wr* bad = nullptr;
    need(ibv_post_send(id->qp, to != nullptr ? &wrs[0] : &wrs[1], &bad), "ibv_post_send");
  }
  /// Sleeps until completions come, and gives each to `take`. Behind the last message the peer ends
  /// the connection, and receives that are left come back. \param misses whether one is to come
  template <typename Take, typename Misses>
  void wait(Take take, Misses misses) {
    ibv_cq* ready = nullptr;
    void* context = nullptr;
    need(ibv_get_cq_event(channel, &ready, &context), "ibv_get_cq_event");
    ibv_ack_cq_events(ready, 1);
    need(ibv_req_notify_cq(ready, 0), "ibv_req_notify_cq");
    ibv_wc done[4];
    for (int count = 0; (count = ibv_poll_cq(cq, 4, done)) != 0;) {
      need(0, count > 0, "ibv_poll_cq");
      for (int i = 0; i < count; ++i) {
        if (done[i].status == IBV_WC_WR_FLUSH_ERR && !misses()) continue;
        if (done[i].status != IBV_WC_SUCCESS) {
          std::printf("a completion: %s\n", ibv_wc_status_str(done[i].status));
          std::exit(1);
        }
        take(done[i]);
      }
    }
  }

  rdma_cm_id* id;
  ibv_pd* pd;
  std::unique_ptr<Octets> memory;
  ibv_comp_channel* channel;
  ibv_cq* cq;
};

/// Compares what has come, and answers each message by an empty one.
void serve(End& end, uint32_t messages) {
  uint32_t come = 0;
  uint32_t answered = 0;
  const auto misses = [&] { return come < messages || answered < messages; };
  const auto take = [&](const ibv_wc& done) {
    if (done.opcode != IBV_WC_RECV) return void(++answered);
    const auto slot = static_cast<uint32_t>(done.wr_id);
    const char* octets = end.slot(slot);
    for (uint32_t at = 0; at < kSlotOctets; ++at) {
      if (octets[at] == octet_of(come, at)) continue;
      std::printf("octet %u of message %u is wrong\n", at, come);
      std::exit(1);
    }
    end.receive(slot);
    end.send(come++, nullptr);
  };
  while (misses()) end.wait(take, misses);
}

/// One thread posts, another one polls the same queue pair.
void call(End& end, const Target& to, uint32_t messages) {
  std::atomic<uint32_t> answers{0};
  std::thread posting([&] {
    for (uint32_t message = 0; message < messages; ++message) {
      while (message - answers.load() >= kSlots) std::this_thread::yield();
      char* octets = end.slot(message % kSlots);
      for (uint32_t at = 0; at < kSlotOctets; ++at) octets[at] = octet_of(message, at);
      end.send(message, &to);
    }
  });
  uint32_t sent = 0;
  std::vector<uint32_t> free_slots;
  const auto misses = [&] { return sent + answers.load() + free_slots.size() < 2 * messages; };
  const auto take = [&](const ibv_wc& done) {
    if (done.opcode != IBV_WC_RECV) return void(++sent);
    free_slots.push_back(static_cast<uint32_t>(done.wr_id));
  };
  while (misses()) {
    end.wait(take, misses);
    // An answer overwrites the Send's part of a slot: it goes back before the slot is used again.
    for (const uint32_t slot : free_slots) end.receive(slot);
    answers += static_cast<uint32_t>(free_slots.size());
    free_slots.clear();
  }
  posting.join();
}

/// Makes and destroys objects of the device until it is told to stop.
void churn(ibv_context* device, const std::atomic<bool>& stop) {
  while (!stop.load()) {
    ibv_pd* const pd = ibv_alloc_pd(device);
    ibv_cq* const cq = ibv_create_cq(device, 16, nullptr, nullptr, 0);
    need(0, pd != nullptr && cq != nullptr, "ibv_create_cq");
    ibv_qp_init_attr attr = queues(cq, nullptr);
    ibv_qp* const qp = ibv_create_qp(pd, &attr);
    need(0, qp != nullptr, "ibv_create_qp");
    ibv_mw* const window = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
    {
      rnic::programs::Memory<> memory(pd, kRights);
      ibv_qp_attr asked{};
      ibv_qp_init_attr made{};
      need(ibv_query_qp(qp, &asked, IBV_QP_STATE, &made), "ibv_query_qp");
      need(ibv_dereg_mr(memory.region), "ibv_dereg_mr");
    }
    need(ibv_dealloc_mw(window), "ibv_dealloc_mw");
    need(ibv_destroy_qp(qp), "ibv_destroy_qp");
    need(ibv_resize_cq(cq, 64), "ibv_resize_cq");
    need(ibv_destroy_cq(cq), "ibv_destroy_cq");
    need(ibv_dealloc_pd(pd), "ibv_dealloc_pd");
  }
}

/// The end that connects, in a thread of its own.
void connect_and_call(const sockaddr_in& here, uint32_t messages) {
  End end(resolved(here));
  rdma_conn_param param{};
  param.retry_count = param.rnr_retry_count = 7;
  need(rdma_connect(end.id, &param), "rdma_connect");
  Target to{};
  const rdma_conn_param& answer = end.id->event->param.conn;
  need(0, answer.private_data_len >= sizeof(to), "the private data of the server");
  std::memcpy(&to, answer.private_data, sizeof(to));
  call(end, to, messages);
  // The server ends the connection, when its last answer has completed.
  rdma_cm_event* event = nullptr;
  need(rdma_get_cm_event(end.id->channel, &event), "rdma_get_cm_event");
  need(0, event->event == RDMA_CM_EVENT_DISCONNECTED, "another event than the server's end");
  need(rdma_ack_cm_event(event), "rdma_ack_cm_event");
}

void accept_and_serve(rdma_cm_id* request, uint32_t messages) {
  End end(request);
  const Target target = end.target();
  rdma_conn_param param{};
  param.private_data = &target;
  param.private_data_len = sizeof(target);
  need(rdma_accept(end.id, &param), "rdma_accept");
  serve(end, messages);
  need(rdma_disconnect(end.id), "rdma_disconnect");
}

}  // namespace

int main(int argc, char** argv) {
  const uint32_t messages = argc > 1 ? static_cast<uint32_t>(std::atoi(argv[1])) : 1000;
  sockaddr_in here;
  rdma_cm_id* const listener = listen_here(here, kPairs);
  std::vector<std::thread> threads;
  std::atomic<bool> stop{false};
  std::thread churning;
  for (uint32_t pair = 0; pair < kPairs; ++pair) {
    threads.emplace_back([&] { connect_and_call(here, messages); });
  }
  for (uint32_t pair = 0; pair < kPairs; ++pair) {
    rdma_cm_id* request = nullptr;
    need(rdma_get_request(listener, &request), "rdma_get_request");
    ibv_context* const device = request->verbs;
    if (pair == 0) churning = std::thread([device, &stop] { churn(device, stop); });
    threads.emplace_back([request, messages] { accept_and_serve(request, messages); });
  }
  for (std::thread& each : threads) each.join();
  stop = true;
  churning.join();
  need(rdma_destroy_id(listener), "rdma_destroy_id");
  std::puts("ok");
  return 0;
}
