/// \file
/// What programs of libibverbs and librdmacm that test the plugin have in common: one end of a
/// connection, made by calls of which none may fail.
#pragma once

#include <arpa/inet.h>
#include <rdma/rdma_cma.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace rnic::programs {

/// Ends the program, with the system's error, where a call did not go well.
template <typename Value>
Value need(Value value, bool good, const char* what) {
  if (good) return value;
  std::perror(what);
  std::exit(1);
}

inline void need(int status, const char* what) { need(status, status == 0, what); }

/// \param port in network order; 0: any
inline sockaddr_in loopback(uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  out.sin_port = port;
  return out;
}

/// What a queue pair is made with. \param srq nullptr: it has receives of its own
inline ibv_qp_init_attr queues(ibv_cq* cq, ibv_srq* srq, uint32_t depth = 8) {
  ibv_qp_init_attr attr{};
  attr.send_cq = cq;
  attr.recv_cq = cq;
  attr.srq = srq;
  attr.cap = {.max_send_wr = depth,
              .max_recv_wr = depth,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = 0};
  attr.qp_type = IBV_QPT_RC;
  return attr;
}

/// Octets that are registered.
template <size_t kOctets = 64>
struct Memory {
  std::array<char, kOctets> octets{};
  ibv_mr* region = nullptr;

  explicit Memory(ibv_pd* pd, int rights = IBV_ACCESS_LOCAL_WRITE) {
    region = ibv_reg_mr(pd, octets.data(), octets.size(), rights);
    need(0, region != nullptr, "ibv_reg_mr");
  }
  ibv_sge piece() { return piece(0, static_cast<uint32_t>(octets.size())); }
  ibv_sge piece(size_t from, uint32_t length) {
    return {reinterpret_cast<uintptr_t>(octets.data() + from), length, region->lkey};
  }
};

/// Listens at a free port of 127.0.0.1. \param here is set to that address
inline rdma_cm_id* listen_here(sockaddr_in& here, int backlog) {
  rdma_cm_id* listener = nullptr;
  here = loopback(0);
  need(rdma_create_id(nullptr, &listener, nullptr, RDMA_PS_TCP), "rdma_create_id");
  need(rdma_bind_addr(listener, reinterpret_cast<sockaddr*>(&here)), "rdma_bind_addr");
  need(rdma_listen(listener, backlog), "rdma_listen");
  here.sin_port = rdma_get_src_port(listener);
  return listener;
}

/// An id that knows its way to `to`.
inline rdma_cm_id* resolved(const sockaddr_in& to) {
  rdma_cm_id* id = nullptr;
  sockaddr_in target = to;
  need(rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP), "rdma_create_id");
  need(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&target), 1000),
       "rdma_resolve_addr");
  need(rdma_resolve_route(id, 1000), "rdma_resolve_route");
  return id;
}

}  // namespace rnic::programs
