/// \file
/// The private interface between libibverbs and its providers, as version 34 has it (rdma-core 34
/// to 56): which functions a provider gives, in which order. libibverbs-dev has no header for it.
/// The layout is the whole of it, so each member that softrnic does not fill is a slot without a
/// type.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

namespace rnic::run::abi {

using Slot = void (*)();

struct Link {
  Link* next;
  Link* prev;
};

/// What a provider is found by.
struct Match {
  void* driver_data;
  union {
    const char* modalias;
    uint64_t driver_id;
  } u;
  uint16_t vendor;
  uint16_t device;
  uint8_t kind;
};
inline constexpr uint8_t kMatchModalias = 2;

struct Device;
struct SysfsDevice;  // libibverbs' own

struct DeviceOps {
  const char* name;
  uint32_t match_min_abi_version;
  uint32_t match_max_abi_version;
  const Match* match_table;
  const DeviceOps** static_providers;
  Slot match_device;
  verbs_context* (*alloc_context)(ibv_device*, int command_fd, void* private_data);
  Slot import_context;
  Device* (*alloc_device)(SysfsDevice*);
  void (*uninit_device)(Device*);
};

struct Device {
  ibv_device device;
  const DeviceOps* ops;
  int refcount;
  Link entry;
  SysfsDevice* sysfs;
  uint64_t core_support;
};

struct Region {
  ibv_mr mr;
  int type;  // 0: memory of the program
  int access;
};

struct QueuePair {
  union {
    ibv_qp qp;
    ibv_qp_ex qp_ex;
  };
  uint32_t comp_mask;
  void* xrcd;
};

inline constexpr uint32_t kQueuePairEx = 1u << 1;  // of comp_mask: qp_ex is filled in

struct CompletionQueue {
  union {
    ibv_cq cq;
    ibv_cq_ex cq_ex;
  };
};

/// The operations of an open device, in the order of their names.
struct ContextOps {
  Slot advise_mr;
  Slot alloc_dm;
  ibv_mw* (*alloc_mw)(ibv_pd*, ibv_mw_type);
  Slot alloc_null_mr;
  Slot alloc_parent_domain;
  ibv_pd* (*alloc_pd)(ibv_context*);
  Slot alloc_td;
  Slot async_event;
  Slot attach_counters_point_flow;
  Slot attach_mcast;
  int (*bind_mw)(ibv_qp*, ibv_mw*, ibv_mw_bind*);
  Slot close_xrcd;
  void (*cq_event)(ibv_cq*);
  Slot create_ah;
  Slot create_counters;
  ibv_cq* (*create_cq)(ibv_context*, int cqe, ibv_comp_channel*, int vector);
  ibv_cq_ex* (*create_cq_ex)(ibv_context*, ibv_cq_init_attr_ex*);
  Slot create_flow;
  Slot create_flow_action_esp;
  ibv_qp* (*create_qp)(ibv_pd*, ibv_qp_init_attr*);
  ibv_qp* (*create_qp_ex)(ibv_context*, ibv_qp_init_attr_ex*);
  Slot create_rwq_ind_table;
  ibv_srq* (*create_srq)(ibv_pd*, ibv_srq_init_attr*);
  Slot create_srq_ex;
  Slot create_wq;
  int (*dealloc_mw)(ibv_mw*);
  int (*dealloc_pd)(ibv_pd*);
  Slot dealloc_td;
  int (*dereg_mr)(Region*);
  Slot destroy_ah;
  Slot destroy_counters;
  int (*destroy_cq)(ibv_cq*);
  Slot destroy_flow;
  Slot destroy_flow_action;
  int (*destroy_qp)(ibv_qp*);
  Slot destroy_rwq_ind_table;
  int (*destroy_srq)(ibv_srq*);
  Slot destroy_wq;
  Slot detach_mcast;
  void (*free_context)(ibv_context*);
  Slot free_dm;
  Slot get_srq_num;
  Slot import_dm;
  Slot import_mr;
  Slot import_pd;
  Slot modify_cq;
  Slot modify_flow_action_esp;
  int (*modify_qp)(ibv_qp*, ibv_qp_attr*, int mask);
  Slot modify_qp_rate_limit;
  int (*modify_srq)(ibv_srq*, ibv_srq_attr*, int mask);
  Slot modify_wq;
  Slot open_qp;
  Slot open_xrcd;
  int (*poll_cq)(ibv_cq*, int count, ibv_wc*);
  int (*post_recv)(ibv_qp*, ibv_recv_wr*, ibv_recv_wr** bad);
  int (*post_send)(ibv_qp*, ibv_send_wr*, ibv_send_wr** bad);
  Slot post_srq_ops;
  int (*post_srq_recv)(ibv_srq*, ibv_recv_wr*, ibv_recv_wr** bad);
  int (*query_device_ex)(ibv_context*, const ibv_query_device_ex_input*, ibv_device_attr_ex*,
                         size_t size);
  Slot query_ece;
  int (*query_port)(ibv_context*, uint8_t port, ibv_port_attr*);
  int (*query_qp)(ibv_qp*, ibv_qp_attr*, int mask, ibv_qp_init_attr*);
  Slot query_qp_data_in_order;
  Slot query_rt_values;
  int (*query_srq)(ibv_srq*, ibv_srq_attr*);
  Slot read_counters;
  Slot reg_dm_mr;
  Slot reg_dmabuf_mr;
  ibv_mr* (*reg_mr)(ibv_pd*, void* memory, size_t length, uint64_t offset, int access);
  int (*req_notify_cq)(ibv_cq*, int solicited_only);
  int (*rereg_mr)(Region*, int flags, ibv_pd*, void* memory, size_t length, int access);
  int (*resize_cq)(ibv_cq*, int cqe);
  Slot set_ece;
  Slot unimport_dm;
  Slot unimport_mr;
  Slot unimport_pd;
};

// The layout of version 34 on x86-64, measured with a program built against rdma-core 44.
static_assert(sizeof(DeviceOps) == 72);
static_assert(sizeof(Device) == 712 && offsetof(Device, ops) == 664);
static_assert(offsetof(Device, core_support) == 704);
static_assert(sizeof(ContextOps) == 76 * sizeof(Slot));
static_assert(offsetof(ContextOps, create_qp) == 19 * sizeof(Slot));
static_assert(offsetof(ContextOps, poll_cq) == 53 * sizeof(Slot));
static_assert(offsetof(ContextOps, reg_mr) == 68 * sizeof(Slot));

extern "C" {
void verbs_register_driver_34(const DeviceOps*);
void* _verbs_init_and_alloc_context(ibv_device*, int command_fd, size_t size, verbs_context* offset,
                                    uint32_t driver_id);
void verbs_uninit_context(verbs_context*);
void verbs_set_ops(verbs_context*, const ContextOps*);
}

}  // namespace rnic::run::abi
