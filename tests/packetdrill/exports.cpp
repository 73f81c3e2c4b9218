// What packetdrill sees: packetdrill_interface_init() and the functions that it fills the table
// with.
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "packetdrill/adapter.hpp"
#include "packetdrill/interface_table.hpp"

namespace rnic::packetdrill {
namespace {

Adapter* g_current = nullptr;  // for getsockopt() below

Adapter& of(void* self) { return *static_cast<Adapter*>(self); }

/// -errno becomes -1 and errno.
template <typename T = int>
T result(Outcome outcome) {
  if (outcome >= 0) return static_cast<T>(outcome);
  errno = static_cast<int>(-outcome);
  return -1;
}

template <typename Call>
Outcome at_once(void* self, Call call) {
  Adapter& adapter = of(self);
  return adapter.call([&]() -> Attempt { return call(adapter.sockets()); }, false);
}

int unsupported() { return result(-ENOSYS); }

ssize_t read_octets(void* self, int fd, base::ByteSpan out, int flags) {
  if (out.data() == nullptr && !out.empty()) return result(-EFAULT);
  Adapter& adapter = of(self);
  const bool nonblocking = (flags & MSG_DONTWAIT) != 0 || adapter.nonblocking(fd);
  return result<ssize_t>(adapter.call(
      [&]() -> Attempt { return adapter.sockets().read(fd, out, flags); }, nonblocking));
}

ssize_t write_octets(void* self, int fd, base::ByteView octets, int flags) {
  if (octets.data() == nullptr && !octets.empty()) return result(-EFAULT);
  Adapter& adapter = of(self);
  const bool nonblocking = (flags & MSG_DONTWAIT) != 0 || adapter.nonblocking(fd);
  size_t done = 0;
  const Outcome outcome = adapter.call(
      [&]() -> Attempt { return adapter.sockets().write(fd, octets, flags, done); }, nonblocking);
  if (outcome == -EAGAIN && done != 0) return static_cast<ssize_t>(done);
  return result<ssize_t>(outcome);
}

std::vector<uint8_t> gather(const iovec* parts, size_t count) {
  std::vector<uint8_t> octets;
  for (size_t i = 0; i < count; ++i) {
    const auto* begin = static_cast<const uint8_t*>(parts[i].iov_base);
    octets.insert(octets.end(), begin, begin + parts[i].iov_len);
  }
  return octets;
}

ssize_t read_parts(void* self, int fd, const iovec* parts, size_t count, int flags) {
  size_t room = 0;
  for (size_t i = 0; i < count; ++i) room += parts[i].iov_len;
  std::vector<uint8_t> octets(room);
  const ssize_t got = read_octets(self, fd, octets, flags);
  size_t at = 0;
  for (size_t i = 0; i < count && got > 0 && at < static_cast<size_t>(got); ++i) {
    const size_t n = std::min(parts[i].iov_len, static_cast<size_t>(got) - at);
    std::memcpy(parts[i].iov_base, octets.data() + at, n);
    at += n;
  }
  return got;
}

base::ByteView view(const void* octets, size_t count) {
  return {static_cast<const uint8_t*>(octets), count};
}
base::ByteSpan span(void* octets, size_t count) { return {static_cast<uint8_t*>(octets), count}; }

int do_accept(void* self, int fd, sockaddr* address, socklen_t* length) {
  Adapter& adapter = of(self);
  return result(
      adapter.call([&]() -> Attempt { return adapter.sockets().accept(fd, address, length); },
                   adapter.nonblocking(fd)));
}

int do_connect(void* self, int fd, const sockaddr* address, socklen_t length) {
  Adapter& adapter = of(self);
  const Outcome started = at_once(self, [&](Sockets& s) { return s.connect(fd, address, length); });
  if (started < 0) return result(started);
  const Outcome outcome = adapter.call(
      [&]() -> Attempt { return adapter.sockets().connect_result(fd); }, adapter.nonblocking(fd));
  return result(outcome == -EAGAIN ? -EINPROGRESS : outcome);
}

int do_poll(void* self, pollfd* fds, nfds_t count, int timeout) {
  Adapter& adapter = of(self);
  const auto patience =
      timeout < 0 ? base::Duration::max() : base::Duration(std::chrono::milliseconds(timeout));
  return result(adapter.call([&]() -> Attempt { return adapter.sockets().poll(fds, count); }, false,
                             patience));
}

int do_fcntl(void* self, int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  const long argument = va_arg(arguments, long);
  va_end(arguments);
  return result(at_once(self, [&](Sockets& s) { return s.control(fd, command, argument); }));
}

int do_ioctl(void* self, int fd, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  int* value = va_arg(arguments, int*);
  va_end(arguments);
  return result(at_once(self, [&](Sockets& s) { return s.input_control(fd, request, value); }));
}

int do_netdev_receive(void* self, void* buffer, size_t* count, long long* time_usecs) {
  const auto packet = of(self).extract();
  if (!packet) {
    *count = 0;  // nothing will ever come: a packet of no octets ends the script
    return 0;
  }
  *count = std::min(*count, packet->octets.size());
  std::memcpy(buffer, packet->octets.data(), *count);
  *time_usecs = base::nanos(packet->at) / 1000;
  return 0;
}

int do_gettimeofday(void* self, timeval* time, struct timezone*) {
  const int64_t micros = base::nanos(of(self).read_clock()) / 1000;
  *time = {.tv_sec = micros / 1000000, .tv_usec = micros % 1000000};
  return 0;
}

void fill_socket_calls(InterfaceTable& t) {
  t.socket = [](void* self, int domain, int type, int protocol) {
    return result(at_once(self, [&](Sockets& s) { return s.open(domain, type, protocol); }));
  };
  t.bind = [](void* self, int fd, const sockaddr* address, socklen_t length) {
    return result(at_once(self, [&](Sockets& s) { return s.bind(fd, address, length); }));
  };
  t.listen = [](void* self, int fd, int backlog) {
    return result(at_once(self, [&](Sockets& s) { return s.listen(fd, backlog); }));
  };
  t.accept = do_accept;
  t.connect = do_connect;
  t.close = [](void* self, int fd) {
    return result(at_once(self, [&](Sockets& s) { return s.close(fd); }));
  };
  t.shutdown = [](void* self, int fd, int how) {
    return result(at_once(self, [&](Sockets& s) { return s.shutdown(fd, how); }));
  };
  t.getsockopt = [](void* self, int fd, int level, int name, void* value, socklen_t* length) {
    return result(
        at_once(self, [&](Sockets& s) { return s.get_option(fd, level, name, value, length); }));
  };
  t.setsockopt = [](void* self, int fd, int level, int name, const void* value, socklen_t length) {
    return result(
        at_once(self, [&](Sockets& s) { return s.set_option(fd, level, name, value, length); }));
  };
  t.fcntl = do_fcntl;
  t.ioctl = do_ioctl;
  t.poll = do_poll;
}

void fill_transfer_calls(InterfaceTable& t) {
  t.read = [](void* self, int fd, void* buffer, size_t count) {
    return read_octets(self, fd, span(buffer, count), 0);
  };
  t.recv = [](void* self, int fd, void* buffer, size_t count, int flags) {
    return read_octets(self, fd, span(buffer, count), flags);
  };
  t.recvfrom = [](void* self, int fd, void* buffer, size_t count, int flags, sockaddr*,
                  socklen_t* length) {
    if (length != nullptr) *length = 0;
    return read_octets(self, fd, span(buffer, count), flags);
  };
  t.readv = [](void* self, int fd, const iovec* parts, int count) {
    return read_parts(self, fd, parts, static_cast<size_t>(count), 0);
  };
  t.recvmsg = [](void* self, int fd, msghdr* message, int flags) {
    message->msg_controllen = 0;
    message->msg_flags = 0;
    return read_parts(self, fd, message->msg_iov, message->msg_iovlen, flags);
  };
  t.write = [](void* self, int fd, const void* buffer, size_t count) {
    return write_octets(self, fd, view(buffer, count), 0);
  };
  t.send = [](void* self, int fd, const void* buffer, size_t count, int flags) {
    return write_octets(self, fd, view(buffer, count), flags);
  };
  t.sendto = [](void* self, int fd, const void* buffer, size_t count, int flags, const sockaddr*,
                socklen_t) { return write_octets(self, fd, view(buffer, count), flags); };
  t.writev = [](void* self, int fd, const iovec* parts, int count) {
    return write_octets(self, fd, gather(parts, static_cast<size_t>(count)), 0);
  };
  t.sendmsg = [](void* self, int fd, const msghdr* message, int flags) {
    return write_octets(self, fd, gather(message->msg_iov, message->msg_iovlen), flags);
  };
}

void fill_world_calls(InterfaceTable& t) {
  t.netdev_send = [](void* self, const void* packet, size_t count) {
    return of(self).inject(view(packet, count)) ? 0 : -1;
  };
  t.netdev_receive = do_netdev_receive;
  t.usleep = [](void* self, useconds_t time) {
    of(self).sleep(std::chrono::microseconds(time));
    return 0;
  };
  t.gettimeofday = do_gettimeofday;
  t.epoll_create = [](void*, int) { return unsupported(); };
  t.epoll_ctl = [](void*, int, int, int, epoll_event*) { return unsupported(); };
  t.epoll_wait = [](void*, int, epoll_event*, int, int) { return unsupported(); };
  t.pipe = [](void*, int*) { return unsupported(); };
  t.splice = [](void*, int, loff_t*, int, loff_t*, size_t, unsigned) { return unsupported(); };
}

}  // namespace
}  // namespace rnic::packetdrill

extern "C" [[gnu::visibility("default")]] void packetdrill_interface_init(
    const char* flags, rnic::packetdrill::InterfaceTable* table) {
  namespace pd = rnic::packetdrill;
  const auto setup = pd::parse_setup(flags != nullptr ? flags : "");
  if (!setup) {
    std::fprintf(stderr, "%s\n", setup.error().message.c_str());
    std::exit(2);
  }
  auto* adapter = new pd::Adapter(*setup);
  pd::g_current = adapter;
  table->self = adapter;
  table->free = [](void* self) {
    if (pd::g_current == self) pd::g_current = nullptr;
    delete static_cast<pd::Adapter*>(self);
  };
  pd::fill_socket_calls(*table);
  pd::fill_transfer_calls(*table);
  pd::fill_world_calls(*table);
}

/// packetdrill reads TCP_INFO for the assertions of a script past its own table, from the C
/// library. Preloaded, this one comes first; descriptors that are not ours go to the kernel.
extern "C" [[gnu::visibility("default")]] int getsockopt(int fd, int level, int name, void* value,
                                                         socklen_t* length) {
  namespace pd = rnic::packetdrill;
  if (pd::g_current != nullptr && pd::g_current->owns(fd)) {
    return pd::result(pd::at_once(pd::g_current, [&](pd::Sockets& s) {
      return s.get_option(fd, level, name, value, length);
    }));
  }
  return static_cast<int>(syscall(SYS_getsockopt, fd, level, name, value, length));
}
