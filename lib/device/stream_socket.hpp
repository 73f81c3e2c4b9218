/// \file
/// Streaming sockets of a device: plain TCP beside the queue pairs, for start-up phases, tools and
/// tests.
///
/// The worker owns streams and listeners; an application thread works on a StreamSocket through its
/// two byte rings and a word of wishes, and rings the table's doorbell. No lock anywhere.
///
/// A socket can be lent to an MPA session (RFC 5044 s.7.1.3): it then passes on what concerns
/// octets behind that position, for good, or until MPA is left by a reject.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/doorbell.hpp"
#include "base/fail.hpp"
#include "base/slab.hpp"
#include "base/spsc_ring.hpp"
#include "device/config.hpp"
#include "device/counters.hpp"
#include "mpa/mpa.hpp"
#include "tcp/byte_stream.hpp"
#include "tcp/tcp.hpp"

namespace rnic::device {

class StreamListener;
class StreamTable;

/// One connection. It lives until the application has let it go *and* TCP has done with it.
class StreamSocket final : public tcp::ByteStream {
 public:
  /// What the application asks of the worker; bits.
  enum Wish : uint8_t {
    kFinish = 1,   ///< half close behind what was put
    kAbort = 2,    ///< RST
    kRelease = 4,  ///< the application does not touch the socket any more
  };

  StreamSocket(StreamTable& table, StreamListener* listener, const Endpoint& local,
               const Endpoint& remote);

  // --- Application side ---

  [[nodiscard]] uint32_t number() const { return handle.index; }
  [[nodiscard]] const Endpoint& local() const { return local_; }
  [[nodiscard]] const Endpoint& remote() const { return remote_; }
  /// Ring the doorbell afterwards; after kRelease with the number taken before.
  void wish(uint8_t wishes) { wishes_.fetch_or(wishes, std::memory_order_release); }
  /// An MPA session has the stream: nothing may be put or taken.
  [[nodiscard]] bool is_lent() const { return lent_.load(std::memory_order_acquire); }

  // --- Worker's side ---

  /// Nothing that came would be lost by lending it now; otherwise says what is in the way.
  [[nodiscard]] Status can_be_lent() const;
  /// What follows in both directions is the session's. \param session attached to stream()
  void lend(mpa::Session& session, base::ByteView last_message, base::Now now);
  /// MPA was left (mpa::Session::left()): the octets are the application's again.
  void take_back(base::Now now);

  /// The doorbell rang.
  void obey(base::Now now);
  [[nodiscard]] bool is_released() const {
    return (wishes_.load(std::memory_order_acquire) & kRelease) != 0;
  }
  void set_local(const Endpoint& local) { local_ = local; }

  // llp::StreamUser
  void established(uint32_t emss, base::Now now) override;
  llp::Pulled pull(uint32_t n, uint64_t offset, llp::Frame& out) override;
  bool rebuild(const llp::RecordTag& tag, uint64_t offset, uint32_t length,
               llp::Frame& out) override;
  void released(const llp::RecordTag& tag, uint64_t end_offset) override;
  llp::InspectVerdict inspect(base::Range range, base::ByteView octets, base::Now now) override;
  void place(base::Range range, base::ByteView octets, bool in_order, base::Now now) override;
  void ordered(uint64_t offset, base::Now now) override;
  void emss_changed(uint32_t emss) override;
  [[nodiscard]] uint32_t receive_room() const override;
  [[nodiscard]] uint32_t pending() const override;
  [[nodiscard]] bool all_fits(uint32_t octets) const override;
  [[nodiscard]] uint32_t unread() const override;
  void peer_finished(base::Now now) override;
  void ended(StreamEnd how, base::Now now) override;

  base::Handle handle;  ///< its own place in the table

 private:
  /// The application's octets behind the session's: what the session passes on after take_back().
  class Behind final : public llp::StreamUser {
   public:
    explicit Behind(StreamSocket& socket) : socket_(socket) {}
    void established(uint32_t, base::Now) override {}
    llp::Pulled pull(uint32_t n, uint64_t offset, llp::Frame& out) override;
    bool rebuild(const llp::RecordTag& tag, uint64_t offset, uint32_t length,
                 llp::Frame& out) override;
    void released(const llp::RecordTag& tag, uint64_t end_offset) override;
    llp::InspectVerdict inspect(base::Range range, base::ByteView octets, base::Now now) override;
    void place(base::Range range, base::ByteView octets, bool in_order, base::Now now) override;
    void ordered(uint64_t offset, base::Now now) override;
    void emss_changed(uint32_t) override {}
    [[nodiscard]] bool all_fits(uint32_t octets) const override;
    [[nodiscard]] uint32_t receive_room() const override;
    void peer_finished(base::Now now) override;
    void ended(StreamEnd, base::Now) override {}

   private:
    StreamSocket& socket_;
  };

  StreamTable& table_;
  StreamListener* listener_;  // until it was handed over; nullptr for active opens
  Endpoint local_;
  Endpoint remote_;
  std::atomic<uint8_t> wishes_{0};
  std::atomic<bool> lent_{false};
  mpa::Session* session_ = nullptr;  // from lend() to the end of the stream
  uint64_t lent_at_ = 0;             // stream offset of the session's first octet
  Behind behind_{*this};
};

/// Where accepted connections wait for the application.
class StreamListener final : public llp::Acceptor {
 public:
  StreamListener(StreamTable& table, const Endpoint& local, uint32_t backlog)
      : table_(table), local_(local), waiting_(backlog) {}

  /// Application side, one thread at a time: the oldest connection, or nullptr.
  StreamSocket* next() {
    StreamSocket* socket = nullptr;
    return waiting_.pop(socket) ? socket : nullptr;
  }
  [[nodiscard]] const Endpoint& local() const { return local_; }

  // Worker's side.
  llp::StreamUser* accept(llp::Stream& stream, const Endpoint& local, const Endpoint& remote,
                          base::Now now) override;
  [[nodiscard]] uint32_t first_room(const Endpoint& remote) const override;
  void hand_over(StreamSocket& socket);

 private:
  StreamTable& table_;
  Endpoint local_;
  base::SpscRing<StreamSocket*> waiting_;
};

/// All streaming sockets of a device, and the memory of their rings.
class StreamTable {
 public:
  /// \param stack, counters outlive the table.
  StreamTable(const Limits& limits, tcp::Stack& stack, DeviceCounters& counters);
  /// What the places of `sockets` sockets ask the machine for, their rings apart.
  [[nodiscard]] static uint64_t socket_octets_for(uint64_t sockets) {
    return base::Slab<StreamSocket>::octets_for(sockets);
  }

  // --- Worker ---

  /// \param options of the connections accepted here
  Result<StreamListener*> listen(const Endpoint& local, uint32_t backlog,
                                 const tcp::ConnectionOptions& options);
  /// Connections that the application has not taken are aborted; the others go on.
  void unlisten(StreamListener& listener, base::Now now);
  Result<StreamSocket*> connect(const Endpoint& local, const Endpoint& remote,
                                const tcp::ConnectionOptions& options, base::Now now);
  /// WrongState when the stream has ended.
  Status set_options(StreamSocket& socket, const tcp::ConnectionOptions& options, base::Now now);
  [[nodiscard]] Result<tcp::ConnectionOptions> options(StreamSocket& socket) const;
  /// A ring to put into. ResourceExhausted when limits.stream_octets are in use.
  Status reserve_send(StreamSocket& socket);
  /// \return doorbells answered
  uint32_t serve_doorbells(base::Now now);
  /// Takes away sockets that nobody needs any more.
  void reap();
  void abort_all();
  [[nodiscard]] bool doorbell_ringing() const { return doorbells_.ringing(); }
  [[nodiscard]] uint32_t live() const { return sockets_.live(); }
  [[nodiscard]] tcp::RingPool& rings() { return rings_; }

  // --- Application side ---

  void ring_doorbell(uint32_t number) { doorbells_.ring(number); }

  // --- Called by sockets and listeners ---

  StreamSocket* incoming(StreamListener& listener, llp::Stream& stream, const Endpoint& local,
                         const Endpoint& remote);
  void handed_over() { ++counters_.streams_accepted; }
  void refused() { ++counters_.streams_refused; }
  /// Its peer has to end soon, too.
  void let_go(StreamSocket& socket, base::Now now);
  void buffer_wait() { ++counters_.stream_buffer_waits; }
  void done_with(const StreamSocket& socket) { done_.push_back(socket.handle); }

 private:
  StreamSocket* add(StreamListener* listener, const Endpoint& local, const Endpoint& remote);
  void remove(StreamSocket& socket);

  const uint32_t max_streams_;
  tcp::Stack& stack_;
  DeviceCounters& counters_;
  tcp::RingPool rings_;
  base::Slab<StreamSocket> sockets_;
  std::vector<StreamSocket*> by_number_;
  std::vector<std::unique_ptr<StreamListener>> listeners_;  // limited by tcp.max_listeners
  std::vector<base::Handle> done_;                          // released and ended: to be reaped
  base::Doorbells doorbells_;
};

}  // namespace rnic::device
