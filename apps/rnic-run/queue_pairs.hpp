/// \file
/// Queue pairs and shared receive queues of the program.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "rnic-run/abi.hpp"
#include "rnic-run/adapter.hpp"
#include "rnic-run/meeting.hpp"
#include "rnic-run/send_batch.hpp"
#include "rnic-run/unread.hpp"
#include "rnic-run/verbs_states.hpp"

namespace rnic::run {

/// How many Reads and atomics a connection may have at once in either direction: what is told is
/// given. A start-up tells a peer of no more (mpa.reads_limit, where that is not changed).
inline constexpr uint32_t kMostReadsAtOnce = 128;
/// \param most of the device: limits.max_reads
[[nodiscard]] constexpr uint32_t reads_at_once(uint32_t most) {
  return most < kMostReadsAtOnce ? most : kMostReadsAtOnce;
}

/// A shared receive queue.
class SharedReceives {
 public:
  static ibv_srq* create(ibv_pd*, ibv_srq_init_attr*);
  static int modify(ibv_srq*, ibv_srq_attr*, int mask);
  static int query(ibv_srq*, ibv_srq_attr*);
  static int destroy(ibv_srq*);
  static int post(ibv_srq*, ibv_recv_wr*, ibv_recv_wr** bad);

  static SharedReceives& of(ibv_srq* srq) { return *reinterpret_cast<SharedReceives*>(srq); }
  [[nodiscard]] SharedReceiveQueue& queue() { return queue_; }

 private:
  ibv_srq shown_{};
  SharedReceiveQueue queue_;
};

/// A queue pair. Under the face of iWARP its state follows what the program says, as iWARP's driver
/// in the kernel does it: the start-up is the connection manager's. Under that of RoCE the changes
/// of state make the connection (Meeting).
class QueuePairs {
 public:
  static ibv_qp* create(ibv_pd*, ibv_qp_init_attr*);
  static ibv_qp* create_extended(ibv_context*, ibv_qp_init_attr_ex*);
  static int modify(ibv_qp*, ibv_qp_attr*, int mask);
  static int query(ibv_qp*, ibv_qp_attr*, int mask, ibv_qp_init_attr*);
  static int destroy(ibv_qp*);
  static int post_send(ibv_qp*, ibv_send_wr*, ibv_send_wr** bad);
  static int post_receive(ibv_qp*, ibv_recv_wr*, ibv_recv_wr** bad);

  static QueuePairs& of(ibv_qp* qp) { return *reinterpret_cast<QueuePairs*>(qp); }
  [[nodiscard]] QueuePair& pair() { return pair_; }
  /// A window was bound on behalf of the program, which may wait for that. \return false: there is
  /// no memory to tell it
  bool window_bound(uint64_t id, bool signaled);
  /// What a query tells (rdma_set_option()).
  void set_ack_timeout(uint8_t value) { ack_timeout_ = value; }
  /// Precondition: it was made for batches (IBV_QP_INIT_ATTR_SEND_OPS_FLAGS).
  [[nodiscard]] SendBatch& batch() { return *batch_; }
  [[nodiscard]] uint32_t shown_number() const { return shown_.qp.qp_num; }
  /// Which of its completion queues have completions that the program has not polled.
  [[nodiscard]] Unread unread() const;
  /// Each of those queues was found empty since.
  [[nodiscard]] bool has_read(const Unread& unread) const;
  /// Wakes who waits for completions: there may be some that were held back, or something else to
  /// look at.
  void wake();

  // ---- For its meeting, under the RoCE face ----
  /// Idle again after an attempt that has failed. \return 0, or errno: it is not over yet
  int renew();
  /// Adds a completion of a request that the device was not given.
  void add_completion(uint64_t id, ibv_wc_opcode opcode, ibv_wc_status status);

 private:
  /// What a queue pair has under the RoCE face alone.
  struct RoceSide {
    RoceSide(QueuePairs& owner, uint32_t qpn, const ibv_qp_cap& cap) : meeting(owner, qpn, cap) {}
    VerbsStates states;
    Meeting meeting;
  };

  int move(ibv_qp_state to);
  int reset();
  Status close();
  [[nodiscard]] int post(const SendRequest& request);
  [[nodiscard]] int post(const ReceiveRequest& request);

  int show_as_roce();
  /// It parts from its peer, and is about to be destroyed.
  void part_roce();
  /// It is gone, and so is its number.
  void leave_roce();
  int modify_as_roce(const ibv_qp_attr& attr, int mask);
  int appoint(const ibv_qp_attr& attr);
  int reset_as_roce();
  /// Idle again, under another number of the device's. The former one stands for it as well until
  /// the caller takes it out of ShownNumbers. \return 0, or errno
  int take_next_number();
  void query_as_roce(ibv_qp_attr& out);

  abi::QueuePair shown_{};
  QueuePair pair_;
  std::vector<uint32_t> numbers_;  // that it has had, one behind each reset
  ibv_qp_init_attr made_with_{};
  uint8_t ack_timeout_ = 0;
  std::unique_ptr<SendBatch> batch_;
  std::unique_ptr<RoceSide> roce_;  // nullptr: the face of iWARP
  std::atomic<uint32_t> sends_posted_{0};  // wraps, as the device's count of those completed
};

}  // namespace rnic::run
