/// \file
/// The private interface between libibverbs and its providers: which functions a provider gives, in
/// which order, in each version that the plugin can be loaded by. libibverbs-dev has no header for
/// it. The layout is the whole of it, so each member that softrnic does not fill is a slot without
/// a type.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace rnic::run::abi {

using Slot = void (*)();

/// What the layouts differ in.
struct Layout {
  bool dma_handles = false;   ///< has alloc_dmah, dealloc_dmah, reg_mr_ex
  bool port_speed = false;    ///< has dm_export_dmabuf_fd, query_port_speed
  bool buffers = false;       ///< has alloc_buf, free_buf
  size_t added_in_front = 0;  ///< words by which verbs_context, which grows downwards, has grown
};

// Each has the number of the release of rdma-core that came with it. The version does not tell all
// of them apart: rdma-core 34 and 35 are of version 34, too, but have fewer operations and are not
// taken, and 59 is the version of two layouts.
inline constexpr Layout kOf36{};                        // version 34 up to 56; 57 in 57 and 58
inline constexpr Layout kOf59{true, false, false, 3};   // version 59 up to 61
inline constexpr Layout kOf62{true, true, false, 4};    // version 59 in 62 and 63
inline constexpr Layout kOf64{true, true, true, 6};     // version 64

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

/// A queue pair, and behind it whether its functions for batches are filled in. ibv_qp_ex has grown
/// by a function in rdma-core 44 and by one in 45, and nothing tells a provider by which of them it
/// was loaded. So the mark stands in each place where one looks for it. The other releases have a
/// function there that the device does not offer, or the domain that a queue pair of XRC has.
struct QueuePair {
  static constexpr size_t kFunctionsEnd = offsetof(ibv_qp_ex, wr_abort) + sizeof(Slot);
  static constexpr std::array<size_t, 3> kMarks = {
      kFunctionsEnd, kFunctionsEnd + sizeof(Slot), kFunctionsEnd + 2 * sizeof(Slot)};
  static constexpr size_t kEnd = kMarks.back() + sizeof(uint64_t) + sizeof(void*);

  union {
    ibv_qp qp;
    ibv_qp_ex qp_ex;
    std::array<std::byte, kEnd> whole;
  };

  void mark_extended() {
    constexpr uint32_t kExtended = 1u << 1;
    for (const size_t at : kMarks) std::memcpy(whole.data() + at, &kExtended, sizeof(kExtended));
  }
};

struct CompletionQueue {
  union {
    ibv_cq cq;
    ibv_cq_ex cq_ex;
  };
};

/// In the place of a slot that a layout does not have. It takes no room as long as no two are of
/// one type.
template <int kWhich>
struct Absent {};
template <bool kThere, int kWhich>
using SlotIf = std::conditional_t<kThere, Slot, Absent<kWhich>>;

/// The operations of an open device, in the order of their names.
template <Layout kLayout>
struct ContextOps {
  Slot advise_mr;
  [[no_unique_address]] SlotIf<kLayout.buffers, 1> alloc_buf;
  Slot alloc_dm;
  [[no_unique_address]] SlotIf<kLayout.dma_handles, 2> alloc_dmah;
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
  [[no_unique_address]] SlotIf<kLayout.dma_handles, 3> dealloc_dmah;
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
  [[no_unique_address]] SlotIf<kLayout.port_speed, 4> dm_export_dmabuf_fd;
  [[no_unique_address]] SlotIf<kLayout.buffers, 5> free_buf;
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
  ibv_xrcd* (*open_xrcd)(ibv_context*, ibv_xrcd_init_attr*);
  int (*poll_cq)(ibv_cq*, int count, ibv_wc*);
  int (*post_recv)(ibv_qp*, ibv_recv_wr*, ibv_recv_wr** bad);
  int (*post_send)(ibv_qp*, ibv_send_wr*, ibv_send_wr** bad);
  Slot post_srq_ops;
  int (*post_srq_recv)(ibv_srq*, ibv_recv_wr*, ibv_recv_wr** bad);
  int (*query_device_ex)(ibv_context*, const ibv_query_device_ex_input*, ibv_device_attr_ex*,
                         size_t size);
  Slot query_ece;
  int (*query_port)(ibv_context*, uint8_t port, ibv_port_attr*);
  [[no_unique_address]] SlotIf<kLayout.port_speed, 6> query_port_speed;
  int (*query_qp)(ibv_qp*, ibv_qp_attr*, int mask, ibv_qp_init_attr*);
  Slot query_qp_data_in_order;
  Slot query_rt_values;
  int (*query_srq)(ibv_srq*, ibv_srq_attr*);
  Slot read_counters;
  Slot reg_dm_mr;
  Slot reg_dmabuf_mr;
  ibv_mr* (*reg_mr)(ibv_pd*, void* memory, size_t length, uint64_t offset, int access);
  [[no_unique_address]] SlotIf<kLayout.dma_handles, 7> reg_mr_ex;
  int (*req_notify_cq)(ibv_cq*, int solicited_only);
  int (*rereg_mr)(Region*, int flags, ibv_pd*, void* memory, size_t length, int access);
  int (*resize_cq)(ibv_cq*, int cqe);
  Slot set_ece;
  Slot unimport_dm;
  Slot unimport_mr;
  Slot unimport_pd;
};

/// Where ibv_context stands in verbs_context, which ends with it.
constexpr size_t context_at(Layout layout) {
  constexpr size_t kAtFirst = 320;
  return kAtFirst + layout.added_in_front * sizeof(Slot);
}

/// Where members stand on x86-64, in words, measured with programs built against the headers of the
/// releases.
struct Measured {
  size_t context_at;
  size_t operations;
  size_t alloc_pd;
  size_t create_qp;
  size_t dealloc_mw;
  size_t free_context;
  size_t poll_cq;
  size_t query_qp;
  size_t reg_mr;
  size_t req_notify_cq;
  size_t unimport_pd;

  bool operator==(const Measured&) const = default;
};

template <Layout kLayout>
consteval Measured laid_out() {
  using Ops = ContextOps<kLayout>;
  constexpr size_t kWord = sizeof(Slot);
  return {.context_at = context_at(kLayout) / kWord,
          .operations = sizeof(Ops) / kWord,
          .alloc_pd = offsetof(Ops, alloc_pd) / kWord,
          .create_qp = offsetof(Ops, create_qp) / kWord,
          .dealloc_mw = offsetof(Ops, dealloc_mw) / kWord,
          .free_context = offsetof(Ops, free_context) / kWord,
          .poll_cq = offsetof(Ops, poll_cq) / kWord,
          .query_qp = offsetof(Ops, query_qp) / kWord,
          .reg_mr = offsetof(Ops, reg_mr) / kWord,
          .req_notify_cq = offsetof(Ops, req_notify_cq) / kWord,
          .unimport_pd = offsetof(Ops, unimport_pd) / kWord};
}

static_assert(laid_out<kOf36>() == Measured{40, 76, 5, 19, 25, 39, 53, 61, 68, 69, 75});
static_assert(laid_out<kOf59>() == Measured{43, 79, 6, 20, 27, 41, 55, 63, 70, 72, 78});
static_assert(laid_out<kOf62>() == Measured{44, 81, 6, 20, 27, 42, 56, 65, 72, 74, 80});
static_assert(laid_out<kOf64>() == Measured{46, 83, 7, 21, 28, 44, 58, 67, 74, 76, 82});
// All of them have these as they are.
static_assert(sizeof(DeviceOps) == 72);
static_assert(sizeof(Match) == 24 && offsetof(Match, kind) == 20);
static_assert(sizeof(Device) == 712 && offsetof(Device, ops) == 664);
static_assert(offsetof(Device, core_support) == 704);
static_assert(sizeof(Region) == 56 && offsetof(Region, access) == 52);
static_assert(sizeof(CompletionQueue) == 288);
static_assert(sizeof(ibv_context) == 328 && offsetof(ibv_context, async_fd) == 268);
static_assert(sizeof(QueuePair) == 376);
static_assert(QueuePair::kMarks == std::array<size_t, 3>{344, 352, 360});

/// The functions of libibverbs for its providers. They are looked up in the one that is loading the
/// plugin: linked with, they would tie it to one version, whose number their names carry.
struct Library {
  void (*register_driver)(const DeviceOps*);
  void* (*init_and_alloc_context)(ibv_device*, int command_fd, size_t size, void* offset,
                                  uint32_t driver_id);
  void (*uninit_context)(void* context);
  void (*set_ops)(void* context, const void* operations);
};

}  // namespace rnic::run::abi
