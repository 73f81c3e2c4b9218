// Queue pairs under the RoCE face: the changes of state make the connection.

#include <cerrno>
#include <memory>
#include <new>
#include <optional>

#include "rnic-run/adapter.hpp"
#include "rnic-run/async_events.hpp"
#include "rnic-run/completions.hpp"
#include "rnic-run/gid_table.hpp"
#include "rnic-run/queue_pairs.hpp"
#include "rnic-run/rendezvous.hpp"

namespace rnic::run {

namespace {

// Hardware takes the lower 24 bits, and programs draw 32.
constexpr uint32_t kMaxPsn = 0xffffff;

}  // namespace

/// \return 0, or errno
int QueuePairs::show_as_roce() {
  const auto qpn = Rendezvous::instance().take_number();
  if (!qpn) return as_errno(qpn.error());
  try {
    roce_ = std::make_unique<RoceSide>(*this, *qpn, made_with_.cap);
    shown_.qp.qp_num = *qpn;
    ShownNumbers::all().add(pair_.number(), roce_->meeting.shown());
    Rendezvous::instance().add(roce_->meeting);
  } catch (const std::bad_alloc&) {
    ShownNumbers::all().remove(pair_.number());
    Rendezvous::instance().give_back(*qpn);
    throw;
  }
  return 0;
}

void QueuePairs::part_roce() {
  if (roce_ != nullptr) Rendezvous::instance().remove(roce_->meeting);
}

void QueuePairs::leave_roce() {
  if (roce_ == nullptr) return;
  ShownNumbers::all().remove(numbers_.back());
  Rendezvous::instance().give_back(shown_.qp.qp_num);
}

int QueuePairs::modify_as_roce(const ibv_qp_attr& attr, int mask) {
  // A child has nothing to do with its parent's.
  if (const auto now = pair_.query(); !now) return as_errno(now.error());
  VerbsStates& states = roce_->states;
  Meeting& meeting = roce_->meeting;
  if (meeting.has_failed()) states.fail();
  if (const int refused = states.check(attr, mask)) return refused;
  const auto carry_out = [&] {
    switch (attr.qp_state) {
      case IBV_QPS_RTR: return appoint(attr);
      case IBV_QPS_RTS:
        if ((mask & IBV_QP_SQ_PSN) != 0) meeting.set_psn(attr.sq_psn & kMaxPsn);
        return 0;
      case IBV_QPS_ERR: meeting.fail(); return 0;
      case IBV_QPS_RESET: return reset_as_roce();
      default: return 0;
    }
  };
  if ((mask & IBV_QP_STATE) != 0) {
    if (const int error = Rendezvous::instance().with_lock(carry_out)) return error;
  }
  states.set(attr, mask);
  return 0;
}

int QueuePairs::appoint(const ibv_qp_attr& attr) {
  if (attr.ah_attr.is_global == 0) {
    complain(
        "modify_qp: the peer has to be named by its GID, as always on Ethernet: give "
        "ibv_rc_pingpong -g 0");
    return EINVAL;
  }
  const auto self = GidTable::of_process().at(attr.ah_attr.grh.sgid_index);
  if (!self) return refused(EINVAL, "modify_qp: the device has no GID of that index");
  const Appointment with{.self = {shown_.qp.qp_num, *self},
                         .peer = {attr.dest_qp_num, address_of(attr.ah_attr.grh.dgid)},
                         .expected_psn = attr.rq_psn & kMaxPsn,
                         .reads_served = attr.max_dest_rd_atomic};
  const bool is_one = with.peer.address.is_unicast() && with.peer.qpn <= kMaxQpn &&
                      port_of(with.peer.qpn) != 0 &&
                      with.peer.address.is_v4() == self->is_v4();
  if (!is_one) {
    return refused(EINVAL, "modify_qp: the GID and number are no queue pair's of this face");
  }
  if (with.peer == with.self) {
    complain("modify_qp: a queue pair cannot be connected to itself under the RoCE face");
    return EINVAL;
  }
  roce_->meeting.appoint(with);
  return 0;
}

int QueuePairs::reset_as_roce() {
  // From Error the way back is open as soon as the connection is gone.
  if (auto status = pair_.modify({.state = QueuePairState::Error}); !status) {
    return as_errno(status.error());
  }
  const uint32_t before = pair_.number();
  if (const int error = take_next_number()) return error;
  for (ibv_cq* cq : {shown_.qp.send_cq, shown_.qp.recv_cq}) {
    Completions::of(cq).forget({&before, 1}, shown_.qp.qp_num);
  }
  // Not earlier: another thread may poll, and would be told of completions in the device's words.
  ShownNumbers::all().remove(before);
  roce_->meeting.forget();
  return 0;
}

int QueuePairs::renew() {
  const uint32_t before = pair_.number();
  if (const int error = take_next_number()) return error;
  ShownNumbers::all().remove(before);
  return 0;
}

int QueuePairs::take_next_number() {
  if (const int error = reset()) return error;
  numbers_.erase(numbers_.begin(), numbers_.end() - 1);
  ShownNumbers::all().add(pair_.number(), roce_->meeting.shown());
  return 0;
}

void QueuePairs::query_as_roce(ibv_qp_attr& out) {
  if (roce_->meeting.has_failed()) roce_->states.fail();
  out = roce_->states.attributes();
  out.qp_state = roce_->states.state();
  out.cur_qp_state = out.qp_state;
  out.cap = made_with_.cap;
}

void QueuePairs::add_completion(uint64_t id, ibv_wc_opcode opcode, ibv_wc_status status) {
  ibv_wc done{};
  done.wr_id = id;
  done.status = status;
  done.opcode = opcode;
  done.qp_num = shown_number();
  const bool receives = opcode == IBV_WC_RECV;
  (void)Completions::of(receives ? made_with_.recv_cq : made_with_.send_cq).add(done);
}

}  // namespace rnic::run
