#include "device/device.hpp"

#include <algorithm>
#include <array>

#include "base/log.hpp"
#include "base/starved.hpp"
#include "wire/tcp.hpp"

namespace rnic::device {

Device::Device(const DeviceConfig& config, port::Port& port, base::Now now,
               net::Reassembler* reassembler)
    : Device(config, now) {
  own_.emplace(config_, port, reassembler, counters_, now);
  transport_ = &own_->stack;
  connections_.attach(*transport_, &*own_);
}

Device::Device(const DeviceConfig& config, llp::Transport& transport, base::Now now)
    : Device(config, now) {
  transport_ = &transport;
  connections_.attach(transport, nullptr);
}

Device::Device(const DeviceConfig& config, base::Now now)
    : config_(config),
      framing_(config_),
      receive_waits_(now),
      faults_(config_.faults),
      stalls_(config_.name, now),
      consumers_(config_.limits.max_consumers, config_.quotas, given_out(config_.limits)),
      resources_(config_, counters_, consumers_, now),
      doorbells_(doorbells_of(config.limits)),
      events_(config.limits.max_events, counters_.events_lost),
      reserved_ports_(consumers_),
      connections_(
          config_,
          {resources_, consumers_, events_, reserved_ports_, framing_, counters_, doorbells_},
          now) {
  qp_parts_.emplace(QueuePairParts{connections_, rdmap_counters_, doorbells_, requests_,
                                   receive_waits_, terminates_, stalls_, faults_,
                                   config_.rdma_extensions, config_.secret});
  if (!config.mpa.crc) {
    base::log(base::LogLevel::Warning, "mpa", [&] {
      return config.name +
             ": CRC is off where the peer agrees (mpa.crc = false): only for a path that protects "
             "as well as CRC32c does, such as IPsec end to end (RFC 5044 s.4.4)";
    });
  }
}

Device::~Device() {
  if (transport_ != nullptr) shut_down({});  // nullptr: the constructor has thrown
}

void Device::shut_down(base::Now now) {
  // Streams end here so that their sessions still live when they get their last call.
  resources_.for_each_qp([this](QueuePair* qp) { static_cast<void>(destroy_qp(qp)); });
  connections_.abort_all();
  if (own_) own_->abort_sockets();
  transport_->output(now);
  if (own_) own_->interface.flush(now);
  reap(now);
}

uint32_t Device::poll(base::Now now, Turn what) {
  ++counters_.polls;
  resources_.begin_turn(now);
  if (!own_) return poll_transport(now, what);
  const uint32_t work = what == Turn::Whole ? receive(now) : doorbells(now).serve();
  fire_timers(now);
  // Nothing is received while frames of the last turn still wait to be sent: new frames wait in the
  // port instead of being lost.
  if (own_->interface.flush(now) && own_->stack.has_output()) {
    own_->stack.output(now);
    own_->interface.flush(now);
  }
  own_->kept.turn_over();
  reap(now);
  if (work != 0) ++counters_.busy_polls;
  return work;
}

uint32_t Device::poll_transport(base::Now now, Turn what) {
  DoorbellTurn bells = doorbells(now);
  uint32_t work = what == Turn::Whole ? transport_->receive(now, bells) : 0;
  bells.serve();
  work += bells.served();
  fire_timers(now);
  transport_->output(now);
  reap(now);
  if (work != 0) ++counters_.busy_polls;
  return work;
}

uint32_t Device::receive(base::Now now) {
  DoorbellTurn bells = doorbells(now);
  uint32_t frames = 0;
  own_->order.begin_turn();
  for (bool more = true; more && frames < kFramesPerPoll;) {
    const Burst burst = receive_burst(now, bells);
    frames += burst.taken;
    more = burst.more;
  }
  return frames + bells.served();
}

namespace {

/// Gives the frames of a burst that were taken back to the port, at once or later. The others of it
/// wait, in front of the next burst.
class BurstOwner {
 public:
  BurstOwner(PortStack& own, std::span<port::Packet> taken) : own_(own), taken_(taken) {}
  ~BurstOwner() {
    if (!own_.kept.keep(taken_)) own_.port.free(taken_);
    const port::Packet* const waiting = taken_.data() + taken_.size();
    if (own_.order.held() != 0) std::copy_n(waiting, own_.order.held(), own_.burst.data());
  }
  BurstOwner(const BurstOwner&) = delete;
  BurstOwner& operator=(const BurstOwner&) = delete;

 private:
  PortStack& own_;
  std::span<port::Packet> taken_;
};

}  // namespace

Device::Burst Device::receive_burst(base::Now now, DoorbellTurn& doorbells) {
  BurstOrder& order = own_->order;
  const uint32_t waiting = order.held();
  const std::span<port::Packet> room = own_->burst;
  const uint32_t most = order.most_fresh();
  const uint32_t fresh = own_->port.rx_burst(room.subspan(waiting, most), now);
  uint32_t n = waiting + fresh;
  if (n == 0) {
    doorbells.serve();
    return {};
  }
  for (uint32_t i = 0; i < n; ++i) __builtin_prefetch(room[i].data);
  if (order.on()) [[unlikely]] n = order.arrange(room.first(n));
  // The frames go back even if the processing of one of them throws.
  const BurstOwner owner(*own_, room.first(n));
  doorbells.serve();
  for (uint32_t i = 0; i < n; ++i) {
    // Not const: a constant that a call initializes stays out of registers (GCC 12).
    std::optional<net::TcpIn> ip = own_->interface.input(room[i], now);
    if (!ip) continue;
    own_->stack.input({ip->source, ip->destination, ip->payload, ip->l4_checksum_good, ip->ecn},
                      now);
  }
  order.note_ahead(own_->stack.counters().out_of_order_octets_in);
  return {n, fresh == most};
}

void Device::fire_timers(base::Now now) {
  if (own_) {
    if (own_->stack.due(now)) own_->stack.on_timers(now);
    if (own_->interface.next_deadline() <= now) own_->interface.on_timers(now);
    if (own_->link.next_look() <= now) own_->link.look(events_, now);
  } else if (transport_->next_deadline() <= now) {
    transport_->on_timers(now);
  }
  receive_waits_.on_timers(now);
  stalls_.on_timers(now);
  connections_.on_timers(now);
  resources_.on_timers(now);
}

void Device::reap(base::Now now) {
  if (own_) own_->reap_sockets();
  connections_.reap(now);
}

base::Now Device::next_deadline() const {
  if (doorbell_ringing()) return base::Now{};
  if (own_ && own_->order.held() != 0) return base::Now{};
  // A post to a shared receive queue rings no doorbell.
  if (receive_waits_.any() && resources_.can_resume()) return base::Now{};
  base::Now next = base::earlier(transport_->next_deadline(), connections_.next_deadline());
  next = base::earlier(next, resources_.next_deadline());
  next = base::earlier(next, receive_waits_.next_deadline());
  next = base::earlier(next, stalls_.next_deadline());
  if (!own_) return next;
  next = base::earlier(next, own_->interface.next_deadline());
  next = base::earlier(next, own_->link.next_look());
  return base::earlier(next, own_->port.next_deadline());
}

std::optional<int> Device::arm() {
  if (!own_) return transport_->arm();
  // A port's descriptor tells of frames that have come, not of room for frames that wait to be
  // sent, or of frames that were received and wait for the next turn.
  if (own_->interface.unsent() != 0 || own_->order.held() != 0) return std::nullopt;
  return own_->port.arm();
}

DeviceLimits Device::limits() const {
  DeviceLimits told;
  resources_.describe(told);
  consumers_.describe(told);
  told.max_connections = config_.limits.max_connections;
  const uint32_t of_peer = config_.limits.peer_connections;
  told.max_peer_connections = of_peer == 0 ? kNoQuota : of_peer;
  told.connections = connections_.live();
  told.max_pending_requests = config_.limits.max_pending_requests;
  told.max_events = config_.limits.max_events;
  told.max_held_octets = config_.limits.hold_octets;
  told.held_octets = framing::held_octets(*framing_.hold);
  return told;
}

bool Device::quiescent() const {
  if (connections_.live() != 0 || framing::held_octets(*framing_.hold) != 0) return false;
  if (tuf::packed_ulpdus(*framing_.pack) != 0 || connections_.has_orphans()) return false;
  return !own_ ||
         (own_->live_sockets() == 0 && own_->stack.quiescent() && own_->interface.unsent() == 0 &&
          own_->order.held() == 0);
}

namespace {

template <typename Add>
void add_port_counters(const port::PortCounters& port, Add&& add) {
  add("rx_frames", "frames", "frames received", port.rx_frames);
  add("rx_octets", "octets", "octets received", port.rx_octets);
  add("tx_frames", "frames", "frames the device took", port.tx_frames);
  add("tx_octets", "octets", "octets the device took", port.tx_octets);
  add("tx_refused", "frames", "frames the device did not take at once", port.tx_refused);
  add("tx_stalled", "events", "times that the device took nothing for a second", port.tx_stalled);
  add("tx_discarded", "frames", "dropped because the device refused them for good",
      port.tx_discarded);
  add("alloc_failed", "events", "the pool had no buffer", port.alloc_failed);
  add("rx_linearised", "frames", "received chains made contiguous", port.rx_linearised);
  add("rx_shared", "frames", "copies given to the device's other queues", port.rx_shared);
  add("rx_share_lost", "frames", "copies for the device's other queues that were lost",
      port.rx_share_lost);
  add("rx_dropped", "frames", "frames the port could not hand up", port.rx_dropped);
}

}  // namespace

void Device::for_each_counter(
    const std::function<void(const char* layer, const base::CounterRow& row)>& visit) const {
  const auto add = [&visit](const char* layer, const auto& counters) {
    counters.for_each([&](const base::CounterRow& row) { visit(layer, row); });
  };
  if (own_) {
    const auto add_port = [&](const char* name, const char* unit, const char* help, uint64_t v) {
      visit("port", {name, unit, help, v});
    };
    add_port_counters(own_->port.counters(), add_port);
    add("net", own_->interface.counters());
    add("tcp", own_->stack.counters());
  }
  add("mpa", framing_.mpa_counters);
  add("tuf", own_ ? own_->framed.shared().with_own(framing_.tuf_counters) : framing_.tuf_counters);
  const auto add_hold = [&](const char* name, const char* help, uint64_t octets) {
    visit("hold", {name, "octets", help, octets});
  };
  add_hold("in_use", "received and not placed yet, of all connections, now",
           framing::held_octets(*framing_.hold));
  add_hold("peak", "the most that it has been", framing::held_octets_peak(*framing_.hold));
  add_hold("memory", "memory that they occupy now, in whole pages",
           framing::held_memory(*framing_.hold));
  add("rdmap", rdmap_counters_);
  add("device", counters_);
  visit("device", {"aliased_stags", "STags", "peers of two domains may write: device.check_aliases",
                   resources_.memory().aliased()});
  visit("device", {"quota_refusals", "events", "calls and requests beyond a consumer's quota",
                   consumers_.refused()});
}

void Device::validate() {
  if (own_) own_->validate();
  connections_.validate();
  resources_.for_each_qp([](const QueuePair* qp) { qp->validate(); });
  requests_.validate();
  resources_.validate();
  Consumers::Found found = consumers_.nothing_found();
  resources_.count(found);
  connections_.count(found);
  reserved_ports_.count(found);
  consumers_.validate(found, resources_.memory().live(), resources_.memory().pieces());
  terminates_.validate();
  framing::validate(*framing_.hold);
  tuf::validate(*framing_.pack);
}

Result<QueuePair*> Device::create_qp(const QueuePairSpec& spec) {
  return resources_.create_qp(spec, *qp_parts_);
}

Status Device::destroy_qp(QueuePair* qp) {
  auto taken = resources_.take_qp(qp);
  if (!taken) return tl::unexpected(taken.error());
  connections_.orphan(std::move(*taken));
  return {};
}

}  // namespace rnic::device
