// A world over sockets: its devices, what they tell, and what must be left at the end.

#include <algorithm>
#include <cerrno>

#include "sockets/world.hpp"
#include "wire/rdmap.hpp"

namespace rnic::simulation {

namespace {

constexpr int kFirstDescriptors[2] = {1000, 2000};

/// How a stream has ended whose system told `error` (the words of StreamEnd).
StreamEnd meaning_of(int error) {
  switch (error) {
    case ETIMEDOUT: return StreamEnd::TimedOut;
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
    case EPROTO: return StreamEnd::Unreachable;
    default: return StreamEnd::PeerReset;
  }
}

}  // namespace

void SocketWorld::build_host(uint32_t side) {
  Host& host = hosts_[side];
  const device::DeviceConfig& config = plan_.world.devices[side];
  host.kernel = std::make_unique<Kernel>(network_, plan_.systems[side], config.net.address,
                                         kFirstDescriptors[side]);
  auto transport = socket::Transport::open(plan_.sockets[side], now_, *host.kernel);
  if (!transport) return verdict_.fail("resources", transport.error().message);
  host.transport = std::move(*transport);
  host.device = std::make_unique<device::Device>(config, *host.transport, now_);
}

void SocketWorld::make_end(Pipe& pipe, uint32_t side) {
  End& end = pipe.ends[side];
  Host& host = hosts_[side];
  end.side = side;
  end.device = host.device.get();
  const auto pd = end.device->alloc_pd();
  const auto send_cq = end.device->create_cq(256);
  const auto receive_cq = end.device->create_cq(256);
  if (!pd || !send_cq || !receive_cq) return verdict_.fail("resources", "no PD or CQ");
  end.pd = *pd;
  end.send_cq = *send_cq;
  end.receive_cq = *receive_cq;
  device::QueuePairSpec spec;
  spec.answer_close = false;
  spec.pd = end.pd;
  spec.send_cq = end.send_cq;
  spec.receive_cq = end.receive_cq;
  spec.send_depth = spec.receive_depth = 128;
  spec.ird = 16;
  spec.ord = static_cast<uint32_t>(prng_.between(1, 16));
  const auto qp = end.device->create_qp(spec);
  if (!qp) return verdict_.fail("resources", qp.error().message);
  end.qp = *qp;
  host.by_qp[end.qp->number()] = {&pipe, side};
}

void SocketWorld::add_pipe() {
  pipes_.push_back(std::make_unique<Pipe>());
  Pipe& pipe = *pipes_.back();
  pipe.number = static_cast<uint32_t>(pipes_.size() - 1);
  pipe.initiator = static_cast<uint32_t>(prng_.below(2));
  pipe.try_at = now_;
  for (uint32_t side = 0; side < 2 && !verdict_.failed(); ++side) make_end(pipe, side);
  if (verdict_.failed()) return;
  // The first octet tells the responder which pipe this is.
  pipe.request_data.resize(1 + prng_.below(508));
  fill_pattern(pipe.request_data, prng_.next(), 0);
  pipe.request_data[0] = static_cast<uint8_t>(pipe.number);
  pipe.reply_data.resize(prng_.below(509));
  fill_pattern(pipe.reply_data, prng_.next(), 0);
  const WorldPlan& plan = plan_.world;
  const uint32_t flows = 2 * plan.pipes;
  for (uint32_t side = 0; side < 2; ++side) {
    auto messages = plan_messages(plan, plan.messages / flows + 1, plan.octets / flows + 1, prng_);
    pipe.flows[side] = std::make_unique<Flow>(
        "pipe " + std::to_string(pipe.number) + (side == 0 ? " left to right" : " right to left"),
        plan, pipe.ends[side], pipe.ends[1 - side], std::move(messages), prng_.next(), verdict_);
  }
}

// --- what came over the wire ---

void SocketWorld::arrived(const TcpLink& link, uint32_t to, uint64_t offset,
                          base::ByteView octets) {
  const uint16_t port = link.ends[0].local.port;
  fingerprint_.sent(port * 2u + to, octets, now_);
  References& pair = references_[port];
  if (pair[0] == nullptr) {
    for (uint32_t end = 0; end < 2; ++end) {
      pair[end] = std::make_unique<ReferenceReceiver>(
          "connection " + std::to_string(port) + " towards end " + std::to_string(end), verdict_,
          [this, port, end](const WireMessage& message) { deliver(port, end, message); });
    }
    pair[0]->pair_with(*pair[1]);
    pair[1]->pair_with(*pair[0]);
  }
  pair[to]->segment(offset, octets);
  if (to == 0 && pair[0]->fpdus() != 0) spoken_.try_emplace(port, now_);
}

void SocketWorld::deliver(uint16_t port, uint32_t to_end, const WireMessage& message) {
  using Opcode = wire::RdmapOpcode;
  const auto found = std::find_if(pipes_.begin(), pipes_.end(),
                                  [port](const auto& pipe) { return pipe->port == port; });
  if (found == pipes_.end() || (*found)->released) return;
  Pipe& pipe = **found;
  // End 0 is the connector's.
  const uint32_t to = to_end == 0 ? pipe.initiator : 1 - pipe.initiator;
  if (message.opcode == static_cast<uint8_t>(Opcode::Terminate)) {
    if (is_broken(pipe)) return;
    return verdict_.fail("reference", "a Terminate on pipe " + std::to_string(pipe.number));
  }
  if (message.opcode == static_cast<uint8_t>(Opcode::ReadResponse) ||
      message.opcode == static_cast<uint8_t>(Opcode::AtomicResponse)) {
    pipe.flows[to]->reference_response(message);
  } else {
    pipe.flows[1 - to]->reference_request(message);
  }
}

// --- events and completions ---

bool SocketWorld::drain(uint32_t side) {
  Host& host = hosts_[side];
  bool any = false;
  while (const auto event = verdict_.failed() ? std::nullopt : host.device->poll_event()) {
    any = true;
    on_event(side, *event);
  }
  std::array<Completion, 16> completions;
  for (auto& pipe : pipes_) {
    if (pipe->released) continue;
    for (device::CompletionQueue* cq : {pipe->ends[side].send_cq, pipe->ends[side].receive_cq}) {
      uint32_t n = 0;
      do {
        n = cq->poll(completions);
        for (uint32_t i = 0; i < n && !verdict_.failed(); ++i) on_completion(side, completions[i]);
        any |= n != 0;
      } while (n == completions.size() && !verdict_.failed());
    }
  }
  return any;
}

void SocketWorld::unexpected(uint32_t side, const Event& event) {
  verdict_.fail("event", plan_.world.devices[side].name + ", qp " +
                             std::to_string(common(event).qp) + ": " + to_string(event) +
                             " was not expected (" + common(event).detail + ")");
}

void SocketWorld::on_event(uint32_t side, const Event& event) {
  fingerprint_.event(side, event, now_);
  const event::Common& said = common(event);
  trace(plan_.world.devices[side].name + " event " + to_string(event) + " qp " +
        std::to_string(said.qp) + " " + said.detail);
  if (const auto* asked = std::get_if<event::ConnectRequest>(&event)) {
    return on_request(side, *asked);
  }
  const auto found = hosts_[side].by_qp.find(said.qp);
  if (found == hosts_[side].by_qp.end()) {
    // Start-ups that broke before anybody was asked.
    const bool early = std::holds_alternative<event::RequestFailed>(event) ||
                       std::holds_alternative<event::RequestWithdrawn>(event);
    const bool reason = network_.broken() != 0 || displaced(side) != 0;
    if (!early || !reason) unexpected(side, event);
    return;
  }
  Pipe& pipe = *found->second.first;
  const bool expected =
      std::visit([&](const auto& each) { return expects(pipe, side, each); }, event);
  if (!expected) unexpected(side, event);
}

bool SocketWorld::expects(Pipe& pipe, uint32_t side, const event::Established& event) {
  End& end = pipe.ends[side];
  if (end.established) return false;
  if (side == pipe.initiator && event.private_data != pipe.reply_data) {
    verdict_.fail("private data", "the reply carries other private data");
  }
  end.established = true;
  return true;
}

bool SocketWorld::expects(Pipe& pipe, uint32_t side, const event::PeerClosed&) {
  if (is_broken(pipe)) return true;
  if (!pipe.closing) return false;
  // The one that has not closed yet, closes now.
  const End& end = pipe.ends[side];
  if (!end.disconnected) static_cast<void>(end.device->disconnect(*end.qp));
  return true;
}

bool SocketWorld::expects(Pipe& pipe, uint32_t side, const event::ConnectFailed&) {
  note_displaced(pipe, side);
  return is_broken(pipe);
}

bool SocketWorld::expects(Pipe& pipe, uint32_t, const event::Ending&) { return is_broken(pipe); }

bool SocketWorld::expects(Pipe& pipe, uint32_t side, const event::Disconnected& event) {
  return on_disconnected(pipe, side, event);
}

uint64_t SocketWorld::displaced(uint32_t side) const {
  return hosts_[side].device->device_counters().starts_displaced;
}

/// A system without descriptors makes a device let its oldest start-up go (decision 15): as many
/// attempts may end so as it counts, and none that has sent a whole Request.
void SocketWorld::note_displaced(Pipe& pipe, uint32_t side) {
  const uint32_t responder = 1 - pipe.initiator;
  const auto link = network_.find(pipe.port);
  if (side == responder || pipe.accepted || link == nullptr || link->broken) return;
  if (displaced_known_[responder] == displaced(responder)) return;
  ++displaced_known_[responder];
  network_.mark_broken(*link);
}

bool SocketWorld::on_disconnected(Pipe& pipe, uint32_t side, const event::Disconnected& event) {
  End& end = pipe.ends[side];
  const bool broken = is_broken(pipe);
  if (end.disconnected) return false;
  if (!broken && (!pipe.closing || event.end != StreamEnd::Closed)) return false;
  end.disconnected = true;
  if (!broken || pipe.closing || !end.established) return true;
  const TcpEnd& told = network_.find(pipe.port)->ends[side == pipe.initiator ? 0 : 1];
  return told.first_told == 0 || event.end == meaning_of(told.first_told);
}

void SocketWorld::on_request(uint32_t side, const event::ConnectRequest& event) {
  if (event.private_data.empty() || event.private_data[0] >= pipes_.size()) {
    return verdict_.fail("private data", "a request names no pipe");
  }
  Pipe& pipe = *pipes_[event.private_data[0]];
  if (event.private_data != pipe.request_data || pipe.initiator == side) {
    return verdict_.fail("private data", "the request carries other private data");
  }
  if (event.remote.port != pipe.port) verdict_.fail("address", "the request has another port");
  if (pipe.released) {  // broken before it was asked for, and forgotten by now
    static_cast<void>(hosts_[side].device->reject(event.request, {}, now_));
    return;
  }
  const auto status =
      hosts_[side].device->accept(event.request, *pipe.ends[side].qp, pipe.reply_data, now_);
  pipe.accepted = status.has_value();
  if (!status && !is_broken(pipe)) resources(status);
}

void SocketWorld::on_completion(uint32_t side, const Completion& completion) {
  fingerprint_.completion(side, completion, now_);
  const auto found = hosts_[side].by_qp.find(completion.qp);
  if (found == hosts_[side].by_qp.end()) {
    return verdict_.fail("completion", "a completion of no queue pair");
  }
  Pipe& pipe = *found->second.first;
  static_cast<void>(is_broken(pipe));  // the flows are to know before they judge
  if (completion.opcode == Opcode::Receive) {
    pipe.flows[1 - side]->receive_completed(completion);
  } else {
    pipe.flows[side]->send_completed(completion);
  }
}

// --- what must be left ---

void SocketWorld::release(Pipe& pipe) {
  pipe.released = true;
  for (auto& flow : pipe.flows) flow->release_regions();
  for (End& end : pipe.ends) {
    hosts_[end.side].by_qp.erase(end.qp->number());
    resources(end.device->destroy_qp(end.qp));
    resources(end.device->destroy_cq(end.send_cq));
    resources(end.device->destroy_cq(end.receive_cq));
    resources(end.device->free_pd(end.pd));
  }
}

void SocketWorld::check_counters(uint32_t side) {
  const socket::Counters& c = hosts_[side].transport->counters();
  const SystemTotals& t = hosts_[side].kernel->totals();
  const std::string& name = plan_.world.devices[side].name;
  const auto same = [&](const char* what, uint64_t counted, uint64_t done) {
    if (counted == done) return;
    verdict_.fail("counters", name + ": " + what + " counts " + std::to_string(counted) +
                                  ", the system did " + std::to_string(done));
  };
  same("octets_in", c.octets_in, t.octets_in);
  same("octets_out", c.octets_out, t.octets_out);
  same("writes", c.writes, t.writes);
  same("reads", c.reads, t.reads);
  same("the ends together",
       c.closed + c.aborted + c.resets_in + c.refused + c.unreachable + c.timed_out,
       c.connects + c.accepts);
}

void SocketWorld::check_returned() {
  for (uint32_t side = 0; side < 2; ++side) {
    const Host& host = hosts_[side];
    const std::string& name = plan_.world.devices[side].name;
    if (!host.device->quiescent()) verdict_.fail("returned", name + " is not quiescent");
    if (!host.transport->quiescent()) verdict_.fail("returned", name + " has sockets in use");
    if (host.device->memory().live() != 0) verdict_.fail("returned", name + " has regions left");
    if (host.device->live_connections() != 0) {
      verdict_.fail("returned", name + " has connections left");
    }
    if (host.transport->next_deadline() != base::kNever) {
      verdict_.fail("returned", name + " has a timer or something to do left");
    }
    check_counters(side);
  }
}

void SocketWorld::check_systems() {
  for (uint32_t side = 0; side < 2; ++side) {
    Host& host = hosts_[side];
    host.device.reset();
    host.transport.reset();
    if (host.kernel->open_descriptors() != 0) {
      verdict_.fail("returned",
                    std::to_string(host.kernel->open_descriptors()) + " descriptors are left open");
    }
    if (!host.kernel->misuse().empty()) verdict_.fail("system", host.kernel->misuse());
  }
}

}  // namespace rnic::simulation
