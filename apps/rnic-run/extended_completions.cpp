// Completions that are read field by field (ibv_start_poll() and its kin).

#include <cerrno>

#include "rnic-run/completions.hpp"
#include "rnic-run/uncancelled.hpp"

namespace rnic::run {

namespace {

// What iWARP has nothing for is 0. Time stamps and the rest are refused when the queue is made.
constexpr uint64_t kReadable = IBV_WC_STANDARD_FLAGS;

}  // namespace

ibv_cq_ex* Completions::create_extended(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  const bool threads = (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0;
  const uint32_t flags = threads ? attr->flags : 0;
  if ((attr->comp_mask & ~IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 ||
      (flags & ~IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0 || (attr->wc_flags & ~kReadable) != 0) {
    errno = refused(EOPNOTSUPP, "create_cq_ex: something is asked for that the device has not");
    return nullptr;
  }
  ibv_cq* made = create(context, static_cast<int>(attr->cqe), attr->channel,
                        static_cast<int>(attr->comp_vector));
  if (made == nullptr) return nullptr;
  ibv_cq_ex& extended = of(made).shown_.cq_ex;
  fill_readers(extended);
  return &extended;
}

int Completions::start_poll(ibv_cq_ex* queue, ibv_poll_cq_attr* attr) {
  if (attr->comp_mask != 0) return EINVAL;
  of_extended(queue).reading_.lock();
  const int error = next_poll(queue);
  if (error != 0) of_extended(queue).reading_.unlock();
  return error;
}

int Completions::next_poll(ibv_cq_ex* queue) {
  Completions& read = of_extended(queue);
  if (poll(&read.shown_.cq, 1, &read.read_) == 0) return ENOENT;
  queue->wr_id = read.read_.wr_id;
  queue->status = read.read_.status;
  return 0;
}

void Completions::end_poll(ibv_cq_ex* queue) { of_extended(queue).reading_.unlock(); }

void Completions::fill_readers(ibv_cq_ex& queue) {
  queue.start_poll = uncancelled<start_poll>;
  queue.next_poll = uncancelled<next_poll>;
  // Where unlocking is the last act it is a jump, and ThreadSanitizer takes it for the program's.
  queue.end_poll = uncancelled<end_poll>;
  queue.read_opcode = [](ibv_cq_ex* from) { return of_extended(from).read_.opcode; };
  queue.read_vendor_err = [](ibv_cq_ex* from) { return of_extended(from).read_.vendor_err; };
  queue.read_byte_len = [](ibv_cq_ex* from) { return of_extended(from).read_.byte_len; };
  queue.read_imm_data = [](ibv_cq_ex* from) -> __be32 { return of_extended(from).read_.imm_data; };
  queue.read_qp_num = [](ibv_cq_ex* from) { return of_extended(from).read_.qp_num; };
  queue.read_src_qp = [](ibv_cq_ex* from) { return of_extended(from).read_.src_qp; };
  queue.read_wc_flags = [](ibv_cq_ex* from) { return of_extended(from).read_.wc_flags; };
  queue.read_slid = [](ibv_cq_ex* from) -> uint32_t { return of_extended(from).read_.slid; };
  queue.read_sl = [](ibv_cq_ex* from) { return of_extended(from).read_.sl; };
  queue.read_dlid_path_bits = [](ibv_cq_ex* from) {
    return of_extended(from).read_.dlid_path_bits;
  };
}

}  // namespace rnic::run
