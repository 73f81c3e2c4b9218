#include "rnic-run/qp_numbers.hpp"

namespace rnic::run {

namespace {

// A program may bring all of its queue pairs to one peer at once; more than wait come again.
constexpr uint32_t kMostUnanswered = 1024;

}  // namespace

Result<uint32_t> QpNumbers::take(Device& device) {
  for (Port& port : ports_) {
    if (port.taken.all()) continue;
    while (port.taken[port.next]) port.next = (port.next + 1) % kQueuePairsOfPort;
    port.taken[port.next] = true;
    const uint32_t qpn = qpn_of(port.number, port.next);
    port.next = (port.next + 1) % kQueuePairsOfPort;
    return qpn;
  }
  ports_.reserve(ports_.size() + 1);  // no memory for it: nobody listens then
  ListenOptions options;
  options.backlog = kMostUnanswered;
  auto listening = device.listen(Endpoint{}, options);
  if (!listening) return tl::unexpected(listening.error());
  ports_.push_back({.number = listening->port});
  return take(device);
}

void QpNumbers::give_back(uint32_t qpn) {
  for (Port& port : ports_) {
    if (port.number == port_of(qpn)) port.taken[index_of(qpn)] = false;
  }
}

}  // namespace rnic::run
