// Events and completions, handed to whom they concern.

#include <algorithm>

#include "wire/rdmap.hpp"
#include "world.hpp"

namespace rnic::simulation {

bool World::drain(uint32_t side) {
  Host& host = hosts_[side];
  bool any = false;
  while (const auto event = verdict_.failed() ? std::nullopt : host.device->poll_event()) {
    any = true;
    on_event(side, *event);
  }
  std::array<Completion, 16> completions;
  const auto poll = [&](device::CompletionQueue* cq) {
    while (!verdict_.failed()) {
      const uint32_t n = cq->poll(completions);
      for (uint32_t i = 0; i < n && !verdict_.failed(); ++i) on_completion(side, completions[i]);
      any |= n != 0;
      if (n < completions.size()) return;
    }
  };
  if (plan_.shared_queues) {
    if (host.shared_cq != nullptr) poll(host.shared_cq);
    return any;
  }
  for (auto& pipe : pipes_) {
    if (pipe->closed) continue;
    poll(pipe->ends[side].send_cq);
    poll(pipe->ends[side].receive_cq);
  }
  return any;
}

void World::unexpected(const Pipe* pipe, uint32_t side, const Event& event) {
  verdict_.fail("event", plan_.devices[side].name + ", pipe " +
                             (pipe == nullptr ? "none" : std::to_string(pipe->number)) + ": " +
                             to_string(event) + " was not expected (" + common(event).detail + ")");
}

void World::on_event(uint32_t side, const Event& event) {
  const event::Common& said = common(event);
  fingerprint_.event(side, event, now_);
  trace(plan_.devices[side].name + " event " + to_string(event) + " qp " + std::to_string(said.qp) +
        " " + said.detail);
  if (const auto* asked = std::get_if<event::ConnectRequest>(&event)) {
    return on_request(side, *asked);
  }
  const auto found = hosts_[side].by_qp.find(said.qp);
  if (found == hosts_[side].by_qp.end()) return unexpected(nullptr, side, event);
  Pipe& pipe = *found->second.first;
  if (on_lost(pipe, side, event)) return;
  const bool expected =
      std::visit([&](const auto& each) { return expects(pipe, side, each); }, event);
  if (!expected) unexpected(&pipe, side, event);
}

bool World::expects(Pipe& pipe, uint32_t side, const event::Established& event) {
  on_established(pipe, side, event);
  return true;
}

bool World::expects(Pipe& pipe, uint32_t, const event::Rejected& event) {
  if (pipe.kind != PipeKind::Rejected || event.private_data != pipe.reply_data) return false;
  pipe.closing = true;
  return true;
}

bool World::expects(Pipe& pipe, uint32_t side, const event::ConnectFailed&) {
  if (pipe.kind != PipeKind::Refused) return false;
  pipe.closing = pipe.ends[1 - side].disconnected = true;
  return true;
}

bool World::expects(Pipe& pipe, uint32_t side, const event::PeerClosed&) {
  if (pipe.violation != nullptr) return true;
  if (!pipe.closing) return false;
  // The one that has not closed yet, closes now.
  const End& end = pipe.ends[side];
  if (!end.disconnected) static_cast<void>(hosts_[side].device->disconnect(*end.qp));
  return true;
}

bool World::expects(Pipe& pipe, uint32_t side, const event::Disconnected& event) {
  End& end = pipe.ends[side];
  if (end.disconnected) return false;
  // The last event of every attempt: the queue pair has flushed.
  const bool closed = !end.established || event.end == StreamEnd::Closed;
  if (pipe.violation == nullptr && (!pipe.closing || !closed)) return false;
  end.disconnected = true;
  return true;
}

bool World::expects(Pipe& pipe, uint32_t side, const event::TerminateSent& event) {
  if (pipe.violation == nullptr) return false;
  pipe.violation->terminated(pipe.ends[side], true, event.fault);
  return true;
}

bool World::expects(Pipe& pipe, uint32_t side, const event::TerminateReceived& event) {
  if (pipe.violation == nullptr) return false;
  pipe.violation->terminated(pipe.ends[side], false, event.fault);
  return true;
}

/// From the moment on at which it has taken a damaged octet a connection is asked for no more than
/// its end. TCP has acknowledged what will never be delivered, so completions prove nothing; one
/// that waits for the rest of an FPDU of which the length is damaged ends with its owner.
void World::lose(Pipe& pipe) {
  constexpr base::Duration kLastChance = std::chrono::seconds(60);
  pipe.lost = pipe.closing = true;
  for (End& end : pipe.ends) end.closing = true;
  pipe.given_up_at = now_ + kLastChance;
  trace("pipe " + std::to_string(pipe.number) + " is lost: " + pipe.judges[0]->excuse() +
        pipe.judges[1]->excuse());
}

/// What comes of a connection that is lost, or that dies by one of the exceptions.
bool World::on_lost(Pipe& pipe, uint32_t side, const Event& event) {
  const auto excused = [](const auto& judge) {
    return judge != nullptr && !judge->excuse().empty();
  };
  const bool gone = std::holds_alternative<event::Disconnected>(event);
  const bool dies = std::holds_alternative<event::TerminateSent>(event) || (gone && !pipe.closing);
  if (!pipe.lost && dies && (excused(pipe.judges[0]) || excused(pipe.judges[1]))) lose(pipe);
  if (!pipe.lost) return false;
  if (gone) pipe.ends[side].disconnected = true;
  if (std::holds_alternative<event::PeerClosed>(event) && !pipe.ends[side].disconnected) {
    static_cast<void>(hosts_[side].device->disconnect(*pipe.ends[side].qp));
  }
  return true;
}

void World::on_arrival(const PortPair& ports, uint32_t to, base::Range range,
                       std::vector<uint64_t> damaged) {
  for (auto& pipe : pipes_) {
    if (pipe->ports == ports && pipe->judges[to] != nullptr) {
      return pipe->judges[to]->arrived(range, std::move(damaged));
    }
  }
}

void World::on_request(uint32_t side, const event::ConnectRequest& event) {
  if (event.private_data.empty() || event.private_data[0] >= pipes_.size()) {
    return verdict_.fail("private data", "a request names no pipe");
  }
  Pipe& pipe = *pipes_[event.private_data[0]];
  if (event.private_data != pipe.request_data || pipe.initiator == side) {
    return verdict_.fail("private data", "pipe " + std::to_string(pipe.number) +
                                             ": the request carries other private data");
  }
  Host& host = hosts_[side];
  if (pipe.kind == PipeKind::Rejected) {
    resources(host.device->reject(event.request, pipe.reply_data, now_));
    pipe.ends[side].disconnected = true;
    return;
  }
  pipe.ports.port[side] = event.local.port;
  pipe.ports.port[1 - side] = event.remote.port;
  resources(host.device->accept(event.request, *pipe.ends[side].qp, pipe.reply_data, now_));
  begin_trace(pipe, side);
}

/// From the first octet on: FPDUs arrive before anybody has seen that the connection stands.
void World::begin_trace(Pipe& pipe, uint32_t side) {
  pipe.traces[side] =
      std::make_unique<TraceCheck>(plan_.devices[side].name + "/" + std::to_string(pipe.number),
                                   verdict_, trace_file_, pipe.judges[side].get());
  resources(hosts_[side].device->set_trace(*pipe.ends[side].qp, pipe.traces[side].get()));
}

void World::on_established(Pipe& pipe, uint32_t side, const event::Established& event) {
  End& end = pipe.ends[side];
  if (end.established || pipe.kind == PipeKind::Rejected || pipe.kind == PipeKind::Refused) {
    return unexpected(&pipe, side, event);
  }
  if (side == pipe.initiator && event.private_data != pipe.reply_data) {
    verdict_.fail("private data",
                  "pipe " + std::to_string(pipe.number) + ": the reply carries other private data");
  }
  end.established = true;
}

void World::on_completion(uint32_t side, const Completion& completion) {
  fingerprint_.completion(side, completion, now_);
  const auto found = hosts_[side].by_qp.find(completion.qp);
  if (found == hosts_[side].by_qp.end()) {
    return verdict_.fail("completion", "a completion of no queue pair");
  }
  Pipe& pipe = *found->second.first;
  if (pipe.lost) return;
  const bool receive = completion.opcode == Opcode::Receive;
  if (pipe.violation != nullptr) {
    if (receive)
      pipe.violation->receive_completed(completion);
    else
      pipe.violation->send_completed(completion);
  } else if (pipe.flows[side] != nullptr) {
    if (receive)
      pipe.flows[1 - side]->receive_completed(completion);
    else
      pipe.flows[side]->send_completed(completion);
  } else {
    verdict_.fail("completion", "a queue pair that was never connected completes something");
  }
}

void World::on_wire_message(const PortPair& ports, uint32_t to, const WireMessage& message) {
  for (auto& pipe : pipes_) {
    if (pipe->ports != ports || pipe->flows[0] == nullptr) continue;
    if (pipe->lost) return;
    if (message.opcode == static_cast<uint8_t>(wire::RdmapOpcode::Terminate)) {
      return verdict_.fail("reference", "a Terminate on pipe " + std::to_string(pipe->number));
    }
    if (message.opcode == static_cast<uint8_t>(wire::RdmapOpcode::ReadResponse) ||
        message.opcode == static_cast<uint8_t>(wire::RdmapOpcode::AtomicResponse)) {
      pipe->flows[to]->reference_response(message);
    } else {
      pipe->flows[1 - to]->reference_request(message);
    }
    return;
  }
}

}  // namespace rnic::simulation
