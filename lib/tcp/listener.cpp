#include "tcp/engine.hpp"

namespace rnic::tcp {

namespace flag = wire::tcp_flag;

base::Status Engine::listen(const llp::Endpoint& local, llp::Acceptor& acceptor) {
  if (local.port == 0) {
    return base::fail(base::Errc::InvalidArgument, "listen: port 0; name the port to listen on");
  }
  for (const Listener& l : listeners_) {
    if (l.local == local) {
      return base::fail(
          base::Errc::AlreadyExists,
          "listen: " + to_string(local) + " is taken; unlisten() it or choose another");
    }
  }
  if (listeners_.size() >= config_.max_listeners) {
    return base::fail(base::Errc::ResourceExhausted,
                      "listen: all listeners in use; raise tcp.max_listeners");
  }
  listeners_.push_back({local, &acceptor});
  return {};
}

base::Status Engine::unlisten(const llp::Endpoint& local) {
  for (size_t i = 0; i < listeners_.size(); ++i) {
    if (listeners_[i].local != local) continue;
    llp::Acceptor* acceptor = listeners_[i].acceptor;
    listeners_.erase(listeners_.begin() + static_cast<ptrdiff_t>(i));
    // Handshakes that are not complete have nobody to be handed to.
    for (Connection* c : by_slot_) {
      if (c != nullptr && c->state == State::SynReceived && c->acceptor == acceptor &&
          c->local_end.port == local.port) {
        doom(*c, llp::StreamEnd::Aborted, true);
      }
    }
    return {};
  }
  return base::fail(base::Errc::NotFound, "unlisten: nobody listens on " + to_string(local));
}

const Engine::Listener* Engine::find_listener(const llp::Endpoint& local) const {
  const Listener* any = nullptr;
  for (const Listener& l : listeners_) {
    if (l.local == local) return &l;
    if (l.local.address.is_unspecified() && l.local.port == local.port) any = &l;
  }
  return any;
}

Connection* Engine::new_connection(const llp::Endpoint& local, const llp::Endpoint& remote,
                                   base::Now now) {
  if (free_slots_.empty()) return nullptr;
  const uint32_t slot = free_slots_.back();
  const base::Handle handle = connections_.emplace(*this, slot, record_pool_, config_);
  if (!handle.valid()) return nullptr;
  free_slots_.pop_back();
  Connection& c = *connections_.get(handle);
  c.handle = handle;
  by_slot_[slot] = &c;
  c.local_end = local;
  c.remote_end = remote;
  flows_.insert(slot, local, remote);
  c.tcb.iss =
      forced_isn_ ? base::Seq32(*forced_isn_) : initial_sequence(secret_, local, remote, now);
  c.tcb.ts_offset = random_.next32();
  c.progress_at = now;
  c.last_sent_at = now;
  c.offers_sack = config_.sack;
  c.offers_timestamps = config_.timestamps;
  c.offers_scale = config_.window_scaling;
  return &c;
}

uint16_t Engine::choose_port(const llp::Endpoint& local, const llp::Endpoint& remote) {
  // RFC 6056 s.3.3.1: from a random start, the first port whose 4-tuple is free.
  const uint32_t count = 65536u - config_.ephemeral_first;
  const auto start = static_cast<uint32_t>(random_.below(count));
  for (uint32_t i = 0; i < count; ++i) {
    const auto port = static_cast<uint16_t>(config_.ephemeral_first + (start + i) % count);
    const llp::Endpoint candidate{local.address, port};
    if (find_listener(candidate) != nullptr) continue;
    if (flows_.find(candidate, remote) == FlowTable::kNone) return port;
  }
  return 0;
}

base::Result<llp::Stream*> Engine::connect(const llp::Endpoint& local, const llp::Endpoint& remote,
                                           llp::StreamUser& user, base::Now now) {
  if (!remote.address.is_unicast() || remote.port == 0 || !local.address.is_unicast() ||
      local.address.is_v4() != remote.address.is_v4()) {
    return base::fail(
        base::Errc::InvalidArgument,
        "connect: " + to_string(local) + " to " + to_string(remote) +
            " is no pair of unicast endpoints of one family; give addresses and a remote port");
  }
  const uint32_t mtu = egress_.path_mtu(remote.address);
  if (mtu == 0) {
    return base::fail(base::Errc::Unreachable,
                      "connect: no route to " + to_string(remote) + "; configure a gateway");
  }
  llp::Endpoint from = local;
  if (from.port == 0) from.port = choose_port(local, remote);
  if (from.port == 0) {
    return base::fail(base::Errc::ResourceExhausted,
                      "connect: no free local port towards " + to_string(remote) +
                          "; lower tcp.ephemeral_first or close connections");
  }
  if (flows_.find(from, remote) != FlowTable::kNone) {
    return base::fail(base::Errc::AlreadyExists, "connect: " + to_string(from) + " to " +
                                                     to_string(remote) +
                                                     " exists; use another local port");
  }
  Connection* c = new_connection(from, remote, now);
  if (c == nullptr) {
    return base::fail(base::Errc::ResourceExhausted,
                      "connect: all connections in use; raise tcp.max_connections");
  }
  c->user = &user;
  c->state = State::SynSent;
  c->syn_due = true;
  c->deadlines.life = now + config_.connect_timeout;
  schedule(*c);
  make_ready(*c);
  return c;
}

void Engine::input_listen(const Listener& listener, const Arrival& a, base::Now now) {
  // RFC 9293 s.3.10.7.2
  if (a.has(flag::kRst)) return;  // First
  if (a.has(flag::kAck)) {        // Second
    reset_reply(a);
    return;
  }
  if (!a.has(flag::kSyn)) return;  // Third
  if (half_open_ >= config_.max_half_open || egress_.path_mtu(a.remote.address) == 0) {
    ++counters_.syn_dropped;
    return;
  }
  Connection* c = new_connection(a.local, a.remote, now);
  if (c == nullptr) {
    ++counters_.syn_dropped;
    return;
  }
  c->acceptor = listener.acceptor;
  c->state = State::SynReceived;
  ++half_open_;
  take_syn_options(*c, a, false, now);
  take_syn_ecn(*c, a);
  c->syn_due = true;
  c->deadlines.life = now + config_.connect_timeout;
  schedule(*c);
  make_ready(*c);
}

}  // namespace rnic::tcp
