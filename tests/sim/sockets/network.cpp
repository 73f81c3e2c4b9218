#include "sockets/network.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>

#include "sockets/kernel.hpp"

namespace rnic::simulation {

namespace {

constexpr uint32_t kSyns = 6;
constexpr std::chrono::seconds kSynAgain{1};
constexpr uint32_t kAllEvents = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLERR | EPOLLHUP;

}  // namespace

void Network::advance(base::Now now) {
  while (!events_.empty() && events_.begin()->first <= now) {
    now_ = std::max(now_, events_.begin()->first);
    auto what = std::move(events_.begin()->second);
    events_.erase(events_.begin());
    what();
  }
  now_ = std::max(now_, now);
}

Kernel* Network::kernel_of(const IpAddress& address) const {
  const auto found = std::find_if(kernels_.begin(), kernels_.end(),
                                  [&](const Kernel* k) { return k->address() == address; });
  return found == kernels_.end() ? nullptr : *found;
}

std::shared_ptr<TcpLink> Network::find(uint16_t connector_port) const {
  const auto found = links_.find(connector_port);
  return found == links_.end() ? nullptr : found->second;
}

void Network::open(const std::shared_ptr<TcpLink>& link, const Endpoint& remote) {
  TcpEnd& near = link->ends[0];
  links_[near.local.port] = link;
  const SystemFaults& faults = near.kernel->plan().faults;
  if (may_break() && prng_.chance(faults.refusal)) {
    static constexpr std::array kErrors{ECONNREFUSED, ETIMEDOUT, EHOSTUNREACH, ENETUNREACH,
                                        ECONNRESET,   EACCES,    EPERM,        EPROTO};
    mark_broken(*link);
    const int error = kErrors[prng_.below(kErrors.size())];
    after(2 * near.kernel->plan().delay, [this, link, error] { fail_open(link, error); });
    return;
  }
  after(near.kernel->plan().delay, [this, link, remote] { arrive_syn(link, remote); });
}

void Network::fail_open(const std::shared_ptr<TcpLink>& link, int error) {
  TcpEnd& near = link->ends[0];
  if (near.closed) return;
  near.error = error;
  near.dead = true;
  near.kernel->raise(near.descriptor, kAllEvents);
}

void Network::arrive_syn(const std::shared_ptr<TcpLink>& link, const Endpoint& remote) {
  TcpEnd& near = link->ends[0];
  if (near.closed) return;
  Kernel* there = kernel_of(remote.address);
  const base::Duration back = near.kernel->plan().delay;
  if (there == nullptr || !there->listens(remote)) {
    after(back, [this, link] { fail_open(link, ECONNREFUSED); });
    return;
  }
  TcpEnd& far = link->ends[1];
  far.kernel = there;
  far.local = remote;
  far.mss = there->plan().mss;
  if (!there->queue(remote, link)) {  // the backlog is full: no answer
    if (++link->attempts == kSyns) {
      mark_broken(*link);
      after(kSynAgain, [this, link] { fail_open(link, ETIMEDOUT); });
    } else {
      after(kSynAgain, [this, link, remote] { arrive_syn(link, remote); });
    }
    return;
  }
  far.established = true;
  after(back, [link] {
    TcpEnd& end = link->ends[0];
    if (end.closed || end.dead) return;
    end.established = true;
    end.kernel->raise(end.descriptor, EPOLLOUT);
  });
}

void Network::push(const std::shared_ptr<TcpLink>& link, uint32_t from) {
  TcpEnd& end = link->ends[from];
  if (end.moving || end.dead) return;
  end.moving = true;
  after(end.kernel->plan().delay, [this, link, from] { move(link, from); });
}

void Network::move(const std::shared_ptr<TcpLink>& link, uint32_t from) {
  TcpEnd& end = link->ends[from];
  TcpEnd& peer = link->ends[1 - from];
  end.moving = false;
  if (end.dead || peer.dead) return;
  if (peer.closed && !end.unsent.empty()) return reset(link, 1 - from);
  const uint32_t limit = peer.kernel->plan().receive_buffer;
  const size_t room = peer.arrived.size() < limit ? limit - peer.arrived.size() : 0;
  size_t n = std::min({end.unsent.size(), room, size_t{end.kernel->plan().longest_piece}});
  if (n > 1) n = prng_.between(1, n);
  if (n != 0) {
    const std::vector<uint8_t> octets(end.unsent.begin(),
                                      end.unsent.begin() + static_cast<ptrdiff_t>(n));
    end.unsent.erase(end.unsent.begin(), end.unsent.begin() + static_cast<ptrdiff_t>(n));
    arrive(*link, 1 - from, octets);
    end.kernel->has_room(end);
  }
  if (!end.unsent.empty()) {
    if (room > n) push(link, from);  // or else when the peer has read
    return;
  }
  if (end.finished && !peer.peer_finished) {
    peer.peer_finished = true;
    peer.kernel->raise(peer.descriptor, EPOLLIN | EPOLLRDHUP);
  }
}

void Network::arrive(TcpLink& link, uint32_t to, const std::vector<uint8_t>& octets) {
  TcpEnd& end = link.ends[to];
  end.arrived.insert(end.arrived.end(), octets.begin(), octets.end());
  if (arrival_) arrival_(link, to, end.arrived_in_all, octets);
  end.arrived_in_all += octets.size();
  end.untold = now_ < end.receives_from;
  if (!end.untold) end.kernel->raise(end.descriptor, EPOLLIN);
}

void Network::reset(const std::shared_ptr<TcpLink>& link, uint32_t from) {
  TcpEnd& end = link->ends[from];
  end.dead = true;
  end.unsent.clear();
  if (end.kernel == nullptr) return;
  after(end.kernel->plan().delay, [link, from] {
    TcpEnd& peer = link->ends[1 - from];
    if (peer.dead || peer.kernel == nullptr) return;
    peer.dead = true;
    peer.unsent.clear();
    peer.error = ECONNRESET;
    peer.kernel->raise(peer.descriptor, kAllEvents);
  });
}

void Network::mark_broken(TcpLink& link) {
  if (!link.broken) ++broken_;
  link.broken = true;
}

void Network::break_link(const std::shared_ptr<TcpLink>& link, uint32_t at, int error) {
  mark_broken(*link);
  reset(link, at);
  link->ends[at].error = error;
}

}  // namespace rnic::simulation
