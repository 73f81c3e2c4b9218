/// \file
/// SendBatch: the requests from ibv_wr_start() to ibv_wr_complete().
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "rnic/work.hpp"

namespace rnic::run {

/// They become a list as ibv_post_send() takes it. The calls in between have no result: what is
/// wrong with one of them is told at the end. One thread at a time, from begin() to end().
class SendBatch {
 public:
  void begin();
  /// \return the request, to be filled in further; the setters that follow are for it
  ibv_send_wr& add(ibv_wr_opcode opcode, uint64_t id, unsigned flags);
  void set_pieces(std::span<const ibv_sge> pieces);
  void set_inline(std::span<const ibv_data_buf> octets);
  [[nodiscard]] int error() const { return error_; }
  /// nullptr: there is none
  [[nodiscard]] ibv_send_wr* list();
  void end();

 private:
  struct Entry {
    ibv_send_wr request{};
    std::array<ibv_sge, kMaxSge> pieces{};
    std::array<std::byte, kMaxInline> octets{};
  };

  std::mutex turn_;
  std::vector<std::unique_ptr<Entry>> entries_;  // kept from batch to batch
  size_t count_ = 0;                             // of this batch. Invariant: <= entries_.size()
  Entry spare_;                                  // where there was no memory for one
  Entry* latest_ = &spare_;
  int error_ = 0;
};

/// Fills in the calls that add to the batch of a queue pair. \param queue_pair one that has a batch
void fill_senders(ibv_qp_ex& queue_pair);
/// What the calls can add, as IBV_QP_EX_WITH_*.
inline constexpr uint64_t kSenders =
    IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
    IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW |
    IBV_QP_EX_WITH_SEND_WITH_INV;

}  // namespace rnic::run
