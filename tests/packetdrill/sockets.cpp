#include "packetdrill/sockets.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/endian.hpp"

namespace rnic::packetdrill {

namespace {

// Corked octets go out after this long (tcp(7), TCP_CORK).
constexpr base::Duration kHoldTime = std::chrono::milliseconds(200);

std::optional<Endpoint> endpoint_of(const sockaddr* address, socklen_t length) {
  if (address == nullptr) return std::nullopt;
  if (address->sa_family == AF_INET && length >= sizeof(sockaddr_in)) {
    sockaddr_in in{};
    std::memcpy(&in, address, sizeof in);
    return Endpoint{IpAddress::v4(ntohl(in.sin_addr.s_addr)), ntohs(in.sin_port)};
  }
  if (address->sa_family == AF_INET6 && length >= sizeof(sockaddr_in6)) {
    sockaddr_in6 in{};
    std::memcpy(&in, address, sizeof in);
    const uint8_t* octets = in.sin6_addr.s6_addr;
    return Endpoint{{base::load_be64(octets), base::load_be64(octets + 8)}, ntohs(in.sin6_port)};
  }
  return std::nullopt;
}

void put_endpoint(int family, const Endpoint& end, sockaddr* address, socklen_t* length) {
  if (address == nullptr || length == nullptr) return;
  if (family == AF_INET) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(end.port);
    in.sin_addr.s_addr = htonl(end.address.as_v4());
    std::memcpy(address, &in, std::min<size_t>(*length, sizeof in));
    *length = sizeof in;
    return;
  }
  sockaddr_in6 in{};
  in.sin6_family = AF_INET6;
  in.sin6_port = htons(end.port);
  base::store_be64(in.sin6_addr.s6_addr, end.address.high());
  base::store_be64(in.sin6_addr.s6_addr + 8, end.address.low());
  std::memcpy(address, &in, std::min<size_t>(*length, sizeof in));
  *length = sizeof in;
}

int errno_of(StreamEnd how) {
  switch (how) {
    case StreamEnd::Closed: return 0;
    case StreamEnd::PeerReset: return ECONNRESET;
    case StreamEnd::TimedOut: return ETIMEDOUT;
    case StreamEnd::Refused: return ECONNREFUSED;
    case StreamEnd::Unreachable: return EHOSTUNREACH;
    case StreamEnd::Aborted: return 0;
  }
  return EIO;
}

int errno_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::AlreadyExists: return EADDRINUSE;
    case ErrorCode::ResourceExhausted: return EADDRNOTAVAIL;
    case ErrorCode::Unreachable: return ENETUNREACH;
    default: return EINVAL;
  }
}

std::unique_ptr<SocketStream> new_stream(const Setup& setup) {
  const uint32_t ring = std::max({setup.send_buffer, setup.receive_buffer, kLargestBuffer});
  auto stream = std::make_unique<SocketStream>(ring);
  stream->send_limit = setup.send_buffer;
  stream->receive_limit = setup.receive_buffer;
  return stream;
}

}  // namespace

llp::StreamUser* Socket::accept(llp::Stream& from, const Endpoint& local_end,
                                const Endpoint& remote_end, base::Now) {
  if (accepted.size() > backlog) return nullptr;
  auto socket = std::make_unique<Socket>();
  socket->setup = setup;
  socket->family = family;
  socket->local = local_end;
  socket->remote = remote_end;
  socket->bound = true;
  socket->maxseg = maxseg;
  socket->options = options;
  socket->options_set = options_set;
  socket->user_timeout_set = user_timeout_set;
  socket->connect_told = true;
  socket->stream = new_stream(*setup);
  socket->stream->send_limit = stream->send_limit;
  socket->stream->receive_limit = stream->receive_limit;
  socket->stream->attach(from);
  accepted.push_back(std::move(socket));
  return accepted.back()->stream.get();
}

Sockets::Sockets(const Setup& setup, Host& host) : setup_(setup), host_(host) {
  host_.user_deadline = [this] { return next_deadline(); };
  host_.on_user_timer = [this] { on_timers(); };
  host_.on_elapse = [this](base::Now from, base::Now to) { account(from, to); };
}

Sockets::~Sockets() {
  host_.on_elapse = nullptr;
  host_.user_deadline = nullptr;
  host_.on_user_timer = nullptr;
  for (const auto& [fd, socket] : table_) ::close(fd);
}

Socket* Sockets::find(int fd) {
  const auto found = table_.find(fd);
  return found == table_.end() ? nullptr : found->second.get();
}

bool Sockets::nonblocking(int fd) const {
  const auto found = table_.find(fd);
  return found != table_.end() && found->second->nonblocking;
}

int Sockets::add(std::unique_ptr<Socket> socket) {
  // A descriptor of the kernel's stands for it: packetdrill closes what is left at the end itself.
  const int fd = eventfd(0, EFD_CLOEXEC);
  if (fd < 0) return -errno;
  socket->fd = fd;
  table_[fd] = std::move(socket);
  return fd;
}

Outcome Sockets::open(int domain, int type, int protocol) {
  if (domain != AF_INET && domain != AF_INET6) return -EAFNOSUPPORT;
  const int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (kind != SOCK_STREAM || (protocol != 0 && protocol != IPPROTO_TCP)) return -EPROTONOSUPPORT;
  auto socket = std::make_unique<Socket>();
  socket->setup = &setup_;
  socket->family = domain;
  socket->local.address = setup_.local;
  socket->options = host_.stack().default_options();
  socket->nonblocking = (type & SOCK_NONBLOCK) != 0;
  socket->stream = new_stream(setup_);
  return add(std::move(socket));
}

Outcome Sockets::bind(int fd, const sockaddr* address, socklen_t length) {
  Socket* socket = find(fd);
  if (socket == nullptr) return -EBADF;
  const auto end = endpoint_of(address, length);
  if (!end || socket->bound) return -EINVAL;
  socket->local = *end;
  socket->bound = true;
  return 0;
}

Outcome Sockets::listen(int fd, int backlog) {
  Socket* socket = find(fd);
  if (socket == nullptr) return -EBADF;
  if (socket->connecting || !socket->bound) return -EINVAL;
  socket->backlog = static_cast<uint32_t>(std::max(backlog, 0));
  if (socket->listening) return 0;
  const auto listened = host_.stack().listen(socket->local, *socket, socket->options);
  if (!listened) return -errno_of(listened.error());
  socket->listening = true;
  return 0;
}

Attempt Sockets::accept(int fd, sockaddr* address, socklen_t* length) {
  Socket* socket = find(fd);
  if (socket == nullptr) return -EBADF;
  if (!socket->listening) return -EINVAL;
  if (socket->accepted.empty()) return std::nullopt;
  auto next = std::move(socket->accepted.front());
  socket->accepted.pop_front();
  (void)apply_options(*next);  // they may have been set after listen()
  put_endpoint(socket->family, next->remote, address, length);
  return add(std::move(next));
}

Outcome Sockets::connect(int fd, const sockaddr* address, socklen_t length) {
  Socket* socket = find(fd);
  if (socket == nullptr) return -EBADF;
  if (socket->connecting && socket->stream->is_established()) {
    if (!socket->connect_told) {
      socket->connect_told = true;
      return 0;
    }
    return -EISCONN;
  }
  if (socket->connecting && socket->error == 0 && !socket->end_noted) return -EALREADY;
  const auto end = endpoint_of(address, length);
  if (!end || socket->listening) return -EINVAL;
  socket->remote = *end;
  const auto stream =
      host_.stack().connect(socket->local, *end, *socket->stream, socket->options, host_.now());
  if (!stream) return -errno_of(stream.error());
  socket->local = (*stream)->local();
  socket->stream->attach(**stream);
  socket->connecting = true;
  host_.settle();
  return 0;
}

Attempt Sockets::connect_result(int fd) {
  Socket* socket = find(fd);
  if (socket == nullptr) return -EBADF;
  if (socket->stream->is_established()) {
    socket->connect_told = true;
    return 0;
  }
  note_end(*socket);
  if (socket->error == 0) return std::nullopt;
  return -std::exchange(socket->error, 0);
}

void Sockets::note_end(Socket& socket) {
  if (socket.end_noted || !socket.stream || !socket.stream->how_ended()) return;
  socket.end_noted = true;
  socket.error = errno_of(*socket.stream->how_ended());
  // As Linux has it: who could still have written, but not read, learns of it by the write.
  const SocketStream& stream = *socket.stream;
  if (socket.error == ECONNRESET && stream.peer_has_finished() && !stream.is_closing()) {
    socket.error = EPIPE;
  }
}

void Sockets::note_ends() {
  for (auto& [fd, socket] : table_) note_end(*socket);
  watch_held();
  std::erase_if(orphans_,
                [](const auto& socket) { return socket->stream->how_ended().has_value(); });
}

Attempt Sockets::read(int fd, base::ByteSpan out, int flags) {
  Socket* socket = find(fd);
  if (socket == nullptr) return -EBADF;
  SocketStream& stream = *socket->stream;
  if (socket->listening || (!socket->connecting && !socket->connect_told)) return -ENOTCONN;
  note_end(*socket);
  if (stream.readable() != 0 && !out.empty()) {
    const uint32_t n = (flags & MSG_PEEK) != 0 ? stream.peek(out) : stream.read(out);
    host_.settle();
    return n;
  }
  if (out.empty()) return 0;
  if (socket->error != 0) return -std::exchange(socket->error, 0);
  if (socket->shut_read || stream.peer_has_finished() || stream.how_ended()) return 0;
  return std::nullopt;
}

Attempt Sockets::write(int fd, base::ByteView octets, int flags, size_t& done) {
  Socket* socket = find(fd);
  if (socket == nullptr) return -EBADF;
  SocketStream& stream = *socket->stream;
  note_end(*socket);
  if (socket->error != 0 && done == 0) return -std::exchange(socket->error, 0);
  if (stream.is_closing() || stream.how_ended()) {
    return done != 0 ? Outcome(done) : Outcome(-EPIPE);
  }
  if (!socket->connecting && !socket->connect_told) return -EPIPE;
  if (!stream.is_established()) return std::nullopt;
  const bool was_corked = stream.corked;
  if ((flags & MSG_MORE) != 0) stream.corked = true;
  if (!socket->no_space || stream.has_room()) {
    done += stream.enqueue(octets.subspan(done), (flags & MSG_EOR) != 0, (flags & MSG_MORE) != 0);
  }
  socket->no_space = done < octets.size();
  host_.settle();
  if ((flags & MSG_MORE) != 0) stream.corked = was_corked;
  if (done == octets.size()) return Outcome(done);
  return std::nullopt;
}

void Sockets::keep_half(Socket& socket) {
  socket.options.half_close = true;
  socket.options_set = true;
  apply_options(socket);
}

void Sockets::refuse_octets(Socket& socket) {
  socket.options.half_close = false;
  socket.options.half_duplex_close = true;
  socket.options_set = true;
  apply_options(socket);
}

Outcome Sockets::apply_options(Socket& socket) {
  llp::Stream* stream = socket.stream->stream();
  if (!socket.options_set || stream == nullptr) return 0;
  return host_.stack().set_options(*stream, socket.options, host_.now()) ? 0 : -EINVAL;
}

short Sockets::events_of(Socket& socket) const {
  const SocketStream& stream = *socket.stream;
  short events = 0;
  if (socket.listening) return socket.accepted.empty() ? 0 : short{POLLIN | POLLRDNORM};
  const bool ended = stream.how_ended().has_value();
  if (stream.readable() != 0 || stream.peer_has_finished() || ended || socket.shut_read) {
    events |= POLLIN | POLLRDNORM;
  }
  if (stream.peer_has_finished() || socket.shut_read || ended) events |= POLLRDHUP;
  if (ended || (stream.is_closing() && (stream.peer_has_finished() || socket.shut_read))) {
    events |= POLLHUP;
  }
  if ((stream.is_established() && (stream.is_closing() || stream.has_room())) || ended) {
    events |= POLLOUT | POLLWRNORM;
  }
  if (socket.error != 0) events |= POLLERR;
  if (!socket.connecting && !socket.connect_told) events |= POLLOUT | POLLHUP;
  return events;
}

Attempt Sockets::poll(pollfd* fds, nfds_t count) {
  Outcome ready = 0;
  for (nfds_t i = 0; i < count; ++i) {
    Socket* socket = find(fds[i].fd);
    if (socket == nullptr) {
      fds[i].revents = POLLNVAL;
    } else {
      note_end(*socket);
      fds[i].revents =
          static_cast<short>(events_of(*socket) & (fds[i].events | POLLERR | POLLHUP | POLLNVAL));
    }
    if (fds[i].revents != 0) ++ready;
  }
  if (ready == 0) return std::nullopt;
  return ready;
}

Outcome Sockets::shutdown(int fd, int how) {
  Socket* socket = find(fd);
  if (socket == nullptr) return -EBADF;
  if (how < SHUT_RD || how > SHUT_RDWR) return -EINVAL;
  SocketStream& stream = *socket->stream;
  if ((!socket->connecting && !socket->connect_told) || stream.how_ended()) return -ENOTCONN;
  if (how != SHUT_WR) socket->shut_read = true;
  if (how != SHUT_RD) {
    // As the streams of rnic::Device: the program decides how long its half lives.
    if (!socket->shut_read) keep_half(*socket);
    stream.finish();
  }
  if (socket->shut_read && stream.is_closing()) refuse_octets(*socket);
  host_.settle();
  return 0;
}

Outcome Sockets::close(int fd) {
  Socket* found = find(fd);
  if (found == nullptr) return -EBADF;
  auto socket = std::move(table_[fd]);
  table_.erase(fd);
  ::close(fd);
  if (socket->listening) {
    (void)host_.stack().unlisten(socket->local);
    for (auto& waiting : socket->accepted) {
      waiting->stream->abort();
      orphans_.push_back(std::move(waiting));
    }
    socket->accepted.clear();
  }
  SocketStream& stream = *socket->stream;
  if (stream.stream() != nullptr) {
    // RFC 9293 s.3.6.1 (MUST-13), RFC 2525 s.2.17: octets that nobody read are told of by RST.
    refuse_octets(*socket);
    if (socket->linger && socket->linger_seconds == 0) {
      stream.abort();
    } else {
      stream.finish();
    }
    orphans_.push_back(std::move(socket));
  }
  host_.settle();
  return 0;
}

Outcome Sockets::control(int fd, int command, long argument) {
  Socket* socket = find(fd);
  if (socket == nullptr) return -EBADF;
  switch (command) {
    case F_GETFL: return O_RDWR | (socket->nonblocking ? O_NONBLOCK : 0);
    case F_SETFL: socket->nonblocking = (argument & O_NONBLOCK) != 0; return 0;
    case F_GETFD:
    case F_SETFD: return 0;
    default: return -EINVAL;
  }
}

Outcome Sockets::input_control(int fd, unsigned long request, int* value) {
  Socket* socket = find(fd);
  if (socket == nullptr) return -EBADF;
  if (value == nullptr) return -EFAULT;
  const SocketStream& stream = *socket->stream;
  switch (request) {
    case FIONREAD: *value = static_cast<int>(stream.readable()); return 0;
    case SIOCOUTQ: *value = static_cast<int>(stream.queued()); return 0;
    case SIOCOUTQNSD: *value = static_cast<int>(stream.unsent()); return 0;
    case FIONBIO: socket->nonblocking = *value != 0; return 0;
    default: return -ENOTTY;
  }
}

base::Now Sockets::next_deadline() const {
  base::Now first = base::kNever;
  for (const auto& [fd, socket] : table_) first = base::earlier(first, socket->push_at);
  return first;
}

void Sockets::on_timers() {
  for (const auto& [fd, socket] : table_) {
    if (socket->push_at > host_.now()) continue;
    socket->push_at = base::kNever;
    socket->stream->push();
  }
}

void Sockets::watch_held() {
  for (const auto& [fd, socket] : table_) {
    if (!socket->stream->is_held()) {
      socket->push_at = base::kNever;
    } else if (socket->push_at == base::kNever) {
      const auto info = host_.stack().info(*socket->stream->stream(), host_.now());
      socket->push_at = host_.now() + kHoldTime + (info ? info->srtt : base::Duration(0));
    }
  }
}

void Sockets::account(base::Now from, base::Now to) {
  const base::Duration passed = to - from;
  for (auto& [fd, socket] : table_) {
    SocketStream& stream = *socket->stream;
    if (stream.stream() == nullptr || !stream.is_established()) continue;
    if (stream.queued() == 0) continue;
    socket->holdups.busy += passed;
    const auto info = host_.stack().info(*stream.stream(), host_.now());
    if (!info) continue;
    const uint64_t flight = info->snd_nxt - info->snd_una;
    const uint64_t usable = info->snd_wnd > flight ? info->snd_wnd - flight : 0;
    const uint64_t waiting = stream.queued() - std::min<uint64_t>(flight, stream.queued());
    const uint64_t wanted = std::min<uint64_t>(info->emss, waiting);
    if (waiting != 0 && usable < wanted && info->pipe + wanted <= info->cwnd) {
      socket->holdups.by_peer_window += passed;
    } else if (stream.unsent() == 0 && socket->no_space) {
      socket->holdups.by_send_buffer += passed;
    }
  }
}

}  // namespace rnic::packetdrill
