// The options of a socket, in their own translation unit: the kernel's and the C library's headers
// of TCP do not go together.
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "packetdrill/linux_tcp_info.hpp"
#include "packetdrill/sockets.hpp"

namespace rnic::packetdrill {

namespace {

// Of Linux's user interface; the C library does not name all of them.
constexpr int kTcpCcInfo = 26;
constexpr int kSoMemInfo = 55;
constexpr uint32_t kIpAndTcpHeader = 40;
constexpr uint32_t kIpv6AndTcpHeader = 60;
constexpr uint32_t kSmallestBuffer = 2048;

Outcome put_int(int number, void* value, socklen_t* length) {
  if (value == nullptr || length == nullptr) return -EFAULT;
  std::memcpy(value, &number, std::min<size_t>(*length, sizeof number));
  *length = std::min<socklen_t>(*length, sizeof number);
  return 0;
}

Outcome put_zeros(void* value, const socklen_t* length) {
  if (value == nullptr || length == nullptr) return -EFAULT;
  std::memset(value, 0, *length);
  return 0;
}

Outcome put_text(const std::string& text, void* value, socklen_t* length) {
  if (value == nullptr || length == nullptr) return -EFAULT;
  std::memset(value, 0, *length);
  std::memcpy(value, text.data(), std::min<size_t>(*length, text.size()));
  return 0;
}

std::optional<int> int_of(const void* value, socklen_t length) {
  int number = 0;
  if (value == nullptr || length < sizeof number) return std::nullopt;
  std::memcpy(&number, value, sizeof number);
  return number;
}

template <typename Unit>
int whole(base::Duration time) {
  return static_cast<int>(std::chrono::duration_cast<Unit>(time).count());
}

std::optional<CongestionControl> congestion_control_of(const std::string& name) {
  using Kind = CongestionControl;
  if (name == "reno") return Kind::NewReno;
  if (name == "cubic") return Kind::Cubic;
  if (name == "dctcp") return Kind::Dctcp;
  return std::nullopt;
}

std::string name_of(CongestionControl kind) {
  switch (kind) {
    case CongestionControl::NewReno: return "reno";
    case CongestionControl::Cubic: return "cubic";
    case CongestionControl::Dctcp: return "dctcp";
  }
  return "";
}

}  // namespace

Outcome Sockets::fill_info(Socket& socket, void* value, socklen_t* length) {
  if (value == nullptr || length == nullptr) return -EFAULT;
  tcp::ConnectionInfo info;
  if (socket.listening) info.state = tcp::State::Listen;
  if (llp::Stream* stream = socket.stream->stream()) {
    if (const auto found = host_.stack().info(*stream, host_.now())) info = *found;
  }
  const bool v4 = socket.local.address.is_v4();
  const uint32_t mss = host_.mtu - (v4 ? kIpAndTcpHeader : kIpv6AndTcpHeader);
  fill_linux_tcp_info(info,
                      {.stream = socket.stream.get(),
                       .holdups = socket.holdups,
                       .now = host_.now(),
                       .advertised_mss = mss},
                      value, *length);
  return 0;
}

Outcome Sockets::get_tcp_option(Socket& socket, int name, void* value, socklen_t* length) {
  llp::Stream* stream = socket.stream->stream();
  switch (name) {
    case TCP_INFO: return fill_info(socket, value, length);
    case kTcpCcInfo: return put_zeros(value, length);
    case TCP_NODELAY: return put_int(socket.options.nagle ? 0 : 1, value, length);
    case TCP_CORK: return put_int(socket.stream->corked ? 1 : 0, value, length);
    case TCP_MAXSEG:
      if (stream != nullptr && socket.stream->is_established()) {
        return put_int(static_cast<int>(stream->emss()), value, length);
      }
      return put_int(socket.maxseg != 0 ? socket.maxseg : 536, value, length);
    case TCP_USER_TIMEOUT:
      return put_int(
          static_cast<int>(whole<std::chrono::milliseconds>(
              socket.user_timeout_set ? socket.options.user_timeout : base::Duration(0))),
          value, length);
    case TCP_KEEPIDLE:
      return put_int(whole<std::chrono::seconds>(socket.options.keep_alive_idle), value, length);
    case TCP_KEEPINTVL:
      return put_int(whole<std::chrono::seconds>(socket.options.keep_alive_interval), value,
                     length);
    case TCP_KEEPCNT:
      return put_int(static_cast<int>(socket.options.keep_alive_count), value, length);
    case TCP_CONGESTION: return put_text(name_of(socket.options.congestion_control), value, length);
    default: return -ENOPROTOOPT;
  }
}

Outcome Sockets::get_option(int fd, int level, int name, void* value, socklen_t* length) {
  Socket* socket = find(fd);
  if (socket == nullptr) return -EBADF;
  note_end(*socket);
  if (level == IPPROTO_TCP) return get_tcp_option(*socket, name, value, length);
  if (level == IPPROTO_IP && name == IP_TOS) return put_int(host_.tos, value, length);
  if (level != SOL_SOCKET) return -ENOPROTOOPT;
  switch (name) {
    case SO_ERROR: return put_int(std::exchange(socket->error, 0), value, length);
    case SO_TYPE: return put_int(SOCK_STREAM, value, length);
    case SO_SNDBUF: return put_int(static_cast<int>(socket->stream->send_limit), value, length);
    case SO_RCVBUF: return put_int(static_cast<int>(socket->stream->receive_limit), value, length);
    case SO_ACCEPTCONN: return put_int(socket->listening ? 1 : 0, value, length);
    case SO_REUSEADDR: return put_int(1, value, length);
    case kSoMemInfo: return put_zeros(value, length);
    default: return -ENOPROTOOPT;
  }
}

Outcome Sockets::set_tcp_option(Socket& socket, int name, const void* value, socklen_t length) {
  if (name == TCP_CONGESTION) {
    const std::string wanted(static_cast<const char*>(value),
                             strnlen(static_cast<const char*>(value), length));
    const auto kind = congestion_control_of(wanted);
    if (!kind) return -ENOENT;
    socket.options.congestion_control = *kind;
    socket.options_set = true;
    return apply_options(socket);
  }
  const auto number = int_of(value, length);
  if (!number) return -EINVAL;
  switch (name) {
    case TCP_NODELAY:
      socket.options.nagle = *number == 0;
      socket.options_set = true;
      if (*number != 0) socket.stream->push();
      apply_options(socket);
      break;
    case TCP_CORK:
      socket.stream->corked = *number != 0;
      if (*number == 0) socket.stream->push();
      break;
    case TCP_MAXSEG: {
      if (*number < 88 || *number > 32767) return -EINVAL;
      socket.maxseg = *number;
      // One path, one size: the segments of every connection get smaller.
      const uint32_t headers = socket.family == AF_INET ? kIpAndTcpHeader : kIpv6AndTcpHeader;
      host_.mtu = std::min(setup_.mtu, static_cast<uint32_t>(*number) + headers);
      break;
    }
    case TCP_USER_TIMEOUT:
    case TCP_KEEPIDLE:
    case TCP_KEEPINTVL:
    case TCP_KEEPCNT: return set_timing_option(socket, name, *number);
    case TCP_QUICKACK: break;
    default: return -ENOPROTOOPT;
  }
  host_.settle();
  return 0;
}

Outcome Sockets::set_timing_option(Socket& socket, int name, int number) {
  if (number < (name == TCP_USER_TIMEOUT ? 0 : 1)) return -EINVAL;
  tcp::ConnectionOptions& options = socket.options;
  switch (name) {
    case TCP_KEEPIDLE: options.keep_alive_idle = std::chrono::seconds(number); break;
    case TCP_KEEPINTVL: options.keep_alive_interval = std::chrono::seconds(number); break;
    case TCP_KEEPCNT: options.keep_alive_count = static_cast<uint32_t>(number); break;
    default:
      socket.user_timeout_set = number != 0;
      options.user_timeout = number != 0 ? std::chrono::milliseconds(number)
                                         : host_.stack().default_options().user_timeout;
  }
  socket.options_set = true;
  return apply_options(socket);
}

Outcome Sockets::set_socket_option(Socket& socket, int name, const void* value, socklen_t length) {
  if (name == SO_LINGER) {
    linger wanted{};
    if (value == nullptr || length < sizeof wanted) return -EINVAL;
    std::memcpy(&wanted, value, sizeof wanted);
    socket.linger = wanted.l_onoff != 0;
    socket.linger_seconds = wanted.l_linger;
    return 0;
  }
  const auto number = int_of(value, length);
  if (!number) return -EINVAL;
  // Linux doubles what it is given: half of it is for its own bookkeeping.
  const uint32_t doubled = std::max(static_cast<uint32_t>(*number) * 2, kSmallestBuffer);
  switch (name) {
    case SO_SNDBUF:
      socket.stream->send_limit = std::min(doubled, socket.stream->ring_octets());
      return 0;
    case SO_RCVBUF:
      socket.stream->receive_limit = std::min(doubled, socket.stream->ring_octets());
      return 0;
    case SO_KEEPALIVE:
      socket.options.keep_alive = *number != 0;
      socket.options_set = true;
      return apply_options(socket);
    case SO_REUSEADDR:
    case SO_REUSEPORT: return 0;
    default: return -ENOPROTOOPT;
  }
}

Outcome Sockets::set_option(int fd, int level, int name, const void* value, socklen_t length) {
  Socket* socket = find(fd);
  if (socket == nullptr) return -EBADF;
  if (value == nullptr) return -EFAULT;
  if (level == IPPROTO_TCP) return set_tcp_option(*socket, name, value, length);
  if (level == SOL_SOCKET) return set_socket_option(*socket, name, value, length);
  if (level == IPPROTO_IP && length >= 1) {
    const uint8_t first = *static_cast<const uint8_t*>(value);
    if (name == IP_TOS) host_.tos = static_cast<uint8_t>(first & ~3u);
    if (name == IP_TOS || name == IP_MTU_DISCOVER || name == IP_TTL) return 0;
  }
  return -ENOPROTOOPT;
}

}  // namespace rnic::packetdrill
