#include "world.hpp"

#include <algorithm>

namespace rnic::simulation {

namespace {

constexpr uint64_t kStepLimit = 4'000'000;
constexpr uint64_t kIdleLimit = 20'000;  // steps without anything happening
constexpr base::Now kTimeLimit = base::from_nanos(20'000'000'000'000);
constexpr base::Duration kTurn{200};  // a turn of the loop that found work
// Above a delayed ACK and what a tail loss probe waits for it, below a retransmission time-out.
constexpr base::Duration kPromptly = std::chrono::milliseconds(100);

}  // namespace

World::World(const WorldPlan& plan, const Recording& recording)
    : plan_(plan),
      recording_(recording),
      prng_(plan.seed ^ 0x776f726c64ull),
      monitor_(
          verdict_, fingerprint_,
          [this](const PortPair& ports, uint32_t to, const WireMessage& message) {
            on_wire_message(ports, to, message);
          },
          [this](const PortPair& ports, uint32_t to, base::Range range,
                 std::vector<uint64_t> damaged) {
            on_arrival(ports, to, range, std::move(damaged));
          },
          [this](uint32_t side) { return refusals(side); }) {
  trace_file_ = recording.open_trace();
  build_wire();
  build_hosts(recording);
  build_pipes();
}

World::~World() {
  recording_.close_trace(trace_file_);
  for (uint32_t side = 0; side < 2; ++side) {
    if (hosts_[side].capture == nullptr) continue;
    hosts_[side].capture->flush();
    recording_.check_capture(plan_.devices[side].name, hosts_[side].capture->writer());
  }
}

void World::trace(const std::string& line) {
  if (trace_file_ == nullptr) return;
  std::fprintf(trace_file_, "%.6f %s\n", static_cast<double>(base::nanos(now_)) * 1e-9,
               line.c_str());
}

void World::resources(const Status& status) {
  if (!status) verdict_.fail("resources", status.error().message);
}

Outcome World::run() {
  for (auto& pipe : pipes_) connect(*pipe);
  while (!verdict_.failed() && !all_closed()) {
    if (!step()) break;
  }
  if (!verdict_.failed()) release_everything();
  // TIME-WAIT, last acknowledgements, frames underway.
  const auto quiet = [&] {
    return hosts_[0].device->quiescent() && hosts_[1].device->quiescent() &&
           link_->in_flight() == 0 && hosts_[0].weather->held() == 0 &&
           hosts_[1].weather->held() == 0;
  };
  const base::Now limit = now_ + std::chrono::seconds(120);
  while (!verdict_.failed() && !quiet() && now_ < limit) {
    if (!step()) break;
  }
  if (!verdict_.failed()) check_returned();

  Outcome outcome;
  count(outcome.totals);
  if (verdict_.failed()) outcome.state = describe();
  for (const Host& host : hosts_) fingerprint_.counters(*host.device);
  check_buffers();
  outcome.ok = !verdict_.failed();
  outcome.checker = verdict_.checker();
  outcome.message = verdict_.message();
  outcome.virtual_seconds = static_cast<double>(base::nanos(now_)) * 1e-9;
  outcome.steps = steps_;
  outcome.fingerprint = fingerprint_.value();
  return outcome;
}

uint64_t World::refusals(uint32_t side) const {
  const tcp::Counters& c = hosts_[side].device->tcp_counters();
  return c.inspect_drops + c.commit_full + c.range_sets_exhausted;
}

bool World::step() {
  sleep_maybe();
  bool busy = post_traffic();
  busy |= poll_hosts();
  busy |= drain(0);
  busy |= drain(1);
  manage_pipes();
  for (Host& host : hosts_) host.device->validate();
  check_always();
  advance(busy);
  return !verdict_.failed();
}

bool World::poll_hosts() {
  bool busy = false;
  for (uint32_t side = 0; side < 2; ++side) {
    Host& host = hosts_[side];
    if (now_ < host.asleep_until) continue;
    for (auto& pipe : pipes_) {
      if (pipe->judges[side] != nullptr) pipe->judges[side]->begin_poll();
    }
    busy |= host.device->poll(now_) != 0;
    host.device->validate();
  }
  for (auto& pipe : pipes_) {
    const bool damaged = std::any_of(pipe->judges.begin(), pipe->judges.end(), [](const auto& j) {
      return j != nullptr && j->took_damage();
    });
    if (damaged && !pipe->lost) lose(*pipe);
  }
  return busy;
}

bool World::post_traffic() {
  bool any = false;
  for (auto& pipe : pipes_) {
    if (!pipe->ends[0].established || !pipe->ends[1].established || pipe->closing) continue;
    for (auto& flow : pipe->flows) {
      if (flow != nullptr) any |= flow->post(now_);
    }
    if (pipe->violation != nullptr && !pipe->violation->posted()) {
      pipe->violation->post();
      any = true;
    }
  }
  return any;
}

void World::begin_close(Pipe& pipe) {
  pipe.closing = true;
  for (End& end : pipe.ends) end.closing = true;
  // One side closes first, or both at once.
  const uint64_t who = prng_.below(3);
  for (uint32_t side = 0; side < 2; ++side) {
    if (who == side || who == 2) {
      resources(hosts_[side].device->disconnect(*pipe.ends[side].qp));
    }
  }
  trace("pipe " + std::to_string(pipe.number) + " closes");
}

void World::manage_pipes() {
  bool all_stand = true;
  for (auto& pipe : pipes_) {
    if (verdict_.failed()) return;
    const bool traffic = pipe->kind == PipeKind::Traffic;
    if (!pipe->closed && !(pipe->ends[0].established && pipe->ends[1].established)) {
      all_stand = false;
    }
    if (traffic && !(pipe->flows[0]->begun() && pipe->flows[1]->begun())) all_stand = false;
    if (traffic && !pipe->closing && pipe->ends[0].established && pipe->ends[1].established &&
        pipe->flows[0]->done() && pipe->flows[1]->done()) {
      begin_close(*pipe);
    }
    const bool over = pipe->ends[0].disconnected && pipe->ends[1].disconnected;
    if (!pipe->closed && (over || now_ >= pipe->given_up_at)) {
      pipe->closed = true;
      drain(0);
      drain(1);
      for (auto& flow : pipe->flows) {
        if (flow != nullptr && !pipe->lost) flow->check_end();
      }
      if (pipe->violation != nullptr) pipe->violation->check_end();
    }
  }
  begin_corruption(all_stand);
}

/// Start-up frames and ARP have no CRC: corruption begins when every connection stands, and in most
/// profiles when each has moved something.
void World::begin_corruption(bool all_stand) {
  if (corrupting_) return;
  const auto established = [](const auto& pipe) {
    return pipe->ends[0].established && pipe->ends[1].established;
  };
  if (plan_.corrupt_at_once) {
    all_stand = std::all_of(pipes_.begin(), pipes_.end(), established);
  }
  if (!all_stand) return;
  corrupting_ = true;
  for (uint32_t side = 0; side < 2; ++side) hosts_[side].weather->set_config(plan_.weather[side]);
}

void World::sleep_maybe() {
  if (plan_.pause == 0 || now_ < next_nap_) return;
  next_nap_ = now_ + std::chrono::milliseconds(1);
  if (!prng_.chance(plan_.pause)) return;
  Host& host = hosts_[prng_.below(2)];
  if (host.asleep_until > now_) return;
  host.asleep_until = now_ + base::Duration(static_cast<int64_t>(
                                 prng_.below(static_cast<uint64_t>(plan_.pause_max.count()) + 1)));
}

void World::check_always() {
  bool look = steps_ % 4096 == 0;
  for (Host& host : hosts_) {
    const uint64_t held = framing::held_octets(host.device->hold_store());
    const uint64_t limit = host.device->config().limits.hold_octets + 65'542 + 4 * 129;
    if (held > limit) {
      verdict_.fail("bounded memory",
                    std::to_string(held) + " octets held, limit " + std::to_string(limit));
    }
    if (host.device->device_counters().events_lost != 0) {
      verdict_.fail("events", "an event was lost");
    }
    // A bad CRC has just been seen: nothing of it may be in memory.
    if (host.crc_drops_seen != host.device->mpa_counters().crc_drops) {
      host.crc_drops_seen = host.device->mpa_counters().crc_drops;
      look = true;
    }
  }
  for (auto& pipe : pipes_) {
    for (auto& flow : pipe->flows) {
      if (flow == nullptr || pipe->closed || pipe->lost || verdict_.failed()) continue;
      flow->check_word();
      if (look) flow->check_memory();
    }
  }
}

base::Now World::next_event() const {
  base::Now next = base::kNever;
  for (const Host& host : hosts_) {
    base::Now wake = host.device->next_deadline();
    if (host.device->doorbell_ringing()) wake = now_;
    next = base::earlier(next, std::max(wake, host.asleep_until));
  }
  for (const auto& pipe : pipes_) {
    if (pipe->closed) continue;
    next = base::earlier(next, pipe->given_up_at);
    for (const auto& flow : pipe->flows) {
      if (flow != nullptr && !pipe->closing) next = base::earlier(next, flow->next_receives(now_));
    }
  }
  if (plan_.pause != 0) next = base::earlier(next, next_nap_);
  return next;
}

/// Where nothing is lost and nobody sleeps, no timer but that of a delayed ACK moves the traffic.
void World::check_prompt(base::Now next) {
  if (!plan_.prompt || next - now_ < kPromptly) return;
  for (const auto& pipe : pipes_) {
    if (pipe->kind != PipeKind::Traffic || pipe->closing || pipe->closed) continue;
    if (!pipe->ends[0].established || !pipe->ends[1].established) continue;
    verdict_.fail("prompt", "pipe " + std::to_string(pipe->number) + " has work and waits " +
                                std::to_string((next - now_).count() / 1'000'000) + " ms");
  }
}

void World::advance(bool busy) {
  ++steps_;
  if (busy) {
    idle_steps_ = 0;
    now_ += kTurn;
    return;
  }
  const base::Now next = next_event();
  if (next == base::kNever) {
    for (auto& pipe : pipes_) {
      if (pipe->violation != nullptr && !pipe->closed) pipe->violation->check_end();
    }
    verdict_.fail("stall", "nothing will ever happen again");
    return;
  }
  if (next > now_) {
    // Time passes. Timers that fire for ever with no frame at all are a stall, too.
    check_prompt(next);
    now_ = next;
  } else {
    now_ += kTurn;
  }
  if (++idle_steps_ > kIdleLimit) verdict_.fail("stall", "the loop turns and nothing happens");
  if (steps_ > kStepLimit) verdict_.fail("stall", "too many steps");
  if (now_ > kTimeLimit) verdict_.fail("stall", "too much virtual time");
}

bool World::all_closed() const {
  return std::all_of(pipes_.begin(), pipes_.end(), [](const auto& pipe) { return pipe->closed; });
}

void World::count(Totals& totals) const {
  totals.worlds = 1;
  for (const auto& pipe : pipes_) {
    totals.lost += pipe->lost ? 1 : 0;
    for (const auto& flow : pipe->flows) {
      if (flow == nullptr) continue;
      totals.messages += flow->messages();
      totals.octets += flow->octets();
    }
  }
  const std::array<const sim::SimPort*, 2> ports{&link_->a(), &link_->b()};
  for (uint32_t side = 0; side < 2; ++side) {
    const Host& host = hosts_[side];
    const impair::ImpairCounters& weather = host.weather->impair_counters();
    totals.frames += weather.frames;
    totals.drops += weather.dropped + ports[side]->queue_drops();
    totals.reordered += weather.reordered;
    totals.duplicated += weather.duplicated;
    totals.corrupted += weather.corrupted;
    totals.cut += weather.resegmented;
    totals.placed_early += host.device->mpa_counters().placed_early_octets +
                           host.device->tuf_counters().placed_early_octets;
    totals.held +=
        host.device->mpa_counters().held_octets + host.device->tuf_counters().held_octets;
    totals.crc_drops += host.device->mpa_counters().crc_drops;
    totals.suspected += host.device->mpa_counters().suspicious_drops;
    if (host.cutter != nullptr) totals.cut += host.cutter->cuts();
    totals.terminates += host.device->rdmap_counters().terminates_out;
    totals.waited += host.device->rdmap_counters().receive_waits;
    totals.resegmented += host.device->tcp_counters().resegmented_records;
    totals.retransmissions += host.device->tcp_counters().retransmitted_segments;
    totals.timeouts += host.device->tcp_counters().timeouts;
  }
}

std::string World::describe() const {
  std::string out = "  virtual time " +
                    std::to_string(static_cast<double>(base::nanos(now_)) * 1e-9) + " s, step " +
                    std::to_string(steps_) + ", mtu " + std::to_string(plan_.mtu) + "\n";
  for (const auto& pipe : pipes_) {
    out += "  pipe " + std::to_string(pipe->number) + ": established " +
           std::to_string(pipe->ends[0].established) + std::to_string(pipe->ends[1].established) +
           " closing " + std::to_string(pipe->closing) + " disconnected " +
           std::to_string(pipe->ends[0].disconnected) + std::to_string(pipe->ends[1].disconnected) +
           "\n";
    for (const auto& flow : pipe->flows) {
      if (flow != nullptr) out += flow->describe();
    }
    if (pipe->violation != nullptr) out += pipe->violation->describe();
  }
  out += monitor_.describe();
  for (const Host& host : hosts_) {
    out += "  " + host.device->config().name + ":";
    host.device->for_each_counter([&](const std::string& layer, const base::CounterRow& row) {
      if (row.value != 0) out += " " + layer + "." + row.name + "=" + std::to_string(row.value);
    });
    out += "\n";
  }
  return out;
}

}  // namespace rnic::simulation
