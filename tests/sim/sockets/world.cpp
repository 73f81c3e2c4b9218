#include "sockets/world.hpp"

#include <algorithm>

#include "wire/rdmap.hpp"

namespace rnic::simulation {

namespace {

constexpr uint16_t kPort = 7471;
constexpr uint64_t kStepLimit = 2'000'000;
constexpr uint64_t kIdleLimit = 50'000;  // steps without anything happening
constexpr base::Now kTimeLimit = base::from_nanos(20'000'000'000'000);
constexpr base::Duration kTurn{200};
constexpr std::chrono::milliseconds kTryAgain{1};  // what the system refused
constexpr std::chrono::milliseconds kOnTheWay{5};  // pieces of an FPDU, and late events

}  // namespace

SocketWorld::SocketWorld(const SocketPlan& plan, const Recording& recording)
    : plan_(plan), prng_(plan.world.seed ^ 0x736f636b6574ull), network_(prng_.next()) {
  if (!recording.prefix.empty()) {
    trace_file_ = std::fopen((recording.prefix + ".trace").c_str(), "w");
  }
  network_.set_arrival([this](const TcpLink& link, uint32_t to, uint64_t offset,
                              base::ByteView octets) { arrived(link, to, offset, octets); });
  network_.set_most_broken(plan_.most_broken);
  for (uint32_t side = 0; side < 2; ++side) build_host(side);
  for (uint32_t i = 0; i < plan_.world.pipes && !verdict_.failed(); ++i) add_pipe();
}

SocketWorld::~SocketWorld() {
  if (trace_file_ != nullptr) std::fclose(trace_file_);
}

void SocketWorld::trace(const std::string& line) {
  if (trace_file_ == nullptr) return;
  std::fprintf(trace_file_, "%.6f %s\n", static_cast<double>(base::nanos(now_)) * 1e-9,
               line.c_str());
}

void SocketWorld::resources(const Status& status) {
  if (!status) verdict_.fail("resources", status.error().message);
}

Outcome SocketWorld::run() {
  while (!verdict_.failed() && !all_closed()) {
    if (!step()) break;
  }
  for (Host& host : hosts_) {
    if (!verdict_.failed() && host.listening) resources(host.device->unlisten({{}, kPort}));
  }
  const base::Now limit = now_ + std::chrono::seconds(2000);
  const auto quiet = [&] {
    return hosts_[0].transport->quiescent() && hosts_[1].transport->quiescent() &&
           hosts_[0].device->quiescent() && hosts_[1].device->quiescent();
  };
  while (!verdict_.failed() && !quiet() && now_ < limit) {
    if (!step()) break;
  }
  Outcome outcome;
  if (!verdict_.failed()) check_returned();
  if (verdict_.failed()) outcome.state = describe();
  outcome.fingerprint = fingerprint();
  check_systems();
  totals_.worlds = 1;
  totals_.broken = network_.broken();
  for (const Host& host : hosts_) totals_.refused += host.kernel->totals().refused;
  outcome.totals = totals_;
  outcome.ok = !verdict_.failed();
  outcome.checker = verdict_.checker();
  outcome.message = verdict_.message();
  outcome.virtual_seconds = static_cast<double>(base::nanos(now_)) * 1e-9;
  outcome.steps = steps_;
  return outcome;
}

uint64_t SocketWorld::fingerprint() {
  for (const Host& host : hosts_) {
    fingerprint_.counters(*host.device);
    host.transport->counters().for_each(
        [&](const base::CounterRow& row) { fingerprint_.counter("socket", row); });
    for (const auto& [option, value] : host.kernel->options()) {
      fingerprint_.number(static_cast<uint64_t>(option.first));
      fingerprint_.number(static_cast<uint64_t>(option.second));
      fingerprint_.number(static_cast<uint64_t>(value));
    }
  }
  return fingerprint_.value();
}

bool SocketWorld::step() {
  network_.advance(now_);
  bool busy = try_setup();
  for (auto& pipe : pipes_) {
    const bool stands = pipe->ends[0].established && pipe->ends[1].established;
    if (!stands || pipe->closing || is_broken(*pipe)) continue;
    for (auto& flow : pipe->flows) busy |= flow->post(now_);
  }
  for (Host& host : hosts_) {
    busy |= host.device->poll(now_) != 0;
    host.device->validate();
  }
  busy |= drain(0);
  busy |= drain(1);
  for (size_t i = 0; i < pipes_.size() && !verdict_.failed(); ++i) manage(*pipes_[i]);
  for (Host& host : hosts_) host.device->validate();
  if (steps_ % 4096 == 0) {
    for (auto& pipe : pipes_) {
      for (auto& flow : pipe->flows) {
        if (!pipe->closed && !flow->broken() && !verdict_.failed()) flow->check_memory();
      }
    }
  }
  for (Host& host : hosts_) {
    if (!busy) sleep(host);
  }
  advance(busy);
  return !verdict_.failed();
}

/// As a driver that sleeps: on a descriptor, and then it guesses what has woken it, or in the
/// transport, which is told.
void SocketWorld::sleep(Host& host) {
  static_cast<void>(host.device->arm());
  if (steps_ % 2 == 0) return;
  host.kernel->may_sleep(true);
  host.transport->sleep();
  host.kernel->may_sleep(false);
}

/// Listens and connects, where that is still to be done: a system may say no for a while.
bool SocketWorld::try_setup() {
  bool any = false;
  for (Host& host : hosts_) {
    if (host.listening || steps_ % 64 != 0) continue;
    any = true;
    const uint64_t refused = host.kernel->totals().refused;
    const auto listening = host.device->listen(kPort);
    host.listening = listening.has_value();
    if (!listening && host.kernel->totals().refused == refused) {
      resources(tl::unexpected(listening.error()));
    }
  }
  if (!hosts_[0].listening || !hosts_[1].listening) return any;
  for (auto& pipe : pipes_) {
    if (pipe->connecting || now_ < pipe->try_at) continue;
    any = true;
    try_connect(*pipe);
  }
  return any;
}

void SocketWorld::try_connect(Pipe& pipe) {
  const uint32_t side = pipe.initiator;
  Host& host = hosts_[side];
  const Endpoint remote{hosts_[1 - side].kernel->address(), kPort};
  ConnectOptions options;
  const bool mpa = plan_.world.devices[side].framing == Framing::Mpa;
  if (mpa) options.start.revision = pipe.number % 3 == 1 ? 1 : 2;
  options.peer_to_peer = pipe.number % 3 == 2 && mpa;
  const uint64_t refused = host.kernel->totals().refused;
  const bool full = host.kernel->open_descriptors() >= plan_.systems[side].descriptors ||
                    host.transport->live_connections() >= plan_.sockets[side].max_connections;
  const auto status =
      host.device->connect(*pipe.ends[side].qp, remote, pipe.request_data, now_, options);
  if (status) {
    pipe.connecting = true;
    pipe.port = host.kernel->last_port();
    if (*options.peer_to_peer) pipe.flows[side]->expect_rtr();
    if (mpa && plan_.world.devices[side].mpa.first_fpdu_delay.count() != 0) {
      pipe.flows[side]->expect_nudge([this, port = pipe.port] {
        const auto spoken = spoken_.find(port);
        return spoken == spoken_.end() || now_ - spoken->second < kOnTheWay;
      });
    }
    return;
  }
  // The queue pair is as before: the same one tries again.
  if (host.kernel->totals().refused == refused && !full) return resources(status);
  pipe.try_at = now_ + kTryAgain;
}

bool SocketWorld::is_broken(Pipe& pipe) {
  if (pipe.port == 0) return false;
  const auto link = network_.find(pipe.port);
  if (link == nullptr || !link->broken) return false;
  for (auto& flow : pipe.flows) flow->break_off();
  return true;
}

void SocketWorld::manage(Pipe& pipe) {
  if (pipe.closed || !pipe.connecting) return;
  if (!is_broken(pipe) && !pipe.closing && pipe.ends[0].established && pipe.ends[1].established &&
      pipe.flows[0]->done() && pipe.flows[1]->done()) {
    pipe.closing = true;
    for (End& end : pipe.ends) end.closing = true;
    const uint64_t who = prng_.below(3);
    for (uint32_t side = 0; side < 2; ++side) {
      if (who != side && who != 2) continue;
      // A connection that breaks at this moment may be gone.
      const auto status = hosts_[side].device->disconnect(*pipe.ends[side].qp);
      if (!status && !is_broken(pipe)) resources(status);
    }
    trace("pipe " + std::to_string(pipe.number) + " closes");
  }
  // Broken before the responder's application heard of it: there is nothing to end there.
  const uint32_t responder = 1 - pipe.initiator;
  if (pipe.ends[pipe.initiator].disconnected && !pipe.accepted && is_broken(pipe)) {
    pipe.ends[responder].disconnected = true;
  }
  if (pipe.ends[0].disconnected && pipe.ends[1].disconnected) finish(pipe);
}

void SocketWorld::finish(Pipe& pipe) {
  pipe.closed = true;
  drain(0);
  drain(1);
  const bool broken = is_broken(pipe);
  for (auto& flow : pipe.flows) {
    totals_.messages += flow->messages();
    totals_.octets += flow->octets();
    if (broken && !pipe.accepted) continue;  // receives of a queue pair that was never connected
    if (broken || !verdict_.failed()) flow->check_end();
  }
  trace("pipe " + std::to_string(pipe.number) + (broken ? " broke" : " is over"));
  if (verdict_.failed()) return;
  release(pipe);
  if (broken) add_pipe();
}

void SocketWorld::advance(bool busy) {
  ++steps_;
  if (steps_ > kStepLimit) verdict_.fail("stall", "too many steps");
  if (busy) {
    idle_steps_ = 0;
    now_ += kTurn;
    return;
  }
  base::Now next = network_.next_event();
  for (Host& host : hosts_) {
    base::Now wake = host.device->next_deadline();
    if (host.device->doorbell_ringing()) wake = now_;
    next = base::earlier(next, base::earlier(wake, host.kernel->next_event()));
  }
  for (const auto& pipe : pipes_) {
    if (!pipe->connecting) next = base::earlier(next, pipe->try_at);
  }
  if (next == base::kNever) return verdict_.fail("stall", "nothing will ever happen again");
  now_ = next > now_ ? next : now_ + kTurn;
  if (++idle_steps_ > kIdleLimit) verdict_.fail("stall", "the loop turns and nothing happens");
  if (now_ > kTimeLimit) verdict_.fail("stall", "too much virtual time");
}

bool SocketWorld::all_closed() const {
  return std::all_of(pipes_.begin(), pipes_.end(), [](const auto& pipe) { return pipe->closed; });
}

std::string SocketWorld::describe() const {
  std::string out = "  virtual time " +
                    std::to_string(static_cast<double>(base::nanos(now_)) * 1e-9) + " s, step " +
                    std::to_string(steps_) + ", " + std::to_string(network_.broken()) +
                    " connections broken\n";
  for (const auto& pipe : pipes_) {
    if (pipe->closed) continue;
    out += "  pipe " + std::to_string(pipe->number) + " from device " +
           std::to_string(pipe->initiator) + ": connecting " + std::to_string(pipe->connecting) +
           " established " + std::to_string(pipe->ends[0].established) +
           std::to_string(pipe->ends[1].established) + " closing " + std::to_string(pipe->closing) +
           " disconnected " + std::to_string(pipe->ends[0].disconnected) +
           std::to_string(pipe->ends[1].disconnected) + "\n";
    for (const auto& flow : pipe->flows) out += flow->describe();
  }
  for (const Host& host : hosts_) {
    if (host.device == nullptr) continue;
    out += "  " + host.device->config().name + ":";
    host.device->for_each_counter([&](const std::string& layer, const base::CounterRow& row) {
      if (row.value != 0) out += " " + layer + "." + row.name + "=" + std::to_string(row.value);
    });
    host.transport->counters().for_each([&](const base::CounterRow& row) {
      if (row.value != 0)
        out += std::string(" socket.") + row.name + "=" + std::to_string(row.value);
    });
    out += "\n";
  }
  return out;
}

}  // namespace rnic::simulation
