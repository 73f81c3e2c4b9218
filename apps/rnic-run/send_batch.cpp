#include "rnic-run/send_batch.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "rnic-run/queue_pairs.hpp"
#include "rnic-run/uncancelled.hpp"

namespace rnic::run {

void SendBatch::begin() {
  turn_.lock();
  count_ = 0;
  error_ = 0;
  latest_ = &spare_;
}

void SendBatch::end() { turn_.unlock(); }

ibv_send_wr& SendBatch::add(ibv_wr_opcode opcode, uint64_t id, unsigned flags) {
  latest_ = &spare_;
  // C is above: nothing may be thrown there.
  try {
    if (count_ == entries_.size()) entries_.push_back(std::make_unique<Entry>());
    latest_ = entries_[count_++].get();
  } catch (const std::bad_alloc&) {
    error_ = ENOMEM;
  }
  latest_->request = {};
  latest_->request.wr_id = id;
  latest_->request.opcode = opcode;
  latest_->request.send_flags = flags;
  return latest_->request;
}

void SendBatch::set_pieces(std::span<const ibv_sge> pieces) {
  if (pieces.size() > latest_->pieces.size()) {
    error_ = EINVAL;
    return;
  }
  std::copy(pieces.begin(), pieces.end(), latest_->pieces.begin());
  latest_->request.sg_list = latest_->pieces.data();
  latest_->request.num_sge = static_cast<int>(pieces.size());
}

void SendBatch::set_inline(std::span<const ibv_data_buf> octets) {
  size_t size = 0;
  for (const ibv_data_buf& each : octets) {
    if (each.length > latest_->octets.size() - size) {
      error_ = EINVAL;
      return;
    }
    std::memcpy(latest_->octets.data() + size, each.addr, each.length);
    size += each.length;
  }
  const ibv_sge whole{reinterpret_cast<uintptr_t>(latest_->octets.data()),
                      static_cast<uint32_t>(size), 0};
  set_pieces({&whole, 1});
  latest_->request.send_flags |= IBV_SEND_INLINE;
}

ibv_send_wr* SendBatch::list() {
  for (size_t i = 0; i < count_; ++i) {
    entries_[i]->request.next = i + 1 < count_ ? &entries_[i + 1]->request : nullptr;
  }
  return count_ == 0 ? nullptr : &entries_[0]->request;
}

namespace {

SendBatch& batch_of(ibv_qp_ex* qp) { return QueuePairs::of(&qp->qp_base).batch(); }

ibv_send_wr& add(ibv_qp_ex* qp, ibv_wr_opcode opcode) {
  return batch_of(qp).add(opcode, qp->wr_id, qp->wr_flags);
}

ibv_send_wr& add_remote(ibv_qp_ex* qp, ibv_wr_opcode opcode, uint32_t rkey, uint64_t address) {
  ibv_send_wr& request = add(qp, opcode);
  request.wr.rdma.rkey = rkey;
  request.wr.rdma.remote_addr = address;
  return request;
}

void add_atomic(ibv_qp_ex* qp, ibv_wr_opcode opcode, uint32_t rkey, uint64_t address,
                uint64_t compare_add, uint64_t swap) {
  ibv_send_wr& request = add(qp, opcode);
  request.wr.atomic.rkey = rkey;
  request.wr.atomic.remote_addr = address;
  request.wr.atomic.compare_add = compare_add;
  request.wr.atomic.swap = swap;
}

void fill_one_sided(ibv_qp_ex& to) {
  to.wr_rdma_write = [](ibv_qp_ex* qp, uint32_t rkey, uint64_t address) {
    add_remote(qp, IBV_WR_RDMA_WRITE, rkey, address);
  };
  to.wr_rdma_write_imm = [](ibv_qp_ex* qp, uint32_t rkey, uint64_t address, __be32 immediate) {
    add_remote(qp, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, address).imm_data = immediate;
  };
  to.wr_rdma_read = [](ibv_qp_ex* qp, uint32_t rkey, uint64_t address) {
    add_remote(qp, IBV_WR_RDMA_READ, rkey, address);
  };
  to.wr_atomic_cmp_swp = [](ibv_qp_ex* qp, uint32_t rkey, uint64_t address, uint64_t compare,
                            uint64_t swap) {
    add_atomic(qp, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, address, compare, swap);
  };
  to.wr_atomic_fetch_add = [](ibv_qp_ex* qp, uint32_t rkey, uint64_t address, uint64_t summand) {
    add_atomic(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, address, summand, 0);
  };
}

void fill_two_sided(ibv_qp_ex& to) {
  to.wr_send = [](ibv_qp_ex* qp) { add(qp, IBV_WR_SEND); };
  to.wr_send_imm = [](ibv_qp_ex* qp, __be32 immediate) {
    add(qp, IBV_WR_SEND_WITH_IMM).imm_data = immediate;
  };
  to.wr_send_inv = [](ibv_qp_ex* qp, uint32_t rkey) {
    add(qp, IBV_WR_SEND_WITH_INV).invalidate_rkey = rkey;
  };
  to.wr_local_inv = [](ibv_qp_ex* qp, uint32_t rkey) {
    add(qp, IBV_WR_LOCAL_INV).invalidate_rkey = rkey;
  };
  to.wr_bind_mw = [](ibv_qp_ex* qp, ibv_mw* window, uint32_t rkey,
                     const ibv_mw_bind_info* info) {
    ibv_send_wr& request = add(qp, IBV_WR_BIND_MW);
    request.bind_mw.mw = window;
    request.bind_mw.rkey = rkey;
    request.bind_mw.bind_info = *info;
  };
}

void fill_setters(ibv_qp_ex& to) {
  to.wr_set_sge = [](ibv_qp_ex* qp, uint32_t lkey, uint64_t address, uint32_t length) {
    const ibv_sge piece{address, length, lkey};
    batch_of(qp).set_pieces({&piece, 1});
  };
  to.wr_set_sge_list = [](ibv_qp_ex* qp, size_t count, const ibv_sge* pieces) {
    batch_of(qp).set_pieces({pieces, count});
  };
  to.wr_set_inline_data = [](ibv_qp_ex* qp, void* octets, size_t length) {
    const ibv_data_buf piece{octets, length};
    batch_of(qp).set_inline({&piece, 1});
  };
  to.wr_set_inline_data_list = [](ibv_qp_ex* qp, size_t count, const ibv_data_buf* pieces) {
    batch_of(qp).set_inline({pieces, count});
  };
}

int complete(ibv_qp_ex* qp) {
  SendBatch& batch = batch_of(qp);
  ibv_send_wr* refused = nullptr;
  const int error = batch.error() != 0
                        ? batch.error()
                        : QueuePairs::post_send(&qp->qp_base, batch.list(), &refused);
  batch.end();
  return error;
}

void give_up(ibv_qp_ex* qp) { batch_of(qp).end(); }

}  // namespace

void fill_senders(ibv_qp_ex& queue_pair) {
  fill_one_sided(queue_pair);
  fill_two_sided(queue_pair);
  fill_setters(queue_pair);
  queue_pair.wr_start = [](ibv_qp_ex* qp) { batch_of(qp).begin(); };
  queue_pair.wr_complete = uncancelled<complete>;
  queue_pair.wr_abort = uncancelled<give_up>;
}

}  // namespace rnic::run
