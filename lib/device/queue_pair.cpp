#include "device/queue_pair.hpp"

#include <utility>

#include "base/check.hpp"

namespace rnic::device {

namespace {

rdmap::ReceiveQueue make_receives(uint32_t number, const QueuePairSpec& spec,
                                  base::PageStore& pages) {
  if (spec.srq == nullptr) return rdmap::ReceiveQueue(spec.receive_depth, &pages);
  return {*spec.srq, number, spec.receive_depth};
}

}  // namespace

QueuePair::QueuePair(uint32_t number, uint32_t doorbell, const QueuePairSpec& spec,
                     const QueuePairParts& parts, mem::StagTable& memory,
                     base::PageStore& pages)
    : number_(number),
      doorbell_(doorbell),
      bell_(parts.doorbells, doorbell),
      spec_(spec),
      parts_(parts),
      memory_(memory),
      sends_(spec.send_depth, &pages),
      receives_(make_receives(number, spec, pages)),
      stream_(memory.new_stream()),
      endpoint_(make_endpoint(number, stream_, spec.ird, spec.ord)),
      answers_close_(spec.answer_close),
      context_(spec.context) {
  wait_timer_.owner = stall_timer_.owner = this;
}

rdmap::Endpoint QueuePair::make_endpoint(uint32_t number, uint64_t stream, uint32_t ird,
                                         uint32_t ord) {
  rdmap::EndpointConfig config;
  config.qp = number;
  config.stream = stream;
  config.pd = spec_.pd;
  config.ird = ird;
  config.ord = ord;
  config.extensions = parts_.extensions;
  config.strict_sinks = spec_.strict_read_sinks;
  config.receive_wait = spec_.receive_wait;
  config.secret = parts_.secret[0] ^ parts_.secret[1] * (2 * uint64_t{number} + 1);
  return {config, memory_, parts_.counters, *this, {sends_, receives_, parts_.requests}};
}

uint64_t QueuePair::octets_for(const QueuePairSpec& spec) {
  return rdmap::SendQueue::octets_for(spec.send_depth) +
         (spec.srq == nullptr ? rdmap::ReceiveQueue::octets_for(spec.receive_depth)
                              : rdmap::ReceiveQueue::octets_for_shared(spec.receive_depth));
}

PostResult QueuePair::check(const SendRequest& work, const rdmap::WorkRow& row,
                            uint64_t octets) const {
  const PostResult shape =
      rdmap::check_shape(row, work.sges.size(), work.sges.view().data(), octets);
  if (shape != PostResult::Ok) return shape;
  const PostResult kept = rdmap::check_inline(row, work.sges.size(), work.inline_data.size());
  if (kept != PostResult::Ok) return kept;
  return row.extension && !parts_.extensions ? PostResult::Disabled : PostResult::Ok;
}

PostResult QueuePair::queue(const SendRequest& work) {
  const bool plain = rdmap::takes_any_sge(work.opcode) && work.sges.size() == 1;
  if (!plain || !work.inline_data.empty()) return queue_any(work);
  if (!sends_.has_room()) return PostResult::Full;
  sends_.write_plain(work);
  return PostResult::Ok;
}

PostResult QueuePair::queue_any(const SendRequest& work) {
  const rdmap::WorkRow& row = rdmap::work_row(work.opcode);
  const uint64_t octets = work.sges.length();
  if (const PostResult bad = check(work, row, octets); bad != PostResult::Ok) return bad;
  if (!sends_.has_room()) return PostResult::Full;
  sends_.write(work, row, octets);
  return PostResult::Ok;
}

PostResult QueuePair::queue(const ReceiveRequest& work) {
  if (work.sges.too_long()) return PostResult::TooManySge;
  if (!receives_.has_room()) return PostResult::Full;
  receives_.write(work);
  return PostResult::Ok;
}

PostResult QueuePair::post_send(const SendRequest& work) {
  bell_.expect();
  if (const PostResult bad = queue(work); bad != PostResult::Ok) return bad;
  sends_.publish();
  bell_.ring();
  return PostResult::Ok;
}

PostResult QueuePair::post_receive(const ReceiveRequest& work) {
  bell_.expect();
  if (const PostResult bad = queue(work); bad != PostResult::Ok) return bad;
  receives_.publish();
  bell_.ring();
  return PostResult::Ok;
}

template <typename Work, typename Queue>
QueuePair::ListResult QueuePair::post_list(std::span<const Work> works, Queue& to) {
  ListResult list;
  for (const Work& work : works) {
    list.result = queue(work);
    if (list.result != PostResult::Ok) break;
    ++list.taken;
  }
  if (list.taken == 0) return list;
  to.publish();
  bell_.ring();
  return list;
}

QueuePair::ListResult QueuePair::post_sends(std::span<const SendRequest> works) {
  return post_list(works, sends_);
}

QueuePair::ListResult QueuePair::post_receives(std::span<const ReceiveRequest> works) {
  return post_list(works, receives_);
}

void QueuePair::look_for_unsent(base::Now now) {
  if (!has_unsent()) return;
  watches_first_fpdu_ = false;
  if (!orphaned_) parts_.owner.first_fpdu_awaited(*this, now);
}

void QueuePair::resume(base::Now now) {
  endpoint_.resume(now);
  if (!waits_for_receive()) parts_.receive_waits.end(wait_timer_);
}

void QueuePair::receive_wait_began(base::Now deadline) {
  parts_.receive_waits.begin(wait_timer_, deadline);
}

/// The doorbell has a waiting message resumed later: here its stream may be in the middle of a
/// call.
void QueuePair::serve_between_turns() {
  serve();
  if (waits_for_receive()) bell_.ring();
}

Status QueuePair::commit(const PlannedFault& fault, base::Now now) {
  serve_between_turns();
  return endpoint_.commit(fault, now);
}

void QueuePair::disconnect() {
  serve_between_turns();
  endpoint_.disconnect();
}

void QueuePair::abort() {
  serve_between_turns();
  endpoint_.abort();
}

void QueuePair::renew(uint32_t number, uint32_t ird, uint32_t ord) {
  RNIC_CHECK(state() == QueuePairState::Error && !connection_.valid());
  serve();  // work posted until now belongs to the former life
  const uint64_t stream = memory_.new_stream();
  rdmap::Endpoint next = make_endpoint(number, stream, ird, ord);
  if (use_ != QueuePairUse::Unused) set_use(QueuePairUse::Unused, {});
  parts_.stalls.end(stall_timer_);
  sends_.renew();
  receives_.renew(number);
  endpoint_ = std::move(next);
  stream_ = stream;
  number_.store(number, std::memory_order_relaxed);
  spec_.ird = ird;
  spec_.ord = ord;
  tcp_choice_.reset();
  fault_told_ = false;
  watches_first_fpdu_ = false;
}

void QueuePair::set_reads(uint32_t ird, uint32_t ord) {
  RNIC_CHECK(state() == QueuePairState::Idle && !used());
  rdmap::Endpoint next = make_endpoint(number(), stream_, ird, ord);
  endpoint_ = std::move(next);
  spec_.ird = ird;
  spec_.ord = ord;
}

QueuePairAttributes QueuePair::attributes() const {
  QueuePairAttributes now;
  now.number = number();
  now.state = state();
  now.send_depth = spec_.send_depth;
  now.receive_depth = spec_.receive_depth;
  now.ird = endpoint_.ird();
  now.ord = endpoint_.ord();
  now.answers_close = answers_close_;
  now.context = context_;
  return now;
}

void QueuePair::set_use(QueuePairUse next, base::Handle connection) {
  RNIC_CHECK(kQueuePairUseTransitions.allows(use_, next));
  use_ = next;
  connection_ = connection;
}

void QueuePair::begin_connection(base::Handle connection) {
  set_use(QueuePairUse::Connected, connection);
  tally_.connection_begins();
}

void QueuePair::cancel_connection() { set_use(QueuePairUse::Unused, {}); }

void QueuePair::await_redial() { set_use(QueuePairUse::AwaitsRedial, {}); }

void QueuePair::end_connection() { set_use(QueuePairUse::Used, {}); }

void QueuePair::send_completed(const Completion& completion) {
  tally_.send_ended(completion);
  complete(*spec_.send_cq, completion);
}

void QueuePair::send_succeeded(uint64_t id, Opcode opcode, uint32_t length, uint32_t qp) {
  if (orphaned_) return;
  CompletionQueue& cq = *spec_.send_cq;
  if (!cq.push_success(id, opcode, length, qp)) parts_.owner.completion_overrun(*this, cq);
}

void QueuePair::receive_completed(const Completion& completion) {
  tally_.receive_ended(completion);
  complete(*spec_.receive_cq, completion);
}

void QueuePair::last_receive_done() {
  if (!orphaned_) parts_.owner.last_receive_done(*this);
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
  if (!cq.push(completion)) parts_.owner.completion_overrun(*this, cq);
}

void QueuePair::rtr_sent(base::Now now) {
  if (!orphaned_) parts_.owner.rtr_sent(*this, now);
}

void QueuePair::event(Event event, base::Now now) {
  tally_.happened(event);
  parts_.terminates.happened(event);
  if (orphaned_) return;
  const bool answer = answers_close_ && std::holds_alternative<event::PeerClosed>(event);
  parts_.owner.endpoint_event(*this, std::move(event), now);
  if (answer) disconnect();
}

}  // namespace rnic::device
