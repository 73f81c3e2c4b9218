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
}

Device::Device(const DeviceConfig& config, llp::Transport& transport, base::Now now)
    : Device(config, now) {
  transport_ = &transport;
}

Device::Device(const DeviceConfig& config, base::Now now)
    : config_(config),
      memory_(config.limits.max_regions, {config.secret[0] ^ config.seed, config.secret[1]}),
      hold_(framing::make_hold_store(config.limits.hold_octets)),
      pack_(tuf::make_pack_store(config.limits.max_packed)),
      tuf_keys_({config.secret[0] ^ 0x7475662d6b657973, config.secret[1] ^ 0x6672616d65732121}),
      pds_(config.limits.max_pds + 1),
      pd_users_(config.limits.max_pds + 1),
      qps_(config.limits.max_qps + 1),
      connections_(config.limits.max_connections + kYieldingMax),
      acceptor_(*this),
      start_timers_(now),
      last_now_(now),
      strangers_logged_(kStrangersLogged, now),
      starting_(std::min(config.limits.max_starting, config.limits.max_connections), config.secret),
      leaving_(starting_.capacity(), config.secret),
      silent_(yields_silent(config.limits) ? config.limits.max_connections : 1, config.secret),
      silence_timers_(now),
      doorbells_(doorbells_of(config.limits)),
      events_(config.limits.max_events) {
  // What ends is kept for a moment in these, where no memory may be asked for.
  ended_.reserve(connections_.capacity());
  orphans_.reserve(connections_.capacity());
  redials_.reserve(connections_.capacity());
  unheard_.reserve(config.limits.max_pending_requests);
  if (!config.mpa.crc) {
    base::log(base::LogLevel::Warning, "mpa", [&] {
      return config.name +
             ": CRC is off where the peer agrees (mpa.crc = false): only for a path that protects "
             "as well as CRC32c does, such as IPsec end to end (RFC 5044 s.4.4)";
    });
  }
}

uint64_t Device::connection_octets_for(uint64_t most) {
  constexpr uint64_t kBeside = sizeof(base::Handle) + 2 * sizeof(void*);  // ended, orphans, redials
  return base::Slab<Connection>::octets_for(most + kYieldingMax) + (most + kYieldingMax) * kBeside;
}

Device::~Device() {
  if (transport_ == nullptr) return;  // its constructor has thrown
  // The application is gone: nobody is told, but every stream is reset, so that the sessions get
  // their last call while they live.
  for (auto& qp : qps_) {
    if (qp != nullptr) static_cast<void>(destroy_qp(qp.get()));
  }
  connections_.for_each([](base::Handle, Connection& connection) {
    if (connection.stream != nullptr) connection.stream->abort();
  });
  if (own_) own_->abort_sockets();
  transport_->output(last_now_);
  if (own_) own_->interface.flush(last_now_);
  reap();
}

uint32_t Device::poll(base::Now now) {
  ++counters_.polls;
  last_now_ = now;
  if (!own_) return poll_transport(now);
  const uint32_t work = receive(now);
  fire_timers(now);
  // A port that still has last turn's burst takes nothing new: a wait, not a loss.
  if (own_->interface.flush(now)) {
    own_->stack.output(now);
    own_->interface.flush(now);
  }
  reap();
  if (work != 0) ++counters_.busy_polls;
  return work;
}

uint32_t Device::poll_transport(base::Now now) {
  DoorbellsFirst doorbells(*this);
  uint32_t work = transport_->receive(now, doorbells);
  work += doorbells.served + serve_doorbells();
  fire_timers(now);
  transport_->output(now);
  reap();
  if (work != 0) ++counters_.busy_polls;
  return work;
}

uint32_t Device::receive(base::Now now) {
  uint32_t work = 0;
  for (uint32_t turn = 0; turn < kBurstsPerPoll; ++turn) {
    const uint32_t n = receive_burst(now, work);
    if (n < kBurst) break;
  }
  return work;
}

namespace {

/// Gives the frames of a burst back.
class BurstOwner {
 public:
  BurstOwner(port::Port& port, std::span<port::Packet> burst) : port_(port), burst_(burst) {}
  ~BurstOwner() {
    if (!burst_.empty()) port_.free(burst_);
  }
  BurstOwner(const BurstOwner&) = delete;
  BurstOwner& operator=(const BurstOwner&) = delete;

 private:
  port::Port& port_;
  std::span<port::Packet> burst_;
};

}  // namespace

uint32_t Device::receive_burst(base::Now now, uint32_t& work) {
  std::array<port::Packet, kBurst> burst;
  const uint32_t n = own_->port.rx_burst(burst, now);
  // Though what is done with one of them may throw.
  const BurstOwner owner(own_->port, {burst.data(), n});
  for (uint32_t i = 0; i < n; ++i) __builtin_prefetch(burst[i].data);
  // Between taking the frames and looking at them: a receive that was posted before the peer sent
  // is there when the peer's message is looked at.
  work += n + serve_doorbells();
  for (uint32_t i = 0; i < n; ++i) {
    // Not const: a constant that a call initializes stays out of registers (GCC 12).
    std::optional<net::TcpIn> ip = own_->interface.input(burst[i], now);
    if (!ip) continue;
    own_->stack.input({ip->source, ip->destination, ip->payload, ip->l4_checksum_good, ip->ecn},
                      now);
  }
  return n;
}

uint32_t Device::serve_doorbells() {
  uint32_t served = 0;
  doorbells_.answer([&](uint32_t number) {
    if (number >= qps_.size()) {
      if (own_ && own_->serve_doorbell(number, last_now_)) ++served;
    } else if (qps_[number] != nullptr) {
      qps_[number]->serve();
      ++served;
    }
  });
  return served;
}

void Device::fire_timers(base::Now now) {
  if (transport_->next_deadline() <= now) transport_->on_timers(now);
  if (own_ && own_->interface.next_deadline() <= now) own_->interface.on_timers(now);
  if (silence_timers_.next_deadline() <= now) {
    silence_timers_.expire(now, [&](base::TimerNode& node) {
      look_at_silence(*static_cast<Connection*>(node.owner), now);
    });
  }
  if (start_timers_.next_deadline() > now) return;
  start_timers_.expire(now, [&](base::TimerNode& node) {
    auto& connection = *static_cast<Connection*>(node.owner);
    connection.on_timer(now);
    base::Now next = connection.session().next_deadline();
    // Behind the delay of the first FPDU the session looks after a silent peer. Before TCP is
    // established it does not count yet.
    if (next == base::kNever && connection.state() == ConnectionState::Connecting) {
      next = now + connection.start_timeout();
    }
    if (next != base::kNever) start_timers_.arm(connection.start_timer, next);
  });
}

base::Now Device::next_deadline() const {
  if (doorbell_ringing()) return base::Now{};
  base::Now next = base::earlier(transport_->next_deadline(), start_timers_.next_deadline());
  next = base::earlier(next, silence_timers_.next_deadline());
  if (!own_) return next;
  next = base::earlier(next, own_->interface.next_deadline());
  return base::earlier(next, own_->port.next_deadline());
}

bool Device::quiescent() const {
  if (connections_.live() != 0 || framing::held_octets(*hold_) != 0) return false;
  if (tuf::packed_ulpdus(*pack_) != 0 || !orphans_.empty()) return false;
  return !own_ ||
         (own_->live_sockets() == 0 && own_->stack.quiescent() && own_->interface.unsent() == 0);
}

void Device::emit(Event event) {
  if (!events_.push(std::move(event))) ++counters_.events_lost;
}

bool Device::emit_of_stranger(Event event) {
  const size_t part = std::holds_alternative<event::RequestFailed>(event) ? 4 : 2;
  if (events_.size() < (events_.capacity() + part - 1) / part && events_.push(std::move(event))) {
    return true;
  }
  ++counters_.events_lost;
  return false;
}

void Device::completion_overrun(QueuePair& qp, CompletionQueue& cq) {
  ++counters_.completion_overruns;
  if (cq.tell_overrun()) {
    event::CompletionOverrun event;
    event.qp = qp.number();
    event.detail = base::worded([] {
      return "a completion was lost because the completion queue was full: make it as deep as the "
             "work outstanding on it, or poll it more often; told once until the queue is polled";
    });
    emit(std::move(event));
  }
  if (Connection* connection = connections_.get(qp.connection);
      connection != nullptr && connection->stream != nullptr) {
    connection->stream->abort();
  }
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
  add("mpa", mpa_counters_);
  add("tuf", own_ ? own_->framed.shared().with_own(tuf_counters_) : tuf_counters_);
  const auto add_hold = [&](const char* name, const char* help, uint64_t octets) {
    visit("hold", {name, "octets", help, octets});
  };
  add_hold("in_use", "received and not placed yet, of all connections, now",
           framing::held_octets(*hold_));
  add_hold("peak", "the most that it has been", framing::held_octets_peak(*hold_));
  add_hold("memory", "memory that they occupy now, in whole pages", framing::held_memory(*hold_));
  add("rdmap", rdmap_counters_);
  add("device", counters_);
}

std::vector<CounterValue> Device::counters() const {
  std::vector<CounterValue> all;
  const auto keep = [&all](const char* layer, const base::CounterRow& row) {
    all.push_back({layer, row});
  };
  for_each_counter(std::ref(keep));
  return all;
}

uint64_t Device::held_octets(const QueuePair& qp) {
  Connection* connection = connections_.get(qp.connection);
  return connection == nullptr ? 0 : connection->session().held();
}

}  // namespace rnic::device
