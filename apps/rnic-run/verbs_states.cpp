#include "rnic-run/verbs_states.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <type_traits>

#include "rnic-run/adapter.hpp"

namespace rnic::run {

namespace {

/// A way from a state to another one, and what the program has to say there (IBTA 1.4 table 91).
struct Way {
  ibv_qp_state from;
  ibv_qp_state to;
  int needed;
};

constexpr Way kWays[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0},
    {IBV_QPS_INIT, IBV_QPS_RTR,
     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
         IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_RTR, IBV_QPS_RTS,
     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
         IBV_QP_MAX_QP_RD_ATOMIC},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0},
};

/// An attribute that a bit of the mask stands for.
template <auto kMember>
void take(int bit, const ibv_qp_attr& from, int mask, ibv_qp_attr& to) {
  if ((mask & bit) != 0) to.*kMember = from.*kMember;
}

}  // namespace

int VerbsStates::check_names(const ibv_qp_attr& attr, int mask) {
  const auto is_state = [](const ibv_qp_state& from) {
    std::underlying_type_t<ibv_qp_state> number;
    std::memcpy(&number, &from, sizeof number);
    return number <= IBV_QPS_ERR;
  };
  const bool good = ((mask & IBV_QP_STATE) == 0 || is_state(attr.qp_state)) &&
                    ((mask & IBV_QP_CUR_STATE) == 0 || is_state(attr.cur_qp_state));
  return good ? 0 : refused(EINVAL, "modify_qp: there is no such state of a queue pair");
}

int VerbsStates::check_place(const ibv_qp_attr& attr, int mask) {
  if ((mask & IBV_QP_PORT) != 0 && attr.port_num != 1) {
    return refused(EINVAL, "modify_qp: the device has port 1 alone");
  }
  if ((mask & IBV_QP_PKEY_INDEX) != 0 && attr.pkey_index != 0) {
    return refused(EINVAL, "modify_qp: the device has one partition key, of index 0");
  }
  return 0;
}

int VerbsStates::check(const ibv_qp_attr& attr, int mask) const {
  if (const int refused = check_place(attr, mask)) return refused;
  const ibv_qp_state to = (mask & IBV_QP_STATE) != 0 ? attr.qp_state : state_;
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return 0;
  if (to == IBV_QPS_SQD) {
    return refused(EOPNOTSUPP, "modify_qp: a send queue cannot be drained under the RoCE face");
  }
  const auto* const way = std::find_if(std::begin(kWays), std::end(kWays), [&](const Way& each) {
    return each.from == state_ && each.to == to;
  });
  if (way == std::end(kWays)) {
    return refused(EINVAL, "modify_qp: that state cannot follow the present one");
  }
  if ((way->needed & ~mask) != 0) {
    return refused(EINVAL, "modify_qp: an attribute is missing that this change of state needs");
  }
  return 0;
}

void VerbsStates::set(const ibv_qp_attr& attr, int mask) {
  if ((mask & IBV_QP_STATE) != 0) state_ = attr.qp_state;
  if (state_ == IBV_QPS_RESET) {
    attributes_ = {};
    return;
  }
  take<&ibv_qp_attr::qp_access_flags>(IBV_QP_ACCESS_FLAGS, attr, mask, attributes_);
  take<&ibv_qp_attr::pkey_index>(IBV_QP_PKEY_INDEX, attr, mask, attributes_);
  take<&ibv_qp_attr::port_num>(IBV_QP_PORT, attr, mask, attributes_);
  take<&ibv_qp_attr::ah_attr>(IBV_QP_AV, attr, mask, attributes_);
  take<&ibv_qp_attr::path_mtu>(IBV_QP_PATH_MTU, attr, mask, attributes_);
  take<&ibv_qp_attr::timeout>(IBV_QP_TIMEOUT, attr, mask, attributes_);
  take<&ibv_qp_attr::retry_cnt>(IBV_QP_RETRY_CNT, attr, mask, attributes_);
  take<&ibv_qp_attr::rnr_retry>(IBV_QP_RNR_RETRY, attr, mask, attributes_);
  take<&ibv_qp_attr::min_rnr_timer>(IBV_QP_MIN_RNR_TIMER, attr, mask, attributes_);
  take<&ibv_qp_attr::rq_psn>(IBV_QP_RQ_PSN, attr, mask, attributes_);
  take<&ibv_qp_attr::sq_psn>(IBV_QP_SQ_PSN, attr, mask, attributes_);
  take<&ibv_qp_attr::max_rd_atomic>(IBV_QP_MAX_QP_RD_ATOMIC, attr, mask, attributes_);
  take<&ibv_qp_attr::max_dest_rd_atomic>(IBV_QP_MAX_DEST_RD_ATOMIC, attr, mask, attributes_);
  take<&ibv_qp_attr::dest_qp_num>(IBV_QP_DEST_QPN, attr, mask, attributes_);
}

}  // namespace rnic::run
