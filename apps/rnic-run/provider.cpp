// The plugin's face to libibverbs: a provider, in each version of the private interface whose
// layout abi.hpp has.

#include <dlfcn.h>
#include <endian.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>

#include "rnic-run/abi.hpp"
#include "rnic-run/adapter.hpp"
#include "rnic-run/async_events.hpp"
#include "rnic-run/completions.hpp"
#include "rnic-run/door.hpp"
#include "rnic-run/face.hpp"
#include "rnic-run/gid_table.hpp"
#include "rnic-run/memory.hpp"
#include "rnic-run/or_starve.hpp"
#include "rnic-run/queue_pairs.hpp"
#include "rnic-run/rdma_cm.hpp"
#include "rnic-run/rendezvous.hpp"
#include "rnic-run/uncancelled.hpp"

namespace rnic::run {
namespace {

// No vendor has a number that is locally administered.
constexpr uint32_t kVendor = 0x020000;

int query_device(ibv_context*, const ibv_query_device_ex_input*, ibv_device_attr_ex* out,
                 size_t size) {
  Adapter* adapter = Adapter::get();
  const auto limits = adapter->device().limits();
  if (!limits) return as_errno(limits.error());
  std::memset(out, 0, size);
  ibv_device_attr& attr = out->orig_attr;
  std::strcpy(attr.fw_ver, "1");
  attr.node_guid = htobe64(kNodeGuid);
  attr.sys_image_guid = attr.node_guid;
  attr.vendor_id = kVendor;
  attr.vendor_part_id = 1;
  attr.hw_ver = 1;
  attr.max_mr_size = limits->max_registered_octets;
  attr.page_size_cap = 0x1000;
  attr.max_qp = static_cast<int>(limits->max_qps);
  attr.max_qp_wr = static_cast<int>(limits->max_work_depth);
  if (Meeting::gives_receipts()) attr.max_qp_wr /= static_cast<int>(Receipts::kShare);
  attr.device_cap_flags = IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_MEM_WINDOW |
                          IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  attr.max_sge = static_cast<int>(limits->max_sge);
  attr.max_sge_rd = attr.max_sge;
  attr.max_cq = static_cast<int>(limits->max_cqs);
  attr.max_cqe = static_cast<int>(limits->max_cq_depth);
  attr.max_mr = static_cast<int>(limits->max_regions);
  attr.max_mw = attr.max_mr;  // both are STags
  attr.max_pd = static_cast<int>(limits->max_pds);
  const uint32_t reads = reads_at_once(limits->max_reads);
  attr.max_qp_rd_atom = static_cast<int>(reads);
  attr.max_qp_init_rd_atom = attr.max_qp_rd_atom;
  attr.max_res_rd_atom =
      static_cast<int>(std::min<uint64_t>(uint64_t{reads} * limits->max_qps, INT_MAX));
  attr.atomic_cap = IBV_ATOMIC_HCA;
  attr.max_srq = static_cast<int>(limits->max_srqs);
  attr.max_srq_wr = attr.max_qp_wr;
  attr.max_srq_sge = attr.max_sge;
  attr.max_pkeys = 1;
  attr.phys_port_cnt = 1;
  if (size > offsetof(ibv_device_attr_ex, phys_port_cnt_ex)) out->phys_port_cnt_ex = 1;
  return 0;
}

int query_port(ibv_context*, uint8_t port, ibv_port_attr* out) {
  if (port != 1) return EINVAL;
  out->state = IBV_PORT_ACTIVE;
  out->max_mtu = IBV_MTU_4096;
  out->active_mtu = IBV_MTU_1024;
  out->gid_tbl_len = is_roce() ? static_cast<int>(GidTable::of_process().size()) : 1;
  if (is_roce()) out->flags = IBV_QPF_GRH_REQUIRED;
  out->pkey_tbl_len = 1;
  out->max_msg_sz = UINT32_MAX;
  out->phys_state = 5;  // link up
  out->link_layer = IBV_LINK_LAYER_ETHERNET;
  out->active_width = 2;  // 4X
  out->active_speed = 4;  // 10 Gb/s a lane
  return 0;
}

ibv_xrcd* open_xrcd(ibv_context*, ibv_xrcd_init_attr*) {
  complain(is_roce() ? "open_xrcd: it is iWARP beneath the RoCE face, which has reliable "
                       "connections alone (IBV_QPT_RC) and no XRC"
                     : "open_xrcd: iWARP has reliable connections alone (IBV_QPT_RC) and no XRC");
  errno = EOPNOTSUPP;
  return nullptr;
}

abi::Library libibverbs{};
size_t context_at = 0;  // where ibv_context stands in its verbs_context

void discard(char* open) {
  libibverbs.uninit_context(open);
  free(open);  // libibverbs has allocated it by calloc()
}

void close_device(ibv_context* context) {
  AsyncEvents::all().close(context);
  close(context->async_fd);
  discard(reinterpret_cast<char*>(context) - context_at);
}

template <abi::Layout kLayout>
constexpr abi::ContextOps<kLayout> kOperations = [] {
  abi::ContextOps<kLayout> ops{};
  ops.alloc_mw = object_or_starve<Window::alloc>;
  ops.alloc_pd = object_or_starve<Domain::alloc>;
  ops.bind_mw = errno_or_starve<Window::bind>;
  ops.cq_event = Completions::event_taken;
  ops.create_cq = object_or_starve<Completions::create>;
  ops.create_cq_ex = object_or_starve<Completions::create_extended>;
  ops.create_qp = object_or_starve<QueuePairs::create>;
  ops.create_qp_ex = object_or_starve<QueuePairs::create_extended>;
  ops.create_srq = object_or_starve<SharedReceives::create>;
  ops.dealloc_mw = errno_or_starve<Window::dealloc>;
  ops.dealloc_pd = errno_or_starve<Domain::dealloc>;
  ops.dereg_mr = errno_or_starve<Region::deregister>;
  ops.destroy_cq = errno_or_starve<Completions::destroy>;
  ops.destroy_qp = errno_or_starve<QueuePairs::destroy>;
  ops.destroy_srq = errno_or_starve<SharedReceives::destroy>;
  ops.free_context = uncancelled<close_device>;
  ops.modify_qp = errno_or_starve<QueuePairs::modify>;
  ops.modify_srq = errno_or_starve<SharedReceives::modify>;
  ops.open_xrcd = open_xrcd;
  ops.poll_cq = uncancelled<Completions::poll>;
  ops.post_recv = uncancelled<QueuePairs::post_receive>;
  ops.post_send = uncancelled<QueuePairs::post_send>;
  ops.post_srq_recv = uncancelled<SharedReceives::post>;
  ops.query_device_ex = errno_or_starve<query_device>;
  ops.query_port = query_port;
  ops.query_qp = errno_or_starve<QueuePairs::query>;
  ops.query_srq = errno_or_starve<SharedReceives::query>;
  ops.reg_mr = object_or_starve<Region::make>;
  ops.req_notify_cq = uncancelled<Completions::request_notify>;
  ops.rereg_mr = errno_or_starve<Region::change>;
  ops.resize_cq = errno_or_starve<Completions::resize>;
  return ops;
}();

/// A layout, and what a libibverbs that has it is known by.
struct Version {
  const char* register_driver;
  const char* came_with_it;  // a function for programs
  size_t context_at;
  const void* operations;
};

template <abi::Layout kLayout>
constexpr Version version(const char* register_driver, const char* came_with_it) {
  return {register_driver, came_with_it, abi::context_at(kLayout), &kOperations<kLayout>};
}

// The newer of two with one number comes first: it has what the older one came with, too.
constexpr Version kVersions[] = {
    version<abi::kOf64>("verbs_register_driver_64", "ibv_alloc_buf"),
    version<abi::kOf62>("verbs_register_driver_59", "ibv_query_port_speed"),
    version<abi::kOf59>("verbs_register_driver_59", "ibv_alloc_dmah"),
    version<abi::kOf36>("verbs_register_driver_57", "ibv_query_qp_data_in_order"),
    version<abi::kOf36>("verbs_register_driver_34", "ibv_query_qp_data_in_order"),
};

const void* operations = nullptr;  // in the layout of the libibverbs that is here

template <typename Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

/// Finds out which libibverbs has loaded the plugin. \return false: one whose layout is unknown
bool know_libibverbs() {
  void* const library = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return false;
  const auto* const version =
      std::find_if(std::begin(kVersions), std::end(kVersions), [library](const Version& each) {
        return find(library, each.register_driver, libibverbs.register_driver) &&
               dlsym(library, each.came_with_it) != nullptr;
      });
  if (version == std::end(kVersions)) return false;
  context_at = version->context_at;
  operations = version->operations;
  return find(library, "_verbs_init_and_alloc_context", libibverbs.init_and_alloc_context) &&
         find(library, "verbs_uninit_context", libibverbs.uninit_context) &&
         find(library, "verbs_set_ops", libibverbs.set_ops);
}

verbs_context* open_device(ibv_device* device, int command_fd, void*) {
  constexpr uint32_t kNoDriver = 0;  // RDMA_DRIVER_UNKNOWN
  if (Adapter::get() == nullptr) {
    errno = ENODEV;
    return nullptr;
  }
  auto* const open = static_cast<char*>(libibverbs.init_and_alloc_context(
      device, command_fd, context_at + sizeof(ibv_context), nullptr, kNoDriver));
  if (open == nullptr) return nullptr;
  auto* const context = reinterpret_cast<ibv_context*>(open + context_at);
  context->async_fd = AsyncEvents::all().open(context);
  if (context->async_fd < 0) {
    discard(open);
    return nullptr;
  }
  libibverbs.set_ops(open, operations);
  context->num_comp_vectors = 1;
  return reinterpret_cast<verbs_context*>(open);
}

abi::Device* make_device(abi::SysfsDevice*) {
  return static_cast<abi::Device*>(calloc(1, sizeof(abi::Device)));
}

void free_device(abi::Device* device) { free(device); }

// By the name alone: the tree has no device behind the name that a driver could be matched by.
const abi::Match kMatches[] = {
    {nullptr, {"rdma_device:*Nrnic*"}, 0, 0, abi::kMatchModalias},
    {},
};

const abi::DeviceOps kProvider = {
    .name = "rnic",
    .match_min_abi_version = 1,
    .match_max_abi_version = 1,
    .match_table = kMatches,
    .static_providers = nullptr,
    .match_device = nullptr,
    .alloc_context = object_or_starve<open_device>,
    .import_context = nullptr,
    .alloc_device = make_device,
    .uninit_device = free_device,
};

int cm_opened(int fd) {
  RdmaCm::instance().opened(fd);
  return 0;
}

void cm_closed(int fd) { RdmaCm::instance().closed(fd); }
void cm_renamed(int fd, int copy) { RdmaCm::instance().renamed(fd, copy); }

/// A cancellation point, as write() is: before anything has been done, and where a thread waits for
/// an event. Nothing here stands in the way of that.
ssize_t cm_write(int fd, const void* command, size_t size) {
  pthread_testcancel();
  try {
    return RdmaCm::instance().write(fd, command, size);
  } catch (const std::bad_alloc&) {
    errno = ENOMEM;
    return -1;
  }
}

int make_channel() { return Channels::all().make(); }
void channel_closed(int fd) { Channels::all().closed(fd); }

const DoorOps kDoor = {
    .cm_opened = or_starve<cm_opened, -1>,
    .cm_closed = uncancelled<cm_closed>,
    .cm_renamed = uncancelled<cm_renamed>,
    .cm_write = cm_write,
    .make_channel = or_starve<make_channel, -1>,
    .channel_closed = uncancelled<channel_closed>,
};

/// A child begins anew: what its parent's threads were about is not its own.
void forked() {
  Adapter::forget();
  OfProcess<RdmaCm>::forget();
  OfProcess<Rendezvous>::forget();
  OfProcess<ShownNumbers>::forget();
  OfProcess<Channels>::forget();
  OfProcess<AsyncEvents>::forget();
}

__attribute__((constructor)) void enter() {
  Adapter::set_taker([](const Event& event) {
    if (is_roce()) {
      Rendezvous::instance().take(event);
    } else {
      RdmaCm::instance().take(event);
    }
    AsyncEvents::all().take(event);
  });
  auto* const attach = reinterpret_cast<Attach*>(dlsym(RTLD_DEFAULT, kAttach));
  if (attach == nullptr) return;
  if (!know_libibverbs()) {
    complain("this libibverbs is of no release that softrnic knows: those are rdma-core 36 to 64");
    return;
  }
  attach(&kDoor);
  pthread_atfork(nullptr, nullptr, forked);
  libibverbs.register_driver(&kProvider);
}

}  // namespace
}  // namespace rnic::run
