#include "device/queue_pair.hpp"

#include <utility>

#include "base/check.hpp"

namespace rnic::device {

namespace {

rdmap::EndpointConfig endpoint_config(uint32_t number, const QueuePairSpec& spec,
                                      const QueuePairParts& parts) {
  rdmap::EndpointConfig config;
  config.qp = number;
  config.pd = spec.pd;
  config.ird = spec.ird;
  config.ord = spec.ord;
  config.extensions = parts.extensions;
  config.secret = parts.secret[0] ^ parts.secret[1] * (2 * uint64_t{number} + 1);
  return config;
}

rdmap::ReceiveQueue make_receives(uint32_t number, const QueuePairSpec& spec) {
  if (spec.srq == nullptr) return rdmap::ReceiveQueue(spec.receive_depth);
  return {*spec.srq, number, spec.receive_depth};
}

}  // namespace

QueuePair::QueuePair(uint32_t number, const QueuePairSpec& spec, const QueuePairParts& parts,
                     mem::StagTable& memory)
    : number_(number),
      spec_(spec),
      owner_(parts.owner),
      doorbells_(parts.doorbells),
      extensions_(parts.extensions),
      sends_(spec.send_depth),
      receives_(make_receives(number, spec)),
      endpoint_(endpoint_config(number, spec, parts), memory, parts.counters, *this,
                {sends_, receives_}) {}

uint64_t QueuePair::octets_for(const QueuePairSpec& spec) {
  return rdmap::SendQueue::octets_for(spec.send_depth) +
         (spec.srq == nullptr ? rdmap::ReceiveQueue::octets_for(spec.receive_depth)
                              : rdmap::ReceiveQueue::octets_for_shared(spec.receive_depth));
}

PostResult QueuePair::check(const SendRequest& work, const rdmap::WorkRow& row) const {
  const std::span<const Sge> sges = work.sges.view();
  const PostResult shape =
      rdmap::check_shape(row, work.sges.size(), sges.data(), work.sges.length());
  if (shape != PostResult::Ok) return shape;
  return row.extension && !extensions_ ? PostResult::Disabled : PostResult::Ok;
}

PostResult QueuePair::post_send(const SendRequest& work) {
  const rdmap::WorkRow& row = rdmap::work_row(work.opcode);
  if (const PostResult bad = check(work, row); bad != PostResult::Ok) return bad;
  if (!sends_.has_room()) return PostResult::Full;
  sends_.post(work, row);
  doorbells_.ring(number_);
  return PostResult::Ok;
}

PostResult QueuePair::post_receive(const ReceiveRequest& work) {
  if (work.sges.too_long()) return PostResult::TooManySge;
  if (!receives_.has_room()) return PostResult::Full;
  receives_.post(work);
  doorbells_.ring(number_);
  return PostResult::Ok;
}

void QueuePair::serve() { endpoint_.serve(); }

void QueuePair::disconnect() {
  serve();
  endpoint_.disconnect();
}

void QueuePair::set_use(QueuePairUse next, base::Handle connection) {
  RNIC_CHECK(kQueuePairTransitions.allows(use_, next));
  use_ = next;
  connection_ = connection;
}

void QueuePair::begin_connection(base::Handle connection) {
  set_use(QueuePairUse::Connected, connection);
}

void QueuePair::cancel_connection() { set_use(QueuePairUse::Unused, {}); }

void QueuePair::await_redial() { set_use(QueuePairUse::AwaitsRedial, {}); }

void QueuePair::end_connection() { set_use(QueuePairUse::Used, {}); }

void QueuePair::send_completed(const Completion& completion) {
  complete(*spec_.send_cq, completion);
}

void QueuePair::receive_completed(const Completion& completion) {
  complete(*spec_.receive_cq, completion);
}

void QueuePair::last_receive_done() {
  if (!orphaned_) owner_.last_receive_done(*this);
}

void QueuePair::leave_srq() {
  if (!receives_.is_shared()) return;
  orphan();
  // The stream places nothing into those receives any more.
  endpoint_.abort();
  receives_.leave();
}

void QueuePair::complete(CompletionQueue& cq, const Completion& completion) {
  if (orphaned_) return;
  if (!cq.push(completion)) owner_.completion_overrun(*this, cq);
}

void QueuePair::rtr_sent(base::Now now) {
  if (!orphaned_) owner_.rtr_sent(*this, now);
}

void QueuePair::event(Event event, base::Now now) {
  if (!orphaned_) owner_.endpoint_event(*this, std::move(event), now);
}

}  // namespace rnic::device
