/// \file
/// Framed streams of a device: whole PDUs over TCP (draft-ietf-tsvwg-tcp-ulp-frame-00), beside its
/// queue pairs and its streaming sockets.
///
/// The worker owns streams and listeners. An application thread uses the application side of a
/// FramedSocket's tuf::FramedStream, writes its commands and rings its doorbell. The worker changes
/// modes while the application waits.
#pragma once

#include <atomic>
#include <cstdint>

#include "device/socket_table.hpp"
#include "tcp/ring_pool.hpp"
#include "tuf/framed_stream.hpp"

namespace rnic::device {

class FramedSocket;

// Each of these refuses a value that cannot be right with a message that says what to do.
[[nodiscard]] Status check_key(wire::TufKey key);
[[nodiscard]] Status check_pdu_max(uint32_t octets, const FrameFormat& format);

/// Keeps what the stream reports on the worker's thread, for the application's thread to read.
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

/// The memory of all rings, and the counters of the framed streams. There are two blocks for each
/// socket, so that a socket always has its rings.
struct FramedShared {
  FramedShared(const Limits& limits, DeviceCounters&)
      : rings(limits.framed_buffer, 2 * limits.max_framed_streams) {}

  [[nodiscard]] uint32_t first_room() const { return rings.block_octets(); }
  /// `others` with the framed streams' own counters added.
  [[nodiscard]] tuf::Counters with_own(tuf::Counters others) const;

  tcp::RingPool rings;
  mutable tuf::Counters counters;  // the application sides count here, too
};

struct FramedKind {
  using Octets = tuf::FramedStream;
  using Socket = FramedSocket;
  using Setup = FramingOptions;
  [[nodiscard]] static Status check(const Setup& framing);
  using Shared = FramedShared;
  static uint32_t max_sockets(const Limits& limits) { return limits.max_framed_streams; }
  static constexpr const char* kLimit = "limits.max_framed_streams";
  static constexpr const char* kName = "framed stream";
  static constexpr const char* kListen = "listen_framed";
  static constexpr uint32_t kBacklog = 16;
  static constexpr uint64_t DeviceCounters::*kOpened = &DeviceCounters::framed_opened;
  static constexpr uint64_t DeviceCounters::*kAccepted = &DeviceCounters::framed_accepted;
  static constexpr uint64_t DeviceCounters::*kRefused = &DeviceCounters::framed_refused;
  static constexpr const char* kWithoutPort =
      "a device on sockets of the system has no framed streams: give the device a port of its own, "
      "or send messages by a queue pair (framing.protocol = \"tuf\" puts ULP framing in marker "
      "mode below it)";
};

/// The two rings of a socket, for as long as it lives.
class RingPair {
 public:
  explicit RingPair(tcp::RingPool& pool) : pool_(pool), rings_{pool.take(), pool.take()} {}
  ~RingPair() {
    pool_.give(rings_.send);
    pool_.give(rings_.receive);
  }
  RingPair(const RingPair&) = delete;
  RingPair& operator=(const RingPair&) = delete;
  [[nodiscard]] const tuf::StreamRings& get() const { return rings_; }

 private:
  tcp::RingPool& pool_;
  const tuf::StreamRings rings_;
};

/// The base of a FramedSocket that has to exist before the stream that uses it.
struct FramedParts {
  explicit FramedParts(tcp::RingPool& pool) : rings(pool) {}
  RingPair rings;
  FramedNotices events;
};

class FramedSocket final : private FramedParts, public TcpSocket<FramedKind> {
 public:
  FramedSocket(const Place<FramedSocket>& place, const FramingOptions& framing,
               FramedShared& shared);

  // --- Application side ---

  [[nodiscard]] const FramedNotices& notices() const { return events; }
  [[nodiscard]] const FramingOptions& began_with() const { return framing_; }
  /// The transport keeps records whole: Atomic and Align can be sent.
  [[nodiscard]] bool keeps_records() const { return keeps_records_; }

  // --- Worker's side ---

  /// Attaches the stream and sets the modes of `framing`. Unsupported: see
  /// tuf::FramedStream::set_send_mode().
  Status begin(llp::Stream& stream, const FramingOptions& framing);

 private:
  const FramingOptions framing_;
  bool keeps_records_ = false;
};

using FramedTable = SocketTable<FramedKind>;
using FramedListener = SocketListener<FramedKind>;

}  // namespace rnic::device
