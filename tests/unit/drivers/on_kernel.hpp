/// \file
/// Two transports of the socket driver, each over a simulated system, and systems that refuse what
/// a test says.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <optional>

#include "../../support/record_user.hpp"
#include "base/log.hpp"
#include "socket/socket.hpp"
#include "sockets/kernel.hpp"

namespace rnic::socket {

using simulation::Kernel;
using simulation::Network;
using simulation::SystemFaults;
using simulation::SystemPlan;
using testing::RecordUser;
using testing::UserAcceptor;

inline constexpr uint16_t kPort = 7000;

class Nothing final : public llp::BeforeHandUp {
 public:
  void before_hand_up() override {}
};

/// A user that looks at whole pieces only, while others use what it would need.
class Waiting final : public RecordUser {
 public:
  using RecordUser::RecordUser;
  [[nodiscard]] uint32_t sure_room() const override { return 0; }
  [[nodiscard]] uint32_t takes(base::Range range, base::ByteView) override {
    ++asked;
    if (on_take) on_take(range);
    return open ? static_cast<uint32_t>(range.size()) : 0;
  }
  bool open = false;
  std::function<void(base::Range)> on_take;
  uint32_t asked = 0;
};

class OnKernel : public ::testing::Test {
 protected:
  void SetUp() override {
    base::set_log_level(base::LogLevel::Off);
    for (int i = 0; i < 2; ++i) {
      kernels_[i] = std::make_unique<Kernel>(
          network_, plan_, IpAddress::v4(0x0a000001u + static_cast<uint32_t>(i)), 1000 * (i + 1));
      transports_[i] = std::move(*Transport::open(config_, now_, *kernels_[i]));
    }
    ASSERT_TRUE(right().listen({{}, kPort}, acceptor_).has_value());
  }
  void TearDown() override {
    for (int i = 0; i < 2; ++i) {
      transports_[i].reset();
      EXPECT_EQ(kernels_[i]->open_descriptors(), 0u);
      EXPECT_EQ(kernels_[i]->misuse(), "");
    }
  }
  Transport& left() { return *transports_[0]; }
  Transport& right() { return *transports_[1]; }

  void turn() {
    now_ += std::chrono::microseconds(1);
    network_.advance(now_);
    for (auto& each : transports_) {
      each->receive(now_, nothing_);
      each->on_timers(now_);
      each->output(now_);
    }
  }
  template <typename Done>
  bool run_until(Done&& done, int turns = 20'000) {
    while (turns-- != 0 && !done()) turn();
    return done();
  }
  void turns(int n) {
    run_until([] { return false; }, n);
  }
  void connect(RecordUser& from, RecordUser& to) {
    acceptor_.next.push_back(&to);
    auto stream = left().connect({}, {kernels_[1]->address(), kPort}, from, now_);
    ASSERT_TRUE(stream.has_value()) << stream.error().message;
    from.stream = *stream;
    ASSERT_TRUE(run_until([&] { return from.is_established && to.is_established; }));
  }

  base::Now now_{std::chrono::seconds(1)};
  Config config_;
  SystemPlan plan_;
  Network network_{1};
  Nothing nothing_;
  UserAcceptor acceptor_;
  std::array<std::unique_ptr<Kernel>, 2> kernels_;
  std::array<std::unique_ptr<Transport>, 2> transports_;
  RecordUser near_{1, 2};
  RecordUser far_{2, 1};
};

/// A system that gives chosen errors; all else goes to another one.
class Refusing final : public System {
 public:
  explicit Refusing(System& under) : under_(under) {}
  int accept_error = 0;
  int send_error = 0;
  int connect_error = 0;
  int listen_error = 0;
  int watch_error = 0;     ///< of every descriptor that epoll is to watch from now on
  int good_watches = 0;    ///< but not of as many first ones
  bool has_ipv6 = true;    ///< it may be left out of a system
  bool has_memory = true;  ///< an option of TCP for which there is none throws
  uint32_t info_mss = 0;   ///< TCP_INFO says it, and TCP_MAXSEG nothing; 0: the other's answer
  int path_mtu = 0;        ///< IP_MTU says it, and TCP nothing; 0: the other's answer
  int bound = AF_UNSPEC;   ///< the family of the latest bind()
  int opened = -1;         ///< the descriptor of the latest socket()
  uint32_t reads = 0;      ///< calls of recv()
  uint32_t waits = 0;      ///< calls of epoll_wait()
  std::optional<int> outstanding;  ///< octets that a peer has not acknowledged
  /// Is called behind each bind(), listen(), setsockopt() and shutdown().
  std::function<void(const char* call)> behind;

  int socket(int a, int b, int c) override {
    if (has_ipv6 || a != AF_INET6) return opened = under_.socket(a, b, c);
    errno = EAFNOSUPPORT;
    return -1;
  }
  int close(int fd) override { return under_.close(fd); }
  int bind(int fd, const sockaddr* a, socklen_t n) override {
    bound = a->sa_family;
    return told("bind", under_.bind(fd, a, n));
  }
  int listen(int fd, int n) override {
    if (listen_error == 0) return told("listen", under_.listen(fd, n));
    errno = listen_error;
    return -1;
  }
  int accept4(int fd, sockaddr* a, socklen_t* n, int flags) override {
    if (accept_error == 0) return under_.accept4(fd, a, n, flags);
    errno = accept_error;
    return -1;
  }
  int connect(int fd, const sockaddr* a, socklen_t n) override {
    if (connect_error == 0) return under_.connect(fd, a, n);
    errno = connect_error;
    return -1;
  }
  int shutdown(int fd, int how) override { return told("shutdown", under_.shutdown(fd, how)); }
  int getsockname(int fd, sockaddr* a, socklen_t* n) override {
    return under_.getsockname(fd, a, n);
  }
  int getsockopt(int fd, int level, int name, void* value, socklen_t* size) override {
    if (path_mtu != 0 && level == IPPROTO_IP && name == IP_MTU) {
      std::memcpy(value, &path_mtu, sizeof path_mtu);
      return 0;
    }
    if (path_mtu != 0 && level == IPPROTO_TCP) return -1;
    if (info_mss == 0 || level != IPPROTO_TCP) {
      return under_.getsockopt(fd, level, name, value, size);
    }
    if (name != TCP_INFO) return -1;
    static_cast<tcp_info*>(value)->tcpi_snd_mss = info_mss;
    return 0;
  }
  int setsockopt(int fd, int level, int name, const void* value, socklen_t size) override {
    if (!has_memory && level == IPPROTO_TCP) throw std::bad_alloc();
    return told("setsockopt", under_.setsockopt(fd, level, name, value, size));
  }
  int unacknowledged(int fd, int& octets) override {
    if (!outstanding) return under_.unacknowledged(fd, octets);
    octets = *outstanding;
    return 0;
  }
  ssize_t recv(int fd, void* to, size_t n, int flags) override {
    ++reads;
    return under_.recv(fd, to, n, flags);
  }
  int sendmmsg(int fd, mmsghdr* messages, uint32_t n, int flags) override {
    if (send_error == 0) return under_.sendmmsg(fd, messages, n, flags);
    errno = send_error;
    return -1;
  }
  int epoll_create1(int flags) override { return under_.epoll_create1(flags); }
  int epoll_ctl(int poller, int what, int fd, epoll_event* event) override {
    if (watch_error != 0 && what != EPOLL_CTL_DEL && good_watches-- <= 0) {
      errno = watch_error;
      return -1;
    }
    return under_.epoll_ctl(poller, what, fd, event);
  }
  int epoll_wait(int poller, epoll_event* events, int n, int timeout) override {
    ++waits;
    return under_.epoll_wait(poller, events, n, timeout);
  }

 private:
  int told(const char* call, int result) {
    const int error = errno;
    if (behind) behind(call);
    errno = error;
    return result;
  }

  System& under_;
};

/// The left or the right transport over a system of which a test says what it refuses.
class OnRefusing : public OnKernel {
 protected:
  void SetUp() override {
    OnKernel::SetUp();
    for (int i = 0; i < 2; ++i) systems_[i] = std::make_unique<Refusing>(*kernels_[i]);
  }
  void TearDown() override {
    for (auto& each : transports_) each.reset();
    OnKernel::TearDown();
  }
  Refusing& refuse(int which) {
    transports_[which].reset();
    transports_[which] = std::move(*Transport::open(config_, now_, *systems_[which]));
    return *systems_[which];
  }
  [[nodiscard]] Endpoint there() const { return {kernels_[1]->address(), kPort}; }

  std::array<std::unique_ptr<Refusing>, 2> systems_;
};

}  // namespace rnic::socket
