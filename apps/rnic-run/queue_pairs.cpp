#include "rnic-run/queue_pairs.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <span>
#include <utility>

#include "rnic-run/async_events.hpp"
#include "rnic-run/completions.hpp"
#include "rnic-run/face.hpp"
#include "rnic-run/immediate_octets.hpp"
#include "rnic-run/iwarp_states.hpp"
#include "rnic-run/memory.hpp"
#include "rnic-run/rdma_cm.hpp"
#include "rnic-run/rendezvous.hpp"

namespace rnic::run {

namespace {

// Programs that were written for InfiniBand send before the peer has posted a receive, and count on
// its retries.
constexpr std::chrono::seconds kReceiveWait{10};
constexpr std::chrono::seconds kAbandonTime{1};

/// The octets of an inline request, gathered from the program's pieces.
class InlineOctets {
 public:
  /// \return false: there are more than kMaxInline
  bool gather(const ibv_send_wr& wr) {
    size_ = 0;
    for (int i = 0; i < wr.num_sge; ++i) {
      const ibv_sge& piece = wr.sg_list[i];
      if (piece.length > octets_.size() - size_) return false;
      std::memcpy(octets_.data() + size_, reinterpret_cast<const void*>(piece.addr), piece.length);
      size_ += piece.length;
    }
    return true;
  }
  [[nodiscard]] std::span<const std::byte> view() const { return {octets_.data(), size_}; }

 private:
  std::array<std::byte, kMaxInline> octets_;
  size_t size_ = 0;
};

SgeList pieces(const ibv_sge* list, int count) {
  SgeList out;
  for (int i = 0; i < count; ++i) out.push_back({list[i].addr, list[i].length, list[i].lkey});
  return out;
}

void put_atomic(const ibv_send_wr& wr, SendRequest& out) {
  out.remote = {wr.wr.atomic.rkey, wr.wr.atomic.remote_addr};
  if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    out.opcode = Opcode::FetchAdd;
    out.atomic.data = wr.wr.atomic.compare_add;
    return;
  }
  out.opcode = Opcode::CompareSwap;
  out.atomic = {.data = wr.wr.atomic.swap,
                .mask = ~uint64_t{0},
                .compare = wr.wr.atomic.compare_add,
                .compare_mask = ~uint64_t{0}};
}

/// A window of type 2 is bound in its turn.
int put_window(const ibv_send_wr& wr, SendRequest& out) {
  const ibv_mw_bind_info& info = wr.bind_mw.bind_info;
  if (info.mr == nullptr || info.length > std::numeric_limits<uint32_t>::max()) return EINVAL;
  out.opcode = Opcode::BindWindow;
  const bool zero_based = (info.mw_access_flags & IBV_ACCESS_ZERO_BASED) != 0;
  out.grant = {.stag = wr.bind_mw.rkey,
               .access = rights_of_window(info.mw_access_flags),
               .offset = zero_based ? 0 : info.addr};
  // A window of type 2 belongs to its queue pair, and libibverbs has no flag for this right: over
  // InfiniBand that peer always has it.
  out.grant.access |= Access::RemoteInvalidate;
  out.sges = SgeList{{info.addr, static_cast<uint32_t>(info.length), info.mr->lkey}};
  return 0;
}

/// \return 0, or errno: the device has no such request
int put_operation(const ibv_send_wr& wr, SendRequest& out) {
  switch (wr.opcode) {
    case IBV_WR_SEND: return 0;
    case IBV_WR_SEND_WITH_INV:
      out.opcode = Opcode::SendInvalidate;
      out.invalidate_stag = wr.invalidate_rkey;
      return 0;
    case IBV_WR_SEND_WITH_IMM:
      // RFC 7306 has no message with octets and immediate data.
      if (!out.sges.empty() || !out.inline_data.empty()) return EOPNOTSUPP;
      out.opcode = Opcode::Immediate;
      out.immediate = immediate_octets(wr.imm_data, true);
      return 0;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      out.immediate = immediate_octets(wr.imm_data, false);
      [[fallthrough]];
    case IBV_WR_RDMA_WRITE:
      out.opcode = wr.opcode == IBV_WR_RDMA_WRITE ? Opcode::Write : Opcode::WriteImmediate;
      out.remote = {wr.wr.rdma.rkey, wr.wr.rdma.remote_addr};
      return 0;
    case IBV_WR_RDMA_READ:
      out.opcode = Opcode::Read;
      out.remote = {wr.wr.rdma.rkey, wr.wr.rdma.remote_addr};
      return 0;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD: put_atomic(wr, out); return 0;
    case IBV_WR_BIND_MW: return put_window(wr, out);
    case IBV_WR_LOCAL_INV:
      out.opcode = Opcode::LocalInvalidate;
      out.invalidate_stag = wr.invalidate_rkey;
      return 0;
    default: return EOPNOTSUPP;
  }
}

/// Posts a list, and says by errno what became of the first request that was refused.
template <typename Request, typename Post>
int post_list(Request* list, Request** bad, Post post) {
  for (; list != nullptr; list = list->next) {
    if (const int refused = post(*list)) {
      *bad = list;
      return refused;
    }
  }
  return 0;
}

/// The program counts its pieces by a number with a sign.
template <typename Request>
int check_pieces(const Request& wr) {
  return wr.num_sge >= 0 ? 0 : refused(EINVAL, "a request with less than no pieces");
}

ReceiveRequest as_ours(const ibv_recv_wr& wr) {
  return {.id = wr.wr_id, .sges = pieces(wr.sg_list, wr.num_sge)};
}

int outcome(const Status& status) { return status ? 0 : as_errno(status.error()); }

ibv_srq* no_srq(int error) {
  errno = error;
  return nullptr;
}

ibv_qp* no_qp(int error) {
  errno = error;
  return nullptr;
}

void fill(ibv_qp& shown, ibv_pd* pd, const ibv_qp_init_attr& attr, uint32_t number) {
  shown.context = pd->context;
  shown.qp_context = attr.qp_context;
  shown.pd = pd;
  shown.send_cq = attr.send_cq;
  shown.recv_cq = attr.recv_cq;
  shown.srq = attr.srq;
  shown.handle = number;
  shown.qp_num = number;
  shown.state = IBV_QPS_RESET;
  shown.qp_type = attr.qp_type;
  pthread_mutex_init(&shown.mutex, nullptr);
  pthread_cond_init(&shown.cond, nullptr);
}

bool can_be(const ibv_qp_cap& cap) {
  return cap.max_send_sge <= kMaxSge && cap.max_recv_sge <= kMaxSge &&
         cap.max_inline_data <= kMaxInline;
}

}  // namespace

ibv_srq* SharedReceives::create(ibv_pd* pd, ibv_srq_init_attr* attr) {
  if (attr->attr.max_wr == 0 || attr->attr.max_sge > kMaxSge) {
    return no_srq(
        refused(EINVAL, "create_srq: it has room for no receive, or for too many pieces"));
  }
  SharedReceiveQueueOptions options;
  options.depth = attr->attr.max_wr;
  options.several_threads = true;
  auto made = Domain::of(pd).domain.create_srq(options);
  if (!made) return no_srq(as_errno(made.error()));
  auto srq = std::make_unique<SharedReceives>();
  srq->queue_ = std::move(*made);
  attr->attr.max_sge = kMaxSge;
  AsyncEvents::all().add(AsyncEvents::Kind::SharedReceiveQueue, srq->queue_.number(), &srq->shown_,
                         pd->context);
  return &srq.release()->shown_;
}

int SharedReceives::modify(ibv_srq* srq, ibv_srq_attr* attr, int mask) {
  SharedReceiveQueue& queue = of(srq).queue_;
  if ((mask & IBV_SRQ_LIMIT) != 0) {
    const auto info = queue.info();
    if (!info) return as_errno(info.error());
    if (attr->srq_limit > ((mask & IBV_SRQ_MAX_WR) != 0 ? attr->max_wr : info->depth)) {
      return refused(EINVAL, "modify_srq: a limit above what the queue holds");
    }
  }
  if ((mask & IBV_SRQ_MAX_WR) != 0) {
    if (auto status = queue.resize(attr->max_wr); !status) return as_errno(status.error());
  }
  if ((mask & IBV_SRQ_LIMIT) != 0) return outcome(queue.arm_limit(attr->srq_limit));
  return 0;
}

int SharedReceives::query(ibv_srq* srq, ibv_srq_attr* attr) {
  auto info = of(srq).queue_.info();
  if (!info) return as_errno(info.error());
  attr->max_wr = info->depth;
  attr->max_sge = info->max_sges;
  attr->srq_limit = info->limit;
  return 0;
}

int SharedReceives::destroy(ibv_srq* srq) {
  SharedReceives& queue = of(srq);
  if (const int refused = given_back(queue.queue_.destroy())) return refused;
  await_acknowledgements(*srq, AsyncEvents::all().remove(srq));
  delete &queue;
  return 0;
}

int SharedReceives::post(ibv_srq* srq, ibv_recv_wr* list, ibv_recv_wr** bad) {
  SharedReceiveQueue& queue = of(srq).queue_;
  return post_list(list, bad, [&](const ibv_recv_wr& wr) {
    if (const int wrong = check_pieces(wr)) return wrong;
    return outcome(queue.post_receive(as_ours(wr)));
  });
}

ibv_qp* QueuePairs::create(ibv_pd* pd, ibv_qp_init_attr* attr) {
  if (attr->qp_type != IBV_QPT_RC) {
    complain(is_roce()
                 ? "create_qp: it is iWARP beneath the RoCE face, which has reliable connections "
                   "alone (IBV_QPT_RC), no datagrams and no XRC"
                 : "create_qp: iWARP has reliable connections alone (IBV_QPT_RC), no datagrams and "
                   "no XRC");
    return no_qp(EOPNOTSUPP);
  }
  if (!can_be(attr->cap)) {
    return no_qp(refused(EINVAL, "create_qp: more pieces or inline octets than the device has"));
  }
  Adapter* const adapter = Adapter::get();  // a child may have to open one, in vain
  if (adapter == nullptr) return no_qp(ENODEV);
  const auto limits = adapter->device().limits();
  if (!limits) return no_qp(as_errno(limits.error()));
  QueuePairOptions options;
  options.ird = options.ord = reads_at_once(limits->max_reads);
  options.send_depth = std::max(1u, attr->cap.max_send_wr);
  if (Meeting::gives_receipts()) options.send_depth *= Receipts::kShare;
  options.receive_depth = std::max(1u, attr->cap.max_recv_wr);
  options.receive_wait = kReceiveWait;
  options.several_threads = true;
  // Over RoCE a peer that goes is not noticed before it is sent something.
  options.answer_close = !is_roce();
  options.srq = attr->srq == nullptr ? nullptr : &SharedReceives::of(attr->srq).queue();
  auto made = Domain::of(pd).domain.create_qp(Completions::of(attr->send_cq).queue(),
                                              Completions::of(attr->recv_cq).queue(), options);
  if (!made) return no_qp(as_errno(made.error()));
  auto qp = std::make_unique<QueuePairs>();
  qp->pair_ = std::move(*made);
  qp->numbers_.push_back(qp->pair_.number());
  attr->cap.max_inline_data = kMaxInline;
  qp->made_with_ = *attr;
  fill(qp->shown_.qp, pd, *attr, qp->pair_.number());
  if (is_roce()) {
    if (const int error = qp->show_as_roce()) return no_qp(error);
  } else {
    RdmaCm::instance().add(*qp);
  }
  try {
    AsyncEvents::all().add(AsyncEvents::Kind::QueuePair, qp->pair_.number(), &qp->shown_.qp,
                           pd->context);
  } catch (const std::bad_alloc&) {
    RdmaCm::instance().remove(*qp);
    qp->part_roce();
    qp->leave_roce();
    throw;
  }
  return &qp.release()->shown_.qp;
}

ibv_qp* QueuePairs::create_extended(ibv_context*, ibv_qp_init_attr_ex* attr) {
  constexpr uint32_t kKnown =
      IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  const bool has_flags = (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0;
  const bool batches = (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
  if ((attr->comp_mask & ~kKnown) != 0 || (has_flags && attr->create_flags != 0) ||
      (batches && (attr->send_ops_flags & ~kSenders) != 0)) {
    return no_qp(
        refused(EOPNOTSUPP, "create_qp_ex: something is asked for that the device has not"));
  }
  if ((attr->comp_mask & IBV_QP_INIT_ATTR_PD) == 0) {
    return no_qp(refused(EINVAL, "create_qp_ex: a queue pair needs a protection domain"));
  }
  ibv_qp_init_attr plain{.qp_context = attr->qp_context,
                         .send_cq = attr->send_cq,
                         .recv_cq = attr->recv_cq,
                         .srq = attr->srq,
                         .cap = attr->cap,
                         .qp_type = attr->qp_type,
                         .sq_sig_all = attr->sq_sig_all};
  auto batch = batches ? std::make_unique<SendBatch>() : nullptr;
  ibv_qp* made = create(attr->pd, &plain);
  if (made == nullptr) return nullptr;
  attr->cap = plain.cap;
  if (batches) {
    QueuePairs& qp = of(made);
    qp.batch_ = std::move(batch);
    qp.shown_.mark_extended();
    fill_senders(qp.shown_.qp_ex);
  }
  return made;
}

Status QueuePairs::close() {
  const auto info = pair_.info();
  // A program that leaves requests behind does not ask for them: over InfiniBand they would be
  // flushed at once. The peer may wait for a receive that its program posts no more.
  const bool abandons = info && sends_posted_ != info->sends_completed;
  return abandons ? pair_.drain(kAbandonTime) : pair_.drain();
}

/// Completions and events of the next connection bear another number (verbs.hpp).
int QueuePairs::reset() {
  if (auto status = pair_.modify({.state = QueuePairState::Idle}); !status) {
    return as_errno(status.error());
  }
  numbers_.push_back(pair_.number());
  if (roce_ == nullptr) shown_.qp.qp_num = pair_.number();
  AsyncEvents::all().renumber(&shown_.qp, pair_.number());
  return 0;
}

int QueuePairs::move(ibv_qp_state to) {
  switch (to) {
    case IBV_QPS_ERR: return outcome(pair_.modify({.state = QueuePairState::Error}));
    // rdma_disconnect() and rshutdown() ask an iWARP device so for a close in order.
    case IBV_QPS_SQD: return outcome(close());
    case IBV_QPS_RESET:
      return pair_.state() == QueuePairState::Error ? reset() : 0;
    default: return 0;
  }
}

int QueuePairs::modify(ibv_qp* shown, ibv_qp_attr* attr, int mask) {
  if (const int refused = VerbsStates::check_names(*attr, mask)) return refused;
  if (of(shown).roce_ != nullptr) return of(shown).modify_as_roce(*attr, mask);
  const bool has_state = (mask & IBV_QP_STATE) != 0;
  if (has_state && attr->qp_state == IBV_QPS_RTR &&
      (mask & (IBV_QP_DEST_QPN | IBV_QP_AV)) != 0) {
    complain(
        "modify_qp: an iWARP queue pair is connected by the connection manager (rdma_cm), not by "
        "GID and number: give perftest -R, or rnic-run --roce");
    return EINVAL;
  }
  const ibv_qp_state now = iwarp_state(of(shown).pair_.state());
  if (const int refused = check_iwarp(now, *attr, mask)) return refused;
  if (!has_state) return 0;
  if (const int refused = of(shown).move(attr->qp_state)) return refused;
  shown->state = attr->qp_state;
  return 0;
}

int QueuePairs::query(ibv_qp* shown, ibv_qp_attr* attr, int, ibv_qp_init_attr* made_with) {
  QueuePairs& qp = of(shown);
  auto now = qp.pair_.query();
  if (!now) return as_errno(now.error());
  *made_with = qp.made_with_;
  if (qp.roce_ != nullptr) {
    qp.query_as_roce(*attr);
    return 0;
  }
  shown->state = iwarp_state(now->state);
  *attr = {};
  attr->qp_state = shown->state;
  attr->cur_qp_state = attr->qp_state;
  attr->path_mtu = IBV_MTU_1024;
  attr->port_num = 1;
  attr->timeout = qp.ack_timeout_;
  attr->max_rd_atomic = static_cast<uint8_t>(std::min(now->ord, 255u));
  attr->max_dest_rd_atomic = static_cast<uint8_t>(std::min(now->ird, 255u));
  attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  attr->cap = qp.made_with_.cap;
  return 0;
}

int QueuePairs::destroy(ibv_qp* shown) {
  QueuePairs& qp = of(shown);
  RdmaCm::instance().remove(qp);
  qp.part_roce();
  const Status destroyed = qp.pair_.destroy();
  if (const int refused = given_back(destroyed)) return refused;
  // A child has nothing to do with its parent's completion queues, whose locks may be held.
  if (destroyed) {
    for (ibv_cq* cq : {shown->send_cq, shown->recv_cq}) {
      Completions::of(cq).forget(qp.numbers_, shown->qp_num);
    }
  }
  qp.leave_roce();
  await_acknowledgements(*shown, AsyncEvents::all().remove(shown));
  pthread_mutex_destroy(&shown->mutex);
  pthread_cond_destroy(&shown->cond);
  delete &qp;
  return 0;
}

Unread QueuePairs::unread() const {
  const auto of = [](ibv_cq* cq) { return Completions::of(cq).emptied_if_unread(); };
  return {.of_sends = of(made_with_.send_cq), .of_receives = of(made_with_.recv_cq)};
}

bool QueuePairs::has_read(const Unread& unread) const {
  const auto read = [](ibv_cq* cq, const std::optional<uint32_t>& before) {
    return !before || Completions::of(cq).emptied() != *before;
  };
  return read(made_with_.send_cq, unread.of_sends) &&
         read(made_with_.recv_cq, unread.of_receives);
}

void QueuePairs::wake() {
  for (ibv_cq* cq : {made_with_.send_cq, made_with_.recv_cq}) Completions::of(cq).tell();
}

int QueuePairs::post_send(ibv_qp* shown, ibv_send_wr* list, ibv_send_wr** bad) {
  QueuePairs& qp = of(shown);
  InlineOctets octets;
  return post_list(list, bad, [&](const ibv_send_wr& wr) {
    if (const int wrong = check_pieces(wr)) return wrong;
    SendRequest request;
    request.id = wr.wr_id;
    request.signaled = qp.made_with_.sq_sig_all != 0 || (wr.send_flags & IBV_SEND_SIGNALED) != 0;
    request.solicited = (wr.send_flags & IBV_SEND_SOLICITED) != 0;
    request.fence = (wr.send_flags & IBV_SEND_FENCE) != 0;
    if ((wr.send_flags & IBV_SEND_INLINE) != 0) {
      if (!octets.gather(wr)) return EINVAL;
      request.inline_data = octets.view();
    } else {
      request.sges = pieces(wr.sg_list, wr.num_sge);
    }
    if (const int unknown = put_operation(wr, request)) return unknown;
    const int refused = qp.post(request);
    if (refused == 0) ++qp.sends_posted_;
    return refused;
  });
}

int QueuePairs::post(const SendRequest& request) {
  if (roce_ == nullptr) return outcome(pair_.post_send(request));
  const bool may = shown_.qp.state == IBV_QPS_RTS || shown_.qp.state == IBV_QPS_ERR;
  if (!may) return refused(EINVAL, "post_send: the queue pair is not ready to send (IBV_QPS_RTS)");
  try {
    const Meeting::Posted posted = roce_->meeting.post(request);
    if (posted.is_to_wait) Rendezvous::instance().look_again();
    return posted.error;
  } catch (const std::bad_alloc&) {
    return ENOMEM;  // C is above: nothing may be thrown there
  }
}

int QueuePairs::post(const ReceiveRequest& request) {
  if (roce_ == nullptr) return outcome(pair_.post_receive(request));
  try {
    return roce_->meeting.post(request);
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

bool QueuePairs::window_bound(uint64_t id, bool signaled) {
  if (!signaled && made_with_.sq_sig_all == 0) return true;
  ibv_wc done{};
  done.wr_id = id;
  done.status = IBV_WC_SUCCESS;
  done.opcode = IBV_WC_BIND_MW;
  done.qp_num = shown_number();
  return Completions::of(made_with_.send_cq).add(done);
}

int QueuePairs::post_receive(ibv_qp* shown, ibv_recv_wr* list, ibv_recv_wr** bad) {
  QueuePairs& qp = of(shown);
  return post_list(list, bad, [&](const ibv_recv_wr& wr) {
    if (const int wrong = check_pieces(wr)) return wrong;
    return qp.post(as_ours(wr));
  });
}

}  // namespace rnic::run
