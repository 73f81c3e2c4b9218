// The part of Engine that opens connections: by connect(), by a SYN, or by a SYN cookie that comes
// back.

#include <string>

#include "tcp/engine.hpp"
#include "tcp/mss.hpp"

namespace rnic::tcp {

namespace flag = wire::tcp_flag;

namespace {

constexpr uint32_t kNobody = ListenerTable::kNone;

tl::unexpected<Error> reserved(const char* call, const Endpoint& local) {
  return base::fail(ErrorCode::AlreadyExists,
                    std::string(call) + ": " + to_string(local) +
                        " is reserved for another use; choose another port");
}

}  // namespace

/// Chooses the port of a listener or a reservation if there is none, where there is a place for it.
Result<Endpoint> Engine::find_place(const char* call, const Endpoint& local) {
  if (listeners_.full()) {
    return base::fail(ErrorCode::ResourceExhausted,
                      std::string(call) + ": all listeners in use; raise tcp.max_listeners");
  }
  const Endpoint chosen{local.address, local.port != 0 ? local.port : choose_listening_port()};
  if (chosen.port != 0) return chosen;
  return base::fail(
      ErrorCode::ResourceExhausted,
      std::string(call) + ": no free port; lower tcp.ephemeral_first or unlisten() one");
}

Result<Endpoint> Engine::reserve(const Endpoint& local) {
  if (local.port != 0 && listeners_.find_reserved(local) != kNobody) {
    return reserved("reserve", local);
  }
  if (local.port != 0 && listeners_.find_holder(local) != kNobody) {
    return base::fail(ErrorCode::AlreadyExists,
                      "reserve: " + to_string(local) + " is listened on; choose another port");
  }
  const Result<Endpoint> chosen = find_place("reserve", local);
  if (chosen) listeners_.reserve(*chosen);
  return chosen;
}

Status Engine::unreserve(const Endpoint& local) {
  const Result<uint32_t> number = find_reservation("unreserve", local);
  if (!number) return tl::unexpected(number.error());
  listeners_.erase(*number);
  return {};
}

Result<uint32_t> Engine::find_reservation(const char* call, const Endpoint& local) const {
  const uint32_t number = listeners_.find_reserved(local);
  const bool is_among = number != kNobody && (listeners_.at(number).local == local ||
                                              listeners_.at(number).local.address.is_unspecified());
  if (is_among) return number;
  return base::fail(ErrorCode::NotFound, std::string(call) + ": nobody has reserved " +
                                             to_string(local) + ": use what reserve() returned");
}

Result<Endpoint> Engine::listen(const Endpoint& local, llp::Acceptor& acceptor,
                                const ConnectionOptions& options, llp::PortClaim claim) {
  if (Status good = check(options, "listen"); !good) return tl::unexpected(good.error());
  if (claim == llp::PortClaim::Reserved) {
    const Result<uint32_t> number = find_reservation("listen", local);
    if (!number) return tl::unexpected(number.error());
    listeners_.begin(*number, acceptor, options, shared_.half_open.places_of_listener());
    return listeners_.at(*number).local;
  }
  if (local.port != 0 && listeners_.find_exact(local) != kNobody) {
    return base::fail(ErrorCode::AlreadyExists,
                      "listen: " + to_string(local) + " is taken; unlisten() it or choose another");
  }
  if (local.port != 0 && listeners_.find_reserved(local) != kNobody)
    return reserved("listen", local);
  const Result<Endpoint> chosen = find_place("listen", local);
  if (chosen) {
    listeners_.insert(*chosen, acceptor, options, shared_.half_open.places_of_listener());
  }
  return chosen;
}

/// A port that nobody listens on or has reserved at any address; 0: there is none.
uint16_t Engine::choose_listening_port() {
  const uint32_t count = 65536u - shared_.config.ephemeral_first;
  const auto start = static_cast<uint32_t>(random_.below(count));
  for (uint32_t i = 0; i < count; ++i) {
    const auto port = static_cast<uint16_t>(shared_.config.ephemeral_first + (start + i) % count);
    if (!listeners_.is_taken(port)) return port;
  }
  return 0;
}

Status Engine::unlisten(const Endpoint& local) {
  const uint32_t number = listeners_.find_exact(local);
  if (number == kNobody) {
    return base::fail(ErrorCode::NotFound, "unlisten: nobody listens on " + to_string(local) +
                                               ": use what listen() returned");
  }
  // Connections whose handshake is incomplete are aborted, since they have no acceptor any more.
  const HalfOpenPlaces& places = listeners_.at(number).half_open;
  connections_.for_each([&](Connection& connection) {
    if (connection.half_open_of(places)) connection.end(StreamEnd::Aborted, true);
  });
  listeners_.erase(number);
  return {};
}

Connection* Engine::new_connection(const Endpoint& local, const Endpoint& remote,
                                   const ConnectionOptions& options, base::Now now) {
  Connection* connection = connections_.insert(local, remote, shared_);
  if (connection == nullptr) return nullptr;
  const uint64_t hash = keyed_hash(secret_, local, remote);
  const base::Seq32 iss = forced_isn_ ? base::Seq32(*forced_isn_) : initial_sequence(hash, now);
  connection->begin(iss, timestamp_offset(hash), options, now);
  return connection;
}

uint16_t Engine::choose_port(const Endpoint& local, const Endpoint& remote, base::Now now) {
  // RFC 6056 s.3.3.1: the search starts at a port that cannot be guessed and takes the first one
  // whose 4-tuple is free and whose answers come to this stack.
  const uint32_t count = 65536u - shared_.config.ephemeral_first;
  const auto start = static_cast<uint32_t>(random_.below(count));
  for (uint32_t i = 0; i < count; ++i) {
    const auto port = static_cast<uint16_t>(shared_.config.ephemeral_first + (start + i) % count);
    const Endpoint candidate{local.address, port};
    if (listeners_.find_holder(candidate) != kNobody) continue;
    if (connections_.contains(candidate, remote)) continue;
    if (!egress_.lands_here(candidate, remote)) continue;
    if (shared_.time_wait.may_reuse(candidate, remote, now)) return port;
  }
  return 0;
}

Status Engine::check_route(const Endpoint& local, const Endpoint& remote, base::Now now) const {
  if (!remote.address.is_unicast() || remote.port == 0 || !local.address.is_unicast() ||
      local.address.is_v4() != remote.address.is_v4()) {
    return base::fail(
        ErrorCode::InvalidArgument,
        "connect: " + to_string(local) + " to " + to_string(remote) +
            " is no pair of unicast endpoints of one family; give addresses and a remote port");
  }
  const uint32_t mtu = egress_.path_mtu(remote.address, now);
  if (mtu == 0) {
    return base::fail(ErrorCode::Unreachable,
                      "connect: no route to " + to_string(remote) + "; configure a gateway");
  }
  if (mtu < least_link_mtu(remote.address)) {
    return base::fail(ErrorCode::InvalidArgument,
                      "connect: an MTU of " + std::to_string(mtu) + " towards " +
                          to_string(remote) + " is too small; give the device one of at least " +
                          std::to_string(least_link_mtu(remote.address)));
  }
  return {};
}

Result<Endpoint> Engine::choose_local(const Endpoint& local, const Endpoint& remote,
                                      llp::PortClaim claim, base::Now now) {
  const bool is_reserved = local.port != 0 && listeners_.find_reserved(local) != kNobody;
  if (claim == llp::PortClaim::None && is_reserved) return reserved("connect", local);
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
  if (!shared_.time_wait.may_reuse(from, remote, now)) {
    return base::fail(ErrorCode::AlreadyExists,
                      "connect: " + to_string(from) + " to " + to_string(remote) +
                          " is in TIME-WAIT; use another local port or wait for tcp.time_wait");
  }
  return from;
}

Result<llp::Stream*> Engine::connect(const Endpoint& local, const Endpoint& remote,
                                     llp::StreamUser& user, const ConnectionOptions& options,
                                     base::Now now, llp::PortClaim claim) {
  if (Status good = check_route(local, remote, now); !good) return tl::unexpected(good.error());
  if (Status good = check(options, "connect"); !good) return tl::unexpected(good.error());
  uint32_t reservation = kNobody;
  if (claim == llp::PortClaim::Reserved) {
    const Result<uint32_t> found = find_reservation("connect", local);
    if (!found) return tl::unexpected(found.error());
    reservation = *found;
  }
  const Result<Endpoint> from = choose_local(local, remote, claim, now);
  if (!from) return tl::unexpected(from.error());
  Connection* connection = new_connection(*from, remote, options, now);
  if (connection == nullptr) {
    return base::fail(ErrorCode::ResourceExhausted,
                      "connect: all connections in use; raise limits.max_connections");
  }
  if (const auto old_snd_nxt = shared_.time_wait.end(*from, remote)) {
    ++shared_.counters.time_wait_reused;
    connection->begin_beyond(*old_snd_nxt);
  }
  // From here on the connection has the port, as any that was given its source.
  if (reservation != kNobody) listeners_.erase(reservation);
  connection->open_active(user, now);
  return connection;
}

/// When the last place is taken, asks the acceptor to free one for the next SYN.
void Engine::keep_a_place(Listener& listener, base::Now now) {
  if (connections_.full() && listener.acceptor->make_room(now)) ++shared_.counters.places_made;
}

/// Ends a half-open connection to make room for the newcomer. No RST is sent, since the address may
/// be forged. A real peer gets a RST in answer to its ACK, or retransmits its SYN and finds a
/// place.
void Engine::displace_half_open(const Listener& listener, const Endpoint& newcomer, base::Now now) {
  Connection* connection =
      connections_.get(shared_.half_open.gives_way(listener.half_open, newcomer.address));
  if (connection == nullptr) return;
  ++shared_.counters.half_open_displaced;
  shared_.half_open.log_displaced(listener.half_open, connection->remote(), now);
  connection->end(StreamEnd::Aborted, false);
}

void Engine::input_listen(Listener& listener, const Segment& segment,
                          std::optional<base::Seq32> old_snd_nxt, base::Now now) {
  if (segment.has(flag::kRst)) return;  // First
  if (segment.has(flag::kAck)) {        // Second
    if (now < listener.cookies_until && !segment.has(flag::kSyn) &&
        take_cookie(listener, segment, now))
      return;
    shared_.reset_reply(segment);
    return;
  }
  if (!segment.has(flag::kSyn)) return;  // Third
  if (egress_.path_mtu(segment.remote.address, now) < least_link_mtu(segment.remote.address)) {
    ++shared_.counters.syn_dropped;
    return;
  }
  if (!shared_.half_open.has_place(listener.half_open)) {
    if (shared_.config.syn_cookies) return send_cookie(listener, segment, now);
    displace_half_open(listener, segment.remote, now);
    if (!shared_.half_open.has_place(listener.half_open)) {
      ++shared_.counters.syn_dropped;
      return;
    }
  }
  Connection* connection = new_connection(segment.local, segment.remote, listener.options, now);
  keep_a_place(listener, now);
  if (connection == nullptr) {
    ++shared_.counters.syn_dropped;
    return;
  }
  if (old_snd_nxt) connection->begin_beyond(*old_snd_nxt);
  connection->take_seat(listener.half_open);
  connection->open_passive(*listener.acceptor, segment, now);
}

// --- SYN cookies ---

void Engine::send_cookie(Listener& listener, const Segment& syn, base::Now now) {
  Reply* reply = shared_.replies.push();
  if (reply == nullptr) {
    ++shared_.counters.syn_dropped;
    return;
  }
  cookies_.answer(syn, *listener.acceptor, listener.options, now, *reply);
  listener.cookies_until = now + 2 * SynCookies::kPeriod;
  ++shared_.counters.syn_cookies_sent;
}

bool Engine::take_cookie(Listener& listener, const Segment& segment, base::Now now) {
  const std::optional<Segment> syn = cookies_.syn_before(segment, now);
  if (!syn) {
    ++shared_.counters.syn_cookies_rejected;
    // Text may overtake the ACK of the handshake, or that ACK may be lost. A RST would end a
    // connection that the peer regards as established. Without a RST the peer retransmits its first
    // segment, or its FIN.
    return segment.length() != 0;
  }
  Connection* connection = new_connection(segment.local, segment.remote, listener.options, now);
  keep_a_place(listener, now);
  if (connection == nullptr) {  // the peer retransmits
    ++shared_.counters.syn_dropped;
    return true;
  }
  ++shared_.counters.syn_cookies_accepted;
  connection->open_by_cookie(*listener.acceptor, *syn, segment.ack - 1, now);
  Segment first = segment;
  connection->input(first, false, now);
  return true;
}

}  // namespace rnic::tcp
