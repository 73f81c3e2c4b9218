/// \file
/// Layer `tcp`: the TCP engine (RFC 9293 and friends). It knows nothing of iWARP: it carries
/// records for an llp::StreamUser, keeps them whole, and hands committed octets up in and out of
/// order.
///
/// The engine is single-threaded by contract. Time and randomness come in from outside. Input never
/// transmits: it marks connections ready, and output() serves them. All memory is taken at
/// construction.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.hpp"
#include "base/fail.hpp"
#include "base/memory_use.hpp"
#include "base/time.hpp"
#include "llp/icmp_error.hpp"
#include "llp/transport.hpp"
#include "tcp/config.hpp"
#include "tcp/connection_info.hpp"
#include "tcp/connection_options.hpp"
#include "tcp/counters.hpp"

namespace rnic::tcp {

/// One received TCP segment, as the network layer hands it over. It holds references that are valid
/// for one call.
struct SegmentIn {
  const IpAddress& source;
  const IpAddress& destination;
  base::ByteView tcp;              ///< TCP header and payload, exactly (no Ethernet padding)
  bool checksum_verified = false;  ///< the port has verified it; otherwise the engine does
  uint8_t ecn = 0;                 ///< the two ECN bits of the IP header
};

/// Room for one outgoing segment, inside a frame of the port.
struct TxSlot {
  uint8_t* tcp = nullptr;  ///< start of the TCP header
  uint32_t room = 0;       ///< octets from `tcp`: header, options and payload
  /// The engine leaves the TCP checksum field 0, since the port or the medium fills it in.
  bool checksum_open = false;
  void* frame = nullptr;  ///< belongs to the Egress
  // Written by the engine between begin() and send().
  uint8_t traffic_class = 0;  ///< DSCP << 2 | ECN (RFC 2474, RFC 3168)
  uint8_t hop_limit = 0;      ///< TTL; 0: the interface's default
};

/// Room for segments that go out one behind another.
struct TxRun {
  static constexpr uint32_t kMost = 16;

  TxRun() {}  // NOLINT(modernize-use-equals-default): no more than `count` of each array is used

  TxSlot common;       ///< of all of them; `common.tcp` is the first one's
  uint32_t count = 0;  ///< segments that there is room for
  std::array<uint8_t*, kMost> tcp;      ///< start of the TCP header of each
  std::array<uint32_t, kMost> lengths;  ///< octets from there, written by the engine
};

/// The interface through which the engine sends; the device implements it over `net`.
class Egress {
 public:
  virtual ~Egress() = default;
  /// Takes room for a segment from source to destination. False: the port is full or has no buffer.
  /// That is a wait, never a loss: the engine leaves everything as it is and tries again at the
  /// next output().
  virtual bool begin(const IpAddress& source, const IpAddress& destination, TxSlot& slot,
                     base::Now now) = 0;
  /// The segment is complete: `length` octets of TCP header and payload are in place.
  virtual void send(TxSlot& slot, uint32_t length, base::Now now) = 0;
  /// Gives an unused slot back.
  virtual void cancel(TxSlot& slot) = 0;
  /// Takes room for segments from source to destination, one at least and `most` at most. False: as
  /// begin(). Until send_run() the engine calls nothing else of this that takes room.
  virtual bool begin_run(const IpAddress& source, const IpAddress& destination, uint32_t most,
                         TxRun& run, base::Now now) {
    static_cast<void>(most);
    if (!begin(source, destination, run.common, now)) return false;
    run.tcp[0] = run.common.tcp;
    run.count = 1;
    return true;
  }
  /// The first `complete` segments of the run are in place, with their lengths. They are sent in
  /// order, and the room of the others is given back.
  virtual void send_run(TxRun& run, uint32_t complete, base::Now now) {
    if (complete != 0) {
      send(run.common, run.lengths[0], now);
    } else if (run.count != 0) {
      cancel(run.common);
    }
    run.count = 0;
  }
  /// The segments sent so far may leave before the engine goes on. A hint: without it they leave
  /// when output() is over.
  virtual void hand_over(base::Now now) { static_cast<void>(now); }
  /// Octets of the largest IP packet towards `destination`; 0 when there is no route.
  [[nodiscard]] virtual uint32_t path_mtu(IpAddress destination, base::Now now) const = 0;
  /// The MTU of the interface alone, in octets, whatever the path MTU is: it limits the packets
  /// that we can receive.
  [[nodiscard]] virtual uint32_t link_mtu(IpAddress destination) const = 0;
  /// The path towards `destination` carries packets of at most `mtu` octets: a verified message or
  /// our own probes have shown this. path_mtu() returns this value for a limited time (RFC 1191
  /// s.6.3).
  virtual void reduce_path_mtu(IpAddress destination, uint32_t mtu, base::Now now) = 0;
  /// \return segments from `remote` to `local` come to this stack. Where a device spreads segments
  /// over several stacks, each stack has the connections whose segments it gets.
  [[nodiscard]] virtual bool lands_here(const Endpoint& local, const Endpoint& remote) const {
    (void)local;
    (void)remote;
    return true;
  }
  /// R1 (RFC 9293 s.3.8.3): three retransmissions brought no answer; the next hop may be dead.
  virtual void doubt_path(IpAddress destination, base::Now now) {
    (void)destination;
    (void)now;
  }
};

/// A TCP/IP host's TCP: listeners, connections, TIME-WAIT, timers.
class Stack final : public llp::Transport {
 public:
  /// \param secret key of the ISN hash (RFC 6528), from the system's randomness at the edge, or
  /// fixed in
  ///        tests. \param egress outlives the stack.
  Stack(const Config& config, Egress& egress, std::array<uint64_t, 2> secret, uint64_t seed,
        base::Now now);
  ~Stack() override;
  /// The memory that a stack takes at construction, listed by the setting that determines each
  /// size.
  [[nodiscard]] static base::MemoryUses memory_use(const Config& config);

  Result<Endpoint> reserve(const Endpoint& local) override;
  Status unreserve(const Endpoint& reserved) override;
  Result<Endpoint> listen(const Endpoint& local, llp::Acceptor& acceptor,
                          llp::PortClaim claim = llp::PortClaim::None,
                          const TcpOptions& options = {}) override;
  /// \param options the options of the connections accepted here
  Result<Endpoint> listen(const Endpoint& local, llp::Acceptor& acceptor,
                          const ConnectionOptions& options,
                          llp::PortClaim claim = llp::PortClaim::None);
  Status unlisten(const Endpoint& local) override;
  Result<llp::Stream*> connect(const Endpoint& local, const Endpoint& remote, llp::StreamUser& user,
                               base::Now now, llp::PortClaim claim = llp::PortClaim::None,
                               const TcpOptions& options = {}) override;
  Status choose(llp::Stream& stream, const TcpOptions& options, base::Now now) override;
  Result<llp::Stream*> connect(const Endpoint& local, const Endpoint& remote, llp::StreamUser& user,
                               const ConnectionOptions& options, base::Now now,
                               llp::PortClaim claim = llp::PortClaim::None);

  /// The options that the Config gives every connection. A caller may change a copy and pass it to
  /// connect() or listen().
  [[nodiscard]] ConnectionOptions default_options() const;
  /// \param stream a stream of this stack that has not ended; any other aborts the process
  [[nodiscard]] ConnectionOptions options(const llp::Stream& stream) const;
  /// Changes the options of a live connection. An option of the handshake (ecn) has no effect any
  /// more. InvalidArgument names the value that is out of range; nothing is changed then. \param
  /// stream as for options()
  Status set_options(llp::Stream& stream, const ConnectionOptions& options, base::Now now);

  void on_timers(base::Now now) override;
  void output(base::Now now) override;
  [[nodiscard]] base::Now next_deadline() const override;
  /// \return on_timers() may have something to do, which costs less to know than next_deadline()
  [[nodiscard]] bool due(base::Now now);
  /// \return output() may have something to do
  [[nodiscard]] bool has_output() const;

  /// One received segment (RFC 9293 s.3.10.7). Any octets at all are safe.
  void input(const SegmentIn& segment, base::Now now);

  /// One received ICMP error. Any octets at all are safe.
  void icmp_error(const llp::IcmpError& error, base::Now now);

  [[nodiscard]] const Counters& counters() const;
  /// Connections that are not CLOSED, with those in TIME-WAIT.
  [[nodiscard]] uint32_t live_connections() const;
  /// The stack has no connection, reply, record, range set or saved block. For checks that
  /// everything was given back.
  [[nodiscard]] bool quiescent() const;
  /// For tests and the simulator: checks every invariant of every connection, counting anew what is
  /// kept as running sums, and aborts when one does not hold. Slow; to be called between events.
  /// \return the records that it went through, which is what takes the time
  uint64_t validate();

  /// A snapshot of one of this stack's connections; for tools and people, not for the data path: it
  /// walks the unacknowledged records. `stream` has not ended yet. nullopt: it belongs to another
  /// transport or stack.
  [[nodiscard]] std::optional<ConnectionInfo> info(const llp::Stream& stream, base::Now now) const;
  [[nodiscard]] TransportInfo describe(const llp::Stream& stream, base::Now now) const override;

  /// For tests: connections opened from now on start at this ISN (nullopt: RFC 6528 again).
  void force_isn(std::optional<uint32_t> isn);
  /// For tests: turns header prediction off, so that every segment takes the slow path. To be
  /// called before the first segment.
  void set_prediction(bool on);
  /// For tests: off, each segment is chosen and noted by itself, and has a header of its own.
  void set_bursts(bool on);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rnic::tcp
