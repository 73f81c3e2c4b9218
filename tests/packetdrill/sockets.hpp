/// \file
/// A table of sockets over one Host, with the errors that Linux gives. No call blocks: what cannot
/// be done yet is nullopt, and is tried again when something happened.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "packetdrill/host.hpp"
#include "packetdrill/socket_stream.hpp"

namespace rnic::packetdrill {

/// A call's value, or -errno.
using Outcome = int64_t;
/// nullopt: it would block.
using Attempt = std::optional<Outcome>;

/// SO_SNDBUF and SO_RCVBUF may be raised to this, octets.
inline constexpr uint32_t kLargestBuffer = 4 << 20;

/// How long the sender was held up by what (Linux reports it in tcp_info).
struct Holdups {
  base::Duration busy{0};
  base::Duration by_peer_window{0};
  base::Duration by_send_buffer{0};
};

struct Socket final : llp::Acceptor {
  llp::StreamUser* accept(llp::Stream& stream, const Endpoint& local, const Endpoint& remote,
                          base::Now now) override;

  int fd = -1;
  int family = 0;
  bool nonblocking = false;
  Endpoint local;
  Endpoint remote;
  bool bound = false;
  int error = 0;  ///< SO_ERROR
  bool end_noted = false;
  bool shut_read = false;
  bool linger = false;
  int linger_seconds = 0;
  int maxseg = 0;
  tcp::ConnectionOptions options;
  bool options_set = false;  ///< other than the stack's
  bool user_timeout_set = false;

  // Listening.
  bool listening = false;
  uint32_t backlog = 0;
  std::deque<std::unique_ptr<Socket>> accepted;
  const Setup* setup = nullptr;

  // Connected, or on the way there.
  bool connecting = false;
  bool connect_told = false;
  bool no_space = false;
  base::Now push_at = base::kNever;  ///< what is held for more goes out
  std::unique_ptr<SocketStream> stream;
  Holdups holdups;
};

class Sockets {
 public:
  Sockets(const Setup& setup, Host& host);
  ~Sockets();

  [[nodiscard]] bool owns(int fd) const { return table_.contains(fd); }
  [[nodiscard]] bool nonblocking(int fd) const;

  Outcome open(int domain, int type, int protocol);
  Outcome bind(int fd, const sockaddr* address, socklen_t length);
  Outcome listen(int fd, int backlog);
  Attempt accept(int fd, sockaddr* address, socklen_t* length);
  /// Starts it. 0 when connect_result() has to be awaited.
  Outcome connect(int fd, const sockaddr* address, socklen_t length);
  Attempt connect_result(int fd);
  Attempt read(int fd, base::ByteSpan out, int flags);
  /// \param done octets written by earlier attempts of the same call.
  Attempt write(int fd, base::ByteView octets, int flags, size_t& done);
  Attempt poll(pollfd* fds, nfds_t count);
  Outcome shutdown(int fd, int how);
  /// Forgets the descriptor; what was written still goes out.
  Outcome close(int fd);
  Outcome control(int fd, int command, long argument);
  Outcome input_control(int fd, unsigned long request, int* value);
  Outcome get_option(int fd, int level, int name, void* value, socklen_t* length);
  Outcome set_option(int fd, int level, int name, const void* value, socklen_t length);

  /// When on_timers() has something to do.
  [[nodiscard]] base::Now next_deadline() const;
  void on_timers();
  /// Takes notice of connections that ended, and of octets that begin to wait.
  void note_ends();

 private:
  [[nodiscard]] Socket* find(int fd);
  int add(std::unique_ptr<Socket> socket);
  void note_end(Socket& socket);
  void watch_held();
  /// Somebody still reads behind our FIN.
  void keep_half(Socket& socket);
  /// Nobody will read: what arrives after our FIN is answered with RST.
  void refuse_octets(Socket& socket);
  Outcome apply_options(Socket& socket);
  Outcome set_timing_option(Socket& socket, int name, int number);
  void account(base::Now from, base::Now to);
  [[nodiscard]] short events_of(Socket& socket) const;
  Outcome get_tcp_option(Socket& socket, int name, void* value, socklen_t* length);
  Outcome set_tcp_option(Socket& socket, int name, const void* value, socklen_t length);
  Outcome set_socket_option(Socket& socket, int name, const void* value, socklen_t length);
  Outcome fill_info(Socket& socket, void* value, socklen_t* length);

  const Setup setup_;
  Host& host_;
  std::map<int, std::unique_ptr<Socket>> table_;
  std::vector<std::unique_ptr<Socket>> orphans_;  // closed by the program, not by the network
};

}  // namespace rnic::packetdrill
