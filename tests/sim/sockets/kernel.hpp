/// \file
/// A system of sockets in virtual time, from a seed: what drivers/socket stands on in the
/// simulator. It keeps the promises of the manual pages and no others: calls move less than they
/// could, are interrupted, fail in every way that the pages name; events come late, or for nothing.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>

#include "socket/system.hpp"
#include "sockets/network.hpp"

namespace rnic::simulation {

/// What the calls of one system did.
struct SystemTotals {
  uint64_t octets_in = 0;   ///< read
  uint64_t octets_out = 0;  ///< taken
  uint64_t reads = 0;       ///< recv() that took octets away
  uint64_t peeks = 0;
  uint64_t writes = 0;   ///< sendmmsg() that took octets
  uint64_t refused = 0;  ///< calls that failed by a fault
};

class Kernel final : public socket::System {
 public:
  Kernel(Network& network, const SystemPlan& plan, const IpAddress& address, int first);

  // socket::System
  int socket(int family, int type, int protocol) override;
  int close(int descriptor) override;
  int bind(int descriptor, const sockaddr* address, socklen_t size) override;
  int listen(int descriptor, int backlog) override;
  int accept4(int descriptor, sockaddr* address, socklen_t* size, int flags) override;
  int connect(int descriptor, const sockaddr* address, socklen_t size) override;
  int shutdown(int descriptor, int how) override;
  int getsockname(int descriptor, sockaddr* address, socklen_t* size) override;
  int getsockopt(int descriptor, int level, int name, void* value, socklen_t* size) override;
  int setsockopt(int descriptor, int level, int name, const void* value, socklen_t size) override;
  int unacknowledged(int descriptor, int& octets) override;
  ssize_t recv(int descriptor, void* buffer, size_t size, int flags) override;
  int sendmmsg(int descriptor, mmsghdr* messages, uint32_t count, int flags) override;
  int epoll_create1(int flags) override;
  int epoll_ctl(int poller, int operation, int descriptor, epoll_event* event) override;
  int epoll_wait(int poller, epoll_event* events, int count, int timeout) override;

  // --- For the network ---

  [[nodiscard]] const IpAddress& address() const { return address_; }
  [[nodiscard]] const SystemPlan& plan() const { return plan_; }
  [[nodiscard]] bool listens(const Endpoint& local);
  /// False: the backlog is full.
  bool queue(const Endpoint& local, const std::shared_ptr<TcpLink>& link);
  /// Something has happened at a descriptor. -1: to nobody
  void raise(int descriptor, uint32_t events);
  /// The end's send buffer has become emptier.
  void has_room(TcpEnd& end);

  // --- For the world and for tests ---

  /// The time of the event that is told next.
  [[nodiscard]] base::Now next_event();
  [[nodiscard]] const SystemTotals& totals() const { return totals_; }
  /// The port of the latest active open.
  [[nodiscard]] uint16_t last_port() const { return static_cast<uint16_t>(next_port_ - 1); }
  [[nodiscard]] size_t open_descriptors() const { return entries_.size(); }
  /// What the driver did that no program may do; empty: nothing.
  [[nodiscard]] const std::string& misuse() const { return misuse_; }
  /// The driver may sleep in epoll_wait(), which ends at once, as by a signal: only the world's
  /// clock goes on.
  void may_sleep(bool yes) { may_sleep_ = yes; }
  /// From now on other things go wrong.
  void set_faults(const SystemFaults& faults) { plan_.faults = faults; }
  void set_receive_buffer(uint32_t octets) { plan_.receive_buffer = octets; }
  /// The connections' options that were set: (level, name) -> value, of the descriptor set last.
  [[nodiscard]] const std::map<std::pair<int, int>, int>& options() const { return options_; }

 private:
  enum class Kind : uint8_t { Fresh, Listener, Stream, Poller };
  struct Watch {
    uint32_t interest = 0;
    uint64_t word = 0;
    bool pending = false;
    base::Now visible{};
  };
  struct Entry {
    Kind kind = Kind::Fresh;
    Endpoint local;
    std::deque<std::shared_ptr<TcpLink>> backlog;
    uint32_t backlog_limit = 0;
    std::shared_ptr<TcpLink> link;
    uint32_t end = 0;
    bool watched = false;
    Watch watch;
    bool linger_reset = false;
  };

  [[nodiscard]] base::Prng& prng() { return network_.prng(); }
  int fail(int error);
  [[nodiscard]] bool fault(double chance);
  Entry* find(int descriptor, const char* call);
  Entry* find_stream(int descriptor, const char* call);
  int add(Entry entry);
  [[nodiscard]] Entry* listener_of(const Endpoint& local);
  [[nodiscard]] uint32_t state_of(const Entry& entry) const;
  [[nodiscard]] uint32_t room_of(const TcpEnd& end) const;
  int setup_fault();
  void close_stream(Entry& entry);
  void stop_listening(Entry& entry);
  int broken_by_call(Entry& entry);
  /// An EAGAIN that is not so: the event that follows.
  void raise_later(int descriptor, uint32_t events);
  uint32_t take(TcpEnd& end, const msghdr& message);

  Network& network_;
  SystemPlan plan_;
  IpAddress address_;
  int first_;  // descriptors of two systems never have the same number
  std::map<int, Entry> entries_;
  uint16_t next_port_;  // of connectors; two systems never use the same
  SystemTotals totals_;
  std::string misuse_;
  bool may_sleep_ = false;
  std::map<std::pair<int, int>, int> options_;
};

}  // namespace rnic::simulation
