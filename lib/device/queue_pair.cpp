#include "device/queue_pair.hpp"

#include "device/device.hpp"

namespace rnic::device {

namespace {

rdmap::EndpointConfig endpoint_config(uint32_t number, const QueuePairSpec& spec,
                                      const DeviceConfig& device) {
  rdmap::EndpointConfig config;
  config.qp = number;
  config.pd = spec.pd;
  config.send_depth = spec.send_depth;
  config.receive_depth = spec.receive_depth;
  config.ird = spec.ird;
  config.ord = spec.ord;
  config.extensions = device.rdma_extensions;
  config.secret = device.secret[0] ^ device.secret[1] * (2 * uint64_t{number} + 1);
  return config;
}

}  // namespace

QueuePair::QueuePair(uint32_t number, const QueuePairSpec& spec, Device& device)
    : number_(number),
      spec_(spec),
      device_(device),
      endpoint_(endpoint_config(number, spec, device.config()), device.memory(),
                device.rdmap_counters(), *this),
      send_ring_(spec.send_depth),
      receive_ring_(spec.receive_depth) {}

uint64_t QueuePair::octets_for(const QueuePairSpec& spec) {
  return rdmap::Endpoint::queue_octets_for(spec.send_depth, spec.receive_depth) +
         base::SpscRing<SendRequest>::octets_for(spec.send_depth) +
         base::SpscRing<ReceiveRequest>::octets_for(spec.receive_depth);
}

PostResult QueuePair::check(const SendRequest& work) const {
  uint32_t most = kMaxSge;
  switch (work.opcode) {
    case Opcode::Send:
    case Opcode::SendInvalidate:
    case Opcode::Write: break;
    case Opcode::Immediate:
    case Opcode::LocalInvalidate: most = 0; break;
    case Opcode::Read:
    case Opcode::ReadInvalidate:
    case Opcode::FetchAdd:
    case Opcode::CompareSwap: most = 1; break;
    default: return PostResult::BadOpcode;  // a receive's, and every number without a name
  }
  if (work.sge_count > most) return PostResult::TooManySge;
  const bool atomic = is_atomic(work.opcode);
  if (atomic && work.sge_count != 0 && work.sges[0].length != kAtomicSize) {
    return PostResult::BadLength;
  }
  if (work.opcode == Opcode::ReadInvalidate && work.sge_count == 0) {
    return PostResult::BadLength;
  }
  const bool extension = atomic || work.opcode == Opcode::Immediate;
  if (extension && !device_.config().rdma_extensions) return PostResult::Disabled;
  return work.length() > UINT32_MAX ? PostResult::TooLong : PostResult::Ok;
}

PostResult QueuePair::post_send(const SendRequest& work) {
  if (const PostResult bad = check(work); bad != PostResult::Ok) return bad;
  if (send_posted_ - send_retired_.load(std::memory_order_acquire) >= spec_.send_depth) {
    return PostResult::Full;
  }
  const bool pushed = send_ring_.push(work);
  RNIC_CHECK(pushed);
  ++send_posted_;
  device_.ring_doorbell(number_);
  return PostResult::Ok;
}

PostResult QueuePair::post_receive(const ReceiveRequest& work) {
  if (work.sge_count > kMaxSge) return PostResult::TooManySge;
  if (receive_posted_ - receive_retired_.load(std::memory_order_acquire) >= spec_.receive_depth) {
    return PostResult::Full;
  }
  const bool pushed = receive_ring_.push(work);
  RNIC_CHECK(pushed);
  ++receive_posted_;
  device_.ring_doorbell(number_);
  return PostResult::Ok;
}

void QueuePair::serve() {
  // Receives first: a send may make the peer answer into them.
  // The place in the ring is free before the endpoint sees the work: it may flush it at once, and
  // the application may then post into that place.
  ReceiveRequest receive;
  while (endpoint_.can_receive() && receive_ring_.pop(receive)) endpoint_.receive(receive);
  SendRequest send;
  while (endpoint_.can_send() && send_ring_.pop(send)) endpoint_.send(send);
}

void QueuePair::send_completed(const Completion& completion) {
  send_retired_.fetch_add(1, std::memory_order_release);
  complete(*spec_.send_cq, completion);
}

void QueuePair::send_retired() { send_retired_.fetch_add(1, std::memory_order_release); }

void QueuePair::receive_completed(const Completion& completion) {
  receive_retired_.fetch_add(1, std::memory_order_release);
  complete(*spec_.receive_cq, completion);
}

void QueuePair::complete(CompletionQueue& cq, const Completion& completion) {
  if (orphaned_) return;
  if (!cq.push(completion)) device_.completion_overrun(*this, cq);
}

void QueuePair::event(const rdmap::EndpointEvent& event, base::Now now) {
  if (!orphaned_) device_.endpoint_event(*this, event, now);
}

}  // namespace rnic::device
