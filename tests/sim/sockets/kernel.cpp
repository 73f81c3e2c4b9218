#include "sockets/kernel.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace rnic::simulation {

namespace {

constexpr uint32_t kAlways = EPOLLERR | EPOLLHUP;  // told without being asked for
constexpr std::chrono::microseconds kSoon{50};     // until what was called EAGAIN is there

}  // namespace

Kernel::Kernel(Network& network, const SystemPlan& plan, const IpAddress& address, int first)
    : network_(network),
      plan_(plan),
      address_(address),
      first_(first),
      next_port_(static_cast<uint16_t>(30'000 + first)) {
  network_.attach(*this);
}

// --- descriptors ---

int Kernel::fail(int error) {
  errno = error;
  return -1;
}

bool Kernel::fault(double chance) {
  if (chance == 0 || !prng().chance(chance)) return false;
  ++totals_.refused;
  return true;
}

Kernel::Entry* Kernel::find(int descriptor, const char* call) {
  const auto found = entries_.find(descriptor);
  if (found != entries_.end()) return &found->second;
  if (misuse_.empty()) {
    misuse_ = std::string(call) + "() of descriptor " + std::to_string(descriptor) +
              ", which is not open";
  }
  return nullptr;
}

Kernel::Entry* Kernel::find_stream(int descriptor, const char* call) {
  Entry* entry = find(descriptor, call);
  return entry != nullptr && entry->kind == Kind::Stream ? entry : nullptr;
}

int Kernel::add(Entry entry) {
  int number = first_;
  while (entries_.contains(number)) ++number;
  entries_.emplace(number, std::move(entry));
  return number;
}

int Kernel::setup_fault() {
  static constexpr std::array kErrors{EMFILE, ENFILE, ENOBUFS, ENOMEM};
  return kErrors[prng().below(kErrors.size())];
}

int Kernel::socket(int family, int type, int) {
  if ((type & SOCK_NONBLOCK) == 0 && misuse_.empty()) misuse_ = "a socket that blocks";
  if (family == AF_INET6 && !plan_.has_ipv6) return fail(EAFNOSUPPORT);
  if (entries_.size() >= plan_.descriptors) return fail(EMFILE);
  if (fault(plan_.faults.setup)) return fail(setup_fault());
  return add({});
}

int Kernel::close(int descriptor) {
  Entry* entry = find(descriptor, "close");
  if (entry == nullptr) return fail(EBADF);
  if (entry->kind == Kind::Stream) close_stream(*entry);
  stop_listening(*entry);
  entries_.erase(descriptor);
  return 0;
}

void Kernel::stop_listening(Entry& entry) {
  for (const auto& link : std::exchange(entry.backlog, {})) {
    link->ends[1].closed = true;
    network_.reset(link, 1);
  }
}

// What nobody has read, and nobody will, is answered with a RST (RFC 1122 s.4.2.2.13).
void Kernel::close_stream(Entry& entry) {
  TcpEnd& end = entry.link->ends[entry.end];
  end.closed = true;
  end.descriptor = -1;
  if (end.dead) return;
  if (!end.established || entry.linger_reset || !end.arrived.empty() || end.mute) {
    return network_.reset(entry.link, entry.end);
  }
  end.finished = true;
  network_.push(entry.link, entry.end);
}

// --- listening ---

int Kernel::bind(int descriptor, const sockaddr* address, socklen_t size) {
  Entry* entry = find(descriptor, "bind");
  if (entry == nullptr) return fail(EBADF);
  if (fault(plan_.faults.setup)) return fail(prng().chance(0.5) ? EADDRINUSE : ENOMEM);
  socket::SystemAddress wanted;
  std::memcpy(&wanted.storage, address, std::min<size_t>(size, sizeof wanted.storage));
  const Endpoint local = wanted.endpoint();
  if (!local.address.is_unspecified() && local.address != address_ &&
      local.address != IpAddress::v4(0)) {
    return fail(EADDRNOTAVAIL);
  }
  if (local.port != 0 && listener_of(local) != nullptr) return fail(EADDRINUSE);
  entry->local = local;
  return 0;
}

int Kernel::listen(int descriptor, int backlog) {
  Entry* entry = find(descriptor, "listen");
  if (entry == nullptr) return fail(EBADF);
  if (fault(plan_.faults.setup)) return fail(EADDRINUSE);
  entry->kind = Kind::Listener;
  entry->backlog_limit = static_cast<uint32_t>(std::max(backlog, 1));
  return 0;
}

Kernel::Entry* Kernel::listener_of(const Endpoint& local) {
  for (auto& [number, entry] : entries_) {
    if (entry.kind == Kind::Listener && entry.local.port == local.port) return &entry;
  }
  return nullptr;
}

bool Kernel::listens(const Endpoint& local) { return listener_of(local) != nullptr; }

bool Kernel::queue(const Endpoint& local, const std::shared_ptr<TcpLink>& link) {
  Entry* entry = listener_of(local);
  if (entry->backlog.size() >= entry->backlog_limit) return false;
  entry->backlog.push_back(link);
  return true;
}

int Kernel::accept4(int descriptor, sockaddr* address, socklen_t* size, int flags) {
  Entry* entry = find(descriptor, "accept4");
  if (entry == nullptr || entry->kind != Kind::Listener) return fail(EBADF);
  if ((flags & SOCK_NONBLOCK) == 0 && misuse_.empty()) misuse_ = "an accepted socket that blocks";
  if (fault(plan_.faults.interrupted)) return fail(EINTR);
  if (entry->backlog.empty()) return fail(EAGAIN);
  if (entries_.size() >= plan_.descriptors) return fail(EMFILE);
  if (fault(plan_.faults.setup)) {
    static constexpr std::array kErrors{EMFILE, ENFILE, ENOBUFS, ENOMEM, EPERM, EPROTO};
    return fail(kErrors[prng().below(kErrors.size())]);
  }
  const std::shared_ptr<TcpLink> link = entry->backlog.front();
  entry->backlog.pop_front();
  if (network_.may_break() && fault(plan_.faults.setup)) {
    link->ends[1].closed = true;
    network_.mark_broken(*link);
    network_.reset(link, 1);
    return fail(ECONNABORTED);
  }
  const socket::SystemAddress peer(link->ends[0].local);
  std::memcpy(address, &peer.storage, std::min<size_t>(*size, peer.size));
  *size = peer.size;
  Entry made;
  made.kind = Kind::Stream;
  made.link = link;
  made.end = 1;
  made.local = link->ends[1].local;
  link->ends[1].descriptor = add(std::move(made));
  return link->ends[1].descriptor;
}

// --- connecting ---

int Kernel::connect(int descriptor, const sockaddr* address, socklen_t size) {
  Entry* entry = find(descriptor, "connect");
  if (entry == nullptr) return fail(EBADF);
  if (fault(plan_.faults.setup)) {
    static constexpr std::array kErrors{EAGAIN, EADDRNOTAVAIL, ENETUNREACH, EPERM, ENOMEM};
    return fail(kErrors[prng().below(kErrors.size())]);
  }
  socket::SystemAddress remote;
  std::memcpy(&remote.storage, address, std::min<size_t>(size, sizeof remote.storage));
  auto link = std::make_shared<TcpLink>();
  TcpEnd& near = link->ends[0];
  near.kernel = this;
  near.descriptor = descriptor;
  near.local = {address_, entry->local.port};
  if (near.local.port == 0) near.local.port = next_port_++;
  near.mss = plan_.mss;
  entry->kind = Kind::Stream;
  entry->local = near.local;
  entry->link = link;
  entry->end = 0;
  network_.open(link, remote.endpoint());
  return fail(EINPROGRESS);
}

int Kernel::shutdown(int descriptor, int how) {
  Entry* entry = find(descriptor, "shutdown");
  if (entry != nullptr && entry->kind == Kind::Listener) {
    if (how == SHUT_WR && misuse_.empty()) misuse_ = "shutdown() of a listener's writing";
    stop_listening(*entry);
    entry->kind = Kind::Fresh;
    return 0;
  }
  entry = find_stream(descriptor, "shutdown");
  if (entry == nullptr) return fail(EBADF);
  TcpEnd& end = entry->link->ends[entry->end];
  if (end.dead || !end.established) return fail(ENOTCONN);
  if (how != SHUT_WR && misuse_.empty()) misuse_ = "shutdown() of more than writing";
  end.finished = true;
  network_.push(entry->link, entry->end);
  return 0;
}

// --- options ---

int Kernel::getsockname(int descriptor, sockaddr* address, socklen_t* size) {
  Entry* entry = find(descriptor, "getsockname");
  if (entry == nullptr) return fail(EBADF);
  if (fault(plan_.faults.options)) return fail(ENOBUFS);
  const socket::SystemAddress local(entry->local);
  std::memcpy(address, &local.storage, std::min<size_t>(*size, local.size));
  *size = local.size;
  return 0;
}

int Kernel::getsockopt(int descriptor, int level, int name, void* value, socklen_t* size) {
  Entry* entry = find(descriptor, "getsockopt");
  if (entry == nullptr) return fail(EBADF);
  if (entry->kind == Kind::Listener && level == IPPROTO_TCP && name == TCP_INFO) {
    tcp_info info{};
    info.tcpi_unacked = static_cast<uint32_t>(entry->backlog.size());
    std::memcpy(value, &info, std::min<size_t>(*size, sizeof info));
    return 0;
  }
  if (entry->kind != Kind::Stream) return fail(EBADF);
  TcpEnd& end = entry->link->ends[entry->end];
  int answer = 0;
  if (level == SOL_SOCKET && name == SO_ERROR) {
    answer = std::exchange(end.error, 0);
    if (answer != 0 && end.first_told == 0) end.first_told = answer;
  } else if (level == IPPROTO_TCP && name == TCP_MAXSEG) {
    if (fault(plan_.faults.options)) return fail(ENOPROTOOPT);
    static constexpr std::array<uint32_t, 5> kSizes{88, 536, 1448, 8948, 32'741};
    if (plan_.new_mss != 0 && prng().chance(plan_.new_mss)) {
      end.mss = kSizes[prng().below(kSizes.size())];
    }
    answer = static_cast<int>(end.mss);
  } else {
    return fail(ENOPROTOOPT);
  }
  std::memcpy(value, &answer, sizeof answer);
  *size = sizeof answer;
  return 0;
}

int Kernel::setsockopt(int descriptor, int level, int name, const void* value, socklen_t) {
  Entry* entry = find(descriptor, "setsockopt");
  if (entry == nullptr) return fail(EBADF);
  int number = 0;
  std::memcpy(&number, value, sizeof number);
  if (level == SOL_SOCKET && name == SO_LINGER) {
    linger how{};
    std::memcpy(&how, value, sizeof how);
    entry->linger_reset = how.l_onoff != 0 && how.l_linger == 0;
    return 0;
  }
  if (fault(plan_.faults.options)) return fail(ENOPROTOOPT);
  options_[{level, name}] = number;
  return 0;
}

int Kernel::unacknowledged(int descriptor, int& octets) {
  Entry* entry = find_stream(descriptor, "ioctl");
  if (entry == nullptr) return fail(EBADF);
  const TcpEnd& end = entry->link->ends[entry->end];
  const bool fin = end.finished && !entry->link->ends[1 - entry->end].peer_finished;
  octets = static_cast<int>(end.unsent.size()) + (fin ? 1 : 0);
  return 0;
}

// --- octets ---

/// An error of the network's that this call is the first to tell.
int Kernel::broken_by_call(Entry& entry) {
  static constexpr std::array kErrors{ECONNRESET, ETIMEDOUT, EHOSTUNREACH, ENETUNREACH,
                                      ENETDOWN,   EHOSTDOWN, EPROTO,       EIO};
  const int error = kErrors[prng().below(kErrors.size())];
  network_.break_link(entry.link, entry.end, error);
  TcpEnd& end = entry.link->ends[entry.end];
  if (end.first_told == 0) end.first_told = error;
  end.error = 0;
  return fail(error);
}

void Kernel::raise_later(int descriptor, uint32_t events) {
  network_.after(kSoon, [this, descriptor, events] { raise(descriptor, events); });
}

ssize_t Kernel::recv(int descriptor, void* buffer, size_t size, int flags) {
  Entry* entry = find_stream(descriptor, "recv");
  if (entry == nullptr) return fail(EBADF);
  TcpEnd& end = entry->link->ends[entry->end];
  if (fault(plan_.faults.interrupted)) return fail(EINTR);
  if (!end.dead && !end.mute && network_.may_break() && fault(plan_.faults.fatal)) {
    return broken_by_call(*entry);
  }
  if (fault(plan_.faults.again)) {
    raise_later(descriptor, EPOLLIN);
    return fail(EAGAIN);
  }
  const bool over = end.peer_finished || end.dead;
  if (!end.arrived.empty() && (!end.untold || over)) {
    size_t n = std::min(size, end.arrived.size());
    if (n > 1 && fault(plan_.faults.partial)) {
      n = prng().between(1, n);
      raise_later(descriptor, EPOLLIN);  // as behind urgent data, where a read ends early
    }
    const auto last = end.arrived.begin() + static_cast<ptrdiff_t>(n);
    std::copy(end.arrived.begin(), last, static_cast<uint8_t*>(buffer));
    if ((flags & MSG_PEEK) != 0) {
      ++totals_.peeks;
      return static_cast<ssize_t>(n);
    }
    end.arrived.erase(end.arrived.begin(), last);
    totals_.octets_in += n;
    ++totals_.reads;
    network_.push(entry->link, 1 - entry->end);
    return static_cast<ssize_t>(n);
  }
  if (end.error != 0) {
    const int error = std::exchange(end.error, 0);
    if (end.first_told == 0) end.first_told = error;
    return fail(error);
  }
  return over ? 0 : fail(EAGAIN);
}

uint32_t Kernel::room_of(const TcpEnd& end) const {
  return end.unsent.size() < plan_.send_buffer
             ? plan_.send_buffer - static_cast<uint32_t>(end.unsent.size())
             : 0;
}

uint32_t Kernel::take(TcpEnd& end, const msghdr& message) {
  uint32_t taken = 0;
  for (size_t i = 0; i < message.msg_iovlen; ++i) {
    const iovec& piece = message.msg_iov[i];
    auto n = static_cast<uint32_t>(std::min<size_t>(piece.iov_len, room_of(end)));
    if (n > 1 && fault(plan_.faults.partial)) n = static_cast<uint32_t>(prng().between(1, n));
    const auto* octets = static_cast<const uint8_t*>(piece.iov_base);
    end.unsent.insert(end.unsent.end(), octets, octets + n);
    taken += n;
    if (n < piece.iov_len) break;
  }
  return taken;
}

int Kernel::sendmmsg(int descriptor, mmsghdr* messages, uint32_t count, int flags) {
  Entry* entry = find_stream(descriptor, "sendmmsg");
  if (entry == nullptr) return fail(EBADF);
  TcpEnd& end = entry->link->ends[entry->end];
  if ((flags & MSG_NOSIGNAL) == 0 && misuse_.empty()) misuse_ = "sendmmsg() that may raise SIGPIPE";
  if (fault(plan_.faults.interrupted)) return fail(EINTR);
  if (fault(plan_.faults.no_memory)) return fail(prng().chance(0.5) ? ENOBUFS : ENOMEM);
  if (!end.dead && !end.mute && network_.may_break()) {
    if (fault(plan_.faults.fatal)) return broken_by_call(*entry);
    end.mute = fault(plan_.faults.mute);
    if (end.mute) network_.mark_broken(*entry->link);
  }
  int error = std::exchange(end.error, 0);
  if (error == 0 && (end.mute || end.dead || end.finished)) error = EPIPE;
  if (error != 0) {
    if (end.first_told == 0) end.first_told = error;
    return fail(error);
  }
  if (room_of(end) == 0 || fault(plan_.faults.again)) {
    end.starved = true;
    if (room_of(end) != 0) raise_later(descriptor, EPOLLOUT);
    return fail(EAGAIN);
  }
  int done = 0;
  for (bool whole = true; whole && done < static_cast<int>(count) && room_of(end) != 0; ++done) {
    const msghdr& message = messages[done].msg_hdr;
    size_t wanted = 0;
    for (size_t i = 0; i < message.msg_iovlen; ++i) wanted += message.msg_iov[i].iov_len;
    messages[done].msg_len = take(end, message);
    totals_.octets_out += messages[done].msg_len;
    whole = messages[done].msg_len == wanted;
    if (!whole) {
      end.starved = true;
      if (room_of(end) != 0) raise_later(descriptor, EPOLLOUT);
    }
  }
  ++totals_.writes;
  if (entry->end == 1 && plan_.late_receiver.count() != 0 && end.receives_from == base::Now{}) {
    const auto most = static_cast<uint64_t>(plan_.late_receiver.count());
    end.receives_from = network_.now() + base::Duration(static_cast<int64_t>(prng().below(most)));
  }
  network_.push(entry->link, entry->end);
  return done;
}

void Kernel::has_room(TcpEnd& end) {
  if (!end.starved || room_of(end) < plan_.send_buffer / 3) return;
  end.starved = false;
  raise(end.descriptor, EPOLLOUT);
}

// --- events ---

int Kernel::epoll_create1(int) {
  if (entries_.size() >= plan_.descriptors) return fail(EMFILE);
  Entry made;
  made.kind = Kind::Poller;
  return add(std::move(made));
}

uint32_t Kernel::state_of(const Entry& entry) const {
  if (entry.kind == Kind::Listener) return entry.backlog.empty() ? 0u : uint32_t{EPOLLIN};
  if (entry.kind != Kind::Stream) return 0;
  const TcpEnd& end = entry.link->ends[entry.end];
  if (!end.established && !end.dead) return 0;
  uint32_t state = 0;
  if ((!end.arrived.empty() && !end.untold) || end.peer_finished || end.dead) state |= EPOLLIN;
  if (end.peer_finished || end.dead) state |= EPOLLRDHUP;
  if (end.dead || room_of(end) >= plan_.send_buffer / 3) state |= EPOLLOUT;
  if (end.dead || (end.peer_finished && end.finished)) state |= EPOLLHUP;
  if (end.error != 0) state |= EPOLLERR;
  return state;
}

int Kernel::epoll_ctl(int, int operation, int descriptor, epoll_event* event) {
  Entry* entry = find(descriptor, "epoll_ctl");
  if (entry == nullptr) return fail(EBADF);
  if (operation == EPOLL_CTL_MOD && entry->watched) {
    entry->watch.interest = event->events;
    // What is so already is told anew.
    const bool is_edge = (event->events & EPOLLET) != 0;
    if (is_edge && (state_of(*entry) & event->events) != 0) raise(descriptor, event->events);
    return 0;
  }
  if (operation != EPOLL_CTL_ADD || entry->watched) return fail(EEXIST);
  if (entry->kind == Kind::Stream) {
    if (network_.may_break() && fault(plan_.faults.setup)) {
      network_.mark_broken(*entry->link);
      return fail(prng().chance(0.5) ? ENOMEM : ENOSPC);
    }
  } else if (fault(plan_.faults.setup)) {
    return fail(ENOSPC);
  }
  entry->watched = true;
  entry->watch = {event->events, event->data.u64, false, {}};
  if ((state_of(*entry) & (event->events | kAlways)) != 0) raise(descriptor, event->events);
  return 0;
}

void Kernel::raise(int descriptor, uint32_t events) {
  const auto found = entries_.find(descriptor);
  if (found == entries_.end() || !found->second.watched) return;
  Watch& watch = found->second.watch;
  if ((events & (watch.interest | kAlways)) == 0 || watch.pending) return;
  watch.pending = true;
  watch.visible = network_.now();
  if (fault(plan_.faults.late)) {
    watch.visible += base::Duration(static_cast<int64_t>(
        prng().below(static_cast<uint64_t>(plan_.faults.late_max.count()) + 1)));
  }
}

int Kernel::epoll_wait(int poller, epoll_event* events, int count, int timeout) {
  if (find(poller, "epoll_wait") == nullptr) return fail(EBADF);
  if (timeout != 0 && !may_sleep_ && misuse_.empty()) misuse_ = "epoll_wait() that waits";
  if (fault(plan_.faults.interrupted)) return fail(EINTR);
  int n = 0;
  for (auto& [number, entry] : entries_) {
    if (n == count) break;
    if (!entry.watched) continue;
    Watch& watch = entry.watch;
    uint32_t state = state_of(entry) & (watch.interest | kAlways);
    const bool edge = (watch.interest & EPOLLET) != 0;
    bool tell = !edge && state != 0;
    if (edge && watch.pending && watch.visible <= network_.now()) {
      watch.pending = false;
      tell = state != 0;
    } else if (edge && entry.kind == Kind::Stream && fault(plan_.faults.unasked)) {
      const TcpEnd& end = entry.link->ends[entry.end];
      state = prng().chance(0.5) ? EPOLLIN : EPOLLOUT;
      tell = end.established && !end.dead;  // of a handshake only the truth is told
    }
    if (!tell) continue;
    events[n].events = state;
    events[n].data.u64 = watch.word;
    ++n;
  }
  return n;
}

base::Now Kernel::next_event() {
  base::Now next = base::kNever;
  for (const auto& [number, entry] : entries_) {
    if (!entry.watched) continue;
    if (entry.kind == Kind::Listener && !entry.backlog.empty() && entry.watch.interest != 0) {
      return network_.now();
    }
    if (entry.watch.pending) next = base::earlier(next, entry.watch.visible);
  }
  return next;
}

}  // namespace rnic::simulation
