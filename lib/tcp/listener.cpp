#include "tcp/engine.hpp"

namespace rnic::tcp {

namespace flag = wire::tcp_flag;

Status Engine::listen(const Endpoint& local, llp::Acceptor& acceptor,
                      const ConnectionOptions& options) {
  if (local.port == 0) {
    return base::fail(ErrorCode::InvalidArgument, "listen: port 0; name the port to listen on");
  }
  if (listeners_.find_exact(local) != ListenerTable::kNone) {
    return base::fail(ErrorCode::AlreadyExists,
                      "listen: " + to_string(local) + " is taken; unlisten() it or choose another");
  }
  if (listeners_.full()) {
    return base::fail(ErrorCode::ResourceExhausted,
                      "listen: all listeners in use; raise tcp.max_listeners");
  }
  if (Status good = check_options(options, "listen"); !good) return good;
  listeners_.insert(local, acceptor, options, half_open_.places_of_listener());
  return {};
}

Status Engine::unlisten(const Endpoint& local) {
  const uint32_t number = listeners_.find_exact(local);
  if (number == ListenerTable::kNone) {
    return base::fail(ErrorCode::NotFound, "unlisten: nobody listens on " + to_string(local));
  }
  // Handshakes that are not complete have nobody to be handed to.
  const HalfOpenPlaces& places = listeners_.at(number).half_open;
  connections_.for_each([&](Connection& c) {
    if (!c.doomed && c.half_open.of_listener == &places) doom(c, StreamEnd::Aborted, true);
  });
  listeners_.erase(number);
  return {};
}

Connection* Engine::new_connection(const Endpoint& local, const Endpoint& remote, base::Now now) {
  Connection* const made =
      connections_.insert(local, remote, *this, wheel_, record_pool_, range_pool_, config_);
  if (made == nullptr) return nullptr;
  Connection& c = *made;
  const uint64_t hash = keyed_hash(secret_, local, remote);
  c.tcb.iss = forced_isn_ ? base::Seq32(*forced_isn_) : initial_sequence(hash, now);
  c.tcb.ts_offset = timestamp_offset(hash);
  c.progress_at = now;
  c.last_sent_at = now;
  c.keep_alive.heard(now);
  c.smss_peer = default_mss(remote.address);
  c.handshake.offer(
      {.sack = config_.sack, .timestamps = config_.timestamps, .scale = config_.window_scaling});
  return &c;
}

void Engine::begin_beyond(Connection& c, base::Seq32 old_snd_nxt) {
  // RFC 9293 s.3.6.1 (MAY-2): beyond every sequence number of the old incarnation, and its window.
  constexpr uint32_t kGap = 0x10000;
  if (!base::after(c.tcb.iss, old_snd_nxt + (kGap - 1))) c.tcb.iss = old_snd_nxt + kGap;
}

uint16_t Engine::choose_port(const Endpoint& local, const Endpoint& remote, base::Now now) {
  // RFC 6056 s.3.3.1: from a start that nobody can guess, the first port whose 4-tuple is free, and
  // whose answers come here.
  const uint32_t count = 65536u - config_.ephemeral_first;
  const auto start = static_cast<uint32_t>(random_.below(count));
  for (uint32_t i = 0; i < count; ++i) {
    const auto port = static_cast<uint16_t>(config_.ephemeral_first + (start + i) % count);
    const Endpoint candidate{local.address, port};
    if (listeners_.find(candidate) != ListenerTable::kNone) continue;
    if (connections_.contains(candidate, remote)) continue;
    if (!egress_.lands_here(candidate, remote)) continue;
    if (time_wait_.may_reuse(candidate, remote, now)) return port;
  }
  return 0;
}

Result<llp::Stream*> Engine::connect(const Endpoint& local, const Endpoint& remote,
                                     llp::StreamUser& user, const ConnectionOptions& options,
                                     base::Now now) {
  if (!remote.address.is_unicast() || remote.port == 0 || !local.address.is_unicast() ||
      local.address.is_v4() != remote.address.is_v4()) {
    return base::fail(
        ErrorCode::InvalidArgument,
        "connect: " + to_string(local) + " to " + to_string(remote) +
            " is no pair of unicast endpoints of one family; give addresses and a remote port");
  }
  if (Status good = check_options(options, "connect"); !good) {
    return tl::unexpected(good.error());
  }
  if (egress_.path_mtu(remote.address) == 0) {
    return base::fail(ErrorCode::Unreachable,
                      "connect: no route to " + to_string(remote) + "; configure a gateway");
  }
  if (const uint32_t mtu = egress_.path_mtu(remote.address); mtu < least_link_mtu(remote.address)) {
    return base::fail(ErrorCode::InvalidArgument,
                      "connect: an MTU of " + std::to_string(mtu) + " towards " +
                          to_string(remote) + " is too small; give the device one of at least " +
                          std::to_string(least_link_mtu(remote.address)));
  }
  Endpoint from = local;
  if (from.port == 0) from.port = choose_port(local, remote, now);
  if (from.port == 0) {
    return base::fail(ErrorCode::ResourceExhausted,
                      "connect: no free local port towards " + to_string(remote) +
                          "; lower tcp.ephemeral_first or close connections");
  }
  if (local.port != 0 && !egress_.lands_here(from, remote)) {
    return base::fail(ErrorCode::InvalidArgument,
                      "connect: what " + to_string(remote) + " sends to " + to_string(from) +
                          " comes to another queue of the device; give port 0 and one that comes "
                          "to this queue is chosen");
  }
  if (connections_.contains(from, remote)) {
    return base::fail(ErrorCode::AlreadyExists, "connect: " + to_string(from) + " to " +
                                                    to_string(remote) +
                                                    " exists; use another local port");
  }
  if (!time_wait_.may_reuse(from, remote, now)) {
    return base::fail(ErrorCode::AlreadyExists,
                      "connect: " + to_string(from) + " to " + to_string(remote) +
                          " is in TIME-WAIT; use another local port or wait for tcp.time_wait");
  }
  Connection* c = new_connection(from, remote, now);
  if (c == nullptr) {
    return base::fail(ErrorCode::ResourceExhausted,
                      "connect: all connections in use; raise limits.max_connections");
  }
  if (const auto old_snd_nxt = time_wait_.end(from, remote)) {
    ++counters_.time_wait_reused;
    begin_beyond(*c, *old_snd_nxt);
  }
  c->user = &user;
  apply_options(*c, options);
  c->state = State::SynSent;
  c->handshake.ask();
  c->timers.set(Timer::Life, now + config_.connect_timeout);
  make_ready(*c);
  return c;
}

/// The last place is given away, and who asks next shall find one.
void Engine::keep_a_place(Listener& listener, base::Now now) {
  if (connections_.full() && listener.acceptor->make_room(now)) ++counters_.places_made;
}

/// Nobody is told: the address may be another's. If it is not, the RST that answers the ACK of the
/// handshake tells, or a SYN that comes again finds a place.
void Engine::displace_half_open(const Listener& listener, const Endpoint& newcomer, base::Now now) {
  Connection* c = connections_.get(half_open_.gives_way(listener.half_open, newcomer.address));
  if (c == nullptr) return;
  ++counters_.half_open_displaced;
  half_open_.log_displaced(listener.half_open, c->remote_end, now);
  doom(*c, StreamEnd::Aborted, false);
}

void Engine::input_listen(Listener& listener, const Arrival& a,
                          std::optional<base::Seq32> old_snd_nxt, base::Now now) {
  // RFC 9293 s.3.10.7.2
  if (a.has(flag::kRst)) return;  // First
  if (a.has(flag::kAck)) {        // Second
    if (now < listener.cookies_until && !a.has(flag::kSyn) && take_cookie(listener, a, now)) return;
    reset_reply(a);
    return;
  }
  if (!a.has(flag::kSyn)) return;  // Third
  if (egress_.path_mtu(a.remote.address) < least_link_mtu(a.remote.address)) {
    ++counters_.syn_dropped;
    return;
  }
  if (!half_open_.has_place(listener.half_open)) {
    if (config_.syn_cookies) return send_cookie(listener, a, now);
    displace_half_open(listener, a.remote, now);
    if (!half_open_.has_place(listener.half_open)) {
      ++counters_.syn_dropped;
      return;
    }
  }
  Connection* c = new_connection(a.local, a.remote, now);
  keep_a_place(listener, now);
  if (c == nullptr) {
    ++counters_.syn_dropped;
    return;
  }
  if (old_snd_nxt) begin_beyond(*c, *old_snd_nxt);
  c->acceptor = listener.acceptor;
  c->state = State::SynReceived;
  apply_options(*c, listener.options);
  half_open_.enter(c->half_open, listener.half_open, a.remote.address, c->handle);
  take_syn_options(*c, a, false, now);
  take_syn_ecn(*c, a);
  c->handshake.ask();
  c->timers.set(Timer::Life, now + config_.connect_timeout);
  make_ready(*c);
}

void Engine::send_cookie(Listener& listener, const Arrival& syn, base::Now now) {
  Reply* reply = replies_.push();
  if (reply == nullptr) {
    ++counters_.syn_dropped;
    return;
  }
  cookies_.answer(syn, *listener.acceptor, listener.options, now, *reply);
  listener.cookies_until = now + 2 * SynCookies::kPeriod;
  ++counters_.syn_cookies_sent;
}

bool Engine::take_cookie(Listener& listener, const Arrival& a, base::Now now) {
  const std::optional<Arrival> syn = cookies_.syn_before(a, now);
  if (!syn) {
    ++counters_.syn_cookies_rejected;
    // Text may overtake the ACK of the handshake, or that ACK be lost: a RST would end a connection
    // that stands at its other end. Its first segment comes again. The same for a FIN.
    return a.length() != 0;
  }
  Connection* c = new_connection(a.local, a.remote, now);
  keep_a_place(listener, now);
  if (c == nullptr) {  // what it sends comes again
    ++counters_.syn_dropped;
    return true;
  }
  ++counters_.syn_cookies_accepted;
  c->tcb.iss = a.ack - 1;
  c->acceptor = listener.acceptor;
  c->state = State::SynReceived;
  apply_options(*c, listener.options);
  take_syn_options(*c, *syn, false, now);
  take_syn_ecn(*c, *syn);
  c->handshake.assume_sent();
  c->timers.set(Timer::Life, now + config_.connect_timeout);
  Arrival first = a;
  input_synchronized(*c, first, now);
  return true;
}

}  // namespace rnic::tcp
