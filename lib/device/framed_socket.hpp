/// \file
/// Framed streams of a device: whole PDUs over TCP (draft-ietf-tsvwg-tcp-ulp-frame-00), beside its
/// queue pairs and its streaming sockets.
///
/// The worker owns streams and listeners; an application thread works on the application side of a
/// FramedSocket's tuf::FramedStream and a word of wishes, and rings the table's doorbell. No lock
/// anywhere. Modes are changed by the worker while the application waits.
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
#include "tcp/ring_pool.hpp"
#include "tcp/tcp.hpp"
#include "tuf/tuf.hpp"

namespace rnic::device {

class FramedListener;
class FramedTable;

/// How a framed stream begins.
struct FramedSetup {
  tuf::StreamConfig stream;  ///< ring_octets is the table's: limits.framed_buffer
  FramedSendMode send = FramedSendMode::Plain;
  FramedReceiveMode receive = FramedReceiveMode::Plain;
  wire::TufKey send_key = 0;     ///< alignment mode
  wire::TufKey receive_key = 0;  ///< alignment mode
};

// What can be right, each with a message that says what to do.
[[nodiscard]] Status check_key(wire::TufKey key);
[[nodiscard]] Status check_pdu_max(uint32_t octets, const tuf::PduFormat& format);
[[nodiscard]] Status check_setup(const FramedSetup& setup);

/// What the stream tells the worker, for the application to see.
class FramedNotices final : public tuf::FramedStreamEvents {
 public:
  void emss_changed(uint32_t) override { emss_.fetch_add(1, std::memory_order_release); }
  void middlebox_suspected() override { middlebox_.store(true, std::memory_order_release); }
  /// How often EMSS has changed.
  [[nodiscard]] uint32_t emss_changes() const { return emss_.load(std::memory_order_acquire); }
  [[nodiscard]] bool is_middlebox_suspected() const {
    return middlebox_.load(std::memory_order_acquire);
  }

 private:
  std::atomic<uint32_t> emss_{0};
  std::atomic<bool> middlebox_{false};
};

/// Made before the stream that tells them.
struct HasFramedNotices {
  FramedNotices notices;
};

/// One connection. It lives until the application has let it go *and* TCP has done with it.
class FramedSocket final : private HasFramedNotices, public tuf::FramedStream {
 public:
  /// What the application asks of the worker; bits.
  enum Wish : uint8_t {
    kFinish = 1,   ///< half close behind what was submitted
    kAbort = 2,    ///< RST
    kRelease = 4,  ///< the application does not touch the socket any more
  };

  FramedSocket(FramedTable& table, FramedListener* listener, const tuf::StreamConfig& config,
               tuf::StreamRings rings, const Endpoint& local, const Endpoint& remote);

  // --- Application side ---

  [[nodiscard]] uint32_t number() const { return handle.index; }
  [[nodiscard]] const Endpoint& local() const { return local_; }
  [[nodiscard]] const Endpoint& remote() const { return remote_; }
  /// Ring the doorbell afterwards; after kRelease with the number taken before.
  void wish(uint8_t wishes) { wishes_.fetch_or(wishes, std::memory_order_release); }
  [[nodiscard]] const FramedNotices& told() const { return notices; }
  [[nodiscard]] const tuf::StreamConfig& began_with() const { return config_; }
  /// The transport keeps records whole: Atomic and Align can be sent.
  [[nodiscard]] bool keeps_records() const { return keeps_records_; }

  // --- Worker's side ---

  /// attach(), and the modes of `setup`. Unsupported: see tuf::FramedStream::set_send_mode().
  Status begin(llp::Stream& stream, const FramedSetup& setup);
  /// The doorbell rang.
  void obey(base::Now now);
  void set_local(const Endpoint& local) { local_ = local; }
  [[nodiscard]] tuf::StreamRings rings() const { return rings_; }

  void established(uint32_t emss, base::Now now) override;
  void ended(StreamEnd how, base::Now now) override;

  base::Handle handle;  ///< its own place in the table

 private:
  FramedTable& table_;
  FramedListener* listener_;  // until it was handed over; nullptr for active opens
  const tuf::StreamConfig config_;
  const tuf::StreamRings rings_;
  Endpoint local_;
  Endpoint remote_;
  bool keeps_records_ = false;
  std::atomic<uint8_t> wishes_{0};
};

/// Where accepted connections wait for the application.
class FramedListener final : public llp::Acceptor {
 public:
  FramedListener(FramedTable& table, const Endpoint& local, uint32_t backlog,
                 const FramedSetup& setup)
      : table_(table), local_(local), setup_(setup), waiting_(backlog) {}

  /// Application side, one thread at a time: the oldest connection, or nullptr.
  FramedSocket* next() {
    FramedSocket* socket = nullptr;
    return waiting_.pop(socket) ? socket : nullptr;
  }
  [[nodiscard]] const Endpoint& local() const { return local_; }

  // Worker's side.
  llp::StreamUser* accept(llp::Stream& stream, const Endpoint& local, const Endpoint& remote,
                          base::Now now) override;
  [[nodiscard]] uint32_t first_room(const Endpoint& remote) const override;
  void hand_over(FramedSocket& socket);

 private:
  FramedTable& table_;
  Endpoint local_;
  FramedSetup setup_;
  base::SpscRing<FramedSocket*> waiting_;
};

/// All framed streams of a device, and the memory of their rings.
class FramedTable {
 public:
  /// \param stack, counters outlive the table.
  FramedTable(const Limits& limits, tcp::Stack& stack, DeviceCounters& counters);
  /// What the places of `sockets` sockets ask the machine for, their rings apart.
  [[nodiscard]] static uint64_t socket_octets_for(uint64_t sockets) {
    return base::Slab<FramedSocket>::octets_for(sockets);
  }

  // --- Worker ---

  /// \param options, setup of the connections accepted here
  Result<FramedListener*> listen(const Endpoint& local, uint32_t backlog,
                                 const tcp::ConnectionOptions& options, const FramedSetup& setup);
  /// Connections that the application has not taken are aborted; the others go on.
  void unlisten(FramedListener& listener, base::Now now);
  Result<FramedSocket*> connect(const Endpoint& local, const Endpoint& remote,
                                const tcp::ConnectionOptions& options, const FramedSetup& setup,
                                base::Now now);
  /// \return doorbells answered
  uint32_t serve_doorbells(base::Now now);
  /// Takes away sockets that nobody needs any more.
  void reap();
  void abort_all();
  [[nodiscard]] bool doorbell_ringing() const { return doorbells_.ringing(); }
  [[nodiscard]] uint32_t live() const { return sockets_.live(); }
  [[nodiscard]] const tcp::RingPool& rings() const { return rings_; }
  /// `counters` with those of the framed streams.
  [[nodiscard]] tuf::Counters with_own(tuf::Counters counters) const;

  // --- Application side ---

  void ring_doorbell(uint32_t number) { doorbells_.ring(number); }

  // --- Called by sockets and listeners ---

  FramedSocket* incoming(FramedListener& listener, const FramedSetup& setup, llp::Stream& stream,
                         const Endpoint& local, const Endpoint& remote);
  void handed_over() { ++counters_.framed_accepted; }
  void refused() { ++counters_.framed_refused; }
  /// Its peer has to end soon, too.
  void let_go(FramedSocket& socket, base::Now now);
  void done_with(const FramedSocket& socket) { done_.push_back(socket.handle); }
  [[nodiscard]] tuf::Counters& tuf_counters() { return tuf_counters_; }

 private:
  FramedSocket* add(FramedListener* listener, tuf::StreamConfig config, const Endpoint& local,
                    const Endpoint& remote);
  void remove(FramedSocket& socket);

  const uint32_t max_streams_;
  tcp::Stack& stack_;
  DeviceCounters& counters_;
  mutable tuf::Counters tuf_counters_;  // the application sides count here, too
  tcp::RingPool rings_;                 // two blocks for each socket: a socket always has its rings
  base::Slab<FramedSocket> sockets_;
  std::vector<FramedSocket*> by_number_;
  std::vector<std::unique_ptr<FramedListener>> listeners_;  // limited by tcp.max_listeners
  std::vector<base::Handle> done_;                          // released and ended: to be reaped
  base::Doorbells doorbells_;
};

}  // namespace rnic::device
