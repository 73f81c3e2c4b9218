/// \file
/// The states of a queue pair of iWARP in the words of libibverbs.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>

#include "rnic-run/adapter.hpp"
#include "rnic-run/verbs_states.hpp"

namespace rnic::run {

/// A queue pair of iWARP is idle from the beginning, and behind a reset: rdma-core's own tests ask
/// for INIT there.
inline ibv_qp_state iwarp_state(QueuePairState now) {
  switch (now) {
    case QueuePairState::Idle: return IBV_QPS_INIT;
    case QueuePairState::Rts: return IBV_QPS_RTS;
    case QueuePairState::Closing: return IBV_QPS_SQD;
    case QueuePairState::Terminate:
    case QueuePairState::Error: break;
  }
  return IBV_QPS_ERR;
}

/// Which state may follow which, when the program says so: the way to RTS is the connection
/// manager's, whose library asks for none of it, and a connection ends before it is begun anew.
/// \return 0, or EINVAL
inline int check_iwarp(ibv_qp_state now, const ibv_qp_attr& attr, int mask) {
  if (const int refused = VerbsStates::check_place(attr, mask)) return refused;
  const bool idle = now == IBV_QPS_INIT;
  if ((mask & IBV_QP_CUR_STATE) != 0 && attr.cur_qp_state != now &&
      !(idle && attr.cur_qp_state == IBV_QPS_RESET)) {
    return refused(EINVAL, "modify_qp: the queue pair is not in the state that cur_qp_state says");
  }
  if ((mask & IBV_QP_STATE) == 0) return 0;
  bool good = false;
  switch (attr.qp_state) {
    case IBV_QPS_RESET: good = idle || now == IBV_QPS_ERR; break;
    case IBV_QPS_INIT: good = idle; break;
    case IBV_QPS_RTS: good = now == IBV_QPS_RTS; break;
    // A connection that is being made may be ended, too, and one that has ended: both are what
    // rdma_disconnect() asks for.
    case IBV_QPS_SQD:
    case IBV_QPS_ERR: good = true; break;
    default: break;
  }
  return good ? 0 : refused(EINVAL, "modify_qp: that state cannot follow the present one");
}

}  // namespace rnic::run
